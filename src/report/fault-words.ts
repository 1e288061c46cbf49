/**
 * Faults of the API as they stand in the state, in words for people.
 */
import type { ApiFaultKind } from '../core/faults.ts';
import { plainText } from '../core/text.ts';

const WORDS: Readonly<Record<ApiFaultKind, string>> = {
  unreachable: 'the API could not be reached',
  throttled: 'the API says that the allowance is spent (429)',
  unauthorized: 'the API refuses the key (401)',
  'scope-missing': 'the key lacks the scope for it (403)',
  'no-api-access': 'the plan gives no API access (403)',
  'not-found': 'the API does not know it (404)',
  'bad-cursor': 'the API refused the cursor (400)',
  'range-too-large': 'refused by the plan: the window was too wide (400)',
  'invalid-request': 'the API refused what was asked (400)',
  'server-fault': 'the API failed (5xx)',
  malformed: 'the answer was not understood',
};

/** @param fault as a process has left it, maybe of another version. */
export function faultWords(fault: string): string {
  return Object.hasOwn(WORDS, fault) ? WORDS[fault as ApiFaultKind] : plainText(fault, 60);
}

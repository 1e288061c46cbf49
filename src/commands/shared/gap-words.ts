/**
 * The words of the state in words for people: reasons of holes (`StatusGap.reason`) with what can be done, and lanes.
 */
import { plainText } from '../../core/text.ts';

export interface GapWords {
  readonly why: string;
  readonly remedy: string;
}

const WORDS: ReadonlyMap<string, GapWords> = new Map([
  ['not reached yet', { why: 'not reached yet', remedy: 'comes while the daemon runs, or by --once' }],
  ['beyond plan', { why: 'refused by the plan', remedy: 'older than its history_max_days' }],
  ['beyond allowance', { why: 'beyond the allowance', remedy: '--plan tells what would carry them' }],
  ['page not understood', { why: 'page not understood', remedy: 'tried again now and then, see the log' }],
  ['device unreachable', { why: 'device unreachable', remedy: 'its requests fail; tried again now and then' }],
  ['device gone', { why: 'device gone', remedy: 'not in the workspace any more; looked at once a day' }],
  ['excluded', { why: 'excluded', remedy: 'by sync.include or sync.exclude' }],
]);

/** @param reason as the report tells it; one that is not known is told as it is. */
export function gapWords(reason: string): GapWords {
  return WORDS.get(reason) ?? { why: plainText(reason, 60), remedy: '' };
}

const LANES: ReadonlyMap<string, string> = new Map([
  ['live', 'newest readings'],
  ['inventory', 'lists and account'],
  ['first-history', 'first history'],
  ['sweep', 'sweeps'],
]);

/** @param lane as it stands in the state. */
export function laneWords(lane: string): string {
  return LANES.get(lane) ?? plainText(lane, 20);
}

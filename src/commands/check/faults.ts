/**
 * What `--check` says of a request to the API that failed: one line for each kind of fault, with its remedy.
 */
import type { CheckNotes } from '../../core/check.ts';
import type { ApiFault, ApiFaultKind } from '../../core/faults.ts';
import type { Scope } from './api.ts';
import { spanWords } from './words.ts';

const WHERE = 'in the dashboard (Settings, then API)';

type Told = (notes: CheckNotes, scope: Scope, fault: ApiFault) => void;

/** What a workspace is synced without when the scope is missing; `null`: nothing can be synced then. */
const WITHOUT: Readonly<Record<Scope, string | null>> = {
  'devices:read': null,
  'telemetry:read': null,
  'alerts:read': 'alerts are not synced',
  'account:read': 'the plan is not known, the allowance is guessed cautiously, and points carry workspace_id=default',
};

const scopeMissing: Told = (notes, scope) => {
  const without = WITHOUT[scope];
  const remedy = `Create a key ${WHERE} that has ${scope} as well, and give it as api.key.`;
  if (without === null) {
    const message = `the key lacks it: ${scope === 'devices:read' ? 'nothing' : 'no reading'} can be synced`;
    notes.fail(scope, { message, remedy, exitCode: 77 });
  } else notes.warn(scope, { message: `the key lacks it: ${without}`, remedy });
};

const odd: Told = (notes, scope, { message }) => {
  const remedy = `Run it again; if it stays: look whether api.url is right and no proxy answers instead of the API (asked for ${scope}).`;
  notes.fail('answer', { message, remedy });
};

const refused: Told = (notes, scope, { message }) => {
  const remedy = 'Nothing, if the sync runs: it asks in other ways too. Else report it with these words.';
  notes.warn(scope, { message: `granted, but the request was refused: ${message}`, remedy });
};

const TOLD: Readonly<Record<ApiFaultKind, Told>> = {
  'scope-missing': scopeMissing,
  unauthorized: (notes) =>
    notes.fail('key', {
      message: 'the API refuses the key: it is unknown, revoked or expired',
      remedy: `Create one ${WHERE} and put it into the file of api.key_file, alone on one line.`,
      exitCode: 77,
    }),
  'no-api-access': (notes, _scope, { message }) =>
    notes.fail('access', {
      message: `the plan of this workspace has no access to the API (${message})`,
      remedy: 'Take a plan that includes API access.',
      exitCode: 77,
    }),
  'not-found': (notes, _scope, { message }) =>
    notes.fail('address', {
      message,
      remedy: 'Correct api.url: the base address of the API, ending in /external/v1.',
    }),
  unreachable: (notes, _scope, { message }) =>
    notes.fail('answer', {
      message,
      remedy: 'Look after the network, HTTPS_PROXY and api.ca_file, then run it again.',
    }),
  throttled: (notes, _scope, { message, facts: { waitMs } }) =>
    notes.fail('allowance', {
      message: `${message}${waitMs === undefined ? '' : `; the next request may go in ${spanWords(waitMs)}`}`,
      remedy:
        'Run it again then. If it happens often, lower api.share, or see who else uses the keys of the workspace.',
      facts: { wait_seconds: waitMs === undefined ? null : Math.ceil(waitMs / 1000) },
    }),
  'server-fault': odd,
  malformed: odd,
  'bad-cursor': refused,
  'range-too-large': refused,
  'invalid-request': refused,
};

/** Tells of it. */
export function noteFault(notes: CheckNotes, scope: Scope, fault: ApiFault): void {
  TOLD[fault.kind](notes, scope, fault);
}

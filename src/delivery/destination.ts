/**
 * Identifies the destination behind a configured database: by its kind, URL, organisation and bucket. It reports a new
 * destination, and determines the kind of a database if that is not configured.
 *
 * Promise: nothing is sent before the kind is known, because the lines depend on it. The state stores the kind as part
 * of the destination's identity.
 *
 * It also decides what each answer to a write means for the lines of the request. No other part of delivery looks at
 * the kind of an answer (`judge`):
 *
 * | answer    | the lines of the request                                | as the answer to a control line         |
 * | --------- | ------------------------------------------------------- | --------------------------------------- |
 * | accepted  | accept: the database has them                           | the rejected lines like it are at fault |
 * | rejected  | bisect: at least one is at fault, others may be stored  | shows nothing; the next control line    |
 * | too-large | halve: too much for one request; no line is at fault    | shows nothing; the next control line    |
 * | later     | keep: the same lines again later                        | the search stops; all lines are kept    |
 * | blocked   | keep: until a person has solved the problem             | the search stops; all lines are kept    |
 */

import type { Observe } from '../core/events.ts';
import {
  DESTINATION_KINDS,
  type DestinationKind,
  describeIdentity,
  isKindUnknown,
  withKind,
} from '../core/lines/dialect.ts';
import type { Sink, UnknownRejection, UnknownServer, WriteAnswer } from '../core/ports.ts';
import type { DestinationState } from '../core/state/log.ts';
import type { KnownDestination } from '../core/state/quarantine.ts';
import type { Store } from '../core/state/state.ts';
import { withStep } from '../core/text.ts';

/** The identity of a destination, and how to reach it. */
export interface DestinationOptions {
  readonly sink: Sink;
  /** Kind, URL, organisation and bucket (`destinationIdentity`). If one of them changes, it is another destination. */
  readonly identity: string;
  readonly batchLines: number;
  /** How long one write may take, in ms. */
  readonly timeoutMs?: number;
  /**
   * The kind of database; by default InfluxDB. If the kind is unknown, `identity` has the kind `auto` and `sink` is not
   * used.
   */
  readonly kind?: DestinationKind | UnknownServer;
}

/** A destination that can be delivered to. */
export interface ServedDestination {
  readonly kind: DestinationKind;
  readonly sink: Sink;
}

/** A database in its place in the state. */
export interface Destination {
  /** The number in the state. Another number may replace it when the kind becomes known. */
  id(): number;
  /**
   * Finds out the kind, with a request to the database if it is not known otherwise.
   *
   * @returns the destination, or why its kind is unknown
   */
  open(signal: AbortSignal): Promise<ServedDestination | Blocked>;
}

/** Why a destination is blocked. */
export interface Blocked {
  readonly message: string;
  /** The next step for a person; empty if waiting is enough. */
  readonly hint: string;
  /**
   * Whether the reason is an answer, of the database or of a proxy in front of it: the message begins with its HTTP
   * status.
   */
  readonly isAnswer: boolean;
  /** Whether only a person can unblock it. Otherwise it is unblocked when the database accepts writes again. */
  readonly needsPerson: boolean;
  /** The wait that the server requested, in milliseconds; `null` if it did not. */
  readonly waitMs: number | null;
  /** Present if the database rejects the write for a reason that Tidemark does not know. */
  readonly unknown?: UnknownRejection;
}

/** The next step if an answer shows only that some server answers. */
export const IF_IT_LASTS = 'if this lasts, check the log and the disk of the database, and any proxy in between';

/** The hint for a destination that is busy or does not answer. */
export const RETRY_HINT = `delivery resumes by itself when the database accepts writes, and nothing is lost meanwhile; ${IF_IT_LASTS}`;

/** The block that results from an answer that concerns the whole destination. */
function blockedBy(answer: AnswerOf['blocked' | 'later']): Blocked {
  const { message } = answer;
  if (answer.kind === 'blocked') return { message, hint: answer.hint, isAnswer: true, needsPerson: true, waitMs: null };
  const { waitMs, unknown, status, hint = '' } = answer;
  const isAnswer = status !== undefined;
  return {
    message: withStep(message, hint),
    hint: RETRY_HINT,
    isAnswer,
    needsPerson: false,
    waitMs,
    ...(unknown && { unknown }),
  };
}

type AnswerKind = WriteAnswer['kind'];

type AnswerOf = { readonly [Kind in AnswerKind]: Extract<WriteAnswer, { readonly kind: Kind }> };

/** Why lines were rejected. The fields are the same for each kind of rejection. */
export interface RejectedWrite {
  /** The message of the server. */
  readonly message: string;
  /** Whether the message names lines that are older than the destination keeps. */
  readonly retention: boolean;
  /** How many lines the database reports as dropped; `null` if it does not. */
  readonly dropped: number | null;
  /** Whether the reason can only be the type of a field. */
  readonly conflict: boolean;
}

/** The meaning of an answer for the lines of its request: see the table in the header. */
export type Verdict =
  | { readonly does: 'accept' }
  | { readonly does: 'bisect' | 'halve'; readonly refusal: RejectedWrite }
  | { readonly does: 'keep'; readonly blocked: Blocked };

const VERDICTS: { readonly [Kind in AnswerKind]: (answer: AnswerOf[Kind]) => Verdict } = {
  accepted: () => ({ does: 'accept' }),
  rejected: ({ message, retention, dropped = null, conflict = false }) => ({
    does: 'bisect',
    refusal: { message, retention, dropped, conflict },
  }),
  'too-large': ({ message }) => ({
    does: 'halve',
    refusal: { message, retention: false, dropped: null, conflict: false },
  }),
  later: (answer) => ({ does: 'keep', blocked: blockedBy(answer) }),
  blocked: (answer) => ({ does: 'keep', blocked: blockedBy(answer) }),
};

/** Judges an answer by the table in the header. */
export function judge(answer: WriteAnswer): Verdict {
  // Each function takes the answer of its own kind.
  return VERDICTS[answer.kind](answer as never);
}

/** Opens a destination in the state, and reports it if it is new. */
export function openDestination(
  { store, observe }: { store: Store; observe: Observe },
  { sink, identity, kind = 'influxdb' }: DestinationOptions,
): Destination {
  const { name } = sink;
  const announce = (state: DestinationState, previous: string | null): void => {
    if (!state.created && previous === null) return;
    const before = previous === null || isKindUnknown(previous) ? null : describeIdentity(previous);
    const points = store.backlog(state.id).pendingLines;
    observe({ type: 'destination-new', destination: name, known: !state.created, before, points });
  };
  const openKnown = (found: string): DestinationState => {
    const state = store.useDestination(name, found);
    announce(state, state.previous);
    return state;
  };

  if (typeof kind === 'string') {
    const { id } = openKnown(identity);
    const served = { kind, sink };
    return { id: () => id, open: () => Promise.resolve(served) };
  }
  const known = store.knownIdentity(
    name,
    DESTINATION_KINDS.map((each) => withKind(identity, each)),
  );
  if (known !== null) {
    const { id } = openKnown(known);
    const found = DESTINATION_KINDS.find((each) => withKind(identity, each) === known) ?? 'influxdb';
    const served = { kind: found, sink: kind.sinkFor(found) };
    return { id: () => id, open: () => Promise.resolve(served) };
  }
  const unknown = store.useDestination(name, identity);
  let { id } = unknown;
  let served: ServedDestination | null = null;
  return {
    id: () => id,
    open: async (signal) => {
      if (served !== null) return served;
      const answer = await kind.request(signal);
      if (answer.kind !== 'known') return blockedBy(answer);
      const state = store.identify(id, withKind(identity, answer.server));
      id = state.id;
      served = { kind: answer.server, sink: kind.sinkFor(answer.server) };
      observe({ type: 'destination-kind', destination: name, kind: answer.server });
      announce(state, unknown.previous);
      return served;
    },
  };
}

/** A database that lines can be sent to. */
export interface Reachable {
  /** The id of the destination in the state. */
  readonly id: number;
  readonly name: string;
  readonly kind: DestinationKind;
  readonly sink: Sink;
}

/**
 * The configured databases that have received deliveries, according to the state. Sends no request and writes nothing.
 * The other databases have neither a quarantine nor pending lines.
 */
export function findReachable(
  known: readonly KnownDestination[],
  configured: readonly DestinationOptions[],
): readonly Reachable[] {
  return configured.flatMap(({ sink, identity, kind = 'influxdb' }) => {
    const { name } = sink;
    const kinds = typeof kind === 'string' ? [kind] : DESTINATION_KINDS;
    for (const each of kinds) {
      const own = typeof kind === 'string' ? identity : withKind(identity, each);
      const found = known.find((one) => one.name === name && one.identity === own);
      if (found === undefined) continue;
      return [{ id: found.id, name, kind: each, sink: typeof kind === 'string' ? sink : kind.sinkFor(each) }];
    }
    return [];
  });
}

/**
 * Wraps each request of a sink.
 *
 * @param around called instead of each request; it makes the request by calling its first argument
 */
export function wrapWrites(
  sink: Sink,
  around: (write: () => Promise<WriteAnswer>, signal: AbortSignal) => Promise<WriteAnswer>,
): Sink {
  const { writeText } = sink;
  return {
    ...sink,
    write: async (lines, signal) => await around(async () => await sink.write(lines, signal), signal),
    ...(writeText && {
      writeText: async (text, signal) => await around(async () => await writeText(text, signal), signal),
    }),
  };
}

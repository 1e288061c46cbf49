/**
 * What the HTTP server makes, and when: pages and JSON take time of the one processor that the sync works on.
 *
 * - At most eight answers are in the making; what finds no place within a second is not made.
 * - What is the same for everybody is made once a second at most.
 * - Between the beginnings of two answers everybody else has a turn, and three times the time that the last one took.
 *   So a check of health, which needs no place here, is answered before any further page is begun.
 * - Nothing is made for a client that has gone.
 */
import type { Clock, Served } from '../core/ports.ts';
import { SECOND_MS } from '../core/time.ts';

/** How many answers are in the making at once. */
export const MAX_PARALLEL = 8;

/** How long a request waits for a place, and for how long an answer is as good as a new one. */
const WAITS_MS = SECOND_MS;
const GOOD_FOR_MS = SECOND_MS;

/** How long nothing is begun after an answer, in times of what its beginning took. */
const REST_TIMES = 3;

/** An answer as it is sent: encoded once for all who get it. */
export interface Answer extends Omit<Served, 'body'> {
  readonly body: Buffer;
}

/** Someone who asks. */
export interface Asking {
  /** What is requested, where everybody gets the same; `null`: made for this one alone. */
  readonly key: string | null;
  /** Whether the client has gone. */
  readonly isGone: () => boolean;
}

/**
 * Makes answers.
 *
 * @returns `null` where there was no place for it, or where the client has gone.
 */
export type AnswerMaker = (asking: Asking, make: () => Promise<Served>) => Promise<Answer | null>;

/** A request that waits for its place. */
interface Waiting {
  readonly isGone: () => boolean;
  /** Ends the wait. */
  readonly end: (hasSlot: boolean) => void;
}

/** What is under way. */
interface MakerState {
  readonly clock: Pick<Clock, 'monoMs' | 'sleep'>;
  readonly waiting: Set<Waiting>;
  /** What everybody gets, by its key. */
  readonly polled: Map<string, { readonly atMs: number; readonly made: Promise<Answer> }>;
  underWay: number;
  /** Whether others have their turn before the next answer is begun. */
  isResting: boolean;
}

/** Creates a maker with nothing under way. */
export function createAnswerMaker(clock: MakerState['clock']): AnswerMaker {
  const state: MakerState = { clock, waiting: new Set(), polled: new Map(), underWay: 0, isResting: false };
  return async ({ key, isGone }, make) => {
    const known = cachedAnswer(state, key);
    if (known !== null) return await known;
    if (!(await takeSlot(state, isGone))) return null;
    try {
      // Someone else may have had it made meanwhile.
      const sinceThen = cachedAnswer(state, key);
      if (sinceThen === null) return await makeNow(state, key, make);
      state.isResting = false;
      return await sinceThen;
    } finally {
      state.underWay -= 1;
      beginNext(state);
    }
  };
}

/** Encodes an answer. */
export function encoded(served: Served): Answer {
  return { ...served, body: Buffer.from(served.body) };
}

function cachedAnswer({ polled, clock }: MakerState, key: string | null): Promise<Answer> | null {
  const known = key === null ? undefined : polled.get(key);
  return known === undefined || clock.monoMs() - known.atMs >= GOOD_FOR_MS ? null : known.made;
}

async function makeNow(state: MakerState, key: string | null, make: () => Promise<Served>): Promise<Answer> {
  const { clock, polled } = state;
  const atMs = clock.monoMs();
  state.isResting = true;
  const made = make().then(encoded);
  void rest(state, REST_TIMES * (clock.monoMs() - atMs));
  if (key === null) return await made;
  polled.set(key, { atMs, made });
  try {
    return await made;
  } catch (error) {
    // The next one to ask has it tried again.
    polled.delete(key);
    throw error;
  }
}

async function rest(state: MakerState, ms: number): Promise<void> {
  await state.clock.sleep(ms);
  // One turn takes a connection that has come, the next one reads its request.
  for (let turn = 0; turn < 2; turn += 1) await state.clock.sleep(0);
  state.isResting = false;
  beginNext(state);
}

/**
 * Waits for a place.
 *
 * @returns whether there is one: it is taken then.
 */
async function takeSlot(state: MakerState, isGone: () => boolean): Promise<boolean> {
  const slot = Promise.withResolvers<boolean>();
  const own: Waiting = { isGone, end: slot.resolve };
  state.waiting.add(own);
  beginNext(state);
  if (!state.waiting.has(own)) return await slot.promise;
  const patience = new AbortController();
  const lost = state.clock.sleep(WAITS_MS, patience.signal).then(
    () => state.waiting.delete(own) && slot.resolve(false),
    () => undefined,
  );
  const hasSlot = await slot.promise;
  patience.abort();
  await lost;
  return hasSlot;
}

/** Gives a free place to the one who waits longest, unless others have their turn first. */
function beginNext(state: MakerState): void {
  for (const next of state.waiting) {
    if (state.isResting || state.underWay >= MAX_PARALLEL) return;
    state.waiting.delete(next);
    const isGone = next.isGone();
    if (!isGone) {
      state.underWay += 1;
      // Not before this one has begun, and rested, or found its answer made.
      state.isResting = true;
    }
    next.end(!isGone);
  }
}

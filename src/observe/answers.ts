/**
 * Schedules the responses of the HTTP server, because pages and JSON take time of the processor that the sync uses.
 *
 * At most eight responses are made at once; a request that waits for more than a second is rejected. A response that is
 * the same for all clients is made at most once a second, and making it takes at most a tenth of the time. After the
 * beginning of a response, the next one begins only after a pause of three times as long as that beginning took. So a
 * health check, which needs no slot, is answered before the next page is begun. Nothing is made for a client that has
 * disconnected.
 */
import type { Clock, Served } from '../core/ports.ts';
import { SECOND_MS } from '../core/time.ts';

/** How many responses may be in progress at once. */
export const MAX_PARALLEL = 8;

/** How long a request waits for a place. */
const WAITS_MS = SECOND_MS;

/** How long a shared response counts as new: at least this time, and multiples of the time that it took. */
const GOOD_FOR_MS = SECOND_MS;
const GOOD_FOR_TIMES = 10;

/** The pause after a response, in multiples of the time that its beginning took. */
const REST_TIMES = 3;

/** A response as it is sent: encoded once for all clients that get it. */
export interface Answer extends Omit<Served, 'body'> {
  readonly body: Buffer;
}

/** The requester of a response. */
interface Client {
  /** The key of the request, if the response is the same for all clients; `null`: it is made for this client only. */
  readonly key: string | null;
  readonly isGone: () => boolean;
}

/**
 * Makes responses.
 *
 * @returns `null` if no place was free, or the client has disconnected.
 */
export type AnswerMaker = (client: Client, make: () => Promise<Served>) => Promise<Answer | null>;

/** A request that waits for its place. */
interface Waiting {
  readonly isGone: () => boolean;
  /** Ends the wait, with a place or without one. */
  readonly end: (hasSlot: boolean) => void;
}

/** The shared responses of a maker, and the requests that are in progress or wait. */
interface MakerState {
  readonly clock: Pick<Clock, 'monoMs' | 'sleep'>;
  readonly waiting: Set<Waiting>;
  /** The shared responses, by key. */
  readonly cached: Map<string, { readonly untilMs: number; readonly made: Promise<Answer> }>;
  underWay: number;
  /** Whether the pause before the next response is still running. */
  isResting: boolean;
}

/** Creates a maker without requests. */
export function createAnswerMaker(clock: MakerState['clock']): AnswerMaker {
  const state: MakerState = { clock, waiting: new Set(), cached: new Map(), underWay: 0, isResting: false };
  return async ({ key, isGone }, make) => {
    const known = cachedAnswer(state, key);
    if (known !== null) return await known;
    if (!(await takeSlot(state, isGone))) return null;
    try {
      // Another request may have made the response in the meantime.
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

/** Encodes the body in UTF-8. */
export function encodeAnswer(served: Served): Answer {
  return { ...served, body: Buffer.from(served.body) };
}

function cachedAnswer({ cached, clock }: MakerState, key: string | null): Promise<Answer> | null {
  const known = key === null ? undefined : cached.get(key);
  return known === undefined || clock.monoMs() >= known.untilMs ? null : known.made;
}

async function makeNow(state: MakerState, key: string | null, make: () => Promise<Served>): Promise<Answer> {
  const { clock, cached } = state;
  const atMs = clock.monoMs();
  state.isResting = true;
  const made = make().then(encodeAnswer);
  const tookMs = clock.monoMs() - atMs;
  void restBeforeNext(state, REST_TIMES * tookMs);
  if (key === null) return await made;
  cached.set(key, { untilMs: atMs + Math.max(GOOD_FOR_MS, GOOD_FOR_TIMES * tookMs), made });
  try {
    return await made;
  } catch (error) {
    // The next request tries it again.
    cached.delete(key);
    throw error;
  }
}

async function restBeforeNext(state: MakerState, ms: number): Promise<void> {
  await state.clock.sleep(ms);
  // The first turn accepts a new connection, the second reads its request.
  for (let turn = 0; turn < 2; turn += 1) await state.clock.sleep(0);
  state.isResting = false;
  beginNext(state);
}

/**
 * Waits for a place.
 *
 * @returns whether there is one, which is then reserved.
 */
async function takeSlot(state: MakerState, isGone: () => boolean): Promise<boolean> {
  const slot = Promise.withResolvers<boolean>();
  const own: Waiting = { isGone, end: slot.resolve };
  state.waiting.add(own);
  beginNext(state);
  if (!state.waiting.has(own)) return await slot.promise;
  const wait = new AbortController();
  const lost = state.clock.sleep(WAITS_MS, wait.signal).then(
    () => state.waiting.delete(own) && slot.resolve(false),
    () => undefined,
  );
  const hasSlot = await slot.promise;
  wait.abort();
  await lost;
  return hasSlot;
}

/** Gives a free place to the request that has waited longest, after other work had its turn. */
function beginNext(state: MakerState): void {
  for (const next of state.waiting) {
    if (state.isResting || state.underWay >= MAX_PARALLEL) return;
    state.waiting.delete(next);
    const isGone = next.isGone();
    if (!isGone) {
      state.underWay += 1;
      // The next one follows after this one has begun and paused, or has found its response in the cache.
      state.isResting = true;
    }
    next.end(!isGone);
  }
}

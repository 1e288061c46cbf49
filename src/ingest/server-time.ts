/**
 * The server's time: how it is learnt before anything can be covered, and how coverage is taken back once the server's
 * clock has fallen back. `core/server-clock.ts` has the rules of the clock itself.
 */
import { runUnlessFull } from '../core/archive-room.ts';
import { ApiFault, findMissingScope } from '../core/faults.ts';
import type { KnownDevice } from '../core/state/inventory.ts';
import type { Store } from '../core/state/state.ts';
import { ForgottenError, gracePeriodOf } from '../core/state/telemetry.ts';
import {
  type EpochMs,
  formatExact,
  formatMs,
  MINUTE_MS,
  maxNs,
  minNs,
  msToNs,
  nsToMs,
  SECOND_MS,
} from '../core/time.ts';
import { accountReadAt, syncAccount } from './account.ts';
import type { Peeking, SyncContext } from './context.ts';
import { composeWithdrawal, coverageLimit } from './coverage-rules.ts';
import { freshestFirst, includedDevices } from './filter.ts';

/**
 * Learns the server's time if answers have no `Date` and the device list has no time either. Reads the newest page of
 * one device after another until one has a reading.
 *
 * @throws ApiFault except for a missing scope.
 */
export async function learnTime(context: SyncContext, scanner: Peeking, signal: AbortSignal): Promise<void> {
  const { serverClock } = context;
  await confirmTime(context, scanner, signal);
  saveServerTime(context);
  if (serverClock.highestPassedMs() !== null) return;
  try {
    if (await findReading(context, scanner, signal)) return;
    // One empty answer is not enough. Only a second one shows that no device has a reading.
    if (serverClock.highestPassedMs() === null) await findReading(context, scanner, signal);
  } catch (error) {
    const scope = findMissingScope(error, 'telemetry');
    if (scope === null) throw error;
    context.noteStreamOff('telemetry', scope);
  }
}

/** The fact with the last known server time. */
const SERVER_TIME = 'server_time_ms';

/** Stores the server's time for the next start. */
function saveServerTime({ store, serverClock }: SyncContext): void {
  if (serverClock.isKnown()) store.saveFact(SERVER_TIME, String(serverClock.nowMs()));
}

/** Times of the server in the state: of its last answers, of the account and of the newest reading. */
export function storedTimes(store: Pick<Store, 'fact' | 'devices' | 'newestNs'>): readonly EpochMs[] {
  const facts = [store.fact(SERVER_TIME), accountReadAt(store)].flatMap((text) =>
    text === null ? [] : [Number(text)],
  );
  const readings = store.devices().flatMap(({ record }) => store.newestNs(record.deviceId) ?? []);
  return readings.length === 0 ? facts : [...facts, nsToMs(readings.reduce(maxNs))];
}

/**
 * Waits while the server's `Date` is unconfirmed. The newest reading may agree with it. If not, a second answer is
 * requested as soon as it can confirm the `Date`, and then one per minute until a `Date` counts or none is awaited any
 * more.
 *
 * @throws ApiFault
 */
async function confirmTime(context: SyncContext, scanner: Peeking, signal: AbortSignal): Promise<void> {
  const { serverClock, clock, observe } = context;
  if (serverClock.unconfirmed() === null) return;
  const [freshest] = freshestFirst(includedDevices(context));
  if (freshest !== undefined) await peekIfAllowed(scanner, freshest.record.deviceId, signal);
  let leastMs = 0;
  for (
    let unconfirmedDate = serverClock.unconfirmed();
    unconfirmedDate !== null;
    unconfirmedDate = serverClock.unconfirmed()
  ) {
    observe({ type: 'clock-unconfirmed', date: formatMs(unconfirmedDate.dateMs), local: formatMs(clock.nowMs()) });
    await clock.sleep(Math.max(unconfirmedDate.confirmedInMs, leastMs) + SECOND_MS, signal);
    await syncAccount(context, signal);
    leastMs = MINUTE_MS;
  }
}

/** Reads the newest page of a device, unless it is gone or the key has no scope for it. */
async function peekIfAllowed(scanner: Peeking, deviceId: string, signal: AbortSignal): Promise<void> {
  try {
    await scanner.peek(deviceId, signal);
  } catch (error) {
    if (!(error instanceof ApiFault) || (error.kind !== 'scope-missing' && error.kind !== 'not-found')) throw error;
  }
}

async function findReading(context: SyncContext, scanner: Peeking, signal: AbortSignal): Promise<boolean> {
  for (const { record } of freshestFirst(includedDevices(context))) {
    try {
      if (await scanner.peek(record.deviceId, signal)) return true;
    } catch (error) {
      if (!(error instanceof ApiFault) || error.kind !== 'not-found') throw error;
    }
  }
  return false;
}

/**
 * Withdraws the coverage of a device beyond the server's present. The server's clock was ahead when the range was
 * covered, and has fallen back, so readings with those times are still to come. The range is read again from the newest
 * reading that was seen then, or from the time to which the clock fell, whichever is earlier, minus the grace period.
 *
 * @returns whether there was such coverage.
 */
export function withdrawCoverage({ store, serverClock, settings, observe }: SyncContext, deviceId: string): boolean {
  const presentMs = serverClock.presentAtMostMs();
  const fellToMs = serverClock.fellToMs();
  if (presentMs === null || fellToMs === null) return false;
  const state = store.telemetry(deviceId);
  const newest = state.covered.at(-1);
  if (newest === undefined || newest.to <= msToNs(presentMs)) return false;
  const { to } = newest;
  const gracePeriodMs = gracePeriodOf(settings.gracePeriodMs, state.late);
  const seenTo = newest.last === null ? newest.from : coverageLimit(nsToMs(newest.last.at), gracePeriodMs);
  const from = minNs(seenTo, coverageLimit(fellToMs, gracePeriodMs));
  const withdrawn = { end: from, newestNs: store.newestNs(deviceId) };
  store.commitPage(composeWithdrawal(state, withdrawn, serverClock.nowMs()));
  observe({ type: 'coverage-withdrawn', deviceId, from: formatExact(from), to: formatExact(to) });
  return true;
}

/**
 * Watches whether the server's clock has fallen back, and withdraws the coverage of every device beyond the server's
 * present.
 *
 * @param onWithdrawn called when coverage was withdrawn.
 * @returns a function to call after each answer. It costs little unless the clock has fallen back.
 */
export function createFallWatch(context: SyncContext, onWithdrawn: () => void): () => void {
  const { store, serverClock, clock } = context;
  /** No range was covered beyond this time at the last check. Infinite before the first check. */
  let coveredToMs = Number.POSITIVE_INFINITY;
  /** The server's time at the last check. From then on coverage grows at most as fast as the monotonic clock. */
  let last = { passedMs: 0, monoMs: 0 };
  return () => {
    const presentMs = serverClock.presentAtMostMs();
    const passedMs = serverClock.passedMs();
    if (presentMs === null || passedMs === null) return;
    const monoMs = clock.monoMs();
    coveredToMs = Math.max(coveredToMs, last.passedMs + (monoMs - last.monoMs));
    last = { passedMs, monoMs };
    if (coveredToMs <= presentMs) return;
    // If the state is full, the next answer tries it again.
    runUnlessFull(() => {
      const isWithdrawn = withdrawAll(context, store.devices());
      coveredToMs = passedMs;
      if (isWithdrawn) onWithdrawn();
    }, context.noteStateFull);
  };
}

/**
 * Withdraws the coverage of all given devices. Returns whether any of them had coverage beyond the server's present.
 */
function withdrawAll(context: SyncContext, devices: readonly KnownDevice[]): boolean {
  const withdrawn = devices.filter(({ record }) => {
    try {
      return withdrawCoverage(context, record.deviceId);
    } catch (error) {
      if (error instanceof ForgottenError) return false;
      throw error;
    }
  });
  return withdrawn.length > 0;
}

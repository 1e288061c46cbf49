/**
 * The telemetry of all devices: breadth first, so that a dashboard is of use within minutes: the last day of every
 * device, then the week, then the rest (design 2.4).
 *
 * One device's trouble does not stop the others; trouble with several in a row is trouble with the service.
 */
import { ApiFault } from '../core/faults.ts';
import type { KnownDevice } from '../core/inventory-state.ts';
import { DAY_NS, type EpochNs, maxNs } from '../core/time.ts';
import type { Horizon, PullTask, SyncContext } from './context.ts';
import { forEachAtOnce } from './pool.ts';
import type { Puller } from './pull.ts';

/** How far back each round reaches; the last one reaches as far as is wanted. */
const ROUNDS_NS: readonly (bigint | null)[] = [DAY_NS, 7n * DAY_NS, null];

/** Failures in a row, with no device answered between them, that speak of the service rather than of a device. */
const FAILURES_IN_A_ROW = 3;

export interface TelemetryResult {
  /** Devices that could not be asked this time; they will be again. */
  readonly failed: ReadonlySet<string>;
  /** Whether the key lacks the scope for telemetry. */
  readonly off: boolean;
}

/**
 * Closes the holes of all devices that are there.
 *
 * @param how `historyMs`: how long history may take before the newest readings get their turn again.
 * @throws ApiFault where the service as a whole is in the way.
 */
export async function syncTelemetry(
  context: SyncContext,
  { puller, horizon, historyMs }: { puller: Puller; horizon: Horizon; historyMs: number },
  signal: AbortSignal,
): Promise<TelemetryResult> {
  const failed = new Set<string>();
  const round = { failed, inARow: 0 };
  const beganMs = context.clock.monoMs();
  const historyIsOver = (): boolean => context.clock.monoMs() - beganMs >= historyMs;
  try {
    for (const reachNs of ROUNDS_NS) {
      const from = reachNs === null ? horizon.wantedFrom : maxNs(horizon.limit - reachNs, horizon.wantedFrom);
      const devices = freshestFirst(context.store.devices());
      await forEachAtOnce(devices, context.settings.concurrency, async ({ record: { deviceId } }) => {
        if (failed.has(deviceId)) return;
        const span = { from, to: horizon.limit };
        const task: PullTask =
          reachNs === DAY_NS
            ? { deviceId, span, limit: horizon.limit, lane: 'live', isPaused: () => false }
            : { deviceId, span, limit: horizon.limit, lane: 'first-history', isPaused: historyIsOver };
        await apart(round, deviceId, () => puller.pull(task, signal));
      });
    }
  } catch (error) {
    if (!(error instanceof ApiFault) || error.kind !== 'scope-missing') throw error;
    context.observe({ type: 'stream-off', stream: 'telemetry', scope: error.facts.scope ?? 'telemetry:read' });
    return { failed, off: true };
  }
  return { failed, off: false };
}

/** Keeps one device's failure from the others, unless it is one of several in a row. */
async function apart(
  round: { failed: Set<string>; inARow: number },
  deviceId: string,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
    round.inARow = 0;
  } catch (error) {
    const ofDevice = error instanceof ApiFault && (error.kind === 'server-fault' || error.kind === 'unreachable');
    round.inARow += 1;
    if (!ofDevice || round.inARow >= FAILURES_IN_A_ROW) throw error;
    round.failed.add(deviceId);
  }
}

/** The devices that are there, those with the newest signs of life first. */
function freshestFirst(devices: readonly KnownDevice[]): readonly KnownDevice[] {
  const seen = ({ record }: KnownDevice): EpochNs => record.lastSeenAt ?? 0n;
  return devices
    .filter(({ goneSinceMs }) => goneSinceMs === null)
    .toSorted((a, b) => (seen(a) > seen(b) ? -1 : seen(a) < seen(b) ? 1 : 0));
}

/**
 * Where the service sends no `Date`, the newest reading is what is known of its time (design 2.1): takes in the newest
 * page of one device after the other until one has a reading. As an empty answer alone proves nothing, a second look
 * comes before it is believed that there is none anywhere.
 */
export async function learnTimeFromReadings(context: SyncContext, puller: Puller, signal: AbortSignal): Promise<void> {
  if (await lookForReading(context, puller, signal)) return;
  if (context.serverClock.claimableMs() === null) await lookForReading(context, puller, signal);
}

async function lookForReading(context: SyncContext, puller: Puller, signal: AbortSignal): Promise<boolean> {
  for (const { record } of freshestFirst(context.store.devices())) {
    try {
      if (await puller.peek(record.deviceId, signal)) return true;
    } catch (error) {
      if (!(error instanceof ApiFault) || error.kind !== 'not-found') throw error;
    }
  }
  return false;
}

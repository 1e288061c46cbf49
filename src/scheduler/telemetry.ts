/**
 * The telemetry of all devices: breadth first, so that a dashboard is of use within minutes: the last day of every
 * device, then the week, then the rest.
 *
 * The trouble of some devices does not stop the others; trouble with several in a row, while nobody else is answered
 * either, is trouble with the service.
 */
import { StateFullError } from '../core/archive-room.ts';
import { forEachAtOnce } from '../core/async.ts';
import { holesIn } from '../core/coverage.ts';
import { ApiFault } from '../core/faults.ts';
import type { RequestLane } from '../core/ports.ts';
import { DAY_NS, maxNs } from '../core/time.ts';
import type { Horizon, SyncContext } from '../ingest/context.ts';
import { freshestFirst, keptDevices } from '../ingest/filter.ts';
import { limitFor } from '../ingest/horizon.ts';
import { nameGap } from '../ingest/named-gaps.ts';
import { ANSWERED_LATELY_MS } from '../ingest/outage.ts';
import type { PageScanner, ScanTask } from '../ingest/page-scan.ts';

/** One look at all devices: which stretch of each is closed, counted back from what can be claimed. */
export interface Round {
  /** `null`: as far back as is wanted. */
  readonly reachNs: bigint | null;
  readonly lane: RequestLane;
}

/** Everything, one round after the other. */
export const ALL_ROUNDS: readonly Round[] = [
  { reachNs: DAY_NS, lane: 'live' },
  { reachNs: 7n * DAY_NS, lane: 'first-history' },
  { reachNs: null, lane: 'first-history' },
];

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
 * @param how `isOver`: whether history is to stop where it is, so that something more urgent gets its turn.
 * @throws ApiFault where the service as a whole is in the way.
 */
export async function syncTelemetry(
  context: SyncContext,
  {
    scanner,
    horizon,
    rounds,
    isOver,
  }: { scanner: PageScanner; horizon: Horizon; rounds: readonly Round[]; isOver: () => boolean },
  signal: AbortSignal,
): Promise<TelemetryResult> {
  const failed = new Set<string>();
  const tries = { failed, inARow: 0 };
  try {
    for (const { reachNs, lane } of rounds) {
      const from = reachNs === null ? horizon.wantedFrom : maxNs(horizon.limit - reachNs, horizon.wantedFrom);
      const devices = freshestFirst(keptDevices(context));
      await forEachAtOnce(devices, context.settings.concurrency, async ({ record: { deviceId } }) => {
        if (tries.failed.has(deviceId) || !context.room().ok) return;
        if (isResting(context, deviceId)) return void tries.failed.add(deviceId);
        const isPaused = lane === 'live' ? () => false : isOver;
        const limit = limitFor(horizon, context.store.telemetry(deviceId));
        const task: ScanTask = {
          deviceId,
          range: { from, to: limit },
          limit,
          lane,
          until: 'closed',
          isPaused,
        };
        await apart(context, { tries, task }, async () => void (await scanner.scan(task, signal)));
      });
    }
  } catch (error) {
    if (error instanceof StateFullError) {
      // Nothing of that page is there; what is held is delivered meanwhile.
      context.stateFull(error);
      return { failed, off: false };
    }
    if (!(error instanceof ApiFault) || error.kind !== 'scope-missing') throw error;
    context.observe({ type: 'stream-off', stream: 'telemetry', scope: error.facts.scope ?? 'telemetry:read' });
    return { failed, off: true };
  }
  context.filterNotes.telemetryRead();
  return { failed, off: false };
}

/** Keeps one device's failure from the others, unless it is one of several in a row and nobody else was answered. */
async function apart(
  context: SyncContext,
  { tries, task }: { readonly tries: { failed: Set<string>; inARow: number }; readonly task: ScanTask },
  work: () => Promise<void>,
): Promise<void> {
  const { clock, answeredAtMs } = context;
  const beganMs = clock.monoMs();
  try {
    await work();
    tries.inARow = 0;
  } catch (error) {
    const ofDevice = error instanceof ApiFault && (error.kind === 'server-fault' || error.kind === 'unreachable');
    tries.inARow += 1;
    const isAnswering = answeredAtMs() >= Math.min(beganMs, clock.monoMs() - ANSWERED_LATELY_MS);
    if (!ofDevice || (tries.inARow >= FAILURES_IN_A_ROW && !isAnswering)) throw error;
    tries.failed.add(task.deviceId);
    // Others were answered while this one was not: it is asked again later, and meanwhile the hole has this name.
    if (answeredAtMs() >= beganMs) nameUnreachable(context, task);
  }
}

/** Names what is open of a device that did not answer while others did. */
export function nameUnreachable(context: SyncContext, task: ScanTask): void {
  const holes = holesIn(task.range, context.store.telemetry(task.deviceId).spans);
  for (const hole of holes) nameGap(context, { deviceId: task.deviceId, ...hole, reason: 'device unreachable' });
}

/** Whether a device did not answer lately while others did. */
function isResting({ store, serverClock }: SyncContext, deviceId: string): boolean {
  const nowMs = serverClock.nowMs();
  return store.gaps(deviceId).some(({ reason, retryAtMs }) => reason === 'device unreachable' && retryAtMs > nowMs);
}

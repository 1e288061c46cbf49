/**
 * `--forget --device ID`, alone or as a job of the daemon: removes everything that is stored about a device.
 *
 * Promises: a device that would be synced again, or has points that a configured database has not accepted, is refused.
 * Once the removal has begun, no more data of the device is committed, and the removal is completed even after a crash.
 */

import { findDeviceIds } from '../../core/device-names.ts';
import { type ExitCode, UserError } from '../../core/faults.ts';
import type { DeviceFilter } from '../../core/filter.ts';
import type { KnownDevice } from '../../core/state/inventory.ts';
import { deviceToForget } from '../../core/state/job-args.ts';
import { endWith, type JobEnd } from '../../core/state/jobs.ts';
import { LOG_LANES } from '../../core/state/log.ts';
import type { ForgottenCounts } from '../../core/state/state.ts';
import { counted, plainText } from '../../core/text.ts';
import { type DestinationOptions, findReachable } from '../../delivery/destination.ts';
import type { SyncContext } from '../../ingest/context.ts';
import type { JobWork } from '../../scheduler/jobs.ts';

/** The result. It does not name the device, because the summary of a job stays in the state for a while. */
export interface ForgetSummary extends ForgottenCounts {
  readonly outcome: 'complete' | 'waiting' | 'interrupted';
  readonly exit_code: ExitCode;
  /** Whether the API still lists it, as an excluded device: its entry comes back, its readings do not. */
  readonly is_listed: boolean;
  /**
   * Whether no other process was reading the state. If one was, the write-ahead log contains removed data until the
   * next write.
   */
  readonly is_log_empty: boolean;
}

/** The input of {@link forgetDevice}. */
export interface ForgetParts extends Pick<SyncContext, 'store' | 'clock' | 'observe' | 'noteDeviceLeft'> {
  readonly filter: Pick<DeviceFilter, 'excludes'>;
  /** Called to remove the data about a device outside the state. */
  readonly forgotten: (deviceId: string) => void;
  /** The configured databases that are destinations in the state. */
  readonly configured: () => readonly { readonly id: number; readonly name: string }[];
}

/** The sync whose state is changed. Its databases are the configured ones. */
interface WorkOf {
  readonly context: SyncContext;
  readonly destinations: readonly DestinationOptions[];
  readonly forgotten: (deviceId: string) => void;
}

/** Collects the parts that the removal needs, in a daemon or alone. */
export function forgetParts({ context, destinations, forgotten }: WorkOf): ForgetParts {
  const { store, clock, observe, noteDeviceLeft, settings } = context;
  return {
    store,
    clock,
    observe,
    noteDeviceLeft,
    forgotten,
    filter: settings.filter,
    configured: () => findReachable(store.quarantine.destinations(), destinations),
  };
}

interface Progress {
  /** The part of the archive that was scanned. */
  share: number;
  /** The points that were removed. */
  points: number;
}

/** How often emptying the write-ahead log is tried, and how long to wait between two tries. */
const LOG_TRIES = 20;
const LOG_WAIT_MS = 100;

/** Creates the worker for `runJobs` that removes a device from the state. */
export function createForgetWorker(parts: ForgetParts): (args: unknown, signal: AbortSignal) => JobWork {
  return (args, signal) => {
    const progress: Progress = { share: 0, points: 0 };
    const end = forgetDevice(parts, { deviceId: deviceToForget(args), progress }, signal).then(
      (summary) => endWith(summary, summary.exit_code, summary.outcome === 'interrupted'),
      (error: unknown): JobEnd => {
        if (!(error instanceof UserError) || error.ends === 'process') throw error;
        // Its message also shows what was removed before the daemon stopped.
        return { state: 'failed', exitCode: error.exitCode, summary: null, message: error.message };
      },
    );
    return { end, progress: () => progress };
  };
}

/**
 * Removes a device.
 *
 * @throws UserError if it must not be removed: unknown (2), synced again at once (1), not delivered yet (3).
 */
export async function forgetDevice(
  parts: ForgetParts,
  { deviceId, progress = { share: 0, points: 0 } }: { readonly deviceId: string; readonly progress?: Progress },
  signal: AbortSignal,
): Promise<ForgetSummary> {
  const { store, observe, noteDeviceLeft, forgotten } = parts;
  const { forgetting } = store;
  const device = knownDevice(parts, deviceId);
  const isExcluded = requireLeft(parts, device);
  let sum: Growing | null = null;
  try {
    if (!forgetting.unfinished().includes(deviceId)) await requireDelivered(parts, deviceId, signal);
    sum = { ...forgetting.begin(deviceId, !isExcluded) };
    const is_listed = device !== null && device.goneSinceMs === null;
    const state = await removeLines(parts, { deviceId, sum, progress }, signal);
    if (state === 'done') {
      noteDeviceLeft(deviceId);
      forgotten(deviceId);
      observe({ type: 'device-forgotten', deviceId, points: sum.points });
    }
    const is_log_empty = await emptyLog(parts, signal);
    const outcome = state === 'done' ? 'complete' : 'waiting';
    return { outcome, exit_code: state === 'done' ? 0 : 3, ...sum, is_listed, is_log_empty };
  } catch (error) {
    if (!signal.aborted || error instanceof UserError) throw error;
    // A removal that did not begin is not completed by anyone.
    if (sum === null) throw new UserError('Stopped before anything was removed', 'Run the command again.', 3);
    return { outcome: 'interrupted', exit_code: 3, ...sum, is_listed: false, is_log_empty: false };
  }
}

/** Empties the write-ahead log. Returns whether no reader prevented it. */
async function emptyLog({ store, clock }: ForgetParts, signal: AbortSignal): Promise<boolean> {
  for (let tries = 0; tries < LOG_TRIES; tries += 1) {
    if (store.forgetting.emptyLog()) return true;
    await clock.sleep(LOG_WAIT_MS, signal);
  }
  return false;
}

type Growing = { -readonly [K in keyof ForgottenCounts]: number };

async function removeLines(
  { store, clock, configured }: ForgetParts,
  { deviceId, sum, progress }: { deviceId: string; sum: Growing; progress: Progress },
  signal: AbortSignal,
): Promise<'done' | 'waiting'> {
  for (;;) {
    signal.throwIfAborted();
    const ids = configured().map(({ id }) => id);
    const { removed, state, share } = store.forgetting.step(deviceId, ids);
    sum.points += removed.points;
    sum.quarantined += removed.quarantined;
    progress.share = share;
    progress.points = sum.points;
    if (state !== 'going-on') return state;
    // Other work gets its turn between two steps.
    await clock.sleep(0, signal);
  }
}

/**
 * The device in the inventory; `null` if it is stored but not listed.
 *
 * @throws UserError if nothing is stored about it.
 */
function knownDevice({ store }: ForgetParts, deviceId: string): KnownDevice | null {
  const devices = store.devices();
  const device = devices.find(({ record }) => record.deviceId === deviceId);
  if (device !== undefined) return device;
  if (store.forgetting.hasTraces(deviceId)) return null;
  const named = devices.map(({ record, name }) => ({ deviceId: record.deviceId, name }));
  const [id = ''] = findDeviceIds(named, [deviceId]);
  throw new UserError('--device: this is the name of a device', `Give its id: ${plainText(id, 60)}.`, 2);
}

/**
 * Checks that the device will not be synced again, and returns whether it is excluded. @throws UserError if it would be
 * synced again at once.
 */
function requireLeft({ filter }: ForgetParts, device: KnownDevice | null): boolean {
  if (device === null) return false;
  if (filter.excludes(device.record)) return true;
  if (device.goneSinceMs !== null) return false;
  const id = plainText(device.record.deviceId, 60);
  throw new UserError(
    'The device is still in the workspace and not excluded, so it would be synced again at once. Nothing was removed',
    `Add its id (${id}) to sync.exclude, restart the daemon if one runs, and run --forget again.`,
    1,
  );
}

/** Throws UserError if points of the device wait for a configured database. */
async function requireDelivered(
  { store, clock, configured }: ForgetParts,
  deviceId: string,
  signal: AbortSignal,
): Promise<void> {
  const waiting: string[] = [];
  for (const { id, name } of configured()) {
    let lines = 0;
    for (const lane of LOG_LANES) {
      for (let from: number | null = 0; from !== null; ) {
        const found = store.forgetting.pending(deviceId, { destinationId: id, lane, from });
        lines += found.lines;
        from = found.next;
        await clock.sleep(0, signal);
      }
    }
    if (lines > 0) waiting.push(`${counted(lines, 'point')} for ${name}`);
  }
  if (waiting.length === 0) return;
  throw new UserError(
    `Points of this device are not delivered yet: ${waiting.join(', ')}. Nothing was removed`,
    'Run the command again when they are delivered. If that database no longer exists, remove it from the configuration first: its undelivered points are then removed as well.',
    3,
  );
}

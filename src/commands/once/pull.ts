/**
 * The pulling of `--once`, whoever does it: passes, one after the other, until nothing is open, nothing can be mended, or
 * nothing moves.
 */
import { ApiFault } from '../../core/faults.ts';
import { holdingsOf, wantedOf } from '../../core/holdings.ts';
import type { StatusGap } from '../../core/status.ts';
import { MINUTE_MS, parseTimestamp, SECOND_MS } from '../../core/time.ts';
import type { Horizon, SyncContext } from '../../ingest/context.ts';
import { limitFor, stillWantedFrom } from '../../ingest/horizon.ts';
import type { PageScanner } from '../../ingest/page-scan.ts';
import { endsSession } from '../../scheduler/dispatch.ts';
import { type PassResult, runPass } from '../../scheduler/pass.ts';
import { refusalOf, STALLED_AFTER_MS } from '../shared/refusal.ts';

/** Rests between passes that left something open: the first, and the longest. */
const PASS_REST_MS = { first: 5 * SECOND_MS, most: MINUTE_MS };

export interface PullParts {
  readonly context: SyncContext;
  readonly scanner: PageScanner;
  /** For how long nothing more was proven to be held, in milliseconds; asked after a pass that left something open. */
  readonly pullIdleMs: () => number;
  /** Where others ask the same service: when it is our turn to try, and what came of it. */
  readonly others?: {
    /** @returns whether a pass may be made. */
    mayTry(signal: AbortSignal): Promise<boolean>;
    failed(fault: ApiFault): void;
    answered(): void;
  };
}

/** What the passes so far have fixed and found. */
export interface Progress {
  horizon: Horizon | null;
  off: PassResult['off'];
  /** Whether the last pass has failed, and that was told. */
  hasFailed?: boolean;
}

/** How it ended. */
export interface Ending extends Readonly<Progress> {
  readonly outcome: 'complete' | 'stalled' | 'interrupted' | 'incomplete for good';
}

/** Passes until nothing is open, nothing can be mended, or nothing moves. */
export async function pullAll(parts: PullParts, progress: Progress, signal: AbortSignal): Promise<Ending> {
  const { context, pullIdleMs } = parts;
  let restMs = PASS_REST_MS.first;
  for (;;) {
    const outcome = await passOnce(parts, { progress, restMs }, signal);
    if (outcome !== null) return { ...progress, outcome };
    if (pullIdleMs() >= STALLED_AFTER_MS) return { ...progress, outcome: 'stalled' };
    await context.clock.sleep(restMs, signal);
    restMs = Math.min(restMs * 2, PASS_REST_MS.most);
  }
}

/** One pass. @returns how the pulling ends with it; `null` where another one may help. */
async function passOnce(
  parts: PullParts,
  { progress, restMs }: { progress: Progress; restMs: number },
  signal: AbortSignal,
): Promise<'complete' | 'incomplete for good' | null> {
  const { context, scanner, others } = parts;
  if (others !== undefined && !(await others.mayTry(signal))) return null;
  try {
    const onHorizon = (horizon: Horizon): void => {
      progress.horizon ??= horizon;
    };
    const plan = {
      scanner,
      fixed: progress.horizon,
      historyMs: Number.POSITIVE_INFINITY,
      onHorizon,
      isCoverageNoted: others !== undefined,
    };
    const { off, unread } = await runPass(context, plan, signal);
    progress.off = off;
    others?.answered();
    if (progress.hasFailed === true) context.observe({ type: 'pass-back' });
    progress.hasFailed = false;
    if (unread.length > 0) return null;
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    if (endsSession(error)) throw refusalOf(error);
    others?.failed(error);
    progress.hasFailed = true;
    context.observe({ type: 'pass-failed', message: error.message, waitMs: restMs });
    return null;
  }
  const open = openGaps(context, progress.horizon);
  if (open.length === 0 || progress.off.includes('telemetry')) return 'complete';
  return open.every(({ reason }) => reason === 'beyond plan') ? 'incomplete for good' : null;
}

/** A hole of a device. */
export type DeviceGap = StatusGap & { readonly device_id: string };

/** Holes that no work closes, by their reason: named in the summary, not waited for. */
const CLOSED_BY_NONE: readonly string[] = ['device gone', 'excluded'];

/** The holes that more work could close. */
export function openGaps(context: SyncContext, horizon: Horizon | null): readonly DeviceGap[] {
  return allGaps(context, horizon).filter(({ reason }) => !CLOSED_BY_NONE.includes(reason));
}

/** All holes in what was wanted, by the reason that each has. */
export function allGaps(context: SyncContext, horizon: Horizon | null): readonly DeviceGap[] {
  if (horizon === null) return [];
  const { store, settings } = context;
  const from = horizon.wantedFrom;
  // What the plan hides and has left the wanted span meanwhile is not missed.
  const stillWanted = stillWantedFrom(context);
  const isPast = ({ to, reason }: StatusGap): boolean =>
    reason === 'beyond plan' && (parseTimestamp(to) ?? stillWanted) <= stillWanted;
  return store.devices().flatMap((device) => {
    const { deviceId } = device.record;
    const state = store.telemetry(deviceId);
    const wanted = wantedOf(device, { from, to: limitFor(horizon, state) });
    const held = { spans: state.spans, gaps: store.gaps(deviceId) };
    const isExcluded = settings.filter.excludes(device.record);
    const holes = holdingsOf({ ...device, isExcluded }, held, wanted).holes.filter((hole) => !isPast(hole));
    return holes.map((hole) => ({ device_id: deviceId, ...hole }));
  });
}

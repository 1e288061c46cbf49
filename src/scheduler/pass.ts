/**
 * One pass: the account, the devices, the alerts, then the holes in the telemetry, in that order: what comes later
 * stands on what came before. Where the devices cannot be listed, those known from before are gone on with. A pass can be
 * broken off anywhere and begun again; what was landed stays.
 */
import { ApiFault, type ApiFaultKind } from '../core/faults.ts';
import type { Stream } from '../core/ports.ts';
import { syncAccount } from '../ingest/account.ts';
import { syncAlerts } from '../ingest/alerts.ts';
import type { Horizon, SyncContext } from '../ingest/context.ts';
import { lookAtTheGone, syncDevices } from '../ingest/devices.ts';
import { horizonNow, learnTime } from '../ingest/horizon.ts';
import type { PageScanner } from '../ingest/page-scan.ts';
import { noteCoverage } from './coverage-points.ts';
import { ALL_ROUNDS, syncTelemetry } from './telemetry.ts';

export interface PassResult {
  /** What was wanted and claimed; `null` where nothing is known of the server's time (no reading anywhere). */
  readonly horizon: Horizon | null;
  /** Devices that could not be asked. */
  readonly failed: ReadonlySet<string>;
  /** Streams whose scope the key lacks. */
  readonly off: readonly Stream[];
  /** Streams that could not be read this time. */
  readonly unread: readonly Stream[];
}

/** How a pass is to be made. */
export interface PassPlan {
  readonly scanner: PageScanner;
  /** The horizon of an earlier pass, where the end of the work was fixed then. */
  readonly fixed: Horizon | null;
  /** How long history may take before the pass ends; infinite where nothing newer is waited for. */
  readonly historyMs: number;
  /** Told the horizon as soon as it is fixed: a pass that is broken off later has fixed it all the same. */
  readonly onHorizon?: (horizon: Horizon) => void;
  /** Somebody else notes what is held, by a newer horizon. */
  readonly isCoverageNoted?: boolean;
}

/**
 * Makes a pass.
 *
 * @throws ApiFault where the service is in the way; UserError where a person has to act.
 */
export async function runPass(
  context: SyncContext,
  { scanner, fixed, historyMs, onHorizon, isCoverageNoted }: PassPlan,
  signal: AbortSignal,
): Promise<PassResult> {
  const off: Stream[] = [];
  if (!(await syncAccount(context, signal))) off.push('account');
  const areListed = await readDevices(context, scanner, signal);
  context.observe({ type: 'pass-started', devices: context.store.devices().length });
  // Fixed before the alerts, which may take long: what is wanted counts from the start.
  if (fixed === null) await learnTime(context, scanner, signal);
  const horizon = fixed ?? horizonNow(context);
  if (horizon !== null) onHorizon?.(horizon);
  const alerts = await readAlerts(context, signal);
  if (alerts === 'off') off.push('alerts');
  const unread: Stream[] = [
    ...(areListed ? [] : ['devices' as const]),
    ...(alerts === 'unread' ? ['alerts' as const] : []),
  ];
  if (horizon === null) return { horizon, failed: new Set(), off, unread };
  const beganMs = context.clock.monoMs();
  const isOver = (): boolean => context.clock.monoMs() - beganMs >= historyMs;
  const result = await syncTelemetry(context, { scanner, horizon, rounds: ALL_ROUNDS, isOver }, signal);
  if (result.off) off.push('telemetry');
  if (isCoverageNoted !== true) noteCoverage(context, horizon);
  return { horizon, failed: result.failed, off, unread };
}

/** What is wrong with the list of devices alone, as far as can be told: the account was answered just before. */
const OF_THE_LIST: ReadonlySet<ApiFaultKind> = new Set([
  'unreachable',
  'not-found',
  'server-fault',
  'malformed',
  'bad-cursor',
  'invalid-request',
]);

/** Lists the devices. @returns whether that was done: where it cannot be, those that are known must do. */
async function readDevices(context: SyncContext, scanner: PageScanner, signal: AbortSignal): Promise<boolean> {
  try {
    await syncDevices(context, signal);
    await lookAtTheGone(context, scanner, signal);
    return true;
  } catch (error) {
    const isOwn = error instanceof ApiFault && OF_THE_LIST.has(error.kind);
    if (!isOwn || context.store.devices().length === 0) throw error;
    context.observe({ type: 'stream-failed', stream: 'devices', message: error.message });
    return false;
  }
}

/** Reads the alerts; what goes wrong with them does not stop the telemetry. */
async function readAlerts(context: SyncContext, signal: AbortSignal): Promise<'read' | 'off' | 'unread'> {
  try {
    return (await syncAlerts(context, signal)) ? 'read' : 'off';
  } catch (error) {
    if (!(error instanceof ApiFault) || error.kind === 'unauthorized' || error.kind === 'no-api-access') throw error;
    context.observe({ type: 'stream-failed', stream: 'alerts', message: error.message });
    return 'unread';
  }
}

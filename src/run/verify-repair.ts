/**
 * The second half of `--verify --repair`: what the archive keeps no more is fetched again where that can be done, the
 * devices are compared once more, and the destination's lack-set is brought up to date.
 */
import type { Verified, VerifySpan } from '../commands/verify.ts';
import { fetchCost, foundOf, missedOf, windowsOf } from '../core/verify-gone.ts';
import type { KnownDestination, VerifyState } from '../core/verify-ports.ts';
import { type DayDifference, type DestinationVerdict, dayStart, type GoneStretch } from '../core/verify-report.ts';
import { realClock } from '../real-clock.ts';
import type { ProcessPorts } from '../voice.ts';
import { type ApiRun, keepLacks, NoApiError, runMend } from './verify-api.ts';

export interface RepairParts {
  readonly run: ApiRun;
  readonly state: VerifyState;
  readonly destination: KnownDestination;
  readonly span: VerifySpan;
  /** Compares some devices once more. */
  readonly compare: (deviceIds: readonly string[]) => Promise<Verified>;
}

/** Mends what sending again could not. @returns the verdict as it stands then. @throws UserError */
export async function repairRest(
  parts: RepairParts,
  first: Verified,
  ports: ProcessPorts,
): Promise<DestinationVerdict> {
  const { run, state, destination, span } = parts;
  let { verdict } = first;
  let { gone } = first.sums;
  if (verdict.outcome === 'unfinished' || verdict.outcome === 'unreadable') return verdict;
  const { name } = verdict;
  const cost = fetchCost(gone, state.plan, realClock.nowMs());
  if (cost !== null && (await fetchGone(parts, { name, gone, cost }, ports))) {
    const again = await parts.compare([...new Set(gone.map(({ deviceId }) => deviceId))]);
    verdict = merged(verdict, again.verdict, gone);
    gone = again.sums.gone;
    if (again.verdict.outcome === 'unfinished' || again.verdict.outcome === 'unreadable') return verdict;
  }
  const bounds = { from: dayStart(span.fromDay), to: dayStart(span.toDay) };
  const found = span.deviceIds.flatMap((deviceId) => {
    const lacks = state.lacks(destination.id, deviceId, bounds);
    const days = lacks.length === 0 ? [] : state.days(deviceId, span.fromDay, span.toDay);
    return foundOf(lacks, { days, differences: verdict.differences, compared: span });
  });
  const missed = missedOf(gone);
  if (found.length + missed.length > 0) {
    const args = { windows: [], destination: name, found, missed };
    await keepLacks(run, args, { destinationId: destination.id }, ports);
  }
  return { ...verdict, to_fetch: fetchCost(gone, state.plan, realClock.nowMs()) };
}

interface Gone {
  readonly name: string;
  readonly gone: readonly GoneStretch[];
  readonly cost: NonNullable<DestinationVerdict['to_fetch']>;
}

const TOLD = { event: 'repair-told' } as const;

/** @returns whether anything was fetched. */
async function fetchGone({ run }: RepairParts, { name, gone, cost }: Gone, ports: ProcessPorts): Promise<boolean> {
  const { logger } = run.voice;
  logger.info('the archive keeps no more what is missing: it is fetched again from the API', {
    event: 'repair-told',
    destination: name,
    points: cost.points,
    readings: cost.readings,
    requests: cost.requests,
  });
  try {
    const summary = await runMend(run, { windows: windowsOf(gone), destination: name, found: [], missed: [] }, ports);
    if (summary.reason !== null) logger.warn(`not all was fetched: ${summary.reason}`, TOLD);
    if (!summary.delivered) logger.warn('not all that was fetched is delivered yet; it waits in the archive', TOLD);
    return true;
  } catch (error) {
    if (!(error instanceof NoApiError)) throw error;
    logger.warn('it cannot be fetched: api.url and api.key are not set, and no daemon is running', TOLD);
    return false;
  } finally {
    run.voice.endProgress();
  }
}

const COUNTS = ['missing', 'different', 'extra', 'untold'] as const;

/** The first verdict, with what was found of some devices after that in place of what was found of them first. */
function merged(
  first: DestinationVerdict,
  again: DestinationVerdict,
  gone: readonly GoneStretch[],
): DestinationVerdict {
  const anew = new Set(gone.map(({ deviceId }) => deviceId));
  const differences = [...first.differences.filter(({ device_id }) => !anew.has(device_id)), ...again.differences];
  const sum = (of: (typeof COUNTS)[number], list: readonly DayDifference[]): number =>
    list.reduce((total, each) => total + each[of], 0);
  const [missing = 0, different = 0, extra = 0, untold = 0] = COUNTS.map((each) => sum(each, differences));
  const before = first.missing + first.different;
  const isEnded = again.outcome === 'equal' || again.outcome === 'different';
  const isEqual = differences.length === 0;
  return {
    ...first,
    ...{ missing, different, extra, untold, differences },
    mended: first.mended + again.mended,
    fetched: Math.max(0, before - missing - different - again.mended),
    outcome: isEnded ? (isEqual ? 'equal' : 'different') : again.outcome,
    reason: again.reason,
  };
}

/**
 * The second half of `--verify --repair`: what the archive keeps no more is fetched again where that can be done, the
 * devices are compared once more, and the destination's lack-set is brought up to date.
 */

import { realClock } from '../../app/real-clock.ts';
import type { ProcessPorts } from '../../app/terminal.ts';
import type { PointsText } from '../../core/state/job-args.ts';
import type { KnownDestination, VerifyState } from '../../core/state/verify.ts';
import { openArchiveView } from '../../store/archive/walker.ts';
import { type ApiRun, keepLacks, NoApiError, runMend } from './api.ts';
import { fetchCost, foundOf, missedOf, windowsOf } from './gone.ts';
import {
  type DestinationVerdict,
  DIFFERENCES,
  type Differing,
  dayStart,
  differingDays,
  type GoneStretch,
  MOST_DIFFERENCES,
  type VerdictSums,
} from './report.ts';
import type { Resender } from './resend.ts';
import { resendSides, type SentSides } from './sides.ts';
import type { Verified, VerifySpan } from './verify.ts';

export interface RepairParts {
  readonly run: ApiRun;
  readonly state: VerifyState;
  readonly destination: KnownDestination;
  readonly span: VerifySpan;
  /** Sends lines again. */
  readonly resender: Resender;
  /** Compares some devices once more. */
  readonly compare: (deviceIds: readonly string[]) => Promise<Verified>;
}

/** Mends what sending again could not. @returns the verdict as it stands then. @throws UserError */
export async function repairRest(
  parts: RepairParts,
  first: Verified,
  ports: ProcessPorts,
): Promise<DestinationVerdict> {
  const { state } = parts;
  let { verdict } = first;
  let { gone, differing }: Pick<VerdictSums, 'gone'> & { differing: Differing } = first.sums;
  if (!isEnded(verdict)) return verdict;
  const { name } = verdict;
  const cost = fetchCost(gone, state.plan, realClock.nowMs());
  if (cost !== null && (await fetchGone(parts, { name, gone, cost }, ports))) {
    const again = await parts.compare([...new Set(gone.map(({ deviceId }) => deviceId))]);
    ({ verdict, differing } = merged(first, again));
    gone = again.sums.gone;
    if (!isEnded(again.verdict)) return verdict;
  }
  const { found, trouble } = await sendSides(parts, foundNow(parts, differing), ports.signal);
  const refused = parts.resender.refused();
  verdict = { ...verdict, refused_again: refused.lines, refusal: refused.words };
  if (trouble !== null) return { ...verdict, outcome: 'unfinished', reason: trouble.words };
  const missed = missedOf(gone);
  if (found.length + missed.length > 0) {
    const args = { windows: [], destination: name, found, missed };
    await keepLacks(parts.run, args, { destinationId: parts.destination.id }, ports);
  }
  return { ...verdict, to_fetch: fetchCost(gone, state.plan, realClock.nowMs()) };
}

function isEnded({ outcome }: DestinationVerdict): boolean {
  return outcome === 'equal' || outcome === 'different';
}

/** What the destination was known to lack, and was found to have. */
function foundNow({ state, destination, span }: RepairParts, differing: Differing): readonly PointsText[] {
  const bounds = { from: dayStart(span.fromDay), to: dayStart(span.toDay) };
  return span.deviceIds.flatMap((deviceId) => {
    const lacks = state.missing(destination.id, deviceId, bounds);
    const days = lacks.length === 0 ? [] : state.days(deviceId, span.fromDay, span.toDay);
    return foundOf(lacks, { days, differing, compared: span, clearedOthers: state.clearedOthers });
  });
}

/** Of what was found, what is no reading is sent again: nothing has compared it. */
async function sendSides(
  { run, resender }: RepairParts,
  found: readonly PointsText[],
  signal: AbortSignal,
): Promise<SentSides> {
  const view = found.length === 0 ? null : openArchiveView(run.dataDir);
  try {
    return view === null ? { found: [], trouble: null } : await resendSides({ walker: view, resender }, found, signal);
  } finally {
    view?.close();
  }
}

interface Gone {
  readonly name: string;
  readonly gone: readonly GoneStretch[];
  readonly cost: NonNullable<DestinationVerdict['to_fetch']>;
}

/** @returns whether anything was fetched. */
async function fetchGone({ run }: RepairParts, { name, gone, cost }: Gone, ports: ProcessPorts): Promise<boolean> {
  const warn = (message: string): void =>
    run.voice.logger.say({ type: 'repair-told', message, isWell: false, cost: null });
  run.voice.logger.say({
    type: 'repair-told',
    message: 'the archive keeps no more what is missing: it is fetched again from the API',
    isWell: true,
    cost: { destination: name, ...cost },
  });
  try {
    const summary = await runMend(run, { windows: windowsOf(gone), destination: name, found: [], missed: [] }, ports);
    if (summary.reason !== null) warn(`not all was fetched: ${summary.reason}`);
    if (!summary.delivered) warn('not all that was fetched is delivered yet; it waits in the archive');
    return true;
  } catch (error) {
    if (!(error instanceof NoApiError)) throw error;
    warn('it cannot be fetched: api.url and api.key are not set, and no daemon is running');
    return false;
  } finally {
    run.voice.endProgress();
  }
}

/** The first verdict, with what was found of some devices after that in place of what was found of them first. */
function merged(first: Verified, again: Verified): { verdict: DestinationVerdict; differing: Differing } {
  const anew = new Set(first.sums.gone.map(({ deviceId }) => deviceId));
  const differing = new Map([...first.sums.differing].filter(([deviceId]) => !anew.has(deviceId)));
  for (const [deviceId, device] of again.sums.differing) differing.set(deviceId, device);
  const sum = (of: (typeof DIFFERENCES)[number]): number =>
    [...differing.values()].reduce((total, each) => total + each[of], 0);
  const [missing = 0, different = 0, extra = 0, untold = 0] = DIFFERENCES.map(sum);
  const own = first.verdict.differences.filter(({ device_id }) => !anew.has(device_id));
  const differences = [...own, ...again.verdict.differences].slice(0, MOST_DIFFERENCES);
  const before = first.verdict.missing + first.verdict.different;
  const ended = differing.size === 0 ? 'equal' : 'different';
  const verdict: DestinationVerdict = {
    ...first.verdict,
    ...{ missing, different, extra, untold, differences },
    differences_left_out: differingDays(differing) - differences.length,
    mended: first.verdict.mended + again.verdict.mended,
    fetched: Math.max(0, before - missing - different - again.verdict.mended),
    outcome: isEnded(again.verdict) ? ended : again.verdict.outcome,
    reason: again.verdict.reason,
  };
  return { verdict, differing };
}

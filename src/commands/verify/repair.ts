/**
 * `--verify --repair`: sends missing points again from the archive during the comparison. Points that the archive no
 * longer contains are fetched again if possible, and their devices are compared again. At the end the record of the
 * destination's missing points is updated.
 *
 * Promise: the lines are the same that delivery would send. Sending them again moves no position.
 */

import { realClock } from '../../app/real-clock.ts';
import type { ProcessPorts } from '../../app/terminal.ts';
import { intersect, normalize, subtract, wholeDay } from '../../core/intervals.ts';
import { isTelemetryLine } from '../../core/lines/line-reader.ts';
import type { Clock } from '../../core/ports.ts';
import { pageSizeOf } from '../../core/records.ts';
import type { ArchiveReader, ScanPosition } from '../../core/state/archive.ts';
import { type PointsText, type RepairArgs, rangeText } from '../../core/state/job-args.ts';
import { isRepairable, type MissingPoints } from '../../core/state/log.ts';
import type { ArchivedDay, ReadProblem, VerifyState } from '../../core/state/verify.ts';
import { DAY_MS, DAY_NS, dayStart, type EpochMs, msToNs } from '../../core/time.ts';
import type { ServedDestination } from '../../delivery/destination.ts';
import { createBatchSize } from '../../delivery/flow-control.ts';
import { createControlLines, sendBatch } from '../../delivery/send-batch.ts';
import { maxWidthNs } from '../../ingest/page-request.ts';
import { backfillNeed } from '../../scheduler/estimate.ts';
import { openArchiveView } from '../../store/archive/reader.ts';
import { compareDestination, type OnProgress, STOPPED, type VerifyRange } from './compare.ts';
import type { Comparison, Resender } from './compare-day.ts';
import { NoApiError, recordMissing, refetch, type VerifyRun } from './request.ts';
import {
  type ClearedRange,
  type Compared,
  type DestinationVerdict,
  type FetchCost,
  replaceDevices,
  sumTally,
  type Tally,
  verifyVerdict,
} from './result.ts';

/** The repair of one destination after its comparison. */
interface Repair {
  readonly run: VerifyRun;
  readonly comparison: Comparison;
  readonly range: VerifyRange;
  /** Sends archived lines to the destination again. */
  readonly resender: Resender;
  readonly onProgress: OnProgress;
}

/**
 * Repairs the points that sending lines during the comparison could not repair.
 *
 * @returns the verdict afterwards.
 * @throws UserError
 */
export async function repairDestination(
  repair: Repair,
  { tally, unknown, ...first }: Compared,
  ports: ProcessPorts,
): Promise<DestinationVerdict> {
  const { comparison, resender, range, onProgress } = repair;
  const { state, source, destination } = comparison;
  let { problem, hidden } = first;
  let fetched = 0;
  const verdict = (toFetch: FetchCost | null): DestinationVerdict =>
    verifyVerdict(source, { tally, problem, unknown, hidden }, { fetched, rejections: resender.rejections(), toFetch });
  if (problem !== null) return verdict(null);
  const before = sumTally(tally);
  const deviceIds = [...new Set(before.cleared.map(({ deviceId }) => deviceId))];
  if (deviceIds.length > 0 && (await fetchCleared(repair, before.cleared, ports))) {
    const again = { range: { ...range, deviceIds, isAll: false }, onProgress };
    const compared = await compareDestination(comparison, again, ports.signal);
    const resent = sumTally(compared.tally).repaired;
    // After an interruption, devices that were not compared completely keep their first findings.
    replaceDevices(tally, compared.tally, deviceIds.slice(0, compared.tally.devices));
    fetched = Math.max(0, badPoints(before) - badPoints(sumTally(tally)) - resent);
    problem = compared.problem;
    const days = [...hidden.days, ...compared.hidden.days];
    hidden = { ...hidden, days, before: hidden.before ?? compared.hidden.before };
    if (problem !== null) return verdict(null);
  }
  const others = await sendOthers(repair, foundNow(repair, tally), ports.signal);
  if (others.problem !== null) {
    problem = { ...others.problem, hint: '' };
    return verdict(null);
  }
  const left = sumTally(tally).cleared;
  const missed = missedPoints(left);
  if (others.found.length + missed.length + hidden.days.length > 0) {
    const args = { windows: [], destination: source.name, found: others.found, missed, hidden: hidden.days };
    await recordMissing(repair.run, args, { destinationId: destination.id }, ports);
  }
  return verdict(fetchCost(left, state.plan, realClock.nowMs()));
}

function badPoints({ findings: { missing, different } }: ReturnType<typeof sumTally>): number {
  return missing + different;
}

/** The recorded missing points that were found in the destination. */
function foundNow({ comparison: { state, destination }, range }: Repair, { byDevice }: Tally): readonly PointsText[] {
  const bounds = { from: dayStart(range.fromDay), to: dayStart(range.toDay) };
  return range.deviceIds.flatMap((deviceId) => {
    const missing = state.missing(destination.id, deviceId, bounds);
    const days = missing.length === 0 ? [] : state.days(deviceId, range.fromDay, range.toDay);
    const differing = byDevice.get(deviceId)?.differing ?? [];
    return foundPoints(missing, { days, differing, compared: range, clearedOthers: state.clearedOthers });
  });
}

/**
 * Fetches again the points that the archive no longer has.
 *
 * @returns whether any were fetched.
 */
async function fetchCleared(
  { run, comparison }: Repair,
  cleared: readonly ClearedRange[],
  ports: ProcessPorts,
): Promise<boolean> {
  const { terminal } = run;
  const { name } = comparison.source;
  const warn = (message: string): void =>
    terminal.logger.write({ type: 'repair-report', message, isWell: false, cost: null });
  const cost = fetchCost(cleared, comparison.state.plan, realClock.nowMs());
  terminal.logger.write({
    type: 'repair-report',
    message: 'the missing points are no longer in the archive: requesting them again from the API',
    isWell: true,
    cost: cost === null ? null : { destination: name, ...cost },
  });
  try {
    const summary = await refetch(
      run,
      { windows: rangesToFetch(cleared), destination: name, found: [], missed: [] },
      ports,
    );
    if (summary.reason !== null) warn(`not everything was requested again: ${summary.reason}`);
    if (!summary.delivered) warn('some of the requested points are not delivered yet; they are in the archive');
    return true;
  } catch (error) {
    if (!(error instanceof NoApiError)) throw error;
    warn('the missing points cannot be requested again: api.url and api.key are not set, and no daemon is running');
    return false;
  } finally {
    terminal.endProgress();
  }
}

/** The cost of fetching the ranges; `null` if there is nothing to fetch. */
export function fetchCost(
  cleared: readonly ClearedRange[],
  plan: VerifyState['plan'],
  nowMs: EpochMs,
): FetchCost | null {
  if (cleared.length === 0) return null;
  const cost = { points: 0, readings: 0, requests: 0 };
  const days = new Set<string>();
  for (const { deviceId, from, to, points, readings } of cleared) {
    const day = `${from / DAY_NS} ${deviceId}`;
    if (!days.has(day)) cost.points += points;
    days.add(day);
    const intervalMs = DAY_MS / Math.max(1, readings);
    const need = backfillNeed({
      devices: [{ intervalMs, isQuiet: false, lastSignMs: nowMs, covered: [] }],
      range: { from, to },
      now: msToNs(nowMs),
      limit: msToNs(nowMs),
      pageSize: pageSizeOf(plan),
      windowNs: maxWidthNs(plan?.historyMaxDays ?? null),
    });
    cost.readings += Math.ceil(need.readings);
    cost.requests += need.requests;
  }
  return { ...cost, devices: new Set(cleared.map(({ deviceId }) => deviceId)).size };
}

/** The ranges to fetch. Touching ranges of a device are joined. */
function rangesToFetch(cleared: readonly ClearedRange[]): RepairArgs['windows'] {
  const ranges: { deviceId: string; from: bigint; to: bigint }[] = [];
  for (const { deviceId, from, to } of cleared) {
    const last = ranges.at(-1);
    if (last?.deviceId === deviceId && last.to === from) last.to = to;
    else ranges.push({ deviceId, from, to });
  }
  return ranges.map(({ deviceId, from, to }) => rangeText(deviceId, from, to));
}

/** The lost points, for the record of missing points: all points of a day in its first range. */
function missedPoints(cleared: readonly ClearedRange[]): RepairArgs['missed'] {
  const days = new Set<string>();
  return cleared.map(({ deviceId, from, to, points }) => {
    const day = `${from / DAY_NS} ${deviceId}`;
    const isFirst = !days.has(day);
    days.add(day);
    return [deviceId, `${from}`, `${to}`, isFirst ? points : 0] as const;
  });
}

/**
 * The missing points of a device that were found in the destination: all in the compared range, except on the days that
 * differ.
 *
 * Points that are no readings are not compared. If a destination was skipped and the archive has cleared some of them,
 * they stay missing.
 */
export function foundPoints(
  missing: readonly MissingPoints[],
  { days, differing, compared, clearedOthers }: FoundParts,
): readonly PointsText[] {
  const bounds = { from: dayStart(compared.fromDay), to: dayStart(compared.toDay) };
  const own = new Set(differing);
  // A found range is removed from the record, whatever the reason why it was missing.
  const aside = missing
    .filter(({ reason }) => reason === 'skipped_destination')
    .map(({ fromNs, toNs }) => ({ from: fromNs, to: toNs }));
  return missing
    .filter(isRepairable)
    .flatMap(({ deviceId, fromNs, toNs }) => {
      const unsound = days.filter(({ day }) => own.has(day)).map(({ day }) => wholeDay(day));
      return subtract(intersect([{ from: fromNs, to: toNs }], [bounds]), unsound).map(({ from, to }) => {
        const within = days.filter(({ day }) => intersect([wholeDay(day)], [{ from, to }]).length > 0);
        const points = within.reduce((sum, each) => sum + each.points, 0);
        const found = [deviceId, `${from}`, `${to}`, points] as const;
        const left = intersect(normalize(aside), [{ from, to }]).length > 0 ? clearedOthers(deviceId, { from, to }) : 0;
        return left > 0 ? ([...found, left] as const) : found;
      });
    })
    .filter(([, , , points]) => points > 0);
}

interface FoundParts {
  readonly days: readonly ArchivedDay[];
  /** The days of the device that differ. */
  readonly differing: readonly number[];
  /** The days that were compared, from the first to before the last. */
  readonly compared: { readonly fromDay: number; readonly toDay: number };
  readonly clearedOthers: VerifyState['clearedOthers'];
}

interface ResendParts {
  readonly destination: ServedDestination;
  readonly state: Pick<VerifyState, 'movedTo'>;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly batchLines: number;
}

/** Sends to a destination by the rules of delivery. It records nothing, so it looks up no device. */
export function createResender({ destination, state, clock, batchLines }: ResendParts): Resender {
  const store = { movedTo: state.movedTo, devices: () => [], newestLines: () => [] };
  const controls = createControlLines();
  const batchSize = createBatchSize(batchLines);
  const rejections = { lines: 0, tooOld: 0, message: null as string | null };
  return {
    rejections: () => ({ ...rejections }),
    send: async (lines, signal) => {
      let done = 0;
      while (done < lines.length) {
        const batch = lines.slice(done, done + batchSize.lines());
        const sent = await sendBatch({ store, clock, controls }, destination, { lines: batch }, signal);
        const { resolved, rejected, blocked, tooLarge } = sent.resolution;
        batchSize.noteSent({ lines: batch.length, tooLarge, isWhole: resolved === batch.length });
        done += resolved;
        rejections.lines += rejected.length;
        rejections.tooOld += rejected.filter(({ retention }) => retention).length;
        rejections.message = rejected.at(-1)?.message ?? rejections.message;
        if (blocked !== null) return { kind: 'down', message: blocked.message, hint: blocked.hint };
      }
      return null;
    },
  };
}

const STEP_BYTES = 256 * 1024;

/** The result of sending the points that are no readings again. */
interface SentOthers {
  /** The ranges without a rejected line. Other ranges are not recorded as repaired. */
  readonly found: readonly PointsText[];
  /** The problem; `null` for none. */
  readonly problem: ReadProblem | null;
}

/**
 * Sends the found points that are no readings (covered hours, facts of the device) again, because they cannot be
 * compared.
 */
async function sendOthers(
  { run, resender }: Repair,
  found: readonly PointsText[],
  signal: AbortSignal,
): Promise<SentOthers> {
  const view = found.length === 0 ? null : openArchiveView(run.config.dataDir);
  try {
    return view === null
      ? { found: [], problem: null }
      : await resendOthers({ archiveReader: view, resender }, found, signal);
  } finally {
    view?.close();
  }
}

/** Sends the points again from the archive. An abort is an outcome, not an error. */
export async function resendOthers(
  parts: { readonly archiveReader: ArchiveReader; readonly resender: Resender },
  found: readonly PointsText[],
  signal: AbortSignal,
): Promise<SentOthers> {
  const taken: PointsText[] = [];
  try {
    for (const range of found) {
      const before = parts.resender.rejections().lines;
      const problem = await resendRange(parts, range, signal);
      if (problem !== null) return { found: taken, problem };
      if (parts.resender.rejections().lines === before) taken.push(range);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    return { found: taken, problem: STOPPED };
  }
  return { found: taken, problem: null };
}

async function resendRange(
  { archiveReader, resender }: { readonly archiveReader: ArchiveReader; readonly resender: Resender },
  [deviceId, from, to]: PointsText,
  signal: AbortSignal,
): Promise<ReadProblem | null> {
  const range = { from: BigInt(from), to: BigInt(to), devices: [deviceId], kinds: 'all' } as const;
  let position: ScanPosition | null = { deviceId, from: range.from };
  while (position !== null) {
    signal.throwIfAborted();
    const piece = archiveReader.read(range, position, STEP_BYTES);
    const lines = piece.lines.filter((line) => !isTelemetryLine(line));
    const problem = lines.length === 0 ? null : await resender.send(lines, signal);
    if (problem !== null) return problem;
    position = piece.next;
  }
  return null;
}

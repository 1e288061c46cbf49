/**
 * The result of `--verify`, gathered day by day: the object of `--json`, the exit code, and one screen for people with
 * the worst findings first, each with what to do.
 */

import type { ExitCode } from '../../core/faults.ts';
import type { Interval } from '../../core/intervals.ts';
import { DESTINATION_NAMES, type DestinationKind } from '../../core/lines/dialect.ts';
import type { ArchiveTotals } from '../../core/state/log.ts';
import type { ReadProblem } from '../../core/state/verify.ts';
import { counted, grouped, plainText } from '../../core/text.ts';
import { dayStart, formatExact } from '../../core/time.ts';
import { wrap } from '../shared/layout.ts';
import { addFindings, DIFFERENCES, emptyFindings, type Findings, type FoundDay, isSound } from './examine.ts';
import { adviceOnHidden, type Hidden, NOTHING_HIDDEN } from './retention.ts';

/** A day of a device that is not in a destination as it is kept. */
interface DayDifference extends Readonly<Pick<Findings, (typeof DIFFERENCES)[number]>> {
  readonly device_id: string;
  readonly day: string;
  readonly archived_points: number;
  /** Of those missing or different: points that are no longer in the archive. */
  readonly not_in_archive: number;
}

/** The outcome for a destination; `unfinished`: run it again; `unreadable`: it needs a person. */
type VerifyOutcome = 'equal' | 'different' | 'unfinished' | 'unreadable';

/** The cost of fetching points again that are no longer in the archive. */
export interface FetchCost extends Pick<ArchiveTotals, 'points' | 'readings' | 'requests'> {
  readonly devices: number;
}

/** The result of a comparison for one destination, as `--verify --json` has it. */
export interface DestinationVerdict extends Readonly<Omit<Findings, 'not_in_archive'>> {
  readonly name: string;
  /** `null` where nothing was ever sent to it. */
  readonly kind: DestinationKind | null;
  readonly outcome: VerifyOutcome;
  /** Why it could not be finished; `null` where it was. */
  readonly reason: string | null;
  readonly devices_compared: number;
  /** Days of devices of which something is kept or returned. */
  readonly days_compared: number;
  /** Of those: how many are not fully covered (yet). Their archived points are compared anyway. */
  readonly days_partly_covered: number;
  readonly points_compared: number;
  /** With `--repair`: points that were sent again and are there now. */
  readonly repaired: number;
  /** With `--repair`: points that were fetched again from the API and are there now. */
  readonly fetched: number;
  readonly rejected_again: number;
  readonly refusal: string | null;
  /** The points that are missing and not in the archive; `null` for none. */
  readonly to_fetch: FetchCost | null;
  /** All points before this time are missing and all others there, as by a retention; `null` where that is not so. */
  readonly hidden_before: string | null;
  /** Devices that the database has telemetry of under this workspace, and of which this state has none. */
  readonly unknown_devices: readonly string[];
  readonly differences: readonly DayDifference[];
  /** The number of days that differ but are not listed. */
  readonly differences_left_out: number;
}

/** A range whose served readings differ from the archived ones. */
export interface RangeDifference {
  readonly device_id: string;
  readonly from: string;
  readonly to: string;
  /** Points that are served and not stored. */
  readonly missing: number;
  /** Points that are stored and not served any more. */
  readonly gone: number;
}

/** The result of `--verify --sample`, as `--json` has it: counts, and where the API differs. */
export interface SampleVerdict {
  readonly windows: number;
  readonly readings: number;
  readonly requests: number;
  readonly missing: number;
  readonly gone: number;
  /** Readings that were accepted as late ones. */
  readonly late_readings: number;
  /** Why it could not be finished; `null` where it was. */
  readonly reason: string | null;
  readonly differences: readonly RangeDifference[];
}

/** A cleared range of a device with points that a destination is missing. */
export interface ClearedRange extends Interval {
  readonly deviceId: string;
  /** How many points are missing of the day that it is of. */
  readonly points: number;
  /** How many readings that day has. */
  readonly readings: number;
}

/** The findings about a device: replaced completely if it is compared again. */
interface DeviceTally {
  readonly findings: Findings;
  /** All days that differ, in days since 1970, including those that are not listed. */
  readonly differing: number[];
  readonly cleared: ClearedRange[];
  /** Days of which something is kept or returned, and how many of them are not covered in full. */
  days: number;
  partly: number;
  /** Points. */
  archived: number;
  repaired: number;
}

/** The findings about a destination. */
export interface Tally {
  readonly byDevice: Map<string, DeviceTally>;
  differences: DayDifference[];
  /** How many devices were compared to their end. */
  devices: number;
}

/** The result of a comparison. */
export interface Compared {
  readonly tally: Tally;
  /** Why it could not be finished; `null` where it was. */
  readonly problem: ReadProblem | null;
  /** Devices that the database has and the state does not know. */
  readonly unknown: readonly string[];
  readonly hidden: Hidden;
}

/** How many days are listed: a database that lost everything has millions. */
const MOST_DIFFERENCES = 10_000;

/** A tally of nothing. */
export function createTally(): Tally {
  return { byDevice: new Map(), differences: [], devices: 0 };
}

/** Returns the findings about a device, empty at first. */
export function openTally({ byDevice }: Tally, deviceId: string): DeviceTally {
  const known = byDevice.get(deviceId);
  if (known !== undefined) return known;
  const begun = { findings: emptyFindings(), differing: [], cleared: [], days: 0, partly: 0, archived: 0, repaired: 0 };
  byDevice.set(deviceId, begun);
  return begun;
}

/** Records a day. */
export function addDay(tally: Tally, { deviceId, day, archived, findings, sent, cleared }: FoundDay): void {
  const device = openTally(tally, deviceId);
  const { missing, different, extra, unverifiable, not_in_archive } = findings;
  device.days += 1;
  device.archived += archived.points;
  device.repaired += Math.max(0, sent - (missing + different - not_in_archive));
  addFindings(device.findings, findings);
  if (isSound(findings)) return;
  device.differing.push(day);
  if (not_in_archive > 0) {
    const found = { deviceId, points: not_in_archive, readings: archived.readings };
    device.cleared.push(...cleared.map((range) => ({ ...found, ...range })));
  }
  if (tally.differences.length >= MOST_DIFFERENCES) return;
  const identity = { device_id: deviceId, day: dayText(day), archived_points: archived.points };
  tally.differences.push({ ...identity, missing, different, extra, unverifiable, not_in_archive });
}

/**
 * Replaces the findings about devices that were compared again.
 *
 * @param deviceIds the devices that were compared to their end; the findings about all others stay.
 */
export function replaceDevices(tally: Tally, again: Tally, deviceIds: readonly string[]): void {
  for (const deviceId of deviceIds) {
    const device = openTally(again, deviceId);
    device.repaired += openTally(tally, deviceId).repaired;
    tally.byDevice.set(deviceId, device);
  }
  const anew = new Set(deviceIds);
  const others = tally.differences.filter(({ device_id }) => !anew.has(device_id));
  const own = again.differences.filter(({ device_id }) => anew.has(device_id));
  tally.differences = [...others, ...own].slice(0, MOST_DIFFERENCES);
}

/** The sum over the devices. */
export function sumTally({ byDevice }: Tally): Omit<DeviceTally, 'differing'> & { readonly differing: number } {
  const total = {
    findings: emptyFindings(),
    cleared: [] as ClearedRange[],
    differing: 0,
    days: 0,
    partly: 0,
    archived: 0,
    repaired: 0,
  };
  for (const { findings, cleared, differing, days, partly, archived, repaired } of byDevice.values()) {
    addFindings(total.findings, findings);
    total.cleared.push(...cleared);
    total.differing += differing.length;
    total.days += days;
    total.partly += partly;
    total.archived += archived;
    total.repaired += repaired;
  }
  return total;
}

/** The result of `--repair` beside lines of the archive, and what is left to fetch. */
interface Repaired {
  readonly fetched: number;
  readonly refused: { readonly lines: number; readonly message: string | null };
  readonly toFetch: FetchCost | null;
}

/** The result for a destination. */
export function verifyVerdict(
  { name, kind }: Pick<DestinationVerdict, 'name' | 'kind'>,
  { tally, problem, unknown, hidden }: Compared,
  { fetched = 0, refused = { lines: 0, message: null }, toFetch = null }: Partial<Repaired> = {},
): DestinationVerdict {
  const { findings, days, partly, archived, repaired, differing } = sumTally(tally);
  const { not_in_archive: _, ...counts } = findings;
  const ended = isSound(findings) ? 'equal' : 'different';
  return {
    name,
    kind,
    outcome: problem === null ? ended : problem.kind === 'down' ? 'unfinished' : 'unreadable',
    reason: problem === null ? null : problem.hint === '' ? problem.message : `${problem.message}. ${problem.hint}`,
    devices_compared: tally.devices,
    days_compared: days,
    days_partly_covered: partly,
    points_compared: archived,
    ...counts,
    repaired,
    fetched,
    rejected_again: refused.lines,
    refusal: refused.message,
    to_fetch: toFetch,
    hidden_before: hidden.before === null ? null : formatExact(hidden.before),
    unknown_devices: unknown,
    differences: tally.differences,
    differences_left_out: differing - tally.differences.length,
  };
}

/**
 * The result for a destination that cannot be read.
 *
 * @param why `null` if the archive is empty, too.
 */
export function verdictUnread(name: string, why: string | null): DestinationVerdict {
  const problem = why === null ? null : ({ kind: 'down', message: why, hint: '' } as const);
  return verifyVerdict({ name, kind: null }, { tally: createTally(), problem, unknown: [], hidden: NOTHING_HIDDEN });
}

/**
 * 2026-06-15.
 *
 * @param day since 1970.
 */
function dayText(day: number): string {
  return formatExact(dayStart(day)).slice(0, 10);
}

const EXIT_OF: Readonly<Record<VerifyOutcome, ExitCode>> = { equal: 0, different: 1, unreadable: 1, unfinished: 3 };

/** The exit code: findings that need a person come before those that another run may fix. */
export function verifyExit(outcomes: readonly VerifyOutcome[]): ExitCode {
  const codes = outcomes.map((outcome) => EXIT_OF[outcome]);
  return codes.includes(1) ? 1 : codes.includes(3) ? 3 : 0;
}

/** The outcome of a sample. */
export function sampleOutcome({ missing, gone: notServed, reason }: SampleVerdict): VerifyOutcome {
  if (missing + notServed > 0) return 'different';
  return reason === null ? 'equal' : 'unfinished';
}

/** How many days are listed. */
const DAYS_SHOWN = 20;
const DEVICES_SHOWN = 5;

interface VerifyReport {
  readonly from: string | null;
  readonly to: string | null;
  readonly repair: boolean;
  readonly destinations: readonly DestinationVerdict[];
  readonly sample: SampleVerdict | null;
}

/** The answer as a text of several lines, at most 80 columns wide. */
export function verifyText({ from, to, repair, destinations, sample }: VerifyReport): string {
  const range = from === null || to === null ? 'nothing is stored yet' : `${from.slice(0, 16)}Z to ${to.slice(0, 16)}Z`;
  const parts = [
    [`Telemetry, whole days (UTC): ${range}`],
    ...destinations.map((verdict) => destinationLines(verdict, repair)),
    ...(sample === null ? [] : [sampleLines(sample, repair)]),
  ];
  return parts.map((lines) => lines.map((line) => wrap(line)).join('')).join('\n');
}

function destinationLines(verdict: DestinationVerdict, repair: boolean): string[] {
  const { name, kind, days_compared: days, devices_compared: devices } = verdict;
  const head = `${name}${kind === null ? '' : ` (${DESTINATION_NAMES[kind]})`}`;
  if (verdict.outcome === 'unreadable' || (verdict.outcome === 'unfinished' && days === 0)) {
    return [`${head}: could not be compared. ${verdict.reason ?? ''}`];
  }
  return [
    `${head}: ${sentence(verdict)}`,
    `  compared: ${counted(verdict.points_compared, 'point')} of ${counted(devices, 'device')} on ${counted(days, 'device day')}${kind === 'victoriametrics' ? ' (numbers, at millisecond precision)' : ''}`,
    ...repairedLines(verdict),
    ...table(verdict.differences, verdict.differences_left_out),
    ...noDifferences(verdict),
    ...advice(verdict, repair),
  ];
}

function sentence({ outcome, reason, ...found }: DestinationVerdict): string {
  const counts = DIFFERENCES.filter((each) => found[each] > 0).map((each) => `${grouped(found[each])} ${each}`);
  const message = counts.length === 0 ? 'no differences' : counts.join(', ');
  return outcome === 'unfinished' ? `not finished: ${reason}. Result so far: ${message}` : message;
}

function repairedLines({ repaired, fetched, rejected_again: refused, refusal }: DestinationVerdict): string[] {
  return [
    ...(repaired === 0 ? [] : [`  repaired: ${counted(repaired, 'point')} sent again from the archive`]),
    ...(fetched === 0 ? [] : [`  repaired: ${counted(fetched, 'point')} requested again from the API`]),
    ...(refused === 0 ? [] : [`  rejected again: ${counted(refused, 'point')}: ${plainText(refusal ?? '', 200)}`]),
  ];
}

function table(differences: readonly DayDifference[], leftOut: number): string[] {
  if (differences.length === 0) return [];
  const row = (cells: readonly string[], device: string): string =>
    `  ${(cells[0] ?? '').padEnd(10)}${cells
      .slice(1)
      .map((cell) => cell.padStart(11))
      .join('')}  ${device}`;
  const rows = worstFirst(differences)
    .slice(0, DAYS_SHOWN)
    .map(({ day, missing, different, extra, unverifiable, device_id }) =>
      row([day, grouped(missing), grouped(different), grouped(extra + unverifiable)], plainText(device_id, 32)),
    );
  const more = differences.length + leftOut - rows.length;
  const whole = leftOut === 0 ? '--json lists them all' : `--json lists ${grouped(differences.length)} of them`;
  const rest = more <= 0 ? [] : [`  and ${counted(more, 'more day')}; ${whole}`];
  return [row(['day', 'missing', 'different', 'extra'], 'device'), ...rows, ...rest];
}

/** The differences, worst first. */
function worstFirst(differences: readonly DayDifference[]): DayDifference[] {
  const weight = (day: DayDifference): number => DIFFERENCES.reduce((sum, each) => sum + day[each], 0);
  return differences.toSorted(
    (a, b) => weight(b) - weight(a) || compare(a.device_id, b.device_id) || compare(a.day, b.day),
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

function noDifferences({
  pending,
  quarantined,
  known_missing: knownMissing,
  days_partly_covered: partly,
  unknown_devices: unknown,
}: DestinationVerdict): string[] {
  const others = unknown.slice(0, DEVICES_SHOWN).map((tag) => plainText(tag, 40));
  return [
    ...(pending === 0 ? [] : [`  ${counted(pending, 'point')} not delivered yet (not counted as a difference)`]),
    ...(quarantined === 0
      ? []
      : [`  ${counted(quarantined, 'point')} in quarantine: rejected by this database (--quarantine)`]),
    ...(knownMissing === 0
      ? []
      : [`  ${counted(knownMissing, 'point')} already recorded as missing there (reasons: --status)`]),
    ...(partly === 0
      ? []
      : [`  ${counted(partly, 'device day')} covered in part (first day, today, gaps): stored points compared`]),
    ...(unknown.length === 0
      ? []
      : [
          `  the database also has ${counted(unknown.length, 'device')} that this state does not contain (${others.join(', ')}${unknown.length > others.length ? ', …' : ''}): from an older state, or removed with --forget. They are not changed`,
        ]),
  ];
}

function advice(verdict: DestinationVerdict, repair: boolean): string[] {
  const { missing, different, to_fetch: fetch, kind, outcome } = verdict;
  const lines = [...adviceOnHidden(verdict, repair)];
  if (outcome === 'unfinished') lines.push('Run --verify again; it starts from the beginning.');
  if (!repair && missing + different > (fetch?.points ?? 0)) {
    lines.push(
      '--verify --repair sends the missing and different points again from the archive, without requests to the API.',
    );
  }
  if (fetch !== null) {
    const what = `${counted(fetch.points, 'point')} of ${counted(fetch.devices, 'device')} ${fetch.points === 1 ? 'is' : 'are'} no longer in the archive`;
    lines.push(
      `${what}: requesting them again takes about ${counted(fetch.requests, 'request')} (${counted(fetch.readings, 'reading')}). ${repair ? 'Set api.url and api.key and run --verify --repair again.' : '--verify --repair does it if api.url and api.key are set.'}`,
    );
  }
  if (repair && kind === 'victoriametrics' && different > 0) {
    lines.push(
      'VictoriaMetrics may have kept the old values of the points listed as different. If the next --verify still lists them, delete the series of these devices there (VictoriaMetrics deletes only whole series) and run --verify --repair again. That restores only what the archive or the API still has.',
    );
  }
  return [...lines, ...adviceOnExtra(verdict)];
}

function adviceOnExtra(verdict: DestinationVerdict): string[] {
  const { extra, extra_in_gaps: uncovered, extra_before_history: older, unverifiable } = verdict;
  const lines: string[] = [];
  const add = (count: number, text: string): void => {
    if (count > 0) lines.push(text);
  };
  const lie = (count: number): string => `${grouped(count)} of them ${count === 1 ? 'lies' : 'lie'}`;
  add(extra, 'Extra points are in the database but not in this state: they are reported, never deleted.');
  const inGaps = uncovered - older;
  const again = 'and may be correct. Run --verify again when the gaps are closed (--status).';
  add(inGaps, `${lie(inGaps)} in ranges that are not covered yet ${again}`);
  const backfill = 'such as those of a backfill that a restored state does not have. Run that --backfill again';
  add(older, `${lie(older)} before sync.history in ranges that are not covered, ${backfill}, then --verify.`);
  const days = 'Some days have more points in the database than the archive has counted:';
  add(unverifiable, `${days} extra points, or readings that arrived after the archive had removed that day.`);
  return lines;
}

function sampleLines(sample: SampleVerdict, repair: boolean): string[] {
  const { windows, readings, requests, missing, gone: notServed, reason } = sample;
  const head = `Sample: ${counted(windows, 'range')} read again from the API (${counted(readings, 'reading')}, ${counted(requests, 'request')})`;
  const verdict =
    missing + notServed === 0
      ? 'the same as archived'
      : `${counted(missing, 'point')} served but not archived, ${counted(notServed, 'point')} archived but no longer served`;
  return [
    `${head}: ${reason === null ? verdict : `not finished: ${reason}. Result so far: ${verdict}`}`,
    ...sample.differences.slice(0, DAYS_SHOWN).map(({ device_id, from, to, missing: more, gone: less }) => {
      const range = `${from.slice(0, 16)}Z to ${to.slice(0, 16)}Z`;
      return `  ${range}  ${grouped(more)} new, ${grouped(less)} no longer served  ${plainText(device_id, 28)}`;
    }),
    ...(missing > 0 && !repair ? ['--verify --sample N --repair adds the new points to the archive.'] : []),
    ...(missing > 0 && repair
      ? ['The new points are in the archive now and are delivered like any late reading.']
      : []),
    ...(notServed > 0
      ? ['The vendor has removed or changed the points that are no longer served; the archive keeps them.']
      : []),
  ];
}

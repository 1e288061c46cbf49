/** The result of `--verify`, collected day by day: the object of `--json` and the exit code. */

import { type ExitCode, withRemedy } from '../../core/faults.ts';
import type { Interval } from '../../core/intervals.ts';
import type { DestinationKind } from '../../core/lines/dialect.ts';
import type { ArchiveTotals } from '../../core/state/log.ts';
import type { ReadProblem } from '../../core/state/verify.ts';
import { dayStart, formatExact } from '../../core/time.ts';
import { addFindings, type DIFFERENCES, emptyFindings, type Findings, type FoundDay, isSound } from './examine.ts';
import { type Hidden, NOTHING_HIDDEN } from './retention.ts';

/** A day of a device on which a destination differs from the archive. */
export interface DayDifference extends Readonly<Pick<Findings, (typeof DIFFERENCES)[number]>> {
  readonly device_id: string;
  readonly day: string;
  readonly archived_points: number;
  /** Missing or different points that are no longer in the archive. */
  readonly not_in_archive: number;
}

/** The outcome for a destination; `unfinished`: run it again; `unreadable`: it needs a person. */
type VerifyOutcome = 'equal' | 'different' | 'unfinished' | 'unreadable';

/** The cost of fetching points again that are no longer in the archive. */
export interface FetchCost extends Pick<ArchiveTotals, 'points' | 'readings' | 'requests'> {
  readonly devices: number;
}

/** The result of a comparison for one destination, for `--verify --json`. */
export interface DestinationVerdict extends Readonly<Omit<Findings, 'not_in_archive'>> {
  readonly name: string;
  /** `null` if nothing was ever sent to it. */
  readonly kind: DestinationKind | null;
  readonly outcome: VerifyOutcome;
  /** Why it could not be finished; `null` if it was. */
  readonly reason: string | null;
  readonly devices_compared: number;
  /** How many days of devices have archived or returned points. */
  readonly days_compared: number;
  /** How many of these days are not fully covered (yet). Their archived points are compared anyway. */
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
  /**
   * All points before this time are missing and all later ones are there, as with a retention; `null` if that is not
   * so.
   */
  readonly hidden_before: string | null;
  /** Devices that have telemetry of this workspace in the database, but not in this state. */
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

/** The result of `--verify --sample`, for `--json`: counts, and where the API differs. */
export interface SampleVerdict {
  readonly windows: number;
  readonly readings: number;
  readonly requests: number;
  readonly missing: number;
  readonly gone: number;
  /** Readings that were accepted as late ones. */
  readonly late_readings: number;
  /** Why it could not be finished; `null` if it was. */
  readonly reason: string | null;
  readonly differences: readonly RangeDifference[];
}

/** A cleared range of a device with points that a destination is missing. */
export interface ClearedRange extends Interval {
  readonly deviceId: string;
  /** How many points of its day are missing. */
  readonly points: number;
  /** How many readings its day has. */
  readonly readings: number;
}

/** The findings about a device: replaced completely if it is compared again. */
interface DeviceTally {
  readonly findings: Findings;
  /** All days that differ, in days since 1970, including those that are not listed. */
  readonly differing: number[];
  readonly cleared: ClearedRange[];
  /** Days with archived or returned points, and how many of them are not fully covered. */
  days: number;
  partly: number;
  /** Points in the archive, and points that were sent again. */
  archived: number;
  repaired: number;
}

/** The findings about a destination. */
export interface Tally {
  readonly byDevice: Map<string, DeviceTally>;
  differences: DayDifference[];
  /** How many devices were compared completely. */
  devices: number;
}

/** The findings about a destination, and the progress of its comparison. */
export interface Compared {
  readonly tally: Tally;
  /** Why it could not be finished; `null` if it was. */
  readonly problem: ReadProblem | null;
  /** Devices that the database has and the state does not know. */
  readonly unknown: readonly string[];
  readonly hidden: Hidden;
}

/** How many days are listed: a database that has lost everything has millions. */
const MOST_DIFFERENCES = 10_000;

/** Creates a tally without any findings. */
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

/** Adds the findings of a day to those of its device, and lists the day if it differs. */
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
 * @param deviceIds the devices that were compared completely; the findings about all others stay.
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

/** Adds up the findings about all devices. */
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

/** The result of `--repair`, apart from the lines sent from the archive, and the points that are left to fetch. */
interface Repaired {
  readonly fetched: number;
  readonly rejections: { readonly lines: number; readonly message: string | null };
  readonly toFetch: FetchCost | null;
}

/** The result for a destination. */
export function verifyVerdict(
  { name, kind }: Pick<DestinationVerdict, 'name' | 'kind'>,
  { tally, problem, unknown, hidden }: Compared,
  { fetched = 0, rejections = { lines: 0, message: null }, toFetch = null }: Partial<Repaired> = {},
): DestinationVerdict {
  const { findings, days, partly, archived, repaired, differing } = sumTally(tally);
  const { not_in_archive: _, ...counts } = findings;
  const ended = isSound(findings) ? 'equal' : 'different';
  return {
    name,
    kind,
    outcome: problem === null ? ended : problem.kind === 'down' ? 'unfinished' : 'unreadable',
    reason: problem === null ? null : withRemedy(problem.message, problem.hint || null),
    devices_compared: tally.devices,
    days_compared: days,
    days_partly_covered: partly,
    points_compared: archived,
    ...counts,
    repaired,
    fetched,
    rejected_again: rejections.lines,
    refusal: rejections.message,
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
 * @param why the reason; `null` if the archive is empty too.
 */
export function verdictUnread(name: string, why: string | null): DestinationVerdict {
  const problem = why === null ? null : ({ kind: 'down', message: why, hint: '' } as const);
  return verifyVerdict({ name, kind: null }, { tally: createTally(), problem, unknown: [], hidden: NOTHING_HIDDEN });
}

/**
 * A day as text: `2026-06-15`.
 *
 * @param day since 1970.
 */
function dayText(day: number): string {
  return formatExact(dayStart(day)).slice(0, 10);
}

const EXIT_OF: Readonly<Record<VerifyOutcome, ExitCode>> = { equal: 0, different: 1, unreadable: 1, unfinished: 3 };

/** The exit code: findings that need a person come before findings that another run may fix. */
export function verifyExit(outcomes: readonly VerifyOutcome[]): ExitCode {
  const codes = outcomes.map((outcome) => EXIT_OF[outcome]);
  return codes.includes(1) ? 1 : codes.includes(3) ? 3 : 0;
}

/** Judges a sample: any difference counts before an unfinished end. */
export function sampleOutcome({ missing, gone: notServed, reason }: SampleVerdict): VerifyOutcome {
  if (missing + notServed > 0) return 'different';
  return reason === null ? 'equal' : 'unfinished';
}

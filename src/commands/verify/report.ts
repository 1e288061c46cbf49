/**
 * What `--verify` says at its end: the object of `--json` (member names are the served ones), gathered day by day.
 */

import type { ExitCode } from '../../core/faults.ts';
import type { Interval, Intervals } from '../../core/intervals.ts';
import type { DestinationKind } from '../../core/lines/dialect.ts';
import type { KeptDay } from '../../core/state/verify.ts';
import { DAY_NS, type EpochNs, formatExact } from '../../core/time.ts';
import { addFindings, type Findings, isSound, noFindings } from './day.ts';

/** A day of a device that is not in a destination as it is kept. */
export interface DayDifference {
  readonly device_id: string;
  readonly day: string;
  readonly kept_points: number;
  readonly missing: number;
  readonly different: number;
  readonly extra: number;
  /** Maybe extra: the archive has let go of the stretch, and readings came after that. */
  readonly untold: number;
  /** Of those missing or different: what the archive keeps no more. */
  readonly not_in_archive: number;
}

/** How it ended for a destination; `unfinished`: run it again; `unreadable`: somebody has to mend something first. */
export type VerifyOutcome = 'equal' | 'different' | 'unfinished' | 'unreadable';

/** What fetching again takes that no archive keeps. */
export interface FetchCost {
  readonly points: number;
  readonly devices: number;
  readonly readings: number;
  readonly requests: number;
}

export interface DestinationVerdict {
  readonly name: string;
  /** `null` where nothing was ever sent to it. */
  readonly kind: DestinationKind | null;
  readonly outcome: VerifyOutcome;
  /** Why it could not be finished; `null` where it was. */
  readonly reason: string | null;
  readonly devices_compared: number;
  /** Days of devices of which something is kept or returned. */
  readonly days_compared: number;
  /** Of those: how many are not held in full (yet). What is kept of them is compared all the same. */
  readonly days_partly_covered: number;
  readonly points_kept: number;
  readonly missing: number;
  readonly different: number;
  readonly extra: number;
  readonly untold: number;
  /** Not there, and no difference: not delivered yet, refused by it, in its lack-set. */
  readonly pending: number;
  readonly quarantined: number;
  readonly lacking: number;
  /** With `--repair`: points that were sent again and are there now; points that it refused again, and its words. */
  readonly mended: number;
  /** With `--repair`: points that were fetched again from the API and are there now. */
  readonly fetched: number;
  readonly refused_again: number;
  readonly refusal: string | null;
  /** What is missing and not in the archive; `null` where nothing is. */
  readonly to_fetch: FetchCost | null;
  /** Devices that the database has telemetry of under this workspace, and of which this state has none. */
  readonly unknown_devices: readonly string[];
  readonly differences: readonly DayDifference[];
  /** Days that differ and are not among them: so many are told one by one, and no more. */
  readonly differences_left_out: number;
}

/** A stretch of a device that no archive keeps any more and that a destination is missing points of. */
export interface GoneStretch extends Interval {
  readonly deviceId: string;
  /** How many points are missing of the day that it is of. */
  readonly points: number;
  /** How many readings that day has. */
  readonly readings: number;
}

/** A day of a device as it was found. */
export interface FoundDay {
  readonly deviceId: string;
  readonly day: number;
  readonly kept: KeptDay;
  readonly findings: Findings;
  readonly sent: number;
  readonly cleared: Intervals;
}

/** In which days a device differs, and in what: kept of all of them, however many are told one by one. */
export interface DifferingDevice extends Pick<Findings, 'missing' | 'different' | 'extra' | 'untold'> {
  /** Days since 1970. */
  readonly days: readonly number[];
}

export type Differing = ReadonlyMap<string, DifferingDevice>;

/** How many days are told one by one: of a database that lost everything there are millions. */
export const MOST_DIFFERENCES = 10_000;

/** What is gathered of a destination. */
export interface VerdictSums {
  readonly findings: Findings;
  readonly differences: DayDifference[];
  readonly differing: Map<string, { -readonly [K in keyof DifferingDevice]: DifferingDevice[K] } & { days: number[] }>;
  readonly gone: GoneStretch[];
  devices: number;
  days: number;
  partly: number;
  kept: number;
  mended: number;
}

export function beginVerdict(): VerdictSums {
  return {
    findings: noFindings(),
    differences: [],
    differing: new Map(),
    gone: [],
    devices: 0,
    days: 0,
    partly: 0,
    kept: 0,
    mended: 0,
  };
}

/** Takes in a day. */
export function addDay(sums: VerdictSums, found: FoundDay): void {
  const { deviceId, day, kept, findings, sent, cleared } = found;
  const { missing, different, extra, untold, gone } = findings;
  sums.days += 1;
  sums.kept += kept.points;
  sums.mended += Math.max(0, sent - (missing + different - gone));
  addFindings(sums.findings, findings);
  if (isSound(findings)) return;
  const before = sums.differing.get(deviceId) ?? { days: [], missing: 0, different: 0, extra: 0, untold: 0 };
  before.days.push(day);
  for (const each of DIFFERENCES) before[each] += findings[each];
  sums.differing.set(deviceId, before);
  if (gone > 0)
    sums.gone.push(...cleared.map((span) => ({ deviceId, ...span, points: gone, readings: kept.readings })));
  if (sums.differences.length >= MOST_DIFFERENCES) return;
  sums.differences.push({
    device_id: deviceId,
    day: dayText(day),
    kept_points: kept.points,
    missing,
    different,
    extra,
    untold,
    not_in_archive: gone,
  });
}

/** What makes a day differ. */
export const DIFFERENCES = ['missing', 'different', 'extra', 'untold'] as const;

/** How many days differ. */
export function differingDays(differing: Differing): number {
  let days = 0;
  for (const device of differing.values()) days += device.days.length;
  return days;
}

/** The differences, worst first. */
export function worstFirst(differences: readonly DayDifference[]): DayDifference[] {
  const weight = ({ missing, different, extra, untold }: DayDifference): number => missing + different + extra + untold;
  return differences.toSorted(
    (a, b) => weight(b) - weight(a) || compare(a.device_id, b.device_id) || compare(a.day, b.day),
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

/** 2026-06-15. @param day since 1970. */
export function dayText(day: number): string {
  return formatExact(dayStart(day)).slice(0, 10);
}

export function dayStart(day: number): EpochNs {
  return BigInt(day) * DAY_NS;
}

const EXIT_OF: Readonly<Record<VerifyOutcome, ExitCode>> = { equal: 0, different: 1, unreadable: 1, unfinished: 3 };

/** What the command ends with: what a person has to see comes before what running again may mend. */
export function exitOf(outcomes: readonly VerifyOutcome[]): ExitCode {
  const codes = outcomes.map((outcome) => EXIT_OF[outcome]);
  return codes.includes(1) ? 1 : codes.includes(3) ? 3 : 0;
}

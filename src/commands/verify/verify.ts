/**
 * `--verify`: compares what a destination returns with what is kept, device by device (design 1.2).
 *
 * Promises: nothing is written to the state and nothing is asked of the API here; with `--repair` nothing but lines of
 * the log goes to the destination; whatever is there and not ours is told, never deleted. Broken off anywhere it leaves
 * nothing half done.
 */

import { type Intervals, intersect, lengthNs } from '../../core/intervals.ts';
import type { DestinationKind } from '../../core/lines/dialect.ts';
import { identityTag } from '../../core/lines/line-text.ts';
import type { Clock } from '../../core/ports.ts';
import type { PointSource, ReadTrouble, VerifyState } from '../../core/state/verify.ts';
import { DAY_MS, DAY_NS, type EpochNs, minNs, msToNs, SECOND_MS } from '../../core/time.ts';
import { type DayVerdict, verifyDevice } from './device.ts';
import { type DeviceParts, examineDay } from './examine.ts';
import {
  addDay,
  beginVerdict,
  type DestinationVerdict,
  dayStart,
  differingDays,
  type FoundDay,
  type VerdictSums,
} from './report.ts';
import type { Resender } from './resend.ts';

/** What is compared: whole days, UTC. */
export interface VerifySpan {
  readonly fromDay: number;
  /** Not included. */
  readonly toDay: number;
  readonly deviceIds: readonly string[];
  /** Whether these are all that the state knows: only then what else a database has is looked for. */
  readonly isAll: boolean;
}

export interface VerifyParts extends Omit<DeviceParts, 'resend' | 'mends'> {
  /** With `--repair`. */
  readonly resender: Resender | null;
  /** Told after each device: how many of them are done. */
  readonly onDevice: (done: number) => void;
}

/** What came of a destination, and the stretches that it misses and no archive keeps. */
export interface Verified {
  readonly verdict: DestinationVerdict;
  readonly sums: VerdictSums;
}

/** Compares a destination. An abort is an outcome (`unfinished`), not an error. */
export async function verifyDestination(parts: VerifyParts, span: VerifySpan, signal: AbortSignal): Promise<Verified> {
  const work: Work = {
    parts: { ...parts, resend: parts.resender?.send ?? null, mends: parts.resender !== null },
    sums: beginVerdict(),
    later: [],
  };
  let trouble: ReadTrouble | null = null;
  let unknown: readonly string[] = [];
  try {
    trouble = (await allDevices(work, { span, onDevice: parts.onDevice }, signal)) ?? (await lookAgain(work, signal));
    if (trouble === null && span.isAll) unknown = await unknownDevices(parts.source, span.deviceIds, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    trouble = { kind: 'down', words: 'stopped before it was finished', hint: '' };
  }
  // Of what was sent and not looked at again nothing is claimed.
  for (const day of work.later) addDay(work.sums, { ...day, sent: 0 });
  return { verdict: verdictOf({ parts, sums: work.sums, trouble, unknown }), sums: work.sums };
}

interface Work {
  readonly parts: DeviceParts;
  readonly sums: VerdictSums;
  /** Days that are looked at once more at the end. */
  later: FoundDay[];
}

async function allDevices(
  work: Work,
  { span, onDevice }: { readonly span: VerifySpan; readonly onDevice: VerifyParts['onDevice'] },
  signal: AbortSignal,
): Promise<ReadTrouble | null> {
  const { parts, sums } = work;
  const now = msToNs(parts.clock.nowMs());
  for (const deviceId of span.deviceIds) {
    const covered = parts.state.covered(deviceId);
    const take = (found: DayVerdict): void => {
      if (!isCovered(covered, found.day, now)) sums.partly += 1;
      const day = { ...found, deviceId };
      if (isToLookAgain(parts, day)) work.later.push(day);
      else addDay(sums, day);
    };
    const trouble = await verifyDevice(parts, { deviceId, ...span }, take, signal);
    if (trouble !== null) return trouble;
    sums.devices += 1;
    onDevice(sums.devices);
  }
  return null;
}

/** What was mended; and of a database that shows what it was sent some time later, what may just have been sent. */
function isToLookAgain({ source, clock }: DeviceParts, { sent, findings, day }: FoundDay): boolean {
  const isLate = source.kind === 'victoriametrics' && findings.missing > findings.gone;
  return sent > 0 || (isLate && day * DAY_MS > clock.nowMs() - 2 * DAY_MS);
}

/** How long is waited before each look: VictoriaMetrics shows what it was sent some seconds later. */
const LOOK_AFTER_MS: Readonly<Record<DestinationKind, readonly number[]>> = {
  influxdb: [0],
  victoriametrics: [1.5 * SECOND_MS, 4 * SECOND_MS, 10 * SECOND_MS],
};

async function lookAgain(work: Work, signal: AbortSignal): Promise<ReadTrouble | null> {
  const parts = { ...work.parts, resend: null };
  const looks = LOOK_AFTER_MS[parts.source.kind];
  for (const [nth, afterMs] of looks.entries()) {
    const days = work.later;
    if (days.length === 0) return null;
    work.later = [];
    await parts.clock.sleep(afterMs, signal);
    for (let first = days.shift(); first !== undefined; first = days.shift()) {
      // Until it was looked at nothing is claimed of it.
      work.later.unshift(first);
      const found = await examineDay(parts, { ...first, size: first.kept.points }, signal).finally(() => {
        if (signal.aborted) work.later.push(...days);
      });
      if ('words' in found) {
        work.later.push(...days);
        return found;
      }
      work.later.shift();
      const day = { ...first, ...found, sent: first.sent };
      if (found.findings.missing > found.findings.gone && nth < looks.length - 1) work.later.push(day);
      else addDay(work.sums, day);
    }
  }
  return null;
}

/** Whether all of a day is held, as far as it has come. */
function isCovered(covered: Intervals, day: number, now: EpochNs): boolean {
  const whole = { from: dayStart(day), to: minNs(dayStart(day) + DAY_NS, now) };
  return whole.from >= whole.to || lengthNs(intersect(covered, [whole])) === whole.to - whole.from;
}

/** A database need not be able to tell: then nothing is said of it. */
async function unknownDevices(
  source: PointSource,
  deviceIds: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const found = await source.devices(signal);
  if ('words' in found) return [];
  const known = new Set<string>(deviceIds.map(identityTag));
  return found.filter((tag) => !known.has(tag));
}

function verdictOf({
  parts: { source, resender },
  sums,
  trouble,
  unknown,
}: {
  parts: VerifyParts;
  sums: VerdictSums;
  trouble: ReadTrouble | null;
  unknown: readonly string[];
}): DestinationVerdict {
  const { missing, different, extra, untold, pending, quarantined, lacking } = sums.findings;
  const isDifferent = missing + different + extra + untold > 0;
  const ended = isDifferent ? 'different' : 'equal';
  return {
    name: source.name,
    kind: source.kind,
    outcome: trouble === null ? ended : trouble.kind === 'down' ? 'unfinished' : 'unreadable',
    reason: trouble === null ? null : trouble.hint === '' ? trouble.words : `${trouble.words}. ${trouble.hint}`,
    devices_compared: sums.devices,
    days_compared: sums.days,
    days_partly_covered: sums.partly,
    points_kept: sums.kept,
    ...{ missing, different, extra, untold, pending, quarantined, lacking },
    mended: sums.mended,
    fetched: 0,
    refused_again: resender?.refused().lines ?? 0,
    refusal: resender?.refused().words ?? null,
    to_fetch: null,
    unknown_devices: unknown,
    differences: sums.differences,
    differences_left_out: differingDays(sums.differing) - sums.differences.length,
  };
}

/** The days that are compared: those that a span touches; what is kept where an end is not given. @returns `null` for none. */
export function daysOf(
  state: Pick<VerifyState, 'extent'>,
  asked: { readonly from: EpochNs | null; readonly to: EpochNs | null },
  clock: Pick<Clock, 'nowMs'>,
): Pick<VerifySpan, 'fromDay' | 'toDay'> | null {
  const kept = state.extent();
  if (kept === null) return null;
  const today = Number(msToNs(clock.nowMs()) / DAY_NS);
  const fromDay = asked.from === null ? kept.from : Number(asked.from / DAY_NS);
  const toDay = asked.to === null ? Math.max(kept.to, today) + 1 : Number((asked.to + DAY_NS - 1n) / DAY_NS);
  return { fromDay, toDay: Math.max(fromDay + 1, toDay) };
}

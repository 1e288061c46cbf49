/**
 * A day of a device of which the sums differ, point by point and stretch by stretch, so that few points are in memory.
 *
 * Promises: what is settled before the destination is asked has to be in its answer, what is settled later may be; with
 * `resend` what is missing is sent again as the identical lines: the day is to be looked at once more then.
 */
import { type Interval, type Intervals, intersect, normalize } from '../../core/intervals.ts';
import { identityTag } from '../../core/lines/line-text.ts';
import { emptySum, isSameSum } from '../../core/lines/point-sum.ts';
import type { Clock } from '../../core/ports.ts';
import type { MissingPoints } from '../../core/state/log.ts';
import type { KeptDay, KnownDestination, PointSource, ReadTrouble, VerifyState } from '../../core/state/verify.ts';
import { DAY_NS, type EpochNs, SECOND_NS } from '../../core/time.ts';
import { askPatiently } from './ask.ts';
import {
  beginExamination,
  type Examination,
  endExamination,
  examineStretch,
  type Findings,
  gather,
  type LackLeft,
  type Returned,
} from './day.ts';

export interface DeviceParts {
  readonly state: VerifyState;
  readonly source: PointSource;
  readonly destination: KnownDestination;
  readonly clock: Clock;
  /** Whether what can be mended counts as a difference though the lack-set names it. */
  readonly mends: boolean;
  /** Sends lines of the log again. `null`: nothing is mended. @returns what was in the way; `null` for nothing. */
  readonly resend: ((lines: readonly string[], signal: AbortSignal) => Promise<ReadTrouble | null>) | null;
}

/** What is found of a day. */
export interface Examined {
  readonly day: number;
  readonly kept: KeptDay;
  readonly findings: Findings;
  /** How many lines were sent again for it. */
  readonly sent: number;
  /** Where of it the archive keeps nothing any more, where the day was looked at point by point. */
  readonly cleared: Intervals;
}

/** How often a day is begun anew because the state has moved meanwhile. */
const ATTEMPTS = 3;

export interface DayOf {
  readonly deviceId: string;
  readonly day: number;
  /** About how many points it has. */
  readonly size: number;
}

/** Examines a day stretch by stretch, and mends it on the way. @returns what was found, or what was in the way. */
export async function examineDay(parts: DeviceParts, of: DayOf, signal: AbortSignal): Promise<Examined | ReadTrouble> {
  const { state, destination, source } = parts;
  let sent = 0;
  for (let attempt = 1; ; attempt += 1) {
    const keptBefore = keptOf(state, of);
    const lacks = state
      .missing(destination.id, of.deviceId, wholeDay(of.day))
      .filter((lack) => isExcuse(lack, parts))
      .map(({ fromNs, toNs, points }): LackLeft => ({ from: fromNs, to: toNs, points }));
    const work: DayWork = { of, examination: beginExamination(), cleared: [], lacks, sent: 0 };
    const trouble = await examineSpans(parts, work, signal);
    if (trouble !== null) return trouble;
    sent += work.sent;
    const kept = keptOf(state, of);
    const cleared = normalize(work.cleared);
    const end = { day: of.day, kept, sent, cleared };
    // Without a cleared stretch every line was looked for by itself.
    if (cleared.length === 0) return { ...end, findings: work.examination.findings };
    if (!isSameSum(kept, keptBefore) && attempt < ATTEMPTS) continue;
    const lackPoints = pointsIn(lacks, cleared);
    return { ...end, findings: endExamination(work.examination, { kind: source.kind, kept, lackPoints }) };
  }
}

async function examineSpans(parts: DeviceParts, work: DayWork, signal: AbortSignal): Promise<ReadTrouble | null> {
  const { resend } = parts;
  const { examination } = work;
  for (const span of stretchesOf(work.of)) {
    const trouble = await examineSpan(parts, { ...work, span }, signal);
    if (trouble !== null) return trouble;
    const lines = examination.resend.splice(0);
    if (resend === null || lines.length === 0) continue;
    const refusal = await resend(lines, signal);
    if (refusal !== null) return refusal;
    work.sent += lines.length;
  }
  return null;
}

/** What is beyond a retention stays so; what a destination was set aside with, or came too late for, can be mended. */
function isExcuse({ reason }: MissingPoints, { mends }: DeviceParts): boolean {
  return !mends || (reason !== 'cleared' && reason !== 'set aside');
}

function pointsIn(lacks: readonly LackLeft[], cleared: Intervals): number {
  return lacks.filter((lack) => intersect([lack], cleared).length > 0).reduce((sum, { points }) => sum + points, 0);
}

interface DayWork {
  readonly of: DayOf;
  readonly examination: Examination;
  /** Grows. */
  readonly cleared: Interval[];
  readonly lacks: readonly LackLeft[];
  sent: number;
}

/** How far times may be moved on the way to a database that keeps milliseconds. */
const MOVED_NS: EpochNs = SECOND_NS;

async function examineSpan(
  { state, source, destination, clock }: DeviceParts,
  { of: { deviceId }, span, examination, cleared, lacks }: DayWork & { readonly span: Interval },
  signal: AbortSignal,
): Promise<ReadTrouble | null> {
  const isMoved = source.kind === 'victoriametrics';
  // In this order: what is settled now has to be in the answer; what is in the answer has been archived by then.
  const positions = state.positions(destination.id);
  const returned = await askPatiently(
    { source, clock },
    { device: identityTag(deviceId), ...span },
    () => {
      const gathered: Returned = new Map();
      return { gathered, take: gather(gathered) };
    },
    signal,
  );
  if ('words' in returned) return returned;
  const reach = isMoved ? { from: span.from - MOVED_NS, to: span.to + MOVED_NS } : span;
  const looked = state.stretch({ deviceId, destinationId: destination.id, ...reach }, positions);
  const gone = isMoved
    ? looked.cleared.map(({ from, to }) => ({ from: from - (from % 1_000_000n), to }))
    : looked.cleared;
  cleared.push(...intersect(gone, [span]));
  examineStretch(examination, {
    kind: source.kind,
    kept: { ...looked, cleared: gone },
    returned,
    findDisplaced: state.displacedTo,
    lacks,
    span,
  });
  return null;
}

/** How many points are compared by themselves at once. */
const STRETCH_POINTS = 20_000;

function stretchesOf({ day, size }: DayOf): Interval[] {
  const parts = BigInt(Math.min(1440, Math.ceil(Math.max(1, size) / STRETCH_POINTS)));
  const { from } = wholeDay(day);
  return Array.from({ length: Number(parts) }, (_, nth) => ({
    from: from + edge(BigInt(nth), parts),
    to: from + edge(BigInt(nth) + 1n, parts),
  }));
}

/** Whole milliseconds: a database that keeps those has nothing across an edge. */
function edge(nth: bigint, parts: bigint): EpochNs {
  const ns = (DAY_NS * nth) / parts;
  return ns - (ns % 1_000_000n);
}

function wholeDay(day: number): Interval {
  return { from: BigInt(day) * DAY_NS, to: BigInt(day + 1) * DAY_NS };
}

function keptOf(state: VerifyState, { deviceId, day }: DayOf): KeptDay {
  return state.days(deviceId, day, day + 1)[0] ?? noDay(day);
}

/** A day of which nothing is kept. */
export function noDay(day: number): KeptDay {
  return { day, readings: 0, texts: 0, ...emptySum() };
}

/**
 * Readings that come late: new ones inside time that was covered before.
 *
 * Pure. They are delivered like all others; what is kept is how many there were and how late the worst one was, and the
 * time that the device is given before its readings are claimed grows with them. What was claimed too early is taken
 * back: better a stretch that is read again than one that is called complete and is not.
 */
import { addSpan, type CoveredSpan, type Edge } from './coverage.ts';
import { readingDigest } from './lines/points.ts';
import type { Reading } from './records.ts';
import type { LateFound, LateRecord, PageCommit, TelemetryState } from './state/telemetry.ts';
import { type EpochMs, type EpochNs, HOUR_MS, MINUTE_MS, maxNs, msToNs, nsToMs, SECOND_MS } from './time.ts';

/** The server's clock speaks in seconds: what it says may lie up to a second ahead of the time at which it looked. */
export const CLOCK_GRAIN_MS = SECOND_MS;

/** The longest that a device's readings are waited for, unless the configuration says more. */
export const MAX_SETTLE_MS = HOUR_MS;

/** How long after its time a reading of this device may still appear, as far as is known. */
export function settleOf(configuredMs: number, { settleMs }: LateRecord): number {
  return Math.max(configuredMs, settleMs);
}

/** The end of what may be claimed at a time of the server. */
export function claimsEnd(serverMs: EpochMs, settleMs: number): EpochNs {
  return maxNs(msToNs(serverMs - CLOCK_GRAIN_MS - settleMs), 0n);
}

/** Whether a reading of that time is late when it comes now: its time counted as held in full. */
export function isCovered(spans: readonly CoveredSpan[], at: EpochNs): boolean {
  return spans.some(({ from, to }) => from <= at && at < to);
}

/**
 * Takes in late readings, of which there is at least one, seen at a time of the server.
 *
 * The settle grows to what would have awaited them, in whole minutes. One that is later than the settle may ever be
 * changes nothing there: no settle would have awaited it, and a longer one makes every request longer.
 */
export function noteLate(before: LateRecord, late: readonly Reading[], seenAtMs: EpochMs): LateFound {
  const byMs = late.map(({ recordedAt }) => Math.max(0, seenAtMs - nsToMs(recordedAt)));
  const worstMs = Math.max(...byMs);
  const awaitable = byMs.filter((ms) => ms <= MAX_SETTLE_MS).map((ms) => Math.ceil(ms / MINUTE_MS) * MINUTE_MS);
  const record = {
    readings: before.readings + late.length,
    worstMs: Math.max(before.worstMs, worstMs),
    settleMs: Math.max(before.settleMs, ...awaitable),
  };
  return { count: late.length, worstMs, record };
}

/**
 * The coverage without what lies at or beyond `end`.
 *
 * @param held readings that are held, of which the newest before `end` is the new edge; without a fitting one it is the
 * other edge of the span, which is held as well.
 */
export function withdrawBeyond(
  spans: readonly CoveredSpan[],
  end: EpochNs,
  held: readonly Reading[],
): readonly CoveredSpan[] {
  return spans
    .filter(({ from }) => from < end)
    .map((span) => {
      if (span.to <= end) return span;
      const last = edgeBefore(span, end, held);
      return { ...span, to: end, first: span.first !== null && span.first.at < end ? span.first : last, last };
    });
}

function edgeBefore(span: CoveredSpan, end: EpochNs, held: readonly Reading[]): Edge | null {
  if (span.last !== null && span.last.at < end) return span.last;
  let newest: Reading | null = null;
  for (const reading of held) {
    const { recordedAt } = reading;
    if (recordedAt < span.from || recordedAt >= end) continue;
    if (newest === null || recordedAt > newest.recordedAt) newest = reading;
  }
  if (newest !== null) return { at: newest.recordedAt, digest: readingDigest(newest) };
  return span.first !== null && span.first.at < end ? span.first : null;
}

/** What claims are made from when a page lands. */
export interface ClaimInput {
  readonly state: Pick<TelemetryState, 'spans' | 'late'>;
  readonly proven: CoveredSpan | null;
  /** The server's time of the answer. */
  readonly answeredAtMs: EpochMs;
  readonly readings: readonly Reading[];
  /** The configured settle, in milliseconds. */
  readonly settleMs: number;
}

/**
 * The coverage and the record after a page that brought these late readings. Where they make the settle grow, what was
 * claimed too early is taken back, and a page that was asked for under the shorter one proves no more than the longer
 * one allows.
 */
export function claimAfter(input: ClaimInput, late: readonly Reading[]): Pick<PageCommit, 'spans' | 'late'> {
  const { state, proven, answeredAtMs, readings } = input;
  const found = late.length === 0 ? null : noteLate(state.late, late, answeredAtMs);
  const settleMs = settleOf(input.settleMs, found?.record ?? state.late);
  const spans = proven === null ? state.spans : addSpan(state.spans, proven);
  const isLonger = settleMs > settleOf(input.settleMs, state.late) || (proven !== null && settleMs > input.settleMs);
  return {
    spans: isLonger ? withdrawBeyond(spans, claimsEnd(answeredAtMs, settleMs), readings) : spans,
    ...(found === null ? {} : { late: found }),
  };
}

/** A landing that brings nothing and takes back what is claimed at or beyond `end`. */
export function composeWithdrawal(state: TelemetryState, end: EpochNs, atMs: EpochMs): PageCommit {
  const { deviceId, revision, hourReadings, hoursWritten } = state;
  return {
    deviceId,
    revision,
    lane: 'live',
    requestId: 0,
    lines: [],
    sideLines: [],
    firstNs: null,
    lastNs: null,
    newReadings: 0,
    ties: [],
    daySums: [],
    spans: withdrawBeyond(state.spans, end, []),
    hourReadings,
    hoursWritten,
    rejected: [],
    atMs,
  };
}

/**
 * `--quarantine retry`: sends quarantined lines to their destination again, by the same rules as other lines, and
 * parses quarantined records of the API again with this version.
 *
 * Promise: a line leaves the quarantine only if it is accepted or certainly older than the destination keeps. A line
 * that is rejected again stays, with the new message. If the destination does not answer, nothing changes.
 *
 * A reading that can be parsed now is committed like any other, and leaves the quarantine. No request is sent to the
 * API. A record that was shortened cannot be retried. Devices and alerts come with every listing, so they need no
 * commit here.
 */

import { translate } from '../../core/lines/dialect.ts';
import { isHourLine, kindOf, readSeries, seriesOf } from '../../core/lines/line-reader.ts';
import type { Clock } from '../../core/ports.ts';
import type { Reading } from '../../core/records.ts';
import { LOG_LANES, type LogBatch, type LogLane, type LogPosition, positionAfter } from '../../core/state/log.ts';
import type { QuarantinedItem } from '../../core/state/quarantine.ts';
import type { Store } from '../../core/state/state.ts';
import { ForgottenError, StaleStateError } from '../../core/state/telemetry.ts';
import type { Blocked, Reachable } from '../../delivery/destination.ts';
import { type ControlLines, findDeviceId, otherKind, type Sent, sendBatch } from '../../delivery/send-batch.ts';
import { timeOf } from '../../delivery/too-old.ts';
import { storedAround } from '../../ingest/commit.ts';
import { composeCommit } from '../../ingest/commit-rules.ts';
import type { SyncContext } from '../../ingest/context.ts';

/** The result for one destination. */
export interface LinesRetried {
  accepted: number;
  rejected: number;
  beyond: number;
  /** Why the rest was not tried; `null` if all lines were. */
  blocked: string | null;
}

interface RetryParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly destination: Reachable;
  readonly controls: ControlLines;
}

/**
 * Sends lines again and records the result.
 *
 * @throws the signal's reason
 */
export async function retryLines(
  parts: RetryParts,
  items: readonly QuarantinedItem[],
  signal: AbortSignal,
): Promise<LinesRetried> {
  const sum: LinesRetried = { accepted: 0, rejected: 0, beyond: 0, blocked: null };
  let left = items;
  while (left.length > 0 && sum.blocked === null) {
    const resolved = await retrySome(parts, left, { sum, signal });
    left = left.slice(resolved);
  }
  return sum;
}

/** Sends some lines again. Returns how many lines, counted from the first, were resolved. */
async function retrySome(
  { store, clock, destination, controls }: RetryParts,
  items: readonly QuarantinedItem[],
  { sum, signal }: { sum: LinesRetried; signal: AbortSignal },
): Promise<number> {
  const send: Send = async (lines) => await sendBatch({ store, clock, controls }, destination, { lines }, signal);
  const lines = items.map(({ content }) => newestCount(store, content));
  const { resolution, missing } = await send(lines);
  const unsettled = await sendCorrected(store, lines.slice(0, resolution.resolved), send);
  if (unsettled !== null) {
    sum.blocked = blockText(unsettled);
    return 0;
  }
  const { resolved, rejected, blocked } = resolution;
  const rejections = new Map(rejected.map((each) => [each.index, each]));
  const outcome = {
    accepted: [] as number[],
    rejected: [] as { id: number; message: string }[],
    beyond: [] as number[],
  };
  items.slice(0, resolved).forEach(({ id }, index) => {
    const rejection = rejections.get(index);
    if (rejection === undefined) outcome.accepted.push(id);
    else if (rejection.retention) outcome.beyond.push(id);
    else outcome.rejected.push({ id, message: rejection.message });
  });
  store.quarantine.resolve({ destinationId: destination.id, ...outcome, missing, atMs: clock.nowMs() });
  sum.accepted += outcome.accepted.length;
  sum.rejected += outcome.rejected.length;
  sum.beyond += outcome.beyond.length;
  if (blocked !== null) sum.blocked = blockText(blocked);
  return resolved;
}

function blockText({ message, hint }: Blocked): string {
  return hint === '' ? message : `${message}; ${hint}`;
}

type Send = (lines: readonly string[]) => Promise<Pick<Sent, 'resolution' | 'missing'>>;

/**
 * Sends the counts of hours that were corrected since they were read. Otherwise the delivery may have sent the
 * corrected counts before the old ones.
 *
 * @returns why the destination does not have them now; `null` if it has.
 */
async function sendCorrected(store: Store, sent: readonly string[], send: Send): Promise<Blocked | null> {
  for (let before = sent; ; ) {
    const now = before.map((line) => newestCount(store, line));
    const corrected = now.filter((line, index) => line !== before[index]);
    if (corrected.length === 0) return null;
    const { blocked } = (await send(corrected)).resolution;
    if (blocked !== null) return blocked;
    before = now;
  }
}

/** About how many bytes of the archive are read for one line. */
const AROUND_BYTES = 64 * 1024;

/**
 * The line to send for one in quarantine. If the count of an hour was corrected since, the destination may have the
 * newest count, and an old count would replace it.
 */
function newestCount(store: Store, line: string): string {
  if (!isHourLine(line)) return line;
  const [at, series] = [timeOf(line), seriesOf(line)];
  const tag = readSeries(series).find(([key]) => key === 'device_id')?.[1] ?? '';
  const deviceId = findDeviceId(store, tag);
  const range = { from: at, to: at + 1n, devices: [deviceId], kinds: 'all' } as const;
  const { lines } = store.replays.archiveReader.read(range, { deviceId, from: at }, AROUND_BYTES);
  return lines.find((each) => seriesOf(each) === series) ?? line;
}

/** How many blocks of the log are searched for control lines. */
const BLOCKS_BACK = 256;
const LIMITS = { lines: 2000, bytes: 1024 * 1024 };
const BATCHES = 20;

/** Finds control lines among the last accepted lines of the log. The search starts when the first one is needed. */
export function createLogControls(store: Store, { id, kind }: Reachable): ControlLines {
  let found: ReadonlyMap<string, string> | null = null;
  const all = (): ReadonlyMap<string, string> => {
    found ??= latestByKind(store, { id, kind });
    return found;
  };
  return {
    latestLike: (line) => all().get(kindOf(line)) ?? null,
    latestUnlike: (line) => otherKind(all(), line),
    newest: () => [...all().values()].toSorted((a, b) => (timeOf(a) < timeOf(b) ? -1 : 1)).at(-1) ?? null,
    remember: () => {},
  };
}

function latestByKind(store: Store, { id, kind }: Pick<Reachable, 'id' | 'kind'>): ReadonlyMap<string, string> {
  const latest = new Map<string, string>();
  for (const lane of LOG_LANES) {
    for (const line of acknowledgedLines(store, lane, store.position(id, lane))) {
      const [sent] = translate(kind, [line], store.movedTo).lines;
      // The acknowledged lines include the rejected ones.
      if (sent !== undefined && !store.quarantine.holds(id, line)) latest.set(kindOf(sent), sent);
    }
  }
  return latest;
}

function* acknowledgedLines(store: Store, lane: LogLane, position: LogPosition): Iterable<string> {
  let from: LogPosition = { block: Math.max(0, position.block - BLOCKS_BACK), line: 0 };
  for (let nth = 0; nth < BATCHES; nth += 1) {
    const batch = store.read(lane, from, LIMITS);
    const count = linesBefore(batch, position);
    yield* batch.lines.slice(0, count);
    if (count < batch.lines.length || count === 0) return;
    from = positionAfter(batch, from, count);
  }
}

/** How many lines of a batch lie before a position. */
function linesBefore({ segments }: LogBatch, position: LogPosition): number {
  let count = 0;
  for (const { block, line, lines } of segments) {
    if (block > position.block) break;
    count += block < position.block ? lines : Math.max(0, Math.min(lines, position.line - line));
  }
  return count;
}

/**
 * The result of parsing a record with this version: a reading, a record that every listing contains, or the reason why
 * it is neither.
 */
export type Reparsed =
  | { readonly kind: 'reading'; readonly reading: Reading }
  | { readonly kind: 'listed' }
  | { readonly kind: 'not-understood'; readonly why: string };

/** Parses a record of the quarantine. Never throws. */
export type Reparse = (source: string, record: string) => Reparsed;

type RecordParts = Pick<SyncContext, 'store' | 'settings' | 'filterNotes' | 'serverClock'>;

/**
 * Tries a record.
 *
 * @returns `null` if it is stored now, otherwise why not.
 */
export type RetryRecord = (item: QuarantinedItem) => string | null;

/** Tries records one by one, with the current devices. */
export function createRecordRetry(parts: RecordParts, reparse: Reparse): RetryRecord {
  const { store, settings } = parts;
  let devices: ReadonlyMap<string, boolean> | null = null;
  return (item) => {
    const parsed = reparse(item.source, item.content);
    if (parsed.kind === 'not-understood') return parsed.why;
    if (parsed.kind === 'reading') {
      devices ??= new Map(store.devices().map(({ record }) => [record.deviceId, settings.filter.excludes(record)]));
      const why = retryReading(parts, parsed.reading, { deviceId: item.source, isExcluded: devices.get(item.source) });
      if (why !== null) return why;
    }
    store.quarantine.takeOut([item.id]);
    return null;
  };
}

function retryReading(
  parts: RecordParts,
  reading: Reading,
  { deviceId, isExcluded }: { readonly deviceId: string; readonly isExcluded: boolean | undefined },
): string | null {
  if (isExcluded === undefined) return 'its device is unknown';
  if (isExcluded) return 'its device is excluded by sync.include or sync.exclude';
  if (reading.recordedAt > parts.serverClock.latestNs()) return 'its time is more than a day in the future';
  parts.filterNotes.noteSensorsRead([reading]);
  return commitReading(parts, deviceId, reading);
}

function commitReading(
  { store, settings, filterNotes, serverClock }: RecordParts,
  deviceId: string,
  reading: Reading,
): string | null {
  const workspaceId = store.workspaceTag();
  if (workspaceId === null) return 'its workspace is unknown';
  const state = store.telemetry(deviceId);
  const composed = composeCommit({
    // The reading is not late: it came in time, but could not be parsed. So it covers no range and withdraws no
    // coverage.
    state: { ...state, covered: [] },
    workspaceId,
    lane: 'history',
    requestId: 0,
    answeredAtMs: serverClock.nowMs(),
    readings: [reading],
    rejected: [],
    stored: storedAround(store, deviceId, [reading]),
    covers: null,
    gracePeriodMs: settings.gracePeriodMs,
    filter: filterNotes.touchesSensors ? settings.filter : undefined,
    storedAt: ({ from, to }) => store.stored(deviceId, from, to),
  });
  if (composed.rejected.length > 0) return `still: ${composed.rejected[0]?.reason ?? ''}`;
  try {
    store.commitPage({ ...composed, covered: state.covered });
    return null;
  } catch (error) {
    if (error instanceof StaleStateError) return 'its device was being read at that moment; run the command again';
    if (error instanceof ForgottenError) return 'its device was removed with --forget';
    throw error;
  }
}

/**
 * `--verify --sample N`: checks whether the API has changed readings since they were read. It picks covered time ranges
 * at random, reads them again from the API and compares them with the archive; if lines there were cleared from the
 * archive, it compares the sums of whole days.
 *
 * Promises: every request passes the rate limiter, in the lowest lane. Nothing is written, except that `--repair`
 * commits new readings like any late reading.
 */

import { ApiFault, endsSession } from '../../core/faults.ts';
import { type DeviceFilter, filterReading } from '../../core/filter.ts';
import { type Interval, includes, intersect, lengthNs, subtract } from '../../core/intervals.ts';
import { isNumber, isText, orNull, shapeOf } from '../../core/json.ts';
import { encodeFieldValue, identityTag } from '../../core/lines/line-protocol.ts';
import { isTelemetryLine, readLine } from '../../core/lines/line-reader.ts';
import { MAX_OFFSET_NS } from '../../core/lines/offsets.ts';
import {
  addPoint,
  emptySum,
  flattenReading,
  isSameSum,
  type PointSum,
  pointIdentity,
} from '../../core/lines/points.ts';
import type { Reading } from '../../core/records.ts';
import type { SampleArgs } from '../../core/state/job-args.ts';
import type { TimestampOffset } from '../../core/state/telemetry.ts';
import type { VerifyState } from '../../core/state/verify.ts';
import { DAY_NS, type EpochNs, formatExact, HOUR_NS, maxNs, minNs } from '../../core/time.ts';
import { commitJudged } from '../../ingest/commit.ts';
import type { SyncContext } from '../../ingest/context.ts';
import { createLearntWindows, windowRules } from '../../ingest/fetch-page.ts';
import { rereadRange } from '../../ingest/reread.ts';
import { planEdge } from '../../ingest/window-limits.ts';
import { rejectionOf } from '../shared/command.ts';
import type { RangeDifference, SampleVerdict } from './result.ts';

interface SampleParts {
  readonly context: SyncContext;
  readonly state: VerifyState;
}

interface Drawn {
  readonly deviceId: string;
  readonly range: Interval;
  /** Whether the archive was cleared in the range. Then the range is a whole day. */
  readonly isSum: boolean;
}

/**
 * Draws ranges, reads them and compares.
 *
 * @throws UserError if a person has to act (77).
 */
export async function compareSample(
  parts: SampleParts,
  args: SampleArgs,
  done: { ranges: number },
  signal: AbortSignal,
): Promise<SampleVerdict> {
  const sums = { windows: 0, readings: 0, requests: 0, missing: 0, gone: 0, late_readings: 0 };
  const differences: RangeDifference[] = [];
  const end = (reason: string | null): SampleVerdict => ({ ...sums, reason, differences });
  for (let nth = 0; nth < args.windows; nth += 1) {
    const drawn = draw(parts, args);
    if (drawn === null) return end(sums.windows === 0 ? NOT_COMPARABLE : null);
    const found = await auditOrReason(parts, { drawn, args, sums }, signal);
    if (typeof found === 'string') return end(found);
    sums.windows += 1;
    sums.missing += found.missing;
    sums.gone += found.notServed;
    if (found.missing + found.notServed > 0) differences.push(rangeDifference(drawn, found));
    done.ranges += 1;
  }
  return end(null);
}

const isDifference = shapeOf<RangeDifference>({
  device_id: isText,
  from: isText,
  to: isText,
  missing: isNumber,
  gone: isNumber,
});

const isSampleVerdict = shapeOf<SampleVerdict>({
  windows: isNumber,
  readings: isNumber,
  requests: isNumber,
  missing: isNumber,
  gone: isNumber,
  late_readings: isNumber,
  reason: orNull(isText),
  differences: (value) => Array.isArray(value) && value.every(isDifference),
});

/**
 * Checks the result of a sample that a daemon, possibly of another version, has written.
 *
 * @returns `null` if it is not one
 */
export function readSampleVerdict(value: unknown): SampleVerdict | null {
  return isSampleVerdict(value) ? value : null;
}

/** Returns the findings, or why this sample could not be compared. */
async function auditOrReason(parts: SampleParts, audit: Audit, signal: AbortSignal): Promise<Compared | string> {
  try {
    return (await auditRange(parts, audit, signal)) ?? 'the API did not answer the requests for a device';
  } catch (error) {
    if (signal.aborted) return 'interrupted';
    if (!(error instanceof ApiFault)) throw error;
    if (endsSession(error)) throw rejectionOf(error);
    return error.message;
  }
}

function rangeDifference({ deviceId, range }: Drawn, { missing, notServed }: Compared): RangeDifference {
  return { device_id: deviceId, from: formatExact(range.from), to: formatExact(range.to), missing, gone: notServed };
}

interface Audit {
  readonly drawn: Drawn;
  readonly args: SampleArgs;
  readonly sums: { readings: number; requests: number; late_readings: number };
}

/** Returns `null` if the range could not be read to its end. */
async function auditRange(
  { context, state }: SampleParts,
  { drawn: { deviceId, range, isSum }, args, sums }: Audit,
  signal: AbortSignal,
): Promise<Compared | null> {
  const { filter } = context.settings;
  const stored = context.store.stored(deviceId, maxNs(range.from - MAX_OFFSET_NS, 0n), range.to + MAX_OFFSET_NS);
  const day = Number(range.from / DAY_NS);
  const archived = state.days(deviceId, day, day + 1)[0] ?? { points: 0, hashHigh: 0, hashLow: 0 };
  const served: ValueSet = new Set();
  const instants = new Set<EpochNs>();
  const isRead = await rereadRange(
    context,
    {
      deviceId,
      range,
      take: ({ reply, readings }) => {
        sums.requests += 1;
        for (const reading of readings) {
          if (reading.recordedAt < range.from || reading.recordedAt >= range.to) continue;
          instants.add(reading.recordedAt);
          addReading(served, reading, filter);
        }
        if (args.repair)
          sums.late_readings += commitJudged(context, {
            deviceId,
            lane: 'idle-poll',
            reply,
            readings,
            covers: null,
          }).newReadings;
      },
    },
    signal,
  );
  if (!isRead) return null;
  sums.readings += instants.size;
  if (isSum) return compareSum(served, archived, stored.offsets);
  const { values, at } = collectValues(stored.lines, { offsets: stored.offsets, filter });
  const own = new Set([...values].filter((key) => at(key) >= range.from && at(key) < range.to));
  return compareValues(served, own);
}

const NOT_COMPARABLE =
  'no reading of this range can be compared (ranges that the archive has removed can be compared only by whole days, and readings older than the plan serves not at all)';

/** A range takes several requests, which may wait for their turn while the plan's age limit moves on. */
const REQUEST_MARGIN_NS = HOUR_NS;

/** The time from which the API surely returns its readings. If older readings are missing, that proves nothing. */
function shownFrom(context: SyncContext): EpochNs {
  const edge = planEdge(windowRules(createLearntWindows(context)));
  return edge === null ? 0n : maxNs(edge + REQUEST_MARGIN_NS, 0n);
}

/** How often another range is drawn if nothing can be compared. */
const DRAWS = 200;

/** Half of the length of a range whose lines the archive still has: about a page. */
const HALF_NS = HOUR_NS / 2n;

/**
 * Draws a device with covered time in the range, and a covered instant.
 *
 * @returns `null` if there is none.
 */
function draw({ context, state }: SampleParts, { devices, from, to }: SampleArgs): Drawn | null {
  const { random } = context;
  const ids = devices.length > 0 ? devices : state.deviceIds();
  const range = { from: maxNs(BigInt(from ?? '0'), shownFrom(context)), to: to === null ? 2n ** 63n - 1n : BigInt(to) };
  if (range.from >= range.to) return null;
  for (let nth = 0; nth < DRAWS && ids.length > 0; nth += 1) {
    const deviceId = ids[Math.floor(random() * ids.length)] ?? '';
    const covered = intersect(state.covered(deviceId), [range]);
    const at = instantIn(covered, random());
    const around = at === null ? undefined : covered.find((each) => each.from <= at && at < each.to);
    const drawn = at === null || around === undefined ? null : rangeAround(context, { deviceId, at, covered: around });
    if (drawn !== null) return drawn;
  }
  return null;
}

/** The range around a covered instant: its archived part, or the whole day if the archive was cleared there. */
function rangeAround(
  { store, filterNotes }: SyncContext,
  { deviceId, at, covered }: { readonly deviceId: string; readonly at: EpochNs; readonly covered: Interval },
): Drawn | null {
  const cleared = store.cleared(deviceId, covered.from, covered.to);
  if (!includes(cleared, at)) {
    const range = { from: maxNs(covered.from, at - HALF_NS), to: minNs(covered.to, at + HALF_NS) };
    const archived = subtract([range], cleared).find((each) => each.from <= at && at < each.to);
    return archived === undefined ? null : { deviceId, range: archived, isSum: false };
  }
  const day = { from: at - (at % DAY_NS), to: at - (at % DAY_NS) + DAY_NS };
  const isWhole = covered.from <= day.from && day.to <= covered.to;
  return isWhole && !filterNotes.touchesSensors ? { deviceId, range: day, isSum: true } : null;
}

/**
 * The instant at a part of the covered time.
 *
 * @param part 0 to 1 of all covered time.
 */
function instantIn(covered: readonly Interval[], part: number): EpochNs | null {
  let left = (lengthNs(covered) * BigInt(Math.floor(part * 1e6))) / 1_000_000n;
  for (const { from, to } of covered) {
    if (left < to - from) return from + left;
    left -= to - from;
  }
  return null;
}

/** Values by instant, sensor and value. */
type ValueSet = Set<string>;

/** Adds the values of a reading, without those of excluded sensors. */
function addReading(values: ValueSet, reading: Reading, filter: Pick<DeviceFilter, 'includesSensor'>): void {
  for (const { sensor, field, value } of flattenReading(filterReading(filter, reading)).values) {
    const text = encodeFieldValue(value);
    if (text !== null) values.add(valueKey(reading.recordedAt, identityTag(sensor), `${field}=${text}`));
  }
}

/** The values of archived lines, each at the instant when it was recorded. */
function collectValues(
  lines: readonly string[],
  {
    offsets,
    filter,
  }: { readonly offsets: readonly TimestampOffset[]; readonly filter: Pick<DeviceFilter, 'includesSensor'> },
): { readonly values: ValueSet; readonly at: (key: string) => EpochNs } {
  const recorded = new Map(
    offsets.map((offset) => [`${offset.writtenNs} ${offset.sensor} ${offset.field}`, offset.recordedNs]),
  );
  const values: ValueSet = new Set();
  for (const line of lines) {
    if (!isTelemetryLine(line)) continue;
    const { tags, fields, at } = readLine(line);
    const sensor = tags.find(([name]) => name === 'sensor')?.[1] ?? '';
    const [name = '', raw = ''] = fields[0] ?? [];
    const field = `${name}=${raw}`;
    if (filter.includesSensor(sensor))
      values.add(valueKey(recorded.get(`${at} ${sensor} ${field}`) ?? at, sensor, field));
  }
  return { values, at: (key) => BigInt(key.slice(0, key.indexOf(' '))) };
}

const valueKey = (at: EpochNs, sensor: string, field: string): string => pointIdentity(`${at}`, sensor, field);

interface Compared {
  /** Values that the API serves and the archive does not have. */
  readonly missing: number;
  /** Values that the archive has and the API does not serve. */
  readonly notServed: number;
}

/** Counts the values that one side has and the other does not. */
function compareValues(served: ValueSet, stored: ValueSet): Compared {
  const countMissing = (from: ValueSet, expected: ValueSet): number =>
    [...expected].filter((key) => !from.has(key)).length;
  return { missing: countMissing(stored, served), notServed: countMissing(served, stored) };
}

/** Compares a whole day with only its sum; returns a lower bound of the differences. */
function compareSum(served: ValueSet, archived: PointSum, offsets: readonly TimestampOffset[]): Compared {
  const written = new Map(
    offsets.map((offset) => [valueKey(offset.recordedNs, offset.sensor, offset.field), offset.writtenNs]),
  );
  const sum = emptySum();
  for (const key of served) {
    const at = written.get(key);
    addPoint(sum, at === undefined ? key : `${at}${key.slice(key.indexOf(' '))}`);
  }
  if (isSameSum(sum, archived)) return { missing: 0, notServed: 0 };
  const more = sum.points - archived.points;
  return more === 0 ? { missing: 1, notServed: 1 } : { missing: Math.max(0, more), notServed: Math.max(0, -more) };
}

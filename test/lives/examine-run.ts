/**
 * A run that has come to its end by itself (`--once`), against the truth: the promised readings are there, gaps are
 * named, nothing is invented, the hours are counted right; and at the end of a story, everything is complete.
 */
import type { Sync } from '../../src/app/open-sync.ts';
import type { OnceSummary } from '../../src/commands/once/result.ts';
import { DAY_MS, type EpochNs, HOUR_MS, HOUR_NS, MINUTE_MS, parseTimestamp } from '../../src/core/time.ts';
import type { SimReading } from '../../src/sim/spec.ts';
import type { Simulator } from '../support/faulty-simulator.ts';
import type { Row } from '../support/influxd.ts';
import { judgeSeries, type Place, type Span, type StoredSeries, textsOf, type Verdict } from '../support/judge.ts';
import type { DeviceSpec } from '../support/trait-world.ts';
import { excuseOf } from './claims.ts';
import type { LineStore } from './line-store.ts';
import type { Stage } from './stage.ts';
import type { Life } from './story.ts';
import { isLate } from './truth.ts';

/** The result of a run, and when, by the clock of the story. */
export interface Lived {
  readonly life: Life;
  readonly summary: OnceSummary;
  readonly startedMs: number;
  /** The earliest time of the first coverage; `null` where the time was never known. */
  readonly passedAtMs: number | null;
  /** When the first page was committed: the wanted range had been fixed by then. */
  readonly committedAtMs: number;
  readonly endedAtMs: number;
  readonly requests: number;
}

/** @returns what is wrong. */
export function examineRun(stage: Stage, sync: Sync, lived: Lived): string[] {
  const { summary, life } = lived;
  const passedAtMs = lived.passedAtMs ?? lived.endedAtMs;
  const isLast = life === stage.story.lives.at(-1);
  const wrong = isLast ? examineEnd(stage, lived) : [];
  const isDelivered = summary.destinations.every(({ pending_points }) => pending_points === 0);
  if (!isDelivered) return wrong;
  const span = lived.passedAtMs === null ? NOTHING : spanOf(stage, { ...lived, passedAtMs });
  const listedAtMs = passedAtMs + stage.simulator.settings.time.offsetMs;
  const judged = { span, listedAtMs, verdict: judge(stage) };
  wrong.push(...examineReadings(stage, sync, lived, judged));
  if (isLast && summary.exit_code === 0) wrong.push(...examineHours(stage, lived, judged));
  return wrong;
}

/** Where the time is not known, no gap can be named. */
const NOTHING: Span = { fromNs: 0n, toNs: 0n };

/** The end of the last life, which had no fault. */
function examineEnd(stage: Stage, { summary, requests }: Lived): string[] {
  const wrong: string[] = [];
  const { simulator, story } = stage;
  const { historyMaxDays, maxDevicesPerPage } = simulator.settings.plan;
  const reasons = new Set(summary.gaps.map(({ reason }) => reason));
  if (summary.exit_code !== 0 && !(summary.exit_code === 1 && mayBeHidden(stage))) {
    wrong.push(`exit ${summary.exit_code} (${summary.outcome}), gaps ${JSON.stringify(summary.gaps).slice(0, 500)}`);
  }
  reasons.delete('device_gone');
  if (summary.exit_code === 1) reasons.delete('beyond_plan');
  if (reasons.size > 0) {
    wrong.push(`gaps on exit ${summary.exit_code}: ${[...reasons].join()}`);
  }
  const nowNs = BigInt(Math.floor(simulator.serverNowMs())) * 1_000_000n;
  const fromNs = nowNs - BigInt(story.program.historyMs) * 1_000_000n - HOUR_NS;
  const readings = story.devices.reduce(
    (sum, { spec }) => sum + [...simulator.world.readings(spec.deviceId, fromNs, nowNs)].length,
    0,
  );
  const windows = Math.ceil(story.program.historyMs / ((historyMaxDays ?? Infinity) * DAY_MS - HOUR_MS)) + 3;
  const alerts = [...simulator.world.alerts(simulator.worldNowMs())].length;
  // A page has one that was there before, at least.
  const most = 10 + story.devices.length * (2 + windows * 4) + ((readings + alerts) / (maxDevicesPerPage - 1)) * 2.5;
  if (requests > most) wrong.push(`${requests} requests, at most ${Math.ceil(most)} expected (${readings} readings)`);
  return wrong;
}

interface Judged {
  readonly span: Span;
  /** When the devices were listed, by the service's clock: what came later is not known. */
  readonly listedAtMs: number;
  /** The database against the truth. */
  readonly verdict: Verdict;
}

/** Readings that are missing although they are covered or though no gap names them, and points that nothing explains. */
function examineReadings(stage: Stage, sync: Sync, lived: Lived, { span, listedAtMs, verdict }: Judged): string[] {
  const { simulator } = stage;
  const { summary } = lived;
  const { world } = simulator;
  const isShown = showsBy(stage, lived);
  const isExcused = excuseOf(stage, summary.exit_code !== 3);
  const { store } = sync.context;
  const covered = new Map(
    store.devices().map(({ record }) => [record.deviceId, store.telemetry(record.deviceId).covered] as const),
  );
  const gaps = summary.gaps.map(({ device_id, from, to }) => ({
    deviceId: device_id,
    from: parseTimestamp(from) ?? 0n,
    to: parseTimestamp(to) ?? 0n,
  }));
  const isIn = ({ from, to }: { from: bigint; to: bigint }, at: bigint): boolean => from <= at && at < to;
  const isClaimed = ({ deviceId, at }: Place): boolean =>
    covered.get(deviceId)?.some((range) => isIn(range, at)) === true;
  const isOff = summary.streams_off.includes('telemetry');
  const isUnnamed = ({ deviceId, at }: Place): boolean => {
    if (isOff) return false;
    if (!isIn({ from: span.fromNs, to: span.toNs }, at)) return false;
    // A device that was never listed cannot be known, let alone be named.
    if (!covered.has(deviceId) && (summary.exit_code !== 0 || !simulator.world.has(deviceId, listedAtMs))) return false;
    return !gaps.some((gap) => gap.deviceId === deviceId && isIn(gap, at));
  };
  // Most of what is missing is not promised: so only the rest is checked for excuses.
  const mayNotBe = ({ deviceId, at }: Place): boolean =>
    isShown(deviceId, at) && ![...world.readings(deviceId, at, at + 1n)].some((each) => isExcused(deviceId, each));
  const missing = verdict.missingAt.map((place, index) => ({ ...place, text: verdict.missing[index] ?? '' }));
  const claimed = missing.filter((each) => isClaimed(each) && mayNotBe(each));
  const unnamed = missing.filter((each) => isUnnamed(each) && mayNotBe(each));
  const some = (label: string, texts: readonly string[]): string[] => {
    const first = texts.slice(0, 3).join(' | ').slice(0, 300);
    return texts.length === 0 ? [] : [`${texts.length} ${label} (exit ${summary.exit_code}), such as ${first}`];
  };
  const textOf = ({ text }: { text: string }): string => text;
  return [
    ...some('missing and covered', claimed.map(textOf)),
    ...some('missing and not named', unnamed.map(textOf)),
    ...some('invented', verdict.invented),
  ];
}

/** The database against the truth, of all devices and times. */
function judge({ story, simulator, database }: Stage): Verdict {
  const ids = story.devices.map(({ spec }) => spec.deviceId);
  return judgeSeries({ stored: storedSeries(database()), simulator }, { fromNs: 0n, toNs: 2n ** 63n }, ids);
}

/**
 * Whether a run could have the readings of an instant: they are shown by now, and those that were late at its start.
 * One that was broken off need not have looked.
 */
function showsBy(
  { simulator, story }: Stage,
  { startedMs, summary }: Lived,
): (deviceId: string, at: EpochNs) => boolean {
  const { world, settings } = simulator;
  const startMs = summary.exit_code === 3 ? Number.NEGATIVE_INFINITY : startedMs + settings.time.offsetMs;
  return (deviceId, at) =>
    [...world.readings(deviceId, at, at + 1n)].every((reading) => {
      if (!isLate(reading, story.program.gracePeriodMs)) return simulator.isVisible(deviceId, reading);
      // The earlier readings of a device that has left by then are unknown.
      return simulator.isVisible(deviceId, reading, startMs) && world.has(deviceId, startMs);
    });
}

/** The telemetry of a database, in the judge's form. */
export function storedSeries(store: LineStore): Map<string, StoredSeries> {
  const stored = new Map<string, StoredSeries>();
  for (const [sensor, all] of store.telemetry()) {
    const series: StoredSeries = new Map();
    stored.set(sensor, series);
    for (const [time, fields] of all.flatMap((points) => [...points])) {
      const at = BigInt(time);
      for (const text of textsOf(fields)) {
        if (series.has(at)) throw new Error('two values of one series at one time');
        series.set(at, text);
      }
    }
  }
  return stored;
}

/** The points of a measurement as rows. */
function rowsOf(store: LineStore, measurement: string): Row[] {
  return store.points(measurement).map(({ at, tags, fields }) => ({
    ...Object.fromEntries(tags),
    ...Object.fromEntries(fields),
    time: at,
  }));
}

/** The points of `coverage_hour`: every whole hour that was promised has exactly one, with the readings of the truth. */
function examineHours(stage: Stage, lived: Lived, judged: Judged): string[] {
  const { simulator, story, database } = stage;
  const rows = rowsOf(database(), 'coverage_hour');
  const ahead = story.misfortunes.filter(({ what }) => what.kind === 'server clock' && what.byMs > 0);
  const aheadMs = ahead.reduce((sum, { what }) => sum + ('byMs' in what ? what.byMs : 0), HOUR_MS);
  const isFromAhead = (hour: EpochNs): boolean => {
    const atMs = Number(hour / 1_000_000n);
    return ahead.some(({ fromMs, toMs }) => fromMs - HOUR_MS <= atMs && atMs < toMs + aheadMs);
  };
  const isShown = showsBy(stage, lived);
  const isExcused = excuseOf(stage, true);
  const lacking = new Set(judged.verdict.missingAt.map(({ deviceId, at }) => `${deviceId} ${at}`));
  const isCounted = (deviceId: string, reading: SimReading): boolean =>
    isShown(deviceId, reading.recordedAtNs) &&
    !(lacking.has(`${deviceId} ${reading.recordedAtNs}`) && isExcused(deviceId, reading));
  const hours = { simulator, ...judged, rows, isCounted, isFromAhead };
  return story.devices.flatMap(({ spec }) => examineHoursOf(hours, spec)).slice(0, 5);
}

interface Hours extends Judged {
  readonly simulator: Simulator;
  readonly rows: readonly Row[];
  /** Whether a reading is counted: one that is missing, and may be, is not. */
  readonly isCounted: (deviceId: string, reading: SimReading) => boolean;
  /** Whether an hour may have been written by a clock that was ahead, under the name that the device had then. */
  readonly isFromAhead: (hour: EpochNs) => boolean;
}

function examineHoursOf(
  { simulator, span, listedAtMs, rows, isCounted, isFromAhead }: Hours,
  device: DeviceSpec,
): string[] {
  const { deviceId } = device;
  const { written, twice } = hoursWritten(rows, deviceId);
  const wrong = [...twice].filter((at) => !isFromAhead(at)).map((at) => `two hours ${at} of ${deviceId}`);
  // No hour of a device that was away is promised.
  if (device.vanishesAtMs !== undefined || !simulator.world.has(deviceId, listedAtMs)) return wrong;
  const first = (span.fromNs + HOUR_NS - 1n) / HOUR_NS;
  for (let hour = first * HOUR_NS; hour + HOUR_NS <= span.toNs; hour += HOUR_NS) {
    const all = [...simulator.world.readings(deviceId, hour, hour + HOUR_NS)];
    const seed = all.filter((reading) => isCounted(deviceId, reading)).length;
    const count = written.get(hour);
    if (count === undefined) wrong.push(`hour ${hour} of ${deviceId} has no point`);
    else if (!twice.has(hour) && isCountable(simulator, device) && count !== seed) {
      wrong.push(`hour ${hour} of ${deviceId}: ${count} for ${seed}`);
    }
  }
  return wrong;
}

/** The counts of the hours of a device, and the hours that have several. */
function hoursWritten(rows: readonly Row[], deviceId: string): { written: Map<EpochNs, number>; twice: Set<EpochNs> } {
  const written = new Map<EpochNs, number>();
  const twice = new Set<EpochNs>();
  for (const { device_id, time, readings } of rows) {
    if (device_id !== deviceId) continue;
    const at = BigInt(time ?? 0);
    if (written.has(at)) twice.add(at);
    written.set(at, Number(readings));
  }
  return { written, twice };
}

/** Whether every reading is one by itself: ties may be counted in more than one way, and empty ones not at all. */
function isCountable({ world }: Simulator, { traits = [] }: DeviceSpec): boolean {
  return world.precision !== 's' && traits.every((trait) => trait === 'hostile');
}

/** Whether the plan may hide a part of what a run wants. Without `Date` the span is counted from an old reading maybe. */
function mayBeHidden({ simulator, story }: Stage): boolean {
  const { time, plan } = simulator.settings;
  if (plan.historyMaxDays === null) return false;
  return time.date === 'absent' || story.program.historyMs >= plan.historyMaxDays * DAY_MS - 10 * MINUTE_MS;
}

/**
 * The range that the run promised, at its smallest: from its latest possible beginning to its earliest possible end.
 */
function spanOf(stage: Stage, lived: Lived & { readonly passedAtMs: number }): Span {
  const { simulator, story } = stage;
  const { time } = simulator.settings;
  const { historyMs, gracePeriodMs } = story.program;
  const toNs = (ms: number): bigint => BigInt(Math.floor(ms)) * 1_000_000n;
  // Without `Date` the span is fixed after a look at the readings, of which the first may have committed.
  const fixedAtMs = time.date === 'absent' ? lived.committedAtMs : lived.passedAtMs;
  // Readings that the plan hides, or that have left the wanted range by the end of the run, are not missed.
  const beginMs = mayBeHidden(stage) ? Math.max(fixedAtMs, lived.endedAtMs + 12_000) : fixedAtMs;
  // A run that has trusted a clock that was ahead has an earlier wanted range.
  const fromMs = beginMs + time.offsetMs + aheadMs(stage, lived) - historyMs + 1000;
  const serverMs = Math.floor(lived.passedAtMs + time.offsetMs);
  // Without `Date`, a time later than the local clock's is no evidence that it has passed.
  const passedMs =
    time.date === 'absent'
      ? Math.min(oldestNewestMs(stage, serverMs), lived.passedAtMs + clockErrorMs(stage, 'local clock', lived))
      : serverMs + time.dateSkewMs + Math.min(0, clockErrorMs(stage, 'server clock', lived));
  return { fromNs: toNs(fromMs), toNs: toNs(passedMs - gracePeriodMs - 7500) };
}

/** By how much a clock was wrong when the time was learnt: the answers of a minute before may have counted. */
function clockErrorMs(
  { story }: Stage,
  kind: 'local clock' | 'server clock',
  { passedAtMs }: { readonly passedAtMs: number },
): number {
  return story.misfortunes.reduce(
    (sum, { what, fromMs, toMs }) =>
      (what.kind === kind || (kind === 'server clock' && what.kind === 'server clock and stamps')) &&
      fromMs <= passedAtMs &&
      passedAtMs < toMs + MINUTE_MS
        ? sum + what.byMs
        : sum,
    0,
  );
}

function aheadMs(stage: Stage, lived: { readonly passedAtMs: number }): number {
  return Math.max(0, clockErrorMs(stage, 'server clock', lived));
}

/** The newest reading of the device that has been silent the longest: any of them may have been the clock. */
export function oldestNewestMs({ story, simulator }: Stage, serverMs: number): number {
  const { world, settings } = simulator;
  const newest = story.devices.flatMap(({ spec: { deviceId } }) => {
    if (!world.has(deviceId, serverMs)) return [];
    const end = BigInt(serverMs - settings.lateness.maxMs) * 1_000_000n;
    // A reading older than the widest window is not among the newest that the service shows.
    const days = settings.plan.historyMaxDays;
    const fromNs = days === null ? 0n : BigInt(serverMs - days * DAY_MS) * 1_000_000n;
    for (const { recordedAtNs } of world.readingsDescending(deviceId, { fromNs, toNs: end })) {
      return [Number(recordedAtNs / 1_000_000n)];
    }
    return [];
  });
  return newest.length === 0 ? 0 : Math.min(...newest);
}

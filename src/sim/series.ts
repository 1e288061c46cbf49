/**
 * The readings of one device, computed where they are asked for.
 *
 * Report `index` happens at `startMs + index × intervalMs`, moved by up to the jitter; so the way from a time to an
 * index is a division and a step or two, and a page of last year costs as much as a page of today. Raw times ascend
 * strictly; cut to the served precision they may be equal, and then `position` keeps them apart.
 */
import type { EpochMs, EpochNs } from '../core/time.ts';
import {
  ceilToPrecision,
  formatInstant,
  type Instant,
  instantToNs,
  nsToInstant,
  type Precision,
  truncate,
} from './instants.ts';
import { mix, type Seed, unit } from './random.ts';
import type { MsSpan, ReadingSpec, SimReading, SimValue } from './spec.ts';

/** A stretch of a series: half-open, and below a position where one is given. */
export interface Stretch {
  readonly fromNs: EpochNs;
  readonly toNs: EpochNs;
  readonly belowPosition?: number;
  /** Where it is known that nothing later than this matters: readings of a grid that come later are not computed. */
  readonly receivedByMs?: EpochMs;
}

/** All readings of a device, for ever. */
export interface Series {
  /** Oldest first. */
  ascending(fromNs: EpochNs, toNs: EpochNs): Iterable<SimReading>;
  /** Newest first, beginning anywhere for the same small cost. */
  descending(stretch: Stretch): Iterable<SimReading>;
}

export interface SeriesModel {
  readonly seed: Seed;
  readonly startMs: EpochMs;
  readonly intervalMs: number;
  readonly jitter: number;
  /** When the device reports nothing; ascending and disjoint. */
  readonly quiet: readonly MsSpan[];
  readonly precision: Precision;
  /** The values of each reading of one report, at least one reading. */
  readonly report: (index: number, atMs: EpochMs) => readonly (readonly SimValue[] | null)[];
}

/** More readings than any report has. */
const REPORT_SIZE = 65_536;

/** The series of a device that reports on a grid. */
export function createSeries(model: SeriesModel): Series {
  return {
    *ascending(fromNs, toNs) {
      const end = firstAtOrAfter(model, toNs);
      let index = firstAtOrAfter(model, fromNs);
      while (index < end) {
        const quiet = quietAt(model, index);
        if (quiet === null) yield* readingsOf(model, index);
        index = quiet === null ? index + 1 : firstAfter(model, quiet, end);
      }
    },
    *descending({ fromNs, toNs, belowPosition = Infinity, receivedByMs }) {
      const begin = firstAtOrAfter(model, fromNs);
      const received = receivedByMs === undefined ? Infinity : firstAtOrAfter(model, msBound(receivedByMs + 1), 'raw');
      let index = Math.min(
        firstAtOrAfter(model, toNs) - 1,
        received - 1,
        Math.floor((belowPosition - 1) / REPORT_SIZE),
      );
      while (index >= begin) {
        const quiet = quietAt(model, index);
        if (quiet === null) {
          yield* readingsOf(model, index)
            .filter(({ position }) => position < belowPosition)
            .reverse();
        }
        index = quiet === null ? index - 1 : lastBefore(model, quiet);
      }
    },
  };
}

/** The first report after a quiet span, or `end`. */
function firstAfter(model: SeriesModel, { toMs }: MsSpan, end: number): number {
  return toMs === Infinity ? end : firstAtOrAfter(model, msBound(toMs), 'raw');
}

/** The last report before a quiet span; negative where there is none. */
function lastBefore(model: SeriesModel, { fromMs }: MsSpan): number {
  return fromMs === -Infinity ? -1 : firstAtOrAfter(model, msBound(fromMs), 'raw') - 1;
}

function msBound(ms: EpochMs): EpochNs {
  return instantToNs({ ms: Math.ceil(ms), subNs: 0 });
}

/** When report `index` really happens, before its digits are cut. Strictly ascending with `index`. */
function rawInstant({ seed, startMs, intervalMs, jitter }: SeriesModel, index: number): Instant {
  const nominalMs = startMs + index * intervalMs;
  if (jitter === 0) return { ms: nominalMs, subNs: 0 };
  const here = mix(seed, index);
  const spanMs = Math.min(Math.floor(jitter * intervalMs), intervalMs - 1);
  return {
    ms: nominalMs + Math.floor(unit(here) * spanMs),
    subNs: Math.floor(unit(mix(here, 1)) * 1_000_000),
  };
}

/**
 * The first report that is served with a time not before `ns`. A time cut to a precision is at or after `ns` exactly
 * when the raw one is at or after the next instant that the precision can tell. `raw` compares raw times.
 */
function firstAtOrAfter(model: SeriesModel, ns: EpochNs, times: 'served' | 'raw' = 'served'): number {
  const bound = nsToInstant(times === 'raw' ? ns : ceilToPrecision(ns, model.precision));
  let index = Math.max(0, Math.floor((bound.ms - model.startMs) / model.intervalMs) - 1);
  for (;;) {
    const at = rawInstant(model, index);
    if (at.ms > bound.ms || (at.ms === bound.ms && at.subNs >= bound.subNs)) return index;
    index += 1;
  }
}

/** The quiet span in which report `index` falls out. */
function quietAt(model: SeriesModel, index: number): MsSpan | null {
  if (model.quiet.length === 0) return null;
  const { ms } = rawInstant(model, index);
  for (const span of model.quiet) {
    if (ms < span.fromMs) return null;
    if (ms < span.toMs) return span;
  }
  return null;
}

function readingsOf(model: SeriesModel, index: number): SimReading[] {
  const raw = rawInstant(model, index);
  const served = truncate(raw, model.precision);
  const recordedAtNs = instantToNs(served);
  const recordedAt = formatInstant(served, model.precision);
  const visibleAtMs = raw.subNs === 0 ? raw.ms : raw.ms + 1;
  const first = index * REPORT_SIZE;
  return model
    .report(index, raw.ms)
    .map((values, sub) => ({ position: first + sub, recordedAtNs, recordedAt, visibleAtMs, values }));
}

/** The series of a device whose readings were written down, in the order of their times, ties as they were listed. */
export function listSeries(specs: readonly ReadingSpec[], precision: Precision): Series {
  const readings = specs
    .map(({ recordedAtNs, values, visibleAtMs }) => {
      const served = truncate(nsToInstant(recordedAtNs), precision);
      return {
        recordedAtNs: instantToNs(served),
        recordedAt: formatInstant(served, precision),
        visibleAtMs: visibleAtMs ?? nsToInstant(recordedAtNs + 999_999n).ms,
        values,
      };
    })
    .sort((a, b) => (a.recordedAtNs < b.recordedAtNs ? -1 : Number(a.recordedAtNs > b.recordedAtNs)))
    .map((reading, position) => ({ position, ...reading }));
  const within = (fromNs: EpochNs, toNs: EpochNs): SimReading[] =>
    readings.filter((reading) => reading.recordedAtNs >= fromNs && reading.recordedAtNs < toNs);
  return {
    ascending: within,
    descending: ({ fromNs, toNs, belowPosition = Infinity }) =>
      within(fromNs, toNs)
        .filter(({ position }) => position < belowPosition)
        .reverse(),
  };
}

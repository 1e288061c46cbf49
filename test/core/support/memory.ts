/**
 * The store of page commits in its simplest form: blocks of lines, duplicate timestamps and the state of one device. It
 * returns the stored data around a range as the store's port promises, in complete blocks.
 */

import type { CoveredRange } from '../../../src/core/coverage.ts';
import type { DeviceFilter } from '../../../src/core/filter.ts';
import { MAX_OFFSET_NS } from '../../../src/core/lines/offsets.ts';
import type { Reading, RejectedRecord } from '../../../src/core/records.ts';
import {
  type DaySum,
  type NameRecord,
  NEVER_LATE,
  type PageCommit,
  type TelemetryState,
  type TimestampOffset,
} from '../../../src/core/state/telemetry.ts';
import type { EpochNs } from '../../../src/core/time.ts';
import { composeCommit, extentOf } from '../../../src/ingest/commit-rules.ts';

/** A page to commit: its readings newest first, and what it proves. */
export interface MemoryPage {
  readonly readings: readonly Reading[];
  readonly covers?: CoveredRange | null;
  readonly rejected?: readonly RejectedRecord[];
  readonly filter?: Pick<DeviceFilter, 'includesSensor' | 'wasLeftOut'>;
  /** The server's time of the answer. */
  readonly answeredAtMs?: number;
}

export interface Memory {
  /** Computes what a page changes, without keeping it. */
  compose(page: MemoryPage): PageCommit;
  /** Computes and keeps it. */
  commit(page: MemoryPage): PageCommit;
  state(): TelemetryState;
  rename(names: readonly NameRecord[]): void;
  /** All telemetry lines, in the order of pageCommit. */
  lines(): readonly string[];
  /** All other lines. */
  sideLines(): readonly string[];
  offsets(): readonly TimestampOffset[];
  /** Sums by day, ascending. */
  daySums(): readonly DaySum[];
}

interface Block {
  readonly firstNs: EpochNs;
  readonly lastNs: EpochNs;
  readonly lines: readonly string[];
}

export function createMemory(names: readonly NameRecord[] = [{ fromNs: 0n, name: 'Pump' }]): Memory {
  const blocks: Block[] = [];
  const pageCommits: PageCommit[] = [];
  let state: TelemetryState = {
    deviceId: 'd1',
    revision: 0,
    covered: [],
    names,
    hourReadings: new Map(),
    hoursWritten: [],
    late: NEVER_LATE,
    lastPage: [],
  };
  const offsets = (): readonly TimestampOffset[] => pageCommits.flatMap((pageCommit) => pageCommit.offsets);
  const stored = (from: EpochNs, to: EpochNs): { lines: readonly string[]; offsets: readonly TimestampOffset[] } => {
    const within = (at: EpochNs): boolean => from <= at && at <= to;
    return {
      lines: blocks.filter(({ firstNs, lastNs }) => firstNs <= to && lastNs >= from).flatMap(({ lines }) => lines),
      offsets: offsets().filter(({ recordedNs, writtenNs }) => within(recordedNs) || within(writtenNs)),
    };
  };
  const compose = ({
    readings,
    covers = null,
    rejected = [],
    answeredAtMs = 1_768_478_400_000,
    filter,
  }: MemoryPage): PageCommit => {
    const extent = extentOf(readings);
    return composeCommit({
      state,
      workspaceId: 'w1',
      lane: 'live',
      requestId: 7,
      answeredAtMs,
      readings,
      rejected,
      stored:
        extent === null ? { lines: [], offsets: [] } : stored(extent.from - MAX_OFFSET_NS, extent.to + MAX_OFFSET_NS),
      covers,
      ...(filter === undefined ? {} : { filter }),
      gracePeriodMs: 120_000,
      storedAt: ({ from, to }) => stored(from, to),
    });
  };
  const keep = (pageCommit: PageCommit): void => {
    pageCommits.push(pageCommit);
    const { firstNs, lastNs, lines, sideLines, covered, hourReadings, hoursWritten } = pageCommit;
    if (firstNs !== null && lastNs !== null) blocks.push({ firstNs, lastNs, lines: [...lines, ...sideLines] });
    state = {
      ...state,
      revision: state.revision + 1,
      covered,
      hourReadings,
      hoursWritten,
      late: pageCommit.late?.record ?? state.late,
    };
  };
  return {
    compose,
    commit: (page) => {
      const pageCommit = compose(page);
      keep(pageCommit);
      return pageCommit;
    },
    state: () => state,
    rename: (renamed) => {
      state = { ...state, names: renamed };
    },
    lines: () => pageCommits.flatMap(({ lines }) => lines),
    sideLines: () => pageCommits.flatMap(({ sideLines }) => sideLines),
    offsets,
    daySums: () => sumDays(pageCommits.flatMap(({ daySums }) => daySums)),
  };
}

/** Adds sums of the same day, as the store does. */
export function sumDays(sums: readonly DaySum[]): readonly DaySum[] {
  const days = new Map<number, DaySum>();
  for (const sum of sums) {
    const before = days.get(sum.day);
    days.set(sum.day, before === undefined ? sum : addSums(before, sum));
  }
  return [...days.values()].sort((a, b) => a.day - b.day);
}

function addSums(a: DaySum, b: DaySum): DaySum {
  return {
    day: a.day,
    readings: a.readings + b.readings,
    points: a.points + b.points,
    hashHigh: (a.hashHigh + b.hashHigh) % 2 ** 32,
    hashLow: (a.hashLow + b.hashLow) % 2 ** 32,
  };
}

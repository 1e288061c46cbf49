/**
 * The facts of the status page over a real state, at a time that a test sets; every look that is dear is counted.
 */

import { createFilter, type FilterSpec } from '../../../src/core/filter.ts';
import { descriptiveTag, encodeTagValue, identityTag } from '../../../src/core/lines/line-protocol.ts';
import type { DeviceRow, DevicesPage, DevicesQuery, PageFacts } from '../../../src/core/page-facts.ts';
import type { DeviceRecord } from '../../../src/core/records.ts';
import { DAY_MS, type EpochMs, MINUTE_MS, msToNs } from '../../../src/core/time.ts';
import { createPageFacts, type PageParts } from '../../../src/report/page-facts.ts';
import { device, pageCommit, type ScratchStore } from '../../store/support.ts';
import { KEEP_ALL, POLLS, SCHEDULES } from '../../support/defaults.ts';

export const ALL: DevicesQuery = { search: '', state: null, sort: 'name', reversed: false, page: 1 };

export interface PageState {
  readonly facts: PageFacts;
  /** The number of calls of the state, by name. */
  readonly asked: ReadonlyMap<string, number>;
  devices(changes?: Partial<DevicesQuery>): DevicesPage;
  row(deviceId: string): DeviceRow;
}

export interface PageOptions {
  readonly nowMs: () => EpochMs;
  readonly filter?: Partial<FilterSpec>;
  readonly fleet?: PageParts['fleet'];
  readonly clock?: PageParts['clock'];
  /** Whether the API has sent the time. */
  readonly isTimeKnown?: boolean;
  /** Other parts than those of a daemon that runs and has no problem. */
  readonly parts?: Partial<PageParts>;
}

const GRACE_PERIOD_MS = 2 * MINUTE_MS;

/** The parts over a state, without anything that runs beside it. */
export function pagePartsOf(
  state: Pick<ScratchStore, 'store' | 'facts'>,
  options: PageOptions,
  asked = new Map<string, number>(),
): PageParts {
  const { nowMs, filter = {}, isTimeKnown = true, parts = {} } = options;
  const counted = <T extends object>(calls: T): T =>
    new Proxy(calls, {
      get: (target, name) => {
        asked.set(String(name), (asked.get(String(name)) ?? 0) + 1);
        return Reflect.get(target, name);
      },
    });
  const known = (): EpochMs | null => (isTimeKnown ? nowMs() : null);
  return {
    context: {
      store: counted(state.store),
      serverClock: { nowMs, highestPassedMs: known, passedMs: known },
      settings: {
        history: { kind: 'age', ageMs: 40 * DAY_MS },
        gracePeriodMs: GRACE_PERIOD_MS,
        schedules: SCHEDULES,
        filter: createFilter({ ...KEEP_ALL.spec, ...filter }),
      },
      nextReadingMs: () => null,
    },
    facts: counted(state.facts),
    historyEta: () => null,
    deliverers: [],
    quota: () => ({
      share: 0.8,
      minute: { limit: null, budget: null, spent: 0 },
      day: { limit: null, budget: null, spent: 0 },
      waiting_until: null,
      history_waiting_until: null,
    }),
    staleMs: () => 0,
    streams: {
      list: () => [],
      problem: () => null,
      isKeyRejected: () => false,
      failingLong: () => [],
      isListed: () => true,
      nextAttemptInMs: () => null,
    },
    space: { status: () => ({ usedBytes: 0, maxBytes: null, diskFreeBytes: null, full: null }) },
    isRunning: () => true,
    version: '0.0.0',
    polls: POLLS,
    fleet: options.fleet ?? { latest: () => null },
    clock: options.clock ?? { monoMs: nowMs, sleep: () => Promise.resolve() },
    recentEvents: () => [],
    ...parts,
  };
}

/** Puts them together. */
export function pageFactsOf(state: Pick<ScratchStore, 'store' | 'facts'>, options: PageOptions): PageState {
  const asked = new Map<string, number>();
  const facts = createPageFacts(pagePartsOf(state, options, asked));
  const devices = (changes: Partial<DevicesQuery> = {}): DevicesPage => facts.devices({ ...ALL, ...changes });
  return {
    facts,
    asked,
    devices,
    row: (deviceId) => {
      const row = devices({ search: deviceId }).rows.find(({ device_id }) => device_id === deviceId);
      if (row === undefined) throw new Error(`no row of ${deviceId}`);
      return row;
    },
  };
}

/** A moment in the middle of a day. */
export const NOON_MS = Date.UTC(2026, 5, 15, 12, 0, 0);

/** Lists devices. */
export function list(state: ScratchStore, records: readonly DeviceRecord[], atMs = NOON_MS): void {
  const listed = records.map((record) => ({ record, name: record.name ?? record.deviceId, line: null, digest: '' }));
  state.store.saveInventory({ listed, missing: [], atMs });
}

/** A device that is there, without further facts. */
export const online = (deviceId: string, changes: Partial<DeviceRecord> = {}): DeviceRecord =>
  device(deviceId, { lastSeenAt: null, ...changes });

/** A telemetry line. */
export function line(deviceId: string, sensor: string, field: string, at: bigint): string {
  const tags = [deviceId, sensor].map((text) => encodeTagValue(identityTag(text)));
  return `telemetry,device_id=${tags[0]},sensor=${tags[1]},device_name=${encodeTagValue(descriptiveTag('n'))} ${field} ${at}`;
}

export interface Held {
  /** Ranges, in ms. */
  readonly covered: readonly (readonly [fromMs: number, toMs: number])[];
  readonly lines?: readonly string[];
  /** Days (since 1970) with readings. */
  readonly days?: readonly number[];
}

/** Commits the pages of a device. */
export function hold(state: ScratchStore, deviceId: string, { covered, lines = [], days = [] }: Held): void {
  const times = lines.map((each) => BigInt(each.slice(each.lastIndexOf(' ') + 1))).sort((a, b) => (a < b ? -1 : 1));
  state.store.commitPage(
    pageCommit({
      deviceId,
      revision: state.store.telemetry(deviceId).revision,
      lines,
      firstNs: times[0] ?? null,
      lastNs: times.at(-1) ?? null,
      daySums: days.map((day) => ({ day, readings: 2, points: 2, hashHigh: 0, hashLow: 0 })),
      covered: covered.map(([fromMs, toMs]) => ({ from: msToNs(fromMs), to: msToNs(toMs), first: null, last: null })),
    }),
  );
}

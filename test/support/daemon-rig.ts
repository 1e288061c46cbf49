/**
 * The daemon on a rig: the real loops on a virtual clock, so that a day of it, with faults, runs in seconds.
 */

import { expect } from 'vitest';
import type { Sync, SyncOptions } from '../../src/app/open-sync.ts';
import { runMaintenance } from '../../src/archive/maintenance.ts';
import type { AppEvent } from '../../src/core/events.ts';
import type { Schedules } from '../../src/core/ports.ts';
import type { ProgressReport, ReadyReport, StatusReport } from '../../src/core/status.ts';
import { DAY_MS, MINUTE_MS } from '../../src/core/time.ts';
import { type DaemonParts, type KeySource, runDaemon } from '../../src/scheduler/session.ts';
import { sensorsOf } from '../../src/sim/devices.ts';
import type { World } from '../../src/sim/world.ts';
import { NOW_MS, type Program, type Rig } from './rig.ts';
import { createWorld, type DeviceSpec } from './trait-world.ts';
import { unhurried } from './virtual-clock.ts';

export interface DaemonOptions {
  /** How long it runs, in virtual time; by default until `meanwhile` has ended. */
  readonly forMs?: number;
  readonly changes?: Partial<SyncOptions>;
  readonly schedules?: Partial<Schedules>;
  readonly key?: KeySource;
  /** Further loops of the daemon. */
  readonly beside?: (sync: Sync) => DaemonParts['beside'];
  /** The program under test: the real one by default. */
  readonly program?: Pick<Program, 'runDaemon'>;
  /** The other actions meanwhile; called with the parts. */
  readonly meanwhile?: (watch: DaemonWatch) => Promise<void>;
}

/** The views of a running daemon. */
export interface DaemonWatch {
  readonly events: readonly AppEvent[];
  report(): StatusReport;
  progress(): ProgressReport;
  ready(): ReadyReport;
}

export interface DaemonLife extends DaemonWatch {
  /** The result with which it ended, where it ended by itself. */
  readonly error: unknown;
  readonly lastReport: StatusReport;
  readonly lastReady: ReadyReport;
}

const NEVER: KeySource = { isFixed: true, hasChanged: () => false, adopt: () => {} };

/** One run of the daemon, from its start to the signal that ends it. */
export async function liveAsDaemon(rig: Rig, options: DaemonOptions): Promise<DaemonLife> {
  const events: AppEvent[] = [];
  const observe = (event: AppEvent): void => {
    events.push(event);
    options.changes?.observe?.(event);
  };
  const { settings } = { ...rig, ...options.changes };
  const schedules = { ...settings.schedules, ...options.schedules };
  const sync = rig.open({ ...options.changes, settings: { ...settings, schedules }, observe });
  const stop = new AbortController();
  const maintenance = { ...sync.maintenance, clock: unhurried(sync.maintenance.clock) };
  const maintain = (signal: AbortSignal): Promise<void> => runMaintenance(maintenance, signal);
  const parts: DaemonParts = {
    ...sync,
    key: options.key ?? NEVER,
    beside: [...sync.deliverers.map(({ run }) => run), maintain, ...(options.beside?.(sync) ?? [])],
  };
  const afterScan =
    <T>(measure: () => T) =>
    (): T => {
      sync.fleet.request();
      return measure();
    };
  const watch: DaemonWatch = {
    events,
    report: sync.report,
    progress: afterScan(sync.measureProgress),
    ready: afterScan(sync.ready),
  };
  let error: unknown = null;
  try {
    const running = (options.program ?? { runDaemon }).runDaemon(parts, stop.signal).catch((cause: unknown) => {
      error = cause;
      stop.abort();
    });
    const meanwhile = options.meanwhile?.(watch);
    if (options.forMs !== undefined) await rig.clock.sleep(options.forMs, stop.signal).catch(() => {});
    await meanwhile;
    const last = { lastReport: sync.report(), lastReady: watch.ready() };
    stop.abort();
    await running;
    return { ...watch, error, ...last };
  } finally {
    stop.abort();
    sync.close();
  }
}

/** Devices of three kinds, for tests that need no others. */
export const DEVICES: readonly DeviceSpec[] = [
  { deviceId: 'often', intervalMs: MINUTE_MS, jitter: 0.5 },
  { deviceId: 'tied', intervalMs: 4 * MINUTE_MS, traits: ['ties'] },
  { deviceId: 'seldom', intervalMs: 17 * MINUTE_MS },
];

/** The same devices with several values in each reading, for tests that compare or count points. */
export const MEASURING_DEVICES: readonly DeviceSpec[] = DEVICES.map((device) => ({ ...device, sensors: sensorsOf(4) }));

/**
 * A simulated workspace of such devices. A device without sensors of its own gets one, or two where its readings may
 * contradict each other: each value costs as much CPU time as its reading, and most tests count requests and time only.
 *
 * @param historyMs how far back it goes.
 */
export function worldOf(devices: readonly DeviceSpec[], historyMs = 3 * DAY_MS): (nowMs: number) => World {
  const measured = devices.map((device) => ({ sensors: sensorsOf(device.traits === undefined ? 1 : 2), ...device }));
  // A simulated workspace never changes, so the judge's cache of it serves the next rig as well.
  const made = new Map<number, World>();
  return (originMs) => {
    const world = made.get(originMs) ?? createWorld({ seed: 33, originMs, historyMs, devices: measured });
    made.set(originMs, world);
    return world;
  };
}

/** The events of one kind, in their order. */
export function eventsOf<T extends DaemonLife['events'][number]['type']>(life: Pick<DaemonLife, 'events'>, type: T) {
  return life.events.filter(
    (event): event is Extract<DaemonLife['events'][number], { type: T }> => event.type === type,
  );
}

/** Everything from the start of the wanted range up to the coverage limit a few minutes before now. */
export async function expectExact(rig: Rig, least = 1000, lagMs = 5 * MINUTE_MS): Promise<void> {
  const verdict = await rig.verdict(rig.clock.nowMs() - lagMs, {
    fromNs: BigInt(NOW_MS - 2 * DAY_MS + 10 * MINUTE_MS) * 1_000_000n,
  });
  expect(verdict.missing.slice(0, 5)).toEqual([]);
  expect(verdict.invented.slice(0, 5)).toEqual([]);
  expect(verdict.expected).toBeGreaterThan(least);
}

/** A key that is exchanged by its file. */
export function keyFile(secret: string) {
  const held = { inUse: secret, inFile: secret };
  return {
    inUse: () => held.inUse,
    write: (next: string): void => {
      held.inFile = next;
    },
    hasChanged: () => held.inFile !== held.inUse,
    adopt: (): void => {
      held.inUse = held.inFile;
    },
  };
}

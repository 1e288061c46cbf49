/**
 * A rig for `--plan`: the simulator in-process on a virtual clock, the real sync, no destination.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { openSync, type Sync, type SyncOptions } from '../../../src/app/open-sync.ts';
import { runOnce } from '../../../src/commands/once/run.ts';
import { computePlan, type PlanParts } from '../../../src/commands/plan/command.ts';
import type { CostPlan } from '../../../src/commands/plan/cost.ts';
import type { AppEvent } from '../../../src/core/events.ts';
import { UserError } from '../../../src/core/faults.ts';
import { createFilter, type FilterSpec } from '../../../src/core/filter.ts';
import { readWhatIf, type WhatIfText } from '../../../src/core/fleet.ts';
import type { Schedules } from '../../../src/core/ports.ts';
import { DAY_MS } from '../../../src/core/time.ts';
import type { SettingsOverrides } from '../../../src/sim/settings.ts';
import type { AlertSpec } from '../../../src/sim/spec.ts';
import { KEEP_ALL, POLLS, SCHEDULES, syncSettings } from '../../support/defaults.ts';
import { createSimulator, type Simulator } from '../../support/faulty-simulator.ts';
import { NOW_MS, seededRandom } from '../../support/rig.ts';
import { transportOf } from '../../support/sim-transport.ts';
import { createWorld, type DeviceSpec } from '../../support/trait-world.ts';
import { createVirtualClock, type VirtualClock } from '../../support/virtual-clock.ts';

export interface PlanRig extends Disposable {
  readonly clock: VirtualClock;
  readonly simulator: Simulator;
  readonly dataDir: string;
  /** The events of all runs so far. */
  readonly events: AppEvent[];
  open(changes?: Partial<SyncOptions>): Sync;
  /** `--plan`. */
  plan(asked?: Partial<PlanParts['command']>, changes?: { schedules?: Partial<Schedules> }): Promise<CostPlan>;
  /** `--once`, with other settings where they are given. */
  once(changes?: Partial<SyncOptions['settings']>): Promise<void>;
}

export interface PlanRigOptions {
  readonly devices?: readonly DeviceSpec[];
  readonly alerts?: readonly AlertSpec[];
  readonly settings?: SettingsOverrides;
  readonly historyMs?: number;
  readonly share?: number;
  readonly filter?: Partial<FilterSpec>;
}

/** Makes a rig: a workspace, and a place for a state that is not there yet. */
export function openPlanRig(options: PlanRigOptions = {}): PlanRig {
  const { devices = [], alerts = [], historyMs = 3 * DAY_MS, share = 0.8 } = options;
  const clock = createVirtualClock(NOW_MS);
  const world = createWorld({ seed: 7, originMs: NOW_MS, historyMs: 2 * historyMs, devices, alerts });
  const simulator = createSimulator({
    world,
    clock,
    settings: { ...options.settings, plan: { requestsPerMinute: 60, requestsPerDay: 5000, ...options.settings?.plan } },
  });
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-plan-'));
  const dataDir = join(directory, 'state');
  const leftOut = { ...KEEP_ALL.spec, ...options.filter };
  const history = { kind: 'age', ageMs: historyMs } as const;
  const events: AppEvent[] = [];
  const settings = syncSettings({ history, filter: createFilter(leftOut) });
  const open = (changes: Partial<SyncOptions> = {}): Sync =>
    openSync({
      transport: transportOf(simulator),
      api: {
        url: 'http://simulator.test/external/v1',
        key: () => simulator.settings.key.secret,
        share,
        concurrency: 4,
      },
      settings,
      destinations: [],
      dataDir,
      clock,
      random: seededRandom(1),
      observe: (event) => void events.push(event),
      ...changes,
    });
  return {
    clock,
    simulator,
    dataDir,
    events,
    open,
    plan: async (asked = {}, { schedules } = {}) => {
      const sync = {
        history,
        gracePeriodMs: settings.gracePeriodMs,
        schedules: { ...SCHEDULES, ...schedules },
        polls: POLLS,
        leftOut,
      };
      const config = { dataDir, api: { share }, sync };
      const command = { from: null, to: null, devices: [], whatIf: [], finishBy: null, maxShare: null, ...asked };
      return await computePlan({ command, config, open: forWork(open), clock }, new AbortController().signal);
    },
    once: async (changes = {}) => {
      const sync = open({ settings: { ...settings, ...changes } });
      try {
        await runOnce(sync, new AbortController().signal);
      } finally {
        sync.close();
      }
    },
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
  };
}

/** Opens a sync for the length of some work, as `--plan` wants it. */
export function forWork(open: () => Sync): <T>(work: (sync: Sync) => Promise<T>) => Promise<T> {
  return async (work) => {
    const sync = open();
    try {
      return await work(sync);
    } finally {
      sync.close();
    }
  };
}

/** `KEY=VALUE` as the command line reads it. */
export function suppose(...texts: readonly string[]): WhatIfText[] {
  return texts.map((text) => {
    const read = readWhatIf(text);
    if ('mistake' in read) throw new Error(read.mistake.what);
    return read;
  });
}

/** A number of devices that report at one interval. */
export function fleet(count: number, intervalMs: number, prefix = 'd'): DeviceSpec[] {
  return Array.from({ length: count }, (_, index) => ({
    deviceId: `${prefix}-${String(index).padStart(4, '0')}`,
    intervalMs,
  }));
}

/** The requested paths. */
export function asked(rig: PlanRig, from = 0): string[] {
  return rig.simulator.log.requests.slice(from).map(({ path }) => path);
}

/** The error of a plan that is refused. */
export async function refusalOf(work: Promise<unknown>): Promise<UserError> {
  const error = await work.then(
    () => null,
    (cause: unknown) => cause,
  );
  expect(error).toBeInstanceOf(UserError);
  return error as UserError;
}

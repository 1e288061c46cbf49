/**
 * The daemon's own loops in virtual time beside the simulated API: a day takes a minute or two, and is the same on any
 * machine. Nothing is delivered.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSync, type Sync } from '../../src/app/open-sync.ts';
import { runMaintenance } from '../../src/archive/maintenance.ts';
import { HOUR_MS } from '../../src/core/time.ts';
import { runDaemon } from '../../src/scheduler/session.ts';
import type { SimSettings } from '../../src/sim/settings.ts';
import { syncSettings } from '../support/defaults.ts';
import { createSimulator, type Simulator } from '../support/faulty-simulator.ts';
import { NOW_MS, seededRandom } from '../support/rig.ts';
import { transportOf } from '../support/sim-transport.ts';
import { createWorld, type DeviceSpec } from '../support/trait-world.ts';
import { createVirtualClock, unhurried, type VirtualClock } from '../support/virtual-clock.ts';

export interface VirtualDaemon {
  readonly clock: VirtualClock;
  readonly simulator: Simulator;
  readonly sync: Sync;
  readonly dataDir: string;
  /** Ends it before the work is done; the state stays until then. */
  readonly end: () => Promise<void>;
}

export interface VirtualFleet {
  readonly devices: readonly DeviceSpec[];
  readonly plan: Partial<SimSettings['plan']>;
}

/** `api.share`, as by default. */
export const SHARE = 0.8;

/** Answers take a while, as those of a service do. */
const LATENCY_MS = { min: 100, max: 300 };

/** How far back the first sync goes. */
const HISTORY_MS = HOUR_MS;

/** Runs a daemon until the work beside it is done. */
export async function withVirtualDaemon<T>(
  { devices, plan }: VirtualFleet,
  work: (daemon: VirtualDaemon) => Promise<T>,
): Promise<T> {
  const clock = createVirtualClock(NOW_MS);
  const world = createWorld({ seed: 11, originMs: NOW_MS, historyMs: 2 * HISTORY_MS, devices });
  const simulator = createSimulator({ world, clock, settings: { plan, time: { latencyMs: LATENCY_MS } } });
  const dataDir = mkdtempSync(join(tmpdir(), 'tidemark-bench-'));
  const sync = openSync({
    transport: transportOf(simulator),
    api: {
      url: 'http://simulator.test/external/v1',
      key: () => simulator.settings.key.secret,
      share: SHARE,
      concurrency: 4,
    },
    settings: syncSettings({ history: { kind: 'age', ageMs: HISTORY_MS } }),
    destinations: [],
    dataDir,
    clock,
    random: seededRandom(1),
    observe: () => {},
  });
  const stop = new AbortController();
  const maintenance = { ...sync.maintenance, clock: unhurried(clock) };
  const key = { isFixed: true, hasChanged: () => false, adopt: () => {} };
  const beside = [async (signal: AbortSignal) => await runMaintenance(maintenance, signal)];
  const running = runDaemon({ ...sync, key, beside }, stop.signal);
  // It only ends by itself where it cannot go on.
  const failed = new Promise<never>((_, reject) => running.catch(reject));
  let isOpen = true;
  const end = async (): Promise<void> => {
    if (!isOpen) return;
    isOpen = false;
    stop.abort();
    await running;
    sync.close();
  };
  try {
    return await Promise.race([work({ clock, simulator, sync, dataDir, end }), failed]);
  } finally {
    await end().catch(() => {});
    rmSync(dataDir, { recursive: true, force: true });
  }
}

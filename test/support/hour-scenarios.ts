/**
 * A safety scenario about `coverage_hour`: the hours of late readings, in databases that get them from the archive. Part
 * of `scenarios.ts`.
 */

import { openReplays } from '../../src/commands/replay/job.ts';
import { ratesOfState } from '../../src/commands/shared/state-report.ts';
import { HOUR_MS, HOUR_NS, MINUTE_MS } from '../../src/core/time.ts';
import type { Bench } from './bench.ts';
import { replayArgs } from './defaults.ts';
import { destinationOf, NOW_MS, openRig, type Program, type Rig } from './rig.ts';
import type { Scenario } from './scenarios.ts';
import { createWorld } from './trait-world.ts';

const LATE = { fromMs: NOW_MS - 115 * MINUTE_MS, toMs: NOW_MS - 95 * MINUTE_MS } as const;

/** The hours of a database that count other readings than it has. */
async function wrongHours({ influxd }: Bench, database: string): Promise<string[]> {
  const hourOf = (time: unknown): bigint => BigInt(String(time)) / HOUR_NS;
  const instants = new Map<bigint, Set<unknown>>();
  for (const { time } of await influxd.query(database, 'SELECT value FROM telemetry')) {
    instants.set(hourOf(time), (instants.get(hourOf(time)) ?? new Set()).add(time));
  }
  const hours = await influxd.query(database, 'SELECT readings FROM coverage_hour');
  const few = hours.length < 2 ? [`${hours.length} hours in ${database}`] : [];
  const wrong = hours.flatMap(({ time, readings }) => {
    const has = instants.get(hourOf(time))?.size ?? 0;
    return Number(readings) === has ? [] : [`${database}: an hour counts ${readings} readings and has ${has}`];
  });
  return [...few, ...wrong];
}

/** A new database beside that of a rig. */
async function newDatabase({ influxd }: Bench, { database }: Rig, name: string): Promise<string> {
  const fresh = `${database}${name}`;
  await influxd.query('', `CREATE DATABASE ${fresh} WITH SHARD DURATION 520w`);
  return fresh;
}

async function backfillOf(rig: Rig, program: Program): Promise<void> {
  const sync = rig.open();
  const from = String(BigInt(NOW_MS - 4 * HOUR_MS) * 1_000_000n);
  const args = { from, to: null, devices: [], maxShare: null, finishByMs: null };
  const rates = ratesOfState(rig.dataDir, sync.context.settings.filter);
  try {
    await program.runBackfill({ ...sync, rates }, args, new AbortController().signal);
  } finally {
    sync.close();
  }
}

/**
 * A backfill has counted an hour before some of its readings came late: its new count stands in the database, in a new one,
 * and in one that is filled by a replay.
 */
export const lateInTheirHour: Scenario = async (bench, program) => {
  const devices = [{ deviceId: 'often', intervalMs: MINUTE_MS }];
  const world = (originMs: number) => createWorld({ seed: 41, originMs, historyMs: 6 * HOUR_MS, devices, alerts: [] });
  using rig = await openRig(bench, { world, historyMs: HOUR_MS, program });
  rig.hides = (_, { recordedAtNs }) => {
    const readingMs = Number(recordedAtNs / 1_000_000n);
    return LATE.fromMs < readingMs && readingMs < LATE.toMs;
  };
  await rig.once();
  await backfillOf(rig, program);
  await rig.clock.sleep(HOUR_MS / 2);
  rig.hides = null;
  // A live page reaches down to what the backfill has read.
  await rig.once({ settings: { ...rig.settings, history: { kind: 'age', ageMs: 3 * HOUR_MS } } });
  const moved = await newDatabase(bench, rig, 'moved');
  await rig.once({ destinations: [destinationOf(bench, moved, rig.clock)] });
  const again = await newDatabase(bench, rig, 'again');
  const sync = rig.open({ destinations: [destinationOf(bench, again, rig.clock)] });
  try {
    const parts = { ...sync.context, deliverers: sync.deliverers, isBeside: false };
    await openReplays(parts, replayArgs()).run(new AbortController().signal);
  } finally {
    sync.close();
  }
  const wrong = [rig.database, moved, again].map(async (database) => await wrongHours(bench, database));
  return (await Promise.all(wrong)).flat();
};

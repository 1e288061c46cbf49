/**
 * A safety scenario about `--backfill --recheck`: readings that the API has left out of ranges that are covered by now.
 * Part of `scenarios.ts`.
 */

import { ratesOfState } from '../../src/commands/shared/state-report.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import type { SimReading } from '../../src/sim/spec.ts';
import { complaints } from './judge.ts';
import { diesAtEffect, mortalCommits, mortalTransport } from './mortality.ts';
import { NOW_MS, openRig, type Program, type Rig } from './rig.ts';
import type { Scenario } from './scenarios.ts';
import { transportOf } from './sim-transport.ts';
import { createWorld } from './trait-world.ts';

const HISTORY_MS = 12 * HOUR_MS;
const RETURN_MS = NOW_MS + 30 * MINUTE_MS;

/** Every third reading of some hours is served half an hour later than the rest, and no newer page shows it. */
function isServedLater({ recordedAtNs }: SimReading): boolean {
  const atMs = Number(recordedAtNs / 1_000_000n);
  return atMs > NOW_MS - 10 * HOUR_MS && atMs < NOW_MS - 4 * HOUR_MS && Math.floor(atMs / (20 * SECOND_MS)) % 3 === 0;
}

/**
 * One recheck that ends at the nth effect.
 *
 * @returns whether it was killed.
 */
async function recheckAndDie(rig: Rig, program: Program, nth: number): Promise<boolean> {
  const sync = rig.open({ transport: mortalTransport(transportOf(rig.simulator)) });
  const from = String(BigInt(NOW_MS - 11 * HOUR_MS) * 1_000_000n);
  const args = { from, to: null, devices: [], maxShare: null, finishByMs: null, recheck: true };
  const rates = ratesOfState(rig.dataDir, sync.context.settings.filter);
  try {
    const signal = new AbortController().signal;
    return await diesAtEffect(nth, async () => await program.runBackfill({ ...sync, rates }, args, signal));
  } finally {
    sync.close();
  }
}

/** A recheck brings readings that were left out, however often it is killed. */
export const recheckAfterKills: Scenario = async (bench, program) => {
  using _mortal = mortalCommits();
  const devices = [
    { deviceId: 'often', intervalMs: 20 * SECOND_MS },
    { deviceId: 'seldom', intervalMs: 5 * MINUTE_MS },
  ];
  const world = (originMs: number) =>
    createWorld({ seed: 37, originMs, historyMs: HISTORY_MS + HOUR_MS, devices, alerts: [] });
  using rig = await openRig(bench, { world, historyMs: HISTORY_MS, program });
  rig.hides = (_, reading, atMs) => atMs < RETURN_MS && isServedLater(reading);
  await rig.once();
  await rig.clock.sleep(HOUR_MS);
  const startedMs = rig.clock.nowMs();
  let nth = 9;
  while (await recheckAndDie(rig, program, nth)) nth += 5;
  const fromNs = BigInt(NOW_MS - 11 * HOUR_MS + MINUTE_MS) * 1_000_000n;
  return complaints(await rig.verdict(startedMs, { fromNs }), 1000);
};

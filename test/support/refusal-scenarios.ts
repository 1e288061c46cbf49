/**
 * Safety scenarios about refusals: of a database whose disk is full, of an API whose quota is spent, and by the
 * program itself of a state whose disk is not mounted. Part of `scenarios.ts`.
 */

import { existsSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import type { Bench } from './bench.ts';
import { betweenTimes } from './faults.ts';
import { NOW_MS, openRig, type Program, type Rig, type RigOptions } from './rig.ts';
import type { Scenario } from './scenarios.ts';
import { createWorld } from './trait-world.ts';
import { FAULTS } from './v2-proxy.ts';

const HISTORY_MS = 3 * HOUR_MS;

async function rigFor(bench: Bench, program: Program, settings: RigOptions['settings'] = {}): Promise<Rig> {
  const devices = Array.from({ length: 8 }, (_, index) => ({ deviceId: `often-${index}`, intervalMs: 20_000 }));
  const world = (originMs: number) => createWorld({ seed: 29, originMs, historyMs: 6 * HOUR_MS, devices });
  return await openRig(bench, { world, historyMs: HISTORY_MS, program, settings });
}

async function finish(rig: Rig): Promise<string[]> {
  const fromNs = BigInt(NOW_MS - HISTORY_MS + 10 * MINUTE_MS) * 1_000_000n;
  const { missing, invented, expected } = await rig.verdict(NOW_MS, { fromNs });
  return [
    ...(expected > 300 ? [] : [`the judge expected only ${expected} points`]),
    ...(missing.length === 0 ? [] : [`${missing.length} missing, such as ${missing.slice(0, 3).join(' | ')}`]),
    ...(invented.length === 0 ? [] : [`${invented.length} invented, such as ${invented.slice(0, 3).join(' | ')}`]),
  ];
}

/** For a while the database refuses every write with words about the data, as it does when its disk is full. */
export const fullDisk: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program);
  let writes = 0;
  bench.proxy.setFaults(() => {
    writes += 1;
    return writes > 3 && writes < 60 ? FAULTS.diskFull : null;
  });
  try {
    const { summary } = await rig.once();
    const quarantined = summary.destinations[0]?.quarantined ?? 0;
    const found = quarantined === 0 ? [] : [`${quarantined} good points in quarantine`];
    return [...found, ...(writes >= 60 ? [] : [`only ${writes} writes`]), ...(await finish(rig))];
  } finally {
    bench.proxy.setFaults(null);
  }
};

/** Somebody has written a field of alerts as a text: every alert is refused, and nothing else waits for them. */
export const refusedAlerts: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program);
  await bench.influxd.write(rig.database, `alert,x=y threshold="many" ${BigInt(NOW_MS) * 1_000_000n}`);
  const { summary } = await rig.once();
  const { pending_points: pending = null, quarantined = null } = summary.destinations[0] ?? {};
  const found = pending === 0 && quarantined !== 0 ? [] : [`${pending} points wait, ${quarantined} in quarantine`];
  return [...found, ...(await finish(rig))];
};

/**
 * A gateway alone answers for 20 s in the midst of a run: no device counts as failing for it, and no list is read
 * again.
 */
export const shortOutage: Scenario = async (bench, program) => {
  const found: string[] = [];
  for (const second of [5, 12, 20]) {
    using rig = await rigFor(bench, program, { time: { latencyMs: { min: 200, max: 800 } } });
    const downMs = NOW_MS + second * SECOND_MS;
    rig.simulator.faults = betweenTimes(downMs, downMs + 20 * SECOND_MS, { kind: 'html', status: 502 });
    const { summary } = await rig.once();
    const tookMs = rig.clock.nowMs() - NOW_MS;
    const lists = rig.simulator.log.requests.filter(({ path }) => path === '/devices').length;
    if (summary.exit_code !== 0 || tookMs > MINUTE_MS || lists > 1)
      found.push(`down from second ${second} on: exit ${summary.exit_code} after ${tookMs} ms, ${lists} lists`);
    found.push(...(await finish(rig)));
  }
  return found;
};

/** Others spend what is left of the minute: the 429 has the time to wait. */
export const quotaSpent: Scenario = async (bench, program) => {
  // The headers are about the day, so the wait is the only information about the minute.
  using rig = await rigFor(bench, program, { quota: { headers: 'day' } });
  rig.simulator.faults = (number) => {
    // A while into a minute.
    if (number === 16) rig.simulator.spend(rig.simulator.settings.plan.requestsPerMinute);
    return null;
  };
  await rig.once();
  const { requests } = rig.simulator.log;
  const refused = requests.filter(({ status }) => status === 429);
  // Windows are whole minutes of the server here, and the wait lasts to the end of one.
  const tooSoon = refused.flatMap(({ atMs, number }) => {
    const untilMs = (Math.floor(atMs / MINUTE_MS) + 1) * MINUTE_MS;
    return requests.filter((later) => later.number > number && later.atMs < untilMs);
  });
  return [
    ...(refused.length > 0 ? [] : ['nothing was refused']),
    ...(tooSoon.length === 0 ? [] : [`${tooSoon.length} requests before the wait was over`]),
    ...(await finish(rig)),
  ];
};

/** The state is to lie on another disk, behind a link, and that disk is not mounted at the first start. */
export const linkedToNowhere: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program);
  const file = join(rig.dataDir, 'tidemark.db');
  const target = join(rig.dataDir, 'not-mounted.db');
  symlinkSync(target, file);
  const isRefused = await rig.once().then(
    () => false,
    () => true,
  );
  const found = [
    ...(isRefused ? [] : ['it has started without its disk']),
    ...(existsSync(target) ? ['a state was made where the link leads'] : []),
  ];
  for (const each of [file, target]) rmSync(each, { force: true });
  if (!isRefused) return found;
  await rig.once();
  return [...found, ...(await finish(rig))];
};

/**
 * The restatement audit where the plan hides old readings: hidden readings are not reported as restated.
 */
import { join } from 'node:path';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { createSampleWorker } from '../../../src/commands/verify/job.ts';
import type { SampleVerdict } from '../../../src/commands/verify/result.ts';
import { compareSample } from '../../../src/commands/verify/sample.ts';
import { DAY_MS, MINUTE_MS } from '../../../src/core/time.ts';
import { openVerifyState } from '../../../src/store/views/verify.ts';
import { MEASURING_DEVICES, worldOf } from '../../support/daemon-rig.ts';
import { influxdAvailable } from '../../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig } from '../../support/rig.ts';
import { sharedBench } from '../../support/shared-bench.ts';
import { createWorld } from '../../support/trait-world.ts';

const NEVER = new AbortController().signal;

describe.runIf(influxdAvailable())('a sample', () => {
  const bench = sharedBench(openBench);

  const audit = async (rig: Rig, fromMs: number, toMs: number): Promise<SampleVerdict> => {
    const { context, close } = rig.open({ destinations: [] });
    const state = openVerifyState(rig.dataDir);
    if (state === null) throw new Error('no state');
    const [from, to] = [fromMs, toMs].map((ms) => `${ms}000000`);
    const args = { windows: 5, from: from ?? '', to: to ?? '', devices: [], repair: false };
    try {
      return await compareSample({ context, state }, args, { ranges: 0 }, NEVER);
    } finally {
      state.close();
      close();
    }
  };

  test('ends its job with the exit code of its findings', async () => {
    using rig = await openRig(bench, { world: worldOf(MEASURING_DEVICES), historyMs: DAY_MS });
    await rig.once();
    const { context, close } = rig.open({ destinations: [] });
    const args = { windows: 5, from: null, to: null, devices: ['often'], repair: false };
    const end = async () => await createSampleWorker({ context }, rig.dataDir)(args, NEVER, () => {}).end;
    expect(await end()).toMatchObject({ state: 'done', exitCode: 0, summary: { missing: 0 } });
    const db = new Database(join(rig.dataDir, 'tidemark.db'));
    const rows = db.prepare("SELECT seq, data FROM block WHERE device_id = 'often' AND first_ns IS NOT NULL").all();
    for (const { seq, data } of rows as { seq: number; data: Buffer }[]) {
      const lines = zstdDecompressSync(data).toString().split('\n');
      const archived = lines.filter((line, index) => !line.startsWith('telemetry') || index % 10 !== 3);
      const values = [zstdCompressSync(archived.join('\n')), archived.length, seq];
      db.prepare('UPDATE block SET data = ?, lines = ? WHERE seq = ?').run(values);
    }
    db.close();
    expect(await end()).toMatchObject({ state: 'done', exitCode: 1, summary: { reason: null } });
    close();
  });

  for (const age of ['empty', 'rejected'] as const) {
    test(`where old windows are ${age}, reports nothing about readings that the plan hides, and all that it shows`, async () => {
      const world = (originMs: number) =>
        createWorld({
          seed: 5,
          originMs,
          historyMs: 6 * DAY_MS,
          devices: [{ deviceId: 'often', intervalMs: 5 * MINUTE_MS }],
        });
      const settings = { bounds: { age }, plan: { historyMaxDays: 3 } };
      using rig = await openRig(bench, { world, historyMs: 2 * DAY_MS, settings });
      await rig.once();
      expect((await audit(rig, NOW_MS - 2 * DAY_MS, NOW_MS - DAY_MS)).windows).toBe(5);
      await rig.clock.sleep(2 * DAY_MS);
      await rig.once();
      const hidden = await audit(rig, NOW_MS - 1.8 * DAY_MS, NOW_MS - 1.1 * DAY_MS);
      expect(hidden).toMatchObject({ windows: 0, missing: 0, gone: 0, differences: [] });
      expect(hidden.reason).toMatch(/plan/);
      const all = await audit(rig, NOW_MS - 1.8 * DAY_MS, NOW_MS);
      expect(all).toMatchObject({ windows: 5, missing: 0, gone: 0, reason: null });
    });
  }
});

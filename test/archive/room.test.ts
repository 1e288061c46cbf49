/**
 * A sync that runs out of disk space and gets some again: it requests no telemetry meanwhile, delivers, and has
 * everything at the end.
 */
import { describe, expect, test } from 'vitest';
import type { Sync, SyncOptions } from '../../src/app/open-sync.ts';
import { StateFullError } from '../../src/core/archive-room.ts';
import { HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { liveAsDaemon } from '../support/daemon-rig.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { createWorld } from '../support/trait-world.ts';

const MIB = 1024 * 1024;

const bench = sharedBench(openBench);

async function rigOfTwo(): Promise<Rig> {
  const devices = ['a', 'b'].map((deviceId) => ({ deviceId, intervalMs: MINUTE_MS }));
  return await openRig(bench, {
    world: (originMs) => createWorld({ seed: 5, originMs, historyMs: 48 * HOUR_MS, devices, alerts: [] }),
    historyMs: 40 * HOUR_MS,
    // A request every few seconds: a page scan takes longer than a check of the disk space stays valid.
    share: 0.2,
  });
}

describe.runIf(influxdAvailable())('a sync without room', () => {
  test('requests no telemetry until there is room again, then has all of it', async () => {
    using rig = await rigOfTwo();
    const asked: number[] = [];
    // Room for the first pages, none for three minutes, then room again.
    const disk: SyncOptions['disk'] = {
      directory: '/data',
      freeBytes: () => {
        const sinceMs = rig.clock.nowMs() - NOW_MS;
        return asked.length >= 2 && sinceMs < 3 * MINUTE_MS ? 100 * MIB : 1000 * MIB;
      },
    };
    const { summary, events } = await rig.once({
      disk,
      observe: (event) => {
        if (event.type === 'page-committed') asked.push(rig.clock.nowMs() - NOW_MS);
      },
    });
    const reported = events.map(({ type }) => type).filter((type) => type.startsWith('polling-'));
    expect(reported).toEqual(['polling-stopped', 'polling-resumed']);
    expect(asked.filter((ms) => ms < 3 * MINUTE_MS).length, 'the page under way is committed').toBeLessThanOrEqual(5);
    expect(asked.some((ms) => ms >= 3 * MINUTE_MS)).toBe(true);
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
    expect(await rig.verdict(NOW_MS)).toMatchObject({ missing: [] });
  });

  test('that has none when the daemon starts delivers the waiting points, and continues when there is', async () => {
    using rig = await rigOfTwo();
    await liveAsDaemon(rig, { forMs: 10 * MINUTE_MS, changes: { destinations: [] } });
    const startedMs = rig.clock.nowMs();
    const before = rig.simulator.log.total;
    const disk: SyncOptions['disk'] = {
      directory: '/data',
      freeBytes: () => (rig.clock.nowMs() - startedMs < HOUR_MS ? 100 * MIB : 1000 * MIB),
    };
    const seen: unknown[] = [];
    const life = await liveAsDaemon(rig, {
      forMs: 2 * HOUR_MS,
      changes: { disk },
      meanwhile: async ({ report }) => {
        await rig.clock.sleep(30 * MINUTE_MS);
        seen.push(report().destinations[0]?.pending_points, rig.simulator.log.total - before);
      },
    });
    // Only the account is requested: it shows that these points belong to the right workspace.
    expect(seen).toEqual([0, 1]);
    expect(life.error).toBeNull();
    expect(await rig.verdict(startedMs)).toMatchObject({ missing: [] });
  });

  test('whose write is refused for lack of disk space rests, is not ready, and has all of it in the end', async () => {
    using rig = await rigOfTwo();
    let refusals = 2;
    const open = (): Sync => {
      const sync = rig.open();
      const { store } = sync.context;
      const { commitPage } = store;
      // The disk is the real one; its error when it is full is simulated here (see
      // test/store/open/full.test.ts).
      Object.assign(store, {
        commitPage: (commit: Parameters<typeof commitPage>[0]) => {
          if (refusals > 0 && commit.lines.length > 100) {
            refusals -= 1;
            throw new StateFullError('tidemark.db: the disk is full.', null, 1);
          }
          return commitPage(commit);
        },
      });
      return sync;
    };
    const sync = open();
    const { runOnce } = await import('../../src/commands/once/run.ts');
    const reasons: string[] = [];
    sync.listen((event) => {
      if (event.type === 'polling-stopped') reasons.push(...sync.ready().reasons, sync.report().summary);
    });
    const summary = await runOnce(sync, new AbortController().signal);
    sync.close();
    expect(reasons).toContain('state: tidemark.db: the disk is full.');
    expect(reasons).toContain('Polling stopped: tidemark.db: the disk is full.');
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
    expect(await rig.verdict(NOW_MS)).toMatchObject({ missing: [] });
  });
});

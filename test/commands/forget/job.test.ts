/**
 * The removal of a device beside a running sync: running requests do not bring it back, and a device that
 * comes back later begins anew and becomes complete.
 */
import { describe, expect, test } from 'vitest';
import type { Sync, SyncOptions } from '../../../src/app/open-sync.ts';
import { createForgetWorker, type ForgetParts, forgetDevice, forgetParts } from '../../../src/commands/forget/job.ts';
import { createRepairWorker, createSampleWorker } from '../../../src/commands/verify/job.ts';
import { UserError } from '../../../src/core/faults.ts';
import type { Transport } from '../../../src/core/ports.ts';
import { DAY_NS, HOUR_MS } from '../../../src/core/time.ts';
import { rereadDay } from '../../../src/ingest/reread.ts';
import { expectExact, MEASURING_DEVICES, worldOf } from '../../support/daemon-rig.ts';
import { influxdAvailable } from '../../support/influxd.ts';
import { destinationOf, openBench, openRig, type Rig } from '../../support/rig.ts';
import { sharedBench } from '../../support/shared-bench.ts';
import { transportOf } from '../../support/sim-transport.ts';

const NEVER = new AbortController().signal;

/** Delays the answers about telemetry of one device until it is released. */
function holding(transport: Transport, deviceId: string) {
  const asked = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const held: Transport = async (request, signal) => {
    const answer = await transport(request, signal);
    if (!request.url.includes(`/${deviceId}/telemetry`)) return answer;
    asked.resolve();
    await release.promise;
    return answer;
  };
  return { transport: held, asked: asked.promise, release: release.resolve };
}

describe.runIf(influxdAvailable())('a device that is forgotten', () => {
  const bench = sharedBench(openBench);

  const rigOf = async (): Promise<Rig> =>
    await openRig(bench, { world: worldOf(MEASURING_DEVICES), historyMs: 48 * HOUR_MS });
  const destinationsOf = (rig: Rig): SyncOptions['destinations'] => [destinationOf(bench, rig.database, rig.clock)];
  /** Everything of the device in the state. */
  const tracesOf = ({ store }: ForgetParts, deviceId: string): unknown => [
    store.forgetting.hasTraces(deviceId),
    store.telemetry(deviceId).covered,
    store.gaps(deviceId),
    store.newestNs(deviceId),
    (['live', 'history'] as const).flatMap((lane) =>
      store
        .read(lane, { block: 0, line: 0 }, { lines: 1e6, bytes: 1e9 })
        .lines.filter((line) => line.includes(`=${deviceId},`)),
    ),
  ];
  const NOTHING = [false, [], [], null, []];

  test('stays so, though a page of it was under way, and is complete again once it is back', async () => {
    using rig = await rigOf();
    await rig.once();
    await rig.clock.sleep(HOUR_MS);
    const hold = holding(transportOf(rig.simulator), 'often');
    const sync = rig.open({ transport: hold.transport, destinations: [] });
    const { store, clock } = sync.context;
    const parts = forgetParts({ ...sync, destinations: destinationsOf(rig) });
    const state = store.telemetry('often');
    const to = (state.covered.at(-1)?.to ?? 0n) + 1_800_000_000_000n;
    const scan = sync.scanner.scan(
      { deviceId: 'often', range: { from: 0n, to }, limit: to, lane: 'backfill', until: 'closed' },
      NEVER,
    );
    await rig.clock.busy(hold.asked);
    store.markGone('often', clock.nowMs());
    const removedElsewhere: string[] = [];
    sync.onForgotten((deviceId) => removedElsewhere.push(deviceId));
    const progress = { share: 0, points: 0 };
    const forgotten = await forgetDevice(parts, { deviceId: 'often', progress }, NEVER);
    expect(progress).toEqual({ share: 1, points: forgotten.points });
    expect(removedElsewhere).toEqual(['often']);
    expect(forgotten).toMatchObject({ outcome: 'complete', exit_code: 0, is_listed: false, is_log_empty: true });
    expect(forgotten.points).toBeGreaterThan(1000);
    hold.release();
    await scan;
    expect(await sync.scanner.peek('often', NEVER)).toBe(false);
    expect(tracesOf(parts, 'often')).toEqual(NOTHING);
    sync.close();
    // Listed again it is a new device: read from the start, the identical lines.
    await rig.once();
    await expectExact(rig);
  });

  test('ends no daemon that reads it again at that moment, for a poll or a job', async () => {
    using rig = await rigOf();
    await rig.once();
    const day = Math.floor(rig.clock.nowMs() / (24 * HOUR_MS)) - 1;
    const [from, to] = [day, day + 1].map((each) => String(BigInt(each) * DAY_NS));
    const window = ['often', from ?? '', to ?? ''] as const;
    const mending = { windows: [window], destination: 'influx', found: [], missed: [] };
    const sampling = { windows: 1, from: from ?? null, to: to ?? null, devices: ['often'], repair: true };
    const works = {
      reread: async ({ context }: Sync) => await rereadDay(context, { deviceId: 'often', day }, NEVER),
      repair: async (sync: Sync) => await createRepairWorker(sync)(mending, NEVER, () => {}).end,
      sample: async (sync: Sync) => await createSampleWorker(sync, rig.dataDir)(sampling, NEVER, () => {}).end,
    };
    const ends: unknown[] = [];
    for (const work of Object.values(works)) {
      const hold = holding(transportOf(rig.simulator), 'often');
      const sync = rig.open({ transport: hold.transport, destinations: [] });
      const { store, clock } = sync.context;
      const end = work(sync);
      await rig.clock.busy(hold.asked);
      store.markGone('often', clock.nowMs());
      const parts = forgetParts({ ...sync, destinations: destinationsOf(rig) });
      await forgetDevice(parts, { deviceId: 'often' }, NEVER);
      hold.release();
      ends.push(await end);
      expect(tracesOf(parts, 'often')).toEqual(NOTHING);
      sync.close();
      await rig.once();
    }
    expect(ends).toMatchObject([false, { state: 'done' }, { state: 'done' }]);
  });

  test('of a job: a device that must not be removed is refused, and the daemon continues', async () => {
    using rig = await rigOf();
    await rig.once();
    const sync = rig.open({ destinations: [] });
    const parts = forgetParts({ ...sync, destinations: destinationsOf(rig) });
    const ends = await Promise.all(
      ['often', 'oftne', 'xyzzy-plugh-0042'].map(
        async (device) => await createForgetWorker(parts)({ device }, NEVER).end,
      ),
    );
    expect(ends.map(({ state, exitCode }) => [state, exitCode])).toEqual([
      ['failed', 1],
      ['failed', 2],
      ['failed', 2],
    ]);
    expect(ends.map(({ message }) => message)).toEqual([
      expect.stringMatching(/still in the workspace and not excluded.*\(often\) to sync\.exclude/),
      expect.stringMatching(/Similar: often\./),
      expect.stringMatching(/Known: often, seldom, tied\./),
    ]);
    expect(ends[2]?.message, 'an unknown text is not repeated').not.toContain('xyzzy');
    const byName = await createForgetWorker(parts)({ device: 'OFTEN' }, NEVER).end;
    expect([byName.exitCode, byName.message]).toEqual([2, expect.stringContaining('Give its id: often.')]);
    expect(ends[0]?.message, 'by its id it is found').not.toContain('Give its id');
    const failing = {
      ...parts,
      filter: {
        excludes: () => {
          throw new UserError('the state is damaged', null, 1, { ends: 'process' });
        },
      },
    };
    await expect(createForgetWorker(failing)({ device: 'often' }, NEVER).end).rejects.toThrow('damaged');
    sync.close();
  });

  test('interrupted halfway, the removal is completed by the next process that opens the state', async () => {
    using rig = await rigOf();
    await rig.once();
    const sync = rig.open({ destinations: [] });
    const { store, clock } = sync.context;
    store.markGone('tied', clock.nowMs());
    const stop = new AbortController();
    let steps = 0;
    const configured = () => {
      steps += 1;
      if (steps === 2) stop.abort(new Error('Stopped'));
      return forgetParts({ ...sync, destinations: destinationsOf(rig) }).configured();
    };
    const parts = { ...forgetParts({ ...sync, destinations: [] }), configured };
    const ended = await forgetDevice(parts, { deviceId: 'tied' }, stop.signal);
    expect(ended).toMatchObject({ outcome: 'interrupted', exit_code: 3 });
    expect(ended.points, 'some points were removed before the interruption').toBeGreaterThan(0);
    expect(store.forgetting.unfinished()).toEqual(['tied']);
    sync.close();
    const next = rig.open({ destinations: [] });
    const finished = forgetParts({ ...next, destinations: [] });
    expect(tracesOf(finished, 'tied')).toEqual(NOTHING);
    // The command again finds nothing left to do.
    expect(await forgetDevice(finished, { deviceId: 'tied' }, NEVER).catch(({ exitCode }) => exitCode)).toBe(2);
    next.close();
  });

  test('interrupted before it has begun, it reports that, and no process completes it', async () => {
    using rig = await rigOf();
    await rig.once();
    const sync = rig.open({ destinations: [] });
    const { store, clock } = sync.context;
    store.markGone('tied', clock.nowMs());
    const stop = new AbortController();
    const configured = () => {
      stop.abort(new Error('Stopped'));
      return [{ id: 1, name: 'influx' }];
    };
    const parts = { ...forgetParts({ ...sync, destinations: [] }), configured };
    await expect(forgetDevice(parts, { deviceId: 'tied' }, stop.signal)).rejects.toThrow(
      expect.objectContaining({ exitCode: 3, message: 'Stopped before anything was removed. Run the command again.' }),
    );
    expect(store.forgetting.unfinished()).toEqual([]);
    const again = forgetParts({ ...sync, destinations: destinationsOf(rig) });
    store.append(['coverage,device_id=tied state="live" 1'], 'live');
    await expect(forgetDevice(again, { deviceId: 'tied' }, NEVER)).rejects.toMatchObject({
      exitCode: 3,
      message: expect.stringMatching(/Nothing was removed\. Run the command again when they are delivered\./),
    });
    sync.close();
    await rig.once();
    const later = rig.open({ destinations: [] });
    later.context.store.markGone('tied', later.context.clock.nowMs());
    const delivered = forgetParts({ ...later, destinations: destinationsOf(rig) });
    expect(await forgetDevice(delivered, { deviceId: 'tied' }, NEVER)).toMatchObject({ outcome: 'complete' });
    later.close();
  });
});

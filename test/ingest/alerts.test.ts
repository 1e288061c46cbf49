/**
 * Alerts, whole program against a real InfluxDB: facts once, every observed state a point, whatever the listing does.
 */
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import type { SimPage } from '../../src/sim/answers.ts';
import type { AlertSpec, AlertState } from '../../src/sim/spec.ts';
import { onPath } from '../support/faults.ts';
import { influxdAvailable, type Row } from '../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig, type RigOptions } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { createWorld } from '../support/trait-world.ts';

const bench = sharedBench(openBench);

function state(status: AlertState['status'], fireCount = 1): AlertState {
  return { status, fireCount, value: 9.5 };
}

/** One alert an hour, all resolved except those in `changes`. */
function history(count: number, changes: Readonly<Record<number, AlertSpec['changes']>> = {}): AlertSpec[] {
  return Array.from({ length: count }, (_, index) => {
    const openedAtMs = NOW_MS - (count - index) * HOUR_MS;
    const resolved = [{ atMs: openedAtMs + 5 * MINUTE_MS, value: state('resolved') }];
    return { alertId: index + 1, deviceId: 'hub', openedAtMs, changes: changes[index + 1] ?? resolved };
  });
}

async function rigOf(alerts: AlertSpec[], changes: Partial<RigOptions> = {}): Promise<Rig> {
  const world = (originMs: number) =>
    createWorld({
      seed: 2,
      originMs,
      historyMs: DAY_MS,
      devices: [{ deviceId: 'hub', name: 'Hub', intervalMs: HOUR_MS }],
      alerts,
    });
  return await openRig(bench, { world, historyMs: 2 * HOUR_MS, ...changes });
}

const alertsOf = async (rig: Rig): Promise<Row[]> => await bench.influxd.query(rig.database, 'SELECT * FROM alert');

async function statesOf(rig: Rig, alertId: number): Promise<unknown[][]> {
  const rows = await bench.influxd.query(rig.database, `SELECT * FROM alert_state WHERE alert_id = '${alertId}'`);
  return rows.map(({ status, open, fire_count }) => [status, open, fire_count]);
}

const requestsFor = (rig: Rig, path: RegExp): number =>
  rig.simulator.log.requests.filter((one) => path.test(one.path)).length;

describe.runIf(influxdAvailable())('alerts', () => {
  test('a listing whose cursors lead in a circle is given up after a few pages', async () => {
    using rig = await rigOf(history(450));
    const stop = new AbortController();
    rig.simulator.faults = onPath(/alerts$/, (number, { query }) => {
      if (number > 500) stop.abort();
      if (query.get('cursor')?.startsWith('again') === true) query.delete('cursor');
      const inACircle = (page: SimPage): SimPage => ({ ...page, nextCursor: page.nextCursor ?? `again-${number}` });
      return { kind: 'mangle', change: inACircle };
    });
    expect((await rig.once({}, stop.signal)).summary.outcome).toBe('stalled');
    rig.simulator.faults = null;
    expect((await rig.once()).summary.outcome).toBe('complete');
  });

  test('the first run stores all that exist, each fact once, at the time at which it was opened', async () => {
    using rig = await rigOf(history(450));
    expect((await rig.once()).summary).toMatchObject({ outcome: 'complete', exit_code: 0 });
    await rig.once();
    const rows = await alertsOf(rig);
    const seed = rig.simulator.world.alerts(rig.clock.nowMs());
    expect(rows.map(({ alert_id }) => alert_id).sort()).toEqual(seed.map(({ alertId }) => String(alertId)).sort());
    const first = seed.at(-1);
    expect(rows[0]).toMatchObject({
      time: BigInt(first?.openedAtMs ?? 0) * 1_000_000n,
      device_id: 'hub',
      device_name: 'Hub',
      kind: 'threshold',
      sensor: 'temperature',
      workspace_id: 'ws-simulated',
      rule_name: 'Rule 1',
      threshold: 0,
    });
    expect(await statesOf(rig, 1)).toEqual([['resolved', 0, 1]]);
  });

  test('a later run stops at an alert of a completed listing: one page', async () => {
    using rig = await rigOf(history(450));
    await rig.once();
    const before = requestsFor(rig, /^\/alerts/);
    expect(before).toBe(3);
    await rig.once();
    expect(requestsFor(rig, /^\/alerts/) - before).toBe(1);
  });

  test('every state that was observed is a point, daily while it is open and nothing changes', async () => {
    const opened = NOW_MS - 3 * HOUR_MS;
    const life = [
      { atMs: opened, value: state('open') },
      { atMs: NOW_MS + 10 * MINUTE_MS, value: state('open', 2) },
      { atMs: NOW_MS + 70 * MINUTE_MS, value: state('acknowledged', 2) },
      { atMs: NOW_MS + 3 * DAY_MS, value: state('resolved', 2) },
    ];
    using rig = await rigOf(history(3, { 1: life }));
    for (const restMs of [HOUR_MS, HOUR_MS, DAY_MS + HOUR_MS, 2 * DAY_MS, HOUR_MS, DAY_MS * 2]) {
      await rig.once();
      await rig.clock.sleep(restMs);
    }
    expect(await statesOf(rig, 1)).toEqual([
      ['open', 1, 1],
      ['open', 1, 2],
      ['acknowledged', 1, 2],
      ['acknowledged', 1, 2],
      ['resolved', 0, 2],
    ]);
    expect(await alertsOf(rig)).toHaveLength(3);
  });

  test('an old open alert is requested by its id where that is cheaper than listing down to it', async () => {
    const life = [{ atMs: NOW_MS + 30 * MINUTE_MS, value: state('resolved', 7) }];
    using rig = await rigOf(history(900, { 1: life }));
    await rig.once();
    const [listed, asked] = [requestsFor(rig, /^\/alerts$/), requestsFor(rig, /^\/alerts\/1$/)];
    await rig.clock.sleep(HOUR_MS);
    await rig.once();
    expect([requestsFor(rig, /^\/alerts$/) - listed, requestsFor(rig, /^\/alerts\/1$/) - asked]).toEqual([1, 1]);
    expect(await statesOf(rig, 1)).toEqual([
      ['open', 1, 1],
      ['resolved', 0, 7],
    ]);
  });

  test('many open alerts are followed by listing, where that is cheaper', async () => {
    const open = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [index + 1, []]));
    using rig = await rigOf(history(500, open));
    await rig.once();
    const before = requestsFor(rig, /^\/alerts/);
    await rig.clock.sleep(HOUR_MS);
    await rig.once();
    expect(requestsFor(rig, /^\/alerts/) - before).toBe(3);
  });

  test('an alert that reopens is noticed by the count of the account', async () => {
    const life = [
      { atMs: NOW_MS - 400 * HOUR_MS, value: state('resolved') },
      { atMs: NOW_MS + 30 * MINUTE_MS, value: state('open', 4) },
    ];
    using rig = await rigOf(history(500, { 5: life }));
    await rig.once();
    await rig.clock.sleep(HOUR_MS);
    await rig.once();
    expect(await statesOf(rig, 5)).toEqual([
      ['resolved', 0, 1],
      ['open', 1, 4],
    ]);
  });

  test('a listing that was broken off leaves nothing behind it that a later one would rely on', async () => {
    using rig = await rigOf(history(450));
    let pages = 0;
    rig.simulator.faults = onPath(/^\/alerts$/, () => {
      pages += 1;
      return pages > 1 ? { kind: 'server-error' } : null;
    });
    const { summary, events } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'stalled', exit_code: 3 });
    expect(events.some(({ type }) => type === 'stream-failed')).toBe(true);
    // The telemetry is still there.
    expect(summary.gaps).toEqual([]);
    rig.simulator.faults = null;
    expect((await rig.once()).summary.exit_code).toBe(0);
    expect(await alertsOf(rig)).toHaveLength(450);
  });

  test('a listing that shifts while it is read loses none and doubles none', async () => {
    using rig = await rigOf(history(450));
    let last: readonly string[] = [];
    rig.simulator.faults = onPath(/^\/alerts$/, () => ({
      kind: 'mangle',
      // Each page begins with the last alerts of the one before, as where offsets move.
      change: (page: SimPage) => {
        const records = [...last, ...page.records];
        last = page.records.slice(-3);
        return { ...page, records };
      },
    }));
    await rig.once();
    expect(await alertsOf(rig)).toHaveLength(450);
    expect(await statesOf(rig, 200)).toHaveLength(1);
  });

  test('without the scope the stream is off, with one clear line, and the others run', async () => {
    using rig = await rigOf(history(5), {
      settings: { key: { scopes: ['devices:read', 'account:read', 'telemetry:read'] } },
    });
    const { summary, events } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, streams_off: ['alerts'] });
    expect(events.filter(({ type }) => type === 'stream-off')).toEqual([
      { type: 'stream-off', stream: 'alerts', scope: 'alerts:read' },
    ]);
  });

  test('an alert that cannot be parsed is quarantined, and the others are not', async () => {
    using rig = await rigOf(history(5));
    rig.simulator.faults = onPath(/^\/alerts$/, () => ({
      kind: 'mangle',
      change: (page: SimPage) => ({ ...page, records: ['{"alert_id":"seven"}', ...page.records] }),
    }));
    const { summary } = await rig.once();
    expect(summary).toMatchObject({ exit_code: 0, rejected_records: 1 });
    expect(await alertsOf(rig)).toHaveLength(5);
  });
});

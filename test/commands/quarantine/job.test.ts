/**
 * Actions on the quarantine, against a real InfluxDB: a retry lets go only what is accepted, a drop is a
 * declared loss, and neither does anything by halves.
 */
import { afterEach, describe, expect, test } from 'vitest';
import { realClock } from '../../../src/app/real-clock.ts';
import { quarantineSummaryText } from '../../../src/commands/quarantine/command.ts';
import {
  dropQuarantine,
  type QuarantineParts,
  quarantineParts,
  retryQuarantine,
} from '../../../src/commands/quarantine/job.ts';
import { listQuarantine, quarantineListText } from '../../../src/commands/quarantine/list.ts';
import type { QuarantineFilter } from '../../../src/core/quarantine.ts';
import { createDeliverer } from '../../../src/delivery/deliver.ts';
import { findReachable } from '../../../src/delivery/destination.ts';
import { type ScratchStore, scratchStore } from '../../store/support.ts';
import { sharedBuckets } from '../../support/buckets.ts';
import { DEVICES, worldOf } from '../../support/daemon-rig.ts';
import { influxdAvailable } from '../../support/influxd.ts';
import { countEffects, dieAtEffect, Killed, liveOn, mortalCommits, mortalSink } from '../../support/mortality.ts';
import { openBench, openRig, seededRandom } from '../../support/rig.ts';
import { sharedBench } from '../../support/shared-bench.ts';
import { FAULTS } from '../../support/v2-proxy.ts';

const NEVER = new AbortController().signal;
const DAY_SECONDS = 86_400;
const ALL: QuarantineFilter = { destination: null, devices: [], reason: null, from: null, to: null };

/** A reading so many seconds after the beginning of a day of its own. */
const lineAt = (day: number, second: number, device = 'd'): string =>
  `telemetry,device_id=${device},sensor=s value=${second} ${1_700_000_000 - (1_700_000_000 % DAY_SECONDS) + day * DAY_SECONDS + second}000000000`;
const ofDay = (day: number, count: number, device?: string): string[] =>
  Array.from({ length: count }, (_, second) => lineAt(day, second, device));

afterEach(() => {
  liveOn();
});

describe.runIf(influxdAvailable())('points in quarantine', () => {
  const place = sharedBuckets('WITH DURATION INF REPLICATION 1 SHARD DURATION 1d');

  const sinkOf = () => place.sink();
  const optionsOf = (sink = sinkOf()) => [{ sink, identity: place.bucket, batchLines: 300 }];

  const partsOf = ({ store }: ScratchStore, sink = sinkOf()): QuarantineParts => ({
    store,
    clock: realClock,
    reachable: () => findReachable(store.quarantine.destinations(), optionsOf(sink)),
    records: () => () => 'not tried here',
  });
  const retry = async (state: ScratchStore, filter: Partial<QuarantineFilter> = {}, sink = sinkOf()) =>
    await retryQuarantine(partsOf(state, sink), { filter: { ...ALL, ...filter }, report: () => {} }, NEVER);
  const drop = async (state: ScratchStore, filter: Partial<QuarantineFilter> = {}, signal = NEVER) =>
    await dropQuarantine(partsOf(state), { filter: { ...ALL, ...filter }, report: () => {} }, signal);

  /** Writes past the program, as somebody else would. */
  const writeBehind = async (line: string): Promise<void> => {
    const answer = await fetch(`${place.influxd.url}/write?db=${place.bucket}`, { method: 'POST', body: line });
    expect(answer.status).toBe(204);
  };

  /** A state whose day 2 the database refuses: another type was there first. */
  async function refusedDay(count = 40): Promise<ScratchStore> {
    const state = scratchStore();
    const { store } = state;
    await writeBehind(lineAt(2, 80_000, 'stranger').replace(/value=\d+/, 'value="text"'));
    store.append([...ofDay(1, 60), ...ofDay(2, count, 'a'), ...ofDay(2, 3, 'b')], 'history');
    const [options] = optionsOf();
    if (options === undefined) throw new Error('no destination');
    const deliverer = createDeliverer({ store, clock: realClock, random: seededRandom(1), observe: () => {} }, options);
    const stop = new AbortController();
    const running = deliverer.run(stop.signal).catch(() => undefined);
    while (deliverer.pendingLines() > 0) await realClock.sleep(20);
    stop.abort();
    await running;
    expect(store.backlog(deliverer.destinationId)).toEqual({ pendingLines: 0, quarantined: count + 3 });
    return state;
  }
  /** A state as if the database had refused so many points; it would take them now. */
  function refusedBefore(count: number): ScratchStore {
    const state = scratchStore();
    const { store } = state;
    store.append(ofDay(1, 60), 'history');
    const { id } = store.useDestination('influx', place.bucket);
    const refused = ofDay(2, count, 'a').map((line) => ({ line, message: 'no' }));
    const from = { block: 0, line: 0 };
    const to = store.endOf('history');
    store.acknowledge({ destinationId: id, lane: 'history', from, to, rejected: refused, missing: [], atMs: 1 });
    store.quarantine.add('d', [{ reason: 'odd', record: '{}' }], 1);
    return state;
  }
  const heal = async (): Promise<void> => {
    await place.influxd.query(place.bucket, `DELETE FROM telemetry WHERE device_id = 'stranger'`);
    // The type of a field goes with the last of its series in a shard.
    await place.influxd.query(place.bucket, 'DROP MEASUREMENT telemetry');
  };
  const count = async (): Promise<unknown> =>
    (await place.influxd.query(place.bucket, "SELECT count(value) FROM telemetry WHERE device_id != 'stranger'"))[0]?.[
      'count'
    ] ?? 0;
  const points = (state: ScratchStore): number =>
    state.rows('SELECT id FROM quarantine WHERE destination_id IS NOT NULL').length;
  const rows = (state: ScratchStore): unknown[] => state.rows('SELECT * FROM quarantine ORDER BY id');

  test('items that are refused again stay, with the new message; accepted ones leave', async () => {
    using state = await refusedDay();
    const before = rows(state) as { id: number; at_ms: number }[];
    const again = await retry(state);
    expect(again).toMatchObject({
      exit_code: 1,
      destinations: [{ name: 'influx', accepted: 0, refused: 43, blocked_reason: null }],
    });
    expect(quarantineSummaryText(again)).toContain('influx: 43 points rejected again, kept');
    const after = rows(state) as { id: number; at_ms: number; reason: string }[];
    expect(after.map(({ id }) => id)).toEqual(before.map(({ id }) => id));
    expect(after.every(({ at_ms }, nth) => at_ms > (before[nth]?.at_ms ?? 0))).toBe(true);
    expect(after[0]?.reason).toContain('field type conflict');

    await heal();
    expect(await retry(state, { devices: ['b'] })).toMatchObject({ exit_code: 0, destinations: [{ accepted: 3 }] });
    expect(await retry(state)).toMatchObject({ exit_code: 0, destinations: [{ accepted: 40, refused: 0 }] });
    expect(rows(state)).toEqual([]);
    expect(await count()).toBe(43);
    expect(quarantineSummaryText(await retry(state))).toBe('No entry in quarantine matches.\n');
  });

  test.each([
    ['is down', { kind: 'answer', status: 503, body: '{"code":"unavailable","message":"starting"}' } as const],
    ['has a full disk, and refuses all alike', FAULTS.diskFull],
    ['refuses the token', { kind: 'answer', status: 401, body: '{"code":"unauthorized","message":"no"}' } as const],
  ])('where the database %s, nothing changes, and it ends with 3', async (_what, fault) => {
    using state = await refusedDay();
    const before = rows(state);
    await heal();
    place.proxy.setFaults(() => fault);
    const summary = await retry(state);
    expect(summary).toMatchObject({ exit_code: 3, destinations: [{ accepted: 0, refused: 0 }] });
    expect(summary.destinations[0]?.blocked_reason).not.toBeNull();
    expect(quarantineSummaryText(summary)).toMatch(/not sent, still in quarantine/);
    expect(rows(state)).toEqual(before);
    place.proxy.setFaults(null);
    expect(await retry(state)).toMatchObject({ exit_code: 0, destinations: [{ accepted: 43 }] });
  });

  test('a database that stops in between keeps the accepted ones, and the rest stays', async () => {
    using state = refusedBefore(700);
    let writes = 0;
    const sink = sinkOf();
    const failing = {
      name: sink.name,
      write: async (lines: readonly string[], signal: AbortSignal) => {
        writes += 1;
        return writes === 1
          ? await sink.write(lines, signal)
          : { kind: 'later' as const, message: 'gone', waitMs: null };
      },
    };
    const summary = await retry(state, {}, failing);
    expect(summary).toMatchObject({
      exit_code: 3,
      destinations: [{ accepted: 500, blocked_reason: expect.stringMatching(/gone/) }],
    });
    expect(rows(state)).toHaveLength(201);
    expect(await count()).toBe(500);
  });

  test('a line that has become too old for a bucket is added to its missing points', async () => {
    using state = await refusedDay();
    await heal();
    await place.influxd.query('', `ALTER RETENTION POLICY autogen ON ${place.bucket} DURATION 7d`);
    expect(await retry(state)).toMatchObject({ exit_code: 0, destinations: [{ beyond_retention: 43 }] });
    expect(rows(state)).toEqual([]);
    const [destination] = state.store.quarantine.destinations();
    const lacks = state.store.missing(destination?.id ?? 0);
    expect(lacks.map(({ deviceId, reason, points }) => [deviceId, reason, points])).toEqual([
      ['a', 'beyond_retention', 40],
      ['b', 'beyond_retention', 3],
    ]);
  });

  test('points of a database that is not configured any more are not sent anywhere', async () => {
    using state = await refusedDay();
    await heal();
    const before = rows(state);
    const parts = { ...partsOf(state), reachable: () => [] };
    const summary = await retryQuarantine(parts, { filter: ALL, report: () => {} }, NEVER);
    expect(summary).toMatchObject({ exit_code: 1, destinations: [{ accepted: 0 }] });
    expect(quarantineSummaryText(summary).replaceAll('\n', ' ')).toMatch(/no longer in the configuration.*drop/);
    expect(rows(state)).toEqual(before);
    expect(await count()).toBe(0);
    expect(summary.destinations[0]?.blocked_reason).toMatch(/configure it again to send the points, or drop them/);
    expect(await retry(state)).toMatchObject({ exit_code: 0, destinations: [{ accepted: 43 }] });
  });

  test('dying at any effect of a retry leaves every point in quarantine or in the database', async () => {
    using _mortal = mortalCommits();
    using whole = refusedBefore(8);
    countEffects();
    await retry(whole, {}, mortalSink(sinkOf()));
    const effects = liveOn();
    await place.influxd.query(place.bucket, 'DROP MEASUREMENT telemetry');
    expect(effects).toBeGreaterThan(3);
    for (let nth = 1; nth <= effects; nth += 1) {
      using state = refusedBefore(8);
      dieAtEffect(nth);
      await expect(retry(state, {}, mortalSink(sinkOf()))).rejects.toThrow(Killed);
      liveOn();
      state.reopen();
      expect(Number(await count()) + points(state), `after effect ${nth}`).toBeGreaterThanOrEqual(8);
      await retry(state);
      expect([await count(), points(state)], `after effect ${nth}, and again`).toEqual([8, 0]);
      await place.influxd.query(place.bucket, 'DROP MEASUREMENT telemetry');
    }
  });

  test('a drop is recorded as a loss, for ever, and only for the selected items', async () => {
    using state = await refusedDay();
    const [destination] = state.store.quarantine.destinations();
    const id = destination?.id ?? 0;
    const day = lineAt(2, 0).split(' ').at(-1) ?? '';
    const summary = await drop(state, { devices: ['a'], from: BigInt(day) + 5_000_000_000n });
    expect(summary).toMatchObject({ exit_code: 0, destinations: [{ name: 'influx', dropped: 35 }] });
    expect(quarantineSummaryText(summary)).toContain('35 points dropped');
    expect(rows(state)).toHaveLength(8);
    expect(state.store.missingSums(id)).toMatchObject([{ reason: 'dropped', points: 35, devices: 1 }]);
    state.reopen();
    expect(state.store.missing(id)).toHaveLength(35);
    expect(state.store.missing(id)[0]).toMatchObject({
      deviceId: 'a',
      fromNs: BigInt(day) + 5_000_000_000n,
      points: 1,
    });
    // Once more gives up no more.
    expect(await drop(state, { devices: ['a'], from: BigInt(day) + 5_000_000_000n })).toMatchObject({
      destinations: [],
    });
    expect(state.store.missingSums(id)).toMatchObject([{ points: 35 }]);
    await drop(state, { reason: 'conflict' });
    expect(rows(state)).toEqual([]);
    expect(state.store.missingSums(id)).toMatchObject([{ points: 43, devices: 2 }]);
  });

  test('dying at any effect of a drop declares no point twice, and loses none without a word', async () => {
    using _mortal = mortalCommits();
    using whole = refusedBefore(1200);
    countEffects();
    await drop(whole);
    const effects = liveOn();
    for (let nth = 1; nth <= effects; nth += 1) {
      using state = refusedBefore(1200);
      dieAtEffect(nth);
      await expect(drop(state)).rejects.toThrow(Killed);
      liveOn();
      state.reopen();
      const [sum] = state.store.missingSums(1);
      expect((sum?.points ?? 0) + points(state), `after effect ${nth}`).toBe(1200);
      await drop(state);
      expect(state.store.missingSums(1)).toMatchObject([{ points: 1200 }]);
      expect(state.store.quarantine.dropped()).toMatchObject([{ source: 'd', records: 1 }]);
    }
  });

  test('an interruption ends it with 3 and leaves the rest', async () => {
    using state = refusedBefore(700);
    const stop = new AbortController();
    const parts = partsOf(state);
    const order = { filter: ALL, report: () => stop.abort(new Error('Stopped')) };
    const interrupted = await dropQuarantine(parts, order, stop.signal);
    expect(interrupted).toMatchObject({ outcome: 'interrupted', exit_code: 3 });
    expect(quarantineSummaryText(interrupted)).toContain('Interrupted. Run the command again for the rest.');
    expect(rows(state)).toHaveLength(201);
    expect(await drop(state)).toMatchObject({ outcome: 'complete', destinations: [{ dropped: 200 }] });
  });
});

describe('the list', () => {
  test('of hostile words is safe to look at, 80 columns wide, and its commands select one group each', () => {
    using state = scratchStore();
    const { id } = state.store.useDestination('influx', 'x');
    const evil = `\u001b[31m\u202Ered\r\n${'long '.repeat(2000)}"; rm -rf /`;
    const refused = [
      ...Array.from({ length: 9 }, (_, n) => ({ line: lineAt(1, n), message: `field type conflict: at ${n}` })),
      ...Array.from({ length: 4 }, (_, n) => ({ line: lineAt(2, n), message: evil })),
      { line: `telemetry,device_id=${'x'.repeat(900)} value=1 5`, message: 'points beyond something' },
    ];
    const from = { block: 0, line: 0 };
    state.store.acknowledge({
      destinationId: id,
      lane: 'live',
      from,
      to: from,
      rejected: refused,
      missing: [],
      atMs: 1,
    });
    state.store.quarantine.add('d', [{ reason: 'recorded_at is not a time', record: `{"x":"${evil}"}` }], 5);
    const list = listQuarantine(state.store.quarantine, ALL, () => new Set([id]));
    expect([list.points, list.records]).toEqual([14, 1]);
    const text = quarantineListText(list);
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is looked for.
    expect(`${text}${JSON.stringify(list)}`).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
    expect(list.groups.map(({ count, drop }) => [count, drop])).toEqual([
      [9, 'tidemark --quarantine drop --destination influx --reason "field type conflict"'],
      [4, expect.stringMatching(/--reason "long long [a-z ]+"$/)],
      [1, 'tidemark --quarantine drop --destination influx --reason "points beyond something"'],
      [1, 'tidemark --quarantine drop --reason "recorded_at is not a time"'],
    ]);
    const left = listQuarantine(state.store.quarantine, ALL, () => new Set());
    expect(left.groups[0]).toMatchObject({ is_configured: false, retry: null });
    expect(left.groups[0]?.drop).not.toBeNull();
  });

  test('of an empty quarantine reports that it is empty', () => {
    using state = scratchStore();
    const list = listQuarantine(state.store.quarantine, ALL, () => new Set());
    expect(list).toEqual({ points: 0, records: 0, groups: [], dropped: [] });
    expect(quarantineListText(list)).toBe('The quarantine is empty.\n');
  });
});

describe.runIf(influxdAvailable())('records of the API in quarantine', () => {
  const bench = sharedBench(openBench);

  test('a record that this version can parse is stored like any other, and is not late', async () => {
    using rig = await openRig(bench, { world: worldOf(DEVICES), historyMs: 86_400_000 });
    await rig.once();
    const sync = rig.open();
    try {
      const { store } = sync.context;
      const before = store.telemetry('often');
      const at = Math.floor(rig.clock.nowMs()) - 3_600_000;
      const time = new Date(at).toISOString().replace('Z', '123Z');
      const odd = { reason: 'an older version did not understand it', droppedValues: 1 };
      store.quarantine.add(
        'often',
        [
          { ...odd, record: JSON.stringify({ recorded_at: time, values: { brand_new: 5 } }) },
          { ...odd, record: JSON.stringify({ recorded_at: time, values: [['as_pairs', 6]] }) },
          { ...odd, record: '{"recorded_at":"never","values":{}}' },
          { ...odd, record: `{"recorded_at":"${time}","values":{"x":"${'y'.repeat(50)}…` },
        ],
        at,
      );
      store.quarantine.add('devices', [{ ...odd, record: '{"device_id":"new"}' }], at);
      store.quarantine.add('gone', [{ ...odd, record: JSON.stringify({ recorded_at: time, values: { v: 1 } }) }], at);
      const parts = quarantineParts({ ...sync, destinations: [] });
      const summary = await retryQuarantine(parts, { filter: ALL, report: () => {} }, NEVER);
      expect(summary).toMatchObject({ exit_code: 1, records: { done: 3, left: 3 } });
      expect(summary.records.reasons).toEqual([
        'still cannot be parsed: recorded_at is not a time',
        'the record was too long to be stored completely; read its range again with --backfill --recheck',
        'its device is unknown',
      ]);
      const after = store.telemetry('often');
      expect(after.covered).toEqual(before.covered);
      expect(after.late).toEqual(before.late);
      const lines = store.read('history', { block: 0, line: 0 }, { lines: 1e6, bytes: 1e9 }).lines;
      const ns = `${BigInt(at) * 1_000_000n + 123_000n}`;
      expect(
        lines.filter((line) => /sensor=(brand_new|as_pairs),/.test(line)).map((line) => line.split(' ').slice(-2)),
      ).toEqual([
        ['value=5', ns],
        ['value=6', ns],
      ]);
    } finally {
      sync.close();
    }
    await rig.once();
    const found = await bench.influxd.query(rig.database, "SELECT value FROM telemetry WHERE sensor = 'brand_new'");
    expect(found).toMatchObject([{ value: 5 }]);
  });

  test('a dropped record is not quarantined again when it comes once more', () => {
    using state = scratchStore();
    const record = { reason: 'odd', record: '{"odd":1}' };
    expect(state.store.quarantine.add('d', [record], 1)).toEqual([record]);
    const [item] = state.store.quarantine.page(0);
    state.store.quarantine.drop({ ids: [item?.id ?? 0], missing: [], atMs: 9 });
    expect(state.store.quarantine.add('d', [record, { ...record, record: '{"odd":2}' }], 2)).toHaveLength(1);
    expect(state.store.quarantine.dropped()).toEqual([{ source: 'd', reason: 'odd', records: 1 }]);
    expect(state.rows('SELECT at_ms, dropped_ms FROM dropped_record')).toEqual([{ at_ms: 1, dropped_ms: 9 }]);
  });
});

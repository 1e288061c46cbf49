/** History beyond the retention of a real InfluxDB: resolved by what the database reports, in two requests a batch at most. */
import { describe, expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { encodeLine, identityTag } from '../../src/core/lines/line-protocol.ts';
import type { Sink } from '../../src/core/ports.ts';
import type { MissingPoints } from '../../src/core/state/log.ts';
import { DAY_MS, HOUR_MS, SECOND_MS } from '../../src/core/time.ts';
import { createDeliverer } from '../../src/delivery/deliver.ts';
import { type ScratchStore, scratchStore } from '../store/support.ts';
import { sharedBuckets } from '../support/buckets.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { seededRandom } from '../support/rig.ts';
import type { Fault } from '../support/v2-proxy.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

const BATCH = 1000;

/** A reading of a device, so long ago. */
function line(device: string, ageMs: number, value: number | string = 1): string {
  const tags = [
    ['device_id', identityTag(device)],
    ['sensor', identityTag('t')],
  ] as const;
  const at = BigInt(Math.floor(NOW_MS - ageMs)) * 1_000_000n;
  const text = encodeLine({ measurement: 'telemetry', tags, fields: [['value', 1]], at }) ?? '';
  return text.replace('value=1', `value=${typeof value === 'number' ? value : JSON.stringify(value)}`);
}

const NOW_MS = Date.now();

describe.runIf(influxdAvailable())('a bucket that keeps thirty days', () => {
  const position = sharedBuckets('WITH DURATION 30d REPLICATION 1 SHARD DURATION 1d NAME "short"');

  /** Delivers what the state holds until nothing is left, or nothing moves any more. */
  async function deliver(state: ScratchStore) {
    const clock = createVirtualClock(NOW_MS);
    const events: AppEvent[] = [];
    const first = position.proxy.writes.length;
    const sink = position.sink();
    const onClock: Sink = { name: 'influx', write: (lines, signal) => clock.busy(sink.write(lines, signal)) };
    const deliverer = createDeliverer(
      { store: state.store, clock, random: seededRandom(1), observe: (event) => events.push(event) },
      { sink: onClock, identity: position.bucket, batchLines: BATCH },
    );
    const stop = new AbortController();
    const running = deliverer.run(stop.signal).catch(() => undefined);
    for (let second = 0; deliverer.pendingLines() > 0 && second < 120; second += 1) await clock.sleep(SECOND_MS);
    const held = deliverer.blockedReason();
    stop.abort();
    await running;
    const { quarantined } = state.store.backlog(deliverer.destinationId);
    const lacks = state.store.missing(deliverer.destinationId);
    const pending = deliverer.pendingLines();
    return { lacks, quarantined, pending, held, events, requests: position.proxy.writes.length - first };
  }

  async function storedOf(device: string): Promise<number> {
    const rows = await position.influxd.query(
      position.bucket,
      `SELECT count(value) FROM telemetry WHERE device_id = '${device}'`,
    );
    return Number(rows[0]?.['count'] ?? 0);
  }

  const points = (lacks: readonly MissingPoints[]): number => lacks.reduce((sum, lack) => sum + lack.points, 0);

  test('needs at most two requests a batch for a year of history, and the rest is missing by device', async () => {
    using state = scratchStore();
    const devices = ['a', 'b', 'odd\\id'];
    state.store.append([line('a', 1000)], 'live');
    // As a backfill brings it: breadth first, the newest page of every device, then the ones before.
    let lines = 0;
    for (let day = 0; day < 365; day += 5) {
      for (const device of devices) {
        const page = Array.from({ length: 120 }, (_, hour) => line(device, day * DAY_MS + (hour + 0.5) * HOUR_MS));
        state.store.append(page.reverse(), 'history');
        lines += page.length;
      }
    }
    const { lacks, quarantined, pending, requests, events } = await deliver(state);
    expect({ pending, quarantined }).toEqual({ pending: 0, quarantined: 0 });
    expect(requests).toBeLessThanOrEqual(1 + 2 * Math.ceil(lines / BATCH));
    expect(lacks.map(({ reason }) => reason)).toEqual(devices.map(() => 'beyond_retention'));
    const stored = await Promise.all(devices.map((device) => storedOf(identityTag(device))));
    expect(stored.reduce((sum, count) => sum + count, 0) - 1 + points(lacks)).toBe(lines);
    // Thirty days of one an hour, and what fits into the shard of a day in which the limit lies.
    for (const count of stored) expect(count > 718 && count < 720 + 26).toBe(true);
    for (const { fromNs, toNs } of lacks) {
      expect(fromNs).toBe(BigInt(NOW_MS - 364 * DAY_MS - 23.5 * HOUR_MS) * 1_000_000n);
      const ageMs = NOW_MS - Number(toNs / 1_000_000n);
      expect(ageMs > 30 * DAY_MS - HOUR_MS && ageMs < 31 * DAY_MS + HOUR_MS).toBe(true);
    }
    const reported = events.filter(({ type }) => type === 'lines-beyond-retention');
    expect(reported.length).toBeGreaterThan(0);
    expect(events.filter(({ type }) => type === 'delivery-blocked')).toEqual([]);
  });

  test('resolves a log that is entirely too old, without prior knowledge, in one request a batch', async () => {
    using state = scratchStore();
    state.store.append(
      Array.from({ length: 2500 }, (_, n) => line('a', 40 * DAY_MS + n * SECOND_MS)),
      'history',
    );
    const { lacks, pending, requests } = await deliver(state);
    expect({ pending, points: points(lacks), requests }).toEqual({ pending: 0, points: 2500, requests: 3 });
  });

  test('keeps old points, refused ones and good ones of one batch apart', async () => {
    using state = scratchStore();
    await position.influxd.write(position.bucket, line('z', HOUR_MS));
    const bad = [100, 101, 550];
    const batch = Array.from({ length: 900 }, (_, n) => {
      if (n % 3 === 0) return line('a', 31 * DAY_MS + n * SECOND_MS);
      return line('a', n * SECOND_MS, bad.includes(n) ? 'text' : n);
    });
    state.store.append(batch, 'history');
    const { lacks, quarantined, pending, requests } = await deliver(state);
    expect({ pending, quarantined, points: points(lacks) }).toEqual({ pending: 0, quarantined: 3, points: 300 });
    expect(await storedOf('a')).toBe(597);
    expect(requests).toBeLessThan(150);
  });

  const saysDropped = (count: number): Fault => ({
    kind: 'answer',
    status: 422,
    body: JSON.stringify({
      code: 'unprocessable entity',
      message: `failure writing points to database: partial write: points beyond retention policy dropped=${count}`,
    }),
  });

  test('is not trusted about points of the last hour: its clock may be wrong, and no point is given up', async () => {
    using state = scratchStore();
    state.store.append(
      Array.from({ length: 50 }, (_, n) => line('a', n * SECOND_MS)),
      'live',
    );
    position.proxy.setFaults(({ lines }) => saysDropped(lines.length));
    const { lacks, quarantined, pending, held } = await deliver(state);
    expect({ lacks, quarantined, pending }).toEqual({ lacks: [], quarantined: 0, pending: 50 });
    expect(held).toContain('beyond retention');
  });

  test('is not trusted where the number does not match: then the lines are searched', async () => {
    using state = scratchStore();
    const lines = [
      ...Array.from({ length: 20 }, (_, n) => line('a', 31 * DAY_MS + n)),
      line('a', 1000),
      line('a', 2000),
    ];
    state.store.append(lines, 'history');
    const first = position.proxy.writes.length;
    position.proxy.setFaults(({ nth }) => (nth === first ? saysDropped(7) : null));
    const { lacks, quarantined, pending } = await deliver(state);
    expect({ pending, quarantined, points: points(lacks) }).toEqual({ pending: 0, quarantined: 0, points: 20 });
    expect(await storedOf('a')).toBe(2);
  });

  test('gives up nothing when the second request is refused for another reason, or not answered', async () => {
    for (const problem of [
      { kind: 'cut' },
      { kind: 'answer', status: 503, body: '' },
      {
        kind: 'answer',
        status: 400,
        body: '{"code":"invalid","message":"partial write: no space left on device dropped=1"}',
      },
    ] as const satisfies readonly Fault[]) {
      using state = scratchStore();
      state.store.append([line('a', 31 * DAY_MS), line('a', 1000)], 'history');
      const first = position.proxy.writes.length;
      position.proxy.setFaults(({ nth }) => (nth === first ? null : problem));
      const { lacks, quarantined, pending } = await deliver(state);
      expect({ lacks, quarantined, pending }).toEqual({ lacks: [], quarantined: 0, pending: 2 });
    }
  });
});

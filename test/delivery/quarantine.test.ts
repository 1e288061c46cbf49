/** A database that refuses everything with 400 or 422, as a full disk may: nothing is put aside, over restarts. */
import { describe, expect, test } from 'vitest';
import { SECOND_MS } from '../../src/core/time.ts';
import { createDeliverer } from '../../src/delivery/deliver.ts';
import { type ScratchStore, scratchStore } from '../store/support.ts';
import { sharedBuckets } from '../support/buckets.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { seededRandom } from '../support/rig.ts';
import { FAULTS, type Fault } from '../support/v2-proxy.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

const lineOf = (n: number, kind = 'value=1'): string =>
  `telemetry,device_id=d,sensor=s ${kind} ${1_700_000_000_000_000_000n + BigInt(n)}`;
const linesOf = (from: number, to: number, kind?: string): string[] =>
  Array.from({ length: to - from }, (_, n) => lineOf(from + n, kind));

/** Observed answers of a database with a full disk: each refuses every line alike. */
const FULL: Readonly<Record<string, Fault>> = {
  'rejected by the engine': FAULTS.diskFull,
  'a partial write without a reason': {
    kind: 'answer',
    status: 400,
    body: '{"code":"invalid","message":"partial write: dropped=1"}',
  },
  'no space left on the device': {
    kind: 'answer',
    status: 400,
    body: '{"code":"invalid","message":"partial write: write /wal/1: no space left on device dropped=1"}',
  },
  'points beyond retention, by a clock that is wrong': {
    kind: 'answer',
    status: 422,
    body: '{"code":"unprocessable entity","message":"partial write: points beyond retention policy dropped=9999"}',
  },
};

describe.runIf(influxdAvailable())('a full disk behind a refusal', () => {
  const position = sharedBuckets();

  /** One run of delivery, for so long. */
  async function live({ store }: ScratchStore, ms: number) {
    const clock = createVirtualClock(1_700_000_100_000);
    const sink = position.sink();
    const deliverer = createDeliverer(
      { store, clock, random: seededRandom(1), observe: () => {} },
      {
        sink: { name: 'influx', write: (lines, signal) => clock.busy(sink.write(lines, signal)) },
        identity: position.bucket,
        batchLines: 300,
      },
    );
    const stop = new AbortController();
    const running = deliverer.run(stop.signal).catch(() => undefined);
    await clock.sleep(ms);
    const held = deliverer.blockedReason();
    stop.abort();
    await running;
    const id = deliverer.destinationId;
    return { ...store.backlog(id), lacks: store.missing(id), held };
  }

  test.each(Object.entries(FULL))('(%s) puts nothing aside, with nothing known from before', async (_words, fault) => {
    using state = scratchStore();
    // One kind of line only: no other could speak for the database.
    state.store.append(linesOf(0, 1000), 'history');
    position.proxy.setFaults(() => fault);
    for (let lives = 0; lives < 3; lives += 1) {
      expect(await live(state, 300 * SECOND_MS)).toMatchObject({ pendingLines: 1000, quarantined: 0, lacks: [] });
    }
    position.proxy.setFaults(null);
    expect(await live(state, 300 * SECOND_MS)).toEqual({ pendingLines: 0, quarantined: 0, lacks: [], held: null });
    expect(await position.influxd.query(position.bucket, 'SELECT count(value) FROM telemetry')).toMatchObject([
      { count: 1000 },
    ]);
  });

  test.each(Object.entries(FULL))(
    '(%s) puts nothing aside when it fills in the midst of a delivery',
    async (_w, fault) => {
      using state = scratchStore();
      state.store.append(linesOf(0, 1000), 'live');
      state.store.append(linesOf(1000, 1400, 'flag=true'), 'history');
      const first = position.proxy.writes.length;
      for (const from of [1, 2, 3, 4]) {
        position.proxy.setFaults(({ nth }) => (nth >= first + from ? fault : null));
        expect(await live(state, 60 * SECOND_MS)).toMatchObject({ quarantined: 0, lacks: [] });
      }
      position.proxy.setFaults(null);
      expect(await live(state, 300 * SECOND_MS)).toMatchObject({ pendingLines: 0, quarantined: 0, held: null });
      expect(await position.influxd.query(position.bucket, 'SELECT count(value) FROM telemetry')).toMatchObject([
        { count: 1000 },
      ]);
    },
  );
});

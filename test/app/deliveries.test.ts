/**
 * A database that has telemetry of the workspace before anything was sent to it: found by one query, on real databases.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createWorkspaceConfirmation, openDeliveries, withOldPointCheck } from '../../src/app/deliveries.ts';
import type { AppEvent } from '../../src/core/events.ts';
import { createHeartbeats, healthOf } from '../../src/core/heartbeats.ts';
import type { DestinationKind } from '../../src/core/lines/dialect.ts';
import type { Sink, WriteAnswer } from '../../src/core/ports.ts';
import { MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import type { Deliverer } from '../../src/delivery/deliver.ts';
import { createPointSource } from '../../src/influx/point-source.ts';
import type { InfluxSinkOptions } from '../../src/influx/sink.ts';
import { scratchStore } from '../store/support.ts';
import { type Influxd, influxdAvailable, startInfluxd } from '../support/influxd.ts';
import { startVictoria, type Victoria, victoriaAvailable } from '../support/victoria.ts';
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts';

const signal = new AbortController().signal;
const LINES = [
  "telemetry,workspace_id=it's\\ mine,device_id=d,sensor=a value=1 1700000000000000000",
  'device,workspace_id=other,device_id=d name="n" 1700000000000000000',
].join('\n');

let influxd: Influxd;
let victoria: Victoria;
beforeAll(async () => {
  if (influxdAvailable()) {
    influxd = await startInfluxd();
    for (const name of ['full', 'empty']) await influxd.query('', `CREATE DATABASE ${name}`);
    expect(await influxd.write('full', LINES)).toBe(204);
  }
  if (victoriaAvailable()) {
    victoria = await startVictoria();
    await fetch(`${victoria.url}/write`, { method: 'POST', body: LINES });
    // A request for an export makes its points visible.
    await victoria.exported();
  }
});
afterAll(async () => {
  await influxd?.[Symbol.asyncDispose]();
  await victoria?.[Symbol.asyncDispose]();
});

const at = (url: string, bucket = ''): InfluxSinkOptions => ({
  name: 'influx',
  url,
  token: null,
  org: '',
  bucket,
  timeoutMs: 5000,
});

describe('whether a database has telemetry of a workspace', () => {
  test.runIf(influxdAvailable())('is reported by InfluxDB', async () => {
    const has = async (bucket: string, tag: string) =>
      await createPointSource(at(influxd.url, bucket), 'influxdb', tag).hasAny(signal);
    expect(await has('full', "it's mine")).toBe(true);
    expect(await has('full', 'other')).toBe(false);
    expect(await has('empty', "it's mine")).toBe(false);
    expect(await has('none', "it's mine")).toMatchObject({ kind: 'rejected' });
  });

  test.runIf(victoriaAvailable())('is reported by VictoriaMetrics', async () => {
    const has = async (tag: string) => await createPointSource(at(victoria.url), 'victoriametrics', tag).hasAny(signal);
    expect(await has("it's mine")).toBe(true);
    expect(await has('other')).toBe(false);
  });
});

/**
 * Writes through a sink that looks back first.
 *
 * @returns the databases that were warned of, and how often it was written.
 */
async function written(
  options: InfluxSinkOptions,
  {
    kind = 'influxdb',
    workspace = "it's mine",
    answers = ['accepted'],
  }: { kind?: DestinationKind; workspace?: string | null; answers?: string[] } = {},
) {
  const reported: AppEvent[] = [];
  const left = [...answers];
  const sink: Sink = {
    name: 'influx',
    write: () => Promise.resolve({ kind: left.shift(), message: '', waitMs: null } as unknown as WriteAnswer),
  };
  const parts = {
    databases: [options],
    workspace: () => workspace,
    observe: (event: AppEvent) => reported.push(event),
  };
  const to = withOldPointCheck({ sink, identity: '', batchLines: 1, kind }, parts);
  const got: string[] = [];
  for (const _ of answers) got.push((await to.sink.write([], signal)).kind);
  expect(got).toEqual(answers);
  return reported;
}

describe.runIf(influxdAvailable())('before the first write', () => {
  const WARNED = [{ type: 'destination-older', destination: 'influx' }];

  test('it is warned of once, also where the write has to wait', async () => {
    expect(await written(at(influxd.url, 'full'), { answers: ['later', 'accepted', 'accepted'] })).toEqual(WARNED);
  });

  test.runIf(victoriaAvailable())('it is warned of by VictoriaMetrics too', async () => {
    expect(await written(at(victoria.url), { kind: 'victoriametrics' })).toEqual(WARNED);
  });

  test.each([
    ['where there is nothing', () => at(influxd.url, 'empty'), {}],
    ['where the state was not empty', () => at(influxd.url, 'full'), { workspace: null }],
    ['where it may not be queried', () => at(influxd.url, 'none'), {}],
    ['where no server answers the query', () => at('http://127.0.0.1:9'), {}],
  ] as const)('nothing is logged %s', async (_what, place, more) => {
    expect(await written(place(), more)).toEqual([]);
  });

  test('a destination that was down is probed again, but not for points written meanwhile', async () => {
    const down = { ...at('http://127.0.0.1:9', 'full') };
    const reported: AppEvent[] = [];
    const answers = ['later', 'accepted', 'accepted'];
    const sink: Sink = {
      name: 'influx',
      write: () => Promise.resolve({ kind: answers.shift() } as unknown as WriteAnswer),
    };
    let place: InfluxSinkOptions = down;
    const parts = {
      get databases() {
        return [place];
      },
      workspace: () => "it's mine",
      observe: (event: AppEvent) => reported.push(event),
    };
    const to = withOldPointCheck({ sink, identity: '', batchLines: 1 }, parts);
    await to.sink.write([], signal);
    await to.sink.write([], signal);
    place = at(influxd.url, 'full');
    await to.sink.write([], signal);
    expect(reported, 'it was accepted while nobody could tell').toEqual([]);
  });
});

describe('a delivery that waits is no loop that is stuck', () => {
  const TIMEOUT_MS = 2 * MINUTE_MS;
  const ACCEPTED: WriteAnswer = { kind: 'accepted' };

  /** Delivers five lines, one a batch, and returns after how many seconds the delivery counted as stuck. */
  async function stuckAt(
    answer: (nth: number, clock: VirtualClock, signal: AbortSignal) => Promise<WriteAnswer>,
    beside: (deliverer: Deliverer, clock: VirtualClock) => Promise<unknown> = () => Promise.resolve(),
  ): Promise<number[]> {
    using state = scratchStore();
    const clock = createVirtualClock(1_700_000_000_000);
    const line = (n: number): string => `device,device_id=d value=${n} 170000000000000000${n}`;
    state.store.append([1, 2, 3, 4, 5].map(line), 'live');
    const heartbeats = createHeartbeats(clock);
    let nth = 0;
    const write: Sink['write'] = async (_lines, stopped) => {
      nth += 1;
      return await answer(nth, clock, stopped);
    };
    const sink: Sink = { name: 'influx', write };
    const confirmation = createWorkspaceConfirmation();
    confirmation.confirm();
    const serverClock = { isKnown: () => false, latestNs: () => 0n };
    const parts = {
      store: state.store,
      clock,
      random: () => 0.5,
      observe: () => {},
      heartbeats,
      confirmation,
      serverClock,
    };
    const [deliverer] = openDeliveries([{ sink, identity: 'here', batchLines: 1, timeoutMs: TIMEOUT_MS }], parts);
    if (deliverer === undefined) throw new Error('no delivery');
    const stop = new AbortController();
    const running = deliverer.run(stop.signal).catch(() => undefined);
    const other = beside(deliverer, clock);
    const found: number[] = [];
    for (let second = 0; second < 310; second += 1) {
      await clock.sleep(SECOND_MS);
      heartbeats.tick();
      if (!healthOf(heartbeats.loops()).healthy) found.push(second);
    }
    stop.abort();
    await Promise.all([running, other]);
    return found;
  }

  test('while one of several writes takes long and the others have ended', async () => {
    const found = await stuckAt(async (nth, clock) => {
      await clock.sleep(nth === 4 ? TIMEOUT_MS - SECOND_MS : 300);
      return ACCEPTED;
    });
    expect(found).toEqual([]);
  });

  test('while it waits as long as the database requested, and a replay has written beside it', async () => {
    const later: WriteAnswer = { kind: 'later', message: 'HTTP 503', waitMs: 3 * MINUTE_MS };
    const found = await stuckAt(
      async (_nth, clock) => {
        await clock.sleep(10);
        return later;
      },
      async (deliverer, clock) => {
        await clock.sleep(SECOND_MS);
        await deliverer.resend(['device,device_id=d value=1 1700000000000000001'], signal);
      },
    );
    expect(found).toEqual([]);
  });

  test('a delivery that waits for longer than a write may take is stuck', async () => {
    const found = await stuckAt(async (nth, clock, stopped) => {
      await clock.sleep(nth === 4 ? Number.POSITIVE_INFINITY : 300, stopped);
      return ACCEPTED;
    });
    expect(found[0]).toBe(300);
  });
});

/** Which destination a database is: from the configuration or from its own answer, announced, filled from the log. */
import { describe, expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { type DestinationKind, destinationIdentity } from '../../src/core/lines/dialect.ts';
import type { KindAnswer, Sink, UnknownServer } from '../../src/core/ports.ts';
import { blockedByAnswerFact, blockedFact } from '../../src/core/state/log.ts';
import { MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { createDeliverer, type Deliverer } from '../../src/delivery/deliver.ts';
import type { DestinationOptions } from '../../src/delivery/destination.ts';
import { createUnknownServer } from '../../src/influx/probe.ts';
import { type ScratchStore, scratchStore } from '../store/support.ts';
import { seededRandom } from '../support/rig.ts';
import { sharedVictoria } from '../support/shared-bench.ts';
import { victoriaAvailable } from '../support/victoria.ts';
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts';

const LINES = [
  'telemetry,device_id=d,sensor=a value=1 1700000000001000000',
  'telemetry,device_id=d,sensor=b flag=true 1700000000002000000',
];
const TEXT = 'telemetry,device_id=d,sensor=c text="on" 1700000000003000000';
const PLACE = { url: 'http://db.test', org: '', bucket: '' };

/** A database that records its requests and lines. */
function database(answers: readonly KindAnswer[]) {
  const sent: { readonly kind: DestinationKind; readonly lines: readonly string[] }[] = [];
  let asked = 0;
  const sinkFor = (kind: DestinationKind): Sink => ({
    name: 'influx',
    write: (lines) => {
      sent.push({ kind, lines });
      return Promise.resolve({ kind: 'accepted' });
    },
  });
  const server: UnknownServer = {
    request: () => {
      asked += 1;
      return Promise.resolve(answers[asked - 1] ?? answers.at(-1) ?? { kind: 'later', message: 'down', waitMs: null });
    },
    sinkFor,
  };
  return { server, sinkFor, sent, asked: () => asked };
}

interface Life {
  readonly clock: VirtualClock;
  readonly deliverer: Deliverer;
  readonly events: readonly AppEvent[];
  /** Delivers for so long, and ends. */
  run(ms: number): Promise<void>;
}

function lifeOf({ store }: ScratchStore, options: Omit<DestinationOptions, 'batchLines'>): Life {
  const clock = createVirtualClock(1_700_000_000_000);
  const events: AppEvent[] = [];
  const deliverer = createDeliverer(
    { store, clock, random: seededRandom(1), observe: (event) => events.push(event) },
    { ...options, batchLines: 100 },
  );
  return {
    clock,
    deliverer,
    events,
    run: async (ms) => {
      const stop = new AbortController();
      const running = deliverer.run(stop.signal).catch(() => undefined);
      await clock.sleep(ms);
      stop.abort();
      await running;
    },
  };
}

const auto = (server: UnknownServer): Omit<DestinationOptions, 'batchLines'> => ({
  sink: server.sinkFor('influxdb'),
  identity: destinationIdentity({ kind: 'auto', ...PLACE }),
  kind: server,
});

const fixed = (
  db: ReturnType<typeof database>,
  position: Partial<typeof PLACE> = {},
  kind: DestinationKind = 'influxdb',
) => ({
  sink: db.sinkFor(kind),
  identity: destinationIdentity({ kind, ...PLACE, ...position }),
  kind,
});

const DOWN: KindAnswer = { kind: 'later', message: 'the database refuses the connection', waitMs: null };
const VICTORIA: KindAnswer = { kind: 'known', server: 'victoriametrics' };

const eventsOf = (life: Life, type: AppEvent['type']) => life.events.filter((event) => event.type === type);

test('the state has the reason and the remedy of a block as soon as it begins, and no longer than it lasts', async () => {
  using state = scratchStore();
  state.store.append(LINES, 'live');
  let isWrong = true;
  const sink: Sink = {
    name: 'influx',
    write: () =>
      Promise.resolve(
        isWrong ? { kind: 'blocked', message: 'HTTP 404', hint: 'correct influx.url' } : { kind: 'accepted' },
      ),
  };
  const life = lifeOf(state, { ...fixed(database([])), sink });
  const { destinationId: id } = life.deliverer;
  const noted = () => [blockedFact(id), blockedByAnswerFact(id)].map((key) => state.store.fact(key));
  await life.run(0.5 * SECOND_MS);
  const reason = 'HTTP 404; correct influx.url';
  expect([life.deliverer.blockedReason(), ...noted()]).toEqual([reason, reason, 'yes']);
  // The next process ends it, although it did not see it begin.
  isWrong = false;
  const next = lifeOf(state, { ...fixed(database([])), sink });
  await next.run(MINUTE_MS);
  expect([next.deliverer.pendingLines(), ...noted()]).toEqual([0, '', '']);
});

describe('a database without a configured kind', () => {
  test('is probed for its kind until it answers, and gets nothing before', async () => {
    using state = scratchStore();
    state.store.append([...LINES, TEXT], 'live');
    const db = database([DOWN, DOWN, DOWN, VICTORIA]);
    const life = lifeOf(state, auto(db.server));
    expect(life.deliverer.pendingLines()).toBe(3);
    await life.run(0.5 * SECOND_MS);
    expect([db.sent, life.deliverer.blockedReason()]).toEqual([[], DOWN.message]);
    expect(eventsOf(life, 'destination-new')).toEqual([]);
    await life.run(60 * SECOND_MS);
    expect(db.sent).toEqual([
      {
        kind: 'victoriametrics',
        lines: [
          'telemetry,device_id=d,sensor=a value=1 1700000000001',
          'telemetry,device_id=d,sensor=b flag=1 1700000000002',
        ],
      },
    ]);
    expect([life.deliverer.pendingLines(), life.deliverer.deliveredLines(), life.deliverer.blockedReason()]).toEqual([
      0,
      2,
      null,
    ]);
    expect(eventsOf(life, 'destination-new')).toMatchObject([{ known: false, before: null, points: 3 }]);
    expect(db.asked()).toBe(4);
  });

  test('is not probed again once it has answered, in this process or the next', async () => {
    using state = scratchStore();
    const first = database([VICTORIA]);
    await lifeOf(state, auto(first.server)).run(SECOND_MS);
    state.store.append(LINES, 'live');
    const second = database([]);
    const life = lifeOf(state, auto(second.server));
    await life.run(SECOND_MS);
    expect(second.asked()).toBe(0);
    expect(second.sent.map(({ kind }) => kind)).toEqual(['victoriametrics']);
    expect(life.events.filter(({ type }) => type !== 'lines-delivered')).toEqual([]);
  });

  test('is the InfluxDB that it was before there was a choice, with its place in the log', async () => {
    using state = scratchStore();
    state.store.append(LINES, 'live');
    await lifeOf(state, fixed(database([]))).run(SECOND_MS);
    state.store.append([TEXT], 'live');
    const db = database([]);
    await lifeOf(state, auto(db.server)).run(SECOND_MS);
    expect([db.asked(), db.sent]).toEqual([0, [{ kind: 'influxdb', lines: [TEXT] }]]);
  });

  test('that never answered keeps its position over restarts, with its missing points', async () => {
    using state = scratchStore();
    state.store.append(LINES, 'live');
    const id = lifeOf(state, auto(database([]).server)).deliverer.destinationId;
    const life = lifeOf(state, auto(database([DOWN, VICTORIA]).server));
    expect(life.deliverer.destinationId).toBe(id);
    await life.run(60 * SECOND_MS);
    expect(life.deliverer.destinationId).toBe(id);
    expect(state.rows('SELECT count(*) AS known FROM destination')).toEqual([{ known: 1 }]);
  });
});

describe('a destination that changes', () => {
  test('is announced with its earlier identity and the number of points, and filled from the log', async () => {
    using state = scratchStore();
    state.store.append(LINES, 'live');
    state.store.append([TEXT], 'history');
    const [old, next] = [database([]), database([])];
    const first = lifeOf(state, fixed(old));
    expect(eventsOf(first, 'destination-new')).toMatchObject([{ before: null, known: false, points: 3 }]);
    await first.run(SECOND_MS);

    const moved = lifeOf(state, fixed(next, { bucket: 'other' }));
    expect(eventsOf(moved, 'destination-new')).toEqual([
      { type: 'destination-new', destination: 'influx', known: false, before: 'InfluxDB at http://db.test', points: 3 },
    ]);
    await moved.run(SECOND_MS);
    expect(next.sent.flatMap(({ lines }) => lines)).toEqual([...LINES, TEXT]);

    state.store.append(['telemetry,device_id=d,sensor=a value=2 1700000000004000000'], 'live');
    const back = lifeOf(state, fixed(old));
    expect(eventsOf(back, 'destination-new')).toMatchObject([
      { known: true, before: 'InfluxDB at http://db.test, bucket other', points: 1 },
    ]);
    await back.run(SECOND_MS);
    expect(old.sent).toHaveLength(3);
  });

  test('from InfluxDB to VictoriaMetrics at the same address is another one', async () => {
    using state = scratchStore();
    state.store.append(LINES, 'live');
    await lifeOf(state, fixed(database([]))).run(SECOND_MS);
    const db = database([]);
    const life = lifeOf(state, fixed(db, {}, 'victoriametrics'));
    await life.run(SECOND_MS);
    expect(eventsOf(life, 'destination-new')).toMatchObject([{ known: false, points: 2 }]);
    expect(db.sent).toMatchObject([{ kind: 'victoriametrics' }]);
  });
});

describe('lines that a kind of destination cannot store', () => {
  test('are acknowledged without a request, alone, before, between and after others', async () => {
    for (const lines of [[TEXT], [TEXT, ...LINES], [LINES[0] ?? '', TEXT, LINES[1] ?? ''], [...LINES, TEXT, TEXT]]) {
      using state = scratchStore();
      state.store.append(lines, 'live');
      const db = database([]);
      const life = lifeOf(state, fixed(db, {}, 'victoriametrics'));
      await life.run(SECOND_MS);
      expect(life.deliverer.pendingLines()).toBe(0);
      expect(db.sent).toHaveLength(lines.length === 1 ? 0 : 1);
      expect(db.sent.flatMap((each) => each.lines)).toHaveLength(lines.length === 1 ? 0 : 2);
    }
  });

  test('acknowledge nothing behind them while the destination is blocked', async () => {
    using state = scratchStore();
    state.store.append([TEXT, ...LINES, TEXT], 'live');
    const sink: Sink = {
      name: 'influx',
      write: () => Promise.resolve({ kind: 'later', message: 'HTTP 503', waitMs: null }),
    };
    const life = lifeOf(state, { ...fixed(database([]), {}, 'victoriametrics'), sink });
    await life.run(SECOND_MS);
    expect([life.deliverer.pendingLines(), life.deliverer.blockedReason()]).toEqual([3, 'HTTP 503']);
    expect(eventsOf(life, 'delivery-blocked')).toMatchObject([{ hint: expect.stringContaining('by itself') }, {}]);
  });
});

describe.runIf(victoriaAvailable())('a real VictoriaMetrics', () => {
  const victoria = sharedVictoria();

  test('is found to be one and filled, by the address alone', async () => {
    using state = scratchStore();
    state.store.append([...LINES, TEXT], 'live');
    const position = { url: victoria.url, org: '', bucket: 'unused' };
    const unknown = createUnknownServer({ name: 'influx', ...position, token: null, timeoutMs: MINUTE_MS });
    const identity = destinationIdentity({ kind: 'auto', ...position });
    const life = lifeOf(state, { sink: unknown.sinkFor('influxdb'), identity, kind: unknown });
    const stop = new AbortController();
    const running = life.deliverer.run(stop.signal).catch(() => undefined);
    await expect.poll(() => life.deliverer.pendingLines()).toBe(0);
    stop.abort();
    await running;
    expect(eventsOf(life, 'destination-kind')).toMatchObject([{ kind: 'victoriametrics' }]);
    expect(
      (await victoria.exported()).map(({ metric, values, timestamps }) => [metric['__name__'], values, timestamps]),
    ).toEqual(
      expect.arrayContaining([
        ['telemetry_value', [1], [1_700_000_000_001]],
        ['telemetry_flag', [1], [1_700_000_000_002]],
      ]),
    );
  });
});

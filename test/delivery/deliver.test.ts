/** The position of a destination follows what it has accepted, batch by batch, and never runs ahead. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import type { PackedText, Sink, WriteAnswer } from '../../src/core/ports.ts';
import { DAY_MS, MINUTE_MS } from '../../src/core/time.ts';
import { BATCH_LENGTH, createDeliverer, type Deliverer } from '../../src/delivery/deliver.ts';
import { type ScratchStore, scratchStore } from '../store/support.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

const AT_MS = 1_700_000_000_000;

function line(n: number): string {
  return `telemetry,device_id=d,sensor=s value=${n} ${BigInt(AT_MS + n) * 1_000_000n}`;
}

function lines(from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, index) => line(from + index));
}

/** Delivers for so long, to a destination that answers by a rule. */
async function deliver(state: ScratchStore, answer: (sent: readonly string[], nth: number) => WriteAnswer) {
  const clock = createVirtualClock(AT_MS + DAY_MS);
  const events: AppEvent[] = [];
  const writes: (readonly string[])[] = [];
  const sink: Sink = {
    name: 'influx',
    write: (sent) => {
      writes.push(sent);
      return clock.busy(Promise.resolve(answer(sent, writes.length)));
    },
  };
  const observe = (event: AppEvent): void => void events.push(event);
  const parts = { store: state.store, clock, random: () => 0.5, observe };
  const deliverer = createDeliverer(parts, { sink, identity: 'here', batchLines: 5 });
  const stop = new AbortController();
  const running = deliverer.run(stop.signal).catch(() => undefined);
  await clock.sleep(10 * MINUTE_MS);
  const blocked = deliverer.blockedReason();
  stop.abort();
  await running;
  return { deliverer, writes, events, blocked };
}

const ACCEPTED: WriteAnswer = { kind: 'accepted' };

describe('the log of a destination', () => {
  test('is sent in batches of the configured size, live lines before those of the history', async () => {
    using state = scratchStore();
    state.store.append(lines(0, 4), 'history');
    state.store.append(lines(10, 17), 'live');
    const { deliverer, writes } = await deliver(state, () => ACCEPTED);
    expect(writes).toEqual([lines(10, 15), lines(15, 17), lines(0, 4)]);
    expect([deliverer.pendingLines(), deliverer.deliveredLines()]).toEqual([0, 11]);
  });

  test('waits where the destination does not answer, and every line arrives later, in order', async () => {
    using state = scratchStore();
    state.store.append(lines(0, 8), 'live');
    const later: WriteAnswer = { kind: 'later', message: 'HTTP 503', waitMs: null };
    const { deliverer, writes } = await deliver(state, (_sent, nth) => (nth <= 3 ? later : ACCEPTED));
    expect(writes.slice(0, 4)).toEqual([lines(0, 5), lines(0, 5), lines(0, 5), lines(0, 5)]);
    expect(writes[4]).toEqual(lines(5, 8));
    expect(deliverer.deliveredLines()).toBe(8);
  });

  test('stays where a person has to act, with the reason, and no line is skipped', async () => {
    using state = scratchStore();
    state.store.append(lines(0, 3), 'live');
    const answer: WriteAnswer = { kind: 'blocked', message: 'HTTP 401', hint: 'Look at influx.token.' };
    const { deliverer, blocked } = await deliver(state, () => answer);
    expect(blocked).toMatch(/HTTP 401/);
    expect([deliverer.pendingLines(), deliverer.deliveredLines()]).toEqual([3, 0]);
    expect(state.store.position(deliverer.destinationId, 'live')).toEqual({ block: 0, line: 0 });
  });

  test('continues past a line that is refused for good: that one is in quarantine, and reported', async () => {
    using state = scratchStore();
    state.store.append(lines(0, 9), 'live');
    const { deliverer, events } = await deliver(state, (sent) =>
      sent.includes(line(3)) ? { kind: 'rejected', message: 'no', retention: false } : ACCEPTED,
    );
    expect(state.store.backlog(deliverer.destinationId)).toEqual({ pendingLines: 0, quarantined: 1 });
    expect(state.store.quarantine.holds(deliverer.destinationId, line(3))).toBe(true);
    expect(deliverer.deliveredLines()).toBe(8);
    expect(events.filter(({ type }) => type === 'lines-quarantined')).toMatchObject([{ lines: 1, message: 'no' }]);
  });

  test('is sent from where the last process has stopped', async () => {
    using state = scratchStore();
    state.store.append(lines(0, 3), 'live');
    await deliver(state, () => ACCEPTED);
    state.reopen();
    state.store.append(lines(3, 5), 'live');
    const { writes } = await deliver(state, () => ACCEPTED);
    expect(writes).toEqual([lines(3, 5)]);
  });
});

describe('a destination that answers after a second', () => {
  const BATCH = 5;

  /** Delivers to a destination whose answers come after so long, in virtual time, each by its own rule. */
  async function slowly(
    state: ScratchStore,
    seconds: number,
    {
      answerOf = () => ACCEPTED,
      tookMs = () => 1000,
    }: {
      answerOf?: (sent: readonly string[]) => WriteAnswer;
      tookMs?: (sent: readonly string[]) => number;
    } = {},
  ) {
    const clock = createVirtualClock(AT_MS + DAY_MS);
    const accepted: (readonly string[])[] = [];
    let [underWay, most] = [0, 0];
    const write = async (sent: readonly string[], signal: AbortSignal): Promise<WriteAnswer> => {
      underWay += 1;
      most = Math.max(most, underWay);
      await clock.sleep(tookMs(sent), signal).finally(() => {
        underWay -= 1;
      });
      const answer = answerOf(sent);
      if (answer.kind === 'accepted') accepted.push(sent);
      return answer;
    };
    const parts = { store: state.store, clock, random: () => 0.5, observe: () => {} };
    const deliverer = createDeliverer(parts, { sink: { name: 'influx', write }, identity: 'here', batchLines: BATCH });
    const stop = new AbortController();
    const running = deliverer.run(stop.signal).catch(() => undefined);
    await clock.sleep(seconds * 1000);
    const { delivered, position } = {
      delivered: deliverer.deliveredLines(),
      position: state.store.position(deliverer.destinationId, 'live'),
    };
    stop.abort();
    await running;
    return { accepted, delivered, position, most, pending: deliverer.pendingLines() };
  }

  test('gets more batches at once, in order: 50,000 points a second of it once it is known', async () => {
    using state = scratchStore();
    state.store.append(lines(0, 2000), 'live');
    // The first four seconds carry a batch, two, four and eight.
    const { accepted, delivered, most } = await slowly(state, 30);
    expect(accepted.flat()).toEqual(lines(0, 2000));
    expect(delivered).toBe(2000);
    expect(most).toBe(16);
    const perSecond = (2000 / BATCH - 15) / (30 - 4);
    const longLine = 150;
    expect((perSecond * BATCH_LENGTH) / longLine).toBeGreaterThan(50_000);
  });

  test('is acknowledged in the order of the log, in whatever order it answers', async () => {
    using state = scratchStore();
    state.store.append(lines(0, 100), 'live');
    // The fourth batch is not answered for long: those after it are.
    const isSlow = (sent: readonly string[]): boolean => sent.includes(line(3 * BATCH));
    const { accepted, delivered, position } = await slowly(state, 30, {
      tookMs: (sent) => (isSlow(sent) ? MINUTE_MS : 1000),
    });
    expect(accepted.length).toBeGreaterThan(3);
    expect(delivered).toBe(3 * BATCH);
    expect(position).toEqual({ block: 1, line: 3 * BATCH });
  });

  test('batches after a batch that is not accepted are sent again, and none is skipped', async () => {
    using state = scratchStore();
    state.store.append(lines(0, 200), 'live');
    let refusals = 0;
    const { accepted, delivered, pending } = await slowly(state, 120, {
      answerOf: (sent) => {
        if (!sent.includes(line(50)) || refusals === 3) return ACCEPTED;
        refusals += 1;
        return { kind: 'later', message: 'HTTP 503', waitMs: null };
      },
    });
    expect([delivered, pending, refusals]).toEqual([200, 0, 3]);
    expect(new Set(accepted.flat())).toEqual(new Set(lines(0, 200)));
  });

  test('gets fewer batches at once again where more bring nothing any more', async () => {
    using state = scratchStore();
    state.store.append(lines(0, 8000), 'live');
    const widths: number[] = [];
    let underWay = 0;
    const { delivered } = await slowly(state, 120, {
      // After a hundred batches it works on one after the other.
      tookMs: () => {
        underWay += 1;
        return widths.push(underWay) > 100 ? 30 * underWay : 1000;
      },
      answerOf: () => {
        underWay -= 1;
        return ACCEPTED;
      },
    });
    expect(delivered).toBe(8000);
    expect([Math.max(...widths), Math.max(...widths.slice(1300))]).toEqual([16, 1]);
  });

  test('has the controls for lines that it refuses also from the batches sent after them', async () => {
    using state = scratchStore();
    const others = lines(80, 105).map((each) => each.replace('telemetry', 'alert'));
    state.store.append([...lines(0, 80), ...others], 'live');
    const refused = new Set(others.slice(0, 5));
    const { delivered, pending } = await slowly(state, 60, {
      answerOf: (sent) =>
        sent.some((each) => refused.has(each)) ? { kind: 'rejected', message: 'no', retention: false } : ACCEPTED,
    });
    expect([delivered, pending]).toEqual([100, 0]);
  });

  test('one that answers at once gets one batch at a time', async () => {
    using state = scratchStore();
    state.store.append(lines(0, 500), 'live');
    expect(await slowly(state, 60, { tookMs: () => 20 })).toMatchObject({ delivered: 500, most: 1 });
  });
});

describe('the batch after the one under way', () => {
  /** The first and the last value of some lines. */
  const valuesOf = (text: string): string => {
    const values = text.split('\n').flatMap((each) => /value=(\d+)/.exec(each)?.[1] ?? []);
    return `${values[0]}-${values.at(-1)}`;
  };

  /** Delivers in batches of five lines, each write in 20 ms of virtual time, and returns the calls of the sink. */
  async function steps(
    state: ScratchStore,
    {
      answerOf = () => ACCEPTED,
      during = () => {},
      onPack = () => {},
      onWrite = () => {},
      observe = () => {},
    }: {
      /** @param values of the request, as `valuesOf` returns them */
      answerOf?: (values: string, nth: number) => WriteAnswer;
      /** Called in the middle of each write. */
      during?: (values: string, deliverer: Deliverer) => void;
      onPack?: (text: Uint8Array) => void;
      onWrite?: () => void;
      observe?: (event: AppEvent) => void;
    } = {},
  ): Promise<string[]> {
    const clock = createVirtualClock(AT_MS + DAY_MS);
    const made: string[] = [];
    let [nth, underWay] = [0, 0];
    const take = async (text: string, how: string): Promise<WriteAnswer> => {
      const values = valuesOf(text);
      nth += 1;
      underWay += 1;
      made.push(`${how} ${values}${underWay === 1 ? '' : ' beside another'}`);
      const answer = answerOf(values, nth);
      await clock.sleep(10);
      during(values, deliverer);
      await clock.sleep(10);
      underWay -= 1;
      made.push(answer.kind);
      return answer;
    };
    const unpacked = async ({ gzip }: PackedText): Promise<string> => gunzipSync(await gzip).toString();
    const sink: Sink = {
      name: 'influx',
      write: async (sent) => await take(sent.join('\n'), 'lines'),
      writeText: async (text) => {
        onWrite();
        return 'gzip' in text
          ? await take(await unpacked(text), 'packed')
          : await take(Buffer.from(text).toString(), 'text');
      },
      pack: (text) => {
        onPack(text);
        made.push(`pack ${valuesOf(Buffer.from(text).toString())}`);
        return { gzip: Promise.resolve(gzipSync(text)), unpack: async () => text };
      },
    };
    const parts = { store: state.store, clock, random: () => 0.5, observe };
    const deliverer = createDeliverer(parts, { sink, identity: 'here', batchLines: 5 });
    const stop = new AbortController();
    const running = deliverer.run(stop.signal).catch(() => undefined);
    await clock.sleep(10 * MINUTE_MS);
    expect(deliverer.pendingLines()).toBe(0);
    stop.abort();
    await running;
    return made;
  }

  test('is packed during the write, from the second one on, and sent after the answer', async () => {
    using state = scratchStore();
    state.store.append(lines(0, 20), 'live');
    expect(await steps(state)).toEqual([
      ...['text 0-4', 'accepted'],
      ...['text 5-9', 'pack 10-14', 'accepted'],
      ...['packed 10-14', 'pack 15-19', 'accepted'],
      ...['packed 15-19', 'accepted'],
    ]);
  });

  test('is sent before it is recorded that the one before it was accepted', async () => {
    using state = scratchStore();
    state.store.append(lines(0, 20), 'live');
    const order: string[] = [];
    await steps(state, {
      onWrite: () => void order.push('sent'),
      observe: ({ type }) => {
        if (type === 'lines-delivered') order.push('recorded');
      },
    });
    // Nothing is packed ahead during the first write.
    expect(order).toEqual(['sent', 'recorded', 'sent', 'sent', 'recorded', 'sent', 'recorded', 'recorded']);
  });

  test('is left to grow while it is not full', async () => {
    using state = scratchStore();
    state.store.append(lines(0, 14), 'live');
    const made = await steps(state, {
      during: (values) => {
        if (values === '5-9') state.store.append([line(14)], 'live');
      },
    });
    expect(made).toEqual(['text 0-4', 'accepted', 'text 5-9', 'accepted', 'text 10-14', 'accepted']);
  });

  test('waits for live lines that came during the write', async () => {
    using state = scratchStore();
    state.store.append(lines(0, 15), 'history');
    const made = await steps(state, {
      during: (values) => {
        if (values === '5-9') state.store.append(lines(90, 92), 'live');
      },
    });
    expect(made).toEqual([
      ...['text 0-4', 'accepted'],
      ...['text 5-9', 'pack 10-14', 'accepted'],
      ...['text 90-91', 'pack 10-14', 'accepted'],
      ...['packed 10-14', 'accepted'],
    ]);
  });

  test('is not sent where the position has moved past it meanwhile', async () => {
    using state = scratchStore();
    state.store.append(lines(0, 20), 'live');
    const made = await steps(state, {
      during: (values, { destinationId }) => {
        if (values !== '5-9') return;
        const move = { lane: 'live', from: { block: 1, line: 5 }, to: { block: 1, line: 15 } } as const;
        state.store.acknowledge({ destinationId, ...move, rejected: [], missing: [], atMs: 0 });
      },
    });
    expect(made).toEqual([
      ...['text 0-4', 'accepted'],
      ...['text 5-9', 'pack 10-14', 'accepted'],
      ...['text 15-19', 'accepted'],
    ]);
  });

  test('is read again after an outage, and the batch before it goes first', async () => {
    using state = scratchStore();
    state.store.append(lines(0, 15), 'live');
    const later: WriteAnswer = { kind: 'later', message: 'HTTP 503', waitMs: null };
    const made = await steps(state, { answerOf: (_values, nth) => (nth === 2 || nth === 3 ? later : ACCEPTED) });
    expect(made).toEqual([
      ...['text 0-4', 'accepted'],
      ...['text 5-9', 'pack 10-14', 'later'],
      ...['text 5-9', 'later'],
      ...['text 5-9', 'accepted'],
      ...['text 10-14', 'accepted'],
    ]);
  });

  test('uses no memory during an outage', async () => {
    using state = scratchStore();
    state.store.append(lines(0, 15), 'live');
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc');
    const texts: WeakRef<Uint8Array>[] = [];
    const kept: boolean[] = [];
    const later: WriteAnswer = { kind: 'later', message: 'HTTP 503', waitMs: null };
    await steps(state, {
      answerOf: (_values, nth) => (nth === 2 ? later : ACCEPTED),
      onPack: (text) => void texts.push(new WeakRef(text)),
      observe: ({ type }) => {
        if (type !== 'delivery-blocked') return;
        collect();
        kept.push(texts[0]?.deref() !== undefined);
      },
    });
    expect(kept).toEqual([false]);
  });

  test('is read again where it is larger than the database accepts', async () => {
    using state = scratchStore();
    state.store.append(lines(0, 15), 'live');
    const tooLarge: WriteAnswer = { kind: 'too-large', message: 'HTTP 413' };
    const made = await steps(state, { answerOf: (_values, nth) => (nth === 2 ? tooLarge : ACCEPTED) });
    expect(made.slice(2)).toEqual([
      ...['text 5-9', 'pack 10-14', 'too-large'],
      ...['lines 5-6', 'accepted', 'lines 7-9', 'accepted'],
      ...['text 10-11', 'pack 12-13', 'accepted'],
      ...['packed 12-13', 'accepted'],
      ...['text 14-14', 'accepted'],
    ]);
  });
});

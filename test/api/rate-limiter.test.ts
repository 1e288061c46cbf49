/** The rate limiter: waits that the server requests, rejections, lanes, aborts and restarts, in virtual time. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { createPacedWorld, type Headers, LIVE, START_MS, seededRandom, type Windows } from './support/paced-world.ts';

const WINDOWS: readonly Windows[] = ['fixed', 'first-request', 'sliding', 'bucket'];
const HEADERS: readonly Headers[] = ['minute', 'day', 'tightest'];
const CELLS = WINDOWS.flatMap((windows) => HEADERS.map((headers) => ({ windows, headers })));

describe('a wait that the server requests', () => {
  test('is never shortened, not by a restart either, and jitter only adds to it', async () => {
    const waits = fc.record({
      waitMs: fc.integer({ min: 1000, max: 25 * HOUR_MS }),
      restartAfter: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
      status: fc.constantFrom(429, 503),
      seed: fc.integer({ min: 1, max: 1e6 }),
    });
    await fc.assert(
      fc.asyncProperty(waits, async ({ waitMs, restartAfter, status, seed }) => {
        const random = seededRandom(seed);
        const world = createPacedWorld({ plan: { perMinute: 600, perDay: 1e6 }, random });
        let run = world.start();
        await world.ask(run);
        const requestId = await run.limiter.acquire(LIVE, new AbortController().signal);
        run.limiter.noteAnswered({ requestId, status, fault: null, limit: null, remaining: null, waitMs });
        const answeredMs = world.truth.monoMs();
        if (restartAfter !== null) {
          await world.truth.sleep(waitMs * restartAfter);
          run = world.start();
        }
        await run.limiter.acquire(LIVE, new AbortController().signal);
        const waitedMs = world.truth.monoMs() - answeredMs;
        expect(waitedMs).toBeGreaterThan(waitMs);
        // Jitter of 5 s at most, 2 s for the grain of the server's clock, and a second for its delay.
        expect(waitedMs).toBeLessThanOrEqual(waitMs + 8000);
      }),
    );
  });

  test('does not last for days, in this process or the next, where the local clock was ahead', async () => {
    const world = createPacedWorld({ plan: { perMinute: 600, perDay: 1e6 }, random: seededRandom(3) });
    world.moveWall(2 * DAY_MS);
    const run = world.start();
    const requestId = await run.limiter.acquire(LIVE, new AbortController().signal);
    run.limiter.noteAnswered({ requestId, status: 503, fault: null, limit: null, remaining: null, waitMs: 7000 });
    await world.ask(run);
    await world.ask(run);
    expect(world.truth.monoMs()).toBeLessThan(MINUTE_MS);
    world.moveWall(-2 * DAY_MS);
    await world.ask(world.start());
    expect(world.truth.monoMs()).toBeLessThan(MINUTE_MS);
  });

  test('is over with the first request after it, for the next process too, whatever clock has kept it', async () => {
    const world = createPacedWorld({ plan: { perMinute: 600, perDay: 1e6 }, random: seededRandom(3) });
    const run = world.start();
    const requestId = await run.limiter.acquire(LIVE, new AbortController().signal);
    world.ledger.block(START_MS + 3 * DAY_MS, 7000);
    run.limiter.noteAnswered({ requestId, status: 429, fault: null, limit: null, remaining: null, waitMs: 7000 });
    expect(world.ledger.blockedUntilMs(START_MS) - START_MS).toBeGreaterThan(6000);
    await world.ask(run);
    expect(world.truth.monoMs()).toBeGreaterThan(7000);
    expect(world.ledger.blockedUntilMs(START_MS)).toBe(START_MS);
  });

  test('halves the request rate, which recovers with time', async () => {
    const world = createPacedWorld({ plan: { perMinute: 60, perDay: 1e6 }, random: seededRandom(9) });
    const run = world.start();
    await world.ask(run);
    const requestId = await run.limiter.acquire(LIVE, new AbortController().signal);
    const rejection = { fault: 'throttled', limit: null, remaining: null } as const;
    run.limiter.noteAnswered({ ...rejection, requestId, status: 429, waitMs: 1000 });
    const afterMs = world.truth.monoMs();
    await world.askUntil(run, afterMs + 30 * MINUTE_MS, 1);
    const sentIn = (fromMin: number, toMin: number): number =>
      world.sent.filter(({ atMs }) => atMs >= afterMs + fromMin * MINUTE_MS && atMs < afterMs + toMin * MINUTE_MS)
        .length;
    expect(sentIn(0, 1)).toBeLessThan(30);
    expect(sentIn(20, 21)).toBeGreaterThan(44);
  });

  test('grows when rejections follow each other, and several under way at once count as one', async () => {
    const world = createPacedWorld({ plan: { perMinute: 6000, perDay: 1e6 }, random: () => 0 });
    const run = world.start();
    await world.ask(run);
    const waits: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      const ids = await Promise.all(
        [LIVE, LIVE, LIVE].map((lane) => run.limiter.acquire(lane, new AbortController().signal)),
      );
      const fromMs = world.truth.monoMs();
      for (const requestId of ids) {
        run.limiter.noteAnswered({
          requestId,
          status: 429,
          fault: 'throttled',
          limit: null,
          remaining: null,
          waitMs: 10_000,
        });
      }
      const next = await run.limiter.acquire(LIVE, new AbortController().signal);
      waits.push(Math.floor((world.truth.monoMs() - fromMs) / 1000));
      run.limiter.noteAnswered({
        requestId: next,
        status: null,
        fault: 'unreachable',
        limit: null,
        remaining: null,
        waitMs: null,
      });
    }
    expect(waits).toEqual([10, 10, 20, 40, 80]);
  });
});

describe('before the plan is known', () => {
  test('sends one request at a time, at a cautious rate', async () => {
    const known = { plan: null as { perMinute: number; perDay: number } | null };
    const plan = { perMinute: 6000, perDay: 1e6 };
    const world = createPacedWorld({ plan, random: seededRandom(1), known: () => known.plan });
    const run = world.start();
    const first = await run.limiter.acquire(LIVE, new AbortController().signal);
    const second = run.limiter.acquire(LIVE, new AbortController().signal);
    await world.truth.sleep(10 * MINUTE_MS);
    expect(world.ledger.bookings.length).toBe(1);
    run.limiter.noteAnswered({
      requestId: first,
      status: 200,
      fault: null,
      limit: null,
      remaining: null,
      waitMs: null,
    });
    await second;
    expect(world.ledger.bookings.length).toBe(2);
  });

  test.each(CELLS)('headers alone keep it from rejections: $windows windows, headers of $headers', async (cell) => {
    const plan = { perMinute: 60, perDay: 10_000 };
    const world = createPacedWorld({ plan, random: seededRandom(6), known: () => null, ...cell });
    await world.askUntil(world.start(), HOUR_MS);
    expect(world.sent.filter(({ status }) => status === 429)).toEqual([]);
    expect(world.sent.length).toBeGreaterThan(330);
  });

  test.each(WINDOWS)('a day that is running out by its headers is not used up, in %s windows', async (windows) => {
    const plan = { perMinute: 60, perDay: 1000 };
    const options = { plan, random: seededRandom(6), known: () => null, windows, headers: 'day' } as const;
    const world = createPacedWorld(options);
    await world.askUntil(world.start(), 11 * HOUR_MS);
    expect(world.sent.filter(({ status }) => status === 429)).toEqual([]);
    expect(world.sent.length).toBeGreaterThan(800);
  });

  test('a plan that becomes known counts within a second', async () => {
    const known = { plan: null as { perMinute: number; perDay: number } | null };
    const plan = { perMinute: 6000, perDay: 1e6 };
    const world = createPacedWorld({ plan, random: seededRandom(1), known: () => known.plan });
    const run = world.start();
    await world.ask(run);
    known.plan = plan;
    const fromMs = world.truth.monoMs();
    await world.ask(run);
    expect(world.truth.monoMs() - fromMs).toBeLessThan(1000);
  });
});

describe('the order', () => {
  test('higher lanes go first, also those that come later, and within a lane the first one', async () => {
    const world = createPacedWorld({ plan: { perMinute: 12, perDay: 1e6 }, random: seededRandom(8), concurrency: 1 });
    const run = world.start();
    const order: string[] = [];
    const ask = async (lane: 'idle-poll' | 'live' | 'backfill' | 'inventory', name: string): Promise<void> => {
      await world.ask(run, { lane, stream: 'telemetry' });
      order.push(name);
    };
    const asked = [
      ask('inventory', 'first'),
      ask('idle-poll', 'idle-poll'),
      ask('backfill', 'backfill 1'),
      ask('backfill', 'backfill 2'),
    ];
    await world.truth.sleep(100);
    asked.push(ask('live', 'live 1'), ask('live', 'live 2'));
    await Promise.all(asked);
    expect(order).toEqual(['first', 'live 1', 'live 2', 'backfill 1', 'backfill 2', 'idle-poll']);
  });

  test('a caller that gives up leaves the queue, without a booking', async () => {
    const world = createPacedWorld({ plan: { perMinute: 1, perDay: 1e6 }, random: seededRandom(8) });
    const run = world.start();
    await world.ask(run);
    const gone = new AbortController();
    const waiting = run.limiter.acquire(LIVE, gone.signal);
    const after = world.ask(run);
    await world.truth.sleep(1000);
    gone.abort(new Error('stopping'));
    await expect(waiting).rejects.toThrow('stopping');
    await after;
    expect(world.ledger.bookings.length).toBe(2);
    await expect(run.limiter.acquire(LIVE, AbortSignal.abort(new Error('too late')))).rejects.toThrow('too late');
    expect(world.ledger.bookings.length).toBe(2);
  });

  test('an abort at the moment of the booking leaves it resolved and the place free', async () => {
    const world = createPacedWorld({ plan: { perMinute: 60, perDay: 1e6 }, random: seededRandom(8), concurrency: 1 });
    const run = world.start();
    const gone = new AbortController();
    const { book } = world.ledger;
    world.ledger.book = (atMs, purpose) => {
      gone.abort(new Error('stopping'));
      return book(atMs, purpose);
    };
    await expect(run.limiter.acquire(LIVE, gone.signal)).rejects.toThrow('stopping');
    expect(world.ledger.bookings).toMatchObject([{ outcome: { status: null, fault: null } }]);
    expect(await world.ask(run)).toBe(200);
  });

  test('a booking that fails is reported to its caller, and the next one is tried', async () => {
    const world = createPacedWorld({ plan: { perMinute: 60, perDay: 1e6 }, random: seededRandom(8) });
    const run = world.start();
    const { book } = world.ledger;
    world.ledger.book = (atMs, purpose) => {
      world.ledger.book = book;
      throw new Error(`the disk is full, ${atMs} ${purpose.lane}`);
    };
    const [first, second] = await Promise.allSettled([world.ask(run), world.ask(run)]);
    expect([first?.status, second?.status]).toEqual(['rejected', 'fulfilled']);
  });

  test('when all have given up nothing is left asleep', async () => {
    const world = createPacedWorld({ plan: { perMinute: 1, perDay: 1e6 }, random: seededRandom(8) });
    const run = world.start();
    await world.ask(run);
    const gone = new AbortController();
    const waiting = [1, 2, 3].map(() => run.limiter.acquire(LIVE, gone.signal).catch(() => 'gone'));
    await world.truth.sleep(1000);
    gone.abort();
    expect(await Promise.all(waiting)).toEqual(['gone', 'gone', 'gone']);
    await new Promise((resolve) => setImmediate(resolve));
    expect(world.truth.sleepers()).toBe(0);
  });
});

describe('the report', () => {
  test('the slow pace before the first answer is none: the failures are', async () => {
    const world = createPacedWorld({
      plan: { perMinute: 60, perDay: 500 },
      known: () => null,
      random: seededRandom(1),
    });
    const { limiter, serverClock } = world.start();
    const askInVain = async (): Promise<void> => {
      const requestId = await limiter.acquire(LIVE, new AbortController().signal);
      limiter.noteAnswered({
        requestId,
        status: null,
        fault: 'unreachable',
        limit: null,
        remaining: null,
        waitMs: null,
      });
    };
    const waits = () => world.events.filter(({ type }) => type === 'quota-wait').length;
    for (let nth = 0; nth < 6; nth += 1) await askInVain();
    expect([waits(), world.truth.monoMs() > 20 * SECOND_MS]).toEqual([0, true]);
    const nowMs = world.truth.monoMs();
    serverClock.noteDate({ dateMs: world.truth.nowMs(), sentMonoMs: nowMs, receivedMonoMs: nowMs });
    for (let nth = 0; nth < 6; nth += 1) await askInVain();
    expect(waits()).toBeGreaterThan(0);
  });

  test('a wait of more than a few seconds once, with its end and its reason', async () => {
    const world = createPacedWorld({ plan: { perMinute: 60, perDay: 5 }, random: seededRandom(1) });
    await world.askUntil(world.start(), 2 * HOUR_MS);
    const waits = world.events.filter(({ type }) => type === 'quota-wait');
    expect(waits).toEqual([{ type: 'quota-wait', reason: 'day', untilMs: expect.any(Number) }]);
    const [wait] = waits;
    const untilMs = wait?.type === 'quota-wait' ? wait.untilMs : 0;
    expect(Math.abs(untilMs - (START_MS + DAY_MS))).toBeLessThan(MINUTE_MS);
  });

  test('the figures of both windows: limit, budget, own use and that of others', async () => {
    const world = createPacedWorld({ plan: { perMinute: 60, perDay: 1000 }, random: seededRandom(1) });
    const run = world.start();
    for (let i = 0; i < 10; i += 1) world.askAsOther();
    for (let i = 0; i < 3; i += 1) await world.ask(run);
    expect(run.limiter.figures()).toMatchObject({
      minute: { limit: 60, budget: 48, spent: 3, others: 10 },
      day: { limit: 1000, budget: 800, spent: 3, others: null },
    });
  });

  test('an outcome is kept with its booking', async () => {
    const world = createPacedWorld({ plan: { perMinute: 60, perDay: 1000 }, random: seededRandom(1) });
    await world.ask(world.start());
    expect(world.ledger.bookings[0]).toMatchObject({ purpose: LIVE, outcome: { status: 200, fault: null } });
    expect(Math.abs((world.ledger.bookings[0]?.atMs ?? 0) - START_MS)).toBeLessThan(1500);
  });
});

test('bookings of a clock that was ahead are dated back once the time is known', async () => {
  const world = createPacedWorld({ plan: { perMinute: 600, perDay: 1e6 }, random: seededRandom(3) });
  world.moveWall(3 * DAY_MS);
  const requestId = await world.start().limiter.acquire(LIVE, new AbortController().signal);
  expect(requestId).toBe(1);
  world.moveWall(-3 * DAY_MS);
  expect(world.ledger.sentSince(START_MS + DAY_MS)).toHaveLength(1);
  await world.ask(world.start());
  expect(world.ledger.sentSince(START_MS + DAY_MS), 'else they would count as new at every start').toEqual([]);
  expect(world.ledger.sentSince(START_MS - MINUTE_MS)).toHaveLength(2);
});

describe('bookings from the future', () => {
  /** A plan of ten requests a day, of which eight may be used, and eight bookings. */
  function spentWorld(aheadMs: number, localAheadMs: number) {
    const world = createPacedWorld({ plan: { perMinute: 600, perDay: 10 }, random: seededRandom(3), sendsDate: false });
    for (let n = 0; n < 8; n += 1) {
      const agoMs = (20 + n / 100) * HOUR_MS;
      world.ledger.book(START_MS - agoMs + aheadMs, LIVE, START_MS - agoMs + localAheadMs);
    }
    return world;
  }

  test('get their age from the local clock', async () => {
    const world = spentWorld(400 * DAY_MS, 0);
    const { limiter } = world.start();
    expect(limiter.figures().day.spent).toBe(8);
    await limiter.acquire(LIVE, new AbortController().signal);
    expect(world.truth.monoMs()).toBeGreaterThan(3.9 * HOUR_MS - MINUTE_MS);
    expect(world.truth.monoMs()).toBeLessThan(4 * HOUR_MS);
  });

  test('count as made now if that is in the future too, a day at most, however often the program starts', async () => {
    const world = spentWorld(3 * DAY_MS, 3 * DAY_MS);
    for (let start = 0; start < 5; start += 1) {
      expect(world.start().limiter.figures().waitingFor, `start ${start}`).toBe('day');
      await world.truth.sleep(5 * HOUR_MS - MINUTE_MS);
    }
    expect(world.start().limiter.figures().waitingFor).toBeNull();
  });

  test.each([20 * HOUR_MS, -20 * HOUR_MS])(
    'are no older for a jump of the local clock by %i ms meanwhile',
    async (ms) => {
      const world = createPacedWorld({ plan: { perMinute: 600, perDay: 10 }, random: seededRandom(3) });
      // A Date has no fractions of a second: the booking is a little later than the first Date.
      await world.truth.sleep(700);
      const run = world.start();
      const jump = world.truth.sleep(1).then(() => world.moveWall(ms));
      await Promise.all([world.ask(run), jump]);
      world.moveWall(-ms);
      await world.truth.sleep(5 * HOUR_MS);
      expect(world.start().limiter.figures().day.spent).toBe(1);
      expect(world.ledger.bookings[0]?.atMs).toBeGreaterThan(START_MS - MINUTE_MS);
    },
  );

  test('do not make those look older that were booked before them', () => {
    const world = spentWorld(0, 0);
    world.ledger.book(START_MS + 3 * DAY_MS, LIVE, START_MS + 3 * DAY_MS);
    expect(world.start().limiter.figures().day.spent).toBe(9);
  });
});

test('a large plan adds no latency: ten thousand requests at one moment', async () => {
  const world = createPacedWorld({ plan: { perMinute: 1e9, perDay: 1e12 }, random: seededRandom(1), concurrency: 1e6 });
  const run = world.start();
  await world.ask(run);
  const fromMs = world.truth.monoMs();
  await Promise.all(Array.from({ length: 10_000 }, () => run.limiter.acquire(LIVE, new AbortController().signal)));
  expect(world.truth.monoMs() - fromMs).toBeLessThan(5);
});

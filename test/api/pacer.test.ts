import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import {
  createPacedWorld,
  type Headers,
  LIVE,
  mostWithin,
  START_MS,
  seededRandom,
  type Windows,
} from './support/paced-world.ts';

const WINDOWS: readonly Windows[] = ['fixed', 'first-request', 'sliding', 'bucket'];
const HEADERS: readonly Headers[] = ['minute', 'day', 'tightest'];
const CELLS = WINDOWS.flatMap((windows) => HEADERS.map((headers) => ({ windows, headers })));

describe('alone in a workspace', () => {
  test.each(CELLS)('provokes no refusal and uses its share: $windows windows, headers of $headers', async (cell) => {
    const world = createPacedWorld({ plan: { perMinute: 60, perDay: 900 }, random: seededRandom(7), ...cell });
    await world.askUntil(world.start(), DAY_MS + HOUR_MS);
    expect(world.sent.filter(({ status }) => status === 429)).toEqual([]);
    const [firstHour, day] = [HOUR_MS, DAY_MS].map((ms) => world.sent.filter(({ atMs }) => atMs < ms).length);
    expect([firstHour, day]).toEqual([720, 720]);
    expect(world.sent.length).toBeGreaterThan(1300);
  });

  test.each(WINDOWS)('uses four fifths of each minute, in %s windows', async (windows) => {
    const world = createPacedWorld({ plan: { perMinute: 60, perDay: 1e6 }, random: seededRandom(3), windows });
    await world.askUntil(world.start(), HOUR_MS);
    expect(world.sent.filter(({ status }) => status === 429)).toEqual([]);
    expect(world.sent.length).toBeGreaterThan(48 * 58);
  });

  test.each(WINDOWS)(
    'provokes no refusal with the whole allowance or the smallest one, in %s windows',
    async (windows) => {
      for (const [share, perMinute] of [[1, 30] as const, [0.8, 1] as const]) {
        const world = createPacedWorld({ plan: { perMinute, perDay: 1e6 }, share, random: seededRandom(5), windows });
        await world.askUntil(world.start(), HOUR_MS);
        expect(world.sent.filter(({ status }) => status === 429)).toEqual([]);
        expect(world.sent.length).toBeGreaterThan(perMinute * 60 * 0.9);
      }
    },
  );
});

describe('beside other clients', () => {
  test.each(CELLS)('yields to bursts of others: $windows windows, headers of $headers', async (cell) => {
    const random = seededRandom(11);
    const world = createPacedWorld({ plan: { perMinute: 60, perDay: 1e6 }, random, ...cell });
    const others = async (): Promise<void> => {
      for (let minute = 0; minute < 180; minute += 3) {
        for (let i = 0; i < 36; i += 1) {
          world.askAsOther();
          await world.truth.sleep(20_000 / 36);
        }
        await world.truth.sleep(160_000);
      }
    };
    await Promise.all([world.askUntil(world.start(), 3 * HOUR_MS), others()]);
    const refused = world.sent.filter(({ status }) => status === 429).length;
    // Headers of the day alone hide what others use of the minute.
    expect(refused / 3).toBeLessThanOrEqual(12);
    expect(world.refusedOthers.refused / world.refusedOthers.asked).toBeLessThanOrEqual(0.2);
  });

  test('asks once in a quarter of an hour while others have nearly used up the day', async () => {
    const world = createPacedWorld({ plan: { perMinute: 60, perDay: 1000 }, random: seededRandom(2), headers: 'day' });
    world.spendAsOther(950);
    await world.truth.sleep(2 * MINUTE_MS);
    await world.askUntil(world.start(), 3 * HOUR_MS);
    expect(world.sent.length).toBeGreaterThanOrEqual(12);
    expect(world.sent.length).toBeLessThanOrEqual(14);
  });
});

describe('the ceilings', () => {
  const life = fc.record({
    runMs: fc.oneof(fc.integer({ min: 0, max: 90_000 }), fc.integer({ min: 0, max: 14 * HOUR_MS })),
    downMs: fc.oneof(fc.integer({ min: 0, max: 5000 }), fc.integer({ min: 0, max: 5 * HOUR_MS })),
    wallJumpMs: fc.oneof(fc.constant(0), fc.integer({ min: -2 * DAY_MS, max: 2 * DAY_MS })),
    askers: fc.integer({ min: 1, max: 6 }),
  });
  const worlds = fc.record({
    perMinute: fc.integer({ min: 1, max: 60 }),
    perDay: fc.integer({ min: 1, max: 400 }),
    share: fc.double({ min: 0.05, max: 1, noNaN: true }),
    windows: fc.constantFrom(...WINDOWS),
    headers: fc.constantFrom(...HEADERS),
    concurrency: fc.integer({ min: 1, max: 4 }),
    seed: fc.integer({ min: 1, max: 1e6 }),
    lives: fc.array(life, { minLength: 1, maxLength: 5 }),
  });
  const live = async (scene: typeof worlds extends fc.Arbitrary<infer W> ? W : never, areClocksRight: boolean) => {
    const { perMinute, perDay, lives, seed, ...rest } = scene;
    const world = createPacedWorld({ plan: { perMinute, perDay }, random: seededRandom(seed), ...rest });
    for (const { runMs, downMs, wallJumpMs, askers } of lives) {
      const run = world.start();
      const endMs = world.truth.monoMs() + runMs;
      const jump = world.truth.sleep(runMs / 2).then(() => {
        world.moveWall(wallJumpMs);
      });
      await Promise.all([world.askUntil(run, endMs, askers), jump]);
      await world.truth.sleep(downMs);
      // Right again by the next start: a clock that is wrong when the program starts has a test of its own.
      if (areClocksRight) world.moveWall(-wallJumpMs);
    }
    const most = { minute: mostWithin(world.sent, MINUTE_MS), day: mostWithin(world.sent, DAY_MS) };
    return { world, most };
  };
  const cap = (limit: number, share: number): number => Math.max(1, Math.floor(limit * share));

  test('hold in every minute and day, whatever the plan, restarts and jumps of the wall clock', async () => {
    await fc.assert(
      fc.asyncProperty(worlds, async (scene) => {
        const { world, most } = await live(scene, true);
        expect(most.minute).toBeLessThanOrEqual(cap(scene.perMinute, scene.share));
        expect(most.day).toBeLessThanOrEqual(cap(scene.perDay, scene.share));
        expect(world.sent.filter(({ status }) => status === 429)).toEqual([]);
        expect(world.ledger.bookings.length).toBe(world.sent.length);
      }),
      { numRuns: 60 },
    );
  });

  test('are passed by one request at most for each start with a wrong clock', async () => {
    await fc.assert(
      fc.asyncProperty(worlds, async (scene) => {
        const { most } = await live(scene, false);
        expect(most.minute).toBeLessThanOrEqual(cap(scene.perMinute, scene.share) + scene.lives.length - 1);
        expect(most.day).toBeLessThanOrEqual(cap(scene.perDay, scene.share) + scene.lives.length - 1);
      }),
      { numRuns: 60 },
    );
  });

  test('do not stop a machine for good that starts in 1970', async () => {
    const world = createPacedWorld({ plan: { perMinute: 60, perDay: 1000 }, random: seededRandom(4) });
    await world.askUntil(world.start(), 10 * MINUTE_MS);
    const before = world.sent.length;
    world.moveWall(-START_MS);
    await world.truth.sleep(MINUTE_MS);
    await world.askUntil(world.start(), 20 * MINUTE_MS);
    expect(world.sent.length - before).toBeGreaterThan(300);
    expect(mostWithin(world.sent, MINUTE_MS)).toBeLessThanOrEqual(48);
  });
});

describe('a wait that the server asks for', () => {
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
        const requestId = await run.pacer.acquire(LIVE, new AbortController().signal);
        run.pacer.answered({ requestId, status, fault: null, limit: null, remaining: null, waitMs });
        const answeredMs = world.truth.monoMs();
        if (restartAfter !== null) {
          await world.truth.sleep(waitMs * restartAfter);
          run = world.start();
        }
        await run.pacer.acquire(LIVE, new AbortController().signal);
        const waitedMs = world.truth.monoMs() - answeredMs;
        expect(waitedMs).toBeGreaterThan(waitMs);
        // Jitter of 5 s at most, 2 s for the grain of the server's clock, and a second for its delay.
        expect(waitedMs).toBeLessThanOrEqual(waitMs + 8000);
      }),
    );
  });

  test('halves the pace, which recovers with time', async () => {
    const world = createPacedWorld({ plan: { perMinute: 60, perDay: 1e6 }, random: seededRandom(9) });
    const run = world.start();
    await world.ask(run);
    const requestId = await run.pacer.acquire(LIVE, new AbortController().signal);
    const refusal = { fault: 'throttled', limit: null, remaining: null } as const;
    run.pacer.answered({ ...refusal, requestId, status: 429, waitMs: 1000 });
    const afterMs = world.truth.monoMs();
    await world.askUntil(run, afterMs + 30 * MINUTE_MS, 1);
    const sentIn = (fromMin: number, toMin: number): number =>
      world.sent.filter(({ atMs }) => atMs >= afterMs + fromMin * MINUTE_MS && atMs < afterMs + toMin * MINUTE_MS)
        .length;
    expect(sentIn(0, 1)).toBeLessThan(30);
    expect(sentIn(20, 21)).toBeGreaterThan(44);
  });

  test('grows when refusals follow each other, and several under way at once count as one', async () => {
    const world = createPacedWorld({ plan: { perMinute: 6000, perDay: 1e6 }, random: () => 0 });
    const run = world.start();
    await world.ask(run);
    const waits: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      const ids = await Promise.all(
        [LIVE, LIVE, LIVE].map((lane) => run.pacer.acquire(lane, new AbortController().signal)),
      );
      const fromMs = world.truth.monoMs();
      for (const requestId of ids) {
        run.pacer.answered({
          requestId,
          status: 429,
          fault: 'throttled',
          limit: null,
          remaining: null,
          waitMs: 10_000,
        });
      }
      const next = await run.pacer.acquire(LIVE, new AbortController().signal);
      waits.push(Math.floor((world.truth.monoMs() - fromMs) / 1000));
      run.pacer.answered({
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
  test('one request is under way at a time, at a cautious pace', async () => {
    const known = { plan: null as { perMinute: number; perDay: number } | null };
    const plan = { perMinute: 6000, perDay: 1e6 };
    const world = createPacedWorld({ plan, random: seededRandom(1), known: () => known.plan });
    const run = world.start();
    const first = await run.pacer.acquire(LIVE, new AbortController().signal);
    const second = run.pacer.acquire(LIVE, new AbortController().signal);
    await world.truth.sleep(10 * MINUTE_MS);
    expect(world.ledger.bookings.length).toBe(1);
    run.pacer.answered({ requestId: first, status: 200, fault: null, limit: null, remaining: null, waitMs: null });
    await second;
    expect(world.ledger.bookings.length).toBe(2);
  });

  test.each(CELLS)('headers alone keep it from refusals: $windows windows, headers of $headers', async (cell) => {
    const plan = { perMinute: 60, perDay: 10_000 };
    const world = createPacedWorld({ plan, random: seededRandom(6), known: () => null, ...cell });
    await world.askUntil(world.start(), 3 * HOUR_MS);
    expect(world.sent.filter(({ status }) => status === 429)).toEqual([]);
    expect(world.sent.length).toBeGreaterThan(1000);
  });

  test.each(WINDOWS)('a day that headers tell is running out is not used up, in %s windows', async (windows) => {
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
    const ask = async (lane: 'sweep' | 'live' | 'backfill' | 'inventory', name: string): Promise<void> => {
      await world.ask(run, { lane, stream: 'telemetry' });
      order.push(name);
    };
    const asked = [
      ask('inventory', 'first'),
      ask('sweep', 'sweep'),
      ask('backfill', 'backfill 1'),
      ask('backfill', 'backfill 2'),
    ];
    await world.truth.sleep(100);
    asked.push(ask('live', 'live 1'), ask('live', 'live 2'));
    await Promise.all(asked);
    expect(order).toEqual(['first', 'live 1', 'live 2', 'backfill 1', 'backfill 2', 'sweep']);
  });

  test('who gives up leaves the queue, and nobody is booked for it', async () => {
    const world = createPacedWorld({ plan: { perMinute: 1, perDay: 1e6 }, random: seededRandom(8) });
    const run = world.start();
    await world.ask(run);
    const gone = new AbortController();
    const waiting = run.pacer.acquire(LIVE, gone.signal);
    const after = world.ask(run);
    await world.truth.sleep(1000);
    gone.abort(new Error('stopping'));
    await expect(waiting).rejects.toThrow('stopping');
    await after;
    expect(world.ledger.bookings.length).toBe(2);
    await expect(run.pacer.acquire(LIVE, AbortSignal.abort(new Error('too late')))).rejects.toThrow('too late');
    expect(world.ledger.bookings.length).toBe(2);
  });

  test('when all have given up nothing is left asleep', async () => {
    const world = createPacedWorld({ plan: { perMinute: 1, perDay: 1e6 }, random: seededRandom(8) });
    const run = world.start();
    await world.ask(run);
    const gone = new AbortController();
    const waiting = [1, 2, 3].map(() => run.pacer.acquire(LIVE, gone.signal).catch(() => 'gone'));
    await world.truth.sleep(1000);
    gone.abort();
    expect(await Promise.all(waiting)).toEqual(['gone', 'gone', 'gone']);
    await new Promise((resolve) => setImmediate(resolve));
    expect(world.truth.sleepers()).toBe(0);
  });
});

describe('what is told', () => {
  test('a wait of more than a few seconds once, with its end and its reason', async () => {
    const world = createPacedWorld({ plan: { perMinute: 60, perDay: 5 }, random: seededRandom(1) });
    await world.askUntil(world.start(), 2 * HOUR_MS);
    const waits = world.events.filter(({ type }) => type === 'allowance-wait');
    expect(waits).toEqual([{ type: 'allowance-wait', reason: 'day', untilMs: expect.any(Number) }]);
    const [wait] = waits;
    const untilMs = wait?.type === 'allowance-wait' ? wait.untilMs : 0;
    expect(Math.abs(untilMs - (START_MS + DAY_MS))).toBeLessThan(MINUTE_MS);
  });

  test('the figures of both windows: limit, budget, own use and that of others', async () => {
    const world = createPacedWorld({ plan: { perMinute: 60, perDay: 1000 }, random: seededRandom(1) });
    const run = world.start();
    for (let i = 0; i < 10; i += 1) world.askAsOther();
    for (let i = 0; i < 3; i += 1) await world.ask(run);
    expect(run.pacer.figures()).toMatchObject({
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

test('a large plan adds no latency: ten thousand requests at one moment', async () => {
  const world = createPacedWorld({ plan: { perMinute: 1e9, perDay: 1e12 }, random: seededRandom(1), concurrency: 1e6 });
  const run = world.start();
  await world.ask(run);
  const fromMs = world.truth.monoMs();
  await Promise.all(Array.from({ length: 10_000 }, () => run.pacer.acquire(LIVE, new AbortController().signal)));
  expect(world.truth.monoMs() - fromMs).toBeLessThan(5);
});

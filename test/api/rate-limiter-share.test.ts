/**
 * The rate limiter keeps to its share of the quota, alone and beside other clients, against a counting server in
 * virtual time.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import {
  createPacedWorld,
  type Headers,
  mostWithin,
  START_MS,
  seededRandom,
  type Windows,
} from './support/paced-world.ts';

const WINDOWS: readonly Windows[] = ['fixed', 'first-request', 'sliding', 'bucket'];
const HEADERS: readonly Headers[] = ['minute', 'day', 'tightest'];
const CELLS = WINDOWS.flatMap((windows) => HEADERS.map((headers) => ({ windows, headers })));

describe('alone in a workspace', () => {
  test.each(CELLS)('provokes no rejection and uses its share: $windows windows, headers of $headers', async (cell) => {
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
    'provokes no rejection with the largest and the smallest share, in %s windows',
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
    const rejected = world.sent.filter(({ status }) => status === 429).length;
    // Headers of the day alone hide what others use of the minute.
    expect(rejected / 3).toBeLessThanOrEqual(12);
    expect(world.rejectedOthers.rejected / world.rejectedOthers.asked).toBeLessThanOrEqual(0.2);
  });

  test('sends one request per quarter of an hour while others have nearly used up the day', async () => {
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

  test('do not stop a machine that starts in 1970, because the newest booking shows that it is later', async () => {
    const world = createPacedWorld({ plan: { perMinute: 60, perDay: 1000 }, random: seededRandom(4) });
    await world.askUntil(world.start(), 15 * MINUTE_MS);
    await world.truth.sleep(26 * HOUR_MS);
    await world.askUntil(world.start(), world.truth.monoMs() + 5 * MINUTE_MS);
    const before = world.sent.length;
    expect(before).toBeGreaterThan(900);
    world.moveWall(-START_MS);
    await world.truth.sleep(MINUTE_MS);
    await world.askUntil(world.start(), world.truth.monoMs() + 10 * MINUTE_MS);
    expect(world.sent.length - before).toBeGreaterThan(400);
    expect(mostWithin(world.sent, MINUTE_MS)).toBeLessThanOrEqual(48);
    expect(mostWithin(world.sent, DAY_MS)).toBeLessThanOrEqual(800);
  });
});

/** The parts of the check with rules of their own: drawing, faults, and excuses. */
import { describe, expect, test } from 'vitest';
import { DAY_MS, formatMs, HOUR_MS, MINUTE_MS, msToNs, SECOND_MS } from '../../src/core/time.ts';
import type { SimPage } from '../../src/sim/answers.ts';
import { createSettings } from '../../src/sim/settings.ts';
import type { SimReading } from '../../src/sim/spec.ts';
import { createSimulator } from '../support/faulty-simulator.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';
import type { ServedPage } from './believed-lies.ts';
import { excuseOf, localBehindMs } from './claims.ts';
import { drawStory } from './draw.ts';
import { liveStory } from './live.ts';
import { createFate } from './misfortunes.ts';
import type { Stage } from './stage.ts';
import type { DeviceLife, Lie, Life, Misfortune, Story } from './story.ts';
import { worldOf } from './world.ts';

/** A story of one device that reports once a minute, and of nothing that goes wrong. */
function quietStory(device: Partial<DeviceLife> = {}, misfortunes: readonly Misfortune[] = []): Story {
  const story = drawStory(1);
  const calm: DeviceLife = { name: 'device', spec: { deviceId: 'd' }, buffers: [], stamps: 'receipt' };
  const { spec, ...rest } = { ...calm, ...device };
  const devices = [{ ...rest, spec: { intervalMs: MINUTE_MS, ...spec } }];
  const world = { ...story.world, historyMs: HOUR_MS };
  return { ...story, endMs: story.startMs + 4 * HOUR_MS, api: {}, devices, misfortunes: [...misfortunes], world };
}

describe('a device that hands in the readings of a disconnection', () => {
  const at = drawStory(1).startMs;
  const buffers = [{ fromMs: at, toMs: at + 2 * HOUR_MS }];
  const readingsOf = (spec: Partial<DeviceLife['spec']>, stamps: DeviceLife['stamps']): number => {
    const world = worldOf(quietStory({ spec: { deviceId: 'd', ...spec }, buffers, stamps }));
    return [...world.readings('d', 0n, 2n ** 63n)].filter(({ visibleAtMs }) => visibleAtMs < at + 2.5 * HOUR_MS).length;
  };
  const away = { vanishesAtMs: at + HOUR_MS, returnsAtMs: at + 3 * HOUR_MS };

  test('hands in nothing that would be stamped while it is away from the workspace', () => {
    expect(readingsOf(away, 'receipt')).toBe(60);
  });

  test('hands in readings with its own timestamps, and all of them once it is back', () => {
    expect(readingsOf(away, 'device')).toBe(120);
    expect(readingsOf({ ...away, returnsAtMs: at + 1.5 * HOUR_MS }, 'receipt')).toBe(60 + 60 + 30 + 30);
  });
});

describe('a liar', () => {
  const startMs = drawStory(1).startMs;
  const during = { fromMs: startMs, toMs: startMs + HOUR_MS };
  const liar: Misfortune = { name: 'liar', ...during, what: { kind: 'lies', lie: 'empty', rate: 1, seed: 1 } };
  const cut: Misfortune = {
    name: 'cut',
    fromMs: startMs + 10 * SECOND_MS,
    toMs: startMs + 20 * SECOND_MS,
    what: { kind: 'answers', faults: ['truncated'], rate: 1, seed: 1 },
  };
  const page: SimPage = { kind: 'telemetry', deviceId: 'd', records: ['{}'], nextCursor: null };
  const request = { method: 'GET', path: '/devices/d/telemetry', query: new URLSearchParams(), atMs: startMs };

  /** How many records an answer has at that moment; `null` where a fault other than a false answer applies. */
  function createAsk(...misfortunes: Misfortune[]): (afterMs: number, isServed?: boolean) => number | null {
    const known = { knownSign: () => null };
    let nowMs = startMs;
    const settings = createSettings({});
    const fate = createFate(quietStory({}, misfortunes), { nowMs: () => nowMs }, { settings, ...known });
    return (afterMs) => {
      nowMs = startMs + afterMs;
      const fault = fate.faults(1, request);
      if (fault !== null && fault.kind !== 'mangle') return null;
      return (fault?.change(page) ?? page).records.length;
    };
  }

  test('lies at its rate, also several times in a row', () => {
    const seconds = Array.from({ length: 40 }, (_, second) => second * SECOND_MS);
    const reported = (rate: number): readonly (number | null)[] => {
      const ask = createAsk({ ...liar, what: { kind: 'lies', lie: 'empty', rate, seed: 1 } });
      return seconds.map((afterMs) => ask(afterMs));
    };
    expect(new Set(reported(1))).toEqual(new Set([0]));
    const half = reported(0.5).join('');
    expect([half.includes('00'), half.includes('11')]).toEqual([true, true]);
  });

  test('lies in answers that arrive: not where another misfortune cuts them', () => {
    for (const misfortunes of [
      [liar, cut],
      [cut, liar],
    ]) {
      const ask = createAsk(...misfortunes);
      expect([0, 11, 25].map((second) => ask(second * SECOND_MS))).toEqual([0, null, 0]);
    }
  });
});

describe('a liar about the newest readings', () => {
  const { startMs } = drawStory(1);
  const records = Array.from({ length: 9 }, (_, index) => `{"recorded_at":"${formatMs(startMs - index * MINUTE_MS)}"}`);
  const page: SimPage = { kind: 'telemetry', deviceId: 'd', records, nextCursor: null };

  /** How many records a page keeps, requested so and so long after the sign of life. */
  function keptOf(lie: Lie, query: string, afterMs: number, date: 'sent' | 'absent' = 'sent'): number {
    const what = { kind: 'lies' as const, lie, rate: 1, seed: 1 };
    const liar: Misfortune = { name: 'liar', fromMs: startMs, toMs: startMs + DAY_MS, what };
    const nowMs = startMs + afterMs;
    const fate = createFate(
      quietStory({}, [liar]),
      { nowMs: () => nowMs },
      { settings: createSettings({ time: { date } }), knownSign: () => msToNs(startMs) },
    );
    const request = { method: 'GET', path: '/devices/d/telemetry', query: new URLSearchParams(query), atMs: nowMs };
    const fault = fate.faults(1, request);
    return fault?.kind === 'mangle' ? fault.change(page).records.length : page.records.length;
  }

  test('removes nothing from a page behind a cursor, where its absence could not be noticed', () => {
    expect(keptOf('without the newest', '', 5 * MINUTE_MS)).toBe(6);
    expect(keptOf('without the newest', 'cursor=a', 5 * MINUTE_MS)).toBe(9);
  });

  test('removes no readings whose sign of life is as new as the present, unless that sign is the clock', () => {
    expect(keptOf('without the newest', '', SECOND_MS)).toBe(9);
    expect(keptOf('without the newest', '', SECOND_MS, 'absent')).toBe(6);
  });
});

describe('false answers about stored readings', () => {
  const { startMs } = drawStory(1);
  const records = Array.from({ length: 9 }, (_, index) => `{"recorded_at":"${formatMs(startMs - index * MINUTE_MS)}"}`);
  const page: SimPage = { kind: 'telemetry', deviceId: 'd', records, nextCursor: null };

  /** How many records of a page are left, where the readings of these minutes back are at the edges of what is stored. */
  function keptOf(
    lie: Lie,
    edges: readonly number[],
    change: { nextCursor?: string; before?: number; cursor?: string } = {},
  ): number {
    const what = { kind: 'lies' as const, lie, rate: 1, seed: 1 };
    const liar: Misfortune = { name: 'liar', fromMs: startMs, toMs: startMs + DAY_MS, what };
    const fate = createFate(
      { ...quietStory({}, [liar]), api: { plan: { historyMaxDays: 3 } } },
      { nowMs: () => startMs },
      {
        settings: createSettings({}),
        knownSign: () => null,
        knownEdges: () => edges.map((minutes) => msToNs(startMs - minutes * MINUTE_MS)),
      },
    );
    const { nextCursor = null, before, cursor } = change;
    const query = new URLSearchParams({
      ...(before === undefined ? {} : { before: formatMs(startMs - before) }),
      ...(cursor === undefined ? {} : { cursor }),
    });
    const fault = fate.faults(1, { method: 'GET', path: '/devices/d/telemetry', query, atMs: startMs });
    return fault?.kind === 'mangle' ? fault.change({ ...page, nextCursor }).records.length : page.records.length;
  }

  test('ends a page above the newest stored reading below its gap, where it has one', () => {
    const lie = 'cut above a stored reading';
    expect([keptOf(lie, [6]), keptOf(lie, [0, 8]), keptOf(lie, [4, 6])]).toEqual([3, 4, 2]);
    expect([keptOf(lie, []), keptOf(lie, [0]), keptOf(lie, [60]), keptOf(lie, [6], { nextCursor: 'a' })]).toEqual([
      9, 9, 9, 9,
    ]);
  });

  test('removes the newest of a page of the past where one of them is stored, and not behind a cursor', () => {
    const lie = 'a page of the past without its newest';
    const past = { before: 3 * HOUR_MS };
    expect([keptOf(lie, [0], past), keptOf(lie, [2, 8], past)]).toEqual([6, 6]);
    expect([keptOf(lie, [], past), keptOf(lie, [3], past), keptOf(lie, [0], { before: HOUR_MS })]).toEqual([9, 9, 9]);
    expect(keptOf(lie, [0], { ...past, cursor: 'a' })).toBe(9);
  });

  test('has an old window empty: further back than a window is wide', () => {
    const kept = [2, 4].map((days) => keptOf('an old window without a reading', [], { before: days * DAY_MS }));
    expect([keptOf('an old window without a reading', []), ...kept]).toEqual([9, 9, 0]);
  });
});

test('answers lose their Date at the rate of a misfortune, while it lasts', () => {
  const { startMs } = drawStory(1);
  const what = { kind: 'undated' as const, rate: 0.5, seed: 1 };
  const story = quietStory({}, [{ name: 'undated', fromMs: startMs, toMs: startMs + HOUR_MS, what }]);
  let nowMs = startMs;
  const fate = createFate(story, { nowMs: () => nowMs }, { settings: createSettings({}), knownSign: () => null });
  const datesOf = (): Set<string | undefined> =>
    new Set(Array.from({ length: 40 }, () => fate.undate<Answer>({ headers: { date: 'then', a: 'b' } }).headers.date));
  expect(datesOf()).toEqual(new Set(['then', undefined]));
  nowMs += HOUR_MS;
  expect(datesOf()).toEqual(new Set(['then']));
});

interface Answer {
  readonly headers: Readonly<Record<string, string>>;
}

describe('the drawn stories', () => {
  const stories = [...Array.from({ length: 60 }, (_, index) => index + 1), 1979].map(drawStory);

  test('has everything that was added later', () => {
    const further = stories.flatMap(({ misfortunes }) => misfortunes.filter(({ name }) => name.startsWith('further')));
    const kinds = new Set(further.map(({ what }) => ('lie' in what ? what.lie : what.kind)));
    expect([...kinds].toSorted()).toEqual(['cut above a stored reading', 'settings', 'undated']);
    const withOld = stories.filter(({ misfortunes }) => misfortunes.some(({ name }) => name === 'old windows'));
    expect(withOld.length).toBeGreaterThan(2);
    for (const { api, program } of withOld) {
      expect(program.historyMs).toBe(4 * DAY_MS * (api.plan?.historyMaxDays ?? 0));
    }
    const short = stories.filter(({ api }) => (api.plan?.requestsPerDay ?? Infinity) <= 1500);
    expect(short.length).toBeGreaterThan(5);
  });

  test('changes only settings that there are', () => {
    const changes = stories.flatMap(({ misfortunes }) =>
      misfortunes.flatMap(({ what }) => (what.kind === 'settings' ? [what.change] : [])),
    );
    const names = new Set(changes.flatMap((change) => Object.keys(change)));
    expect([...names].toSorted()).toEqual(['bounds', 'key', 'paging', 'plan', 'quota', 'surprises', 'time']);
    expect(Object.keys(createSettings({}))).toEqual(expect.arrayContaining([...names]));
  });

  test('has no other clients beside a small share of limits that are not reported', () => {
    const untold = stories.filter(({ api }) => api.key?.scopes?.includes('account:read') === false);
    const foreignOf = (some: readonly Story[]): number[] => some.map(({ api }) => api.quota?.foreign?.perMinute ?? 0);
    expect(Math.max(...foreignOf(untold.filter(({ program }) => program.share < 0.5)))).toBe(0);
    expect(Math.max(...foreignOf(stories))).toBeGreaterThan(0);
  });

  test.each([
    ['without Date and with a local clock behind', 'absent', []],
    ['with a Date that answers lose and a local clock behind', 'sent', [{ kind: 'undated', rate: 1, seed: 1 }]],
  ] as const)('has no backfill begin later than anybody can know, %s', async (_, date, more) => {
    const during = { fromMs: drawStory(1).startMs, toMs: drawStory(1).startMs + MINUTE_MS };
    const whats = [{ kind: 'local clock', byMs: -3 * HOUR_MS } as const, ...more];
    const quiet = quietStory(
      {},
      whats.map((what) => ({ name: what.kind, ...during, what })),
    );
    const { startMs } = quiet;
    const backfill: Life = {
      name: 'backfill',
      kind: 'backfill',
      atMs: startMs,
      forMs: HOUR_MS,
      kill: null,
      looks: [],
      reachMs: HOUR_MS,
      losesFrom: null,
      movesHouse: false,
      maintains: true,
    };
    const last: Life = { ...backfill, name: 'last', kind: 'once', atMs: startMs + HOUR_MS, forMs: DAY_MS };
    const world = { ...quiet.world, historyMs: 6 * HOUR_MS };
    const api = { time: { date } };
    const program = { ...quiet.program, historyMs: 4 * HOUR_MS, gracePeriodMs: 2 * MINUTE_MS };
    const { wrong } = await liveStory({ ...quiet, world, api, program, lives: [backfill, last] });
    expect(wrong).toEqual([]);
  });
});

describe('the excuses', () => {
  const at = drawStory(1).startMs;
  const during = { fromMs: at + HOUR_MS, toMs: at + 2 * HOUR_MS };
  const named = (name: string, what: Misfortune['what']): Misfortune => ({ name, ...during, what });

  /** A stage at a moment, as far as excuses look at it. */
  function stageAt(afterMs: number, story: Story, facts: Partial<Stage> = {}): Stage {
    const clock = createVirtualClock(at + afterMs);
    const simulator = createSimulator({ world: worldOf(story), clock, settings: story.api });
    const quiet = {
      lifeStartedMs: at,
      datedMs: [],
      truePages: [],
      planReadMs: Number.NEGATIVE_INFINITY,
      fate: { hit: new Set(), reported: [] },
    };
    return { story, clock, simulator, ...quiet, ...facts } as unknown as Stage;
  }

  /** Which readings of the device are excused, by their minutes of receipt since the start. */
  function excusedOf(stage: Stage): number[] {
    const isExcused = excuseOf(stage);
    return [...stage.simulator.world.readings('d', 0n, 2n ** 63n)]
      .filter((reading: SimReading) => isExcused('d', reading))
      .map(({ visibleAtMs }) => Math.floor((visibleAtMs - at) / MINUTE_MS));
  }

  const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, index) => from + index);

  test('readings stamped by a clock that had fallen back, unless two answers have shown that', () => {
    const story = quietStory({}, [named('fall', { kind: 'server clock and stamps', byMs: -3 * HOUR_MS })]);
    const seen = [at + 70 * MINUTE_MS, at + 80 * MINUTE_MS];
    for (const datedMs of [[], seen.slice(1), [at, ...seen.slice(1), at + 3 * HOUR_MS]]) {
      const excused = excusedOf(stageAt(30 * HOUR_MS, story, { datedMs }));
      expect(excused.toSorted((a, b) => a - b)).toEqual(range(60, 120));
    }
    expect(excusedOf(stageAt(30 * HOUR_MS, story, { datedMs: seen }))).toEqual([]);
  });

  test('times that a clock that was ahead has shown as passed, for a while, and for an absent device until it is back', () => {
    const ahead = [named('ahead', { kind: 'server clock', byMs: HOUR_MS })];
    const story = quietStory({}, ahead);
    const seen = { datedMs: [at + 130 * MINUTE_MS, at + 140 * MINUTE_MS] };
    const grace = Math.ceil(story.program.gracePeriodMs / MINUTE_MS);
    // Readings shown before the end may also have been called empty in that time.
    const laterOf = (stage: Stage): number[] => excusedOf(stage).filter((minute) => minute > 120);
    expect(laterOf(stageAt(8 * HOUR_MS, story, seen))).toEqual(range(121, 181));
    expect(laterOf(stageAt(10 * HOUR_MS, story, seen))).toEqual([]);
    expect(Math.min(...excusedOf(stageAt(1.2 * HOUR_MS, story, seen)))).toBeGreaterThanOrEqual(60 - grace - 1);
    expect(excusedOf(stageAt(28 * HOUR_MS, story, seen))).toEqual([]);
    const spec = { deviceId: 'd', vanishesAtMs: at + 3.5 * HOUR_MS, returnsAtMs: at + 40 * HOUR_MS };
    const away = quietStory({ spec }, ahead);
    expect(laterOf(stageAt(46 * HOUR_MS, away, seen))).toEqual(range(121, 181));
    expect(laterOf(stageAt(48 * HOUR_MS, away, seen))).toEqual([]);
  });

  test('times that a clock that was ahead has shown as passed, while no answer could show its fall', () => {
    const story = quietStory({}, [named('ahead', { kind: 'server clock', byMs: HOUR_MS })]);
    const laterOf = (stage: Stage): number[] => excusedOf(stage).filter((minute) => minute > 120);
    const page = { number: 1, method: 'GET', path: '/devices/d/telemetry', query: '', status: 200, fault: null };
    const dated = (...minutes: number[]): Partial<Stage> => ({ datedMs: minutes.map((each) => at + each * MINUTE_MS) });
    const unseen = stageAt(50 * HOUR_MS, story, { ...dated(70, 130, 190), lifeStartedMs: at + 40 * HOUR_MS });
    expect(laterOf(unseen)).toEqual(range(121, 181));
    unseen.simulator.log.add({ ...page, atMs: at + 2.5 * HOUR_MS });
    expect(laterOf(unseen), 'asked by the clock that was ahead').toEqual(range(121, 181));
    unseen.simulator.log.add({ ...page, atMs: at + 45 * HOUR_MS });
    expect(laterOf(unseen), 'asked since').toEqual([]);
    const seen = stageAt(50 * HOUR_MS, story, { ...dated(130, 140), lifeStartedMs: at + 40 * HOUR_MS });
    expect(laterOf(seen)).toEqual([]);
  });

  test('empty answers of all devices, until a plan of few requests a day is no longer accepted', () => {
    const empty = named('empty', { kind: 'lies always', lie: 'empty' });
    const few: Misfortune = {
      name: 'few',
      fromMs: at + 50 * HOUR_MS,
      toMs: at + 51 * HOUR_MS,
      what: { kind: 'settings', change: { plan: { requestsPerDay: 40 } } },
    };
    const story = quietStory({}, [empty, few]);
    const fate = { hit: new Set(['few']), reported: [] } as unknown as Stage['fate'];
    const at60 = (facts: Partial<Stage>): number => excusedOf(stageAt(60 * HOUR_MS, story, facts)).length;
    expect(at60({}), 'it has not hit anything').toBe(0);
    expect(at60({ fate })).toBeGreaterThan(0);
    expect(at60({ fate, planReadMs: at + 52 * HOUR_MS }), 'the account was read since').toBe(0);
    expect(excusedOf(stageAt(77 * HOUR_MS, story, { fate })), 'more than a day later').toEqual([]);
  });

  test.each([
    [700, 30, true],
    [700, 51, false],
    [800, 30, false],
    [null, 30, false],
  ])(
    'empty answers in a life with half of %s requests a day: after %s hours, that is %s',
    (requestsPerDay, hours, is) => {
      const quiet = quietStory({}, [named('empty', { kind: 'lies always', lie: 'empty' })]);
      const api = requestsPerDay === null ? {} : { plan: { requestsPerDay } };
      const story = { ...quiet, api, program: { ...quiet.program, share: 0.5 } };
      const stage = stageAt(hours * HOUR_MS, story, { lifeStartedMs: at + 26 * HOUR_MS });
      expect(excusedOf(stage).length > 0).toBe(is);
    },
  );

  test('empty answers that follow shortly on a page, at once; others after half an hour', () => {
    const story = quietStory({}, [named('empty', { kind: 'lies always', lie: 'empty' })]);
    const stage = stageAt(1.2 * HOUR_MS, story);
    expect(excusedOf(stage)).toEqual([]);
    const page = { number: 1, method: 'GET', path: '/devices/e/telemetry', query: '', status: 200, fault: null };
    stage.simulator.log.add({ ...page, atMs: during.fromMs - 3 * MINUTE_MS });
    expect(excusedOf(stage)).toEqual([]);
    stage.simulator.log.add({ ...page, atMs: during.fromMs - MINUTE_MS });
    expect(excusedOf(stage).length).toBeGreaterThan(0);
  });

  test.each([
    ['empty', 1, [0, 1], {}, 31],
    ['empty', 0.6, [0, 1], {}, 1],
    ['empty', 1, [0, 10], { e: [10] }, null],
    ['empty', 1, [9, 10], { e: [8] }, 10],
    ['empty', 1, [9, 10], { e: [10.5] }, 10.5],
    ['empty', 1, [9, 10], { e: [7.9, 10.6], d: [9] }, 40],
    ['without the newest', 1, [0, 1, 32], { e: [1] }, 32],
    ['without the newest', 1, [0, 1, 2], {}, null],
    ['oldest first', 1, [0, 1, 32], {}, null],
  ] as const)(
    '%s pages at a rate of %s after %s minutes, true ones after %o: accepted after %s',
    (lie, rate, minutes, truth, after) => {
      const story = quietStory({}, [named('lies', { kind: 'lies', lie, rate, seed: 1 })]);
      const pagesOf = (id: string, all: readonly number[]): ServedPage[] =>
        all.map((minute) => ({ path: `/devices/${id}/telemetry`, atMs: during.fromMs + minute * MINUTE_MS }));
      const reported = pagesOf('d', minutes).map((page) => ({ name: 'lies', ...page }));
      const excusedAt = (minute: number): number => {
        const pages = Object.entries(truth).flatMap(([id, all]) => pagesOf(id, all));
        const truePages = pages.filter(({ atMs }) => atMs <= during.fromMs + minute * MINUTE_MS);
        const facts = { fate: { hit: new Set(), reported } as never, truePages };
        return excusedOf(stageAt(HOUR_MS + minute * MINUTE_MS, story, facts)).length;
      };
      if (after === null) return expect(excusedAt(59)).toBe(0);
      expect(excusedAt(after - 1)).toBe(0);
      expect(excusedAt(after)).toBeGreaterThan(0);
      expect(excusedAt(30 * 60), 'asked for again').toBe(0);
    },
  );

  test('three pages without their newest readings at once, where answers have no Date', () => {
    const lies = { kind: 'lies', lie: 'without the newest', rate: 1, seed: 1 } as const;
    const story = { ...quietStory({}, [named('lies', lies)]), api: { time: { date: 'absent' as const } } };
    const reported = [0, 1, 2].map((minute) => ({
      name: 'lies',
      path: '/devices/d/telemetry',
      atMs: during.fromMs + minute * MINUTE_MS,
    }));
    const excusedAt = (minute: number): number =>
      excusedOf(stageAt(HOUR_MS + minute * MINUTE_MS, story, { fate: { hit: new Set(), reported } as never })).length;
    expect(excusedAt(1)).toBe(0);
    expect(excusedAt(2)).toBeGreaterThan(0);
  });

  test('readings handed in when the plan no longer reached back to them, at the first poll of the device', () => {
    const buffers = [{ fromMs: at, toMs: at + 2 * HOUR_MS }];
    const plan = { plan: { historyMaxDays: 3 } };
    const story = { ...quietStory({ buffers, stamps: 'device' }), api: plan };
    const stage = stageAt(74 * HOUR_MS, story);
    expect(excusedOf(stage), 'nobody has looked').toEqual([]);
    const page = { number: 1, method: 'GET', path: '/devices/d/telemetry', query: '', status: 200, fault: null };
    stage.simulator.log.add({ ...page, atMs: at + 73 * HOUR_MS - 30 * SECOND_MS });
    expect(excusedOf(stage)).toHaveLength(60);
    const early = stageAt(74 * HOUR_MS, story);
    for (const hours of [3, 73]) early.simulator.log.add({ ...page, atMs: at + hours * HOUR_MS });
    expect(excusedOf(early)).toEqual([]);
  });

  test('by how much local clocks are behind within a time, all together', () => {
    const story = quietStory({}, [
      named('a', { kind: 'local clock', byMs: -HOUR_MS }),
      named('b', { kind: 'local clock', byMs: -MINUTE_MS }),
      named('c', { kind: 'local clock', byMs: DAY_MS }),
    ]);
    const stage = stageAt(0, story);
    expect(localBehindMs(stage, { fromMs: at, toMs: at + DAY_MS })).toBe(HOUR_MS + MINUTE_MS);
    expect(localBehindMs(stage, { fromMs: at, toMs: at + MINUTE_MS })).toBe(0);
    expect(localBehindMs(stage, { fromMs: at + 2 * HOUR_MS, toMs: at + DAY_MS })).toBe(0);
  });
});

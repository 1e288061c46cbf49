/**
 * Complete scans: the rules of `ingest/page-request.ts` applied to gaps of every kind, against services of every
 * behaviour that the API document leaves open. Safety is checked after each answer (see `whole-scans.ts`).
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Interval, normalize, subtract } from '../../src/core/intervals.ts';
import type { Cursor, Reading, TelemetryPage } from '../../src/core/records.ts';
import { DAY_NS, type EpochNs, HOUR_NS, SECOND_NS } from '../../src/core/time.ts';
import type { PageRequest } from '../../src/ingest/page-request.ts';
import { edgeOf, readingAt, T0 } from '../core/support/readings.ts';
import { createService, holdAll, type Scene, type Service, type ServiceHabits, walkAll } from './whole-scans.ts';

const anyHabits: fc.Arbitrary<ServiceHabits> = fc.record({
  pageSize: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constantFrom(50, 200)),
  afterIncluded: fc.boolean(),
  beforeIncluded: fc.boolean(),
  rounding: fc.constantFrom('none', 'down', 'up'),
  emptyLastPage: fc.boolean(),
});

/** Time from one reading to the next: ties, neighbours of a nanosecond, bursts, a steady pace, silence. */
const anyStep: fc.Arbitrary<bigint> = fc.oneof(
  { weight: 3, arbitrary: fc.constant(0n) },
  { weight: 1, arbitrary: fc.constant(1n) },
  { weight: 3, arbitrary: fc.bigInt({ min: 1n, max: SECOND_NS }) },
  { weight: 3, arbitrary: fc.bigInt({ min: 1n, max: 5n }).map((seconds) => seconds * SECOND_NS) },
  { weight: 1, arbitrary: fc.bigInt({ min: SECOND_NS, max: HOUR_NS }) },
  { weight: 1, arbitrary: fc.bigInt({ min: HOUR_NS, max: 8n * HOUR_NS }) },
);

/** Readings in ascending order; some of an instant are equal to the last digit. */
const anyReadings: fc.Arbitrary<readonly Reading[]> = fc
  .array(fc.tuple(anyStep, fc.nat(3)), { maxLength: 60, size: 'max' })
  .map((steps) => {
    let at = T0;
    return steps.map(([step, value]) => {
      at += step;
      return readingAt(at, { v: value });
    });
  });

const MARGIN_NS = 10n * SECOND_NS;

/** Cuts the time of the readings at instants that readings like to have, and holds every other piece or so. */
const anyScene: fc.Arbitrary<Scene> = anyReadings.chain((readings) => {
  const end = (readings.at(-1)?.recordedAt ?? T0) + MARGIN_NS;
  const instants = readings.flatMap(({ recordedAt }) => [recordedAt, recordedAt + 1n]);
  const anyCut: fc.Arbitrary<EpochNs> =
    instants.length === 0
      ? fc.bigInt({ min: T0 - MARGIN_NS, max: end })
      : fc.oneof(fc.constantFrom(...instants), fc.bigInt({ min: T0 - MARGIN_NS, max: end }));
  return fc
    .record({
      cuts: fc.array(anyCut, { maxLength: 4 }),
      holdFirst: fc.boolean(),
      topHeld: fc.boolean(),
      widthNs: fc.constantFrom(null, HOUR_NS, 23n * HOUR_NS),
      bothBounds: fc.boolean(),
    })
    .map(({ cuts, holdFirst, topHeld, widthNs, bothBounds }) => {
      const wanted = { from: T0 - MARGIN_NS, to: end };
      const edges = [wanted.from, ...cuts.toSorted((a, b) => (a < b ? -1 : 1)), end];
      const pieces: Interval[] = edges.slice(1).map((to, index) => ({ from: edges[index] ?? to, to }));
      const open = pieces.filter((_, index) => (index % 2 === 0) !== holdFirst && (index > 0 || !topHeld));
      const held = subtract([wanted], normalize(open)).map((range) => holdAll(range, readings));
      return { readings, wanted, held, limits: { widthNs, nowNs: end + 90n * SECOND_NS, bothBounds } };
    });
});

/** The most requests of a page scan: every window twice, and every reading as a page of its own, in slack as well. */
function patience({ readings, wanted, limits: { widthNs } }: Scene): number {
  const windows = widthNs === null ? 1 : Number((wanted.to - wanted.from) / widthNs) + 1;
  return 4 * (windows + 5) + 4 * readings.length;
}

describe('whatever the habits of the service', () => {
  test('a page scan ends, covers exactly the wanted range, and has seen every reading of it', () => {
    fc.assert(
      fc.property(anyScene, anyHabits, (scene, habits) => {
        const walked = walkAll(scene, createService(scene.readings, habits), patience(scene));
        expect(walked.covered.map(({ from, to }) => ({ from, to }))).toEqual([scene.wanted]);
      }),
      { numRuns: 1500 },
    );
  });

  test('a correct service gets repeated requests only because it was empty', () => {
    fc.assert(
      fc.property(anyScene, anyHabits, (scene, habits) => {
        const { distrusted } = walkAll(scene, createService(scene.readings, habits), patience(scene));
        expect(distrusted.filter((reason) => !reason.includes('empty'))).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  test('the edge readings of each covered range lie in it', () => {
    fc.assert(
      fc.property(anyScene, anyHabits, (scene, habits) => {
        const { covered } = walkAll(scene, createService(scene.readings, habits), patience(scene));
        const inside = scene.readings.filter(({ recordedAt }) => recordedAt < scene.wanted.to).map(edgeOf);
        for (const { first, last } of covered) {
          for (const edge of [first, last]) if (edge !== null) expect(inside).toContainEqual(edge);
          expect(first === null || last === null || first.at <= last.at).toBe(true);
        }
      }),
      { numRuns: 300 },
    );
  });
});

/** How an answer may be false. Each is one that the rules promise to see through. */
type Lie = keyof typeof LIES;

interface Asked {
  readonly request: PageRequest;
  /** The answer of a correct service. */
  readonly page: TelemetryPage;
  /** The answer of a service with the wrong order. */
  readonly oldestFirst: TelemetryPage;
}

const MORE = '0 0 0' as Cursor;

const LIES = {
  truth: ({ page }: Asked) => page,
  // As if there were nothing: an error of the service that comes with 200.
  empty: ({ page }: Asked) => ({ ...page, readings: [], nextCursor: null }),
  // As if the newest readings had not been written yet: a replica that lags behind.
  behind: ({ page, request: { near, nearSeen } }: Asked) => {
    if (near === null || nearSeen) return page;
    return { ...page, readings: page.readings.filter(({ recordedAt }) => recordedAt < near.at), nextCursor: null };
  },
  // As if the window ended early.
  'cut short': ({ page, request: { far } }: Asked) => {
    if (far === null) return page;
    return { ...page, readings: page.readings.filter(({ recordedAt }) => recordedAt > far.at), nextCursor: null };
  },
  // The oldest readings of the window, oldest first: only a page of one instant hides that.
  'upside down': ({ page, oldestFirst }: Asked) => {
    const instants = new Set(oldestFirst.readings.map(({ recordedAt }) => recordedAt));
    return instants.size > 1 && oldestFirst.nextCursor !== null ? oldestFirst : page;
  },
  // Readings of another window, from before the requested one.
  elsewhere: ({ page, request }: Asked) => ({
    ...page,
    readings: [readingAt(request.after - MARGIN_NS)],
    nextCursor: MORE,
  }),
  // The complete answer, of another device.
  foreign: ({ page, request }: Asked) => ({
    ...page,
    deviceId: 'd2',
    readings: [readingAt(request.gap.from)],
    nextCursor: null,
  }),
};

/** A service whose first answer to each request is false, in the given order. */
function lyingService({ readings }: Scene, habits: ServiceHabits, lies: readonly Lie[]): Service {
  const honest = createService(readings, habits);
  const sortedWrong = createService(readings.toReversed(), habits);
  const asked = new Set<string>();
  return (request) => {
    const page = honest(request);
    const question = `${request.after} ${request.before} ${request.cursor}`;
    if (asked.has(question)) return page;
    asked.add(question);
    const lie = lies[asked.size % lies.length] ?? 'truth';
    return LIES[lie]({ request, page, oldestFirst: sortedWrong(request) });
  };
}

test('a service whose errors the rules can detect never makes a page scan cover an unseen reading', () => {
  const anyLies = fc.array(fc.constantFrom(...(Object.keys(LIES) as Lie[])), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(anyScene, anyHabits, anyLies, (scene, habits, lies) => {
      // A chain of cursors whose end was a lie begins anew, as often as it has pages.
      const walked = walkAll(scene, lyingService(scene, habits, lies), patience(scene) ** 2);
      expect(walked.covered.map(({ from, to }) => ({ from, to }))).toEqual([scene.wanted]);
    }),
    { numRuns: 1500 },
  );
});

describe('reaching back', () => {
  const reaching = (scene: Scene): Scene => ({ ...scene, reachesBack: true });

  test('never costs a request, whatever the habits of the service, and proves the same', () => {
    let sawMore = 0;
    fc.assert(
      fc.property(anyScene, anyHabits, (scene, habits) => {
        const service = createService(scene.readings, habits);
        const plain = walkAll(scene, service, patience(scene));
        const walked = walkAll(reaching(scene), service, patience(scene));
        expect(walked.requests).toBeLessThanOrEqual(plain.requests);
        expect(walked.covered).toEqual(plain.covered);
        if (walked.served.size > plain.served.size) sawMore += 1;
      }),
      { numRuns: 3000 },
    );
    expect(sawMore).toBeGreaterThan(100);
  });

  test('brings as many of the newest readings as the page has room for', () => {
    const readings = Array.from({ length: 500 }, (_, index) => readingAt(T0 + BigInt(index) * 60n * SECOND_NS));
    const heldTo = T0 + 490n * 60n * SECOND_NS;
    const wanted = { from: T0, to: T0 + 500n * 60n * SECOND_NS };
    const held = [holdAll({ from: T0, to: heldTo }, readings)];
    const limits = { widthNs: null, nowNs: wanted.to, bothBounds: false };
    const habits = { pageSize: 200, afterIncluded: false, beforeIncluded: false, emptyLastPage: false } as const;
    const service = createService(readings, { ...habits, rounding: 'none' });
    const walked = walkAll({ readings, wanted, held, limits, reachesBack: true }, service, 5);
    expect([walked.requests, walked.served.size, walked.covered.map(({ to }) => to)]).toEqual([1, 200, [wanted.to]]);
  });

  test('stops at the coverage, and at half of the window that the plan allows', () => {
    const readings = [readingAt(T0), readingAt(T0 + 20n * HOUR_NS), readingAt(T0 + 40n * HOUR_NS)];
    const wanted = { from: T0 - HOUR_NS, to: T0 + 41n * HOUR_NS };
    const held = [holdAll({ from: wanted.from, to: wanted.to - 60n * SECOND_NS }, readings)];
    const askedAfter = (widthNs: bigint | null): EpochNs => {
      const asks: PageRequest[] = [];
      const habits = { pageSize: 200, afterIncluded: true, beforeIncluded: true, emptyLastPage: false } as const;
      const service = createService(readings, { ...habits, rounding: 'none' });
      const limits = { widthNs, nowNs: wanted.to, bothBounds: false };
      walkAll(
        { readings, wanted, held, limits, reachesBack: true },
        (request) => service(asks[asks.push(request) - 1] ?? request),
        5,
      );
      return asks[0]?.after ?? 0n;
    };
    expect(askedAfter(null)).toBe(wanted.from);
    expect(askedAfter(30n * HOUR_NS)).toBe(wanted.to + 2n * SECOND_NS - 15n * HOUR_NS);
    // Where the overlap reading itself lies beyond that, it is reached for, as it is without reaching back.
    expect(askedAfter(2n * HOUR_NS)).toBe(T0 + 40n * HOUR_NS - 2n * SECOND_NS);
  });
});

describe('the cost of a page scan', () => {
  /** A reading about every second, never two in one second, some seconds without. */
  const anySteadyStream = fc
    .tuple(fc.integer({ min: 0, max: 1500 }), fc.nat(999), fc.integer({ min: 0, max: 40 }))
    .map(([count, offsetMs, skipEvery]) => {
      const seconds = Array.from({ length: count }, (_, second) => second);
      return seconds
        .filter((second) => skipEvery === 0 || second % (skipEvery + 1) !== 0)
        .map((second) => readingAt(T0 + BigInt(second) * SECOND_NS + BigInt(offsetMs) * 1_000_000n));
    });

  test('is a full page for 196 readings at a pace of one a second, and two requests more', () => {
    fc.assert(
      fc.property(anySteadyStream, anyHabits, (readings, habits) => {
        const wanted = { from: T0, to: T0 + 1600n * SECOND_NS };
        const limits = { widthNs: null, nowNs: wanted.to + 120n * SECOND_NS, bothBounds: false };
        const service = createService(readings, { ...habits, pageSize: 200 });
        const { requests, covered } = walkAll({ readings, wanted, held: [], limits }, service, 1000);
        expect(requests).toBeLessThanOrEqual(Math.ceil(readings.length / 196) + 2);
        expect(covered).toEqual([holdAll(wanted, readings)]);
      }),
      { numRuns: 100 },
    );
  });

  test('is one request for the newest end, however long the device was silent', () => {
    const last = readingAt(T0);
    const wanted = { from: T0 - DAY_NS, to: T0 + 10n * DAY_NS };
    const held = [holdAll({ from: wanted.from, to: T0 + 60n * SECOND_NS }, [last])];
    const limits = { widthNs: 30n * DAY_NS, nowNs: wanted.to + 120n * SECOND_NS, bothBounds: false };
    const habits = { pageSize: 200, afterIncluded: false, beforeIncluded: false, emptyLastPage: false } as const;
    const service = createService([last], { ...habits, rounding: 'none' });
    const walked = walkAll({ readings: [last], wanted, held, limits }, service, 10);
    expect(walked).toMatchObject({ requests: 1, distrusted: [], covered: [wanted] });
  });

  test('is a request for every page of a burst that time cannot pass', () => {
    const readings = Array.from({ length: 1000 }, (_, index) => readingAt(T0, { v: index }));
    const wanted = { from: T0 - HOUR_NS, to: T0 + HOUR_NS };
    const limits = { widthNs: null, nowNs: wanted.to + 120n * SECOND_NS, bothBounds: false };
    const habits = { pageSize: 200, afterIncluded: true, beforeIncluded: true, emptyLastPage: false } as const;
    const service = createService(readings, { ...habits, rounding: 'none' });
    const walked = walkAll({ readings, wanted, held: [], limits }, service, 10);
    expect(walked).toMatchObject({ requests: 5, covered: [wanted] });
  });
});

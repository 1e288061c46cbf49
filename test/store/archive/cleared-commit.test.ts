/**
 * Landing over what was cleared: pulled again, the same readings make the same database and the same sums.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MAX_OFFSET_NS } from '../../../src/core/lines/offsets.ts';
import type { Reading } from '../../../src/core/records.ts';
import type { PageCommit } from '../../../src/core/state/telemetry.ts';
import { SECOND_NS } from '../../../src/core/time.ts';
import { composeCommit, extentOf } from '../../../src/ingest/commit-rules.ts';
import { NO_LIMIT, type ScratchStore, scratchStore } from '../support.ts';

const START_NS = 1_780_000_000_000_000_000n;

/** Lands a page of one device as the program does. */
function commitPage({ store }: ScratchStore, readings: readonly Reading[]): PageCommit {
  const extent = extentOf(readings);
  if (extent === null) throw new Error('a page without readings');
  const pageCommit = composeCommit({
    state: store.telemetry('d'),
    workspaceId: 'w',
    lane: 'live',
    requestId: 1,
    answeredAtMs: 1,
    readings,
    rejected: [],
    stored: store.stored('d', extent.from - MAX_OFFSET_NS, extent.to + MAX_OFFSET_NS),
    covers: null,
    gracePeriodMs: 0,
    storedAt: ({ from, to }) => store.stored('d', from, to),
  });
  store.commitPage(pageCommit);
  return pageCommit;
}

/** A database: one value for each series and time, the last one written. */
type Points = Map<string, string>;

function deliver({ store }: ScratchStore, id: number, points: Points): void {
  const from = store.position(id, 'live');
  const batch = store.read('live', from, NO_LIMIT);
  const last = batch.segments.at(-1);
  if (last === undefined) return;
  for (const line of batch.lines) {
    const [series = '', field = '', at = ''] = line.split(' ');
    points.set(`${series} ${at}`, field);
  }
  const to = { block: last.block + 1, line: 0 };
  store.acknowledge({ destinationId: id, lane: 'live', from, to, rejected: [], missing: [], atMs: 1 });
}

/** Instants with the readings of each, which tie and repeat: newest first, in the order in which the API serves them. */
const instants = fc
  .uniqueArray(
    fc.record({
      second: fc.integer({ min: 0, max: 60 }),
      readings: fc.array(
        fc.array(fc.tuple(fc.constantFrom('a', 'b'), fc.integer({ min: 1, max: 3 })), { minLength: 1, maxLength: 2 }),
        { minLength: 1, maxLength: 3 },
      ),
    }),
    { minLength: 2, maxLength: 20, selector: ({ second }) => second },
  )
  .map((all) =>
    all
      .toSorted((a, b) => b.second - a.second)
      .map(({ second, readings }) =>
        readings.map((values): Reading => ({ recordedAt: START_NS + BigInt(second) * SECOND_NS, values })),
      ),
  );

type Instants = readonly (readonly Reading[])[];

interface Step {
  readonly from: number;
  readonly length: number;
  readonly after: 'nothing' | 'deliver' | 'compact' | 'clear';
}

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    from: fc.nat(24),
    length: fc.integer({ min: 1, max: 25 }),
    after: fc.constantFrom('nothing', 'deliver', 'compact', 'clear'),
  }),
  { minLength: 1, maxLength: 10 },
);

/**
 * Pulls the pages of a story.
 *
 * @param tidies whether blocks are compacted and cleared on the way.
 */
function live(state: ScratchStore, { served, story }: { served: Instants; story: readonly Step[] }, tidies: boolean) {
  const { id } = state.store.useDestination('x', 'x');
  const readers = { configured: [id], active: [id] };
  const points: Points = new Map();
  const newReadings = story.map(({ from, length, after }) => {
    const first = from % served.length;
    const committed = commitPage(state, served.slice(first, first + length).flat());
    if (after !== 'nothing') deliver(state, id, points);
    if (tidies && after === 'compact') {
      for (const group of state.maintenance.compactionGroups(Number.MAX_SAFE_INTEGER))
        state.maintenance.compact(group, readers, Number.MAX_SAFE_INTEGER);
    }
    if (tidies && after === 'clear') state.maintenance.clear({ ...readers, beforeMs: null });
    return committed.newReadings;
  });
  deliver(state, id, points);
  return {
    newReadings,
    points,
    sums: state.rows('SELECT * FROM day_sum'),
    offsets: state.rows('SELECT * FROM time_offset'),
  };
}

describe('cleared readings that are read again', () => {
  test('makes the same database, the same sums and no new reading, whatever was cleared when', () => {
    fc.assert(
      fc.property(instants, steps, (served, story) => {
        using plain = scratchStore();
        using tidied = scratchStore();
        expect(live(tidied, { served, story }, true)).toEqual(live(plain, { served, story }, false));
      }),
      { numRuns: 80 },
    );
  });

  test('is sent again as the identical line, counted nowhere, and known from then on', () => {
    using state = scratchStore();
    const { id } = state.store.useDestination('x', 'x');
    const page: Reading[] = [3n, 2n, 1n].map((second) => ({
      recordedAt: START_NS + second * SECOND_NS,
      values: [['a', Number(second)]],
    }));
    const first = commitPage(state, page);
    deliver(state, id, new Map());
    expect(state.maintenance.clear({ configured: [id], active: [id], beforeMs: null }).lines).toBe(3);
    const again = commitPage(state, page.slice(1));
    expect(again.lines).toEqual(first.lines.slice(0, 2));
    expect(again).toMatchObject({ newReadings: 0, daySums: [], offsets: [] });
    expect(commitPage(state, page.slice(1)).lines).toEqual([]);
    const fresh = commitPage(state, [{ recordedAt: START_NS, values: [['a', 0]] }]);
    expect(fresh).toMatchObject({ newReadings: 1, daySums: [{ readings: 1 }] });
  });

  test('does not let a further value at an instant take the place of one that was displaced and cleared', () => {
    using state = scratchStore();
    const { id } = state.store.useDestination('x', 'x');
    const of = (value: number): Reading => ({ recordedAt: START_NS, values: [['a', value]] });
    const points: Points = new Map();
    commitPage(state, [of(2), of(1)]);
    deliver(state, id, points);
    state.maintenance.clear({ configured: [id], active: [id], beforeMs: null });
    commitPage(state, [of(3), of(2), of(1)]);
    deliver(state, id, points);
    expect([...points.values()].toSorted()).toEqual(['value=1', 'value=2', 'value=3']);
  });
});

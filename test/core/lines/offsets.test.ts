/** The nanosecond at which a value is written when its series has another value at that instant. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeLine, identityTag } from '../../../src/core/lines/line-protocol.ts';
import { createUsedTimestamps, MAX_OFFSET_NS, type RecordedValue } from '../../../src/core/lines/offsets.ts';
import type { TimestampOffset } from '../../../src/core/state/telemetry.ts';
import type { EpochNs } from '../../../src/core/time.ts';

/** Where the small integers of the tests are counted from. */
const BASE = 1_768_478_400_000_000_000n;

type Value = number | boolean | string;

function fieldName(value: Value): 'value' | 'flag' | 'text' {
  if (typeof value === 'number') return 'value';
  return typeof value === 'boolean' ? 'flag' : 'text';
}

function lineOf(sensor: string, value: Value, at: EpochNs): string {
  const line = encodeLine({
    measurement: 'telemetry',
    tags: [
      ['device_id', identityTag('d 1')],
      ['sensor', identityTag(sensor)],
    ],
    fields: [[fieldName(value), value]],
    at,
  });
  if (line === null) throw new Error('no line');
  return line;
}

interface Seen {
  readonly sensor: string;
  readonly value: Value;
  /** Nanoseconds after {@link BASE}. */
  readonly recorded: number;
}

/** Requests an offset for a value, as a commit does. */
function placedOf({ sensor, value, recorded }: Seen): RecordedValue {
  const line = lineOf(sensor, value, 0n);
  const field = line.slice(line.indexOf(`${fieldName(value)}=`), line.lastIndexOf(' '));
  return { sensor: identityTag(sensor), recordedAt: BASE + BigInt(recorded), field };
}

/** An archive in miniature: each page is a block, and blocks are returned completely. */
function createArchive() {
  const blocks: { times: readonly EpochNs[]; lines: readonly string[] }[] = [];
  const ties: TimestampOffset[] = [];
  return {
    ties,
    lines: (): readonly string[] => blocks.flatMap(({ lines }) => lines),
    /** @returns where each value was written, counted from {@link BASE}; `null` for a value that was stored before. */
    commit: (page: readonly Seen[]): (number | null)[] => {
      const instants = page.map(({ recorded }) => BASE + BigInt(recorded));
      const from = instants.reduce((a, b) => (a < b ? a : b), BASE * 2n);
      const to = instants.reduce((a, b) => (a > b ? a : b), 0n);
      const within = (at: EpochNs): boolean => from - MAX_OFFSET_NS <= at && at <= to + MAX_OFFSET_NS;
      const held = blocks.filter(({ times }) => times.some(within)).flatMap(({ lines }) => lines);
      const near = ties.filter(({ recordedNs, writtenNs }) => within(recordedNs) || within(writtenNs));
      const places = createUsedTimestamps(held, near, { from, to });
      const written = page.map((seen) => places.assign(placedOf(seen)));
      const times = written.filter((at) => at !== null);
      const lines = page.flatMap((seen, index) => {
        const at = written[index] ?? null;
        return at === null ? [] : [lineOf(seen.sensor, seen.value, at)];
      });
      if (lines.length > 0) blocks.push({ times, lines });
      ties.push(...places.newOffsets());
      return written.map((at) => (at === null ? null : Number(at - BASE)));
    },
  };
}

const seen = (recorded: number, value: Value, sensor = 't'): Seen => ({ sensor, value, recorded });

describe('values of one instant', () => {
  test('equal ones are one point', () => {
    const archive = createArchive();
    expect(archive.commit([seen(5, 1), seen(5, 1)])).toEqual([5, null]);
    expect(archive.commit([seen(5, 1)])).toEqual([null]);
    expect(archive.ties).toEqual([]);
  });

  test('of sensors that differ all lie at their instant', () => {
    expect(createArchive().commit([seen(5, 1, 'a'), seen(5, 2, 'b'), seen(5, 1, 'c')])).toEqual([5, 5, 5]);
  });

  test('of one series that differ all survive, the second one nanosecond later and so on, by first sight', () => {
    const archive = createArchive();
    expect(archive.commit([seen(5, 3), seen(5, 1)])).toEqual([5, 6]);
    expect(archive.commit([seen(5, 2), seen(5, 1), seen(5, 3)])).toEqual([7, null, null]);
    expect(archive.ties.map(({ field, recordedNs, writtenNs }) => [field, writtenNs - recordedNs])).toEqual([
      ['value=1', 1n],
      ['value=2', 2n],
    ]);
  });

  test('differ when a number, a flag and a text read the same', () => {
    expect(createArchive().commit([seen(5, 1), seen(5, true), seen(5, 'true'), seen(5, '1')])).toEqual([5, 6, 7, 8]);
  });
});

describe('a nanosecond that a moved value has taken', () => {
  test('makes a reading of that very nanosecond move on, and nothing is lost', () => {
    const archive = createArchive();
    archive.commit([seen(5, 1), seen(5, 2)]);
    expect(archive.commit([seen(6, 9)])).toEqual([7]);
    expect(archive.commit([seen(6, 9), seen(5, 2), seen(5, 1)])).toEqual([null, null, null]);
  });

  test('makes a reading of equal value move on as well: it is another reading', () => {
    const archive = createArchive();
    archive.commit([seen(5, 1), seen(5, 2)]);
    expect(archive.commit([seen(6, 2)])).toEqual([7]);
    expect(archive.commit([seen(6, 2)])).toEqual([null]);
  });

  test('is passed over by a value that moves, where a reading is there by nature', () => {
    const archive = createArchive();
    archive.commit([seen(5, 1), seen(6, 2)]);
    expect(archive.commit([seen(5, 2)])).toEqual([7]);
  });
});

describe('the remembered offsets', () => {
  test('a value with an offset is known even where its line is gone', () => {
    const tie = { sensor: 't', recordedNs: BASE + 5n, field: 'value=2', writtenNs: BASE + 6n };
    const places = createUsedTimestamps([], [tie], { from: BASE, to: BASE + 9n });
    expect(places.assign(placedOf(seen(5, 2)))).toBeNull();
    expect(places.assign(placedOf(seen(5, 3)))).toBe(BASE + 5n);
  });

  test('texts and names that need escaping are known again', () => {
    const archive = createArchive();
    const odd = [seen(5, 'say "hi", a=b \\ c', 'room, 1=x'), seen(5, '', 'room, 1=x'), seen(5, 'x y', ' back\\slash')];
    expect(archive.commit(odd)).toEqual([5, 6, 5]);
    expect(archive.commit(odd.toReversed())).toEqual([null, null, null]);
  });

  test('lines that are not telemetry take no place', () => {
    const other = `coverage_hour,device_id=d\\ 1 readings=3 ${BASE + 5n}`;
    const places = createUsedTimestamps([other], [], { from: BASE, to: BASE + 9n });
    expect(places.assign(placedOf(seen(5, 3)))).toBe(BASE + 5n);
  });
});

describe('any readings, split into pages in any way', () => {
  const anySeen: fc.Arbitrary<Seen> = fc.record({
    sensor: fc.constantFrom('a', 'b'),
    value: fc.constantFrom<Value>(1, 2, 3, true, 'x, y'),
    recorded: fc.nat(4),
  });
  const anyPages = fc.array(fc.array(anySeen, { minLength: 1, maxLength: 6 }), { maxLength: 8 });

  /** The rule with a perfect memory: a value is written once, at the first free nanosecond from its instant on. */
  function createModel(): (one: Seen) => number | null {
    const known = new Set<string>();
    const taken = new Set<string>();
    return ({ sensor, value, recorded }) => {
      const identity = JSON.stringify([sensor, value, recorded]);
      if (known.has(identity)) return null;
      known.add(identity);
      let at = recorded;
      while (taken.has(`${sensor} ${at}`)) at += 1;
      taken.add(`${sensor} ${at}`);
      return at;
    };
  }

  test('are placed as by someone who forgets nothing', () => {
    fc.assert(
      fc.property(anyPages, (pages) => {
        const archive = createArchive();
        const model = createModel();
        for (const page of pages) expect(archive.commit(page)).toEqual(page.map(model));
      }),
      { numRuns: 500 },
    );
  });

  test('are all there once, no two on one place, and read again in any order they add nothing', () => {
    const anyRereading = anyPages.chain((pages) => {
      const all = pages.flat();
      return fc.tuple(
        fc.constant(pages),
        fc.shuffledSubarray(all, { minLength: all.length, maxLength: all.length }),
        fc.integer({ min: 1, max: 7 }),
      );
    });
    fc.assert(
      fc.property(anyRereading, ([pages, again, size]) => {
        const archive = createArchive();
        for (const page of pages) archive.commit(page);
        const lines = archive.lines();
        expect(lines).toHaveLength(new Set(pages.flat().map((one) => JSON.stringify(Object.values(one)))).size);
        expect(
          new Set(lines.map((line) => `${line.split(',')[2]?.split(' ')[0]} ${line.split(' ').at(-1)}`)).size,
        ).toBe(lines.length);
        for (let from = 0; from < again.length; from += size) {
          expect(archive.commit(again.slice(from, from + size)).filter((at) => at !== null)).toEqual([]);
        }
      }),
      { numRuns: 500 },
    );
  });
});

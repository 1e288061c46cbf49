/** The archive: blocks, batches, offsets and sums, read back byte for byte from a real state file. */
import Database from 'better-sqlite3';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { UserError } from '../../../src/core/faults.ts';
import { type LogPosition, positionAfter } from '../../../src/core/state/log.ts';
import { NO_LIMIT, pageCommit, readAll, scratchStore } from '../support.ts';

const START: LogPosition = { block: 0, line: 0 };

/** Lines as hostile as the encoder makes them: spaces, escapes, any script, never a line break, never empty. */
const line = fc.string({ minLength: 1, maxLength: 40, unit: 'binary' }).map((text) => text.replaceAll('\n', '\\n'));

describe('the archive', () => {
  test('returns the appended bytes exactly', () => {
    fc.assert(
      fc.property(fc.array(line, { minLength: 1, maxLength: 50 }), (lines) => {
        using state = scratchStore();
        state.store.append(lines, 'history');
        state.reopen();
        expect(readAll(state, 'history').lines).toEqual(lines);
      }),
      { numRuns: 25 },
    );
  });

  test('keeps a line of 64 KB and ten thousand of them in a block', () => {
    using state = scratchStore();
    const lines = Array.from({ length: 10_000 }, (_, index) => `m,d=${index} v=${index % 7} ${index}`);
    state.store.append([`m v="${'ü'.repeat(65_536)}" 1`], 'live');
    state.store.append(lines, 'live');
    expect(readAll(state, 'live').lines.slice(1)).toEqual(lines);
    expect(readAll(state, 'live').lines[0]).toHaveLength(65_536 + 'm v="" 1'.length);
  });

  test('keeps the order within a lane, and the lanes apart', () => {
    using state = scratchStore();
    state.store.append(['live 1'], 'live');
    state.store.append(['history 1', 'history 2'], 'history');
    state.store.append(['live 2'], 'live');
    expect(readAll(state, 'live').lines).toEqual(['live 1', 'live 2']);
    expect(readAll(state, 'history').lines).toEqual(['history 1', 'history 2']);
  });

  test('makes no block of nothing', () => {
    using state = scratchStore();
    state.store.append([], 'live');
    expect(state.rows('SELECT * FROM block')).toEqual([]);
    expect(readAll(state, 'live')).toMatchObject({ lines: [], segments: [] });
  });

  test('reports a block in which any bit has changed as a damaged state', () => {
    using state = scratchStore();
    const lines = Array.from({ length: 20 }, (_, at) => `telemetry,device_id=d${at % 3} value=${(at * 7) % 10} ${at}`);
    state.store.append(lines, 'live');
    const [row] = state.rows('SELECT data FROM block') as { data: Buffer }[];
    const data = row?.data ?? Buffer.alloc(0);
    using other = openOther(state.file);
    for (let bit = 0; bit < data.length * 8; bit += 3) {
      const changed = Buffer.from(data);
      changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      other.rewriteBlock(changed);
      const answer = answerOf(() => readAll(state, 'live').lines);
      expect(answer, `bit ${bit}`).toMatch(/the state file is damaged .* Stop Tidemark and restore a backup|^lines /);
      if (answer.startsWith('lines ')) expect(answer).toBe(answerOf(() => lines));
    }
  });
});

describe('a batch', () => {
  test('ends at its limit of lines, inside a block, and continues there', () => {
    using state = scratchStore();
    state.store.append(['a', 'b', 'c'], 'live');
    state.store.append(['d', 'e'], 'live');
    const first = state.store.read('live', START, { lines: 4, bytes: 1000 });
    expect(first.lines).toEqual(['a', 'b', 'c', 'd']);
    expect(first.segments).toEqual([
      { block: 1, line: 0, lines: 3, rest: false },
      { block: 2, line: 0, lines: 1, rest: true },
    ]);
    const next = positionAfter(first, START, 4);
    expect(next).toEqual({ block: 2, line: 1 });
    expect(state.store.read('live', next, NO_LIMIT).lines).toEqual(['e']);
  });

  test('ends at its limit of bytes, counted as they are sent', () => {
    using state = scratchStore();
    // Three characters and a line feed each; in UTF-8 the second one has twice as many bytes.
    state.store.append(['abc', 'üüü', 'def'], 'live');
    const taken = (bytes: number): number => state.store.read('live', START, { lines: 10, bytes }).lines.length;
    expect([taken(9), taken(10), taken(13), taken(14)]).toEqual([1, 2, 2, 3]);
  });

  test('accepts one line, however long', () => {
    using state = scratchStore();
    state.store.append(['x'.repeat(100), 'y'], 'live');
    expect(state.store.read('live', START, { lines: 10, bytes: 10 }).lines).toEqual(['x'.repeat(100)]);
  });

  test('returns the same lines when read from any acknowledged position', () => {
    const blocks = fc.array(fc.array(line, { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 8 });
    const lanes = fc.array(fc.constantFrom('live' as const, 'history' as const), { minLength: 8, maxLength: 8 });
    const steps = fc.array(
      fc.record({ lines: fc.integer({ min: 1, max: 9 }), bytes: fc.integer({ min: 1, max: 200 }), part: fc.nat() }),
      { minLength: 1, maxLength: 5 },
    );
    fc.assert(
      fc.property(blocks, lanes, steps, (all, laneOf, limits) => {
        using state = scratchStore();
        all.forEach((lines, index) => void state.store.append(lines, laneOf[index] ?? 'live'));
        for (const lane of ['live', 'history'] as const) {
          const naive = all.filter((_, index) => laneOf[index] === lane).flat();
          const walked: string[] = [];
          let position = START;
          for (let turn = 0; walked.length < naive.length; turn += 1) {
            const { part, ...limit } = limits[turn % limits.length] ?? { part: 0, lines: 1, bytes: 1 };
            const batch = state.store.read(lane, position, limit);
            expect(batch.lines).toEqual(naive.slice(walked.length, walked.length + batch.lines.length));
            expect(batch.lines.length).toBeGreaterThan(0);
            // Part of a batch may be acknowledged, and at least one line of it here, so that the loop ends.
            const acknowledged = 1 + (part % batch.lines.length);
            walked.push(...batch.lines.slice(0, acknowledged));
            position = positionAfter(batch, position, acknowledged);
          }
          expect(state.store.read(lane, position, NO_LIMIT).lines).toEqual([]);
        }
      }),
      { numRuns: 30 },
    );
  });
});

describe('looking around an instant', () => {
  const withBlocks = () => {
    const state = scratchStore();
    const { store } = state;
    store.commitPage(pageCommit({ lines: ['at 10..20'], firstNs: 10n, lastNs: 20n }));
    store.commitPage(pageCommit({ revision: 1, lines: ['at 30'], firstNs: 30n, lastNs: 30n }));
    store.commitPage(pageCommit({ revision: 2, sideLines: ['no telemetry'] }));
    store.commitPage(pageCommit({ deviceId: 'other', lines: ['of another'], firstNs: 10n, lastNs: 40n }));
    return state;
  };

  test.each([
    [0n, 9n, []],
    [0n, 10n, ['at 10..20']],
    [15n, 16n, ['at 10..20']],
    [20n, 20n, ['at 10..20']],
    [21n, 29n, []],
    [20n, 30n, ['at 10..20', 'at 30']],
    [31n, 99n, []],
  ])('from %s to %s finds the blocks that reach into it, of that device alone', (from, to, lines) => {
    using state = withBlocks();
    expect(state.store.stored('d', from, to).lines).toEqual(lines);
  });

  test('finds offsets by the time that was recorded and by the time that is written', () => {
    using state = scratchStore();
    const tie = { sensor: 's', recordedNs: 100n, field: 'value=1', writtenNs: 105n };
    state.store.commitPage(pageCommit({ offsets: [tie] }));
    state.reopen();
    const offsets = (from: bigint, to: bigint) => state.store.stored('d', from, to).offsets;
    expect(offsets(100n, 100n)).toEqual([tie]);
    expect(offsets(105n, 105n)).toEqual([tie]);
    expect(offsets(90n, 110n)).toEqual([tie]);
    expect([offsets(0n, 99n), offsets(101n, 104n), offsets(106n, 999n)]).toEqual([[], [], []]);
    expect(state.store.stored('other', 0n, 999n).offsets).toEqual([]);
  });
});

describe('the sums', () => {
  test('count the stored and the undelivered lines', () => {
    using state = scratchStore();
    const { store } = state;
    const { id } = store.useDestination('influx', 'x');
    const daySums = [{ day: 1, readings: 2, points: 3, hashHigh: 0, hashLow: 0 }];
    store.commitPage(pageCommit({ lines: ['a', 'b', 'c'], daySums, firstNs: 1n, lastNs: 2n }));
    store.append(['d'], 'history');
    expect(store.backlog(id)).toEqual({ pendingLines: 4, quarantined: 0 });
    const from = store.position(id, 'live');
    store.acknowledge({
      destinationId: id,
      lane: 'live',
      from,
      to: { block: 1, line: 2 },
      rejected: [],
      missing: [],
      atMs: 1,
    });
    expect(store.backlog(id).pendingLines).toBe(2);
    expect(store.totals()).toMatchObject({ readings: 2, points: 3, lines: 4, rejectedRecords: 0, requests: 0 });
    expect(store.totals().bytes).toBeGreaterThan(0);
  });
});

/** The lines that come back, or the message in their place. */
function answerOf(read: () => readonly string[]): string {
  try {
    return `lines ${read().join('|')}`;
  } catch (error) {
    if (error instanceof UserError) return error.message;
    throw error;
  }
}

/** A connection of its own, past the store. */
function openOther(file: string): Disposable & { rewriteBlock(data: Buffer): void } {
  const db = new Database(file);
  const rewrite = db.prepare('UPDATE block SET data = ?');
  return {
    rewriteBlock: (data) => {
      rewrite.run(data);
    },
    [Symbol.dispose]: () => db.close(),
  };
}

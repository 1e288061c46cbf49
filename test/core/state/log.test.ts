/** The position in the log after a batch of which some lines are acknowledged. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type LogBatch, type LogPosition, positionAfter } from '../../../src/core/state/log.ts';

/** A log as a list of blocks, each so many lines long; numbers of other lanes lie between theirs. */
interface Log {
  readonly blocks: readonly { readonly block: number; readonly lines: number }[];
}

const anyLog: fc.Arbitrary<Log> = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 5 })), { minLength: 1, maxLength: 6 })
  .map((steps) => {
    let block = 0;
    return {
      blocks: steps.map(([step, lines]) => {
        block += step;
        return { block, lines };
      }),
    };
  });

/** All lines of the log from a position on, by block and number: those that a reader has not acknowledged yet. */
function linesFrom({ blocks }: Log, from: LogPosition): string[] {
  return blocks.flatMap(({ block, lines }) => {
    if (block < from.block) return [];
    const start = block === from.block ? from.line : 0;
    return Array.from({ length: Math.max(lines - start, 0) }, (_, index) => `${block}:${start + index}`);
  });
}

/** Reads a batch of at most so many lines, as the port describes it. */
function readBatch(log: Log, from: LogPosition, limit: number): Pick<LogBatch, 'lines' | 'segments'> {
  const lines = linesFrom(log, from).slice(0, limit);
  const segments = log.blocks.flatMap(({ block, lines: whole }) => {
    const mine = lines.filter((line) => line.startsWith(`${block}:`));
    if (mine.length === 0) return [];
    const line = Number(mine[0]?.split(':')[1]);
    return [{ block, line, lines: mine.length, rest: line + mine.length < whole }];
  });
  return { lines, segments };
}

const START: LogPosition = { block: 0, line: 0 };

describe('the place in the log after a batch', () => {
  test('leaves exactly the lines that are not acknowledged, however many were and wherever the batch was cut', () => {
    fc.assert(
      fc.property(anyLog, fc.nat(25), fc.integer({ min: 1, max: 25 }), fc.nat(25), (log, before, limit, many) => {
        const all = linesFrom(log, START);
        const from = positionAfter(readBatch(log, START, before), START, Math.min(before, all.length));
        expect(linesFrom(log, from)).toEqual(all.slice(before));
        const batch = readBatch(log, from, limit);
        const acknowledged = Math.min(many, batch.lines.length);
        expect(linesFrom(log, positionAfter(batch, from, acknowledged))).toEqual(all.slice(before + acknowledged));
      }),
      { numRuns: 500 },
    );
  });

  test('stays where it was when nothing was acknowledged', () => {
    const log: Log = { blocks: [{ block: 4, lines: 3 }] };
    const from = { block: 2, line: 0 };
    expect(positionAfter(readBatch(log, from, 3), from, 0)).toBe(from);
  });

  test('lies inside a block that is not acknowledged to its end, and before the next one otherwise', () => {
    const log: Log = {
      blocks: [
        { block: 4, lines: 3 },
        { block: 7, lines: 2 },
      ],
    };
    const batch = readBatch(log, START, 4);
    const after = [1, 2, 3, 4].map((acknowledged) => positionAfter(batch, START, acknowledged));
    expect(after).toEqual([
      { block: 4, line: 1 },
      { block: 4, line: 2 },
      { block: 5, line: 0 },
      { block: 7, line: 1 },
    ]);
  });
});

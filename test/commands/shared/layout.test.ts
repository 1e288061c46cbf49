/**
 * The layout of text for people, and covered ranges as a line of characters.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cell, columnsOf, row, WIDTH, wrap } from '../../../src/commands/shared/layout.ts';
import { type Interval, lengthNs, normalize, subtract } from '../../../src/core/intervals.ts';
import { DAY_NS, HOUR_NS } from '../../../src/core/time.ts';
import { coverageCells } from '../../../src/report/series.ts';

/** Words of any length in any script, as a line holds them. */
const anyLine = fc
  .array(fc.oneof(fc.string({ maxLength: 30 }), fc.constantFrom('漢字', '😀😀', 'e\u0301', 'x'.repeat(200))), {
    maxLength: 40,
  })
  .map((words) => words.join(' ').replace(/[\p{Cc}]/gu, ''));

describe('a line', () => {
  test('never uses more than 80 columns, and loses no text', () => {
    fc.assert(
      fc.property(anyLine, fc.constantFrom(0, 2, 12), (line, indent) => {
        const text = wrap(line, indent);
        expect(text.endsWith('\n')).toBe(true);
        for (const each of text.slice(0, -1).split('\n')) expect(columnsOf(each)).toBeLessThanOrEqual(WIDTH);
        expect(text.replace(/\s/g, '')).toBe(line.replace(/\s/g, ''));
      }),
    );
  });

  test('continues below its text, at words where there are some', () => {
    expect(row('Label', `${'word '.repeat(15)}end`)).toBe(
      `Label       ${'word '.repeat(13).trimEnd()}\n            word word end\n`,
    );
    expect(wrap('x'.repeat(81), 2)).toBe(`${'x'.repeat(80)}\n  x\n`);
    // Without an indent: two more than the first line has.
    expect(wrap(`  ${'x'.repeat(70)} yyyyyyyyyy`)).toBe(`  ${'x'.repeat(70)}\n    yyyyyyyyyy\n`);
    expect(row('', 'short')).toBe('            short\n');
  });

  test('a cell has its width whatever it holds', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), fc.integer({ min: 2, max: 40 }), (text, columns) => {
        expect(columnsOf(cell(text, columns))).toBe(columns);
      }),
    );
    expect(cell('漢字漢字', 5)).toBe('漢字…');
    expect(cell('a\u001b[31m\nb', 10)).toBe('a[31m b   ');
  });
});

describe('the bar', () => {
  const days = Array.from({ length: 40 }, (_, day) => ({ day, readings: 1 }));
  const span: Interval = { from: 0n, to: 30n * DAY_NS };

  test('shows covered time, covered time without a reading, and gaps, twelve hours a cell', () => {
    const held = normalize([
      { from: 0n, to: 2n * DAY_NS },
      { from: 2n * DAY_NS + HOUR_NS, to: 30n * DAY_NS },
    ]);
    const { cells, cellNs } = coverageCells(span, { covered: held, days: days.filter(({ day }) => day !== 29) });
    expect(cellNs).toBe(DAY_NS / 2n);
    expect(cells).toBe(`####.${'#'.repeat(53)}--`);
  });

  test('is complete only where nothing is missing, and never longer than sixty characters', () => {
    const piece = fc.tuple(fc.integer({ min: 0, max: 800 }), fc.integer({ min: 0, max: 200 }));
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 6 }), fc.integer({ min: 1, max: 800 }), (pieces, hours) => {
        const drawn: Interval = { from: 0n, to: BigInt(hours) * HOUR_NS };
        const held = normalize(
          pieces.map(([from, length]) => ({ from: BigInt(from) * HOUR_NS, to: BigInt(from + length) * HOUR_NS })),
        );
        const { cells, cellNs } = coverageCells(drawn, { covered: held, days });
        expect(cells.length).toBeLessThanOrEqual(60);
        expect(BigInt(cells.length) * cellNs).toBeGreaterThanOrEqual(drawn.to);
        expect(!cells.includes('.')).toBe(lengthNs(subtract([drawn], held)) === 0n);
      }),
    );
    expect(coverageCells({ from: 5n, to: 5n }, { covered: [], days }).cells).toBe('');
  });
});

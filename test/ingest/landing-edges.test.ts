/**
 * What a page is asked to show of what is held (its anchors) is known without a look into the archive.
 */
import { describe, expect, test } from 'vitest';
import type { CoveredSpan } from '../../src/core/coverage.ts';
import { readingDigest } from '../../src/core/lines/points.ts';
import type { Reading } from '../../src/core/records.ts';
import { withoutEdges } from '../../src/ingest/commit-rules.ts';

const reading = (at: bigint, value: number): Reading => ({ recordedAt: at, values: [['t', value]] });
const edge = (of: Reading) => ({ at: of.recordedAt, digest: readingDigest(of) });
const span = (first: Reading, last: Reading): CoveredSpan => ({
  from: first.recordedAt,
  to: last.recordedAt + 1n,
  first: edge(first),
  last: edge(last),
});

describe('the readings of a page without the edges of what is held', () => {
  const spans = [span(reading(100n, 1), reading(200n, 2)), span(reading(400n, 3), reading(400n, 4))];

  test('lack those that are held at an edge, whichever it is', () => {
    const page = [reading(500n, 9), reading(400n, 4), reading(400n, 3), reading(300n, 9), reading(200n, 2)];
    expect(withoutEdges(page, spans)).toEqual([page[0], page[3]]);
  });

  test('keep what has the time of an edge and other values', () => {
    const page = [reading(400n, 5), reading(200n, 1)];
    expect(withoutEdges(page, spans)).toBe(page);
  });

  test('keep all where nothing is held', () => {
    const page = [reading(400n, 5)];
    expect(withoutEdges(page, [{ from: 0n, to: 900n, first: null, last: null }])).toBe(page);
  });
});

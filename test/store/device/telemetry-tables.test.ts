/**
 * The functions over the telemetry tables, each by itself: what they write, and what they remember.
 */
import type Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { StaleStateError } from '../../../src/core/state/telemetry.ts';
import { createArchive } from '../../../src/store/archive/archive.ts';
import {
  createCoverageOfAll,
  dropTelemetry,
  newestNs,
  pinDeviceName,
  prepareTelemetry,
  rememberCommit,
  type TelemetryTables,
  telemetryState,
  writePage,
} from '../../../src/store/device/telemetry.ts';
import { openDatabase } from '../../../src/store/open/database.ts';
import { pageCommit, type Scratch, scratch } from '../support.ts';

let place: Scratch;
let db: Database.Database;
let close: () => void;
let tables: TelemetryTables;

beforeEach(() => {
  place = scratch();
  ({ db, close } = openDatabase(place.path, null));
  tables = prepareTelemetry(
    db,
    createArchive(db, () => 7),
  );
});

afterEach(() => {
  close();
  place[Symbol.dispose]();
});

const COVERED = [{ from: 5n, to: 21n, first: null, last: null }];
const PAGE = pageCommit({ covered: COVERED, lines: ['m v=1 10', 'm v=2 20'], firstNs: 10n, lastNs: 20n });

describe('a page', () => {
  test('moves the revision on, and is refused where it is not computed from the newest one', () => {
    writePage(tables, PAGE);
    expect(telemetryState(tables, 'd')).toMatchObject({ revision: 1, covered: COVERED });
    expect(() => writePage(tables, PAGE)).toThrow(StaleStateError);
  });

  /** Commits the page, reads the device, and rolls all of it back. */
  function rollBack(): void {
    const work = db.transaction(() => {
      writePage(tables, PAGE);
      expect(telemetryState(tables, 'd').covered).toEqual(COVERED);
      expect(newestNs(tables, 'd')).toBe(20n);
      throw new Error('taken back');
    });
    expect(work).toThrow('taken back');
  }

  test('that is rolled back leaves nothing', () => {
    telemetryState(tables, 'd');
    rollBack();
    expect(telemetryState(tables, 'd')).toMatchObject({ revision: 0, covered: [] });
    expect(newestNs(tables, 'd')).toBeNull();
  });

  test('that is rolled back is not cached where another page has the same revision', () => {
    rollBack();
    const other = { ...PAGE, covered: [{ from: 1n, to: 9n, first: null, last: null }], firstNs: 2n, lastNs: 3n };
    writePage(tables, other);
    expect(telemetryState(tables, 'd').covered).toEqual(other.covered);
    expect(newestNs(tables, 'd')).toBe(3n);
  });

  test('is remembered as it was committed, so that it need not be read', () => {
    telemetryState(tables, 'd');
    const page = { ...PAGE, late: { record: { readings: 3, worstMs: 5, gracePeriodMs: 9 } } } as typeof PAGE;
    writePage(tables, page);
    rememberCommit(tables, page);
    const remembered = tables.states.get('d');
    expect(remembered).toMatchObject({ revision: 1, late: { readings: 3, worstMs: 5, gracePeriodMs: 9 } });
    expect(telemetryState(tables, 'd')).toBe(remembered);
    tables.states.clear();
    expect(telemetryState(tables, 'd')).toEqual(remembered);
  });

  test('of a device of which nothing is remembered is not remembered either', () => {
    writePage(tables, PAGE);
    rememberCommit(tables, PAGE);
    expect([...tables.states.keys()]).toEqual([]);
  });
});

describe('the cache', () => {
  test('of a device is given without reading it again, until its revision moves', () => {
    const before = telemetryState(tables, 'd');
    expect(telemetryState(tables, 'd')).toBe(before);
    expect(newestNs(tables, 'd')).toBeNull();
    expect(tables.newest.get('d')).toEqual({ revision: 0, at: null });
    writePage(tables, PAGE);
    expect(telemetryState(tables, 'd')).not.toBe(before);
    expect(newestNs(tables, 'd')).toBe(20n);
  });

  test('is of 4,096 devices at most', () => {
    for (let index = 0; index <= 4096; index += 1) telemetryState(tables, `d${index}`);
    expect([...tables.states.keys()]).toEqual(['d4096']);
  });
});

test('a name is added where it is new, and lines under the old one can no longer be committed', () => {
  pinDeviceName(tables, 'd', 'first', 10n);
  pinDeviceName(tables, 'd', 'first', 20n);
  expect(telemetryState(tables, 'd')).toMatchObject({ revision: 1, names: [{ fromNs: 0n, name: 'first' }] });
  pinDeviceName(tables, 'd', 'second', 30n);
  expect(telemetryState(tables, 'd').names).toEqual([
    { fromNs: 0n, name: 'first' },
    { fromNs: 30n, name: 'second' },
  ]);
  expect(() => writePage(tables, { ...PAGE, revision: 1 })).toThrow(StaleStateError);
});

test('a removed device has no coverage, and nothing of it is cached', () => {
  telemetryState(tables, 'd');
  writePage(tables, PAGE);
  rememberCommit(tables, PAGE);
  newestNs(tables, 'd');
  dropTelemetry(tables, 'd');
  expect([tables.states.size, tables.newest.size]).toEqual([0, 0]);
  expect(telemetryState(tables, 'd').covered).toEqual([]);
});

test('the coverage of all devices has the gaps, the lateness and the newest line of each', () => {
  const record = { readings: 3, worstMs: 5, gracePeriodMs: 9 };
  writePage(tables, { ...PAGE, late: { record } } as typeof PAGE);
  const gap = { deviceId: 'e', fromNs: 1n, toNs: 9n, reason: 'unreachable', retryAtMs: 5 } as const;
  const all = createCoverageOfAll(db, () => [gap])();
  expect([...all.keys()].toSorted()).toEqual(['d', 'e']);
  expect(all.get('d')).toMatchObject({ covered: COVERED, gaps: [], late: record, newestNs: 20n });
  expect(all.get('e')).toMatchObject({ covered: [], gaps: [gap], newestNs: null });
});

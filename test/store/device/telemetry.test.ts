/** The commit of a page in a real state file: coverage, names, hours, sums of days and late readings, or nothing. */
import { describe, expect, test } from 'vitest';
import type { CoveredRange } from '../../../src/core/coverage.ts';
import { StaleStateError } from '../../../src/core/state/telemetry.ts';
import { device, pageCommit, readAll, type ScratchStore, scratchStore } from '../support.ts';

const span = (from: bigint, to: bigint): CoveredRange => ({ from, to, first: null, last: null });

/** Every table that a commit may touch, as another process reads it. */
function everything(state: ScratchStore): unknown {
  const tables = [
    'block',
    'coverage',
    'time_offset',
    'day_sum',
    'hour_readings',
    'hours_written',
    'device_revision',
    'quarantine',
    'request',
  ];
  return tables.map((table) => [table, state.rows(`SELECT * FROM ${table}`)]);
}

const FULL = pageCommit({
  lines: ['m v=1 10', 'm v=2 20'],
  sideLines: ['coverage_hour readings=1 0'],
  firstNs: 10n,
  lastNs: 20n,
  newReadings: 2,
  offsets: [{ sensor: 's', recordedNs: 10n, field: 'value=2', writtenNs: 11n }],
  daySums: [{ day: 5, readings: 2, points: 3, hashHigh: 4_294_967_295, hashLow: 7 }],
  covered: [
    { from: 5n, to: 21n, first: { at: 10n, digest: 'first' }, last: { at: 20n, digest: 'last' } },
    { from: 30n, to: 31n, first: null, last: null },
  ],
  hourReadings: new Map([
    [480_000, 2],
    [480_001, 0],
  ]),
  hoursWritten: [{ from: 470_000n, to: 470_009n }],
  rejected: [{ reason: 'no time', record: '{"x":1}' }],
});

describe('a commit', () => {
  test('comes back as it was, from a file that was closed in between', () => {
    using state = scratchStore();
    state.store.commitPage(FULL);
    state.reopen();
    expect(state.store.telemetry('d')).toEqual({
      deviceId: 'd',
      revision: 1,
      covered: FULL.covered,
      names: [],
      late: { readings: 0, worstMs: 0, gracePeriodMs: 0 },
      hourReadings: FULL.hourReadings,
      hoursWritten: FULL.hoursWritten,
      lastPage: [],
    });
    expect(readAll(state, 'live').lines).toEqual(FULL.lines);
    expect(readAll(state, 'history').lines).toEqual(FULL.sideLines);
    expect(state.rows('SELECT source, content, reason FROM quarantine')).toEqual([
      { source: 'd', content: '{"x":1}', reason: 'no time' },
    ]);
  });

  test('leaves the hashes of its readings with the state in memory, until the next one', () => {
    using state = scratchStore();
    const remembered = () => state.store.telemetry('d').lastPage;
    state.store.telemetry('d');
    state.store.commitPage({ ...FULL, lastPage: [1, 2] });
    expect(remembered()).toEqual([1, 2]);
    state.store.commitPage(pageCommit({ revision: 1 }));
    expect(remembered()).toEqual([]);
    state.store.commitPage(pageCommit({ revision: 2, lastPage: [3] }));
    state.reopen();
    expect(remembered()).toEqual([]);
  });

  test('that was computed from a state that has changed is refused, and leaves nothing', () => {
    using state = scratchStore();
    state.store.commitPage(pageCommit({ covered: [span(1n, 2n)] }));
    const before = everything(state);
    expect(() => state.store.commitPage(FULL)).toThrow(StaleStateError);
    expect(everything(state)).toEqual(before);
  });

  test('with one row that cannot be written leaves no other row', () => {
    using state = scratchStore();
    const before = everything(state);
    // An interval that ends before it begins is the last thing that the table itself refuses.
    expect(() => state.store.commitPage({ ...FULL, covered: [span(9n, 3n)] })).toThrow(/CHECK/);
    expect(everything(state)).toEqual(before);
    expect(state.store.telemetry('d').revision).toBe(0);
  });

  test('returns the records that it rejects for the first time', () => {
    using state = scratchStore();
    const rejected = [{ reason: 'not a finite number', record: '{"x":2}', droppedValues: 3 }];
    expect(state.store.commitPage(FULL)).toEqual(FULL.rejected);
    expect(state.store.commitPage(pageCommit({ revision: 1, rejected: [...FULL.rejected, ...rejected] }))).toEqual(
      rejected,
    );
    expect(state.store.commitPage(pageCommit({ revision: 2, rejected }))).toEqual([]);
    expect(state.store.totals().rejectedRecords).toBe(2);
  });

  test('moves the revision of its device alone', () => {
    using state = scratchStore();
    state.store.commitPage(FULL);
    expect(state.store.telemetry('other')).toMatchObject({ revision: 0, covered: [], hoursWritten: [] });
    expect(state.store.telemetry('d').revision).toBe(1);
  });

  test('replaces coverage and hours, and adds to the sums of the days', () => {
    using state = scratchStore();
    state.store.commitPage(FULL);
    const { daySums } = FULL;
    state.store.commitPage(
      pageCommit({ revision: 1, covered: [span(1n, 40n)], daySums, hoursWritten: [{ from: 1n, to: 2n }] }),
    );
    expect(state.store.telemetry('d')).toMatchObject({
      revision: 2,
      covered: [span(1n, 40n)],
      hourReadings: new Map(),
      hoursWritten: [{ from: 1n, to: 2n }],
    });
    // The halves of the hash are sums mod 2^32.
    expect(state.rows('SELECT * FROM day_sum')).toEqual([
      { device_id: 'd', day: 5, readings: 4, points: 6, hash_high: 4_294_967_294, hash_low: 14 },
    ]);
  });

  test('keeps nanoseconds to the last digit', () => {
    using state = scratchStore();
    const at = 1_781_527_896_123_456_789n;
    const exact: CoveredRange = { from: at - 1n, to: at + 1n, first: { at, digest: 'x' }, last: { at, digest: 'x' } };
    state.store.commitPage(pageCommit({ lines: ['m v=1'], firstNs: at, lastNs: at, covered: [exact] }));
    state.reopen();
    expect(state.store.telemetry('d').covered).toEqual([exact]);
    expect(state.store.stored('d', at, at).lines).toEqual(['m v=1']);
    expect(state.store.stored('d', at + 1n, at + 1n).lines).toEqual([]);
  });

  test('records the yield of a request', () => {
    using state = scratchStore();
    const requestId = state.ledger.book(1000, { lane: 'live', stream: 'telemetry', deviceId: 'd' });
    state.store.commitPage({ ...FULL, requestId });
    state.store.commitPage(pageCommit({ revision: 1, requestId, newReadings: 3 }));
    expect(state.rows('SELECT id, new_readings FROM request')).toEqual([{ id: requestId, new_readings: 5 }]);
  });
});

describe('a name', () => {
  const list = (state: ScratchStore, name: string, atMs: number): void => {
    const record = device('d', { name });
    state.store.saveInventory({ listed: [{ record, name, line: null, digest: name }], missing: [], atMs });
  };

  test('that is new moves the revision, so that lines under the old one no longer land', () => {
    using state = scratchStore();
    list(state, 'before', 1);
    const { revision } = state.store.telemetry('d');
    list(state, 'before', 2);
    expect(state.store.telemetry('d').revision, 'listing an unchanged name').toBe(revision);
    list(state, 'after', 3);
    expect(() => state.store.commitPage(pageCommit({ revision }))).toThrow(StaleStateError);
    expect(state.store.telemetry('d').names).toEqual([
      { fromNs: 0n, name: 'before' },
      { fromNs: 3_000_000n, name: 'after' },
    ]);
  });

  test('never holds earlier than a reading that is archived under the one before', () => {
    using state = scratchStore();
    list(state, 'before', 1);
    const { revision } = state.store.telemetry('d');
    state.store.commitPage(pageCommit({ revision, lines: ['m v=1'], firstNs: 8_000_000n, lastNs: 9_000_000n }));
    list(state, 'after', 2);
    list(state, 'again', 2);
    state.reopen();
    expect(state.store.telemetry('d').names).toEqual([
      { fromNs: 0n, name: 'before' },
      { fromNs: 9_000_001n, name: 'after' },
      { fromNs: 9_000_002n, name: 'again' },
    ]);
  });
});

describe('late readings of a device', () => {
  const record = { readings: 3, worstMs: 400_000, gracePeriodMs: 420_000 };

  test('are remembered with the commit that brought them, and not at all where it is refused', () => {
    using state = scratchStore();
    const late = { count: 3, worstMs: 400_000, record };
    expect(() => state.store.commitPage(pageCommit({ revision: 5, late }))).toThrow(StaleStateError);
    expect(state.store.telemetry('d').late).toEqual({ readings: 0, worstMs: 0, gracePeriodMs: 0 });
    state.store.commitPage(pageCommit({ late }));
    state.store.commitPage(pageCommit({ revision: 1 }));
    state.reopen();
    expect(state.store.telemetry('d').late).toEqual(record);
    expect(state.store.telemetry('other').late.readings).toBe(0);
  });
});

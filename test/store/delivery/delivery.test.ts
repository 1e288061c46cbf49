/** The destinations of the log in a real state file: names, identities, positions, and rejected lines. */
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { StaleStateError } from '../../../src/core/state/telemetry.ts';
import { APPLICATION_ID, MIGRATIONS } from '../../../src/store/open/migrations.ts';
import { openStore } from '../../../src/store/store.ts';
import { NO_LIMIT, pageCommit, type ScratchStore, scratch, scratchStore } from '../support.ts';

function filled(): ScratchStore {
  const state = scratchStore();
  state.store.append(['a', 'b', 'c'], 'live');
  state.store.append(['h'], 'history');
  return state;
}

const START = { block: 0, line: 0 };

describe('a destination', () => {
  test('is known again by name and identity, and begins at the beginning of the log', () => {
    using state = filled();
    const first = state.store.useDestination('influx', 'here');
    expect(first).toMatchObject({ name: 'influx', created: true });
    state.reopen();
    expect(state.store.useDestination('influx', 'here')).toEqual({ ...first, created: false });
    expect(state.store.position(first.id, 'live')).toEqual(START);
    expect(state.store.backlog(first.id)).toEqual({ pendingLines: 4, quarantined: 0 });
  });

  test('whose identity changed is another one, from the beginning, and the old one keeps its place', () => {
    using state = filled();
    const { store } = state;
    const old = store.useDestination('influx', 'here');
    store.acknowledge({
      destinationId: old.id,
      lane: 'live',
      from: START,
      to: { block: 2, line: 0 },
      rejected: [],
      missing: [],
      atMs: 1,
    });
    const moved = store.useDestination('influx', 'there');
    expect(moved).toMatchObject({ created: true });
    expect(moved.id).not.toBe(old.id);
    expect(store.read('live', store.position(moved.id, 'live'), NO_LIMIT).lines).toEqual(['a', 'b', 'c']);
    expect(store.position(store.useDestination('influx', 'here').id, 'live')).toEqual({ block: 2, line: 0 });
  });
});

describe('the name of a destination', () => {
  test('reports which identity had it before, until that has it again', () => {
    using state = filled();
    const { store } = state;
    expect(store.useDestination('influx', 'a')).toMatchObject({ created: true, previous: null });
    expect(store.useDestination('influx', 'a')).toMatchObject({ created: false, previous: null });
    expect(store.useDestination('second', 'b')).toMatchObject({ created: true, previous: null });
    expect(store.useDestination('influx', 'b')).toMatchObject({ created: true, previous: 'a' });
    state.reopen();
    expect(state.store.useDestination('influx', 'b')).toMatchObject({ created: false, previous: null });
    expect(state.store.useDestination('influx', 'a')).toMatchObject({ created: false, previous: 'b' });
  });

  test('reports which of several identities it is known by: the one that has it, else the latest', () => {
    using state = filled();
    const { store } = state;
    expect(store.knownIdentity('influx', ['a', 'b'])).toBeNull();
    store.useDestination('influx', 'a');
    store.useDestination('influx', 'b');
    store.useDestination('influx', 'c');
    expect(store.knownIdentity('influx', ['a', 'b'])).toBe('b');
    store.useDestination('influx', 'a');
    expect(store.knownIdentity('influx', ['a', 'b'])).toBe('a');
    expect(store.knownIdentity('influx', ['x'])).toBeNull();
    expect(store.knownIdentity('second', ['a', 'b'])).toBeNull();
  });

  test('moves from an incomplete identity to the true one, with all its records', () => {
    using state = filled();
    const { store } = state;
    const { id } = store.useDestination('influx', 'auto');
    expect(store.identify(id, 'true')).toEqual({ id, name: 'influx', created: true, previous: null });
    expect(store.useDestination('influx', 'true')).toMatchObject({ id, created: false });
    expect(store.knownIdentity('influx', ['auto'])).toBeNull();

    const again = store.useDestination('influx', 'auto').id;
    expect(again).not.toBe(id);
    expect(store.identify(again, 'true')).toMatchObject({ id, created: false });
    expect(state.rows('SELECT name, identity, is_current FROM destination')).toEqual([
      { name: 'influx', identity: 'true', is_current: 1 },
    ]);
  });

  test('of a state of version 1 belongs to the identity that was added last', () => {
    using position = scratch();
    const old = new Database(position.file);
    old.exec(MIGRATIONS[0] ?? '');
    old.exec("INSERT INTO destination (name, identity) VALUES ('influx', 'a'), ('influx', 'b'), ('other', 'c')");
    old.pragma('user_version = 1');
    old.pragma(`application_id = ${APPLICATION_ID}`);
    old.close();
    const { store, close } = openStore(position.path);
    expect(store.useDestination('other', 'c')).toMatchObject({ created: false, previous: null });
    expect(store.useDestination('influx', 'b')).toMatchObject({ created: false, previous: null });
    expect(store.useDestination('influx', 'd')).toMatchObject({ created: true, previous: 'b' });
    close();
  });
});

describe('values with an offset', () => {
  test('are found by where they are written, to the nanosecond, of any device', () => {
    using state = scratchStore();
    const at = 1_700_000_000_123_456_789n;
    const tie = (more: bigint) => ({ sensor: 's', recordedNs: at, field: `value=${more}`, writtenNs: at + more });
    state.store.commitPage(pageCommit({ deviceId: 'a', offsets: [tie(1n), tie(2n)] }));
    state.store.commitPage(pageCommit({ deviceId: 'b', offsets: [tie(2n)] }));
    expect(state.store.movedTo([at, at + 2n, at + 3n])).toEqual([
      { deviceId: 'a', sensor: 's', recordedNs: at, writtenNs: at + 2n },
      { deviceId: 'b', sensor: 's', recordedNs: at, writtenNs: at + 2n },
    ]);
    expect(state.store.movedTo([])).toEqual([]);
    const many = Array.from({ length: 5000 }, (_, n) => at + BigInt(n));
    expect(state.store.movedTo(many)).toHaveLength(3);
  });
});

describe('an acknowledgement', () => {
  const rejected = [{ line: 'b', message: 'HTTP 400: no' }];

  test('moves the position and quarantines refused lines, durably', () => {
    using state = filled();
    const { id } = state.store.useDestination('influx', 'x');
    const to = { block: 1, line: 2 };
    state.store.acknowledge({
      destinationId: id,
      lane: 'live',
      from: START,
      to,
      rejected,
      missing: [],
      atMs: 5,
    });
    state.reopen();
    expect(state.store.position(id, 'live')).toEqual(to);
    expect(state.store.position(id, 'history')).toEqual(START);
    expect(state.store.backlog(id)).toEqual({ pendingLines: 2, quarantined: 1 });
    expect(state.rows('SELECT destination_id, source, content, reason, at_ms FROM quarantine')).toEqual([
      { destination_id: id, source: 'destination', content: 'b', reason: 'HTTP 400: no', at_ms: 5 },
    ]);
  });

  test('that begins elsewhere than the position is refused, and puts nothing aside', () => {
    using state = filled();
    const { store } = state;
    const { id } = store.useDestination('influx', 'x');
    const acknowledge = (from: typeof START, to: typeof START): void =>
      store.acknowledge({ destinationId: id, lane: 'live', from, to, rejected, missing: [], atMs: 5 });
    for (const from of [
      { block: 1, line: 0 },
      { block: 0, line: 1 },
    ]) {
      expect(() => acknowledge(from, { block: 2, line: 0 })).toThrow(StaleStateError);
    }
    expect(store.position(id, 'live')).toEqual(START);
    expect(state.rows('SELECT * FROM quarantine')).toEqual([]);
  });

  test('whose position cannot be written puts nothing aside either', () => {
    using state = filled();
    const { id } = state.store.useDestination('influx', 'x');
    const to = { block: null as unknown as number, line: 0 };
    expect(() =>
      state.store.acknowledge({
        destinationId: id,
        lane: 'live',
        from: START,
        to,
        rejected,
        missing: [],
        atMs: 5,
      }),
    ).toThrow(/NOT NULL/);
    expect(state.rows('SELECT * FROM quarantine')).toEqual([]);
    expect(state.store.backlog(id)).toEqual({ pendingLines: 4, quarantined: 0 });
  });

  test('keeps a line that is refused again once, and each destination its own', () => {
    using state = filled();
    const { store } = state;
    const ids = ['x', 'y'].map((identity) => store.useDestination('influx', identity).id);
    for (const destinationId of ids) {
      store.acknowledge({
        destinationId,
        lane: 'live',
        from: START,
        to: { block: 1, line: 2 },
        rejected,
        missing: [],
        atMs: 5,
      });
      const from = { block: 1, line: 2 };
      store.acknowledge({
        destinationId,
        lane: 'live',
        from,
        to: { block: 2, line: 0 },
        rejected,
        missing: [],
        atMs: 6,
      });
    }
    expect(ids.map((id) => store.backlog(id).quarantined)).toEqual([1, 1]);
    expect(store.totals().rejectedRecords, 'lines of ours are no records of the API').toBe(0);
  });

  test('of a destination that the state does not know is refused', () => {
    using state = filled();
    const outcome = {
      destinationId: 99,
      lane: 'live',
      from: START,
      to: START,
      rejected: [],
      missing: [],
      atMs: 5,
    } as const;
    expect(() => state.store.acknowledge(outcome)).toThrow(/FOREIGN KEY/);
  });
});

describe('records of the API that were not understood', () => {
  test('are kept once, with the reason', () => {
    using state = scratchStore();
    const records = [
      { record: '{"a":1}', reason: 'no id' },
      { record: '{"b":1}', reason: 'no id' },
    ];
    state.store.quarantine.add('devices', records, 5.5);
    state.store.quarantine.add('devices', records.slice(1), 6);
    expect(state.store.totals().rejectedRecords).toBe(2);
    expect(state.rows('SELECT source, content, reason, at_ms FROM quarantine')).toEqual([
      { source: 'devices', content: '{"a":1}', reason: 'no id', at_ms: 5 },
      { source: 'devices', content: '{"b":1}', reason: 'no id', at_ms: 5 },
    ]);
  });
});

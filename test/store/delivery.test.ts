import { describe, expect, test } from 'vitest';
import { StaleStateError } from '../../src/core/telemetry-state.ts';
import { NO_LIMIT, type ScratchStore, scratchStore } from './support.ts';

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
    const first = state.store.destination('influx', 'here');
    expect(first).toMatchObject({ name: 'influx', created: true });
    state.reopen();
    expect(state.store.destination('influx', 'here')).toEqual({ ...first, created: false });
    expect(state.store.position(first.id, 'live')).toEqual(START);
    expect(state.store.backlog(first.id)).toEqual({ pendingLines: 4, quarantined: 0 });
  });

  test('whose identity changed is another one, from the beginning, and the old one keeps its place', () => {
    using state = filled();
    const { store } = state;
    const old = store.destination('influx', 'here');
    store.settle({ destinationId: old.id, lane: 'live', from: START, to: { block: 2, line: 0 }, refused: [], atMs: 1 });
    const moved = store.destination('influx', 'there');
    expect(moved).toMatchObject({ created: true });
    expect(moved.id).not.toBe(old.id);
    expect(store.read('live', store.position(moved.id, 'live'), NO_LIMIT).lines).toEqual(['a', 'b', 'c']);
    expect(store.position(store.destination('influx', 'here').id, 'live')).toEqual({ block: 2, line: 0 });
  });
});

describe('a settlement', () => {
  const refused = [{ line: 'b', words: 'HTTP 400: no' }];

  test('moves the position and puts what was refused aside, durably', () => {
    using state = filled();
    const { id } = state.store.destination('influx', 'x');
    const to = { block: 1, line: 2 };
    state.store.settle({ destinationId: id, lane: 'live', from: START, to, refused, atMs: 5 });
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
    const { id } = store.destination('influx', 'x');
    const settle = (from: typeof START, to: typeof START): void =>
      store.settle({ destinationId: id, lane: 'live', from, to, refused, atMs: 5 });
    for (const from of [
      { block: 1, line: 0 },
      { block: 0, line: 1 },
    ]) {
      expect(() => settle(from, { block: 2, line: 0 })).toThrow(StaleStateError);
    }
    expect(store.position(id, 'live')).toEqual(START);
    expect(state.rows('SELECT * FROM quarantine')).toEqual([]);
  });

  test('whose position cannot be written puts nothing aside either', () => {
    using state = filled();
    const { id } = state.store.destination('influx', 'x');
    const to = { block: null as unknown as number, line: 0 };
    expect(() => state.store.settle({ destinationId: id, lane: 'live', from: START, to, refused, atMs: 5 })).toThrow(
      /NOT NULL/,
    );
    expect(state.rows('SELECT * FROM quarantine')).toEqual([]);
    expect(state.store.backlog(id)).toEqual({ pendingLines: 4, quarantined: 0 });
  });

  test('keeps a line that is refused again once, and each destination its own', () => {
    using state = filled();
    const { store } = state;
    const ids = ['x', 'y'].map((identity) => store.destination('influx', identity).id);
    for (const destinationId of ids) {
      store.settle({ destinationId, lane: 'live', from: START, to: { block: 1, line: 2 }, refused, atMs: 5 });
      const from = { block: 1, line: 2 };
      store.settle({ destinationId, lane: 'live', from, to: { block: 2, line: 0 }, refused, atMs: 6 });
    }
    expect(ids.map((id) => store.backlog(id).quarantined)).toEqual([1, 1]);
    expect(store.totals().rejectedRecords, 'lines of ours are no records of the API').toBe(0);
  });

  test('of a destination that the state does not know is refused', () => {
    using state = filled();
    const outcome = { destinationId: 99, lane: 'live', from: START, to: START, refused: [], atMs: 5 } as const;
    expect(() => state.store.settle(outcome)).toThrow(/FOREIGN KEY/);
  });
});

describe('records of the API that were not understood', () => {
  test('are kept once, with the reason', () => {
    using state = scratchStore();
    const records = [
      { record: '{"a":1}', reason: 'no id' },
      { record: '{"b":1}', reason: 'no id' },
    ];
    state.store.quarantineRecords('devices', records, 5.5);
    state.store.quarantineRecords('devices', records.slice(1), 6);
    expect(state.store.totals().rejectedRecords).toBe(2);
    expect(state.rows('SELECT source, content, reason, at_ms FROM quarantine')).toEqual([
      { source: 'devices', content: '{"a":1}', reason: 'no id', at_ms: 5 },
      { source: 'devices', content: '{"b":1}', reason: 'no id', at_ms: 5 },
    ]);
  });
});

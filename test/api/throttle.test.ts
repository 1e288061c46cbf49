/**
 * The throttle: every cell of its table, in every combination with the other states, and what the states do.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  type ThrottleEvent,
  type ThrottleState,
  throttledTurn,
  transition,
  UNTHROTTLED,
  waitAfter,
} from '../../src/api/throttle.ts';
import { HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';

type Kind = ThrottleEvent['kind'];
type Table<S extends string> = Readonly<Record<S, Readonly<Record<Kind, S>>>>;

const NOW_MS = 10 * HOUR_MS;

const EVENTS: Readonly<Record<Kind, ThrottleEvent>> = {
  'day-ample': { kind: 'day-ample' },
  'day-scarce': { kind: 'day-scarce' },
  'day-silent': { kind: 'day-silent' },
  'minute-scarce': { kind: 'minute-scarce', nowMs: NOW_MS, remaining: 3 },
  ample: { kind: 'ample' },
  scarce: { kind: 'scarce', nowMs: NOW_MS },
  served: { kind: 'served', nowMs: NOW_MS },
  rejected: { kind: 'rejected', nowMs: NOW_MS, waitMs: MINUTE_MS },
  'new-plan': { kind: 'new-plan' },
};

/** The rows of the table in the header of the source, by state: what each event makes of it. */
function documented(): ReadonlyMap<string, Readonly<Record<Kind, string>>> {
  const source = readFileSync(new URL('../../src/api/throttle.ts', import.meta.url), 'utf8');
  const lines = source.slice(0, source.indexOf('`scarce` means')).split('\n');
  const from = lines.findIndex((line) => /^ \* +state +/.test(line));
  const kinds = lines[from]?.trim().split(/\s+/).slice(2) ?? [];
  return new Map(
    lines.slice(from + 1).flatMap((line) => {
      const cells = line.trim().split(/\s+/).slice(1);
      const state = cells.at(-kinds.length - 1);
      if (state === undefined || cells.length <= kinds.length) return [];
      const effects = kinds.map((kind, n) => [kind, cells[n + cells.length - kinds.length]?.replace('·', state)]);
      return [[state, Object.fromEntries(effects) as Record<Kind, string>]];
    }),
  );
}

/** The part of the documented table with these states. */
function tableOf<S extends string>(...states: readonly S[]): Table<S> {
  const rows = documented();
  return Object.fromEntries(states.map((state) => [state, rows.get(state)])) as unknown as Table<S>;
}

const DAY: Table<ThrottleState['day']['is']> = tableOf('free', 'guarded');
const PAUSES: Table<ThrottleState['pauses']['is']> = tableOf('single', 'doubling');
const REJECTIONS: Table<ThrottleState['rejections']['is']> = tableOf('none', 'one', 'two', 'many');

test('the documented table has a row for each state and a column for each event', () => {
  const rows = documented();
  expect([...rows.keys()]).toEqual(['free', 'guarded', 'single', 'doubling', 'none', 'one', 'two', 'many']);
  for (const row of rows.values()) expect(Object.keys(row).toSorted()).toEqual(Object.keys(EVENTS).toSorted());
  expect(rows.get('two')).toMatchObject({ rejected: 'many', served: 'none', scarce: 'two' });
});

const days: readonly ThrottleState['day'][] = [{ is: 'free' }, { is: 'guarded' }];
const pausings: readonly ThrottleState['pauses'][] = [{ is: 'single' }, { is: 'doubling', lastMs: 2 * MINUTE_MS }];
const rejectionRuns: readonly ThrottleState['rejections'][] = [
  { is: 'none' },
  { is: 'one' },
  { is: 'two' },
  { is: 'many', doublings: 1 },
];
const STATES: readonly ThrottleState[] = days.flatMap((day) =>
  pausings.flatMap((pauses) =>
    rejectionRuns.map((rejections) => ({ ...UNTHROTTLED, day, pauses, rejections, factor: 0.5, factorAtMs: NOW_MS })),
  ),
);

/** The other effects of an event: the pause that it sets and the factor of the pace, where it changes them. */
const EFFECTS: Readonly<Record<Kind, (before: ThrottleState) => Partial<ThrottleState>>> = {
  'day-ample': () => ({}),
  'day-scarce': () => ({}),
  'day-silent': () => ({}),
  'minute-scarce': () => ({ pausedUntilMs: NOW_MS + MINUTE_MS / 4 }),
  ample: () => ({}),
  scarce: ({ pauses }) => ({ pausedUntilMs: NOW_MS + (pauses.is === 'single' ? 1 : 4) * MINUTE_MS }),
  served: () => ({}),
  rejected: () => ({ factor: 0.25, rejectedAtMs: NOW_MS }),
  'new-plan': () => ({}),
};

describe('the table', () => {
  const cells = STATES.flatMap((state) => Object.values(EVENTS).map((event) => [state, event] as const));

  test('has a cell for every state and event', () => {
    expect(STATES).toHaveLength(Object.keys(DAY).length * Object.keys(PAUSES).length * Object.keys(REJECTIONS).length);
    expect(cells).toHaveLength(16 * 9);
  });

  test.each(
    cells.map(
      ([state, event]) => [state.day.is, state.pauses.is, state.rejections.is, event.kind, state, event] as const,
    ),
  )('%s, %s, %s: %s', (day, pauses, rejections, kind, state, event) => {
    const next = transition(state, event);
    expect([next.day.is, next.pauses.is, next.rejections.is]).toEqual([
      DAY[day][kind],
      PAUSES[pauses][kind],
      REJECTIONS[rejections][kind],
    ]);
    const { day: _day, pauses: _pauses, rejections: _rejections, ...rest } = { ...state, ...EFFECTS[kind](state) };
    expect(next).toMatchObject(rest);
  });
});

/** The state after several events. */
function stateAfter(...events: readonly ThrottleEvent[]): ThrottleState {
  return events.reduce(transition, UNTHROTTLED);
}

describe('the states', () => {
  test('a throttle without events delays nothing', () => {
    expect(throttledTurn(UNTHROTTLED, NOW_MS).atMs).toBe(Number.NEGATIVE_INFINITY);
  });

  test('a guarded day lets one request through in a quarter of an hour, and a longer pause counts as well', () => {
    const guarded = stateAfter(EVENTS['day-scarce']);
    expect(throttledTurn(guarded, NOW_MS)).toEqual({ atMs: NOW_MS + 15 * MINUTE_MS, reason: 'day' });
    const paused = transition(guarded, { kind: 'minute-scarce', nowMs: NOW_MS, remaining: 0 });
    expect(throttledTurn(paused, NOW_MS - HOUR_MS)).toEqual({ atMs: NOW_MS + MINUTE_MS, reason: 'minute' });
  });

  test('pauses double from a minute to a quarter of an hour, and begin anew after an ample answer', () => {
    const scarce = EVENTS.scarce;
    const pauseMs = (count: number): number =>
      stateAfter(...Array.from({ length: count }, () => scarce)).pausedUntilMs - NOW_MS;
    expect([1, 2, 3, 4, 5, 6].map((count) => pauseMs(count) / MINUTE_MS)).toEqual([1, 2, 4, 8, 15, 15]);
    expect(stateAfter(scarce, scarce, EVENTS.ample, scarce).pauses).toEqual({ is: 'doubling', lastMs: MINUTE_MS });
  });

  test('a worse answer that was overtaken still counts', () => {
    const paused = stateAfter(EVENTS['minute-scarce'], { kind: 'minute-scarce', nowMs: NOW_MS, remaining: 59 });
    expect(paused.pausedUntilMs).toBe(NOW_MS + MINUTE_MS / 4);
  });

  test('rejections halve the rate down to a tenth, and it recovers by a twentieth a minute', () => {
    const rejections = Array.from({ length: 5 }, () => EVENTS.rejected);
    expect(rejections.map((_, index) => stateAfter(...rejections.slice(0, index + 1)).factor)).toEqual([
      0.5, 0.25, 0.125, 0.1, 0.1,
    ]);
    const served = (minutes: number) =>
      stateAfter(...rejections, { kind: 'served', nowMs: NOW_MS + minutes * MINUTE_MS });
    expect(served(0).factor).toBe(0.1);
    expect(served(4).factor).toBeCloseTo(0.3);
    expect(served(60).factor).toBe(1);
  });

  test('a rejection for the day does not change the rate', () => {
    expect(stateAfter({ kind: 'rejected', nowMs: NOW_MS, waitMs: 5 * HOUR_MS }).factor).toBe(1);
  });

  test('waits double from the third rejection in a row, up to a quarter of an hour', () => {
    const waits = (requestedMs: number) =>
      [1, 2, 3, 4, 5, 9].map((count) => {
        const state = stateAfter(...Array.from({ length: count }, () => EVENTS.rejected));
        return waitAfter(state, requestedMs, () => 0);
      });
    // With the least jitter: a tenth of a tenth of the wait, from 100 ms to half a second.
    expect(waits(MINUTE_MS)).toEqual([60_500, 60_500, 120_500, 240_500, 480_500, 900_500]);
    expect(waits(HOUR_MS)).toEqual(Array.from({ length: 6 }, () => HOUR_MS + 500));
    expect(waitAfter(UNTHROTTLED, 1000, () => 1)).toBe(2000);
  });
});

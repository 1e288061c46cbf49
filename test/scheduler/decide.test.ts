/** The order in which the planner decides between lanes. */
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { budgetAfterRequest, freeAtMs, withFigures } from '../../src/scheduler/day-budget.ts';
import { createPlannerState, decide, type PlannerState } from '../../src/scheduler/decide.ts';
import { noteDeviceStored } from '../../src/scheduler/device-queue.ts';
import { NOTHING_OPEN, setOpenHistory } from '../../src/scheduler/history-queue.ts';
import type { Rest } from '../../src/scheduler/planner-types.ts';
import { UNKNOWN_RATE } from '../../src/scheduler/report-rate.ts';
import { streamEvents, UNREAD_STREAM } from '../../src/scheduler/streams.ts';
import { SETTINGS } from '../bench/planner/clients.ts';

const NOW = 100 * DAY_MS;

/** A state in which every lane has work: the order decides which one is first. */
function busyState(): PlannerState {
  const state = createPlannerState(SETTINGS);
  for (const stream of ['account', 'alerts', 'devices'] as const)
    state.streams[stream] = { ...UNREAD_STREAM, readMs: NOW - 2 * HOUR_MS };
  const rate = { intervalMs: MINUTE_MS, deviationMs: 0 };
  noteDeviceStored(state.devices, 'live', { newestMs: NOW - 2 * HOUR_MS, polledMs: NOW - 2 * HOUR_MS, rate });
  noteDeviceStored(state.devices, 'idle', { newestMs: null, polledMs: NOW - DAY_MS, rate });
  for (const lane of ['first-history', 'backfill'] as const)
    setOpenHistory(state.histories[lane], lane, { day: 1, week: 0, rest: 0 });
  state.reread.isDue = true;
  state.credit.account = 1;
  return state;
}

/** The change after each decision, so that the next one in the order has its turn. */
const ORDER: readonly [string, (state: PlannerState) => void][] = [
  ['account inventory', (state) => Object.assign(state.credit, { account: 0 })],
  ['devices inventory', (state) => read(state, 'devices')],
  ['poll live', (state) => Object.assign(state, { telemetryOffMs: NOW + 1 })],
  ['alerts alerts', (state) => read(state, 'alerts')],
  ['account inventory', (state) => read(state, 'account')],
];

const SPARE: readonly [string, (state: PlannerState) => void][] = [
  [
    'history first-history',
    ({ histories }) => setOpenHistory(histories['first-history'], 'first-history', NOTHING_OPEN),
  ],
  ['history backfill', ({ histories }) => setOpenHistory(histories.backfill, 'backfill', NOTHING_OPEN)],
  [
    'poll idle-poll',
    ({ devices }) => noteDeviceStored(devices, 'idle', { newestMs: null, polledMs: NOW, rate: UNKNOWN_RATE }),
  ],
  ['reread idle-poll', (state) => Object.assign(state.reread, { isUnderWay: true })],
];

function read(state: PlannerState, stream: 'account' | 'alerts' | 'devices'): void {
  state.streams[stream] = { ...UNREAD_STREAM, readMs: NOW };
}

function said(state: PlannerState): string {
  const decision = decide(state, NOW);
  return decision.kind === 'rest' ? `rest ${decision.reason}` : `${decision.kind} ${decision.lane}`;
}

describe('the order of decisions', () => {
  test('is the reserves, the listing, the furthest behind, then spare requests, then nothing', () => {
    const state = busyState();
    for (const [decision, carryOut] of ORDER) {
      expect(said(state)).toBe(decision);
      carryOut(state);
    }
    noteDeviceStored(state.devices, 'live', {
      newestMs: NOW,
      polledMs: NOW,
      rate: { intervalMs: HOUR_MS, deviationMs: 0 },
    });
    state.telemetryOffMs = Number.NEGATIVE_INFINITY;
    for (const [decision, carryOut] of SPARE) {
      expect(said(state)).toBe(decision);
      carryOut(state);
    }
    expect(said(state)).toBe('rest idle');
  });

  test('does not come back at once for a listing that waits for its reserve', () => {
    const state = createPlannerState(SETTINGS);
    for (const stream of ['account', 'alerts'] as const) read(state, stream);
    state.streams.devices = { ...UNREAD_STREAM, readMs: NOW - 2 * HOUR_MS };
    state.telemetryOffMs = NOW + HOUR_MS;
    expect(said(state)).toBe('devices inventory');
    Object.assign(state.commitment, { isOver: true });
    const rest = decide(state, NOW) as Rest;
    expect(rest.kind).toBe('rest');
    expect(rest.untilMs).toBeGreaterThanOrEqual(NOW + MINUTE_MS);
    // Another request earns it its reserve.
    state.credit.devices = 1;
    expect(said(state)).toBe('devices inventory');
  });

  test('puts a stream that somebody requests before all others', () => {
    const state = busyState();
    expect(said(state)).toBe('account inventory');
    state.streams.alerts = streamEvents.requested(state.streams.alerts);
    expect(said(state)).toBe('alerts alerts');
  });

  test('puts no stream that fails before live work that is further behind', () => {
    const state = busyState();
    state.credit.account = 0;
    expect(said(state)).toBe('devices inventory');
    for (const stream of ['account', 'alerts', 'devices'] as const)
      state.streams[stream] = streamEvents.failed(streamEvents.requested(state.streams[stream]), true, NOW - HOUR_MS);
    expect(said(state)).toBe('poll live');
    noteDeviceStored(state.devices, 'live', {
      newestMs: NOW - 3 * MINUTE_MS,
      polledMs: NOW - 3 * MINUTE_MS,
      rate: { intervalMs: MINUTE_MS, deviationMs: 0 },
    });
    expect(said(state), 'where it is less behind, the stream has its turn').toBe('alerts alerts');
    read(state, 'alerts');
    expect(said(state)).toBe('devices inventory');
    state.streams.devices = streamEvents.failed(state.streams.devices, true, NOW);
    expect(said(state)).toBe('poll live');
    dropLive(state);
    read(state, 'account');
    state.streams.devices = streamEvents.failed(state.streams.devices, true, NOW - HOUR_MS);
    expect(said(state), 'in the spare budget a listing that fails comes first').toBe('devices inventory');
  });

  test('sends nothing when the day is spent, and only live work when just its reserve is left', () => {
    const state = busyState();
    state.credit.account = 0;
    state.budget = withFigures(state.budget, { limit: 1000, budget: 1000, spent: 0, others: null }, NOW);
    const spend = (requests: number) => {
      for (let count = 0; count < requests; count += 1) state.budget = budgetAfterRequest(state.budget, NOW);
    };
    spend(20);
    for (const stream of ['account', 'alerts', 'devices'] as const) read(state, stream);
    expect(said(state), 'half of the bucket is for live work').toBe('poll live');
    dropLive(state);
    expect(said(state), 'the day has more, but not for other work').toBe('rest spare');
    const rest = decide(state, NOW) as Rest;
    expect(rest.spareMs, 'the next poll may be due before').toBe(freeAtMs(state.budget, false, NOW));
    expect(rest.untilMs).toBeLessThanOrEqual(rest.spareMs ?? 0);
    spend(20);
    expect(said(busyStateWith(state))).toBe('rest day');
  });
});

function dropLive(state: PlannerState): void {
  noteDeviceStored(state.devices, 'live', {
    newestMs: NOW,
    polledMs: NOW,
    rate: { intervalMs: HOUR_MS, deviationMs: 0 },
  });
}

/** Everything is due again, with the budget as it is. */
function busyStateWith({ budget }: PlannerState): PlannerState {
  return { ...busyState(), budget };
}

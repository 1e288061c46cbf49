/**
 * The parts that a sync is assembled from, each by itself: over a real state, an API in memory and a virtual clock.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Hooks } from '../../src/app/hooks.ts';
import {
  createBase,
  createContext,
  createReports,
  maintenanceParts,
  openApi,
  openPlanning,
  openSpaceWatch,
  type SyncOptions,
} from '../../src/app/open-sync.ts';
import { MIN_FREE_BYTES } from '../../src/core/archive-room.ts';
import type { AppEvent } from '../../src/core/events.ts';
import { ApiFault } from '../../src/core/faults.ts';
import type { Purpose } from '../../src/core/ports.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, msToNs } from '../../src/core/time.ts';
import type { Deliverer } from '../../src/delivery/deliver.ts';
import { API_PROBLEM, noteAccepted, noteRejected } from '../../src/scheduler/api-state.ts';
import { setRest } from '../../src/scheduler/planning.ts';
import { device, pageCommit, type ScratchStore, scratchStore } from '../store/support.ts';
import { syncSettings } from '../support/defaults.ts';
import { createSimulator, type Simulator } from '../support/faulty-simulator.ts';
import { createSeededWorld } from '../support/seeded-world.ts';
import { transportOf } from '../support/sim-transport.ts';
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts';

const NOW_MS = Date.UTC(2026, 5, 15, 12, 34, 56, 789);
const NEVER = new AbortController().signal;
const ACCOUNT: Purpose = { lane: 'inventory', stream: 'account' };

const every = (ms: number) => ({ text: '', next: (afterMs: number): number => Math.floor(afterMs / ms) * ms + ms });
const SCHEDULES = {
  telemetry: every(MINUTE_MS),
  devices: every(HOUR_MS),
  alerts: every(HOUR_MS),
  account: every(HOUR_MS),
};

let state: ScratchStore;
let clock: VirtualClock;
let simulator: Simulator;
let events: AppEvent[];
let calls: string[];
let options: SyncOptions;

beforeEach(() => {
  state = scratchStore();
  clock = createVirtualClock(NOW_MS);
  const world = createSeededWorld({ seed: 'parts', originMs: NOW_MS, historyMs: DAY_MS, fleet: { devices: 2 } });
  simulator = createSimulator({ world, clock });
  events = [];
  calls = [];
  options = {
    transport: transportOf(simulator),
    api: {
      url: 'http://simulator.test/external/v1',
      key: () => simulator.settings.key.secret,
      share: 0.5,
      concurrency: 4,
    },
    settings: syncSettings({ history: { kind: 'age', ageMs: DAY_MS }, schedules: SCHEDULES }),
    destinations: [],
    dataDir: state.path,
    clock,
    random: () => 0.5,
    observe: (event) => void events.push(event),
  };
});

afterEach(() => state[Symbol.dispose]());

/** Hooks that are written down. */
function hooks(): Hooks {
  const call =
    (name: string) =>
    (...values: readonly unknown[]): void =>
      void calls.push([name, ...values.map((value) => JSON.stringify(value))].join(' '));
  return {
    noteBooked: ({ stream }) => call('booked')(stream),
    noteDone: (fault, { stream }) => call('done')(fault, stream),
    noteLimitMismatch: call('limit mismatch'),
    noteRejected: async () => await Promise.resolve(call('rejected')()),
    notePlanChanged: call('plan changed'),
    noteDeviceLeft: call('left'),
    nextReadingMs: () => null,
    noteCommitted: call('committed'),
    noteArchived: call('archived'),
  };
}

function connect() {
  const base = createBase(options, state.store);
  const signs: (number | undefined)[] = [];
  const sign = (restMs?: number) => void signs.push(restMs);
  const pulse = { beat: () => {}, sign, begin: () => () => {}, rest: () => {} };
  return { base, connection: openApi(options, state, { ...base, pulse, hooks: hooks() }), signs };
}

/** All parts up to planning. */
function openParts(deliverers: readonly Deliverer[] = []) {
  const { base, connection } = connect();
  const space = openSpaceWatch(options, state, base.observe);
  const given = hooks();
  const context = createContext(options, { ...base, store: state.store, space, connection, hooks: given });
  const { limiter } = connection;
  const planning = openPlanning(options, context, limiter);
  return { base, connection, hooks: given, opened: state, space, context, deliverers, planning, limiter };
}

/** Receives an answer with a time. */
function hear({ serverClock }: ReturnType<typeof createBase>, dateMs: number): void {
  serverClock.noteDate({ dateMs, sentMonoMs: 0, receivedMonoMs: 0 });
}

function list(seenMs: number): void {
  const record = device('a', { lastSeenAt: msToNs(seenMs) });
  state.store.saveInventory({ listed: [{ record, name: 'a', line: null, digest: '' }], missing: [], atMs: NOW_MS });
}

describe('the shared parts', () => {
  test('an event reaches every listener, and then the one of the options', () => {
    const base = createBase(options, state.store);
    const order: string[] = [];
    base.listeners.push(
      () => order.push('first'),
      () => order.push(`second, ${events.length} seen`),
    );
    base.observe({ type: 'workspace-known' });
    expect([order, events]).toEqual([['first', 'second, 0 seen'], [{ type: 'workspace-known' }]]);
  });

  test('the reason why the API is not read is stored while it lasts', () => {
    const { outage } = createBase(options, state.store);
    outage.note(new ApiFault('unreachable', 'nobody there', { request: 'GET /x' }));
    expect(state.store.fact(API_PROBLEM)).toContain('nobody there');
    outage.noteAnswered(null);
    expect(state.store.fact(API_PROBLEM)).toBe('');
  });

  test('the times of the state confirm a `Date` that disagrees with the local clock, within the grace period', () => {
    list(NOW_MS - HOUR_MS);
    const newestNs = msToNs(NOW_MS - HOUR_MS);
    const lines = [`telemetry value=1 ${newestNs}`];
    state.store.commitPage(pageCommit({ deviceId: 'a', revision: 1, lines, firstNs: newestNs, lastNs: newestNs }));
    for (const [dateMs, isKnown] of [
      [NOW_MS - HOUR_MS + MINUTE_MS, true],
      [NOW_MS - HOUR_MS + 3 * MINUTE_MS, false],
    ] as const) {
      const base = createBase(options, state.store);
      hear(base, dateMs);
      expect(base.serverClock.isKnown()).toBe(isKnown);
    }
  });
});

describe('the way to the API', () => {
  test('passes a request and its answer on', async () => {
    const { base, connection, signs } = connect();
    const { value } = await connection.api.account(ACCOUNT, NEVER);
    expect(value.plan.requestsPerMinute).toBe(120);
    // At the booking, for as long as a request may take, and at the answer.
    expect(signs.slice(-2)).toEqual([10 * MINUTE_MS, undefined]);
    expect(calls).toEqual(['booked "account"', 'done null "account"']);
    expect(connection.requestsDone()).toBe(1);
    expect([base.apiState.streams.account.answeredAtMs, base.serverClock.isKnown()]).toEqual([
      base.serverClock.nowMs(),
      true,
    ]);
    expect(base.outage.answeredAtMs()).toBe(clock.monoMs());
  });

  test('counts a rejected request, which is an answer of the service and none about its stream', async () => {
    simulator.settings.key.revoked = true;
    const { base, connection } = connect();
    await expect(connection.api.account(ACCOUNT, NEVER)).rejects.toThrow(ApiFault);
    expect(calls).toEqual(['booked "account"', 'done "unauthorized" "account"']);
    expect(connection.requestsDone()).toBe(1);
    expect(base.apiState.streams.account.answeredAtMs).toBeNull();
    expect(base.outage.answeredAtMs()).toBe(clock.monoMs());
  });

  test('reports an address that does not answer at the first failure, before the retries', async () => {
    simulator.faults = (nth) => (nth === 1 ? { kind: 'reset', when: 'before-headers' } : null);
    const { connection, signs } = connect();
    await connection.api.account(ACCOUNT, NEVER);
    const [outage] = events.flatMap((event) => (event.type === 'api-outage' ? [event.waitMs] : []));
    expect(signs).toContain(outage);
    expect(events.map(({ type }) => type).filter((type) => type.startsWith('api-'))).toEqual([
      'api-outage',
      'api-recovered',
    ]);
    expect(connection.requestsDone()).toBe(2);
  });

  test('reports a limit that the plan does not have, and the next one once the account was read', async () => {
    const { base, connection } = connect();
    const { value } = await connection.api.account(ACCOUNT, NEVER);
    state.store.saveAccount({ ...value, plan: { ...value.plan, requestsPerMinute: 100 } }, []);
    const reported = async (): Promise<number> => {
      await connection.api.account(ACCOUNT, NEVER);
      return calls.filter((call) => call === 'limit mismatch').length;
    };
    expect([await reported(), await reported()]).toEqual([1, 1]);
    base.confirmation.confirm();
    expect(await reported()).toBe(1);
    simulator.settings.plan.requestsPerMinute = 130;
    expect(await reported()).toBe(2);
  });

  test('has the plan checked where a page is rejected', async () => {
    simulator.settings.plan.maxDevicesPerPage = 50;
    const { connection } = connect();
    await connection.api.devices(null, { lane: 'inventory', stream: 'devices' }, NEVER);
    expect(calls.filter((call) => call === 'rejected')).toHaveLength(1);
  });

  test('uses its share of the plan', async () => {
    const { base, connection } = connect();
    const { value } = await connection.api.account(ACCOUNT, NEVER);
    state.store.saveAccount(value, []);
    base.confirmation.confirm();
    expect(connection.limiter.figures().minute).toMatchObject({ limit: 120, budget: 60 });
  });
});

describe('the room', () => {
  test.each([
    ['there is no limit and the disk has space', {}, true],
    ['the archive is at its limit', { archive: { retentionMs: DAY_MS, maxBytes: 1 } }, false],
    ['the disk has too little', { disk: { directory: '/x', freeBytes: () => MIN_FREE_BYTES - 1 } }, false],
  ] as const)('where %s', (_where, changes, ok) => {
    const space = openSpaceWatch({ ...options, ...changes }, state, options.observe);
    expect(space.check().ok).toBe(ok);
    expect(events.map(({ type }) => type)).toEqual(ok ? [] : ['polling-stopped']);
  });

  test('gives a remedy for a full archive that cannot be emptied', () => {
    const reasonOf = (destinations: SyncOptions['destinations']): string => {
      const archive = { retentionMs: DAY_MS, maxBytes: 1 };
      const answer = openSpaceWatch({ ...options, archive, destinations }, state, options.observe).check();
      return answer.ok ? '' : answer.reason;
    };
    expect(reasonOf([])).not.toBe(reasonOf([{} as SyncOptions['destinations'][number]]));
  });
});

describe('the context', () => {
  test('confirms a known workspace, and skips an unknown one', async () => {
    const { context, base } = openParts();
    context.noteWorkspaceUnknown();
    await base.confirmation.wait(NEVER);
    expect([base.confirmation.timesConfirmed(), events]).toEqual([0, []]);
    context.noteWorkspaceKnown();
    expect([base.confirmation.timesConfirmed(), events]).toEqual([1, [{ type: 'workspace-known' }]]);
  });

  test('passes on the facts that other parts need', () => {
    const { context, base, hooks: given, space } = openParts();
    context.noteStreamOff('alerts', 'alerts:read');
    expect(base.apiState.streams.alerts.missingScope).toBe('alerts:read');
    expect([context.noteCommitted, context.noteArchived, context.noteDeviceLeft, context.notePlanChanged]).toEqual([
      given.noteCommitted,
      given.noteArchived,
      given.noteDeviceLeft,
      given.notePlanChanged,
    ]);
    expect([context.space, context.checkSpace, context.noteStateFull]).toEqual([
      space.answer,
      space.check,
      space.noteRefused,
    ]);
    expect(context.answeredAtMs).toBe(base.outage.answeredAtMs);
    expect(context.settings.filter, 'with notes about what it leaves out').not.toBe(options.settings.filter);
  });

  test('has the quota as the limiter counts it', async () => {
    const { context, connection } = openParts();
    await connection.api.account(ACCOUNT, NEVER);
    expect(context.quota()).toMatchObject({ spentMinute: 1, spentDay: 1 });
  });
});

test('planning has the day of the limiter, with the budget of a minute', async () => {
  const { planning, context } = openParts();
  const { value } = await context.api.account(ACCOUNT, NEVER);
  state.store.saveAccount(value, []);
  expect(planning.parts.share).toBe(0.5);
  expect(planning.parts.day()).toMatchObject({ limit: 20_000, budget: 10_000, spent: 1, minuteBudget: 60 });
});

describe('the maintenance', () => {
  test('begins when the workspace is confirmed, for the deliveries that there are by then', async () => {
    const deliverers: Deliverer[] = [];
    const parts = openParts(deliverers);
    const maintenance = maintenanceParts(options, parts);
    let hasBegun = false;
    const begun = maintenance.mayBegin(NEVER).then(() => {
      hasBegun = true;
    });
    await clock.sleep(MINUTE_MS);
    expect(hasBegun).toBe(false);
    parts.base.confirmation.confirm();
    await begun;
    deliverers.push({} as Deliverer);
    expect(maintenance.destinations()).toHaveLength(1);
  });

  test('keeps everything where there are no limits', () => {
    const parts = openParts();
    const limits = { retentionMs: DAY_MS, maxBytes: 5 };
    expect(maintenanceParts(options, parts).limits).toEqual({ retentionMs: Number.POSITIVE_INFINITY, maxBytes: null });
    expect(maintenanceParts({ ...options, archive: limits }, parts).limits).toEqual(limits);
  });
});

describe('the reports', () => {
  test('show the devices, the quota and the share', () => {
    list(NOW_MS - HOUR_MS);
    const parts = openParts();
    hear(parts.base, NOW_MS);
    const reports = createReports(options, parts);
    const report = reports.report();
    expect(report.devices.map(({ device_id }) => device_id)).toEqual(['a']);
    expect(report.allowance.share).toBe(0.5);
    expect(reports.overview()).not.toHaveProperty('devices');
  });

  test('show until when history waits', () => {
    const parts = openParts();
    hear(parts.base, NOW_MS);
    const reports = createReports(options, parts);
    expect(reports.quotaWaits()).toEqual({ waiting_until: null, history_waiting_until: null });
    setRest(parts.planning, { kind: 'rest', untilMs: NOW_MS + HOUR_MS, reason: 'spare' });
    const history_waiting_until = '2026-06-15T13:34:56.789Z';
    const waits = { waiting_until: null, history_waiting_until };
    expect([reports.quotaWaits(), reports.measureProgress().allowance]).toEqual([waits, waits]);
  });

  test('show no used-up quota while the plan is unknown, but that the account is read', async () => {
    const parts = openParts();
    const reports = createReports(options, parts);
    // The account is under way. Until it arrives, a low rate is assumed, and the next request would wait for it.
    await parts.limiter.acquire(ACCOUNT, NEVER);
    expect(parts.limiter.figures()).toMatchObject({ waitingFor: 'rate', minute: { limit: null } });
    expect(reports.quotaWaits()).toEqual({ waiting_until: null, history_waiting_until: null });
    expect(reports.measureProgress().waits).toBe('reading the account');
  });

  test('show in the progress why telemetry is not polled, also in that of a backfill', () => {
    const parts = openParts();
    hear(parts.base, NOW_MS);
    const { jobs } = parts.opened;
    const id = jobs.submit({ kind: 'backfill', args: {}, requestedBy: '--backfill', requestedMs: NOW_MS });
    jobs.take(id, NOW_MS);
    const reports = createReports(options, parts);
    const eta = { seconds: 5, basis: '' };
    jobs.reportProgress(id, { ...reports.measureProgress(), eta });
    expect(reports.measureProgress()).toMatchObject({ unread: null, backfill: { eta } });
    const { apiState } = parts.base;
    noteRejected(apiState, new ApiFault('unauthorized', 'no', { request: 'GET /account' }), 'no', MINUTE_MS);
    const unread = 'not polling: the API rejects the key';
    expect(reports.measureProgress()).toMatchObject({ unread, eta: null, backfill: { unread, eta: null } });
    noteAccepted(apiState);
    expect(reports.measureProgress().unread).toBeNull();
  });

  test('are not ready before the devices were listed, and name a problem of the API', () => {
    const parts = openParts();
    const reports = createReports(options, parts);
    expect(reports.ready()).toMatchObject({ ready: false });
    expect(reports.ready().codes).not.toContain('api_unreachable');
    parts.base.outage.note(new ApiFault('unreachable', 'nobody there', { request: 'GET /x' }));
    expect(reports.ready().codes).toContain('api_unreachable');
  });

  test('give the page the events that it is given', () => {
    const recent = [{ at: 'now', level: 'info', message: 'x' }] as never;
    const { pageFacts } = createReports(options, openParts());
    expect(pageFacts(() => recent).events()).toEqual(recent);
  });
});

/**
 * The dispatch loop over a scripted planner and scripted tasks: when a task begins, what its end means for the planner,
 * and how the loop ends.
 */
import { describe, expect, test } from 'vitest';
import { StateFullError } from '../../src/core/archive-room.ts';
import { createWakeUp } from '../../src/core/async.ts';
import { ApiFault, type ApiFaultKind } from '../../src/core/faults.ts';
import { MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { createOutageWatch } from '../../src/ingest/outage.ts';
import { createApiState } from '../../src/scheduler/api-state.ts';
import { type DispatchParts, followPlan } from '../../src/scheduler/dispatch.ts';
import type { Decision, Planner, Rest } from '../../src/scheduler/planner-types.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

/** The course of one task: after `ms` it fails with an error, or is done. */
interface Script {
  readonly ms: number;
  readonly error?: Error;
}

interface Life {
  readonly scripts: readonly Script[];
  readonly concurrency?: number;
  /** When the state is full, in ms of the clock. */
  readonly fullFromMs?: number;
  /** The time until a request may be sent. */
  readonly turnMs?: number;
  /** Whether the turn comes in the moment of an abort, and wins. */
  readonly isTurnSure?: boolean;
  /** When the outer signal aborts. */
  readonly stopMs?: number;
}

/** One run of the loop: its tasks, the calls to the planner about them, and how it ended. */
async function live({
  scripts,
  concurrency = 4,
  fullFromMs = Number.POSITIVE_INFINITY,
  turnMs = 0,
  isTurnSure,
  stopMs,
}: Life) {
  const clock = createVirtualClock(0);
  const log: string[] = [];
  const results: [number, string][] = [];
  const decisions: Decision[] = scripts.map(() => ({ kind: 'alerts', lane: 'alerts' }));
  const waiting = [...decisions];
  const current: { index: number } = { index: -1 };
  let answered = -1;
  const rest: Rest = { kind: 'rest', untilMs: Number.POSITIVE_INFINITY, reason: 'idle' };
  const planner: Partial<Planner> = {
    takeNext: () => waiting[0] ?? rest,
    noteBegan: (decision) => {
      current.index = decisions.indexOf(decision);
      log.push(`${current.index} begins ${clock.monoMs()}`);
      waiting.shift();
    },
    noteStreamRead: () => void results.push([answered, 'done']),
    noteDecisionFailed: (decision, { isOwn }) =>
      void results.push([decisions.indexOf(decision), `failed, own: ${isOwn}`]),
    turnOff: () => {},
    setPageSize: () => {},
    setDay: () => {},
  };
  const outage = createOutageWatch({ clock, random: () => 0.5, observe: () => {} });
  const context = {
    clock,
    serverClock: { nowMs: clock.nowMs },
    store: { account: () => null },
    settings: { concurrency },
    checkSpace: () => ({ ok: clock.monoMs() < fullFromMs }),
    noteStateFull: () => log.push('state full'),
    answeredAtMs: outage.answeredAtMs,
  };
  const wakeUp = createWakeUp(clock);
  const planning = {
    parts: { context, day: () => ({}) },
    wakeUp,
    rested: createWakeUp(clock),
    goals: { 'first-history': null, backfill: null },
    planner,
    asked: new Set(),
    oneOff: null,
    lastMs: 0,
    isWithdrawn: false,
    rest: null,
  };
  const readStream: DispatchParts['readStream'] = async (_kind, signal) => {
    const { index } = current;
    const { ms, error } = scripts[index] ?? { ms: 0 };
    try {
      await clock.sleep(ms, signal);
    } catch (reason) {
      log.push(`${index} aborted ${clock.monoMs()}: ${(reason as Error).message}`);
      throw reason;
    }
    if (error !== undefined) throw error;
    answered = index;
    return true;
  };
  const pulse = { beat: () => {}, rest: () => void log.push(`rests ${clock.monoMs()}`) };
  const apiState = createApiState({ observe: () => {}, serverNowMs: clock.nowMs, monoMs: clock.monoMs });
  const waitUntilTurn = async (signal: AbortSignal): Promise<void> =>
    await clock.sleep(turnMs, isTurnSure ? undefined : signal);
  const reportedRests: number[] = [];
  const own = { scanner: {}, rereading: {}, onRest: () => void reportedRests.push(clock.monoMs()) };
  const parts = { context, planning, apiState, outage, waitUntilTurn, pulse, readStream, ...own };
  const stop = new AbortController();
  if (stopMs !== undefined) void clock.sleep(stopMs).then(() => stop.abort(new Error('stopped')));
  const end = followPlan(parts as unknown as DispatchParts, stop.signal);
  const error = await end.catch((reason: unknown) => (reason as Error).message);
  return { error, endedMs: clock.monoMs(), log, results, reportedRests };
}

const fault = (kind: ApiFaultKind, message: string): ApiFault => new ApiFault(kind, message, { request: 'GET /x' });
const REFUSED = fault('unauthorized', 'refused');

test('a rest is reported when nothing is due, and not while there is more to begin', async () => {
  const { reportedRests } = await live({ concurrency: 1, scripts: [{ ms: 50 }, { ms: 50 }, { ms: 50 }], stopMs: 200 });
  expect(reportedRests).toEqual([150]);
});

describe('a task that ends the session', () => {
  test('aborts the tasks beside it, and they return no result', async () => {
    const { error, endedMs, log, results } = await live({
      scripts: [{ ms: MINUTE_MS }, { ms: 50, error: REFUSED }, { ms: MINUTE_MS }],
    });
    expect({ error, endedMs, results }).toEqual({ error: 'refused', endedMs: 50, results: [] });
    expect(log.slice(3)).toEqual(['0 aborted 50: refused', '2 aborted 50: refused', 'rests 50']);
  });

  test.each<[string, ApiFaultKind | null]>([
    ['a refused key', 'unauthorized'],
    ['a plan without access', 'no-api-access'],
    ['a missing scope of the devices', 'scope-missing'],
    ['a bug', null],
  ])('is one that fails with %s', async (_what, kind) => {
    const error = kind === null ? new TypeError('failed') : fault(kind, 'failed');
    const life = await live({ scripts: [{ ms: 50, error }, { ms: MINUTE_MS }] });
    expect([life.error, life.endedMs]).toEqual(['failed', 50]);
  });

  test.each<[string, Partial<Life>, number]>([
    ['the state is full', { fullFromMs: 10, scripts: [{ ms: 50, error: REFUSED }, { ms: 20 }] }, 50],
    ['no request may be sent', { turnMs: 30 * SECOND_MS }, 30 * SECOND_MS + 50],
    ['all places are taken', { concurrency: 1 }, 50],
    ['nothing is due', {}, 50],
  ])('ends the loop at once while %s', async (_what, more, endedMs) => {
    const life = await live({ scripts: [{ ms: 50, error: REFUSED }], ...more });
    expect([life.error, life.endedMs]).toEqual(['refused', endedMs]);
  });

  test('lets no other task begin, even in the moment of the failure', async () => {
    const { log } = await live({
      turnMs: 10,
      isTurnSure: true,
      scripts: [{ ms: 30 }, { ms: 10, error: REFUSED }, { ms: 50 }],
    });
    expect(log).toEqual(['0 begins 10', '1 begins 20', '0 aborted 30: refused', 'rests 30']);
  });

  test('ends an outage that is waited for', async () => {
    const { error, endedMs } = await live({
      scripts: [
        { ms: 10, error: fault('unreachable', 'nobody there') },
        { ms: 50, error: REFUSED },
      ],
    });
    expect([error, endedMs]).toEqual(['refused', 50]);
  });

  test('wins where it is the first of several', async () => {
    const late = fault('no-api-access', 'late');
    const scripts = [
      { ms: 50, error: late },
      { ms: 40, error: REFUSED },
      { ms: 60, error: new TypeError('a bug') },
    ];
    expect((await live({ scripts })).error).toBe('refused');
  });
});

describe('the outer signal', () => {
  test.each<[string, readonly Script[]]>([
    ['while tasks are under way', [{ ms: MINUTE_MS }, { ms: MINUTE_MS }]],
    ['while nothing is due', []],
  ])('ends the loop with its reason, %s', async (_when, scripts) => {
    const { error, endedMs, log, results } = await live({ scripts, stopMs: 100 });
    expect({ error, endedMs, results }).toEqual({ error: 'stopped', endedMs: 100, results: [] });
    expect(log.filter((line) => line.includes('aborted'))).toEqual(
      scripts.map((_script, index) => `${index} aborted 100: stopped`),
    );
    expect(log.at(-1)).toBe('rests 100');
  });

  test('wins over a task that fails later', async () => {
    const life = await live({ scripts: [{ ms: 200, error: REFUSED }], stopMs: 100 });
    expect(life.error).toBe('stopped');
  });
});

test('each decision returns to the planner as exactly one result', async () => {
  const { error, results, log } = await live({
    concurrency: 2,
    scripts: [
      { ms: 30 },
      { ms: 10, error: fault('malformed', 'odd') },
      { ms: 10, error: new StateFullError('full', null, 1) },
      { ms: 20 },
    ],
    stopMs: 10 * MINUTE_MS,
  });
  expect(error).toBe('stopped');
  expect(results.toSorted()).toEqual([
    [0, 'done'],
    [1, 'failed, own: false'],
    [2, 'failed, own: false'],
    [3, 'done'],
  ]);
  expect(log.filter((line) => line.includes('begins'))).toHaveLength(4);
});

test('no more tasks are under way than the settings allow', async () => {
  const scripts = [{ ms: 100 }, { ms: 100 }, { ms: 100 }];
  const { log } = await live({ concurrency: 2, scripts, stopMs: SECOND_MS });
  expect(log.slice(0, 3)).toEqual(['0 begins 0', '1 begins 0', '2 begins 100']);
});

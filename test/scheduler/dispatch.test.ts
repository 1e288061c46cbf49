/**
 * The dispatch loop over a real planner and scripted tasks: when a task begins, what its end means for the planner, and
 * how the loop ends.
 */
import { describe, expect, test } from 'vitest';
import { StateFullError } from '../../src/core/archive-room.ts';
import { ApiFault, type ApiFaultKind } from '../../src/core/faults.ts';
import { MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { type DispatchParts, followPlan } from '../../src/scheduler/dispatch.ts';
import { requestNow } from '../../src/scheduler/planner.ts';
import { beginOneOff } from '../../src/scheduler/planning.ts';
import { WHOLE_STREAMS } from '../../src/scheduler/streams.ts';
import { scratchStore } from '../store/support.ts';
import { createSessionWorld, listBefore } from './session-world.ts';

/** The course of one task: after `ms` it fails with an error, or is done. */
interface Script {
  readonly ms: number;
  readonly error?: Error;
}

interface Life {
  /** The first tasks of the streams, in the order of {@link WHOLE_STREAMS}. A task after a failure is done at once. */
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

/** One run of the loop: its tasks, those whose result the planner does not have, and how it ended. */
async function live({
  scripts,
  concurrency = 4,
  fullFromMs = Number.POSITIVE_INFINITY,
  turnMs = 0,
  isTurnSure,
  stopMs,
}: Life) {
  using state = scratchStore();
  listBefore(state, []);
  const { clock, context: usual, planning, parts } = createSessionWorld(state);
  const requested = WHOLE_STREAMS.slice(0, scripts.length);
  beginOneOff(planning, { lane: 'first-history', goal: null, streams: requested });
  for (const kind of requested) requestNow(planning.planner, kind);
  const log: string[] = [];
  const context = {
    ...usual,
    settings: { ...usual.settings, concurrency },
    checkSpace: () => ({ ok: clock.monoMs() < fullFromMs }),
    noteStateFull: () => log.push('state full'),
  };
  const waiting = scripts.map((script) => [script]);
  const readStream: DispatchParts['readStream'] = async (kind, signal) => {
    const index = WHOLE_STREAMS.indexOf(kind);
    log.push(`${index} begins ${clock.monoMs()}`);
    const { ms, error } = waiting[index]?.shift() ?? { ms: 0 };
    try {
      await clock.sleep(ms, signal);
    } catch (reason) {
      log.push(`${index} aborted ${clock.monoMs()}: ${(reason as Error).message}`);
      throw reason;
    }
    if (error !== undefined) throw error;
    return true;
  };
  const pulse = { beat: () => {}, rest: () => void log.push(`rests ${clock.monoMs()}`) };
  const waitUntilTurn = async (signal: AbortSignal): Promise<void> =>
    await clock.sleep(turnMs, isTurnSure ? undefined : signal);
  const reportedRests: number[] = [];
  const onRest = (): void => void reportedRests.push(clock.monoMs());
  const stop = new AbortController();
  if (stopMs !== undefined) void clock.sleep(stopMs).then(() => stop.abort(new Error('stopped')));
  const scripted = { ...parts, context, waitUntilTurn, pulse, readStream, onRest };
  const end = followPlan(scripted as unknown as DispatchParts, stop.signal);
  const error = await end.catch((reason: unknown) => (reason as Error).message);
  const underWay = WHOLE_STREAMS.flatMap((kind, index) => (planning.planner.streams[kind].isUnderWay ? [index] : []));
  return { error, endedMs: clock.monoMs(), log, underWay, reportedRests, planner: planning.planner };
}

const fault = (kind: ApiFaultKind, message: string): ApiFault => new ApiFault(kind, message, { request: 'GET /x' });
const REJECTED = fault('unauthorized', 'rejected');

test('a rest is reported when nothing is due, and not while there is more to begin', async () => {
  const { reportedRests } = await live({ concurrency: 1, scripts: [{ ms: 50 }, { ms: 50 }, { ms: 50 }], stopMs: 200 });
  expect(reportedRests).toEqual([150]);
});

describe('a task that ends the session', () => {
  test('aborts the tasks beside it, and they return no result', async () => {
    const { error, endedMs, log, underWay } = await live({
      scripts: [{ ms: MINUTE_MS }, { ms: 50, error: REJECTED }, { ms: MINUTE_MS }],
    });
    expect({ error, endedMs, underWay }).toEqual({ error: 'rejected', endedMs: 50, underWay: [0, 1, 2] });
    expect(log.slice(3)).toEqual(['0 aborted 50: rejected', '2 aborted 50: rejected', 'rests 50']);
  });

  test.each<[string, ApiFaultKind | null]>([
    ['a rejected key', 'unauthorized'],
    ['a plan without access', 'no-api-access'],
    ['a missing scope of the devices', 'scope-missing'],
    ['a bug', null],
  ])('is one that fails with %s', async (_what, kind) => {
    const error = kind === null ? new TypeError('failed') : fault(kind, 'failed');
    const life = await live({ scripts: [{ ms: 50, error }, { ms: MINUTE_MS }] });
    expect([life.error, life.endedMs]).toEqual(['failed', 50]);
  });

  test.each<[string, Partial<Life>, number]>([
    ['the state is full', { fullFromMs: 10, scripts: [{ ms: 50, error: REJECTED }, { ms: 20 }] }, 50],
    ['no request may be sent', { turnMs: 30 * SECOND_MS }, 30 * SECOND_MS + 50],
    ['all places are taken', { concurrency: 1 }, 50],
    ['nothing is due', {}, 50],
  ])('ends the loop at once while %s', async (_what, more, endedMs) => {
    const life = await live({ scripts: [{ ms: 50, error: REJECTED }], ...more });
    expect([life.error, life.endedMs]).toEqual(['rejected', endedMs]);
  });

  test('lets no other task begin, even in the moment of the failure', async () => {
    const { log } = await live({
      turnMs: 10,
      isTurnSure: true,
      scripts: [{ ms: 30 }, { ms: 10, error: REJECTED }, { ms: 50 }],
    });
    expect(log).toEqual(['0 begins 10', '1 begins 20', '0 aborted 30: rejected', 'rests 30']);
  });

  test('ends an outage that is waited for', async () => {
    const { error, endedMs } = await live({
      scripts: [
        { ms: 10, error: fault('unreachable', 'nobody there') },
        { ms: 50, error: REJECTED },
      ],
    });
    expect([error, endedMs]).toEqual(['rejected', 50]);
  });

  test('wins where it is the first of several', async () => {
    const late = fault('no-api-access', 'late');
    const scripts = [
      { ms: 50, error: late },
      { ms: 40, error: REJECTED },
      { ms: 60, error: new TypeError('a bug') },
    ];
    expect((await live({ scripts })).error).toBe('rejected');
  });
});

describe('the outer signal', () => {
  test.each<[string, readonly Script[]]>([
    ['while tasks are under way', [{ ms: MINUTE_MS }, { ms: MINUTE_MS }]],
    ['while nothing is due', []],
  ])('ends the loop with its reason, %s', async (_when, scripts) => {
    const { error, endedMs, log, underWay } = await live({ scripts, stopMs: 100 });
    expect({ error, endedMs, underWay }).toEqual({ error: 'stopped', endedMs: 100, underWay: [...scripts.keys()] });
    expect(log.filter((line) => line.includes('aborted'))).toEqual(
      scripts.map((_script, index) => `${index} aborted 100: stopped`),
    );
    expect(log.at(-1)).toBe('rests 100');
  });

  test('wins over a task that fails later', async () => {
    const life = await live({ scripts: [{ ms: 200, error: REJECTED }], stopMs: 100 });
    expect(life.error).toBe('stopped');
  });
});

describe('each decision returns to the planner', () => {
  test.each<[string, Error, readonly string[]]>([
    ['the state was full', new StateFullError('full', null, 1), ['state full', '2 begins 30']],
    ['the service failed', fault('malformed', 'odd'), ['2 begins 7530']],
  ])('and its stream does not rest if %s', async (_why, error, afterwards) => {
    const scripts = [{ ms: 25 }, { ms: 20 }, { ms: 10, error }];
    const { underWay, planner, log } = await live({ concurrency: 2, scripts, stopMs: 10 * MINUTE_MS });
    expect([underWay, planner.streams.devices.failures]).toEqual([[], 0]);
    expect(log).toEqual(['0 begins 0', '1 begins 0', '2 begins 20', ...afterwards, 'rests 600000']);
  });
});

test('no more tasks are under way than the settings allow', async () => {
  const scripts = [{ ms: 100 }, { ms: 100 }, { ms: 100 }];
  const { log } = await live({ concurrency: 2, scripts, stopMs: SECOND_MS });
  expect(log.slice(0, 3)).toEqual(['0 begins 0', '1 begins 0', '2 begins 100']);
});

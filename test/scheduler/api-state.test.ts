/**
 * The state of the API from the recorded results, the events of each change, and the report of it.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { ApiFault } from '../../src/core/faults.ts';
import { createFactNote, type StreamFacts } from '../../src/core/state/state.ts';
import { MINUTE_MS } from '../../src/core/time.ts';
import { createOutageWatch } from '../../src/ingest/outage.ts';
import * as apiState from '../../src/scheduler/api-state.ts';
import {
  API_PROBLEM,
  createApiState,
  createStreamReport,
  noteAccepted,
  noteAnswered,
  noteOff,
  noteRead,
  noteRejected,
  noteStreamFailed,
  problemFact,
  storedProblem,
} from '../../src/scheduler/api-state.ts';
import { scratchStore } from '../store/support.ts';
import { headerTable } from '../support/header-table.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

function life() {
  const clock = { nowMs: 0 };
  const outage: { message: string | null } = { message: null };
  const events: AppEvent[] = [];
  const observe = (event: AppEvent): void => void events.push(event);
  const state = createApiState({ observe, serverNowMs: () => 0, monoMs: () => clock.nowMs });
  const report = createStreamReport(state, { problem: () => outage.message, retryInMs: () => null });
  const alerts = () => report.list().find(({ name }) => name === 'alerts');
  const countOf = (type: AppEvent['type']): number => events.filter((event) => event.type === type).length;
  const accepted = () => events.flatMap((event) => (event.type === 'key-accepted' ? [event.isOther] : []));
  return { clock, outage, state, report, alerts, countOf, accepted };
}

const REFUSED = new ApiFault('unauthorized', 'no', { request: 'GET /account' });

describe('the reason why the API is not read', () => {
  test('is the failure of a stream, while no request was answered', () => {
    const { state, report } = life();
    noteStreamFailed(state, 'account', 'GET /account: check api.url');
    expect(report.problem()).toBe('GET /account: check api.url');
    noteAnswered(state, 'devices');
    expect(report.problem()).toBeNull();
  });

  test('does not fail one stream while others are answered', () => {
    const { state, report } = life();
    noteAnswered(state, 'devices');
    noteStreamFailed(state, 'account', 'malformed');
    expect(report.problem()).toBeNull();
  });

  test('is an outage while it lasts, and a rejected key until the devices are answered, or it is taken', () => {
    const { state, report, outage, countOf } = life();
    outage.message = 'down';
    expect(report.problem()).toBe('down');
    noteAnswered(state, 'telemetry');
    noteStreamFailed(state, 'alerts', 'HTTP 500');
    noteOff(state, 'account', 'account:read');
    expect(report.list().map(({ state: each, reason }) => `${each}: ${reason}`)).toEqual([
      'off: the key lacks the scope account:read',
      'failing: the API cannot be read',
      'failing: the API cannot be read',
      'failing: HTTP 500',
    ]);
    noteAnswered(state, 'account');
    noteAnswered(state, 'alerts');
    noteRead(state, 'alerts');
    outage.message = null;
    expect(report.list().find(({ name }) => name === 'telemetry')?.state).toBe('on');
    noteRejected(state, REFUSED, 'no', 1000);
    noteAnswered(state, 'account');
    expect([report.isKeyRejected(), report.problem()]).toEqual([
      true,
      expect.stringContaining('the API rejects the key'),
    ]);
    expect(report.nextAttemptInMs()).toBe(1000);
    // Streams that were read before are read no more: no stream is called on.
    expect(report.list().map(({ state }) => state)).toEqual(['failing', 'failing', 'failing', 'failing']);
    noteAnswered(state, 'devices');
    expect(report.list().find(({ name }) => name === 'devices')?.state).toBe('on');
    expect([report.isKeyRejected(), report.problem(), report.nextAttemptInMs()]).toEqual([false, null, null]);
    noteRejected(state, REFUSED, 'no', 1000);
    // The list may fail for a reason of its own.
    noteAccepted(state);
    noteAccepted(state);
    expect(report.isKeyRejected()).toBe(false);
    expect([countOf('key-refused'), countOf('key-accepted')]).toEqual([2, 2]);
  });
});

test('the accepted key is another one only where it has changed since the last rejection', () => {
  const { state, accepted } = life();
  noteRejected(state, REFUSED, 'no', 1000);
  state.hasOtherKey = true;
  noteAccepted(state);
  noteRejected(state, REFUSED, 'no', 1000);
  noteAccepted(state);
  expect(accepted()).toEqual([true, false]);
});

describe('the reason why the API is not read', () => {
  const streams = [{ name: 'alerts', state: 'on', reason: null, last_read_at: null }] as const;
  const read = (noted: string, requests: readonly StreamFacts[] = []) => {
    const { problem, isKeyRejected, list } = storedProblem(noted, streams, requests, 0);
    return [problem(), isKeyRejected(), list()[0]?.state];
  };

  test.each(['{', '{}', '{"code":"on_fire","text":"x"}'])('is unknown where another version has stored %s', (noted) => {
    expect(read(noted)).toEqual([null, false, 'on']);
  });

  test('is the rejection of a key that a command has used, until the API answers', () => {
    const rejected = { stream: 'account', readAtMs: 10, failure: { atMs: 20, fault: 'unauthorized' } } as const;
    const answered = { stream: 'devices', readAtMs: 15, failure: null } as const;
    const problem = expect.stringMatching(/^the API rejects the key: .*\. Check that the key is complete; /);
    expect(read('', [rejected, answered])).toEqual([problem, true, 'failing']);
    expect(read('', [rejected, { ...answered, readAtMs: 21 }])).toEqual([null, false, 'on']);
    const failed = { ...rejected, failure: { atMs: 20, fault: 'server-fault' } };
    expect(read('', [failed, answered])).toEqual([null, false, 'on']);
  });

  test('is in the state as soon as it begins, and no longer than it lasts', () => {
    using open = scratchStore();
    const { store } = open;
    const clock = createVirtualClock(0);
    /** A process over the state. */
    const start = () => {
      const note = createFactNote(store, () => API_PROBLEM);
      const problemChanged = (): void => note(problemFact(state, outage));
      const outage = createOutageWatch({ clock, random: () => 0.5, observe: () => {}, problemChanged });
      const state = createApiState({ observe: () => {}, serverNowMs: () => 0, monoMs: clock.monoMs, problemChanged });
      return { state, outage, live: createStreamReport(state, outage) };
    };
    const { state, outage, live } = start();
    const nextAttempt = (nowMs: number) =>
      storedProblem(store.fact(API_PROBLEM) ?? '', streams, [], nowMs).nextAttemptInMs();
    const stored = () => read(store.fact(API_PROBLEM) ?? '');
    expect(stored()).toEqual([null, false, 'on']);
    outage.note(new ApiFault('unreachable', 'GET /account: no answer', { request: 'GET /account' }));
    expect(stored()).toEqual(['GET /account: no answer', false, 'failing']);
    expect([live.nextAttemptInMs(), nextAttempt(0), nextAttempt(8000), nextAttempt(8001)]).toEqual([
      7500,
      8000,
      0,
      null,
    ]);
    outage.noteAnswered(null);
    expect(stored()).toEqual([null, false, 'on']);
    outage.note(new ApiFault('unreachable', 'no answer', { request: 'GET /account' }));
    noteRejected(state, REFUSED, 'no', 1000);
    expect(stored(), 'the key comes first').toEqual([live.problem(), true, 'failing']);
    outage.noteAnswered(null);
    noteAccepted(state);
    expect(stored()).toEqual([null, false, 'on']);
    // The next process ends it, although it did not see it begin.
    noteStreamFailed(state, 'account', 'GET /account: check api.url');
    expect(stored()).toEqual(['GET /account: check api.url', false, 'failing']);
    noteAnswered(start().state, 'account');
    expect(stored()).toEqual([null, false, 'on']);
  });

  test('is ended by an answer that only a scope is missing', () => {
    const found: string[] = [];
    const problemChanged = (): void => void found.push('changed');
    noteOff(
      createApiState({ observe: () => {}, serverNowMs: () => 0, monoMs: () => 0, problemChanged }),
      'alerts',
      's',
    );
    expect(found).toEqual(['changed']);
  });
});

describe('a stream that fails', () => {
  test('is failing with its last reason until its work ends, and has failed for long after ten minutes', () => {
    const { clock, state, report, alerts, countOf } = life();
    noteAnswered(state, 'alerts');
    expect(alerts()).toMatchObject({ state: 'on', reason: null });
    noteStreamFailed(state, 'alerts', 'GET /alerts: malformed');
    expect(alerts()).toMatchObject({ state: 'failing', reason: 'GET /alerts: malformed' });
    clock.nowMs = 9 * MINUTE_MS;
    // Its first page is answered each time.
    noteAnswered(state, 'alerts');
    noteStreamFailed(state, 'alerts', 'GET /alerts?cursor: malformed');
    expect(report.failingLong()).toEqual([]);
    clock.nowMs = 10 * MINUTE_MS;
    expect(report.failingLong()).toEqual([{ name: 'alerts', reason: 'GET /alerts?cursor: malformed' }]);
    noteAnswered(state, 'alerts');
    noteRead(state, 'alerts');
    expect([alerts()?.state, report.failingLong()]).toEqual(['on', []]);
    noteRead(state, 'alerts');
    expect(countOf('stream-recovered')).toBe(1);
  });

  test('is not ended by work that had nothing to request', () => {
    const { state, alerts, countOf } = life();
    noteStreamFailed(state, 'alerts', 'malformed');
    noteRead(state, 'alerts');
    expect([alerts()?.state, countOf('stream-recovered')]).toEqual(['failing', 0]);
  });
});

describe('a stream whose scope is missing from the key', () => {
  test('is off and fails no more, is reported once, and is on again with the next answer', () => {
    const { clock, state, report, alerts, countOf } = life();
    noteStreamFailed(state, 'alerts', 'malformed');
    noteOff(state, 'alerts', 'alerts:read');
    clock.nowMs = 20 * MINUTE_MS;
    noteOff(state, 'alerts', 'alerts:read');
    expect([alerts()?.state, alerts()?.reason, report.failingLong()]).toEqual([
      'off',
      'the key lacks the scope alerts:read',
      [],
    ]);
    expect([countOf('stream-off'), state.streams.alerts.readAtMs]).toEqual([1, 20 * MINUTE_MS]);
    noteAnswered(state, 'alerts');
    noteAnswered(state, 'alerts');
    expect([alerts()?.state, countOf('stream-on')]).toEqual(['on', 1]);
  });

  test('stays off where work for it had nothing to request', () => {
    const { clock, state, countOf } = life();
    noteOff(state, 'telemetry', 'telemetry:read');
    clock.nowMs = MINUTE_MS;
    noteRead(state, 'telemetry');
    expect(state.streams.telemetry).toMatchObject({ missingScope: 'telemetry:read', readAtMs: 0 });
    expect(countOf('stream-read')).toBe(0);
  });
});

test('the table in the header names the calls of the record, and the events that they emit', () => {
  const [, ...rows] = headerTable('scheduler/api-state.ts', 'call');
  const quoted = (cell = ''): string[] => [...cell.matchAll(/`([\w-]+)`/g)].map(([, word = '']) => word);
  const calls = rows.map(([call]) => quoted(call)[0] ?? '');
  expect(calls.length).toBeGreaterThan(0);
  expect(calls.filter((call) => !(call in apiState))).toEqual([]);
  const source = readFileSync(new URL('../../src/scheduler/api-state.ts', import.meta.url), 'utf8');
  const emitted = new Set([...source.matchAll(/type: '(stream-[\w-]+)'/g)].map(([, type]) => type));
  expect(new Set(rows.flatMap(([, , events]) => quoted(events)))).toEqual(emitted);
});

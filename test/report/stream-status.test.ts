/**
 * What the streams say of the API for the report: what keeps it from being read, and since when no more.
 */
import { describe, expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { MINUTE_MS } from '../../src/core/time.ts';
import { createStreamTracker, oncePerStream, type StreamTracker } from '../../src/report/stream-status.ts';

const answered: AppEvent = {
  type: 'request-done',
  request: 'GET /devices',
  stream: 'devices',
  lane: 'inventory',
  status: 200,
  durationMs: 1,
  fault: null,
};
const failed: AppEvent = { type: 'stream-failed', stream: 'account', message: 'GET /account: is api.url right?' };

function notesOf(...events: readonly AppEvent[]): StreamTracker {
  const notes = createStreamTracker({ serverNowMs: () => 0, monoMs: () => 0 });
  for (const event of events) notes.observe(event);
  return notes;
}

describe('what keeps the API from being read', () => {
  test('is what a stream failed by, while nothing was answered at all', () => {
    expect(notesOf(failed).problem()).toBe('GET /account: is api.url right?');
    expect(notesOf(failed, answered).problem()).toBeNull();
  });

  test('is no trouble of one stream while others are answered', () => {
    expect(notesOf(answered, failed).problem()).toBeNull();
  });

  test('is an outage until something is answered, and a refused key until the devices are, or it is taken', () => {
    const outage: AppEvent = { type: 'service-trouble', message: 'down', waitMs: 1000 };
    const refused: AppEvent = { type: 'key-refused', message: 'no', waitMs: 1000 };
    expect(notesOf(answered, outage).problem()).toBe('down');
    expect(notesOf(outage, answered).problem()).toBeNull();
    expect(notesOf(refused, { ...answered, request: 'GET /account', stream: 'account' }).problem()).toBe('no');
    expect(notesOf(refused, { type: 'key-accepted' }).isRefused(), 'the list may fail for a reason of its own').toBe(
      false,
    );
    expect(notesOf(refused, answered).problem()).toBeNull();
  });
});

describe('a stream that fails', () => {
  const alertsFailed: AppEvent = { type: 'stream-failed', stream: 'alerts', message: 'GET /alerts: malformed' };
  const alertsAnswered: AppEvent = { ...answered, request: 'GET /alerts', stream: 'alerts' };
  const alertsRead: AppEvent = { type: 'stream-read', stream: 'alerts' };

  function life() {
    const clock = { nowMs: 0 };
    const notes = createStreamTracker({ serverNowMs: () => 0, monoMs: () => clock.nowMs });
    const told: string[] = [];
    const observe = oncePerStream(notes, (event) => {
      notes.observe(event);
      told.push(event.type);
    });
    const state = () => notes.list().find(({ name }) => name === 'alerts');
    return { clock, notes, told, observe, state };
  }

  test('is failing with its last reason until its work has come to an end, and has failed for long after ten minutes', () => {
    const { clock, notes, told, observe, state } = life();
    observe(alertsAnswered);
    expect(state()).toMatchObject({ state: 'on', reason: null });
    observe(alertsFailed);
    expect(state()).toMatchObject({ state: 'failing', reason: 'GET /alerts: malformed' });
    clock.nowMs = 9 * MINUTE_MS;
    // Its first page is answered each time.
    observe(alertsAnswered);
    observe({ ...alertsFailed, message: 'GET /alerts?cursor: malformed' } as AppEvent);
    expect(notes.failingLong()).toEqual([]);
    clock.nowMs = 10 * MINUTE_MS;
    expect(notes.failingLong()).toEqual([{ name: 'alerts', reason: 'GET /alerts?cursor: malformed' }]);
    observe(alertsAnswered);
    observe(alertsRead);
    expect([state()?.state, notes.failingLong()]).toEqual(['on', []]);
    observe(alertsRead);
    expect(told.filter((type) => type === 'stream-back')).toHaveLength(1);
  });

  test('is not mended by work that had nothing to ask', () => {
    const { told, observe, state } = life();
    observe(alertsFailed);
    observe(alertsRead);
    expect([state()?.state, told.includes('stream-back')]).toEqual(['failing', false]);
  });

  test('is off and no more where the key lacks its scope', () => {
    const { clock, notes, observe, state } = life();
    observe(alertsFailed);
    observe({ type: 'stream-off', stream: 'alerts', scope: 'alerts:read' });
    clock.nowMs = 20 * MINUTE_MS;
    expect([state()?.state, notes.failingLong()]).toEqual(['off', []]);
  });
});

/**
 * What the streams say of the API for the report: what keeps it from being read, and since when no more.
 */
import { describe, expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { createStreamNotes, type StreamNotes } from '../../src/sync/stream-notes.ts';

const answered: AppEvent = {
  type: 'request-done',
  request: 'GET /devices',
  lane: 'inventory',
  status: 200,
  durationMs: 1,
  fault: null,
};
const failed: AppEvent = { type: 'stream-failed', stream: 'account', message: 'GET /account: is api.url right?' };

function notesOf(...events: readonly AppEvent[]): StreamNotes {
  const notes = createStreamNotes(() => 0);
  for (const event of events) notes.observe(event);
  return notes;
}

describe('what keeps the API from being read', () => {
  test('is what a stream failed by, while nothing was answered at all', () => {
    expect(notesOf(failed).trouble()).toBe('GET /account: is api.url right?');
    expect(notesOf(failed, answered).trouble()).toBeNull();
  });

  test('is no trouble of one stream while others are answered', () => {
    expect(notesOf(answered, failed).trouble()).toBeNull();
  });

  test('is an outage until something is answered, and a refused key until the devices are', () => {
    const outage: AppEvent = { type: 'service-trouble', message: 'down', waitMs: 1000 };
    const refused: AppEvent = { type: 'key-refused', message: 'no', waitMs: 1000 };
    expect(notesOf(answered, outage).trouble()).toBe('down');
    expect(notesOf(outage, answered).trouble()).toBeNull();
    expect(notesOf(refused, { ...answered, request: 'GET /account' }).trouble()).toBe('no');
    expect(notesOf(refused, answered).trouble()).toBeNull();
  });
});

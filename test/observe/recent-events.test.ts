/**
 * The recent events: the log's lines, kept for the page.
 */
import { describe, expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { createScrub, Secret } from '../../src/core/secret.ts';
import { MINUTE_MS } from '../../src/core/time.ts';
import { createLogger, logEvents } from '../../src/observe/log.ts';
import { createRecentEvents, MOST_RECENT } from '../../src/observe/recent-events.ts';

const NOW_MS = Date.UTC(2026, 10, 21, 12);

function openEar(secrets: readonly Secret[] = []) {
  const time = { ms: 0 };
  const clock = { nowMs: () => NOW_MS + time.ms, monoMs: () => time.ms };
  const recent = createRecentEvents({ clock, scrub: createScrub(secrets) });
  return { ...recent, clock, time };
}

const appeared = (at: number): AppEvent => ({
  type: 'device-appeared',
  deviceId: `d${at}`,
  name: `Name ${at}`,
  more: 0,
});

describe('recent events', () => {
  test('are the lines of the log, in its words, the newest first, with their time', () => {
    const { observe, latest, time } = openEar();
    expect(latest()).toEqual([]);
    observe(appeared(1));
    time.ms += 1500;
    observe({
      type: 'delivery-blocked',
      destination: 'influx',
      message: 'it is full',
      needsPerson: true,
      waitMs: 10 * MINUTE_MS,
    } as AppEvent);
    expect(latest()).toMatchObject([
      { at: '2026-11-21T12:00:01.500Z', level: 'error', event: 'delivery-blocked' },
      {
        at: '2026-11-21T12:00:00.000Z',
        level: 'info',
        event: 'device-appeared',
        message: 'New device',
        device_id: 'd1',
        details: 'device name Name 1',
      },
    ]);
    expect(latest()[0]?.message).toContain('it is full');
  });

  test('are no others than the log has at its level info', () => {
    const { observe, latest, time, clock } = openEar();
    const written: string[] = [];
    const stream = { write: (text: string) => written.push(text) };
    const log = logEvents(createLogger({ level: 'info', format: 'json', secrets: [], stream, clock }), clock);
    for (let at = 0; at < 60; at += 1) {
      for (const event of [
        appeared(at),
        { type: 'workspace-known' },
        { type: 'stream-failed', stream: 'telemetry', message: 'no answer' },
        {
          type: 'delivery-blocked',
          destination: 'influx',
          message: 'it is full',
          needsPerson: true,
          waitMs: 10 * MINUTE_MS,
        },
        { type: 'stream-read', stream: 'telemetry' },
      ] as AppEvent[]) {
        observe(event);
        log(event);
      }
      time.ms += 20_000;
    }
    const lines = written.map((text) => JSON.parse(text)).toReversed();
    expect(lines.length).toBeGreaterThan(60);
    expect(latest().map(({ event, level, at, message }) => [event, level, at, message])).toEqual(
      lines.slice(0, MOST_RECENT).map(({ event, level, time: at, msg }) => [event, level, at, msg]),
    );
  });

  test('are not the rounds of the sync, which come minute by minute', () => {
    const { observe, latest, time } = openEar();
    const asked = { type: 'request-done', request: 'GET /account', stream: 'account', status: 200, fault: null };
    for (let at = 0; at < 10; at += 1) {
      observe(asked as AppEvent);
      observe({ type: 'stream-read', stream: 'account' });
      time.ms += 2 * MINUTE_MS;
    }
    observe(appeared(1));
    expect(latest().map(({ event }) => event)).toEqual(['device-appeared']);
  });

  test('the last hundred are kept; repeated events do not push others out', () => {
    const { observe, latest, time } = openEar();
    for (let at = 0; at < 150; at += 1) {
      observe(appeared(at));
      time.ms += 10_000;
    }
    expect(latest()).toHaveLength(MOST_RECENT);
    expect([latest()[0]?.device_id, latest().at(-1)?.device_id]).toEqual(['d149', 'd50']);
    for (let at = 0; at < 1000; at += 1) {
      observe({ type: 'stream-failed', stream: 'telemetry', message: 'no answer' } as AppEvent);
      observe({ type: 'device-gone', deviceId: 'd' } as AppEvent);
    }
    expect(latest().filter(({ event }) => event === 'device-appeared')).toHaveLength(MOST_RECENT - 11);
    time.ms += 61 * MINUTE_MS;
    observe({ type: 'device-gone', deviceId: 'd' } as AppEvent);
    expect(latest()[0]?.details).toBe('suppressed 990');
  });

  test('hold no secret, no control character, and no text without end', () => {
    const { observe, latest } = openEar([new Secret('canary-4242')]);
    const name = `canary-4242\u001b[31m\u202e<b>${'x'.repeat(5000)}`;
    observe({ type: 'device-appeared', deviceId: 'canary-4242', name, more: 0 });
    observe({
      type: 'delivery-blocked',
      destination: 'influx',
      message: `${'y'.repeat(990)}canary-4242`,
      waitMs: 10 * MINUTE_MS,
    } as AppEvent);
    const text = JSON.stringify(latest());
    expect(text).not.toContain('canary');
    expect(latest()[1]?.details).toMatch(/^device name [^\p{Cc}\u202e]*<b>x+…$/u);
    expect(text.length).toBeLessThan(2500);
  });

  test('survive a restart, in their order, and are handed over once', () => {
    const before = openEar();
    expect(before.takeUnsaved()).toBeNull();
    before.observe(appeared(1));
    before.observe(appeared(2));
    const text = before.takeUnsaved();
    expect(before.takeUnsaved()).toBeNull();
    const clock = { nowMs: () => NOW_MS + MINUTE_MS, monoMs: () => 0 };
    const after = createRecentEvents({ clock, scrub: createScrub([]), before: text });
    after.observe(appeared(3));
    expect(after.latest().map(({ device_id }) => device_id)).toEqual(['d3', 'd2', 'd1']);
    expect(after.latest()[1]).toEqual(before.latest()[0]);
  });

  test.each(['', 'no JSON', '{}', '[1, {"at": 2}]'])('begin anew where what was kept cannot be read: %s', (before) => {
    const clock = { nowMs: () => NOW_MS, monoMs: () => 0 };
    expect(createRecentEvents({ clock, scrub: createScrub([]), before }).latest()).toEqual([]);
  });

  test('have only the removal of a removed device', () => {
    const { observe, latest, forget, takeUnsaved } = openEar();
    observe(appeared(1));
    observe(appeared(2));
    takeUnsaved();
    forget('d1');
    expect(takeUnsaved()).not.toContain('d1');
    observe({ type: 'device-forgotten', deviceId: 'd1', points: 5 });
    expect(latest().map(({ event, device_id }) => `${event} ${device_id}`)).toEqual([
      'device-forgotten d1',
      'device-appeared d2',
    ]);
  });
});

/** The summaries of the polls in the log, in virtual time. */
import { describe, expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { MINUTE_MS } from '../../src/core/time.ts';
import { createLogger, logEvents } from '../../src/observe/log.ts';

/** A log whose clock stands still until it is moved. */
function openLog() {
  const written: string[] = [];
  const clock = { ms: 0 };
  const stream = { write: (text: string) => written.push(text) };
  const logger = createLogger({ level: 'info', format: 'json', secrets: [], clock: { nowMs: () => clock.ms }, stream });
  const observe = logEvents(logger, { monoMs: () => clock.ms });
  return { clock, observe, lines: () => written.splice(0).map((text) => JSON.parse(text)) };
}

describe('a round', () => {
  const asked = (
    stream: 'telemetry' | 'devices' | 'alerts' | 'account',
    fault: 'throttled' | null = null,
  ): AppEvent => ({
    type: 'request-done',
    request: 'GET /',
    stream,
    lane: 'live',
    status: 200,
    durationMs: 1,
    fault,
  });
  const committed = (deviceId: string, newPoints: number): AppEvent => ({
    type: 'page-committed',
    deviceId,
    lane: 'live',
    served: 50,
    readings: newPoints / 2,
    newPoints,
  });

  test('of telemetry is a minute: one line, however many devices', () => {
    const { clock, observe, lines } = openLog();
    for (; clock.ms < 2.5 * MINUTE_MS; clock.ms += 1000) {
      observe(asked('telemetry'));
      observe(committed(`d-${clock.ms % 7}`, 4));
      observe({ type: 'stream-read', stream: 'telemetry' });
    }
    expect(lines()).toMatchObject([
      {
        event: 'poll-summary',
        level: 'info',
        msg: 'telemetry: 120 new readings, 7 devices polled, 240 new points',
        stream: 'telemetry',
        requests: 60,
        failed_requests: 0,
        devices: 7,
        new_readings: 120,
        new_points: 240,
        period_ms: 60_000,
      },
      { requests: 60 },
    ]);
    observe({ type: 'stopping', reason: 'Stopped' });
    expect(lines().map(({ event }) => event)).toEqual(['stopping', 'poll-summary']);
  });

  test('of a listing is reported at its end, with its results and failures', () => {
    const { clock, observe, lines } = openLog();
    const round = (): void => {
      observe(asked('devices', 'throttled'));
      observe(asked('devices'));
      observe({ type: 'list-page-committed', stream: 'devices', records: 31, newPoints: 2 });
      observe({ type: 'stream-read', stream: 'devices' });
    };
    round();
    expect(lines()).toMatchObject([
      { msg: 'devices: 31 listed, 2 new points', requests: 2, failed_requests: 1, records: 31, runs: 1 },
    ]);
    // More often than once a minute they share a line.
    for (let second = 10; second <= 60; second += 10) {
      clock.ms = second * 1000;
      round();
    }
    expect(lines()).toMatchObject([
      {
        msg: 'devices: listed 5 times (155 records in all), 10 new points',
        requests: 10,
        runs: 5,
        period_ms: 50_000,
      },
    ]);
    clock.ms += MINUTE_MS;
    observe(asked('devices', 'throttled'));
    observe({ type: 'stream-read', stream: 'devices' });
    expect(lines()).toHaveLength(1);
    clock.ms += MINUTE_MS;
    observe({ type: 'stream-read', stream: 'devices' });
    expect(lines().at(-1)).toMatchObject({ msg: 'devices: not listed, 0 new points', requests: 1, failed_requests: 1 });
  });

  test('of alerts is of those that were read: a poll does not list them all', () => {
    const { clock, observe, lines } = openLog();
    const poll = (records: number): void => {
      observe(asked('alerts'));
      observe({ type: 'list-page-committed', stream: 'alerts', records, newPoints: 1 });
      observe({ type: 'stream-read', stream: 'alerts' });
    };
    poll(1000);
    for (const ms of [20_000, 40_000, 60_000]) {
      clock.ms = ms;
      poll(100);
    }
    expect(lines().map(({ msg }) => msg)).toEqual([
      'alerts: 1,000 read, 1 new point',
      'alerts: read 2 times (200 records in all), 2 new points',
    ]);
  });

  test('in which nothing was requested is none', () => {
    const { clock, observe, lines } = openLog();
    observe({ type: 'stream-read', stream: 'telemetry' });
    clock.ms += 10 * MINUTE_MS;
    observe({ type: 'stream-read', stream: 'telemetry' });
    observe({ type: 'stopping', reason: 'Stopped' });
    expect(lines().map(({ event }) => event)).toEqual(['stopping']);
  });
});

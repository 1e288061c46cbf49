/** Repeated events in the log: reported at once, then every hour with a count, then their end, in virtual time. */
import { describe, expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { createLogger, logEvents } from '../../src/observe/log.ts';

/** A log whose clock stands still until it is moved. */
function openLog() {
  const written: string[] = [];
  const clock = { ms: 0 };
  const stream = { write: (text: string) => written.push(text) };
  const logger = createLogger({ level: 'info', format: 'json', secrets: [], clock: { nowMs: () => clock.ms }, stream });
  const observe = logEvents(logger, { monoMs: () => clock.ms });
  return {
    clock,
    observe,
    /** The lines since the last call: event, level, how many were suppressed before it. */
    reported: () =>
      written.splice(0).map((text) => {
        const { event, level, suppressed, problem_lines_suppressed } = JSON.parse(text);
        return [event, level, suppressed ?? problem_lines_suppressed ?? 0].join(' ');
      }),
    lines: () => written.splice(0).map((text) => JSON.parse(text)),
  };
}

const held = (more: Partial<Extract<AppEvent, { type: 'delivery-blocked' }>> = {}): AppEvent => ({
  type: 'delivery-blocked',
  destination: 'influx',
  lines: 5,
  message: 'HTTP 503',
  hint: 'it goes on by itself',
  needsPerson: false,
  waitMs: MINUTE_MS,
  ...more,
});

/** Each kind of problem that has an end, and what ends it. */
const PROBLEMS: readonly (readonly [level: string, AppEvent, AppEvent])[] = [
  [
    'warn',
    { type: 'stream-failed', stream: 'alerts', message: 'down' },
    { type: 'stream-recovered', stream: 'alerts' },
  ],
  ['warn', { type: 'api-outage', message: 'down', waitMs: 10_000 }, { type: 'api-recovered' }],
  [
    'error',
    { type: 'key-refused', message: 'the key is revoked', waitMs: MINUTE_MS },
    { type: 'key-accepted', isOther: false },
  ],
  ['error', { type: 'key-refused', message: 'the key is revoked', waitMs: MINUTE_MS }, { type: 'key-changed' }],
  ['warn', held(), { type: 'delivery-resumed', destination: 'influx' }],
  [
    'error',
    held({ message: 'HTTP 401', hint: 'the token', needsPerson: true }),
    { type: 'delivery-resumed', destination: 'influx' },
  ],
  ['error', { type: 'polling-stopped', reason: 'the archive is full' }, { type: 'polling-resumed' }],
];

describe.each(
  PROBLEMS.map(([level, problem, end]) => [`${problem.type} until ${end.type}`, level, problem, end] as const),
)('a problem that stays: %s', (_name, level, problem, end) => {
  test('is reported at once, every hour with its count, and at its end; begun anew it is reported at once', () => {
    const { clock, observe, reported } = openLog();
    observe(problem);
    expect(reported()).toEqual([`${problem.type} ${level} 0`]);
    for (let minute = 1; minute < 60; minute += 1) {
      clock.ms = minute * MINUTE_MS;
      observe(problem);
    }
    expect(reported()).toEqual([]);
    clock.ms = HOUR_MS;
    observe(problem);
    expect(reported()).toEqual([`${problem.type} ${level} 59`]);
    clock.ms += MINUTE_MS;
    observe(problem);
    observe(end);
    expect(reported()).toEqual([`${end.type} info 1`]);
    clock.ms += MINUTE_MS;
    observe(problem);
    expect(reported()).toEqual([`${problem.type} ${level} 0`]);
  });

  test('that comes and goes is reported both ways, a few times in ten minutes', () => {
    const { clock, observe, reported } = openLog();
    for (; clock.ms < 20 * MINUTE_MS; clock.ms += MINUTE_MS) {
      observe(problem);
      observe(end);
    }
    const lines = reported().map((line) => line.split(' ')[0]);
    expect(lines.filter((type) => type === problem.type)).toHaveLength(4);
    // Another key is news whatever was reported before.
    if (end.type !== 'key-changed') expect(lines.filter((type) => type === end.type)).toHaveLength(4);
  });
});

describe('an outage', () => {
  test('that came and went is reported at once when its reason is new or its level worse, however often it came', () => {
    const { clock, observe, reported } = openLog();
    const end: AppEvent = { type: 'delivery-resumed', destination: 'influx' };
    for (let id = 0; id < 6; id += 1) {
      observe(held());
      observe(end);
      clock.ms += 5000;
    }
    reported();
    observe(held({ message: 'HTTP 401', hint: 'the token', needsPerson: true }));
    expect(reported()).toEqual(['delivery-blocked error 4']);
    observe(end);
    for (let id = 0; id < 10; id += 1) {
      observe(held({ message: `HTTP 503: request ${id}` }));
      observe(end);
    }
    reported();
    clock.ms += HOUR_MS;
    for (let id = 0; id < 10; id += 1) observe(held({ message: `HTTP 503: request ${id}` }));
    reported();
    observe(held({ message: 'HTTP 404', hint: 'the bucket', needsPerson: true }));
    expect(reported().map((each) => each.slice(0, -2))).toEqual(['delivery-blocked error']);
  });

  test('whose reason changes is reported at once, but not for each answer of a server that varies its text', () => {
    const { clock, observe, reported } = openLog();
    observe(held());
    observe(held({ message: 'HTTP 401', hint: 'the token', needsPerson: true }));
    observe(held());
    expect(reported()).toEqual(['delivery-blocked warn 0', 'delivery-blocked error 0']);
    for (let id = 0; id < 50; id += 1) {
      clock.ms += MINUTE_MS;
      observe(held({ message: `HTTP 503: request ${id}` }));
    }
    expect(reported()).toHaveLength(3);
  });

  test('whose wordings differ in ids alone has room for a new reason', () => {
    const { clock, observe, reported } = openLog();
    for (let id = 0; id < 10; id += 1) {
      clock.ms += MINUTE_MS;
      observe(held({ message: `HTTP 503: request 0bc6-${1000 + id} failed` }));
    }
    expect(reported()).toEqual(['delivery-blocked warn 0']);
    for (const message of ['HTTP 500: disk full', 'HTTP 502: bad gateway', 'HTTP 429: slow down', 'HTTP 504']) {
      observe(held({ message }));
    }
    expect(reported()).toHaveLength(4);
  });

  test('of one destination shows nothing about another', () => {
    const { observe, reported } = openLog();
    observe(held());
    observe(held({ destination: 'second' }));
    observe({ type: 'delivery-resumed', destination: 'second' });
    observe(held());
    expect(reported()).toEqual(['delivery-blocked warn 0', 'delivery-blocked warn 0', 'delivery-resumed info 0']);
  });

  test('that was never reported has no end to report', () => {
    const { observe, reported } = openLog();
    observe({ type: 'api-recovered' });
    observe({ type: 'delivery-resumed', destination: 'influx' });
    expect(reported()).toEqual([]);
  });

  test('of a stream that goes off for its scope is over', () => {
    const { observe, reported } = openLog();
    observe({ type: 'stream-failed', stream: 'alerts', message: 'down' });
    observe({ type: 'stream-off', stream: 'alerts', scope: 'alerts:read' });
    observe({ type: 'stream-recovered', stream: 'alerts' });
    expect(reported()).toEqual(['stream-failed warn 0', 'stream-off warn 0']);
  });
});

/** Each kind that has no end of its own. */
const SINGLE: readonly AppEvent[] = [
  { type: 'quota-wait', untilMs: 8e9, reason: 'day' },
  { type: 'records-rejected', stream: 'alerts', count: 1, reason: 'no id' },
  { type: 'values-dropped', deviceId: 'd', count: 1, reason: 'not a finite number' },
  {
    type: 'page-rejected',
    deviceId: 'd',
    reason: 'its next_cursor leads to pages that were served before',
    attempt: 2,
  },
  { type: 'restatement', deviceId: 'd', at: 'T' },
  { type: 'readings-late', deviceId: 'd', count: 1, worstMs: 1, gracePeriodMs: 1 },
  { type: 'gap-recorded', deviceId: 'd', reason: 'unreachable', from: 'F', to: 'T' },
  { type: 'lines-quarantined', destination: 'influx', lines: 1, message: 'partial write' },
  { type: 'lines-beyond-retention', destination: 'influx', lines: 1 },
  { type: 'request-retried', request: 'GET /account', fault: 'unreachable', attempt: 1, waitMs: 30_000, message: 'm' },
];

describe.each(SINGLE.map((event) => [event.type, event] as const))('repeated events: %s', (_type, event) => {
  test('is reported at once, and every hour with its count', () => {
    const { clock, observe, lines } = openLog();
    for (; clock.ms < 90 * MINUTE_MS; clock.ms += MINUTE_MS) observe(event);
    expect(lines().map(({ event: name, suppressed }) => [name, suppressed])).toEqual([
      [event.type, undefined],
      [event.type, 59],
    ]);
    if ('deviceId' in event) observe({ ...event, deviceId: 'another' } as AppEvent);
    expect(lines()).toHaveLength('deviceId' in event ? 1 : 0);
  });
});

test('the end of a problem counts the lines about the problem, under a name of their own', () => {
  const { clock, observe, lines } = openLog();
  for (; clock.ms < 5 * MINUTE_MS; clock.ms += MINUTE_MS)
    observe({ type: 'key-refused', message: 'the key is revoked', waitMs: MINUTE_MS });
  observe({ type: 'key-changed' });
  const last = lines().at(-1);
  expect(last).toMatchObject({ event: 'key-changed', problem_lines_suppressed: 4 });
  expect(last).not.toHaveProperty('suppressed');
});

test('another key is reported when it comes, and when the API accepts it', () => {
  const { observe, reported } = openLog();
  observe({ type: 'key-refused', message: 'the key is revoked', waitMs: MINUTE_MS });
  observe({ type: 'key-changed' });
  observe({ type: 'key-accepted', isOther: true });
  expect(reported()).toEqual(['key-refused error 0', 'key-changed info 0', 'key-accepted info 0']);
});

test('requests that are tried again are reported anew once it was calm', () => {
  const { clock, observe, reported } = openLog();
  const retried = (waitMs: number): AppEvent => ({
    type: 'request-retried',
    request: 'GET /account',
    fault: 'unreachable',
    attempt: 1,
    waitMs,
    message: 'm',
  });
  observe(retried(30_000));
  observe(retried(1000));
  clock.ms += 11 * MINUTE_MS;
  observe(retried(30_000));
  expect(reported()).toEqual(['request-retried warn 0', 'request-retried warn 0']);
});

/**
 * Logs: what a line looks like, how loud what is, and that neither secrets nor hostile text get through.
 */
import { Buffer } from 'node:buffer';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { isGuessable, Secret } from '../../src/core/secret.ts';
import type { LineLevel } from '../../src/observe/event-row.ts';
import { eventLine } from '../../src/observe/event-table.ts';
import { createLogger, type LineWriter, type LoggerOptions, logEvents } from '../../src/observe/log.ts';

/** A log that accepts any field: the form of a line does not depend on its name. */
type AnyLogger = Record<LineLevel, (message: string, fields?: Record<string, unknown>) => void> & {
  takes: (level: LineLevel) => boolean;
  line: LineWriter;
};

/** A log in memory. */
function openLog(options: Partial<LoggerOptions> & { terminal?: boolean } = {}) {
  const written: string[] = [];
  const logger = createLogger({
    level: 'info',
    format: 'json',
    secrets: [],
    clock: { nowMs: () => Date.UTC(2026, 10, 21) },
    ...options,
    stream: { write: (text: string) => written.push(text), isTTY: options.terminal === true },
  });
  const writer =
    (level: LineLevel): AnyLogger[LineLevel] =>
    (message, fields = {}) =>
      logger.line(level, message, fields as unknown as Parameters<LineWriter>[2]);
  const any: AnyLogger = {
    takes: logger.takes,
    line: logger.line,
    error: writer('error'),
    warn: writer('warn'),
    info: writer('info'),
    debug: writer('debug'),
  };
  return { logger: any, written, lines: () => written.map((text) => JSON.parse(text)) };
}

describe('a line', () => {
  test('is one object of JSON with time, level, message and fields, and nothing of the machine', () => {
    const { logger, written, lines } = openLog();
    logger.info('hello', { count: 3, device_id: 'd-1', ok: true, none: null });
    expect(lines()).toEqual([
      {
        level: 'info',
        time: '2026-11-21T00:00:00.000Z',
        msg: 'hello',
        count: 3,
        device_id: 'd-1',
        ok: true,
        none: null,
      },
    ]);
    expect(written[0]).toMatch(/^[^\n]+\n$/);
  });

  test('is readable text on a terminal, coloured only there, and JSON elsewhere, unless configured otherwise', () => {
    const pretty = openLog({ format: 'pretty' });
    pretty.logger.warn('careful', { destination: 'influx' });
    expect(pretty.written).toEqual(['[2026-11-21 00:00:00] WARN: careful destination=influx\n']);
    const terminal = openLog({ format: 'auto', terminal: true });
    terminal.logger.warn('careful');
    expect(terminal.written[0]).toContain('\u001b[33mWARN\u001b[39m');
    const pipe = openLog({ format: 'auto' });
    pipe.logger.warn('careful');
    expect(pipe.lines()[0].level).toBe('warn');
  });

  test('has no colour on a terminal without colours, and none in a file that is pretty', () => {
    const terminal = openLog({ format: 'auto', terminal: true, noColour: true });
    const file = openLog({ format: 'pretty' });
    for (const { logger } of [terminal, file]) logger.warn('careful', { destination: 'influx' });
    expect([...terminal.written, ...file.written].join('')).not.toContain('\u001b');
  });

  test.each([
    ['words of the sentence', 'Stream alerts failed', { stream: 'alerts' }, 'Stream alerts failed'],
    ['a number of the sentence', 'skipped 86,924 points', { points: 86_924 }, 'skipped 86,924 points'],
    ['part of a word', 'devices are read', { stream: 'device' }, 'devices are read stream=device'],
    ['part of a number', 'waits 100 s', { attempt: 10 }, 'waits 100 s attempt=10'],
    ['a text with spaces', 'm', { before: 'a "b"', after: null }, 'm before="a \\"b\\""'],
    ['the end of a run', 'Sync complete: 2 devices', { event: 'run-ended', exit_code: 0 }, 'Sync complete: 2 devices'],
  ])('for people has only the fields that its sentence does not contain: %s', (_what, message, fields, shown) => {
    const { logger, written } = openLog({ format: 'pretty' });
    logger.info(message, fields);
    expect(written).toEqual([`[2026-11-21 00:00:00] INFO: ${shown}\n`]);
  });

  test('is left out below the level', () => {
    const { logger, lines } = openLog({ level: 'warn' });
    for (const level of ['debug', 'info', 'warn', 'error'] as const) logger[level](level);
    expect(lines().map(({ level }) => level)).toEqual(['warn', 'error']);
  });
});

describe('secrets', () => {
  const CANARY = 'canary"4242\\key/+=';
  const secrets = [new Secret(CANARY), new Secret('operator:pass-4343')];

  const forms: [string, string][] = [
    ['itself', CANARY],
    ['inside other words', `Authorization: Bearer ${CANARY}, refused`],
    ['as JSON', JSON.stringify({ key: CANARY })],
    ['in a URL', `https://x/${encodeURIComponent(CANARY)}/y`],
    ['in base64', Buffer.from(CANARY).toString('base64')],
    ['as the password alone', 'user operator, password pass-4343'],
    ['where a long text is cut', `${'x'.repeat(190)}${CANARY}`],
    ['twice', CANARY + CANARY],
    ['with what is invisible between its letters', `ca\u200bnary"42\u202e42\\key/+=`],
  ];

  function everythingWritten(text: string, hide: readonly Secret[]): string {
    return (['json', 'pretty'] as const)
      .map((format) => {
        const { logger, written } = openLog({ format, secrets: hide });
        logger.error(text, { text });
        logger.info('as a field', { [text]: 1 });
        return written.join('');
      })
      .join('');
  }

  test.each(forms)('are not written: %s', (_what, text) => {
    const output = everythingWritten(text, secrets);
    expect(output).toContain('[secret]');
    for (const part of ['4242', '4343', 'canary', Buffer.from(CANARY).toString('base64')])
      expect(output).not.toContain(part);
  });

  test.each(forms)('would be seen by this search if they were: %s', (_what, text) => {
    expect(everythingWritten(text, [])).toMatch(/4242|4343|canary|Y2FuYXJ5/);
  });

  test('of any letters are kept out of messages and fields', () => {
    const letters = fc.string({ unit: fc.constantFrom(...'ab"\\/%+$.*[](){}|^ :é'), minLength: 4, maxLength: 12 });
    // A plain word is not searched for in sentences: masked there, it would break them.
    const searched = letters.filter((secret) => !isGuessable(secret));
    fc.assert(
      fc.property(searched, fc.string({ maxLength: 20 }), (secret, around) => {
        const { logger, lines } = openLog({ secrets: [new Secret(secret)] });
        logger.info(`${around}${secret}${around}`, { field: secret });
        const [{ msg, field }] = lines();
        expect(msg.replaceAll('[secret]', '')).not.toContain(secret);
        expect(field).toBe('[secret]');
      }),
    );
  });
});

describe('a URL', () => {
  test.each([
    ['GET http://db:8086/query?q=SELECT+1&u=me&p=pw2 failed', 'GET http://db:8086/query… failed'],
    ['"https://me:pw3@host/api/v2/write?org=x#y"', '"https://host/api/v2/write…"'],
    ['see http://127.0.0.1:9464/ (me@host)', 'see http://127.0.0.1:9464/ (me@host)'],
  ])('is written without query and user: %s', (text, shown) => {
    const { logger, lines } = openLog();
    logger.warn(text, { url: text });
    expect(lines()).toMatchObject([{ msg: shown, url: shown }]);
  });
});

describe('text from outside', () => {
  const HOSTILE = 'a\u001b[2J\u001b]0;title\u0007b\r\nlevel=error\u202egnp\u2066\u0000\u009b31m\u2028c\ud800d';

  test.each(['json', 'pretty'] as const)('cannot break a line or steer a terminal (%s)', (format) => {
    const { logger, written } = openLog({ format });
    logger.info(HOSTILE, { name: HOSTILE });
    const output = written.join('');
    expect(output.split('\n')).toHaveLength(2);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there.
    expect(output).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/u);
    expect(output.isWellFormed()).toBe(true);
  });

  test('is cut to 200 characters', () => {
    const { logger, lines } = openLog();
    logger.info('long', { name: '🙂'.repeat(100_000) });
    expect([...lines()[0].name]).toHaveLength(200);
    expect(lines()[0].name.endsWith('🙂…')).toBe(true);
  });
});

describe('events', () => {
  const held = (waitMs: number): AppEvent => ({
    type: 'delivery-blocked',
    destination: 'i',
    lines: 5,
    message: 'w',
    hint: 'h',
    needsPerson: true,
    waitMs,
  });
  const retried = (waitMs: number, fault: 'unreachable' | 'throttled' = 'unreachable'): AppEvent => ({
    type: 'request-retried',
    request: 'GET /account',
    fault,
    attempt: 1,
    waitMs,
    message: 'm',
  });

  test.each([
    ['a retry after a second is on the level debug', retried(1000), 'debug'],
    ['a retry after ten seconds is on the level info', retried(10_000), 'info'],
    ['a retry after a minute warns', retried(60_000), 'warn'],
    ['a retry after five minutes warns as well: the problem may end by itself', retried(300_000), 'warn'],
    ['a retry for lack of quota never warns', retried(300_000, 'throttled'), 'info'],
    ['a destination that needs a person is an error from the start', held(1000), 'error'],
    ['a destination that may recover by itself warns', { ...held(300_000), needsPerson: false }, 'warn'],
    ['a destination without a remedy warns', { ...held(300_000), hint: '', needsPerson: false }, 'warn'],
    ['a service that does not answer warns', { type: 'api-outage', message: 'm', waitMs: 1_000_000 }, 'warn'],
    ['an API that does not answer warns', { type: 'api-outage', message: 'm', waitMs: 1_000_000 }, 'warn'],
    ['waiting for quota is a normal state', { type: 'quota-wait', untilMs: 8e9, reason: 'day' }, 'info'],
    ['a wait without an end does not stop the log', { type: 'quota-wait', untilMs: Infinity, reason: 'day' }, 'info'],
  ] as [string, AppEvent, string][])('%s', (_what, event, level) => {
    expect(eventLine(event).level).toBe(level);
  });

  test('include a remedy when a destination is blocked', () => {
    expect(eventLine(held(1000)).message).toBe('Delivery blocked: w; h');
  });

  test('include a remedy where the key has no scope for it', () => {
    expect(eventLine({ type: 'stream-off', stream: 'alerts', scope: 'alerts:read' }).message).toMatch(
      /lacks the scope alerts:read, so .* Add the scope to the key \(takes effect within an hour\), or write another key into the file of api\.key_file \(takes effect at once\)$/,
    );
  });

  test('the last named new device comes with the number of others', () => {
    const words = (more: number): string =>
      eventLine({ type: 'device-appeared', deviceId: 'd', name: 'Cold room 1', more }).message;
    expect([words(0), words(1), words(22)]).toEqual([
      'New device',
      'New device (1 more is not logged separately)',
      'New device (22 more are not logged separately)',
    ]);
  });

  test('list what a new destination will get', () => {
    const words = (points: number, known = false): string =>
      eventLine({ type: 'destination-new', destination: 'influx', known, before: null, points }).message;
    expect(words(0)).toBe('New destination: it gets everything that is read from now on, new readings and history');
    expect(words(7)).toBe('New destination: the archive is sent to it');
    expect(words(7, true)).toBe('Destination is configured again: it gets the points that it does not have yet');
  });

  test('that repeat themselves are written ten times a minute, then counted', () => {
    const { logger, lines } = openLog();
    let nowMs = 0;
    const observe = logEvents(logger, { monoMs: () => nowMs });
    for (let index = 0; index < 1000; index += 1) observe({ type: 'device-gone', deviceId: `d-${index}` });
    expect(lines()).toHaveLength(10);
    nowMs = 60_000;
    observe({ type: 'device-gone', deviceId: 'd-next' });
    expect(lines().at(-1)).toMatchObject({ device_id: 'd-next', suppressed: 990 });
    observe({ type: 'device-returned', deviceId: 'd-1' });
    expect(lines()).toHaveLength(12);
  });

  test('of values that no point can hold are reported once an hour for each device and reason', () => {
    const { logger, lines } = openLog();
    let nowMs = 0;
    const observe = logEvents(logger, { monoMs: () => nowMs });
    for (; nowMs < 90 * 60_000; nowMs += 60_000) {
      observe({ type: 'values-dropped', deviceId: 'd', count: 1, reason: 'not a finite number' });
    }
    observe({ type: 'values-dropped', deviceId: 'e', count: 1, reason: 'not a finite number' });
    expect(lines().map(({ level, device_id, suppressed }) => [level, device_id, suppressed])).toEqual([
      ['warn', 'd', undefined],
      ['warn', 'd', 59],
      ['warn', 'e', undefined],
    ]);
  });

  test('are named for programs, and not for people', () => {
    for (const format of ['json', 'pretty'] as const) {
      const { logger, written } = openLog({ format });
      logEvents(logger, { monoMs: () => 0 })({ type: 'device-gone', deviceId: 'd' });
      expect(written.join('').includes('"event":"device-gone"')).toBe(format === 'json');
    }
  });

  test('that were suppressed are all there on the level debug', () => {
    const { logger, lines } = openLog({ level: 'debug' });
    const observe = logEvents(logger, { monoMs: () => 0 });
    for (let index = 0; index < 30; index += 1) observe({ type: 'device-gone', deviceId: 'd' });
    expect(lines()).toHaveLength(30);
  });
});

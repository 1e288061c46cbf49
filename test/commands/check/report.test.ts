/** The lines of `--check`: how they are made, in which order they stand, and what they add up to. */
import { describe, expect, test } from 'vitest';
import { noteLearnt } from '../../../src/commands/check/findings.ts';
import {
  checkReport,
  createNotes,
  errorText,
  isShown,
  noteNotTried,
  REQUESTS,
  readApiFindings,
  shownLines,
} from '../../../src/commands/check/report.ts';
import { UserError } from '../../../src/core/faults.ts';

describe('the lines of an area', () => {
  test('have a remedy and an exit code exactly where they warn or fail', () => {
    const notes = createNotes('destination', 'second');
    notes.ok('kind', 'InfluxDB', { version: '2.7' });
    notes.skip('write', 'not asked');
    notes.warn('retention', { message: 'short', remedy: 'Make it longer.' });
    notes.fail('token', { message: 'refused', remedy: 'Make another.', exitCode: 78 });
    notes.fail('url', { message: 'not reached', remedy: 'Start it.' });
    expect(notes.lines.map(({ status, remedy, exit_code: code }) => [status, remedy, code])).toEqual([
      ['ok', null, 0],
      ['skip', null, 0],
      ['warn', 'Make it longer.', 0],
      ['fail', 'Make another.', 78],
      ['fail', 'Start it.', 1],
    ]);
    expect(notes.lines.every(({ area, destination }) => area === 'destination' && destination === 'second')).toBe(true);
    expect(notes.lines.map((line) => 'facts' in line)).toEqual([true, false, false, false, false]);
  });

  test('include the text of an error, and name the troubleshooting page for an error without a remedy', () => {
    const advised = new UserError('lock: another process has it', 'Stop that one. Then go on.', 1);
    expect(errorText(advised)).toEqual({
      message: 'lock: another process has it',
      remedy: 'Stop that one. Then go on.',
    });
    expect(errorText(new UserError('No key', 'set one.', 1, { joint: ':' })).remedy).toBe('Set one.');
    // A full stop inside of the words decides nothing.
    expect(errorText(new UserError('It stopped. Nobody knows why.', null, 1))).toEqual({
      message: 'It stopped. Nobody knows why.',
      remedy: 'See docs/troubleshooting.md.',
    });
  });
});

describe('the result', () => {
  const line = (name: string, exitCode: 0 | 1 | 77 | 78) =>
    exitCode === 0
      ? createNotes('api').ok(name, '')
      : createNotes('api').fail(name, { message: '', remedy: '', exitCode });

  test.each([
    [[], 0],
    [[0, 0], 0],
    [[0, 1], 1],
    [[1, 77, 1], 77],
    [[77, 78, 1], 78],
  ] as const)('of lines with the exit codes %j is %i', (codes, exitCode) => {
    const report = checkReport(
      '1.0',
      3,
      codes.map((code) => line('x', code)),
    );
    expect(report).toMatchObject({ exit_code: exitCode, ok: exitCode === 0, requests: 3, version: '1.0' });
  });

  test('has the areas in the order of the journey, the access of the dashboards at the end', () => {
    const areas = ['configuration', 'state', 'api', 'destination', 'page', 'dashboards'] as const;
    const lines = areas.toReversed().map((area) => createNotes(area).ok('x', ''));
    expect(checkReport('1.0', 0, lines).checks.map(({ area }) => area)).toEqual(areas);
  });

  test('keeps areas and destinations together, in each the lines as they came', () => {
    const [state, a, b] = [createNotes('state'), createNotes('destination', 'a'), createNotes('destination', 'b')];
    b.fail('b worst', { message: '', remedy: '' });
    a.ok('a first', '');
    a.skip('a second', '');
    a.warn('a worse', { message: '', remedy: '' });
    a.ok('a third', '');
    state.ok('state', '');
    const { checks } = checkReport('1.0', 0, [...b.lines, ...a.lines, ...state.lines]);
    expect(checks.map(({ name }) => name)).toEqual(['state', 'b worst', 'a first', 'a second', 'a worse', 'a third']);
  });
});

test('missing rate-limit headers are no warning, because an operator cannot add them', () => {
  const unseen = { waitHeaders: [], challengeHeaders: [], pageTaken: null, pageRejected: null };
  for (const [rateLimit, status] of [
    [null, 'skip'],
    ['none', 'ok'],
    ['some', 'ok'],
    ['all', 'ok'],
  ] as const) {
    const notes = createNotes('api');
    noteLearnt(notes, { ...unseen, rateLimit }, null);
    const line = notes.lines.find(({ name }) => name === 'rate-limit headers');
    expect(line).toMatchObject({ status, remedy: null, facts: { seen: rateLimit } });
    expect(line !== undefined && isShown(line)).toBe(false);
  }
});

test('without --verbose a line for developers is shown only if it is not in order', () => {
  const notes = createNotes('state');
  notes.ok('integrity', '');
  notes.skip('bounds', '');
  notes.ok('directory', '');
  notes.warn('name', { message: '', remedy: '' });
  notes.fail('integrity', { message: '', remedy: '' });
  expect(notes.lines.map(isShown)).toEqual([false, false, true, true, true]);
});

describe('findings of a daemon, maybe of another version', () => {
  const good = createNotes('api').ok('key', 'accepted');
  test('are read as they are written', () => {
    const written: unknown = JSON.parse(JSON.stringify({ requests: 2, checks: [good], more: 'of a later version' }));
    expect(readApiFindings(written)).toEqual({ requests: 2, checks: [good] });
  });

  test.each<[string, unknown]>([
    ['nothing', null],
    ['a list', [good]],
    ['no count', { checks: [good] }],
    ['no lines', { requests: 1 }],
    ['another area', { requests: 1, checks: [{ ...good, area: 'moon' }] }],
    ['another status', { requests: 1, checks: [{ ...good, status: 'fine' }] }],
    ['another exit code', { requests: 1, checks: [{ ...good, exit_code: 2 }] }],
    ['a destination that is no name', { requests: 1, checks: [{ ...good, destination: 1 }] }],
    ['a remedy that is no text', { requests: 1, checks: [good, { ...good, remedy: ['x'] }] }],
  ])('are not understood where there is %s', (_what, value) => {
    expect(readApiFindings(value)).toBeNull();
  });
});

describe('requests that were not sent', () => {
  const lines = (...before: string[]) => {
    const notes = createNotes('api');
    for (const name of before) notes.fail(name, { message: 'the job failed', remedy: 'Wait.' });
    for (const scope of ['account:read', 'devices:read']) noteNotTried(notes, scope, 'the state cannot be used');
    return notes.lines;
  };
  const shown = (checks: ReturnType<typeof lines>) =>
    shownLines(checks).map(({ status, name, message }) => [status, name, message]);

  test('have one line in all', () => {
    const whole = 'not tried: account:read, devices:read (the state cannot be used)';
    expect(shown(lines())).toEqual([['skip', REQUESTS, whole]]);
    expect(shown(lines('key'))).toEqual([
      ['fail', 'key', 'the job failed'],
      ['skip', REQUESTS, whole],
    ]);
  });

  test('have none where a line on the requests has the reason', () => {
    expect(shown(lines(REQUESTS))).toEqual([['fail', REQUESTS, 'the job failed']]);
  });

  test('keep their line where there is only one', () => {
    const [one] = lines();
    expect(shown(one === undefined ? [] : [one])).toEqual([
      ['skip', 'account:read', 'not tried: the state cannot be used'],
    ]);
  });
});

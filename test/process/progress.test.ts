/**
 * Progress of work on stored data: a bar on a terminal of 80 columns, one line a minute elsewhere,
 * and the summary of `--export --json` beside the data. The program's own run in this process, over a state of some
 * size.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseArguments } from '../../src/cli/argv.ts';
import { type Filled, runCommandFilled } from './filled.ts';

const COLUMNS = 80;

let filled: Filled;
beforeAll(() => {
  filled = runCommandFilled(mkdtempSync(join(tmpdir(), 'tidemark-progress-')));
});
afterAll(() => rmSync(filled.directory, { recursive: true, force: true }));

/** The texts of the terminal's last line, one after the other. */
function drawn(stderr: string): string[] {
  return stderr
    .split('\r\u001b[K')
    .slice(1)
    .filter((line) => line !== '');
}

function expectBar(stderr: string, words: RegExp): void {
  const lines = drawn(stderr).filter((line) => /^\[[#-]{16}\]/.test(line));
  expect(lines.length, stderr).toBeGreaterThan(0);
  expect(lines.at(-1)).toMatch(words);
  for (const line of lines) expect(line.length).toBeLessThan(COLUMNS);
  expect(stderr.endsWith('\r\u001b[K') || stderr.endsWith('\n'), 'and it is taken away').toBe(true);
}

describe('on a terminal', () => {
  test('--export into a pipe shows a bar; onto the terminal itself it does not', async () => {
    const piped = await filled.run(['--export', 'ndjson'], { isTTY: true });
    expect(piped.code).toBe(0);
    expectBar(piped.stderr, /^\[[#-]{16}\] \d+ %, .*[\d,]+ lines, \d\/5 devices, [\d,]+\/s$/);
    const shown = await filled.run(['--export', 'ndjson'], { isTTY: true, isStdoutTTY: true });
    expect(drawn(shown.stderr).filter((line) => /^\[[#-]{16}\]/.test(line))).toEqual([]);
    expect(shown.stdout).toBe(piped.stdout);
  });

  test('--backup shows a bar, and leaves one file', async () => {
    const file = join(filled.directory, 'copy.db');
    const { code, stderr, stdout } = await filled.run(['--backup', file], { isTTY: true });
    expect([code, stdout]).toEqual([0, expect.stringContaining('complete and checked')]);
    expectBar(stderr, /^\[[#-]{16}\] \d+ %, .*[\d.]+ (?:bytes|[KMG]iB) copied/);
    expect(readdirSync(filled.directory).toSorted()).toEqual(['copy.db', 'state']);
  });

  test('--quarantine drop shows how many of the selected items it has examined', async () => {
    const refused = filled.refuse(3000);
    const { code, stderr } = await filled.run(['--quarantine', 'drop', '--reason', 'of the test'], { isTTY: true });
    expect(code, stderr).toBe(0);
    expectBar(stderr, new RegExp(`^\\[[#-]{16}\\] \\d+ %, .*[\\d,]+ of ${refused.toLocaleString('en-GB')} done$`));
  });

  test('--quarantine drop lets others have their turn; a signal stops it, and the rest stays', async () => {
    const refused = filled.refuse(30_000);
    const stopped = await filled.run(['--quarantine', 'drop', '--reason', 'of the test', '--json'], {
      stopAfterMs: 150,
    });
    const { outcome, destinations } = JSON.parse(stopped.stdout);
    expect([stopped.code, outcome]).toEqual([3, 'interrupted']);
    const left = JSON.parse((await filled.run(['--quarantine', '--reason', 'of the test', '--json'])).stdout).points;
    expect(destinations[0].dropped + left).toBe(refused);
    expect(left).toBeGreaterThan(0);
    expect((await filled.run(['--quarantine', 'drop', '--reason', 'of the test'])).code).toBe(0);
  });

  test('--forget shows how far it is where that takes long', async () => {
    filled.leave('dev_000004');
    const { code, stderr } = await filled.run(['--forget', '--device', 'dev_000004'], { isTTY: true });
    expect(code, stderr).toBe(0);
    const db = new Database(join(filled.directory, 'state', 'tidemark.db'), { readonly: true });
    expect(db.prepare("SELECT count(*) FROM block WHERE device_id = 'dev_000004'").pluck().get()).toBe(0);
    db.close();
    for (const line of drawn(stderr).filter((each) => each.startsWith('[#') || each.startsWith('[-')))
      expect(line.length).toBeLessThan(COLUMNS);
  });
});

describe('in a pipe', () => {
  test('--export --json reports in one line of standard error what standard output has', async () => {
    for (const format of ['csv', 'ndjson', 'lp'] as const) {
      const { code, stdout, stderr } = await filled.run(['--export', format, '--json', '--device', 'dev_000001']);
      const lines = stdout.split('\n').length - 1 - (format === 'csv' ? 1 : 0);
      expect(stderr.split('\n')).toEqual([expect.stringMatching(/^\{.*\}$/), '']);
      expect([code, JSON.parse(stderr)]).toEqual([
        0,
        {
          outcome: 'complete',
          exit_code: 0,
          complete: true,
          format,
          readings: lines / 2,
          points: lines,
          devices: 1,
          from: null,
          to: null,
          bytes: Buffer.byteLength(stdout),
          seconds: expect.any(Number),
          not_in_archive: null,
        },
      ]);
      expect(lines).toBeGreaterThan(1000);
    }
  });

  test('--export --json also reports an empty range, a stopped export and a closed pipe', async () => {
    const none = await filled.run(['--export', 'csv', '--json', '--from', '2001-01-01', '--to', '2001-02-01']);
    expect(JSON.parse(none.stderr)).toMatchObject({
      complete: true,
      points: 0,
      readings: 0,
      from: '2001-01-01T00:00:00Z',
      to: '2001-02-01T00:00:00Z',
      bytes: none.stdout.length,
    });
    const stopped = await filled.run(['--export', 'ndjson', '--json'], { stopAfter: 2 });
    expect([stopped.code, JSON.parse(stopped.stderr)]).toMatchObject([
      3,
      { outcome: 'interrupted', exit_code: 3, complete: false },
    ]);
    const unread = await filled.run(['--export', 'ndjson', '--json'], { closeAfter: 2 });
    expect([unread.code, JSON.parse(unread.stderr)]).toMatchObject([0, { outcome: 'unread', complete: false }]);
    expect(JSON.parse(unread.stderr).bytes).toBe(Buffer.byteLength(unread.stdout));
  });

  test('nothing is drawn, and a task of less than a minute prints nothing', async () => {
    const file = join(filled.directory, 'second.db');
    const { code, stderr } = await filled.run(['--backup', file]);
    expect([code, stderr]).toEqual([0, '']);
  });
});

test('--json works with every command that reports something', () => {
  for (const args of [
    ['--export', 'csv'],
    ['--backup', 'x'],
    ['--quarantine'],
    ['--verify'],
    ['--replay'],
    ['--status'],
  ])
    expect(parseArguments([...args, '--json'])).toMatchObject({ json: true });
});

/**
 * The program as it is installed: what `npm run build` makes of the source does what the source does.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { VERSION } from '../../src/core/status.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { mistakesOfLine } from '../support/log-lines.ts';
import { KEY, MAIN, openBench, openStage, type Run, SOURCE, start, until } from './support.ts';

const place = mkdtempSync(join(tmpdir(), 'tidemark-built-'));
afterAll(() => rmSync(place, { recursive: true, force: true }));

/** The files that the pages load: some of them are read from beside the program, some from a library's package. */
const ASSETS = ['page.css', 'mark.svg', 'live.js', 'charts.js', 'uplot.js', 'uplot.css'];

/** Waits until a run prints the address of its page. */
async function pageOf(run: Run, find: () => RegExpExecArray | null): Promise<string> {
  await until('it tells where the page is', () => find() !== null || run.child.exitCode !== null);
  return find()?.[1] ?? '';
}

describe('the built program', () => {
  test('runs as a command, and prints its version and its help', async () => {
    expect(readFileSync(MAIN, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
    const version = await start(['--version']).ended;
    expect(version).toMatchObject({ code: 0, stdout: `${VERSION}\n`, stderr: '' });
    const [built, source] = await Promise.all([start(['--help']).ended, start(['--help'], { program: SOURCE }).ended]);
    expect(built.stdout).toBe(source.stdout);
  });

  test('syncs with a YAML file and writes a log for a terminal', async () => {
    await using stage = await openStage();
    const file = join(stage.directory, 'tidemark.yaml');
    writeFileSync(file, 'log: {format: pretty}\nsync: {history: 1h}\n');
    const { code, stdout, stderr } = await stage.run(['--once', '--json', '--config', file]);
    expect([code, stderr]).toEqual([0, expect.stringContaining('INFO')]);
    expect(JSON.parse(stdout)).toMatchObject({ gaps: [] });
    expect(JSON.parse(stdout).points_archived).toBeGreaterThan(100);
    expect(stderr + stdout).not.toContain(KEY);
    const status = await stage.run(['--status']);
    expect([status.code, status.stderr]).toEqual([0, '']);
  });

  test.runIf(influxdAvailable())('delivers, and its log has no line but its own', async () => {
    await using bench = await openBench();
    await using stage = await openStage({ bench });
    const { code, stderr } = await stage.run(['--once', '--log-level', 'debug']);
    expect(code).toBe(0);
    const lines = stderr.split('\n').filter((line) => line !== '');
    expect(lines.flatMap(mistakesOfLine)).toEqual([]);
    expect(lines.some((line) => line.includes('"event":"lines-delivered"'))).toBe(true);
    const check = await stage.run(['--check'], { env: { TIDEMARK_LISTEN: '127.0.0.1:0' } });
    expect([check.code, check.stderr]).toEqual([0, '']);
  });

  test.each([
    ['built', MAIN],
    ['as its sources, without a build', SOURCE],
  ])('shows its pages with all that they load, and its metrics: %s', async (_how, program) => {
    await using stage = await openStage();
    const run = stage.start([], { program, env: { TIDEMARK_LISTEN: '127.0.0.1:0' } });
    const url = await pageOf(run, () => /"status_page":"(http:[^"]+)"/.exec(run.stderr()));
    await until('it is ready', async () => (await fetch(`${url}readyz`)).status === 200);
    for (const path of ['', 'status.json', 'metrics', ...ASSETS.map((name) => `assets/${name}`)]) {
      const request = async (): Promise<unknown> => {
        const answer = await fetch(new URL(path, url));
        return [answer.status, (await answer.text()).length > 50];
      };
      // On a busy machine the server may ask for another try in a second (503).
      await expect.poll(request, { interval: 500, message: path }).toEqual([200, true]);
    }
    run.child.kill('SIGTERM');
    expect((await run.ended).code).toBe(0);
  });

  test('shows the page of a demo as its sources; demo.test.ts tries the built one', async () => {
    const demo = start(['--demo'], { program: SOURCE, cwd: place, env: { TMPDIR: place } });
    try {
      const url = await pageOf(demo, () => /^Status page: (http:\S+\/)\n/.exec(demo.stdout()));
      const { status } = await fetch(url);
      expect(status).toBe(200);
      demo.child.kill('SIGTERM');
      expect((await demo.ended).code).toBe(0);
    } finally {
      demo.child.kill('SIGKILL');
      await demo.ended;
    }
  });
});

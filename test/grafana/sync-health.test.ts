/**
 * The dashboard of the daemon's own metrics against a real Prometheus that reads a real daemon: every query is
 * answered, and every metric of a working daemon appears.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { start, until } from '../process/support.ts';
import { prometheusAvailable, startPrometheus } from '../support/prometheus.ts';
import { startVictoria, victoriaAvailable } from '../support/victoria.ts';
import { asksInflux, readBoards, shownPanels } from './support/boards.ts';
import { drawnOf, pictureOf, valuesOf } from './support/grafana.ts';
import { lineFrames, marksOf } from './support/promql-frames.ts';
import { openPromBoard } from './support/promql-viewer.ts';
import { inColor } from './support/story.ts';

const ALERTS = readFileSync('config/prometheus/tidemark-alerts.yml', 'utf8');

const [BOARD] = readBoards().filter((board) => !asksInflux(board));

/** The content of a panel of the present, as Grafana's library shows it. */
async function shown(url: string, title: string): Promise<string[]> {
  const toMs = Date.now();
  if (BOARD === undefined) throw new Error('no dashboard');
  const viewer = await openPromBoard(BOARD, { url, range: { fromMs: toMs - 600_000, toMs } });
  const panel = shownPanels(BOARD).find((one) => one.title === title);
  if (panel === undefined) throw new Error(`no panel ${title}`);
  const frames = await viewer.look(panel);
  if (panel.type === 'stat') return (await valuesOf(panel, frames)).map(inColor);
  const { fields, rows } = await pictureOf(panel, frames);
  return Array.from({ length: rows }, (_, row) =>
    fields.map(({ title, cells }) => `${title} ${cells[row]?.text}`).join(', '),
  );
}

/** The starts that are marked in a range of so many hours. */
async function startsIn(url: string, hours: number) {
  const toMs = Date.now();
  const [restarts] = BOARD?.annotations.list ?? [];
  const [panel] = PANELS.filter(({ type }) => type === 'timeseries');
  const [target] = panel?.targets ?? [];
  if (BOARD === undefined || restarts === undefined || panel === undefined || target === undefined) {
    throw new Error('no annotation');
  }
  const range = { fromMs: toMs - hours * 3_600_000, toMs: toMs + hours * 60_000 };
  const viewer = await openPromBoard(BOARD, { url, range });
  const { expr = '' } = restarts.target;
  // A mark has room for a pixel.
  const asked = { ...panel, interval: '60s', maxDataPoints: 1900, targets: [{ ...target, expr }] };
  return marksOf(restarts, await viewer.look(asked));
}

async function expectRunning(url: string): Promise<void> {
  expect(await shown(url, 'Daemons down')).toEqual(['0, green']);
  expect(await shown(url, 'Healthy')).toEqual(['yes, green']);
  expect(await shown(url, 'Lag of the archive')).toEqual(['initial sync, blue']);
  // The watchdog alone: the rules are loaded.
  expect(await shown(url, 'Alert rules')).toEqual(['none fires, green']);
  expect(await shown(url, 'Polling stopped')).toEqual(['no, green']);
  expect(await shown(url, 'Jobs: progress')).toEqual([]);
  expect(await shown(url, 'Firing rules about Tidemark')).toEqual([]);
  expect(await shown(url, 'Daemons')).toEqual([expect.stringMatching(/Answers yes, Version [\w.-]+, Running for \d/)]);
}

/** A daemon that is down does not leave the page: what it was last is not shown as what it is. */
async function expectDown(url: string): Promise<void> {
  expect(await shown(url, 'Daemons down')).toEqual(['1, red']);
  for (const title of ['Ready', 'Healthy']) expect(await shown(url, title), title).toEqual(['no, red']);
  for (const title of [
    'Lag of the archive',
    'Coverage',
    'Polling stopped',
    'Lag of the databases',
    'In quarantine',
    'Silent',
  ]) {
    expect(await shown(url, title), title).toEqual([expect.stringMatching(/^No metrics.*, red$/)]);
  }
  expect(await shown(url, 'Why not ready')).toEqual([expect.stringMatching(/^Reason no answer, Daemon \S+$/)]);
  expect(await shown(url, 'Daemons')).toEqual([expect.stringMatching(/Answers no, Version [\w.-]+$/)]);
}

test('no line is drawn through the steps at which the daemon was not answered for', async () => {
  const panel = BOARD === undefined ? undefined : shownPanels(BOARD).find(({ title }) => title === 'Devices by state');
  const [target] = panel?.targets ?? [];
  if (panel === undefined || target === undefined) throw new Error('no panel');
  const seconds = [0, 15, 30, 75, 90];
  const answer = [{ metric: { state: 'live' }, values: seconds.map((at) => [at, '3'] as const) }];
  const frames = lineFrames(answer, target, 15_000);
  const { fields } = await drawnOf(panel, frames, 90_000);
  const line = fields.find(({ title }) => title === 'live');
  expect(line?.cells.map(({ value }) => value)).toEqual([3, 3, 3, null, null, 3, 3]);
  expect(line?.config.custom?.spanNulls).toBe(false);
});

const PANELS = readBoards()
  .filter((board) => !asksInflux(board))
  .flatMap((board) => shownPanels(board));

/** Metrics that stay empty in a demo without failures. */
const QUIET = new Set([
  ...[
    'Why not ready A',
    'Faults per minute A',
    'Jobs: progress A',
    'Jobs: time left A',
    'Databases B',
    'Firing rules about Tidemark A',
    'Devices by state B',
    'Devices by state C',
  ],
  // A lag is in one of three queries, by how it compares with its target; in the initial sync there is none.
  ...[
    'Lag of the archive A',
    'Lag of the archive B',
    'Lag of the archive C',
    'Lag over time A',
    'Lag over time B',
    'Lag of the databases B',
    'Lag of the databases C',
  ],
]);

/** Metrics that may be present or not, by the progress of the demo. */
const MAYBE = /^(?:Rejected per minute|Waits for quota|Missing time|State and disk)/;

test.runIf(prometheusAvailable() && victoriaAvailable())(
  'every panel of the sync health shows a daemon at work',
  async () => {
    await using victoria = await startVictoria();
    const temporary = mkdtempSync(join(tmpdir(), 'tidemark-sync-health-'));
    const startMs = Date.now();
    const run = start(['--demo'], {
      cwd: temporary,
      env: { TMPDIR: temporary, TIDEMARK_INFLUX_URL: victoria.url, TIDEMARK_INFLUX_KIND: 'victoriametrics' },
    });
    try {
      await until('it tells where the page is', () => run.stdout().includes('\n') || run.child.exitCode !== null);
      const target = /^Status page: http:\/\/(\S+)\/\n/.exec(run.stdout())?.[1] ?? '';
      await using prometheus = await startPrometheus({ target, rules: { 'alerts.yml': ALERTS } });
      const put = (expr: string): string =>
        expr
          .replaceAll('$__rate_interval', '10s')
          .replaceAll('$__interval', '10s')
          .replaceAll('$__range', '10m')
          .replaceAll('$instance', '.*');
      const ask = async (expr: string): Promise<ReadonlyMap<string, number>> => await prometheus.query(put(expr));
      await until('points are delivered', async () => {
        const delivered = await ask(
          'rate(tidemark_write_duration_seconds_count{instance=~"$instance"}[$__rate_interval]) > 0',
        );
        return delivered.size > 0;
      });
      // The first delivered points are facts of the workspace, before any device is in a state.
      await until('devices are in a state', async () => (await ask('tidemark_devices > 0')).size > 0);
      const empty: string[] = [];
      for (const { title, targets = [] } of PANELS) {
        for (const { refId, expr = '' } of targets) {
          if ((await ask(expr)).size === 0 && !MAYBE.test(title)) empty.push(`${title} ${refId}`);
        }
      }
      expect(empty.filter((name) => !QUIET.has(name))).toEqual([]);
      // No line of a state that no device was in: red at 0 would look like an alarm.
      const [states] = PANELS.find(({ title }) => title === 'Devices by state')?.targets ?? [];
      const drawn = [...(await ask(states?.expr ?? '')).keys()].join();
      expect(drawn).toContain('catching-up');
      expect(drawn).not.toContain('unreachable');
      await expectRunning(prometheus.url);
      // At the moment when the process began, however wide the steps are.
      for (const hours of [1, 7 * 24]) {
        const marks = await startsIn(prometheus.url, hours);
        expect(marks).toEqual([
          { fromMs: expect.any(Number), toMs: marks[0]?.fromMs, title: `Tidemark at ${target} was started` },
        ]);
        expect(Math.abs((marks[0]?.fromMs ?? 0) - startMs), `${hours} hours`).toBeLessThan(10_000);
      }
      run.child.kill('SIGKILL');
      await until('Prometheus has seen the end', async () => (await ask('up{job="tidemark"} == 0')).size > 0);
      await expectDown(prometheus.url);
    } finally {
      run.child.kill('SIGKILL');
      await run.ended;
      rmSync(temporary, { recursive: true, force: true });
    }
  },
);

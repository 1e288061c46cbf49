/**
 * `npm run dashboard-pictures [influx | states | victoria | sync]...`: the pictures of grafana/README.md, all of them
 * unless some are named. The demo's workspace, synced by the real daemon into a real InfluxDB, drawn with Grafana's own
 * components in a real Chromium.
 *
 * The components are no dependency of this project, for their size: they are installed below `.test-output` for this
 * alone.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { build, type Plugin } from 'rolldown';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/core/time.ts';
import { smallerPng } from '../../page/png.ts';
import { start, until } from '../../process/support.ts';
import type { Bench } from '../../support/bench.ts';
import { startChromium } from '../../support/chromium.ts';
import { startPrometheus } from '../../support/prometheus.ts';
import { openBench } from '../../support/rig.ts';
import { startVictoria } from '../../support/victoria.ts';
import { board as boardOf, INFLUX_BOARDS } from '../support/asked.ts';
import { asksInflux, type Board, type Panel, readBoards } from '../support/boards.ts';
import type { Frame } from '../support/frames.ts';
import { VICTORIA_BOARDS } from '../support/promql-asked.ts';
import { openPromBoard, type PromViewer } from '../support/promql-viewer.ts';
import { fillVictoria } from '../support/victoria-workspaces.ts';
import { type Choose, openBoard } from '../support/viewer.ts';
import { demo, fill, silentHub } from '../support/workspaces.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const WORK = join(ROOT, '.test-output', 'grafana-ui');
const OUT = join(ROOT, 'docs', 'images');
const VERSION = '13.2.2';
const PACKAGES = [
  ...['ui', 'data', 'schema', 'i18n', 'e2e-selectors'].map((name) => `@grafana/${name}@${VERSION}`),
  ...['react@19', 'react-dom@19', 'rxjs@7'],
];
const WIDTH = 1700;
const MOST_HEIGHT = 1350;
/** Above the panels, and of one row of the grid, with the gap: as `draw.mjs` has them. */
const TOP = 52;
const ROW = 38;
const MOST_BYTES = 250_000;
const SCRAPED_MS = 8 * MINUTE_MS;
/** So long the daemon has run: no chart of the last day begins in the middle. */
const FILLED_MS = 25.1 * HOUR_MS;

const FONT = '@font-face { font-family: Inter; src: local("Inter"), local("Liberation Sans"), local("DejaVu Sans"); }';

/** The choices on the dashboards. */
const CHOSEN: Readonly<Record<string, string | readonly string[]>> = {
  device: ['add-bre-05'],
  one_sensor: 'humidity',
};

/** Styles and the code editor are left out; the default of a CommonJS package is where its importer looks for it. */
const PARTS: Plugin = {
  name: 'parts',
  resolveId(id, importer) {
    if (/\.(?:css|ttf)$/.test(id) || id.startsWith('monaco-editor')) return '\0empty';
    const isScrollbars = id === 'react-custom-scrollbars-2' && importer?.includes('@grafana') === true;
    return isScrollbars ? '\0scrollbars' : null;
  },
  load(id) {
    if (id === '\0empty') return 'export default {}; export const editor = {}, languages = {};';
    if (id !== '\0scrollbars') return null;
    const path = JSON.stringify(createRequire(join(WORK, '_')).resolve('react-custom-scrollbars-2'));
    return `import all from ${path}; export * from ${path}; export default all.default ?? all;`;
  },
};

/** The program of the page. */
async function bundle(): Promise<string> {
  mkdirSync(WORK, { recursive: true });
  if (!existsSync(join(WORK, 'node_modules', '@grafana', 'ui'))) {
    writeFileSync(join(WORK, 'package.json'), '{"private": true}');
    const flags = ['--ignore-scripts', '--legacy-peer-deps', '--no-audit', '--no-fund'];
    execFileSync('npm', ['install', ...flags, ...PACKAGES], { cwd: WORK, stdio: 'inherit' });
  }
  cpSync(join(import.meta.dirname, 'draw.mjs'), join(WORK, 'draw.mjs'));
  cpSync(join(ROOT, 'test', 'grafana', 'support', 'pipeline.ts'), join(WORK, 'support', 'pipeline.ts'));
  const define = { 'process.env.NODE_ENV': '"production"', global: 'globalThis' };
  const file = join(WORK, 'draw.js');
  await build({
    ...{ cwd: WORK, input: 'draw.mjs', platform: 'browser', logLevel: 'silent', plugins: [PARTS] },
    ...{ shimMissingExports: true, moduleTypes: { '.svg': 'text' }, transform: { define } },
    output: { file, format: 'iife', codeSplitting: false },
  });
  return readFileSync(file, 'utf8');
}

interface Drawn {
  readonly panel: Panel;
  readonly name: string;
  readonly place: Panel['gridPos'];
  readonly frames: readonly Frame[];
}

/** A dashboard with queries, in either language. */
interface Asked {
  readonly board: Board;
  readonly range: { readonly fromMs: number; readonly toMs: number };
  readonly viewer: Pick<PromViewer, 'lists' | 'look'>;
}

/** Panels that only Grafana's own program can draw. */
const OF_THE_PROGRAM: ReadonlySet<string> = new Set(['alertlist', 'geomap', 'state-timeline']);

/** The panels without those that cannot be drawn: the one on the left gets their room. */
function drawable({ panels }: Board): Panel[] {
  const left = panels.filter(({ type }) => OF_THE_PROGRAM.has(type));
  return panels
    .filter((panel) => !left.includes(panel))
    .map((panel) => {
      const { x, y, w, h } = panel.gridPos;
      const beside = left.find(({ gridPos }) => gridPos.x === x + w && gridPos.y === y && gridPos.h === h);
      return beside === undefined ? panel : { ...panel, gridPos: { x, y, h, w: w + beside.gridPos.w } };
    });
}

/**
 * Where a picture ends: below as many complete panels as fit, above the first gap and the first chart without lines.
 */
function endOf({ panels: all }: Board, drawn: readonly Drawn[]): number {
  const panels = drawn.map(({ panel }) => panel);
  const isFilled = (y: number): boolean =>
    panels
      .filter(({ gridPos }) => gridPos.y <= y && y < gridPos.y + gridPos.h)
      .reduce((sum, one) => sum + one.gridPos.w, 0) >= 24;
  const gaps = all.map(({ gridPos }) => gridPos.y).filter((y) => !isFilled(y));
  const empty = drawn.filter(
    ({ panel, frames }) => panel.type === 'timeseries' && frames.every(({ length }) => length === 0),
  );
  const most = Math.min((MOST_HEIGHT - TOP) / ROW, ...gaps, ...empty.map(({ place }) => place.y));
  const edges = panels.map(({ gridPos: { y, h } }) => y + h).filter((edge) => edge <= most);
  const isWhole = (edge: number): boolean =>
    panels.every(({ gridPos: { y, h } }) => y >= edge || y + h <= edge) &&
    panels.some(({ type, gridPos: { y, h } }) => y + h === edge && type !== 'row');
  return Math.max(...edges.filter(isWhole));
}

/** The panels that may fit into the picture, with their answers; a repeated one for the first two values of its variable. */
async function answered({ board, viewer }: Asked): Promise<Drawn[]> {
  const drawn: Drawn[] = [];
  for (const panel of drawable(board).filter(({ gridPos }) => TOP + gridPos.y * ROW < MOST_HEIGHT)) {
    const { gridPos, repeat, title } = panel;
    const name = title.replace('$one_sensor', String(CHOSEN['one_sensor']));
    if (panel.targets === undefined || panel.targets.length === 0)
      drawn.push({ panel, name, place: gridPos, frames: [] });
    else if (repeat === undefined) drawn.push({ panel, name, place: gridPos, frames: await viewer.look(panel) });
    else {
      const values = (viewer.lists.get(repeat) ?? [])
        .map(({ value }) => value)
        .filter((value) => !/batt|rssi/.test(value));
      for (const [index, value] of values.slice(0, 2).entries()) {
        const frames = await viewer.look(panel, value);
        drawn.push({ panel, name: value, place: { ...gridPos, x: index * gridPos.w }, frames });
      }
    }
  }
  return drawn;
}

const program = await bundle();
await using browser = await startChromium();

/** @param state a word for the name of the file, where the dashboard has pictures of several states. */
async function take(asked: Asked, state = ''): Promise<void> {
  const { board, range } = asked;
  const drawn = await answered(asked);
  const end = endOf(board, drawn);
  const panels = drawn.filter(({ place }) => place.y < end);
  const size = { width: WIDTH, height: TOP + end * ROW };
  const page = await browser.newPage({ viewport: size, timezoneId: 'UTC', locale: 'en-GB' });
  page.on('pageerror', (error) => process.stderr.write(`${board.uid}: ${error.message}\n`));
  // A page of its own origin: the components keep settings in the browser.
  const body = '<!doctype html><body style="margin:0"><div id="root"></div></body>';
  await page.route('**/*', (route) => route.fulfill({ contentType: 'text/html', body }));
  await page.clock.setFixedTime(range.toMs);
  await page.goto('http://grafana.invalid/');
  await page.addStyleTag({ path: join(WORK, 'node_modules', 'uplot', 'dist', 'uPlot.min.css') });
  // The components measure in their own font and show the next best: both have to be the same.
  await page.addStyleTag({ content: FONT });
  await page.evaluate("Promise.all(['400 16px Inter', '500 16px Inter'].map((font) => document.fonts.load(font)))");
  await page.addScriptTag({ content: program });
  await page.evaluate((what) => (globalThis as unknown as { draw(of: unknown): Promise<void> }).draw(what), {
    ...{ title: board.title, panels, range, width: size.width },
  });
  await page.waitForTimeout(2000);
  const png = smallerPng(await page.screenshot());
  if (png.length > MOST_BYTES) throw new Error(`${board.uid}: ${png.length} bytes`);
  writeFileSync(join(OUT, `${board.uid.replace('tidemark', 'dashboard')}${state}.png`), png);
  await page.close();
}

const choose: Choose = (variable) => CHOSEN[variable];
const ofDay = (toMs: number) => ({ fromMs: toMs - DAY_MS, toMs });

/** The dashboards in InfluxQL. */
async function takeInflux(bench: Bench): Promise<void> {
  using filled = await fill(bench, demo, { forMs: FILLED_MS, historyMs: 2 * DAY_MS });
  const range = ofDay(filled.nowMs);
  const place = { url: bench.influxd.url, database: filled.database };
  for (const board of INFLUX_BOARDS)
    await take({ board, range, viewer: await openBoard(board, { place, range, choose }) });
}

/** The fleet 25 minutes after the daemon was stopped, and while a hub is silent. */
async function takeStates(bench: Bench): Promise<void> {
  const board = boardOf('fleet');
  for (const [state, world, afterMs] of [
    ['-stopped', demo, 25 * MINUTE_MS],
    ['-silent-hub', silentHub, 0],
  ] as const) {
    using filled = await fill(bench, world, { forMs: 4 * HOUR_MS, historyMs: 2 * DAY_MS });
    const range = ofDay(filled.nowMs + afterMs);
    const place = { url: bench.influxd.url, database: filled.database };
    await take({ board, range, viewer: await openBoard(board, { place, range, choose }) }, state);
  }
}

/** Those in PromQL, of the same workspace in a VictoriaMetrics. */
async function takeVictoria(bench: Bench): Promise<void> {
  await using shown = await fillVictoria(bench, demo, { forMs: FILLED_MS, historyMs: 2 * DAY_MS });
  const range = ofDay(shown.filled.nowMs);
  const { url } = shown.victoria;
  for (const board of VICTORIA_BOARDS)
    await take({ board, range, viewer: await openPromBoard(board, { url, range, choose }) });
}

/** That of the daemon's own metrics, of a demo that a Prometheus has read for some minutes. */
async function takeSyncHealth(): Promise<void> {
  await using victoria = await startVictoria();
  const env = { TIDEMARK_INFLUX_URL: victoria.url, TIDEMARK_INFLUX_KIND: 'victoriametrics' };
  const run = start(['--demo'], { env });
  try {
    await until('it has a page', () => run.stdout().includes('\n') || run.child.exitCode !== null);
    const target = /^Status page: http:\/\/(\S+)\/\n/.exec(run.stdout())?.[1] ?? '';
    const rules = { 'alerts.yml': readFileSync(join(ROOT, 'config', 'prometheus', 'tidemark-alerts.yml'), 'utf8') };
    await using prometheus = await startPrometheus({ target, rules });
    await setTimeout(SCRAPED_MS);
    const toMs = Date.now();
    const range = { fromMs: toMs - SCRAPED_MS, toMs };
    const { url } = prometheus;
    for (const board of readBoards().filter((one) => !asksInflux(one)))
      await take({ board, range, viewer: await openPromBoard(board, { url, range }) });
  } finally {
    run.child.kill('SIGKILL');
    await run.ended;
  }
}

await using bench = await openBench();
const only = process.argv.slice(2);
const parts = { influx: takeInflux, states: takeStates, victoria: takeVictoria, sync: takeSyncHealth };
for (const [name, part] of Object.entries(parts)) if (only.length === 0 || only.includes(name)) await part(bench);

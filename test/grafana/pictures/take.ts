/**
 * `npm run dashboard-pictures`: the pictures of grafana/README.md. The demo's workspace, synced by the real daemon into a real
 * InfluxDB, drawn with Grafana's own components in a real Chromium.
 *
 * The components are no dependency of this project, for their size: they are installed below `.test-output` for this alone.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { build, type Plugin } from 'rolldown';
import { DAY_MS, HOUR_MS } from '../../../src/core/time.ts';
import { smallerPng } from '../../page/png.ts';
import { startChromium } from '../../support/chromium.ts';
import { openBench } from '../../support/rig.ts';
import { board } from '../support/asked.ts';
import type { Board, Panel } from '../support/boards.ts';
import type { Frame } from '../support/frames.ts';
import { openBoard, type Place } from '../support/viewer.ts';
import { demo, fill } from '../support/workspaces.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const WORK = join(ROOT, '.test-output', 'grafana-ui');
const OUT = join(ROOT, 'docs', 'images');
const VERSION = '13.2.2';
const PACKAGES = [
  ...['ui', 'data', 'schema', 'i18n', 'e2e-selectors'].map((name) => `@grafana/${name}@${VERSION}`),
  ...['react@19', 'react-dom@19', 'rxjs@7'],
];
const SIZE = { width: 1400, height: 1000 };
const MOST_BYTES = 200_000;

/** The dashboards, and which device is chosen on them. */
const PICTURES = ['start', 'fleet', 'device', 'sensors', 'alerts', 'workspace'];
const CHOSEN: Readonly<Record<string, string | readonly string[]>> = {
  device: ['add-ham-01'],
  one_sensor: 'temperature',
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

/** The panels that fit into the picture, with their answers; a repeated one for the first two values of its variable. */
async function answered(one: Board, place: Place, range: { fromMs: number; toMs: number }): Promise<Drawn[]> {
  const viewer = await openBoard(one, { place, range, choose: (variable) => CHOSEN[variable] });
  const drawn: Drawn[] = [];
  for (const panel of one.panels.filter(({ gridPos }) => gridPos.y * 38 < SIZE.height)) {
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
await using bench = await openBench();
using filled = await fill(bench, demo, { forMs: 6.1 * HOUR_MS });
await using browser = await startChromium();
const range = { fromMs: filled.nowMs - DAY_MS, toMs: filled.nowMs };
for (const uid of PICTURES) {
  const one = board(uid);
  const panels = await answered(one, { url: bench.influxd.url, database: filled.database }, range);
  const page = await browser.newPage({ viewport: SIZE, timezoneId: 'UTC' });
  page.on('pageerror', (error) => process.stderr.write(`${uid}: ${error.message}\n`));
  // A page of its own origin: the components keep settings in the browser.
  const body = '<!doctype html><body style="margin:0"><div id="root"></div></body>';
  await page.route('**/*', (route) => route.fulfill({ contentType: 'text/html', body }));
  await page.clock.setFixedTime(filled.nowMs);
  await page.goto('http://grafana.invalid/');
  await page.addStyleTag({ path: join(WORK, 'node_modules', 'uplot', 'dist', 'uPlot.min.css') });
  await page.addScriptTag({ content: program });
  await page.evaluate((what) => (globalThis as unknown as { draw(of: unknown): Promise<void> }).draw(what), {
    ...{ title: one.title, panels, range, width: SIZE.width },
  });
  await page.waitForTimeout(2000);
  const png = smallerPng(await page.screenshot());
  if (png.length > MOST_BYTES) throw new Error(`${uid}: ${png.length} bytes`);
  writeFileSync(join(OUT, `dashboard-${uid}.png`), png);
  await page.close();
}

/**
 * The routes of the status page: parses a path and its query, gets the facts, and returns them as HTML or JSON; or
 * returns one of the files that the pages load. Only those files are cached.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { PageFacts } from '../core/page-facts.ts';
import { type Served, servedJson } from '../core/ports.ts';
import { withShownLags } from '../core/status.ts';
import { deviceMain, PERIODS, readPeriod } from './device.ts';
import { devicesSection, readDevicesQuery } from './devices.ts';
import { type Frame, type Html, html, MARK, renderDocument } from './html.ts';
import { type OverviewParts, standingSection, tileSection, toneOf, toneText } from './overview.ts';
import {
  alertsSection,
  allEvents,
  deliverySection,
  eventsSection,
  quotaSection,
  readLevel,
  streamsSection,
  workSection,
} from './panels.ts';
import { STYLE } from './style.ts';

/** The sources of the pages, and the links in their frame. */
export interface StatusPageParts {
  /** Called once for each page. */
  readonly overview: () => OverviewParts;
  readonly facts: PageFacts;
  /** Links to the dashboards and the documentation, as far as they are configured. */
  readonly links: Frame['links'];
}

/** Returns the response for a path; `null` if the path is not one of the page's. */
type StatusPage = (path: string, params: URLSearchParams) => Promise<Served | null>;

/** Creates the routes. Between requests they keep only the files that were read. */
export function createStatusPage(parts: StatusPageParts): StatusPage {
  const files = new Map<string, Served>();
  return async (path, params) => {
    if (path.startsWith('/assets/')) return assetAt(files, path);
    return (await pageAt(parts, path, params)) ?? (await jsonAt(parts.facts, path, params));
  };
}

async function pageAt(parts: StatusPageParts, path: string, params: URLSearchParams): Promise<Served | null> {
  const { overview, facts } = parts;
  switch (path) {
    case '/':
      return overviewPage(parts, params);
    case '/device':
      return await devicePage(parts, params);
    case '/alerts': {
      const seen = overview();
      const main = html`<h1 class="hidden">Alerts</h1>${alertsSection(facts.alerts(), { now: seen.report.generated_at, isWhole: true })}`;
      return serveOk(parts, seen, { title: 'Alerts', here: 'alerts', main });
    }
    case '/events': {
      const seen = overview();
      const main = html`<h1 class="hidden">Events</h1>${allEvents(facts.events(), readLevel(params), seen.report.generated_at)}`;
      return serveOk(parts, seen, { title: 'Events', here: 'events', main });
    }
    default:
      return null;
  }
}

function overviewPage(parts: StatusPageParts, params: URLSearchParams): Served {
  const { overview, facts } = parts;
  const seen = overview();
  const { report } = seen;
  const now = report.generated_at;
  const main = html`<h1 class="hidden">Overview</h1>
${standingSection(seen)}
${tileSection(report)}
<div class="columns">
${quotaSection(report.allowance, now)}
${deliverySection({ ...report, destinations: withShownLags(report).destinations, about: report.summary_problem, now })}
${streamsSection(report)}
${workSection(report)}
</div>
${devicesSection(facts.devices(readDevicesQuery(params)), { now, ageSeconds: seen.ageSeconds })}
<div class="columns">
${alertsSection(facts.alerts(), { now, isWhole: false })}
${eventsSection(facts.events(), now)}
</div>`;
  return serveOk(parts, seen, {
    title: `${toneText(toneOf(seen))}: ${report.workspace_name ?? report.workspace_id ?? 'starting'}`,
    here: 'overview',
    main,
  });
}

async function devicePage(parts: StatusPageParts, params: URLSearchParams): Promise<Served> {
  const { overview, facts } = parts;
  const id = params.get('id') ?? '';
  if (id === '') return errorPage(parts, 400, 'The device id is missing: use /device?id=…');
  const period = readPeriod(params);
  const page = await facts.device(id, PERIODS[period]);
  if (page === null) return errorPage(parts, 404, 'There is no device with this id.');
  const { device } = page;
  return servePage(200, {
    ...pageFrame(parts, overview()),
    title: device.device_name,
    generatedAt: device.generated_at,
    here: null,
    main: deviceMain(page, period),
    hasCharts: true,
  });
}

function errorPage(parts: StatusPageParts, status: number, text: string): Served {
  const main: Html = html`<section class="standing busy"><h1>${status === 404 ? 'Not found' : 'Bad request'}</h1><p class="summary">${text}</p><p><a href="/#devices">All devices</a></p></section>`;
  return servePage(status, { ...pageFrame(parts, parts.overview()), title: text, here: null, main, isLive: false });
}

function serveOk(parts: StatusPageParts, seen: OverviewParts, frame: Pick<Frame, 'title' | 'here' | 'main'>): Served {
  return servePage(200, { ...pageFrame(parts, seen), ...frame });
}

function pageFrame(
  { links }: StatusPageParts,
  { report }: OverviewParts,
): Pick<Frame, 'workspace' | 'version' | 'generatedAt' | 'links'> {
  const { workspace_id, workspace_name, version, generated_at } = report;
  return { workspace: { id: workspace_id, name: workspace_name }, version, generatedAt: generated_at, links };
}

function servePage(status: number, frame: Frame): Served {
  return { status, type: 'text/html; charset=utf-8', body: renderDocument(frame) };
}

async function jsonAt(facts: PageFacts, path: string, params: URLSearchParams): Promise<Served | null> {
  switch (path) {
    case '/devices.json':
      return servedJson(200, facts.devices(readDevicesQuery(params)));
    case '/device.json': {
      const id = params.get('id') ?? '';
      if (id === '') return servedJson(400, { error: 'The device id is missing: use /device.json?id=…' });
      const page = await facts.device(id, PERIODS[readPeriod(params)]);
      return page === null ? servedJson(404, { error: 'There is no device with this id.' }) : servedJson(200, page);
    }
    case '/alerts.json':
      return servedJson(200, facts.alerts());
    case '/events.json':
      return servedJson(200, facts.events());
    default:
      return null;
  }
}

const CSS = 'text/css; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';

const packages = createRequire(import.meta.url);

const own = (file: string) => (): string =>
  readFileSync(fileURLToPath(new URL(`client/${file}`, import.meta.url)), 'utf8');
const ofUplot = (file: string) => (): string => readFileSync(packages.resolve(`uplot/dist/${file}`), 'utf8');

/**
 * The files that the pages load, by path. They are read once, from the folder of this module (as source or compiled)
 * and from the package of the chart library.
 */
const SOURCES: ReadonlyMap<string, { readonly type: string; readonly read: () => string }> = new Map([
  ['/assets/page.css', { type: CSS, read: () => STYLE }],
  ['/assets/mark.svg', { type: 'image/svg+xml', read: () => MARK }],
  ['/assets/live.js', { type: SCRIPT, read: own('live.js') }],
  ['/assets/zone.js', { type: SCRIPT, read: own('zone.js') }],
  ['/assets/charts.js', { type: SCRIPT, read: own('charts.js') }],
  ['/assets/uplot.js', { type: SCRIPT, read: ofUplot('uPlot.iife.min.js') }],
  ['/assets/uplot.css', { type: CSS, read: ofUplot('uPlot.min.css') }],
]);

/**
 * Returns the file at a path, with its hash as the ETag; `null` if there is none.
 *
 * @param files the files that were read before; this one is added.
 */
function assetAt(files: Map<string, Served>, path: string): Served | null {
  const known = files.get(path);
  if (known !== undefined) return known;
  const source = SOURCES.get(path);
  if (source === undefined) return null;
  // The compiler may name a source map, which is not served; a browser's developer tools would request it.
  const body = source.read().replace(/^\/\/# sourceMappingURL=.*$/m, '');
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  const made: Served = { status: 200, type: source.type, body, etag };
  files.set(path, made);
  return made;
}

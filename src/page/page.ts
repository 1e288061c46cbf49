/**
 * The status page and what belongs to it: which address shows what. Reads the address at the border, asks for the facts
 * and puts them into markup or JSON; keeps nothing.
 */
import type { PageFacts } from '../core/page-facts.ts';
import { type Served, servedJson } from '../core/ports.ts';
import { assetAt } from './assets.ts';
import { deviceMain } from './device.ts';
import { devicesSection } from './devices.ts';
import { type Html, html } from './html.ts';
import { documentOf, type Frame } from './layout.ts';
import { type StandingParts, standing, tileSection, toneOf, toneWords } from './overview.ts';
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
import { readDevicesQuery, readSpan, SPANS } from './query.ts';

/** What the pages are made from. */
export interface StatusPageParts {
  /** The overview, one for a whole page. */
  readonly overview: () => StandingParts;
  readonly facts: PageFacts;
  /** Where else to look: the dashboards, the documentation; as far as that is configured. */
  readonly links: Frame['links'];
}

/** @returns the answer to an address, or `null` for one that is not of the page. */
type StatusPage = (path: string, params: URLSearchParams) => Promise<Served | null>;

/** Creates the pages; nothing is kept between requests. */
export function createStatusPage(parts: StatusPageParts): StatusPage {
  return async (path, params) => {
    if (path.startsWith('/assets/')) return assetAt(path);
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
      return shown(parts, seen, { title: 'Alerts', here: 'alerts', main });
    }
    case '/events': {
      const seen = overview();
      const main = html`<h1 class="hidden">Events</h1>${allEvents(facts.events(), readLevel(params), seen.report.generated_at)}`;
      return shown(parts, seen, { title: 'Events', here: 'events', main });
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
${standing(seen)}
${tileSection(report)}
<div class="columns">
${quotaSection(report.allowance, now)}
${deliverySection({ ...report, now })}
${streamsSection(report)}
${workSection(report)}
</div>
${devicesSection(facts.devices(readDevicesQuery(params)), { now, ageSeconds: seen.ageSeconds })}
<div class="columns">
${alertsSection(facts.alerts(), { now, isWhole: false })}
${eventsSection(facts.events(), now)}
</div>`;
  return shown(parts, seen, {
    title: `${toneWords(toneOf(seen))}: ${report.workspace_name ?? report.workspace_id ?? 'starting'}`,
    here: 'overview',
    main,
  });
}

async function devicePage(parts: StatusPageParts, params: URLSearchParams): Promise<Served> {
  const { overview, facts } = parts;
  const id = params.get('id') ?? '';
  if (id === '') return refusal(parts, 400, 'The address names no device: /device?id=… does.');
  const span = readSpan(params);
  const page = await facts.device(id, SPANS[span]);
  if (page === null) return refusal(parts, 404, 'No device of this id is known.');
  const { device } = page;
  return pageOf(200, {
    ...frameOf(parts, overview()),
    title: device.device_name,
    generatedAt: device.generated_at,
    here: null,
    main: deviceMain(page, span),
    hasCharts: true,
  });
}

function refusal(parts: StatusPageParts, status: number, words: string): Served {
  const main: Html = html`<section class="standing busy"><h1>${status === 404 ? 'Not found' : 'Not understood'}</h1><p class="summary">${words}</p><p><a href="/#devices">All devices</a></p></section>`;
  return pageOf(status, { ...frameOf(parts, parts.overview()), title: words, here: null, main, isLive: false });
}

function shown(parts: StatusPageParts, seen: StandingParts, frame: Pick<Frame, 'title' | 'here' | 'main'>): Served {
  return pageOf(200, { ...frameOf(parts, seen), ...frame });
}

function frameOf(
  { links }: StatusPageParts,
  { report }: StandingParts,
): Pick<Frame, 'workspace' | 'version' | 'generatedAt' | 'links'> {
  const { workspace_id, workspace_name, version, generated_at } = report;
  return { workspace: { id: workspace_id, name: workspace_name }, version, generatedAt: generated_at, links };
}

function pageOf(status: number, frame: Frame): Served {
  return { status, type: 'text/html; charset=utf-8', body: documentOf(frame) };
}

async function jsonAt(facts: PageFacts, path: string, params: URLSearchParams): Promise<Served | null> {
  switch (path) {
    case '/devices.json':
      return servedJson(200, facts.devices(readDevicesQuery(params)));
    case '/device.json': {
      const id = params.get('id') ?? '';
      if (id === '') return servedJson(400, { error: 'The address names no device: /device.json?id=… does.' });
      const page = await facts.device(id, SPANS[readSpan(params)]);
      return page === null ? servedJson(404, { error: 'No device of this id is known.' }) : servedJson(200, page);
    }
    case '/alerts.json':
      return servedJson(200, facts.alerts());
    case '/events.json':
      return servedJson(200, facts.events());
    default:
      return null;
  }
}

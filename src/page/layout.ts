/** The frame of every page: head, title bar, the line that reports a lost connection, and the footer. */
import { type Html, html, moment, NOTHING, name } from './html.ts';

/** How often a page without scripts renews itself. */
const RENEW_SECONDS = 15;

/** The parts that differ from page to page. */
export interface Frame {
  /** The text before "Tidemark" in the browser's title. */
  readonly title: string;
  /** Each `null` while it is not known. */
  readonly workspace: { readonly id: string | null; readonly name: string | null };
  readonly version: string;
  /** When the data of the page was collected. */
  readonly generatedAt: string;
  /** Which of the pages of the title bar this is. */
  readonly here: 'overview' | 'alerts' | 'events' | null;
  /** Links to the dashboards and the documentation, if they are configured. */
  readonly links: readonly { readonly label: string; readonly url: string }[];
  readonly main: Html;
  /** Whether it draws charts. */
  readonly hasCharts?: boolean;
  /** Whether it renews itself. */
  readonly isLive?: boolean;
}

const PAGES = [
  ['overview', '/', 'Overview'],
  ['alerts', '/alerts', 'Alerts'],
  ['events', '/events', 'Events'],
] as const;

/** The small picture of the title bar and of the browser's tab. */
export const MARK =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" width="24" height="24" aria-hidden="true"><rect width="32" height="32" rx="7" fill="#14707d"/><path d="M4 13c4-5 8-5 12 0s8 5 12 0M4 21c4-5 8-5 12 0s8 5 12 0" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round"/></svg>';

function workspaceName({ id, name: known }: Frame['workspace']): Html {
  if (known === null) return html`<span class="workspace">Workspace ${id === null ? 'not known yet' : name(id)}</span>`;
  return html`<span class="workspace" title="${id ?? ''}">${name(known)}</span>`;
}

function navigation({ here, links }: Pick<Frame, 'here' | 'links'>): Html {
  const pages = PAGES.map(
    ([key, path, label]) => html`<a href="${path}"${key === here && html` aria-current="page"`}>${label}</a>`,
  );
  const others = links.map(({ label, url }) => html`<a href="${url}" rel="noreferrer">${label}</a>`);
  return html`<nav aria-label="Pages">${pages}${others}</nav>`;
}

/** The whole document. */
export function documentOf({
  title,
  workspace,
  version,
  generatedAt,
  here,
  links,
  main,
  hasCharts,
  isLive = true,
}: Frame): string {
  const charts =
    hasCharts === true
      ? html`<link rel="stylesheet" href="/assets/uplot.css"><script src="/assets/uplot.js" defer></script>`
      : NOTHING;
  const live = isLive
    ? html`<noscript><meta http-equiv="refresh" content="${RENEW_SECONDS}"></noscript>${charts}<script type="module" src="/assets/live.js"></script>`
    : NOTHING;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} – Tidemark</title>
<link rel="icon" href="/assets/mark.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/page.css">
${live}
</head>
<body data-version="${version}">
<a class="skip" href="#main">To the content</a>
<header class="top"><a class="brand" href="/">${{ html: MARK }}<span>Tidemark</span></a>
${workspaceName(workspace)}
${navigation({ here, links })}
<span class="asof" id="asof">as of ${moment(generatedAt, generatedAt)} <span id="zone-name" data-keep>UTC</span></span>${isLive && html`<button type="button" id="zone" hidden>UTC</button><button type="button" id="pause" aria-pressed="false" hidden>Pause updates</button>`}</header>
<p id="connection" role="alert" hidden></p>
<main id="main" tabindex="-1">
${main}
</main>
<footer><span>Tidemark ${version}. <span id="zone-note">All times are UTC.</span></span> <nav aria-label="For programs"><a href="/status.json">status.json</a> <a href="/devices.json">devices.json</a> <a href="/alerts.json">alerts.json</a> <a href="/events.json">events.json</a> <a href="/metrics">metrics</a> <a href="/healthz">healthz</a> <a href="/readyz">readyz</a></nav></footer>
</body>
</html>
`.html;
}

/**
 * The status page: one `StatusReport` as plain HTML that works without scripts and asks for nothing from outside.
 *
 * Promise: whatever a device, a destination or a server calls itself is shown as text and stays text.
 */
import { createHash } from 'node:crypto';
import { lackWords } from '../core/lacks.ts';
import type { AllowanceWindow, DestinationReport, DeviceStatus, StatusReport, StreamStatus } from '../core/status.ts';
import { plainText } from '../core/text.ts';
import { spanWords } from './progress.ts';

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #888; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.4rem; margin: 0; }
h2 { font-size: 1rem; margin: 2rem 0 .5rem; }
.summary { font-size: 1.15rem; margin: .5rem 0 1rem; }
.soft { color: var(--soft); }
.numbers { display: flex; flex-wrap: wrap; gap: .5rem 2rem; margin: 0; padding: 0; list-style: none; }
.numbers b { display: block; font-size: 1.3rem; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem 1rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
td { overflow-wrap: anywhere; }
`;

/** What may be used on the page, for its `Content-Security-Policy`: its one style, and nothing else at all. */
export const PAGE_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/** A piece of HTML that is safe as it stands. */
interface Html {
  readonly html: string;
}

type Value = string | number | Html | readonly Html[];

const ENTITIES: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&#39;'],
]);

/** Fills values into markup: everything that is not `Html` itself is text, and is escaped. */
function html(markup: TemplateStringsArray, ...values: readonly Value[]): Html {
  return { html: markup.map((piece, index) => piece + render(values[index] ?? '')).join('') };
}

function render(value: Value): string {
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return plainText(value).replace(/[&<>"']/g, (sign) => ENTITIES.get(sign) ?? '');
  return 'html' in value ? value.html : value.map(render).join('');
}

const NOTHING = html``;

/** Rows beyond this are left to `/status.json`: a page has to stay readable. */
const MAX_ROWS = 500;
const MAX_GAPS = 3;

/** The whole page. It renews itself every few seconds. */
export function statusPage(report: StatusReport): string {
  const { workspace_id, version, generated_at, summary, devices } = report;
  const left = devices.length - MAX_ROWS;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="5">
<title>Tidemark: ${workspace_id ?? 'starting'}</title>
<style>${{ html: STYLE }}</style>
</head>
<body>
<h1>Tidemark</h1>
<p class="summary">${summary}</p>
<p class="soft">Workspace <bdi>${workspace_id ?? 'not known yet'}</bdi>, as of ${generated_at}</p>
${numbers(report)}
<h2>Streams</h2>
${table(['Stream', 'State', 'Last read'], report.streams.map(streamRow))}
<h2>Destinations</h2>
${report.destinations.length === 0 ? html`<p>None: the archive alone is filled.</p>` : destinationTable(report)}
<h2>Devices</h2>
${table(['Device', 'State', 'Lag', 'Held', 'Gaps'], devices.slice(0, MAX_ROWS).map(deviceRow))}
${left > 0 ? html`<p>${left} more are in <a href="/status.json">/status.json</a>.</p>` : NOTHING}
<p class="soft">Tidemark ${version} · <a href="/status.json">/status.json</a> · <a href="/healthz">/healthz</a> · <a href="/readyz">/readyz</a></p>
</body>
</html>
`.html;
}

function numbers({ totals, allowance }: StatusReport): Html {
  const share = totals.covered_share;
  const entries: [string, string][] = [
    [share === null ? 'not known' : `${Math.floor(share * 1000) / 10} %`, 'of the wanted history is held'],
    [`${grouped(totals.devices_complete)} of ${grouped(totals.devices)}`, 'devices are complete'],
    [grouped(totals.archived_readings), 'readings archived'],
    [grouped(totals.rejected_records), 'records set aside'],
    [grouped(totals.requests), 'requests'],
    [windowWords(allowance.minute), 'requests this minute'],
    [windowWords(allowance.day), 'requests this day'],
  ];
  const items = entries.map(([value, words]) => html`<li><b>${value}</b>${words}</li>`);
  const waiting = allowance.waiting_until;
  const wait = waiting === null ? NOTHING : html`<p>Waiting for allowance until ${waiting}.</p>`;
  return html`<ul class="numbers">${items}</ul>${wait}`;
}

/** Spent of what may be spent; the plan's own figure beside it. */
function windowWords({ limit, budget, spent }: AllowanceWindow): string {
  if (budget === null) return grouped(spent);
  return `${grouped(spent)} of ${grouped(budget)}${limit === null ? '' : ` (plan: ${grouped(limit)})`}`;
}

function streamRow({ name, state, reason, last_read_at }: StreamStatus): Html {
  const words = reason === null ? state : `${state}: ${reason}`;
  return html`<tr><td>${name}</td><td>${words}</td><td>${last_read_at ?? 'not yet'}</td></tr>`;
}

function destinationTable({ destinations }: StatusReport): Html {
  const rows = table(['Name', 'State', 'Delivered', 'Pending', 'Quarantined'], destinations.map(destinationRow));
  const lacks = destinations.flatMap(({ name, lacks }) =>
    lacks.map((lack) => html`<p class="soft">${lackWords(name, lack)}.</p>`),
  );
  return html`${rows}${lacks}`;
}

function destinationRow({ name, held, delivered_points, pending_points, quarantined }: DestinationReport): Html {
  const counts = [delivered_points ?? 0, pending_points, quarantined].map(
    (count) => html`<td class="number">${grouped(count)}</td>`,
  );
  return html`<tr><td><bdi>${name}</bdi></td><td>${held === null ? 'moving' : `held: ${held}`}</td>${counts}</tr>`;
}

function deviceRow({ device_id, device_name, state, lag_seconds, covered, gaps }: DeviceStatus): Html {
  const id = device_name === device_id ? NOTHING : html` <span class="soft"><bdi>${device_id}</bdi></span>`;
  const [first, last] = [covered[0], covered.at(-1)];
  const held = first === undefined || last === undefined ? 'nothing yet' : `${first[0]} to ${last[1]}`;
  const lag = lag_seconds === null ? '' : spanWords(lag_seconds * 1000);
  const shown = gaps.slice(0, MAX_GAPS).map(({ from, to, reason }) => html`<div>${from} to ${to}: ${reason}</div>`);
  const more = gaps.length > MAX_GAPS ? html`<div>and ${gaps.length - MAX_GAPS} more</div>` : NOTHING;
  return html`<tr><td><bdi>${device_name}</bdi>${id}</td><td>${state}</td><td class="number">${lag}</td><td>${held}</td><td>${shown}${more}</td></tr>
`;
}

/** Columns that hold numbers, by their heads. */
const NUMBERS = ['Lag', 'Delivered', 'Pending', 'Quarantined'];

function table(heads: readonly string[], rows: readonly Html[]): Html {
  const cells = heads.map((head) =>
    NUMBERS.includes(head) ? html`<th class="number" scope="col">${head}</th>` : html`<th scope="col">${head}</th>`,
  );
  return html`<div class="wide"><table><thead><tr>${cells}</tr></thead><tbody>
${rows}</tbody></table></div>`;
}

function grouped(count: number): string {
  return count.toLocaleString('en-GB');
}

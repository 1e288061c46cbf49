/**
 * Builds the parts that all pages share: markup with values in it, tables, formatted numbers, durations and times,
 * coverage bars, and the frame of a page. Times are UTC; the script converts those of `timeElement` to the zone of the
 * reader.
 *
 * Promise: every name of a device, sensor, destination or server is shown as text: without markup, control or direction
 * characters, and with limited length.
 */

import { unitOf } from '../core/sensor-units.ts';
import { type DeviceStatus, deviceStateText, type ShownState, shownState } from '../core/status.ts';
import { counted, duration, plainText } from '../core/text.ts';

/** Markup in which all text is already escaped. */
export interface Html {
  readonly html: string;
}

/** A value in markup: text (escaped and cut), a number, or markup. `null` and `false` add nothing. */
type Value = string | number | null | false | Html | readonly Html[];

const ENTITIES: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&#39;'],
]);

/**
 * Fills values into markup: everything that is not `Html` itself is text, and is escaped. Attributes go in double
 * quotes.
 */
export function html(markup: TemplateStringsArray, ...values: readonly Value[]): Html {
  return { html: markup.map((piece, index) => piece + render(values[index] ?? '')).join('') };
}

function render(value: Value): string {
  if (value === null || value === false) return '';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return escapeHtml(plainText(value));
  return 'html' in value ? value.html : value.map(render).join('');
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => ENTITIES.get(sign) ?? '');
}

/** Text with a maximum length other than the usual 200 characters: sentences, or names in narrow columns. */
export function text(value: string, maxLength: number): Html {
  return { html: escapeHtml(plainText(value, maxLength)) };
}

/** A text in which no line break separates a number from its unit. */
export function joinUnits(value: string): string {
  return value.replace(/(\d) (?=(?:s|min|h|days)\b)/g, '$1\u00a0');
}

/** Markup that is written in the program. */
function literal(markup: string): Html {
  return { html: markup };
}

/** A name with any writing direction and length. Its direction does not affect the text after it. */
export function name(value: string, maxLength = 60): Html {
  return html`<bdi>${text(value, maxLength)}</bdi>`;
}

/**
 * A link's target on this server.
 *
 * @param query members that are `null` or empty are left out.
 */
export function target(path: string, query: Readonly<Record<string, string | number | null>> = {}): Html {
  const pairs = Object.entries(query).flatMap(([key, value]) =>
    value === null || value === '' ? [] : [`${key}=${encodeURIComponent(String(value).toWellFormed())}`],
  );
  return { html: escapeHtml(pairs.length === 0 ? path : `${path}?${pairs.join('&')}`) };
}

export const NOTHING: Html = { html: '' };

interface TableParts {
  /** The name for screen readers. */
  readonly label: string;
  /** The visible caption. */
  readonly caption?: string;
  readonly heads: readonly string[];
  /** The heads of the columns that hold numbers. */
  readonly numbers?: readonly string[];
  readonly rows: readonly Html[];
}

/** A table that may be wider than the screen. It scrolls by itself, also with the keyboard. */
export function table({ label, caption, heads, numbers = [], rows }: TableParts): Html {
  const cells = heads.map(
    (head) => html`<th scope="col"${numbers.includes(head) && html` class="number"`}>${head}</th>`,
  );
  const title = caption === undefined ? NOTHING : html`<caption>${caption}</caption>`;
  return scrollRegion(label, html`<table>${title}<thead><tr>${cells}</tr></thead><tbody>${rows}</tbody></table>`);
}

/** Content that scrolls sideways if it is too wide. */
export function scrollRegion(label: string, content: Html): Html {
  return html`<div class="wide" tabindex="0" role="region" aria-label="${label}">${content}</div>`;
}

/** A number with five significant digits. Digits before the decimal point are all shown. */
export function figure(value: number): string {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e9 || size < 1e-4) return value.toExponential(4);
  return size >= 10_000 ? String(Math.round(value)) : String(Number(value.toPrecision(5)));
}

/** How many decimals a number is shown with. */
export function decimalsOf(value: number): number {
  return /\.(\d+)$/.exec(figure(value))?.[1]?.length ?? 0;
}

const NUMBER = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i;

/**
 * A value of a sensor or an alert: a rounded number with the exact one as a tooltip, or a text as it is.
 *
 * @param maxLength of a text.
 */
function shownValue(value: number | string, maxLength: number): Html {
  const exact = String(value);
  if (!NUMBER.test(exact)) return text(exact, maxLength);
  const rounded = figure(Number(exact));
  return rounded === exact ? text(exact, maxLength) : html`<span title="${exact}">${rounded}</span>`;
}

/**
 * A value with the unit of its sensor, if the sensor's name shows the unit (`core/sensor-units.ts`).
 *
 * @param maxLength of a text, which has no unit.
 */
export function sensorValue(sensor: string | null, value: number | string, maxLength = 40): Html {
  const unit = sensor === null || !NUMBER.test(String(value)) ? '' : unitOf(sensor);
  const shown = shownValue(value, maxLength);
  return unit === '' ? shown : html`${shown}&nbsp;${unit}`;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/**
 * A time, as short as possible relative to the time of the page. The full time is in the tooltip and in `datetime`.
 *
 * @param at RFC 3339 UTC; any other text is shown as it is.
 */
export function timeElement(at: string | null, now: string): Html {
  if (at === null) return NOTHING;
  return html`<time datetime="${at}" title="${at}" data-moment>${momentText(at, now)}</time>`;
}

/**
 * A range of times. Its ends have the same form: if one end has a date, the other has one too.
 *
 * @param between the text between its ends.
 */
export function timeRange(from: string, to: string, { now, between = ' – ' }: { now: string; between?: string }): Html {
  return html`<span data-range>${rangeEnd(from, to, now)}${between}${rangeEnd(to, from, now)}</span>`;
}

/** One end of a range. It has its date if the other end has one. */
function rangeEnd(at: string, other: string, now: string): Html {
  const isDated = other.slice(0, 10) !== now.slice(0, 10);
  return html`<time datetime="${at}" title="${at}" data-moment>${momentText(at, now, isDated)}</time>`;
}

/**
 * A time as text.
 *
 * @param isDated whether a time of the page's own day also gets its date.
 */
function momentText(at: string, now: string, isDated = false): string {
  const match = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}:\d{2})(:\d{2})/.exec(at);
  if (match === null) return at;
  const [, year, month, day, minutes, seconds] = match;
  if (at.slice(0, 10) === now.slice(0, 10) && !isDated) return `${minutes}${seconds}`;
  const date = `${Number(day)} ${MONTHS[Number(month) - 1] ?? ''}`;
  return year === now.slice(0, 4) ? `${date} ${minutes}` : `${date} ${year}`;
}

/** How long ago a time was; `null` for an invalid one. */
export function ago(at: string, now: string): string | null {
  const seconds = (Date.parse(now) - Date.parse(at)) / 1000;
  if (!Number.isFinite(seconds)) return null;
  return seconds < 0 ? `in ${duration(-seconds)}` : `${duration(seconds)} ago`;
}

/** The states in the order in which they are shown: the most urgent first. */
export const STATE_ORDER: readonly ShownState[] = [
  'unreachable',
  'catching-up',
  'silent',
  'live',
  'out-of-service',
  'excluded',
];

/**
 * Shown instead of the time of the newest reading if there is none.
 *
 * @param coveredShare the covered share of the wanted range, 0 to 1. If all of it is covered, no reading is expected.
 */
export function noReading(coveredShare: number): Html {
  return html`<span class="state s-never">${coveredShare < 1 ? 'no reading yet' : 'no reading in the sync range'}</span>`;
}

/**
 * The text next to the lag of a silent device, so that 0 s does not read as "just reported": how long it has sent
 * nothing.
 *
 * @returns `null` for a device in another state.
 */
export function silenceText(
  device: Pick<DeviceStatus, 'state' | 'active' | 'newest_reading_at'>,
  now: string,
): string | null {
  if (device.state !== 'silent') return null;
  const at = device.newest_reading_at;
  const seconds = at === null ? Number.NaN : (Date.parse(now) - Date.parse(at)) / 1000;
  const long = seconds >= 0 ? duration(seconds) : null;
  if (!device.active) return long === null ? 'no reading' : `no reading for ${long}`;
  return long === null ? 'silent' : `silent ${long}`;
}

/** Since when a silent device has sent nothing: the time of its newest reading. */
export function silentSince(
  device: Pick<DeviceStatus, 'state' | 'active' | 'newest_reading_at'>,
  now: string,
): Html | null {
  const at = device.newest_reading_at;
  return shownState(device) === 'silent' && at !== null ? html`since ${timeElement(at, now)}` : null;
}

/** A device's state: a mark with its own shape and colour, and the word. */
export function stateMark(device: Pick<DeviceStatus, 'state' | 'active'>): Html {
  const state = shownState(device);
  return html`<span class="state s-${state}">${deviceStateText(state)}</span>`;
}

/** A run of equal cells in a coverage bar. */
interface Run {
  readonly cell: string;
  readonly start: number;
  readonly length: number;
}

/** The height of a coverage bar in its own units. */
const BAR_HEIGHT = 10;

function runsOf(cells: string): Run[] {
  return [...cells.matchAll(/(.)\1*/gs)].map(([run, cell = ' '], index, all) => ({
    cell,
    start: all[index]?.index ?? 0,
    length: run.length,
  }));
}

function runShape({ cell, start, length }: Run): Html {
  switch (cell) {
    case '#':
      return html`<rect class="covered" x="${start}" width="${length}" height="${BAR_HEIGHT}"/>`;
    case '-':
      return html`<rect class="empty" x="${start}" y="6" width="${length}" height="4"/>`;
    case '.':
      return html`<rect class="gap" x="${start}" width="${length}" height="${BAR_HEIGHT}"/><rect class="void" x="${start}" y="1.2" width="${length}" height="7.6"/>`;
    default:
      return NOTHING;
  }
}

/** The coverage of a device or a whole fleet as cells, with its text for screen readers. */
interface Bar {
  readonly cells: string;
  /** The unit of a cell in singular and plural, such as `day` and `days`. */
  readonly one: string;
  readonly many: string;
  /** The subject of the bar, for screen readers. */
  readonly label: string;
}

/** The texts of the cells of a coverage bar. */
const CELL_TEXTS = [
  ['#', 'covered'],
  ['-', 'covered, no reading'],
  ['.', 'not fully covered'],
] as const;

/** The text alternative of a bar. */
function barText({ cells, one, many }: Omit<Bar, 'label'>): string {
  const count = (sign: string): number => cells.split(sign).length - 1;
  const texts = CELL_TEXTS.map(([cell, text]) => [count(cell), text] as const)
    .filter(([found]) => found > 0)
    .map(([found, text]) => `${counted(found, one, many)} ${text}`);
  return texts.length === 0 ? 'outside the synced range' : texts.join(', ');
}

/**
 * A coverage bar as an image that needs no colour to be understood: full height means covered, half height covered and
 * empty, an empty frame a gap. Its text alternative has the same content.
 */
export function coverageBar(bar: Bar): Html {
  const { cells, label } = bar;
  return html`<svg class="bar" viewBox="0 0 ${Math.max(1, cells.length)} ${BAR_HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}: ${barText(bar)}">${runsOf(cells).map(runShape)}</svg>`;
}

/** Lists the cells of the bars with their meaning. */
export function legend(): Html {
  const items = CELL_TEXTS.map(
    ([cell, text]) =>
      html`<li><svg class="bar" viewBox="0 0 1 ${BAR_HEIGHT}" preserveAspectRatio="none" aria-hidden="true">${runsOf(cell).map(runShape)}</svg> ${text}</li>`,
  );
  return html`<ul class="legend" aria-label="What the coverage bars mean">${items}${literal('<li class="soft">empty: outside the synced range</li>')}</ul>`;
}

/** How often a page without scripts reloads itself. */
const RENEW_SECONDS = 15;

/** The parts that differ from page to page. */
export interface Frame {
  /** The text before "Tidemark" in the browser's title. */
  readonly title: string;
  /** Each is `null` while it is not known. */
  readonly workspace: { readonly id: string | null; readonly name: string | null };
  readonly version: string;
  /** When the data of the page was collected. */
  readonly generatedAt: string;
  /** The page that the title bar marks as the current one. */
  readonly here: 'overview' | 'alerts' | 'events' | null;
  /** Links to the dashboards and the documentation, if they are configured. */
  readonly links: readonly { readonly label: string; readonly url: string }[];
  readonly main: Html;
  /** Whether the page draws charts, so that it loads their script. */
  readonly hasCharts?: boolean;
  /** Whether the page refreshes itself; yes if absent. */
  readonly isLive?: boolean;
}

const PAGES = [
  ['overview', '/', 'Overview'],
  ['alerts', '/alerts', 'Alerts'],
  ['events', '/events', 'Events'],
] as const;

/** The logo in the title bar and in the browser's tab. */
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

/** Builds the complete HTML document around the content of a page. */
export function renderDocument({
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
<span class="asof" id="asof">as of ${timeElement(generatedAt, generatedAt)} <span id="zone-name" data-keep>UTC</span></span>${isLive && html`<button type="button" id="zone" hidden>UTC</button><button type="button" id="pause" aria-pressed="false" hidden>Pause updates</button>`}</header>
<p id="connection" role="alert" hidden></p>
<main id="main" tabindex="-1">
${main}
</main>
<footer><span>Tidemark ${version}. <span id="zone-note">All times are UTC.</span></span> <nav aria-label="For programs"><a href="/status.json">status.json</a> <a href="/devices.json">devices.json</a> <a href="/alerts.json">alerts.json</a> <a href="/events.json">events.json</a> <a href="/metrics">metrics</a> <a href="/healthz">healthz</a> <a href="/readyz">readyz</a></nav></footer>
</body>
</html>
`.html;
}

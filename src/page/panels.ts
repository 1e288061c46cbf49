/**
 * The panels of the overview, and of the pages that show one of them in full: the allowance, delivery, the streams, the work
 * under way, alerts, and what happened last.
 */

import { missingWords } from '../core/device-coverage.ts';
import type { AlertRow, AlertsView, RecentEvent } from '../core/page-facts.ts';
import type {
  ArchiveStatus,
  DestinationReport,
  GapSum,
  JobStatus,
  NextStatus,
  QuotaStatus,
  QuotaWindow,
  StatusReport,
  StreamStatus,
} from '../core/status.ts';
import { byteSize, counted, duration, grouped, percent } from '../core/text.ts';
import { ago, type Html, html, moment, NOTHING, name, table, target, text } from './html.ts';

/** The requests that are left in a window; `null` while its budget is unknown. */
function leftOf({ limit, budget, spent, others }: QuotaWindow): number | null {
  if (budget === null) return null;
  const ofPlan = limit === null ? Infinity : limit - spent - (others ?? 0);
  return Math.max(0, Math.min(budget - spent, ofPlan));
}

/** A window in words: `312 of 720 (plan 900, others about 40), 568 left`. */
export function windowWords(window: QuotaWindow): string {
  const { limit, budget, spent, others } = window;
  const left = leftOf(window);
  if (budget === null || left === null) return `${counted(spent, 'request')}; the limit is not known yet`;
  const beside = [
    ...(limit === null ? [] : [`plan ${grouped(limit)}`]),
    ...(others == null || others === 0 ? [] : [`others about ${grouped(others)}`]),
  ];
  const aside = beside.length === 0 ? '' : ` (${beside.join(', ')})`;
  return `${grouped(spent)} of ${grouped(budget)}${aside}, ${grouped(left)} left`;
}

function gauge(label: string, window: QuotaWindow, waiting: string | null): Html {
  const { limit, budget, spent, others } = window;
  const whole = Math.max(limit ?? budget ?? 0, 1);
  const width = (count: number): string => Math.min(100, (count / whole) * 100).toFixed(2);
  const ownWidth = Number(width(spent));
  const othersWidth = Math.min(100 - ownWidth, Number(width(others ?? 0)));
  const edge = budget === null ? NOTHING : html`<rect class="edge" x="${width(budget)}" width="0.6" height="10"/>`;
  const words = windowWords(window);
  const until = waiting === null ? '' : `, until ${waiting}`;
  return html`<div class="gauge"><h3>${label}</h3>
<div role="meter" aria-label="Requests used, ${label}" aria-valuemin="0" aria-valuemax="${budget ?? whole}" aria-valuenow="${Math.min(spent, budget ?? whole)}" aria-valuetext="${words}${until}">
<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="rest" width="100" height="10"/><rect class="own" width="${ownWidth}" height="10"/><rect class="others" x="${ownWidth}" y="2" width="${othersWidth.toFixed(2)}" height="6"/>${edge}</svg></div>
<p class="figures">${words}</p></div>`;
}

/** The two windows of the allowance as gauges: what this program has used, what others have, what is left. @param now the page's time. */
export function quotaSection({ share, minute, day, lanes, waiting_until }: QuotaStatus, now: string): Html {
  const waiting = waiting_until === null ? null : moment(waiting_until, now);
  const wait =
    waiting === null
      ? NOTHING
      : html`<p class="note warn">The allowance is used up for now: nothing is asked until ${waiting} UTC.</p>`;
  const spent = lanes
    .filter(({ day: ofDay }) => ofDay > 0)
    .map(({ lane, day: ofDay }) => html`<li>${lane} <b>${grouped(ofDay)}</b></li>`);
  return html`<section id="allowance" class="panel"><h2>Allowance <small>${percent(share)} of the plan is for Tidemark</small></h2>
${gauge('in the last minute', minute, waiting_until)}
${gauge('in the last 24 hours', day, waiting_until)}
<ul class="legend" aria-hidden="true"><li><i class="own"></i> Tidemark</li><li><i class="others"></i> others</li><li><i class="edge"></i> end of Tidemark’s share</li></ul>
${wait}${spent.length === 0 ? NOTHING : html`<ul class="inline" aria-label="Requests of the last 24 hours by what they were for">${spent}</ul>`}</section>`;
}

function destinationRow(
  { name: title, held, delivered_points, pending_points, quarantined, oldest_pending_at }: DestinationReport,
  now: string,
): Html {
  const waits =
    oldest_pending_at === null ? NOTHING : html`<div class="soft">oldest ${ago(oldest_pending_at, now)}</div>`;
  const state =
    held === null
      ? html`<span class="state s-live">moving</span>`
      : html`<span class="state s-unreachable">held</span>`;
  return html`<tr><th scope="row">${name(title)}</th><td>${state}</td><td class="number">${delivered_points === null ? '' : grouped(delivered_points)}</td><td class="number">${grouped(pending_points)}${waits}</td><td class="number${quarantined > 0 ? ' bad' : ''}">${grouped(quarantined)}</td></tr>`;
}

function missingNotes(destinations: readonly DestinationReport[]): Html {
  const lines = destinations.flatMap(({ name: title, lacks: missing }) =>
    missing.map((lack) => html`<li>${text(`${missingWords(title, lack)}.`, 500)}</li>`),
  );
  return lines.length === 0 ? NOTHING : html`<ul class="notes">${lines}</ul>`;
}

function heldNotes(destinations: readonly DestinationReport[]): Html {
  const lines = destinations.flatMap(({ name: title, held }) =>
    held === null ? [] : [html`<p class="note bad">${name(title)}: ${text(held, 400)}</p>`],
  );
  return html`${lines}`;
}

function quarantineNote(destinations: readonly DestinationReport[]): Html {
  const refused = destinations.reduce((sum, { quarantined }) => sum + quarantined, 0);
  if (refused === 0) return NOTHING;
  return html`<p class="note warn">${grouped(refused)} points were refused and are kept with the database’s words: <code>tidemark --quarantine</code> lists them.</p>`;
}

function archiveLine({ points, state_bytes, max_bytes, disk_free_bytes, full }: ArchiveStatus): Html {
  const limit = max_bytes === null ? '' : ` of ${byteSize(max_bytes)}`;
  const free = disk_free_bytes === null ? '' : `, ${byteSize(disk_free_bytes)} free on the disk`;
  return html`<p class="figures">Archive: ${grouped(points)} points in ${byteSize(state_bytes)}${limit}${free}</p>${full === null ? NOTHING : html`<p class="note bad">${text(full, 400)}</p>`}`;
}

interface DeliveryParts {
  readonly destinations: readonly DestinationReport[];
  readonly archive: ArchiveStatus;
  readonly now: string;
}

/** Each destination, what waits for it, what it refused and what it will never have; and the archive's room. */
export function deliverySection({ destinations, archive, now }: DeliveryParts): Html {
  const list = table({
    label: 'Table of destinations',
    heads: ['Destination', 'State', 'Delivered', 'Waiting', 'Refused'],
    numbers: ['Delivered', 'Waiting', 'Refused'],
    rows: destinations.map((each) => destinationRow(each, now)),
  });
  return html`<section id="delivery" class="panel"><h2>Delivery <small>points since the start</small></h2>
${destinations.length === 0 ? html`<p>There is no destination: the archive alone is filled.</p>` : list}
${heldNotes(destinations)}${quarantineNote(destinations)}${missingNotes(destinations)}${archiveLine(archive)}</section>`;
}

const STREAM_MARKS: Readonly<Record<StreamStatus['state'], string>> = {
  on: 's-live',
  waiting: 's-catching-up',
  failing: 's-unreachable',
  off: 's-excluded',
};

function streamRow({ name, state, reason, last_read_at }: StreamStatus, next: NextStatus, now: string): Html {
  const due = next.streams.find((each) => each.name === name)?.due_at ?? null;
  return html`<tr><th scope="row">${name}</th><td><span class="state ${STREAM_MARKS[state]}">${state}</span>${reason === null ? NOTHING : html`<div>${text(reason, 400)}</div>`}</td><td>${last_read_at === null ? 'not yet' : moment(last_read_at, now)}</td><td>${moment(due, now)}</td></tr>`;
}

/** What is read from the API, and when it is read next. */
export function streamsSection({
  streams,
  next,
  generated_at,
}: Pick<StatusReport, 'streams' | 'next' | 'generated_at'>): Html {
  const list = table({
    label: 'Table of streams',
    heads: ['Stream', 'State', 'Last read', 'Next'],
    rows: streams.map((each) => streamRow(each, next, generated_at)),
  });
  return html`<section id="streams" class="panel"><h2>Streams <small>what is read from the API</small></h2>
${list}</section>`;
}

function jobLine({ id, kind, state, asked_by, asked_at, started_at }: JobStatus, now: string): Html {
  const since = started_at === null ? html`asked ${ago(asked_at, now)}` : html`started ${ago(started_at, now)}`;
  return html`<li><b>${kind}</b> <span class="soft">no. ${id}, asked by ${asked_by}</span>: ${state}, ${since}</li>`;
}

function gapRow({ reason, devices, seconds, from, to }: GapSum, now: string): Html {
  return html`<tr><th scope="row">${text(reason, 120)}</th><td class="number">${grouped(devices)}</td><td class="number">${duration(seconds)}</td><td>${moment(from, now)} – ${moment(to, now)}</td></tr>`;
}

const MAX_GAPS = 8;

function gapTable(gaps: readonly GapSum[], now: string): Html {
  if (gaps.length === 0) return html`<p>Nothing that is wanted is missing.</p>`;
  const more = gaps.length > MAX_GAPS ? html`<p class="soft">and ${gaps.length - MAX_GAPS} more reasons</p>` : NOTHING;
  const list = table({
    label: 'Table of gaps',
    caption: 'Wanted and not held',
    heads: ['Reason', 'Devices', 'Together', 'Between'],
    numbers: ['Devices', 'Together'],
    rows: gaps.slice(0, MAX_GAPS).map((each) => gapRow(each, now)),
  });
  return html`${list}${more}`;
}

/** How far the history is filled, the jobs beside it, and what is missing. */
export function workSection({
  totals,
  next,
  jobs,
  gaps,
  generated_at: now,
}: Pick<StatusReport, 'totals' | 'next' | 'jobs' | 'gaps' | 'generated_at'>): Html {
  const share = totals.covered_share;
  const held = share === null ? 'not known yet' : percent(share);
  const width = ((share ?? 0) * 100).toFixed(2);
  const open =
    next.devices_open === 0
      ? 'nothing is open'
      : `${duration(next.open_seconds)} of readings open on ${counted(next.devices_open, 'device')}`;
  const bar = html`<div role="progressbar" class="progress" aria-label="Wanted history that is held" aria-valuemin="0" aria-valuemax="100" aria-valuenow="${Math.floor(Number(width))}" aria-valuetext="${held}"><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="rest" width="100" height="10"/><rect class="own" width="${width}" height="10"/></svg></div>`;
  const work =
    jobs.length === 0
      ? html`<p class="soft">No backfill and no other job is asked for.</p>`
      : html`<ul class="notes" aria-label="Jobs">${jobs.map((job) => jobLine(job, now))}</ul>`;
  return html`<section id="work" class="panel"><h2>History and jobs <small>${held} held, ${open}</small></h2>
${bar}${work}${gapTable(gaps, now)}</section>`;
}

/** How many the overview shows. */
const FEW_ALERTS = 8;

function alertRow(
  { alert_id, device_id, device_name, kind, sensor, opened_at, open, observed_at }: AlertRow,
  view: AlertsFrame,
): Html {
  const { now, isWhole } = view;
  const device =
    device_id === null
      ? html`<span class="soft">none</span>`
      : html`<a href="${target('/device', { id: device_id })}">${name(device_name ?? device_id, 60)}</a>`;
  const since = html`<time datetime="${opened_at}" title="${opened_at}">${ago(opened_at, now)}</time>`;
  const when = isWhole
    ? html`<td>${moment(opened_at, now)}</td><td>${since}</td><td>${moment(observed_at, now)}</td>`
    : html`<td>${since}</td>`;
  const what = html`${name(kind ?? 'alert', 40)}${sensor === null ? NOTHING : html` <span class="soft">${name(sensor, 40)}</span>`}`;
  return html`<tr data-key="alert-${alert_id}"><th scope="row"><span class="state ${open ? 's-unreachable' : 's-excluded'}">${open ? 'open' : 'closed'}</span></th><td>${what}</td><td>${device}</td>${when}</tr>`;
}

interface AlertsFrame {
  /** The page's time. */
  readonly now: string;
  /** All rows with all columns, rather than a few with a link to all. */
  readonly isWhole: boolean;
}

/** The open alerts first, then the newest. */
export function alertsSection({ alerts, open, rows }: AlertsView, view: AlertsFrame): Html {
  const { isWhole } = view;
  const shown = isWhole ? rows : rows.slice(0, FEW_ALERTS);
  const list = table({
    label: 'Table of alerts',
    heads: ['State', 'Alert', 'Device', 'Opened', ...(isWhole ? ['Ago', 'Last looked at'] : [])],
    rows: shown.map((each) => alertRow(each, view)),
  });
  const rest = alerts - shown.length;
  const more = isWhole
    ? rest > 0 && html`<p class="soft">${grouped(rest)} more are in the database.</p>`
    : rest > 0 && html`<p class="more"><a href="/alerts">More alerts</a></p>`;
  return html`<section id="alerts" class="panel"><h2>Alerts <small>${grouped(open)} open of ${grouped(alerts)} seen</small></h2>
${rows.length === 0 ? html`<p>No alert was seen.</p>` : list}${more}</section>`;
}

/** How many the overview shows. */
const FEW_EVENTS = 12;

function eventLine({ at, level, event, message, details }: RecentEvent, now: string): Html {
  const more = details === '' ? NOTHING : html` <span class="soft details">${text(details, 300)}</span>`;
  return html`<li class="l-${level}" title="${event}">${moment(at, now)} <b class="level">${level}</b> <span>${text(message, 400)}${more}</span></li>`;
}

/** The last lines of the log. @param isWhole all of them rather than a few with a link to all. */
export function eventsSection(events: readonly RecentEvent[], now: string, isWhole = false): Html {
  const shown = isWhole ? events : events.slice(0, FEW_EVENTS);
  const more = !isWhole && events.length > FEW_EVENTS && html`<p class="more"><a href="/events">More events</a></p>`;
  const list = html`<ol class="events" tabindex="0" role="list" aria-label="Events, the newest first">${shown.map((each) => eventLine(each, now))}</ol>`;
  return html`<section id="events" class="panel"><h2>Events <small>the newest first, since the start</small></h2>
${events.length === 0 ? html`<p>Nothing worth a line yet.</p>` : list}${more}</section>`;
}

/**
 * Builds the panels of the overview, and of the pages that show one panel in full: quota, delivery, streams, running
 * work, alerts and recent events.
 */

import { gapText, missingText } from '../core/device-coverage.ts';
import type { AlertRow, AlertsView, RecentEvent } from '../core/page-facts.ts';
import { laneText, quotaWaitText, windowText } from '../core/quota.ts';
import {
  type ArchiveStatus,
  type DestinationReport,
  type GapSum,
  type JobStatus,
  type NextStatus,
  type QuotaStatus,
  type QuotaWindow,
  type StatusOverview,
  type StatusReport,
  type StreamStatus,
  type SummaryProblem,
  streamStateText,
  type Unread,
  unreadNow,
} from '../core/status.ts';
import { byteSize, counted, duration, etaText, grouped, percent } from '../core/text.ts';
import {
  ago,
  figure,
  type Html,
  html,
  joinUnits,
  NOTHING,
  name,
  sensorValue,
  table,
  target,
  text,
  timeElement,
  timeRange,
} from './html.ts';
import { coveredText, lastPollText } from './overview.ts';

function gauge(label: string, window: QuotaWindow, waiting: string | null): Html {
  const { limit, budget, spent, others } = window;
  const whole = Math.max(limit ?? budget ?? 0, 1);
  const width = (count: number): string => Math.min(100, (count / whole) * 100).toFixed(2);
  const ownWidth = Number(width(spent));
  const othersWidth = Math.min(100 - ownWidth, Number(width(others ?? 0)));
  const edge = budget === null ? NOTHING : html`<rect class="edge" x="${width(budget)}" width="0.6" height="10"/>`;
  const text = windowText(window);
  const until = waiting === null ? '' : `, until ${waiting}`;
  return html`<div class="gauge"><h3>${label}</h3>
<div role="meter" aria-label="Requests used, ${label}" aria-valuemin="0" aria-valuemax="${budget ?? whole}" aria-valuenow="${Math.min(spent, budget ?? whole)}" aria-valuetext="${text}${until}">
<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="rest" width="100" height="10"/><rect class="own" width="${ownWidth}" height="10"/><rect class="others" x="${ownWidth}" y="2" width="${othersWidth.toFixed(2)}" height="6"/>${edge}</svg></div>
<p class="figures">${text}</p></div>`;
}

/** The text about requests that wait for quota, if there are any. */
function waitNote(quota: Pick<QuotaStatus, 'waiting_until' | 'history_waiting_until'>, now: string): Html {
  const wait = quotaWaitText(quota);
  if (wait === null) return NOTHING;
  const tone = quota.waiting_until === null ? 'soft' : 'note warn';
  return html`<p class="${tone}">${wait.text} ${timeElement(wait.at, now)}.</p>`;
}

/**
 * The two windows of the quota as gauges: own use, the use of others, and the rest.
 *
 * @param now the page's time.
 */
export function quotaSection(
  { share, minute, day, lanes, waiting_until, history_waiting_until }: QuotaStatus,
  now: string,
): Html {
  const wait = waitNote({ waiting_until, history_waiting_until }, now);
  const spent = lanes
    .filter(({ day: ofDay }) => ofDay > 0)
    .map(({ lane, day: ofDay }) => html`<li>${laneText(lane)} <b>${grouped(ofDay)}</b></li>`);
  return html`<section id="quota" class="panel"><h2>Quota <small>${percent(share)} of the plan’s quota is Tidemark’s budget</small></h2>
${gauge('in the last minute', minute, waiting_until)}
${gauge('in the last 24 hours', day, waiting_until)}
<ul class="legend" aria-hidden="true"><li><i class="own"></i> Tidemark</li><li><i class="others"></i> other clients</li><li><i class="edge"></i> limit of Tidemark’s budget</li></ul>
${wait}${spent.length === 0 ? NOTHING : html`<h3>Requests of the last 24 hours by purpose</h3><ul class="inline" aria-label="Requests of the last 24 hours by purpose">${spent}</ul>`}</section>`;
}

function destinationRow(
  {
    name: title,
    blocked_reason,
    delivered_points,
    pending_points,
    quarantined,
    oldest_pending_at,
    oldest_live_pending_at,
    lag_seconds,
  }: DestinationReport,
  now: string,
): Html {
  const waits =
    oldest_pending_at === null
      ? NOTHING
      : html`<div class="soft">${oldest_live_pending_at === null ? 'of history' : html`oldest ${ago(oldest_pending_at, now)}`}</div>`;
  const state =
    blocked_reason === null
      ? html`<span class="state s-live">${pending_points === 0 ? 'all delivered' : 'delivering'}</span>`
      : html`<span class="state s-unreachable">blocked</span>`;
  return html`<tr><th scope="row">${name(title)}</th><td>${state}</td><td class="number">${lag_seconds === null ? html`initial<div>sync</div>` : duration(lag_seconds)}</td><td class="number">${delivered_points === null ? '' : grouped(delivered_points)}</td><td class="number">${grouped(pending_points)}${waits}</td><td class="number${quarantined > 0 ? ' bad' : ''}">${grouped(quarantined)}</td></tr>`;
}

function missingNotes(destinations: readonly DestinationReport[]): Html {
  const lines = destinations.flatMap(({ name: title, missing }) =>
    missing.map((range) => html`<li>${text(`${missingText(title, range)}.`, 500)}</li>`),
  );
  return lines.length === 0 ? NOTHING : html`<ul class="notes">${lines}</ul>`;
}

/** Why deliveries are blocked, except for the problem that the summary at the top describes. */
function blockedNotes(destinations: readonly DestinationReport[], about: SummaryProblem | null): Html {
  const isInSummary = (title: string): boolean => about?.code === 'destination_blocked' && about.name === title;
  const lines = destinations.flatMap(({ name: title, blocked_reason }) =>
    blocked_reason === null || isInSummary(title)
      ? []
      : [html`<p class="note bad">${name(title)}: ${text(blocked_reason, 400)}</p>`],
  );
  return html`${lines}`;
}

function quarantineNote(destinations: readonly DestinationReport[]): Html {
  const rejected = destinations.reduce((sum, { quarantined }) => sum + quarantined, 0);
  if (rejected === 0) return NOTHING;
  return html`<p class="note warn">${counted(rejected, 'point was rejected and is', 'points were rejected and are')} in quarantine with the database’s message: <code>tidemark --quarantine</code> lists them.</p>`;
}

function archiveLine({ points, state_bytes, max_bytes, disk_free_bytes, full }: ArchiveStatus): Html {
  const limit = max_bytes === null ? '' : ` of ${byteSize(max_bytes)}`;
  const free = disk_free_bytes === null ? '' : `, ${byteSize(disk_free_bytes)} free on the disk`;
  return html`<p class="figures">Archive: ${grouped(points)} points of all measurements, ${byteSize(state_bytes)}${limit}${free}</p>${full === null ? NOTHING : html`<p class="note bad">${text(full, 400)}</p>`}`;
}

interface DeliveryParts {
  readonly destinations: readonly DestinationReport[];
  readonly archive: ArchiveStatus;
  /** The problem that the sentence at the top of the page describes. */
  readonly about: SummaryProblem | null;
  readonly now: string;
}

/** The destinations with their pending, rejected and missing points, and the size of the archive. */
export function deliverySection({ destinations, archive, about, now }: DeliveryParts): Html {
  const list = table({
    label: 'Table of destinations',
    heads: ['Destination', 'State', 'Lag', 'Delivered', 'Waiting', 'Rejected'],
    numbers: ['Lag', 'Delivered', 'Waiting', 'Rejected'],
    rows: destinations.map((each) => destinationRow(each, now)),
  });
  return html`<section id="delivery" class="panel"><h2>Delivery <small>points delivered since the daemon started</small></h2>
${destinations.length === 0 ? html`<p>No database is configured: readings are stored only in the archive.</p>` : list}
${blockedNotes(destinations, about)}${quarantineNote(destinations)}${missingNotes(destinations)}${archiveLine(archive)}</section>`;
}

const STREAM_MARKS: Readonly<Record<StreamStatus['state'], string>> = {
  on: 's-live',
  waiting: 's-catching-up',
  failing: 's-unreachable',
  off: 's-excluded',
};

function streamRow({ name, state, reason, last_read_at }: StreamStatus, next: NextStatus, now: string): Html {
  const due = next.streams.find((each) => each.name === name)?.due_at ?? null;
  return html`<tr><th scope="row">${name}</th><td><span class="state ${STREAM_MARKS[state]}">${streamStateText({ state, last_read_at })}</span>${reason === null ? NOTHING : html`<div>${text(reason, 400)}</div>`}</td><td>${last_read_at === null ? 'never' : timeElement(last_read_at, now)}</td><td>${timeElement(due, now)}</td></tr>`;
}

/** The streams of the API, and when each is read next. */
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
  return html`<section id="streams" class="panel"><h2>Streams <small>polled from the API</small></h2>
${list}</section>`;
}

/** A job, with a bar if it reports its progress. */
function jobLine(job: JobStatus, now: string): Html {
  const { id, kind, state, requested_by, requested_at, started_at, range, share } = job;
  const since = started_at === null ? html`requested ${ago(requested_at, now)}` : html`started ${ago(started_at, now)}`;
  const head = html`<b>${kind}</b> <span class="soft">no. ${id}, requested by ${requested_by}</span>: ${state}, ${since}`;
  const time = range === null ? NOTHING : html`<div class="soft">${rangeText(range, now)}</div>`;
  const bar = share === null ? NOTHING : progressBar(`Progress of ${kind} no. ${id}`, share);
  return html`<li>${head}${time}${bar}${jobFigures(job)}</li>`;
}

function rangeText({ from, to }: NonNullable<JobStatus['range']>, now: string): Html {
  if (from !== null && to !== null) return html`from ${timeRange(from, to, { now, between: ' to ' })}`;
  const start = from === null ? 'the first reading' : timeElement(from, now);
  return html`from ${start} to ${to === null ? 'the start of the job' : timeElement(to, now)}`;
}

function jobFigures({
  range,
  share,
  requests,
  readings,
  requests_per_minute,
  eta_seconds,
  eta_basis,
  waits,
}: JobStatus): Html {
  const rate =
    requests_per_minute === null
      ? ''
      : ` so far (recently ${figure(Number(requests_per_minute.toPrecision(2)))} a minute)`;
  const parts = [
    ...(share === null
      ? []
      : [
          range === null
            ? `${percent(share)} done`
            : `${percent(share)} of this range covered (including what was covered before)`,
        ]),
    ...(requests === null ? [] : [`${counted(requests, 'request')}${rate}`]),
    ...(readings === null ? [] : [`${counted(readings, 'new reading')}`]),
    ...(eta_seconds === null ? [] : [`ETA ${duration(eta_seconds)}${eta_basis === null ? '' : ` (${eta_basis})`}`]),
    ...(waits === null ? [] : [waits]),
  ];
  return parts.length === 0 ? NOTHING : html`<p class="figures">${text(joinUnits(parts.join(', ')), 400)}</p>`;
}

/**
 * A progress bar.
 *
 * @param share 0 to 1; other values are limited to that.
 */
function progressBar(label: string, share: number): Html {
  const width = (Math.min(1, Math.max(0, share)) * 100).toFixed(2);
  return html`<div role="progressbar" class="progress" aria-label="${label}" aria-valuemin="0" aria-valuemax="100" aria-valuenow="${Math.floor(Number(width))}" aria-valuetext="${percent(share)}"><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="rest" width="100" height="10"/><rect class="own" width="${width}" height="10"/></svg></div>`;
}

function gapRow({ reason, devices, seconds, from, to }: GapSum, now: string): Html {
  return html`<tr><th scope="row">${text(gapText(reason).why, 120)}</th><td class="number">${grouped(devices)}</td><td class="number">${duration(seconds)}</td><td>${timeRange(from, to, { now })}</td></tr>`;
}

const MAX_GAPS = 8;

function gapTable(gaps: readonly GapSum[], now: string): Html {
  const more = gaps.length > MAX_GAPS ? html`<p class="soft">and ${gaps.length - MAX_GAPS} more reasons</p>` : NOTHING;
  const list = table({
    label: 'Table of gaps',
    caption: 'Gaps',
    heads: ['Reason', 'Devices', 'Sum over devices', 'Between'],
    numbers: ['Devices', 'Sum over devices'],
    rows: gaps.slice(0, MAX_GAPS).map((each) => gapRow(each, now)),
  });
  return html`${list}${more}`;
}

/** The text that the history is being filled, if it is. */
function syncText(
  { totals: { devices, devices_complete }, next, process: work }: Pick<StatusOverview, 'totals' | 'next' | 'process'>,
  unread: Unread | null,
): string {
  if (!work.running || unread !== null || devices_complete === devices) return '';
  const what = next.initial_devices > 0 ? 'Initial sync is running' : 'Gaps are being closed';
  return `${what}: ${grouped(devices_complete)} of ${counted(devices, 'device')} complete${etaText(next)}. `;
}

/** How much of the sync range is covered; while telemetry is not read, also when it was last read. */
function rangeLine(
  { totals, next }: Pick<StatusOverview, 'totals' | 'next'>,
  unread: Unread | null,
  now: string,
): Html {
  const covered = coveredText({ totals });
  const gaps =
    next.devices_with_gaps === 0
      ? 'no gaps'
      : `${counted(next.devices_with_gaps, 'device')} with gaps (${duration(next.gap_seconds)}, in total over the devices)`;
  if (unread === null)
    return html`<b>Sync range</b>: ${covered === null ? 'not known yet' : `${covered} covered, ${gaps}`}`;
  return html`<b>Sync range</b>: ${covered === null ? '' : `${covered} covered; `}${lastPollText(unread, now)}`;
}

/** The progress of the history, the running jobs, and the gaps. */
export function workSection(report: StatusOverview): Html {
  const { totals, next, jobs, gaps, generated_at: now } = report;
  const unread = unreadNow(report);
  // The sync is not called complete while newer readings are not read.
  const isHidden = unread !== null && totals.covered_share === 1;
  const bar = isHidden ? NOTHING : progressBar('Covered part of the sync range', totals.covered_share ?? 0);
  const missing =
    unread !== null && html`<p class="note warn">Newer readings will be read when polling works again.</p>`;
  const work =
    jobs.length === 0
      ? html`<p class="soft">${syncText(report, unread)}No backfill or other job is running.</p>`
      : html`<ul class="notes" aria-label="Jobs">${jobs.map((job) => jobLine(job, now))}</ul>`;
  return html`<section id="work" class="panel"><h2>History and jobs</h2>
<p>${rangeLine({ totals, next }, unread, now)}</p>
${bar}${missing}${gaps.length > 0 && gapTable(gaps, now)}${work}</section>`;
}

/** The maximum number of alerts if not all are shown. */
const FEW_ALERTS = 8;

/**
 * The subject of an alert: `temperature above 8 °C: 12.3 °C`, as far as the API returns it. The condition is a text for
 * people: a sensor and a threshold in it are not repeated.
 */
function alertText({ kind, sensor, condition, threshold, value }: AlertRow): Html {
  const rule = condition ?? '';
  const about = sensor ?? kind ?? 'alert';
  const subject = rule.includes(about) ? NOTHING : html`${name(about, 40)} `;
  const isNamed =
    threshold === null || rule.split(/[^\d.,-]+/).some((part) => part !== '' && Number(part) === threshold);
  const limit = isNamed ? NOTHING : html` ${sensorValue(sensor, threshold)}`;
  const text = rule === '' && !isNamed ? html`limit` : name(rule, 60);
  const seen = value === null ? NOTHING : html`: <b>${sensorValue(sensor, value)}</b>`;
  return html`${subject}${text}${limit}${seen}`;
}

function alertRow(alert: AlertRow, view: AlertsFrame): Html {
  const { alert_id, device_id, device_name, kind, opened_at, open, observed_at, rule_name, fire_count, status } = alert;
  const { now, isWhole, isOfDevice = false } = view;
  const device =
    device_id === null
      ? html`<span class="soft">none</span>`
      : html`<a href="${target('/device', { id: device_id })}">${name(device_name ?? device_id, 60)}</a>`;
  const since = html`<time datetime="${opened_at}" title="${opened_at}">${ago(opened_at, now)}</time>`;
  const when = isWhole
    ? html`<td class="number">${fire_count === null ? '' : grouped(fire_count)}</td><td>${timeElement(opened_at, now)}</td><td>${since}</td><td>${timeElement(observed_at, now)}</td>`
    : html`<td>${since}</td>`;
  const what = html`${name(rule_name ?? kind ?? 'alert', 60)}<div class="soft">${alertText(alert)}</div>`;
  return html`<tr data-key="alert-${alert_id}"><th scope="row"><span class="state ${open ? 's-unreachable' : 's-excluded'}">${name(status ?? (open ? 'open' : 'closed'), 30)}</span></th><td>${what}</td>${!isOfDevice && html`<td>${device}</td>`}${when}</tr>`;
}

interface AlertsFrame {
  /** When the page was made; times of that day are shown without a date. */
  readonly now: string;
  /** Whether to show all rows with all columns, or a few with a link to all. */
  readonly isWhole: boolean;
  /** Whether all of the alerts belong to the device whose page this is. */
  readonly isOfDevice?: boolean;
}

function alertHeads({ isWhole, isOfDevice = false }: AlertsFrame): string[] {
  const device = isOfDevice ? [] : ['Device'];
  return ['Status', 'Rule', ...device, ...(isWhole ? ['Fire count', 'Opened', 'Age', 'State as of'] : ['Opened'])];
}

/** The alerts of one device, for its page. */
export function deviceAlerts(rows: readonly AlertRow[], now: string): Html {
  if (rows.length === 0) return NOTHING;
  const view = { now, isWhole: true, isOfDevice: true };
  const list = table({
    label: 'Table of alerts',
    heads: alertHeads(view),
    numbers: ['Fire count'],
    rows: rows.map((each) => alertRow(each, view)),
  });
  return html`<section id="alerts" class="panel"><h2>Alerts <small>of this device, the open ones first</small></h2>${list}</section>`;
}

/** The open alerts first, then the newest. */
export function alertsSection({ alerts, open, rows }: AlertsView, view: AlertsFrame): Html {
  const { isWhole } = view;
  const shown = isWhole ? rows : rows.slice(0, FEW_ALERTS);
  const list = table({
    label: 'Table of alerts',
    heads: alertHeads(view),
    numbers: ['Fire count'],
    rows: shown.map((each) => alertRow(each, view)),
  });
  const rest = alerts - shown.length;
  const openRest = open - shown.filter((each) => each.open).length;
  const openText = openRest > 0 && html`, ${grouped(openRest)} of them not resolved`;
  const more =
    rest > 0 &&
    (isWhole
      ? html`<p class="soft">${grouped(rest)} more are not shown${openText}.</p>`
      : html`<p class="more"><a href="/alerts">${grouped(rest)} more</a>${openText}</p>`);
  return html`<section id="alerts" class="panel"><h2>Alerts <small>${grouped(open)} not resolved, ${grouped(alerts)} in total</small></h2>
${rows.length === 0 ? html`<p>No alerts yet.</p>` : list}${more}</section>`;
}

/** The maximum number of events in the overview. */
const FEW_EVENTS = 12;

function eventLine({ at, level, event, message, device_id, details }: RecentEvent, now: string): Html {
  const device =
    device_id === null ? NOTHING : html` <a href="${target('/device', { id: device_id })}">${name(device_id, 60)}</a>`;
  const more = details === '' ? NOTHING : html` <span class="soft details">${text(details, 300)}</span>`;
  return html`<li class="l-${level}" title="${event}">${timeElement(at, now)} <b class="level">${level}</b> <span>${text(message, 400)}${device}${more}</span></li>`;
}

/** The levels by which the events can be filtered: this level and those above it. */
const LEVELS = ['info', 'warn', 'error'] as const;

/** The lowest level of the events that are shown. */
type EventLevel = (typeof LEVELS)[number];

/** The level in an address; all levels by default. */
export function readLevel(params: URLSearchParams): EventLevel {
  return LEVELS.find((each) => each === params.get('level')) ?? 'info';
}

function levelLinks(current: EventLevel): Html {
  const labels = { info: 'all', warn: 'warnings and errors', error: 'errors' };
  const links = LEVELS.map(
    (each) =>
      html`<li><a href="${target('/events', { level: each === 'info' ? null : each })}" data-nav data-key="level-${each}"${each === current && html` aria-current="true"`}>${labels[each]}</a></li>`,
  );
  return html`<div class="tools"><ul class="filters" aria-label="Events by level">${links}</ul></div>`;
}

function eventList(events: readonly RecentEvent[], now: string): Html {
  if (events.length === 0) return html`<p>No events yet.</p>`;
  return html`<ol class="events" tabindex="0" role="list" aria-label="Events, the newest first">${events.map((each) => eventLine(each, now))}</ol>`;
}

/** The newest lines of the log, with a link to all. */
export function eventsSection(events: readonly RecentEvent[], now: string): Html {
  const more = events.length > FEW_EVENTS && html`<p class="more"><a href="/events">More events</a></p>`;
  return html`<section id="events" class="panel"><h2>Events <small>the newest first</small></h2>
${eventList(events.slice(0, FEW_EVENTS), now)}${more}</section>`;
}

/** All events of a level and above. */
export function allEvents(events: readonly RecentEvent[], level: EventLevel, now: string): Html {
  const shown = events.filter((each) => LEVELS.indexOf(each.level) >= LEVELS.indexOf(level));
  return html`<section id="events" class="panel"><h2>Events <small>the newest first</small></h2>
${levelLinks(level)}${eventList(shown, now)}</section>`;
}

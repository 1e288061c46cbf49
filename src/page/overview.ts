/**
 * The top of the page: the state in a sentence, the problems, and the figures that answer "how far behind": first the
 * lag of each database, which grows while the database or the API is down.
 */

import {
  type DestinationReport,
  type HealthReport,
  type ReadyReport,
  type StatusOverview,
  type Unread,
  unreadNow,
  withShownLags,
} from '../core/status.ts';
import { counted, databaseText, duration, grouped, percent } from '../core/text.ts';
import { SECOND_MS } from '../core/time.ts';
import { type Html, html, joinUnits, NOTHING, name, text, timeElement } from './html.ts';

/** How serious the state is: a person must act, it will pass by itself, or all is well. */
type Tone = 'ok' | 'busy' | 'bad';

/** The report, the readiness and the health at one moment. */
export interface OverviewParts {
  readonly report: StatusOverview;
  /** The age of the scan of the devices that the report uses. */
  readonly ageSeconds: number;
  readonly ready: ReadyReport;
  readonly health: HealthReport;
}

/** Codes of problems that pass by themselves while the work continues. */
const PASSING: ReadonlySet<string> = new Set(['devices_not_listed', 'last_day_missing']);

/** Streams that are not read although they should be. Streams other than telemetry may be off on purpose. */
function streamsWithProblems({ streams }: StatusOverview): StatusOverview['streams'] {
  return streams.filter(({ name, state }) => state === 'failing' || (state === 'off' && name === 'telemetry'));
}

/** How serious the state is, according to the report and both health checks. */
export function toneOf({ report, ready, health }: OverviewParts): Tone {
  const stuck =
    !health.healthy ||
    report.archive.full !== null ||
    streamsWithProblems(report).length > 0 ||
    report.destinations.some(({ blocked_reason }) => blocked_reason !== null) ||
    ready.codes.some((code) => !PASSING.has(code));
  if (stuck) return 'bad';
  const { devices, devices_complete } = report.totals;
  return ready.ready && devices_complete === devices && report.freshness.behind_devices === 0 ? 'ok' : 'busy';
}

const TONES: Readonly<Record<Tone, string>> = { ok: 'OK', busy: 'Syncing', bad: 'Problem' };

/** Returns the word for a tone. */
export function toneText(tone: Tone): string {
  return TONES[tone];
}

/** The state in one sentence, and the problems that the sentence does not name. */
export function standingSection(parts: OverviewParts): Html {
  const { report, ready, health } = parts;
  const tone = toneOf(parts);
  const about = report.summary_problem;
  const unmentioned = ready.reasons.filter(
    (_, index) => ready.codes[index] !== about?.code || (ready.names[index] ?? null) !== about?.name,
  );
  const reasons = [...health.reasons, ...unmentioned, ...newStreamProblems(parts)];
  const list =
    reasons.length === 0
      ? NOTHING
      : html`<ul class="reasons">${reasons.map((reason) => html`<li>${text(reason, 500)}</li>`)}</ul>`;
  return html`<section id="standing" class="standing ${tone}" aria-label="State"><p class="tone">${TONES[tone]}</p><p class="summary" role="status">${text(report.summary, 600)}</p>${list}${lossNotes(report)}</section>`;
}

/** The streams that have not failed long enough to be in the readiness report, each with its reason. */
function newStreamProblems({ report, ready }: OverviewParts): readonly string[] {
  // While the API cannot be read at all, the streams fail for the same reason.
  if (ready.codes.some((code) => code === 'key_refused' || code === 'api_unreachable')) return [];
  const reported = new Set([...ready.names, report.summary_problem?.name]);
  return streamsWithProblems(report)
    .filter(({ name }) => !reported.has(name))
    .map(({ name, reason }) => `stream ${name}: ${reason ?? 'not read'}`);
}

/** The effect of a failed part on the readings: since when, and what happens next. */
function lossNotes(report: StatusOverview): readonly Html[] {
  const { destinations, archive, next, generated_at: now } = report;
  // With a full disk nothing is read, which the summary reports.
  if (archive.full !== null) return [];
  const unread = unreadNow(report);
  const blocked = destinations.filter(({ blocked_reason }) => blocked_reason !== null);
  return [
    ...(unread === null ? [] : [unreadNote(unread, next.attempt_at, now)]),
    ...blocked.map(({ name: title, pending_points, oldest_pending_at, blocked_since, next_attempt_at: next }) => {
      const at = oldest_pending_at === null ? NOTHING : html`, the oldest since ${timeElement(oldest_pending_at, now)}`;
      const blockedAt = blocked_since === null ? NOTHING : html`Blocked since ${timeElement(blocked_since, now)}. `;
      return html`<p>${blockedAt}Nothing is lost: ${counted(pending_points, 'point')} for ${name(title)} ${pending_points === 1 ? 'waits' : 'wait'} in the archive${at}. ${retryText('the delivery', next, now)}</p>`;
    }),
  ];
}

/** Since when telemetry is not read, what Tidemark tries, and what happens to the missing readings. */
function unreadNote({ sinceAt, polling }: Unread, attemptAt: string | null, now: string): Html {
  const head = html`No telemetry has been read ${sinceAt === null ? 'yet' : html`since ${timeElement(sinceAt, now)}`}`;
  const later =
    'Stored readings are safe. When polling works again, Tidemark reads the missing ones, as far back as the plan allows.';
  switch (polling) {
    case 'on hold':
      return html`<p>${head}: polling is on hold until the API accepts the key. ${retryText('the key', attemptAt, now)} ${later}</p>`;
    case 'off':
      return html`<p>${head}: polling is off until the key has the scope. Tidemark tries it every hour. ${later}</p>`;
    default:
      return html`<p>${head}: polling fails, and Tidemark keeps trying. ${later}</p>`;
  }
}

/**
 * When it is tried again: the key (a new one in the file of `api.key_file` is noticed earlier), or a blocked delivery.
 */
function retryText(what: string, at: string | null, now: string): Html {
  if (at === null) return html`Tidemark tries ${what} again by itself.`;
  return Date.parse(at) <= Date.parse(now)
    ? html`Tidemark is trying ${what} again now.`
    : html`Tidemark tries ${what} again at ${timeElement(at, now)}.`;
}

interface Tile {
  readonly title: string;
  readonly value: string | Html;
  readonly lines: readonly (string | Html)[];
  readonly tone?: Tone;
}

/** How many databases have their own tile. */
const MOST_LAG_TILES = 3;

/** The lag of each database; of the archive if there is none. */
function lagTiles(report: StatusOverview): Tile[] {
  const { destinations, freshness } = report;
  const unread = unreadNow(report);
  if (unread !== null) return unreadTiles(report, unread);
  if (destinations.length === 0) {
    const behind: Pick<Tile, 'tone'> = isBehind(freshness) ? { tone: 'busy' } : {};
    return [
      {
        title: 'Lag of the archive',
        value: lagText(freshness.median_seconds),
        lines: [devicesText(report)],
        ...behind,
      },
    ];
  }
  return destinations
    .toSorted((a, b) => (b.lag_seconds ?? Infinity) - (a.lag_seconds ?? Infinity))
    .slice(0, MOST_LAG_TILES)
    .map((each) => lagTile(report, each));
}

function unreadTiles(report: StatusOverview, unread: Unread): Tile[] {
  const { destinations, freshness, totals, generated_at: now } = withShownLags(report);
  const { sinceAt, seconds: least } = unread;
  const lags = [freshness.median_seconds, ...destinations.map(({ lag_seconds }) => lag_seconds)];
  const known = lags.filter((seconds) => seconds !== null);
  const lag = known.length === 0 ? null : Math.max(...known);
  const place = destinations.length === 0 ? 'in the archive' : 'in the database';
  const measure =
    lag === least ? 'counted from the last poll' : `median of ${counted(totals.devices, 'device')} ${place}`;
  const since = sinceAt === null ? 'yet' : html`since ${timeElement(sinceAt, now)}`;
  return [
    {
      title: 'Lag',
      value: lag === null ? 'not known' : duration(lag),
      lines: [
        html`no telemetry read ${since}: ${pollingText(unread)}`,
        ...(lag === null ? [] : [`${measure}; it grows until polling works again`]),
      ],
      tone: 'bad',
    },
  ];
}

/** Whether devices are late, for the text and colour of a tile. There is no lag in an initial sync. */
function isBehind({ behind_devices, median_seconds }: StatusOverview['freshness']): boolean {
  return behind_devices > 0 && median_seconds !== null;
}

function lagTile(report: StatusOverview, destination: DestinationReport): Tile {
  const { lag_seconds, blocked_reason } = destination;
  const isLate = lag_seconds !== null && lag_seconds > report.freshness.behind_after_seconds;
  return {
    title: `Lag in ${databaseText(destination.name, report.destinations.length)}`,
    value: lagText(lag_seconds),
    lines: [pendingText(report, destination), medianText(report, lag_seconds)],
    ...(blocked_reason !== null || isLate ? { tone: 'bad' } : isBehind(report.freshness) ? { tone: 'busy' } : {}),
  };
}

/** The points that wait for a database. Points of the history are delivered after new ones, so they are not a lag. */
function pendingText({ generated_at: now }: StatusOverview, destination: DestinationReport): string {
  const { pending_points, oldest_pending_at, oldest_live_pending_at, blocked_reason } = destination;
  const head = blocked_reason === null ? '' : 'delivery is blocked: ';
  if (pending_points === 0) return head === '' ? 'every archived point is delivered' : `${head}no point waits`;
  const wait = pending_points === 1 ? 'waits' : 'wait';
  const points = counted(pending_points, 'point');
  if (oldest_pending_at === null) return `${head}${points} ${wait}`;
  if (oldest_live_pending_at === null) {
    return `${head}${points} of history ${wait}${head === '' ? '; new readings are delivered first' : ''}`;
  }
  const seconds = Math.max(0, (Date.parse(now) - Date.parse(oldest_live_pending_at)) / SECOND_MS);
  const oldest = oldest_live_pending_at === oldest_pending_at ? 'the oldest for' : 'the oldest new reading for';
  return `${head}${points} ${wait}, ${oldest} ${duration(seconds)}`;
}

function lagText(seconds: number | null): string {
  return seconds === null ? 'initial sync' : duration(seconds);
}

/**
 * The text that shows which devices the tile's median includes. The tile differs from the archive's lag while new
 * points wait.
 */
function medianText(report: StatusOverview, lagSeconds: number | null): string {
  const { median_seconds } = report.freshness;
  const isApart = median_seconds !== null && lagSeconds !== null && Math.abs(lagSeconds - median_seconds) >= 1;
  if (isApart) return `Tidemark’s own archive has a lag of ${duration(median_seconds)}`;
  return devicesText(report);
}

/** The lag of the devices in the archive, and how often they are polled. */
function devicesText({ freshness, totals }: StatusOverview): string {
  const { target_seconds, expected_seconds, behind_devices, behind_after_seconds } = freshness;
  const { median_seconds, max_seconds } = freshness;
  const median = median_seconds === null ? [] : [`median of ${counted(totals.devices, 'device')}`];
  const max = max_seconds === null ? [] : [`largest lag ${duration(max_seconds)}`];
  const late = isBehind(freshness)
    ? [`${counted(behind_devices, 'device')} above ${duration(behind_after_seconds)}`]
    : [];
  const slowed = expected_seconds > target_seconds ? ' (all that the quota allows)' : '';
  const polled = `polled every ${duration(Math.max(target_seconds, expected_seconds))}${slowed}`;
  const lags = [...median, ...max, ...late].join(', ');
  return lags === '' ? polled : `${lags}; ${polled}`;
}

function tiles(report: StatusOverview): Tile[] {
  const { totals } = report;
  return [
    ...lagTiles(report),
    coveredTile(report),
    {
      title: 'Readings archived',
      value: grouped(totals.archived_readings),
      lines: [`${grouped(totals.archived_points)} telemetry points, ${counted(totals.requests, 'request')}`],
    },
    {
      title: 'Rejected records',
      value: grouped(totals.rejected_records),
      lines: [
        totals.rejected_records === 0
          ? 'no record of the API was rejected'
          : 'records of the API that cannot be parsed, or stored as points',
      ],
    },
  ];
}

/** The status of the polling, as a part of a sentence. */
function pollingText({ polling }: Unread): string {
  return polling === 'failing' ? 'polling fails' : `polling is ${polling}`;
}

/** When telemetry was last read, and the status of the polling: newer readings are missing. */
export function lastPollText(unread: Unread, now: string): Html {
  const last = unread.sinceAt === null ? NOTHING : html`last poll ${timeElement(unread.sinceAt, now)}, `;
  return html`${last}${pollingText(unread)}`;
}

/** How much of the sync range is covered; while telemetry is not read, also when it was last read. */
function coveredTile(report: StatusOverview): Tile {
  const { totals, jobs, generated_at: now } = report;
  const unread = unreadNow(report);
  const backfills = jobs.filter(({ kind, state }) => kind === 'backfill' && state === 'running');
  const beside = backfills.map(
    ({ share }) => `; backfill running${share === null ? '' : `, ${percent(share)} of its range`}`,
  );
  const isBlocked = report.destinations.some(({ blocked_reason }) => blocked_reason !== null);
  const complete = `${grouped(totals.devices_complete)} of ${counted(totals.devices, 'device')} complete`;
  return {
    title: 'Sync range covered',
    value: coveredText(report) ?? 'not known',
    lines: [
      `${complete}${isBlocked ? ' in the archive' : ''}${beside.join('')}`,
      ...(unread === null ? [] : [lastPollText(unread, now)]),
    ],
    ...(unread === null ? {} : { tone: 'busy' }),
  };
}

/** The covered share as text; `null`: not known. */
export function coveredText({ totals: { covered_share } }: Pick<StatusOverview, 'totals'>): string | null {
  return covered_share === null ? null : percent(covered_share);
}

/** Builds the tiles: the most important figures, each with its text. */
export function tileSection(report: StatusOverview): Html {
  const items = tiles(report).map(
    ({ title, value, lines, tone }) =>
      html`<div class="tile ${tone ?? ''}"><dt>${name(title)}</dt><dd><b>${value}</b>${lines.map((line) => html`<span>${typeof line === 'string' ? joinUnits(line) : line}</span>`)}</dd></div>`,
  );
  return html`<dl class="tiles" id="tiles">${items}</dl>`;
}

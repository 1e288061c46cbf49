/**
 * The top of the page: the state in a sentence, the problems, and the figures that answer "how far behind": first the
 * lag of each database, which grows while the database or the API is down.
 */

import type { DestinationReport, HealthReport, ReadyReport, StatusOverview } from '../core/status.ts';
import { counted, databaseText, duration, grouped, percent } from '../core/text.ts';
import { SECOND_MS } from '../core/time.ts';
import { type Html, html, moment, NOTHING, name, text, unbroken } from './html.ts';

/** How serious the state is: a person must act, it will pass without one, or all is well. */
type Tone = 'ok' | 'busy' | 'bad';

/** The data of the overview. */
export interface OverviewParts {
  readonly report: StatusOverview;
  /** The age of the scan of the devices that the report uses. */
  readonly ageSeconds: number;
  readonly ready: ReadyReport;
  readonly health: HealthReport;
}

/** Codes that pass by themselves while the work continues. */
const PASSING: ReadonlySet<string> = new Set(['devices_not_listed', 'last_day_missing']);

/** Streams that are not read although they should be. Any but telemetry may be off on purpose. */
function streamsWithProblems({ streams }: StatusOverview): StatusOverview['streams'] {
  return streams.filter(({ name, state }) => state === 'failing' || (state === 'off' && name === 'telemetry'));
}

/** How serious it is, from the report and both health checks. */
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

/** That telemetry is not read from the API, and when it was read last; `null`: never. */
export interface Unread {
  readonly sinceAt: string | null;
}

/** Whether telemetry is not read now; `null` while it is. */
export function unreadNow({ report, ready }: Pick<OverviewParts, 'report' | 'ready'>): Unread | null {
  const telemetry = report.streams.find(({ name }) => name === 'telemetry');
  const isUnread =
    ready.codes.some((code) => code === 'key_refused' || code === 'api_unreachable') ||
    telemetry?.state === 'failing' ||
    telemetry?.state === 'off';
  return isUnread ? { sinceAt: telemetry?.last_read_at ?? null } : null;
}

const TONES: Readonly<Record<Tone, string>> = { ok: 'OK', busy: 'Syncing', bad: 'Problem' };

/** The tone as it is shown. */
export function toneText(tone: Tone): string {
  return TONES[tone];
}

/** The state in a sentence, with the problems that the sentence does not name. */
export function standing(parts: OverviewParts): Html {
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
  return html`<section id="standing" class="standing ${tone}" aria-label="State"><p class="tone">${TONES[tone]}</p><p class="summary" role="status">${text(report.summary, 600)}</p>${list}${lossNotes(parts)}</section>`;
}

/** The streams that have failed for too short a time to be in the readiness report, each with its reason. */
function newStreamProblems({ report, ready }: OverviewParts): readonly string[] {
  // While the API as a whole is not read, the streams fail for the same reason.
  if (ready.codes.some((code) => code === 'key_refused' || code === 'api_unreachable')) return [];
  const reported = new Set([...ready.names, report.summary_problem?.name]);
  return streamsWithProblems(report)
    .filter(({ name }) => !reported.has(name))
    .map(({ name, reason }) => `stream ${name}: ${reason ?? 'not read'}`);
}

/** The effect of a part that does not work on the readings, since when, and what happens next. */
function lossNotes(parts: OverviewParts): readonly Html[] {
  const { destinations, archive, next, generated_at: now } = parts.report;
  // With a full disk nothing is read: the summary reports that.
  if (archive.full !== null) return [];
  const unread = unreadNow(parts);
  const since = unread === null || unread.sinceAt === null ? NOTHING : html` since ${moment(unread.sinceAt, now)}`;
  const blocked = destinations.filter(({ blocked_reason }) => blocked_reason !== null);
  return [
    ...(unread === null
      ? []
      : [
          html`<p>Polling has stopped${since}. Stored readings are safe. ${retryText(next.attempt_at, now)} When polling resumes, Tidemark reads the missing readings, as far back as the plan allows.</p>`,
        ]),
    ...blocked.map(({ name: title, pending_points, oldest_pending_at, blocked_since, next_attempt_at: next }) => {
      const at = oldest_pending_at === null ? NOTHING : html`, the oldest since ${moment(oldest_pending_at, now)}`;
      const blockedAt = blocked_since === null ? NOTHING : html`Blocked since ${moment(blocked_since, now)}. `;
      return html`<p>${blockedAt}Nothing is lost: ${counted(pending_points, 'point')} for ${name(title)} ${pending_points === 1 ? 'waits' : 'wait'} in the archive${at}. ${nextAttempt(next, now)}</p>`;
    }),
  ];
}

/** When the API is tried again. A new key in the file of `api.key_file` is noticed earlier. */
function retryText(at: string | null, now: string): Html {
  return at === null ? html`Tidemark retries by itself.` : nextAttempt(at, now);
}

/** When a blocked delivery is tried again, at most about a minute and a half later. */
function nextAttempt(at: string | null, now: string): Html {
  if (at === null) return html`Tidemark retries about once a minute.`;
  return Date.parse(at) <= Date.parse(now)
    ? html`Tidemark is retrying now.`
    : html`The next attempt is at ${moment(at, now)}.`;
}

interface Tile {
  readonly title: string;
  readonly value: string | Html;
  readonly text: string | Html;
  readonly tone?: Tone;
}

/** How many databases have a tile of their own. */
const MOST_LAG_TILES = 3;

/** The lag of each database; of the archive if there is none. */
function lagTiles(parts: OverviewParts): Tile[] {
  const { report } = parts;
  const { destinations, freshness } = report;
  const unread = unreadNow(parts);
  if (unread !== null) return unreadTiles(report, unread);
  if (destinations.length === 0) {
    const behind: Pick<Tile, 'tone'> = isBehind(freshness) ? { tone: 'busy' } : {};
    return [
      {
        title: 'Lag of the archive',
        value: lagText(freshness.median_seconds),
        text: spreadText(report, freshness.median_seconds),
        ...behind,
      },
    ];
  }
  return destinations
    .toSorted((a, b) => (b.lag_seconds ?? Infinity) - (a.lag_seconds ?? Infinity))
    .slice(0, MOST_LAG_TILES)
    .map((each, index) => lagTile(report, each, index === 0));
}

/** The lag while telemetry is not read: at least the time since it was read last, as newer readings are unknown. */
function unreadSeconds({ generated_at: now }: StatusOverview, { sinceAt }: Unread): number | null {
  return sinceAt === null ? null : Math.max(0, (Date.parse(now) - Date.parse(sinceAt)) / SECOND_MS);
}

/** The destinations, each with its lag as the tile shows it. */
export function destinationsNow(parts: Pick<OverviewParts, 'report' | 'ready'>): readonly DestinationReport[] {
  const { report } = parts;
  const unread = unreadNow(parts);
  const least = unread === null ? null : unreadSeconds(report, unread);
  if (least === null) return report.destinations;
  return report.destinations.map((each) => ({ ...each, lag_seconds: Math.max(each.lag_seconds ?? 0, least) }));
}

function unreadTiles(report: StatusOverview, unread: Unread): Tile[] {
  const { destinations, freshness, generated_at: now } = report;
  const { sinceAt } = unread;
  const lags = destinations.map(({ lag_seconds }) => lag_seconds).filter((lag) => lag !== null);
  const least = unreadSeconds(report, unread);
  const known = [least, freshness.median_seconds, ...lags].filter((seconds) => seconds !== null);
  const since = sinceAt === null ? '' : html` since ${moment(sinceAt, now)}`;
  return [
    {
      title: 'Lag',
      value: known.length === 0 ? 'not known' : duration(Math.max(...known)),
      text: html`polling has stopped${since}: newer readings are missing, and the lag grows`,
      tone: 'bad',
    },
  ];
}

/** Whether devices are late, as text and colour of a tile say it; in an initial sync there is no lag to be late with. */
function isBehind({ behind_devices, median_seconds }: StatusOverview['freshness']): boolean {
  return behind_devices > 0 && median_seconds !== null;
}

function lagTile(report: StatusOverview, destination: DestinationReport, hasSpread: boolean): Tile {
  const { lag_seconds, blocked_reason } = destination;
  const isLate = lag_seconds !== null && lag_seconds > report.freshness.behind_after_seconds;
  const stopped = blocked_reason === null ? '' : 'delivery is blocked; ';
  return {
    title: `Lag in ${databaseText(destination.name, report.destinations.length)}`,
    value: lagText(lag_seconds),
    text: `${stopped}${pendingText(report, destination)}${hasSpread ? `; ${spreadText(report, lag_seconds)}` : ''}`,
    ...(blocked_reason !== null || isLate ? { tone: 'bad' } : isBehind(report.freshness) ? { tone: 'busy' } : {}),
  };
}

/**
 * The points that wait for a database, and for how long. Points of the history come last, so they may be older than the
 * lag.
 */
function pendingText(
  { generated_at: now }: StatusOverview,
  { pending_points, oldest_pending_at, lag_seconds, blocked_reason }: DestinationReport,
): string {
  if (pending_points === 0) return 'every archived point is delivered';
  const points = `${counted(pending_points, 'point')} waiting`;
  if (oldest_pending_at === null) return points;
  const seconds = Math.max(0, (Date.parse(now) - Date.parse(oldest_pending_at)) / SECOND_MS);
  const isHistory = blocked_reason === null && lag_seconds !== null && seconds > lag_seconds + 1;
  return `${points}, the oldest for ${duration(seconds)}${isHistory ? ' (history, delivered after new readings)' : ''}`;
}

function lagText(seconds: number | null): string {
  return seconds === null ? 'initial sync' : duration(seconds);
}

/**
 * The rank of a tile's lag among the devices, and the poll interval. The other figures are those of the archive: they
 * hold for a database as well unless it lags behind the archive, as the same statistics are compared.
 *
 * @param lagSeconds the lag that the tile shows.
 */
function spreadText({ freshness }: StatusOverview, lagSeconds: number | null): string {
  const { target_seconds, expected_seconds, behind_devices, behind_after_seconds } = freshness;
  const slowed = expected_seconds > target_seconds ? `, ${duration(expected_seconds)} with this quota` : '';
  const behind = isBehind(freshness)
    ? `; ${counted(behind_devices, 'device')} with a lag of more than ${duration(behind_after_seconds)}`
    : '';
  return `${figuresText(freshness, lagSeconds)}poll interval ${duration(target_seconds)}${slowed}${behind}`;
}

function figuresText(
  { median_seconds, p95_seconds, max_seconds }: StatusOverview['freshness'],
  lagSeconds: number | null,
): string {
  const known = [
    ...(p95_seconds === null ? [] : [`p95 ${duration(p95_seconds)}`]),
    ...(max_seconds === null ? [] : [`max ${duration(max_seconds)}`]),
  ];
  if (known.length === 0) return '';
  if (median_seconds === null || lagSeconds === null) return `in the archive: ${known.join(', ')}; `;
  return Math.abs(lagSeconds - median_seconds) < 1
    ? `median of the devices (${known.join(', ')}); `
    : `median of the devices; in the archive: median ${duration(median_seconds)}, ${known.join(', ')}; `;
}

function tiles(parts: OverviewParts): Tile[] {
  const { report } = parts;
  const { totals } = report;
  return [
    ...lagTiles(parts),
    coveredTile(parts),
    {
      title: 'Readings archived',
      value: grouped(totals.archived_readings),
      text: `${grouped(totals.archived_points)} telemetry points, ${counted(totals.requests, 'request')}`,
    },
    {
      title: 'Rejected records',
      value: grouped(totals.rejected_records),
      text: totals.rejected_records === 0 ? 'no record was rejected' : 'they cannot be parsed, or stored as points',
    },
  ];
}

/** How much of the sync range is covered: while polling is stopped up to when, as newer readings are missing. */
function coveredTile(parts: OverviewParts): Tile {
  const { report } = parts;
  const { totals, jobs, generated_at: now } = report;
  const title = 'Sync range covered';
  const covered = coveredText(report);
  const complete = `${grouped(totals.devices_complete)} of ${counted(totals.devices, 'device')} complete`;
  const unread = unreadNow(parts);
  if (unread !== null) {
    const { sinceAt } = unread;
    const value = sinceAt === null ? 'not known' : html`up to ${moment(sinceAt, now)}`;
    const share = covered === null || covered === percent(1) ? '' : `${covered}, `;
    const then = sinceAt === null ? '' : `${share}${complete} by then; `;
    return { title, value, text: `${then}polling has stopped`, tone: 'busy' };
  }
  const backfills = jobs.filter(({ kind, state }) => kind === 'backfill' && state === 'running');
  const beside = backfills.map(
    ({ share }) => `; backfill running${share === null ? '' : `, ${percent(share)} of its range`}`,
  );
  return { title, value: covered ?? 'not known', text: `${complete}${beside.join('')}` };
}

/** The covered share as text; `null`: not known. */
export function coveredText({ totals: { covered_share } }: Pick<StatusOverview, 'totals'>): string | null {
  return covered_share === null ? null : percent(covered_share);
}

/** The figures of the overview. */
export function tileSection(parts: OverviewParts): Html {
  const items = tiles(parts).map(
    ({ title, value, text, tone }) =>
      html`<div class="tile ${tone ?? ''}"><dt>${name(title)}</dt><dd><b>${value}</b><span>${typeof text === 'string' ? unbroken(text) : text}</span></dd></div>`,
  );
  return html`<dl class="tiles" id="tiles">${items}</dl>`;
}

/**
 * The text of `--status`: one screen, problems first, each with a remedy. It is made from the report alone, so `--json`
 * contains everything that it shows.
 */

import { gapText, missingText, PENDING } from '../../core/device-coverage.ts';
import { laneText, quotaWaitText, windowText } from '../../core/quota.ts';
import {
  type DestinationReport,
  type DeviceStatus,
  deviceStateText,
  type JobStatus,
  POLLING_TEXTS,
  type StatusReport,
  type StreamStatus,
  shownState,
  streamStateText,
  unreadNow,
  withShownLags,
} from '../../core/status.ts';
import { byteSize, duration, percent, plainText } from '../../core/text.ts';
import { secondsOf } from '../../report/device-snapshot.ts';
import { cell, count, formatTime, type Layout, layoutOf, minute, nameText, plural, WIDTH } from '../shared/layout.ts';

/** The most entries of each kind that are listed. */
const DEVICES_SHOWN = 5;
const REASONS_SHOWN = 6;
const JOBS_SHOWN = 3;
/** The states with a count in the text, in its order. */
const SHOWN_STATES = ['live', 'catching-up', 'silent', 'out-of-service', 'unreachable', 'excluded'] as const;

/** The answer as a text of several lines, none wider than `width`. */
export function statusText(report: StatusReport, width = WIDTH): string {
  const layout = layoutOf(width);
  return [
    head(report, layout),
    delivery(report, layout),
    coverage(report, layout),
    freshness(report, layout),
    gapLines(report, layout),
    devices(report, layout),
    streams(report, layout),
    quotaLines(report, layout),
    archive(report, layout),
    jobs(report, layout),
    next(report, layout),
  ].join('');
}

function head({ workspace_id, generated_at, summary, process: work, version }: StatusReport, { wrap }: Layout): string {
  // If no process runs, the summary reports it.
  const works = `Tidemark is running: last request ${sinceText(generated_at, work.last_request_at)}, last archived point ${sinceText(generated_at, work.last_archived_at)}.`;
  return [
    wrap(`Tidemark ${version}: ${nameText(workspace_id ?? 'no workspace yet')}, as of ${formatTime(generated_at)}`, 0),
    wrap(plainText(summary, 600), 0),
    work.running ? wrap(works, 0) : '',
    '\n',
  ].join('');
}

function coverage({ totals, devices }: StatusReport, { row }: Layout): string {
  const { covered_share, devices: kept, devices_complete, archived_readings, rejected_records } = totals;
  const share = covered_share === null ? 'no device is known yet' : `${percent(covered_share)} covered`;
  const states = SHOWN_STATES.flatMap((state) => {
    const number = devices.filter((device) => shownState(device) === state).length;
    return number === 0 ? [] : [`${count(number)} ${deviceStateText(state)}`];
  });
  const stateText = states.length === 0 ? '' : `; states: ${states.join(', ')}`;
  const aside =
    rejected_records === 0
      ? []
      : [row('', `${plural(rejected_records, 'record')} from the API could not be parsed (tidemark --quarantine)`)];
  const whole = `${count(devices_complete)} of ${plural(kept, 'device')} complete${stateText}`;
  return [row('Coverage', `${share}, ${plural(archived_readings, 'archived reading')}; ${whole}`), ...aside].join('');
}

/** The lags; while telemetry is not read, also the time since it was last read: no lag is less. */
function freshness(report: StatusReport, { row }: Layout): string {
  const { freshness: fresh, destinations } = withShownLags(report);
  const { target_seconds, expected_seconds, median_seconds, p95_seconds, max_seconds, behind_devices } = fresh;
  const slowed =
    expected_seconds <= target_seconds
      ? ''
      : `, but the quota allows one every ${duration(expected_seconds)} (--plan shows what would change that)`;
  const unreadSeconds = unreadNow(report)?.seconds ?? null;
  const last = unreadSeconds === null ? '' : `; last poll ${duration(unreadSeconds)} ago`;
  const target = `poll interval ${duration(target_seconds)}${slowed}${last}`;
  const max = max_seconds === null ? null : duration(max_seconds);
  const isInitial = report.freshness.median_seconds === null;
  if (isInitial || median_seconds === null || p95_seconds === null) {
    // Without a larger lag, it is the time since the last poll.
    const largest = max === null || max_seconds === unreadSeconds ? '' : `; largest lag so far ${max}`;
    const sync = `initial sync${largest}; `;
    return row('Lag', `${report.next.initial_devices === 0 ? '' : sync}${target}`);
  }
  const behind = behind_devices === 0 ? '' : `; ${plural(behind_devices, 'device')} behind`;
  const figures = `median ${duration(median_seconds)}, p95 ${duration(p95_seconds)}${max === null ? '' : `, max ${max}`}`;
  // A database that accepts nothing has a larger lag than the archive.
  const blocked = destinations.flatMap(({ name, blocked_reason, lag_seconds }) =>
    blocked_reason === null || lag_seconds === null
      ? []
      : [`; in ${nameText(name, 40)}: median ${duration(lag_seconds)}`],
  );
  const where = blocked.length === 0 ? figures : `in the archive: ${figures}${blocked.join('')}`;
  return row('Lag', `${where}; ${target}${behind}`);
}

function gapLines(report: StatusReport, layout: Layout): string {
  const { gaps, devices: all, process: work } = report;
  if (gaps.length === 0) return layout.row('Gaps', all.length === 0 ? 'no device is known yet' : 'none');
  const shown = gaps.slice(0, REASONS_SHOWN).map(({ reason, devices, seconds }, index) => {
    const { why, remedy: toDo } = gapText(reason);
    const remedy = reason === PENDING && work.running ? readingText(report) : toDo;
    const where = `${plural(devices, 'device')}, ${duration(seconds)}${devices > 1 ? ' in total' : ''}`;
    return layout.row(index === 0 ? 'Gaps' : '', `${why}: ${where}${remedy === '' ? '' : `; ${remedy}`}`);
  });
  return [...shown, ...more(gaps.length - REASONS_SHOWN, layout)].join('');
}

/** When a running daemon reads the gaps that nothing else blocks. */
function readingText(report: StatusReport): string {
  if (report.archive.full !== null) return 'read when polling resumes';
  const unread = unreadNow(report);
  return unread === null ? 'the daemon reads them now' : POLLING_TEXTS[unread.polling].gaps;
}

function more(left: number, { row }: Layout): string[] {
  return left > 0 ? [row('', `and ${count(left)} more (--json)`)] : [];
}

/** The devices with lag or gaps, the worst first. */
function devices(
  { devices: all, freshness: { behind_after_seconds: behindAfter } }: StatusReport,
  layout: Layout,
): string {
  const bad = all
    .filter(({ state }) => state !== 'excluded')
    .map((device) => ({ device, seconds: deviceUrgency(device) }))
    .filter(({ seconds }) => seconds >= 1)
    .sort((a, b) => b.seconds - a.seconds);
  if (bad.length === 0) return '';
  const rows = bad.slice(0, DEVICES_SHOWN).map(({ device }) => deviceLine(device, behindAfter, layout));
  const left = bad.length - rows.length;
  const rest = left > 0 ? layout.wrap(`  and ${count(left)} more; tidemark --status --device ID shows one`, 2) : '';
  return `Devices with the largest gaps or lag\n${rows.join('')}${rest}`;
}

/** The order of devices: by the length of their gaps; a device without any coverage counts as infinite. */
function deviceUrgency({ covered, gaps }: DeviceStatus): number {
  return covered.length === 0 ? Number.MAX_SAFE_INTEGER : secondsOf(gaps);
}

/** One line for a device, with any name. */
function deviceLine(
  { device_id, device_name, lag_seconds, covered, gaps }: DeviceStatus,
  behindAfter: number,
  { width }: Layout,
): string {
  const reasons = [...new Set(gaps.map(({ reason }) => gapText(reason).why))];
  const isBehind = lag_seconds !== null && lag_seconds > behindAfter;
  const behind = covered.length === 0 ? 'never read' : isBehind ? `lag ${duration(lag_seconds)}` : '';
  const gapCount =
    gaps.length === 0 ? '' : `${plural(gaps.length, 'gap')}, ${duration(secondsOf(gaps))}: ${reasons.join(', ')}`;
  const name = device_name === device_id ? device_id : `${plainText(device_id, 20)} ${device_name}`;
  const text = [behind, gapCount].filter((text) => text !== '').join('; ');
  return `  ${cell(name, NAME_COLUMNS)} ${nameText(text, width - NAME_COLUMNS - 3)}\n`;
}

const NAME_COLUMNS = 24;

function streams({ streams: all, process: work, generated_at }: StatusReport, { row }: Layout): string {
  const textOf = ({
    name,
    state,
    reason,
    last_read_at,
  }: Omit<StreamStatus, 'name'> & { readonly name: string }): string => {
    if (!work.running && (state === 'on' || state === 'waiting'))
      return `${name} last read ${sinceText(generated_at, last_read_at)}`;
    return `${name} ${streamStateText({ state, last_read_at })}${reason === null ? '' : ` (${plainText(reason, 120)})`}`;
  };
  // All streams of an API that cannot be read have one state and one reason.
  const same = new Set(all.map(({ state, reason }) => JSON.stringify([state, reason]))).size === 1;
  const [first] = all;
  if (first !== undefined && same && first.state !== 'on' && (work.running || first.state !== 'waiting'))
    return row('Streams', textOf({ ...first, name: 'all' }));
  return row('Streams', all.map(textOf).join(', '));
}

function delivery({ destinations, generated_at, process: work, totals }: StatusReport, layout: Layout): string {
  if (destinations.length === 0)
    return layout.row('Delivery', 'no database is configured: readings are stored only in the archive');
  const many = destinations.length > 1;
  return destinations
    .map((each, index) =>
      destination(each, {
        generated_at,
        running: work.running,
        label: index === 0 ? 'Delivery' : '',
        many,
        isEmpty: totals.archived_points === 0,
        layout,
      }),
    )
    .join('');
}

interface DeliveryView {
  readonly generated_at: string;
  readonly running: boolean;
  readonly label: string;
  /** Whether a command has to name the destination. */
  readonly many: boolean;
  /** Whether no point was ever stored. */
  readonly isEmpty: boolean;
  readonly layout: Layout;
}

function destination(
  { name: served, pending_points, oldest_pending_at, quarantined, blocked_reason, missing }: DestinationReport,
  { generated_at, running, label, many, isEmpty, layout: { row } }: DeliveryView,
): string {
  const name = nameText(served, 30);
  const flag = many ? ` --destination ${name}` : '';
  const waits = oldest_pending_at === null ? '' : `, the oldest for ${elapsed(generated_at, oldest_pending_at)}`;
  const pending =
    pending_points === 0
      ? isEmpty
        ? 'no point to deliver yet'
        : `every point delivered${missing.length === 0 ? '' : ' but those below'}`
      : `${plural(pending_points, 'point')} wait${waits}`;
  const inQuarantine = quarantined === 0 ? '' : `; ${count(quarantined)} in quarantine (tidemark --quarantine${flag})`;
  return [
    row(label, `${many ? `${name}: ` : ''}${pending}${inQuarantine}`),
    ...(blocked_reason === null
      ? []
      : [row('', `${running ? 'blocked' : 'blocked at the last attempt'}: ${plainText(blocked_reason, 300)}`)]),
    ...missing.map(({ from, to, ...range }) =>
      row('', plainText(missingText(served, { ...range, from: minute(from), to: minute(to) }), 500)),
    ),
  ].join('');
}

function quotaLines({ allowance: quota }: StatusReport, { row }: Layout): string {
  const { minute: ofMinute, day, lanes } = quota;
  const byLane = lanes
    .filter((lane) => lane.day > 0)
    .map((lane) => `${laneText(lane.lane)} ${count(lane.minute)}/${count(lane.day)}`);
  const wait = quotaWaitText(quota);
  return [
    row('Quota', `last minute ${windowText(ofMinute)}; last 24 hours ${windowText(day)}`),
    ...(byLane.length === 0 ? [] : [row('', `by purpose, in the last minute/24 hours: ${byLane.join(', ')}`)]),
    ...(wait === null ? [] : [row('', `${wait.text} ${formatTime(wait.at)}`)]),
  ].join('');
}

function archive(
  { archive: { points, state_bytes, max_bytes, disk_free_bytes, full } }: StatusReport,
  { row }: Layout,
): string {
  const most = max_bytes === null ? '' : ` of ${byteSize(max_bytes)}`;
  const disk = disk_free_bytes === null ? '' : `; ${byteSize(disk_free_bytes)} of the disk free`;
  return [
    row('Archive', `${plural(points, 'point')} of all measurements, ${byteSize(state_bytes)}${most}${disk}`),
    ...(full === null ? [] : [row('', plainText(full, 400))]),
  ].join('');
}

function jobs({ jobs: open, generated_at }: StatusReport, layout: Layout): string {
  if (open.length === 0) return '';
  const shown = open.slice(0, JOBS_SHOWN).map((job, index) => {
    const { kind, requested_by, state, requested_at, started_at } = job;
    const since =
      started_at === null
        ? `requested ${elapsed(generated_at, requested_at)} ago`
        : `for ${elapsed(generated_at, started_at)}`;
    const who = plainText(requested_by, 60);
    const what = who === '' || who === `--${kind}` ? plainText(kind, 20) : `${plainText(kind, 20)} (${who})`;
    return layout.row(index === 0 ? 'Jobs' : '', `${what}: ${state}, ${since}${jobProgress(job)}`);
  });
  return [...shown, ...more(open.length - JOBS_SHOWN, layout)].join('');
}

/** The progress of a job, if the job reports it: `; 42 % done, 1,234 requests at 21 a minute, ETA 26 min`. */
function jobProgress({ range, share, requests, requests_per_minute, eta_seconds, waits }: JobStatus): string {
  const rate =
    requests_per_minute === null ? '' : ` so far (recently ${Number(requests_per_minute.toPrecision(2))} a minute)`;
  const parts = [
    ...(share === null ? [] : [`${percent(share)} ${range === null ? 'done' : 'of its range covered'}`]),
    ...(requests === null ? [] : [`${plural(requests, 'request')}${rate}`]),
    ...(eta_seconds === null ? [] : [`ETA ${duration(eta_seconds)}`]),
    ...(waits === null ? [] : [plainText(waits, 200)]),
  ];
  return parts.length === 0 ? '' : `; ${parts.join(', ')}`;
}

function next(
  {
    next: { streams: due, devices_with_gaps, gap_seconds },
    devices,
    streams: all,
    process: work,
    archive: { full },
    generated_at,
  }: StatusReport,
  { row }: Layout,
): string {
  const open =
    devices_with_gaps === 0
      ? devices.length === 0
        ? 'no device is known yet'
        : 'no gaps to close'
      : `${plural(devices_with_gaps, 'device')} with gaps to close (${duration(gap_seconds)}, in total over the devices)`;
  if (!work.running) return row('Next', `nothing until the daemon is started; ${open}`);
  if (full !== null) return row('Next', `nothing until polling resumes; ${open}`);
  const isNow = (at: string): boolean => Date.parse(at) < Date.parse(generated_at);
  const now = due.flatMap(({ name, due_at }) => (due_at !== null && isNow(due_at) ? [name] : []));
  const later = due.flatMap(({ name, due_at }) =>
    due_at === null || isNow(due_at) ? [] : [`${name} ${due_at.slice(11, 19)}`],
  );
  const parts = [
    ...(now.length === 0 ? [] : [`${now.join(', ')} now`]),
    ...(later.length === 0 ? [] : [`${later.join(', ')} UTC`]),
  ];
  const withoutPoll = all.every(({ state }) => state === 'off')
    ? 'no poll: the key lacks the scopes'
    : 'no poll until the key is accepted';
  return row('Next', `${parts.length === 0 ? withoutPoll : parts.join('; ')}; ${open}`);
}

function sinceText(now: string, at: string | null): string {
  return at === null ? 'never' : `${elapsed(now, at)} ago`;
}

/** The time from an instant to the report; 0 if the instant is later. */
function elapsed(now: string, at: string): string {
  return duration(Math.max(0, (Date.parse(now) - Date.parse(at)) / 1000));
}

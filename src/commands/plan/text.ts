/**
 * The answer of `--plan` as text: one screen, with a unit for every number.
 */
import { LIVE_LAG_SECONDS, NEWEST_READ_WITHIN_MS } from '../../core/device-coverage.ts';
import { laneText } from '../../core/quota.ts';
import { counted, duration, grouped, percent, plainText, rateText } from '../../core/text.ts';
import { DAY_MS, HOUR_SECONDS, SECOND_MS } from '../../core/time.ts';
import { wrap } from '../shared/layout.ts';
import type { CostPlan } from './cost.ts';

/** The answer as a text of several lines, at most 80 columns wide. */
export function planText(plan: CostPlan): string {
  const parts = [
    headLines(plan),
    requestTable(plan),
    quotaLines(plan),
    verdictLines(plan),
    backfillLines(plan),
    plan.basis.assumptions.map((text) => `Assumed: ${text}`),
  ];
  return parts
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.map((line) => wrap(line)).join(''))
    .join('\n');
}

function headLines({ basis, what_if, workspace, devices, readings_per_day: readings }: CostPlan): string[] {
  const changes = Object.entries(what_if).map(([key, value]) => `${key}=${value}`);
  const name = plainText(workspace.name ?? workspace.workspace_id ?? 'unknown', 60);
  const leftOut = devices.left_out === 0 ? '' : `; ${grouped(devices.left_out)} more excluded by the configuration`;
  return [
    `Workspace ${name} (${sourceOf(basis)})`,
    ...(changes.length === 0 ? [] : [`What if: ${changes.join(', ')}`]),
    `Devices: ${grouped(devices.total)} (${grouped(devices.reporting)} reporting, ${grouped(devices.quiet)} silent or out of service)${leftOut}`,
    `Readings: about ${grouped(readings.made)} a day (report rates${'devices' in what_if ? ' of the existing devices' : ''}: ${grouped(devices.rates_measured)} measured, ${grouped(devices.rates_assumed)} assumed)`,
  ];
}

const LANES = [
  ['live', laneText('live')],
  ['alerts', 'alerts'],
  ['device_list', 'device list'],
  ['account', 'account'],
  ['idle_polls', laneText('idle-poll')],
  ['total', 'total'],
] as const;

function requestTable({ requests_per_day: { needed, planned, left_for_history }, schedules }: CostPlan): string[] {
  const every: Readonly<Record<(typeof LANES)[number][0], number | null>> = {
    live: schedules.telemetry.mean_seconds,
    alerts: schedules.alerts.mean_seconds,
    device_list: schedules.devices.mean_seconds,
    account: schedules.account.mean_seconds,
    idle_polls: schedules.idle_poll.mean_seconds,
    total: null,
  };
  const row = (cells: readonly [string, string, string, string]): string =>
    `  ${cells[0].padEnd(24)}${cells[1].padStart(12)}${cells[2].padStart(14)}${cells[3].padStart(14)}`;
  const alertRequests = Math.round((needed.alerts * schedules.alerts.mean_seconds * SECOND_MS) / DAY_MS);
  return [
    row(['Requests a day', 'interval', 'needed', 'planned']),
    ...LANES.map(([lane, name]) => {
      const due = every[lane];
      const label = lane === 'alerts' && alertRequests > 1 ? `${name} (${alertRequests} requests)` : name;
      return row([label, due === null ? '' : duration(due), grouped(needed[lane]), grouped(planned[lane])]);
    }),
    row(['left for history', '', '', grouped(left_for_history)]),
  ];
}

/** A used share of a budget, rounded: it is an estimate, not progress. */
function usedText(share: number): string {
  return percent(Math.round(share * 1000) / 1000);
}

function quotaLines({ allowance: { share, minute, day } }: CostPlan): string[] {
  const part = percent(share);
  const ofMinute = `per minute: ${grouped(minute.limit)} requests, budget ${grouped(minute.budget)} (${part}); planned ${minute.planned} (${usedText(minute.used_share)})`;
  const spent = `last 24 hours: ${counted(day.spent_last_24h, 'own request')}`;
  const others = day.used_by_others === null ? '' : `, other clients ${grouped(day.used_by_others)}`;
  const ofDay =
    day.limit === null || day.budget === null || day.used_share === null
      ? 'per day: the limit is unknown'
      : `per day: ${grouped(day.limit)} requests, budget ${grouped(day.budget)} (${part}); planned ${grouped(day.planned)} (${usedText(day.used_share)})`;
  return [`Quota ${ofMinute}`, `Quota ${ofDay}; ${spent}${others}`];
}

function verdictLines({ fits, warning, freshness, devices }: CostPlan): string[] {
  const { median_seconds: median, p95_seconds: p95 } = freshness;
  const fresh =
    devices.reporting === 0
      ? 'Lag: unknown, because no device reports.'
      : `Lag: readings are stored within ${duration(median)} of their time on the median device (p95 of the devices: ${duration(p95)}).`;
  return [fits ? 'The quota is large enough.' : `The quota is too small. ${warning ?? ''}`, fresh];
}

/** The cost of the history alone, as `--backfill --dry-run` prints it. */
export function backfillText(plan: CostPlan): string {
  const { basis, workspace } = plan;
  const name = plainText(workspace.name ?? workspace.workspace_id ?? 'unknown', 60);
  const lines = [
    `Workspace ${name} (${sourceOf(basis)})`,
    ...backfillLines(plan),
    ...basis.assumptions.map((text) => `Assumed: ${text}`),
    'No telemetry was requested.',
  ];
  return lines.map((line) => wrap(line)).join('');
}

function sourceOf({ source, requests_spent: spent, as_of }: CostPlan['basis']): string {
  return source === 'api'
    ? `from ${counted(spent, 'request')} sent just now`
    : `from the state of the running process, as of ${as_of}; no request was sent`;
}

/** The rate of a backfill. If it ends within an hour, the limit of the minute counts, not the limit of the day. */
function requestRateText({ requests, seconds, perDay }: { requests: number; seconds: number; perDay: number }): string {
  if (seconds >= HOUR_SECONDS) return `${grouped(perDay)} requests a day`;
  const perMinute = (requests * 60) / Math.max(1, seconds);
  return `about ${rateText(perMinute)} requests a minute`;
}

const POLL_WAIT = `plus up to ${duration(NEWEST_READ_WITHIN_MS / SECOND_MS)}, until the polls have read the newest minutes`;

/** Whether the range ends so late that a backfill leaves its end to the daemon's polls. */
function awaitsPoll({ source, as_of }: CostPlan['basis'], to: string): boolean {
  return source === 'state' && Date.parse(to) > Date.parse(as_of) - LIVE_LAG_SECONDS * SECOND_MS;
}

function backfillLines({ basis, backfill }: CostPlan): string[] {
  const { from, to, devices, devices_with_gaps, gap_share, readings, requests, beside_daemon, alone, rate, note } =
    backfill;
  const head = `History from ${from} to ${to}, ${counted(devices, 'device')}`;
  if (requests === 0) return [`${head}: all covered`];
  const open =
    gap_share < 1
      ? ` (${percent(gap_share)} of it is not covered yet, for ${counted(devices_with_gaps, 'device')})`
      : '';
  const time = ({ seconds, until, requests_per_day: perDay }: typeof alone): string =>
    seconds === null
      ? 'never: the poll schedules use the whole budget'
      : `${duration(seconds)}, until ${until} (${requestRateText({ requests, seconds, perDay })})`;
  const timed = ({ seconds, until, in_time: inTime }: NonNullable<typeof rate>['alone']): string => {
    if (seconds === null) return 'never: the poll schedules use the whole budget';
    return `${duration(seconds)}, until ${until}${inTime === false ? ': later than the requested time' : ''}`;
  };
  return [
    `${head}: about ${counted(readings, 'reading')} in ${counted(requests, 'request')}${open}`,
    `  while the daemon runs, with the requests that its polls leave over: ${time(beside_daemon)}`,
    ...(awaitsPoll(basis, to) ? [`    ${POLL_WAIT}`] : []),
    `  without a daemon, with the whole budget: ${time(alone)}`,
    ...(rate === null
      ? []
      : [
          `  at ${rate.max_share === null ? `--finish-by ${rate.finish_by}` : `--max-share ${rate.max_share}`}: ${grouped(rate.requests_per_day)} requests a day${rate.share_of_budget === null ? '' : ` (${percent(rate.share_of_budget)} of the budget)`}`,
          `    while the daemon runs: ${timed(rate.beside_daemon)}`,
          `    without a daemon: ${timed(rate.alone)}`,
        ]),
    ...(note === null ? [] : [`  ${note}`]),
  ];
}

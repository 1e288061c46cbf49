/**
 * The answer of `--plan` as text: one screen, with a unit for every number.
 */
import { counted, duration, grouped, percent, plainText } from '../../core/text.ts';
import { wrap } from '../shared/layout.ts';
import type { CostPlan } from './cost.ts';

/** The answer as a text of several lines, at most 80 columns wide. */
export function planText(plan: CostPlan): string {
  const parts = [
    headOf(plan),
    tableOf(plan),
    quotaOf(plan),
    verdictOf(plan),
    backfillOf(plan),
    plan.basis.assumptions.map((text) => `Assumed: ${text}`),
  ];
  return parts
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.map((line) => wrap(line)).join(''))
    .join('\n');
}

function headOf({ basis, what_if, workspace, devices, readings_per_day: readings }: CostPlan): string[] {
  const changes = Object.entries(what_if).map(([key, value]) => `${key}=${value}`);
  const name = plainText(workspace.name ?? workspace.workspace_id ?? 'unknown', 60);
  const leftOut = devices.left_out === 0 ? '' : `; ${grouped(devices.left_out)} more left out by the configuration`;
  return [
    `Workspace ${name} (${sourceOf(basis)})`,
    ...(changes.length === 0 ? [] : [`What if: ${changes.join(', ')}`]),
    `Devices: ${grouped(devices.total)} (${grouped(devices.reporting)} reporting, ${grouped(devices.quiet)} quiet)${leftOut}`,
    `Readings: about ${grouped(readings.made)} a day (report rates${'devices' in what_if ? ' of the devices that there are' : ''}: ${grouped(devices.rates_measured)} measured, ${grouped(devices.rates_assumed)} assumed)`,
  ];
}

const LANES = [
  ['live', 'newest readings'],
  ['alerts', 'alerts'],
  ['device_list', 'device list'],
  ['account', 'account'],
  ['idle_polls', 'looks at quiet devices'],
  ['total', 'together'],
] as const;

function tableOf({ requests_per_day: { needed, planned, left_for_history }, schedules }: CostPlan): string[] {
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
  return [
    row(['Requests a day', 'due every', 'asked for', 'planned']),
    ...LANES.map(([lane, name]) => {
      const due = every[lane];
      return row([name, due === null ? '' : duration(due), grouped(needed[lane]), grouped(planned[lane])]);
    }),
    row(['left for history', '', '', grouped(left_for_history)]),
  ];
}

function quotaOf({ allowance: { share, minute, day } }: CostPlan): string[] {
  const part = percent(share);
  const ofMinute = `of a minute: ${grouped(minute.limit)} requests, ${part} of them ${grouped(minute.budget)}; planned ${minute.planned} (${percent(minute.used_share)})`;
  const spent = `in the last 24 hours ${counted(day.spent_last_24h, 'own request')}`;
  const others = day.used_by_others === null ? '' : `, others ${grouped(day.used_by_others)} so far`;
  const ofDay =
    day.limit === null || day.budget === null || day.used_share === null
      ? 'of a day: no limit is known'
      : `of a day: ${grouped(day.limit)} requests, ${part} of them ${grouped(day.budget)}; planned ${grouped(day.planned)} (${percent(day.used_share)})`;
  return [`Allowance ${ofMinute}`, `Allowance ${ofDay}; ${spent}${others}`];
}

function verdictOf({ fits, warning, freshness, devices }: CostPlan): string[] {
  const { median_seconds: median, p95_seconds: p95 } = freshness;
  const fresh =
    devices.reporting === 0
      ? 'Freshness: no device reports.'
      : `Freshness: readings are fetched at most ${duration(median)} after their time (median of the devices; ${duration(p95)} for 19 in 20).`;
  return [fits ? 'It fits.' : `It does not fit. ${warning ?? ''}`, fresh];
}

/** What the history alone costs: what `--backfill --dry-run` prints. */
export function backfillText(plan: CostPlan): string {
  const { basis, workspace } = plan;
  const name = plainText(workspace.name ?? workspace.workspace_id ?? 'unknown', 60);
  const lines = [
    `Workspace ${name} (${sourceOf(basis)})`,
    ...backfillOf(plan),
    ...basis.assumptions.map((text) => `Assumed: ${text}`),
    'Nothing was fetched.',
  ];
  return lines.map((line) => wrap(line)).join('');
}

function sourceOf({ source, requests_spent: spent, as_of }: CostPlan['basis']): string {
  return source === 'api'
    ? `${counted(spent, 'request')} asked just now`
    : `from the state of the process that works with it, as of ${as_of}; nothing was asked`;
}

function backfillOf({ backfill }: CostPlan): string[] {
  const { from, to, devices, devices_with_gaps, gap_share, readings, requests, beside_daemon, alone, pace, note } =
    backfill;
  const head = `History from ${from} to ${to}, ${counted(devices, 'device')}`;
  if (requests === 0) return [`${head}: all of it is held`];
  const held =
    gap_share < 1 ? ` (${percent(gap_share)} is still open, of ${counted(devices_with_gaps, 'device')})` : '';
  const time = ({ seconds, until, requests_per_day }: typeof alone): string =>
    seconds === null
      ? 'never: nothing is left for it'
      : `${duration(seconds)}, until ${until} (${grouped(requests_per_day)} requests a day)`;
  const paced = ({ seconds, until, in_time: inTime }: NonNullable<typeof pace>['alone']): string => {
    if (seconds === null) return 'never: nothing is left for it';
    return `${duration(seconds)}, until ${until}${inTime === false ? ': NOT by the time that was asked for' : ''}`;
  };
  return [
    `${head}: about ${counted(readings, 'reading')} in ${counted(requests, 'request')}${held}`,
    `  beside the schedules, with what they leave: ${time(beside_daemon)}`,
    `  alone, with the whole share: ${time(alone)}`,
    ...(pace === null
      ? []
      : [
          `  at ${pace.max_share === null ? `--finish-by ${pace.finish_by}` : `--max-share ${pace.max_share}`}: ${grouped(pace.requests_per_day)} requests a day${pace.share_of_budget === null ? '' : ` (${percent(pace.share_of_budget)} of the share)`}`,
          `    beside the schedules: ${paced(pace.beside_daemon)}`,
          `    alone: ${paced(pace.alone)}`,
        ]),
    ...(note === null ? [] : [`  ${note}`]),
  ];
}

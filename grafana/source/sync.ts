/** The dashboard "Sync health": the daemon's own metrics, for the operator. */
import { FLEET, SILENT_LONGEST } from './fleet.ts';
import { LAG_COLORS } from './lag.ts';
import { panelId } from './layout.ts';
import { BAD_OR_UNKNOWN, initialSync, join, NEUTRAL, STATE_COLORS, steps, words } from './looks.ts';
import type { DashboardSpec, DataLink, Mapping, Override, PanelSpec, PromAnnotation, PromTarget } from './model.ts';
import { grid, lineChart, stat } from './panels.ts';
import { CHOSEN, INSTANCE, of, perMinute, present, presentTable, quantile, rate, series } from './promql.ts';

const NO_METRICS = 'No metrics. Check on the page "Targets" of Prometheus that it reaches Tidemark.';

const SEVERITY = words({ critical: ['critical', 'red'], warning: ['warning', 'orange'], info: ['info', 'blue'] });

const YES = words({ '0': ['no', 'red'], '1': ['yes', 'green'] });
const YES_IS_BAD = words({ '0': ['no', 'green'], '1': ['yes', 'red'] });

const NO_JOB = 'No job in this range.';

/** @param text what it is called in the legend. */
function lineColor(name: string, fixedColor: string, text = name): Override {
  const color = { id: 'color', value: { mode: 'fixed', fixedColor } };
  const called = text === name ? [] : [{ id: 'displayName', value: text }];
  return { matcher: { id: 'byName', options: name }, properties: [color, ...called] };
}

/** Lines of states in the colours that these have everywhere. */
const STATE_LINES: readonly Override[] = [
  ...Object.entries(STATE_COLORS).map(([state, [text, color]]) => lineColor(state, color, text)),
  lineColor('out of service', 'text'),
  lineColor('complete', 'purple'),
];

/** The one of the daemon: the dashboards of the databases have a larger one, as reports come every 15 minutes. */
const TARGET_NAME = 'target (twice the poll interval, at least 5 min, plus sync.grace_period)';

/** The target is a limit and no alarm. */
const TARGET_LINE: Override = {
  matcher: { id: 'byName', options: TARGET_NAME },
  properties: [
    { id: 'color', value: { mode: 'fixed', fixedColor: 'text' } },
    { id: 'custom.lineStyle', value: { fill: 'dash', dash: [8, 8] } },
    { id: 'custom.showPoints', value: 'never' },
  ],
};

/** The largest value of each step, so that no step passes over a peak; nothing where no daemon answers. */
function peak(metric: string): string {
  return `(max_over_time(${of(metric)}[$__interval]) or ${of(metric)})`;
}

interface Number {
  readonly unit: string;
  readonly thresholds: ReturnType<typeof steps>;
  readonly decimals?: number;
  readonly mappings?: readonly Mapping[];
  readonly overrides?: readonly Override[];
  readonly links?: readonly DataLink[];
}

function number(title: string, description: string, query: string, look: Number): PanelSpec {
  return stat({
    title,
    description,
    w: 4,
    h: 4,
    targets: present([query, title]),
    noValue: NO_METRICS,
    ...look,
  });
}

function chart(
  title: string,
  description: string,
  targets: readonly PromTarget[],
  look: {
    readonly unit: string;
    readonly w?: number;
    readonly stack?: boolean;
    readonly noValue?: string;
    readonly overrides?: readonly Override[];
  },
): PanelSpec {
  const { unit, w = 12, stack = false, noValue = NO_METRICS, overrides = [] } = look;
  return lineChart({
    ...{ title, description, targets, unit, stack, w, h: 8, noValue, overrides },
    // A daemon that is not answered for has no value: no line goes through what is not known.
    breakMs: 0,
    min: 0,
  });
}

/**
 * Every daemon that answered a scrape in the range: 1 while it answers. A target that was removed from Prometheus
 * counts as down.
 */
const UP = `(up{${CHOSEN}} and on (instance) last_over_time(tidemark_build_info{${CHOSEN}}[$__range]) or on (instance) 0 * last_over_time(tidemark_build_info{${CHOSEN}}[$__range]))`;

/** A figure of each daemon, and 0 of one that is down. */
function orDown(metric: string): string {
  return `min(${of(metric)} or on (instance) 0 * ${UP})`;
}

const LAG_TARGET = `max(${of('tidemark_freshness_target_seconds')})`;
const LAG = `max(${of('tidemark_freshness_seconds', 'percentile="90"')})`;

/** A lag by how it compares with the target of the daemon: within it, up to four times as large, larger. */
function byTarget(lag: string, ...more: readonly string[]): PromTarget[] {
  const name = `p95|\${__url_time_range}`;
  return present(
    [`${lag} <= ${LAG_TARGET}`, name],
    [`${lag} > ${LAG_TARGET} <= 4 * ${LAG_TARGET}`, name],
    [`${lag} > 4 * ${LAG_TARGET}`, name],
    ...more.map((expr) => [expr, name] as const),
  );
}

/** A lag in the colours of its target; red where nothing is answered. */
function lagNumber(title: string, description: string, lag: string, ...more: readonly string[]): PanelSpec {
  const panel = number(title, description, lag, { unit: 's', decimals: 0, thresholds: NEUTRAL });
  const color = { mode: 'fixed', fixedColor: 'red' };
  return {
    ...panel,
    targets: byTarget(lag, ...more),
    overrides: [...(panel.overrides ?? []), ...LAG_COLORS, ...initialSync('D')],
    defaults: { ...panel.defaults, color, displayName: title },
  } as PanelSpec;
}

const OUT_OF_SERVICE = `sum(${of('tidemark_devices_out_of_service')})`;

/** Silent devices of which readings are expected. */
const SILENT_ACTIVE = `sum(${of('tidemark_devices', 'state="silent"')}) - ${OUT_OF_SERVICE}`;

/** A number of devices; nothing unless any was counted in this range. */
function ifAny(count: string, counted: string): string {
  return `(${count}) and on () max(max_over_time(${counted}[$__range])) > 0`;
}

const NOT_SILENT = 'state!="silent"';

/** Only a database shows which devices are silent. */
const TO_SILENT: DataLink = {
  title: 'List the silent devices',
  url: `/d/${FLEET.uid}?viewPanel=${panelId(FLEET, SILENT_LONGEST.title)}&\${__url_time_range}`,
};

const NOW: readonly PanelSpec[] = [
  number(
    'Daemons down',
    'Daemons that Prometheus could scrape in this range and cannot scrape now.',
    `count(${UP}) - sum(${UP})`,
    {
      unit: 'none',
      thresholds: steps('red', [0, 'green'], [1, 'red']),
    },
  ),
  number(
    'Ready',
    'Whether every daemon is ready: its copy is complete and current (/readyz).',
    orDown('tidemark_ready'),
    {
      unit: 'none',
      thresholds: steps('red', [1, 'green']),
      mappings: [YES],
    },
  ),
  number(
    'Healthy',
    'Whether all loops of every daemon run. If a loop has stopped, a restart helps.',
    orDown('tidemark_healthy'),
    {
      unit: 'none',
      thresholds: steps('red', [1, 'green']),
      mappings: [YES],
    },
  ),
  lagNumber(
    'Lag of the archive',
    'How far the archive is behind the API: the lag that nine devices in ten stay below. Green up to the target of the daemon, yellow up to four times the target, red beyond or if no daemon answers. "Initial sync" while most devices have not been read down to the beginning of sync.history.',
    LAG,
    // A daemon that answers without a lag.
    `0 * ${LAG_TARGET} unless ${LAG}`,
  ),
  number(
    'Coverage',
    'The percentage of the time to be synced that is covered, over all devices.',
    `min(${of('tidemark_coverage_ratio')})`,
    { unit: 'percentunit', decimals: 2, thresholds: steps('red', [0, 'orange'], [0.9, 'yellow'], [0.999, 'green']) },
  ),
  number(
    'Polling stopped',
    'Whether polling has stopped because the archive or the disk is full.',
    `max(${of('tidemark_polling_stopped')})`,
    { unit: 'none', thresholds: steps('red', [0, 'green'], [1, 'red']), mappings: [YES_IS_BAD] },
  ),
  lagNumber(
    'Lag of the databases',
    'How far the databases are behind the archive: the time that the oldest undelivered point has been in the archive. Coloured like "Lag of the archive".',
    `max(${of('tidemark_delivery_lag_seconds')})`,
  ),
  number(
    'In quarantine',
    'Points that a database rejected: `tidemark --quarantine` lists them, with its message.',
    `sum(${of('tidemark_quarantined_points')})`,
    { unit: 'short', decimals: 0, thresholds: BAD_OR_UNKNOWN },
  ),
  number(
    'Alert rules',
    'The number of alert rules of Tidemark that fire. "Not loaded": even the watchdog, which always fires, does not, so Prometheus has not loaded the rules.',
    '(count(count by (alertname) (ALERTS{alertstate="firing", alertname=~"Tidemark.*"})) or vector(0)) - 1',
    {
      unit: 'none',
      thresholds: steps('red', [0, 'green'], [1, 'orange']),
      mappings: [words({ '-1': ['not loaded', 'red'], '0': ['none fires', 'green'] })],
    },
  ),
  number(
    'Silent',
    'Active devices that send nothing: without those that were paused, shelved or retired. Their lag is small, because nothing newer exists. Click the number to list them.',
    SILENT_ACTIVE,
    { unit: 'none', decimals: 0, thresholds: steps('red', [0, 'text'], [1, 'orange']), links: [TO_SILENT] },
  ),
];

const REASONS: readonly PanelSpec[] = [
  grid({
    title: 'Why not ready',
    description:
      'The current reasons, by the code of /readyz, and the daemons that do not answer. Empty while every daemon is ready.',
    w: 8,
    h: 4,
    targets: presentTable(
      `${of('tidemark_not_ready')} == 1 or label_replace(max by (instance) (${UP}) == 0, "code", "no answer", "", "")`,
    ),
    noValue: 'No reason is reported.',
    columns: {
      code: { title: 'Reason' },
      instance: { title: 'Daemon' },
      job: { title: 'Job', hidden: true },
      __name__: { title: 'Metric', hidden: true },
      Time: { title: 'Time', hidden: true },
      Value: { title: 'Holds', hidden: true },
    },
  }),
  grid({
    title: 'Firing rules about Tidemark',
    description:
      'The alert rules of Prometheus about Tidemark itself that fire now; alerts of the workspace about its devices are on the dashboard "Alerts". The watchdog, which always fires, is left out.',
    w: 12,
    h: 8,
    targets: presentTable(
      'ALERTS{alertstate="firing", alertname=~"Tidemark.*", alertname!="TidemarkWatchdog", instance=~"$instance|"}',
    ),
    noValue: 'No rule fires.',
    columns: {
      severity: { title: 'Severity', mappings: [SEVERITY], colored: true, width: 120 },
      alertname: { title: 'Alert' },
      instance: { title: 'Daemon' },
      job: { title: 'Job' },
      alertstate: { title: 'State', hidden: true },
      __name__: { title: 'Metric', hidden: true },
      Time: { title: 'Time', hidden: true },
      Value: { title: 'Fires', hidden: true },
    },
    sortBy: [{ displayName: 'Severity' }],
  }),
  grid({
    title: 'Daemons',
    description: 'Every daemon that answered in this range: whether it answers now, its version and its uptime.',
    w: 12,
    h: 8,
    targets: presentTable(
      `max by (instance) ${UP}`,
      `max by (instance, version) (last_over_time(tidemark_build_info{${CHOSEN}}[$__range]))`,
      `time() - max by (instance) (${of('tidemark_process_start_time_seconds')})`,
    ),
    noValue: NO_METRICS,
    transformations: [join('instance')],
    columns: {
      instance: { title: 'Daemon' },
      'Value #A': { title: 'Answers', mappings: [YES], colored: true },
      version: { title: 'Version' },
      'Value #C': { title: 'Running for', unit: 's', decimals: 0 },
      'Value #B': { title: 'Is', hidden: true },
      Time: { title: 'Time', hidden: true },
    },
    sortBy: [{ displayName: 'Answers' }, { displayName: 'Daemon' }],
  }),
];

const REQUESTS: readonly PanelSpec[] = [
  chart(
    'Requests per minute',
    'Requests to the API by lane (priority class): live readings come first, idle polls last.',
    series([perMinute('tidemark_api_requests_total', 'lane'), '{{lane}}']),
    { unit: 'none', stack: true },
  ),
  chart(
    'Responses per minute',
    'Responses by HTTP status; "none" if there was no response.',
    series([perMinute('tidemark_api_requests_total', 'status'), '{{status}}']),
    { unit: 'none', stack: true },
  ),
  chart(
    'Request duration',
    'From sending a request to the end of the response: median and 95th percentile.',
    series(
      [quantile(0.5, 'tidemark_api_request_duration_seconds', 'stream'), '{{stream}}: median'],
      [quantile(0.95, 'tidemark_api_request_duration_seconds', 'stream'), '{{stream}}: p95'],
    ),
    { unit: 's' },
  ),
  chart(
    'Faults per minute',
    'Requests that failed, requests rejected with 429, and retries.',
    series(
      [perMinute('tidemark_api_faults_total', 'fault'), '{{fault}}'],
      [perMinute('tidemark_api_throttled_total', 'instance'), '429'],
      [perMinute('tidemark_api_retries_total', 'instance'), 'retries'],
    ),
    { unit: 'none' },
  ),
];

/** Use and limits of a window. */
function quota(window: 'minute' | 'day'): PanelSpec {
  const own = `window="${window}"`;
  return chart(
    `Quota of the ${window}`,
    'Used by Tidemark and by others, the budget of Tidemark, and the quota of the plan.',
    series(
      [`sum by (by) (${of('tidemark_quota_used_requests', own)})`, 'used: {{by}}'],
      [`max(${of('tidemark_quota_budget_requests', own)})`, 'budget'],
      [`max(${of('tidemark_quota_limit_requests', own)})`, 'quota'],
      [`min(${of('tidemark_quota_remaining_requests', own)})`, 'left'],
    ),
    { unit: 'none' },
  );
}

const QUOTA: readonly PanelSpec[] = [
  quota('minute'),
  quota('day'),
  chart(
    'Waits for quota',
    'Waits of more than a few seconds that began in each minute, by reason, and the time left of the current wait.',
    series(
      [perMinute('tidemark_quota_waits_total', 'reason'), 'started per minute: {{reason}}'],
      [`max(${of('tidemark_quota_wait_until_timestamp_seconds')} - time()) > 0`, 'seconds until requests resume'],
    ),
    { unit: 'none' },
  ),
  chart(
    'Quota too small',
    '1 if the quota is too small for the poll intervals ("schedules"), or even for all readings ("readings").',
    series([`max by (of) (${of('tidemark_quota_short')})`, '{{of}}']),
    { unit: 'none' },
  ),
];

const READINGS: readonly PanelSpec[] = [
  chart(
    'Readings per minute',
    'New readings by lane. Late readings arrived in a range that was already covered.',
    series(
      [perMinute('tidemark_readings_new_total', 'lane'), 'new: {{lane}}'],
      [perMinute('tidemark_readings_late_total', 'instance'), 'late'],
    ),
    { unit: 'none' },
  ),
  chart(
    'Rejected per minute',
    'Records and values that could not be parsed, pages without the overlap reading, stored readings that the API no longer returns, devices with a reading newer than their last-seen time, and new gaps.',
    series(
      [perMinute('tidemark_records_rejected_total', 'stream'), 'records: {{stream}}'],
      [perMinute('tidemark_values_dropped_total', 'instance'), 'values'],
      [perMinute('tidemark_pages_rejected_total', 'instance'), 'pages'],
      [perMinute('tidemark_restatements_total', 'instance'), 'restated'],
      [perMinute('tidemark_hints_wrong_total', 'instance'), 'wrong last-seen times'],
      [perMinute('tidemark_gaps_recorded_total', 'reason'), 'gaps: {{reason}}'],
    ),
    { unit: 'none' },
  ),
];

const COVERAGE: readonly PanelSpec[] = [
  chart(
    'Lag over time',
    'The largest lag of each step: by percentile of the devices, of all devices, and the target of the daemon, which the lag stays below in normal operation. The other dashboards have a target of 15 minutes or more, because Tidemark reports to a database every 15 minutes.',
    series(
      [`max by (percentile) (${peak('tidemark_freshness_seconds')})`, 'p{{percentile}}'],
      [`max(${peak('tidemark_freshness_worst_seconds')})`, 'largest'],
      [`max(${of('tidemark_freshness_target_seconds')})`, TARGET_NAME],
    ),
    { unit: 's', overrides: [TARGET_LINE] },
  ),
  chart(
    'Devices by state',
    'Devices by state (only states that occurred in this range), and complete devices. silent: active, but sends nothing. out of service: sends nothing, because it was paused, shelved or retired.',
    series(
      [
        `sum by (state) (${of('tidemark_devices', NOT_SILENT)}) and on (state) max by (state) (max_over_time(${of('tidemark_devices', NOT_SILENT)}[$__range])) > 0`,
        '{{state}}',
      ],
      [ifAny(SILENT_ACTIVE, of('tidemark_devices', 'state="silent"')), 'silent'],
      [ifAny(OUT_OF_SERVICE, of('tidemark_devices_out_of_service')), 'out of service'],
      [`sum(${of('tidemark_devices_complete')})`, 'complete'],
    ),
    { unit: 'none', overrides: STATE_LINES },
  ),
  chart(
    'Missing time',
    'Time that is not covered yet, summed over the devices: gaps by reason, and history that is still to be read.',
    series(
      [`sum by (reason) (${of('tidemark_coverage_gap_seconds')})`, '{{reason}}'],
      [`sum(${of('tidemark_history_pending_seconds')})`, 'history to read'],
    ),
    { unit: 's' },
  ),
  chart(
    'Jobs: progress',
    'The progress of backfills and other jobs.',
    series([`max by (kind) (${of('tidemark_job_progress_ratio')})`, '{{kind}}']),
    { unit: 'percentunit', w: 6, noValue: NO_JOB },
  ),
  chart(
    'Jobs: time left',
    'How long a job is estimated to take. Empty while there is no estimate.',
    series([`max by (kind) (${of('tidemark_job_eta_seconds')})`, '{{kind}}']),
    { unit: 's', w: 6, noValue: NO_JOB },
  ),
  chart(
    'Streams that are not read',
    '1 for each stream that fails, or that is off because the key lacks its scope.',
    series([
      `max by (stream, state) (${of('tidemark_stream_state', 'state=~"failing|off"')})`,
      '{{stream}}: {{state}}',
    ]),
    { unit: 'none' },
  ),
  chart(
    'Time since the last read of each stream',
    'The time since the last successful read of each stream.',
    series([`time() - max by (stream) (${of('tidemark_stream_last_success_timestamp_seconds')})`, '{{stream}}']),
    { unit: 's' },
  ),
];

const DELIVERY: readonly PanelSpec[] = [
  chart(
    'Points per second',
    'Points per second that each database accepted, that it rejected (they are in quarantine), that were sent again, and that are older than its retention.',
    series(
      [rate('tidemark_points_written_total', 'destination'), '{{destination}}: accepted'],
      [rate('tidemark_points_rejected_total', 'destination'), '{{destination}}: rejected'],
      [rate('tidemark_points_retried_total', 'destination'), '{{destination}}: retried'],
      [rate('tidemark_points_beyond_retention_total', 'destination'), '{{destination}}: beyond retention'],
    ),
    { unit: 'none' },
  ),
  chart(
    'Waiting to be delivered',
    'Archived points that a database has not accepted yet.',
    series([`sum by (destination) (${of('tidemark_delivery_lag_points')})`, '{{destination}}']),
    { unit: 'short' },
  ),
  chart(
    'Batch duration',
    'The time until a database answers a batch: median and 95th percentile.',
    series(
      [quantile(0.5, 'tidemark_write_duration_seconds', 'destination'), '{{destination}}: median'],
      [quantile(0.95, 'tidemark_write_duration_seconds', 'destination'), '{{destination}}: p95'],
    ),
    { unit: 's' },
  ),
  chart(
    'Databases',
    'Whether delivery works (1) or is blocked (0), and the missing points, which the database does not get without a command.',
    series(
      [`min by (destination) (${of('tidemark_destination_up')})`, '{{destination}}: up'],
      [`sum by (destination, reason) (${of('tidemark_missing_points')})`, '{{destination}}: missing, {{reason}}'],
    ),
    { unit: 'short' },
  ),
];

const MACHINE: readonly PanelSpec[] = [
  chart(
    'State and disk',
    'The size of the state, its limit (archive.max_size), and the free space of its disk.',
    series(
      [`sum(${of('tidemark_state_bytes')})`, 'state'],
      [`sum(${of('tidemark_state_limit_bytes')})`, 'quota'],
      [`min(${of('tidemark_disk_free_bytes')})`, 'free on the disk'],
    ),
    { unit: 'bytes' },
  ),
  chart('Archive', 'Points in the archive.', series([`sum(${of('tidemark_archive_points')})`, 'points']), {
    unit: 'short',
  }),
  chart(
    'Memory',
    'Memory of the process (RSS) and of its heap.',
    series(
      [of('tidemark_process_resident_memory_bytes'), '{{instance}}: process'],
      [of('tidemark_nodejs_heap_size_used_bytes'), '{{instance}}: heap'],
    ),
    { unit: 'bytes' },
  ),
  chart(
    'Processor and event loop',
    'CPU seconds per second, and the longest delay of the event loop.',
    series(
      [rate('tidemark_process_cpu_seconds_total', 'instance'), '{{instance}}: processor'],
      [of('tidemark_nodejs_eventloop_lag_max_seconds'), '{{instance}}: event loop delay'],
    ),
    { unit: 's' },
  ),
  chart(
    'Time since the last heartbeat of each loop',
    'The time since each loop last reported, minus the pause that it announced. Near 0 while the loop runs.',
    series([`max by (loop) (${of('tidemark_loop_idle_seconds')})`, '{{loop}}']),
    { unit: 's' },
  ),
  chart(
    'Age of the fleet metrics',
    'The age of the metrics that need a scan of every device: devices, lag, coverage.',
    series([`max by (instance) (${of('tidemark_fleet_snapshot_age_seconds')})`, '{{instance}}']),
    { unit: 's' },
  ),
];

const RESTARTS: PromAnnotation = {
  name: 'Restarts',
  iconColor: 'purple',
  // The time at which the process began, whatever the step of the query.
  expr: `1000 * ${of('tidemark_process_start_time_seconds')}`,
  isValueTime: true,
  titleFormat: 'Tidemark at {{instance}} was started',
};

export const SYNC: DashboardSpec = {
  uid: 'tidemark-sync',
  title: 'Tidemark / Sync health',
  description: 'The daemon itself: lag, coverage, quota, delivery, requests, storage. For its operator.',
  source: 'prometheus',
  from: 'now-6h',
  refresh: '30s',
  variables: [INSTANCE],
  annotations: [RESTARTS],
  sections: [
    { title: 'Now', panels: [...NOW, ...REASONS] },
    { title: 'Freshness and coverage', panels: COVERAGE },
    { title: 'Quota', panels: QUOTA },
    { title: 'Delivery', panels: DELIVERY },
    { title: 'Requests', panels: REQUESTS, collapsed: true },
    { title: 'Readings', panels: READINGS, collapsed: true },
    { title: 'Machine', panels: MACHINE, collapsed: true },
  ],
};

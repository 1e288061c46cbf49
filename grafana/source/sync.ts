/** The dashboard "Sync health": the daemon's own metrics, for whoever runs it. */
import { BAD_IF_ANY, LAG, PLAIN, steps, words } from './looks.ts';
import type { DashboardSpec, PanelSpec, PromTarget } from './model.ts';
import { grid, lineChart, stat } from './panels.ts';
import { INSTANCE, of, perMinute, present, presentTable, quantile, rate, series } from './promql.ts';

const NO_METRICS = 'No metrics: does Prometheus reach Tidemark? Look at its page "Targets".';
const BREAK_MS = 300_000;

const YES = words({ '0': ['no', 'red'], '1': ['yes', 'green'] });

interface Number {
  readonly unit: string;
  readonly thresholds: ReturnType<typeof steps>;
  readonly decimals?: number;
  readonly yesNo?: boolean;
}

function number(title: string, description: string, query: string, { yesNo = false, ...look }: Number): PanelSpec {
  return stat({
    title,
    description,
    w: 4,
    h: 4,
    targets: present([query, title]),
    noValue: NO_METRICS,
    ...look,
    ...(yesNo ? { mappings: [YES] } : {}),
  });
}

function chart(
  title: string,
  description: string,
  targets: readonly PromTarget[],
  look: { readonly unit: string; readonly w?: number; readonly stack?: boolean },
): PanelSpec {
  const { unit, w = 12, stack = false } = look;
  return lineChart({
    ...{ title, description, targets, unit, stack, w, h: 8 },
    noValue: NO_METRICS,
    breakMs: BREAK_MS,
    min: 0,
  });
}

const NOW: readonly PanelSpec[] = [
  number('Ready', 'Whether what is held can be relied on: what /readyz says.', `min(${of('tidemark_ready')})`, {
    unit: 'none',
    thresholds: steps('red', [1, 'green']),
    yesNo: true,
  }),
  number('Healthy', 'Whether all loops move: where not, a restart helps.', `min(${of('tidemark_healthy')})`, {
    unit: 'none',
    thresholds: steps('red', [1, 'green']),
    yesNo: true,
  }),
  number(
    'Freshness',
    'Age of the oldest reading that may be there and is not held, of nine devices in ten.',
    `max(${of('tidemark_freshness_seconds', 'percentile="90"')})`,
    { unit: 's', decimals: 0, thresholds: LAG },
  ),
  number('Held', 'The part of the wanted time of all devices that is held.', `min(${of('tidemark_coverage_ratio')})`, {
    unit: 'percentunit',
    decimals: 2,
    thresholds: steps('orange', [0.9, 'yellow'], [0.999, 'green']),
  }),
  number(
    'Waiting for a database',
    'How long the oldest point that a database has not settled has been in the archive.',
    `max(${of('tidemark_delivery_lag_seconds')})`,
    { unit: 's', decimals: 0, thresholds: LAG },
  ),
  number(
    'In quarantine',
    'Points that a database refused: `tidemark --quarantine` lists them, with its words.',
    `sum(${of('tidemark_quarantined_points')})`,
    { unit: 'short', decimals: 0, thresholds: BAD_IF_ANY },
  ),
];

const REASONS: readonly PanelSpec[] = [
  grid({
    title: 'Why not ready',
    description: 'The reasons that hold now, by the code of /readyz. Empty while it is ready.',
    w: 12,
    h: 6,
    targets: presentTable(`${of('tidemark_not_ready')} == 1`),
    noValue: 'Ready.',
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
    title: 'Daemons',
    description: 'The versions that run.',
    w: 12,
    h: 6,
    targets: presentTable(of('tidemark_build_info')),
    noValue: NO_METRICS,
    columns: {
      instance: { title: 'Daemon' },
      version: { title: 'Version' },
      job: { title: 'Job' },
      __name__: { title: 'Metric', hidden: true },
      Time: { title: 'Time', hidden: true },
      Value: { title: 'Is', hidden: true },
    },
  }),
];

const REQUESTS: readonly PanelSpec[] = [
  chart(
    'Requests in a minute',
    'Requests to the API by what they are for: live readings go first, sweeps last.',
    series([perMinute('tidemark_api_requests_total', 'lane'), '{{lane}}']),
    { unit: 'none', stack: true },
  ),
  chart(
    'Answers in a minute',
    'The same by HTTP status; "none" where no answer came.',
    series([perMinute('tidemark_api_requests_total', 'status'), '{{status}}']),
    { unit: 'none', stack: true },
  ),
  chart(
    'Duration of a request',
    'From sending it to the end of its answer: half of them, and all but one in twenty.',
    series(
      [quantile(0.5, 'tidemark_api_request_duration_seconds', 'stream'), '{{stream}}: half'],
      [quantile(0.95, 'tidemark_api_request_duration_seconds', 'stream'), '{{stream}}: 95 %'],
    ),
    { unit: 's' },
  ),
  chart(
    'Faults in a minute',
    'Requests that did not bring what they were sent for, those refused with 429, and tries after a fault.',
    series(
      [perMinute('tidemark_api_faults_total', 'fault'), '{{fault}}'],
      [perMinute('tidemark_api_throttled_total', 'instance'), '429'],
      [perMinute('tidemark_api_retries_total', 'instance'), 'tried again'],
    ),
    { unit: 'none' },
  ),
];

/** Use and limits of a window. */
function allowance(window: 'minute' | 'day'): PanelSpec {
  const own = `window="${window}"`;
  return chart(
    `Allowance of the ${window}`,
    'Used by this program and by others, the share that this program may take, and the limit of the plan.',
    series(
      [`sum by (by) (${of('tidemark_allowance_used_requests', own)})`, 'used: {{by}}'],
      [`max(${of('tidemark_allowance_budget_requests', own)})`, 'share'],
      [`max(${of('tidemark_allowance_limit_requests', own)})`, 'limit'],
      [`min(${of('tidemark_allowance_remaining_requests', own)})`, 'left'],
    ),
    { unit: 'none' },
  );
}

const ALLOWANCE: readonly PanelSpec[] = [
  allowance('minute'),
  allowance('day'),
  chart(
    'Waits for allowance in a minute',
    'Waits of more than a few seconds that have begun, by reason.',
    series([perMinute('tidemark_allowance_waits_total', 'reason'), '{{reason}}']),
    { unit: 'none' },
  ),
  chart(
    'Too little allowance',
    'Whether the allowance cannot carry the schedules, or not even the readings: 1 where it is so.',
    series([`max by (of) (${of('tidemark_allowance_short')})`, '{{of}}']),
    { unit: 'none' },
  ),
];

const READINGS: readonly PanelSpec[] = [
  chart(
    'Readings in a minute',
    'Readings that brought something new, by what they were asked for; late ones lay in time that counted as held.',
    series(
      [perMinute('tidemark_readings_new_total', 'lane'), 'new: {{lane}}'],
      [perMinute('tidemark_readings_late_total', 'instance'), 'late'],
    ),
    { unit: 'none' },
  ),
  chart(
    'Set aside or distrusted in a minute',
    'Records and values that could not be understood, pages that proved nothing, readings that the API no longer shows.',
    series(
      [perMinute('tidemark_records_rejected_total', 'stream'), 'records: {{stream}}'],
      [perMinute('tidemark_values_dropped_total', 'instance'), 'values'],
      [perMinute('tidemark_pages_distrusted_total', 'instance'), 'pages'],
      [perMinute('tidemark_restatements_total', 'instance'), 'restated'],
      [perMinute('tidemark_hints_wrong_total', 'instance'), 'wrong hints'],
      [perMinute('tidemark_gaps_named_total', 'reason'), 'gaps: {{reason}}'],
    ),
    { unit: 'none' },
  ),
];

const COVERAGE: readonly PanelSpec[] = [
  chart(
    'Freshness',
    'Age of the oldest reading that may be there and is not held, over the devices, and what it stays below while all is well.',
    series(
      [`max by (percentile) (${of('tidemark_freshness_seconds')})`, '{{percentile}} %'],
      [`max(${of('tidemark_freshness_worst_seconds')})`, 'worst'],
      [`max(${of('tidemark_freshness_target_seconds')})`, 'target'],
    ),
    { unit: 's' },
  ),
  chart(
    'Devices',
    'Devices by state, and those of which all that is wanted is held.',
    series(
      [`sum by (state) (${of('tidemark_devices')})`, '{{state}}'],
      [`sum(${of('tidemark_devices_complete')})`, 'complete'],
    ),
    { unit: 'none' },
  ),
  chart(
    'Missing time',
    'Wanted time that is not held, summed over the devices, by reason, and history that is yet to be read.',
    series(
      [`sum by (reason) (${of('tidemark_coverage_gap_seconds')})`, '{{reason}}'],
      [`sum(${of('tidemark_history_open_seconds')})`, 'history to read'],
    ),
    { unit: 's' },
  ),
  chart(
    'Work that was asked for',
    'How far a backfill or a one-off beside the daemon is.',
    series([`max by (kind) (${of('tidemark_job_progress_ratio')})`, '{{kind}}']),
    { unit: 'percentunit' },
  ),
  chart(
    'Since a stream was read',
    'How long ago each stream was read with success last.',
    series([`time() - max by (stream) (${of('tidemark_stream_last_success_timestamp_seconds')})`, '{{stream}}']),
    { unit: 's' },
  ),
];

const DELIVERY: readonly PanelSpec[] = [
  chart(
    'Points in a second',
    'Points that each database accepted, refused (they are in quarantine), did not take yet, or is too short-lived for.',
    series(
      [rate('tidemark_points_written_total', 'destination'), '{{destination}}: accepted'],
      [rate('tidemark_points_refused_total', 'destination'), '{{destination}}: refused'],
      [rate('tidemark_points_retried_total', 'destination'), '{{destination}}: again'],
      [rate('tidemark_points_beyond_retention_total', 'destination'), '{{destination}}: beyond retention'],
    ),
    { unit: 'none' },
  ),
  chart(
    'Waiting to be delivered',
    'Archived points that a database has not settled yet.',
    series([`sum by (destination) (${of('tidemark_delivery_lag_points')})`, '{{destination}}']),
    { unit: 'short' },
  ),
  chart(
    'Duration of a batch',
    'How long it took to settle a batch with a database: half of them, and all but one in twenty.',
    series(
      [quantile(0.5, 'tidemark_write_duration_seconds', 'destination'), '{{destination}}: half'],
      [quantile(0.95, 'tidemark_write_duration_seconds', 'destination'), '{{destination}}: 95 %'],
    ),
    { unit: 's' },
  ),
  chart(
    'Databases',
    'Whether delivery moves (1) or is held (0), and the points that a database lacks for good.',
    series(
      [`min by (destination) (${of('tidemark_destination_up')})`, '{{destination}}: up'],
      [`sum by (destination, reason) (${of('tidemark_lacking_points')})`, '{{destination}}: lacks, {{reason}}'],
    ),
    { unit: 'short' },
  ),
];

const MACHINE: readonly PanelSpec[] = [
  chart(
    'State and disk',
    'The state as archive.max_size counts it, that limit, and what is free on its disk.',
    series(
      [`sum(${of('tidemark_state_bytes')})`, 'state'],
      [`sum(${of('tidemark_state_limit_bytes')})`, 'limit'],
      [`min(${of('tidemark_disk_free_bytes')})`, 'free on the disk'],
    ),
    { unit: 'bytes' },
  ),
  chart('Archive', 'Points that the archive keeps.', series([`sum(${of('tidemark_archive_points')})`, 'points']), {
    unit: 'short',
  }),
  chart(
    'Memory',
    'Of the process, and of the heap within it.',
    series(
      [of('tidemark_process_resident_memory_bytes'), '{{instance}}: process'],
      [of('tidemark_nodejs_heap_size_used_bytes'), '{{instance}}: heap'],
    ),
    { unit: 'bytes' },
  ),
  chart(
    'Processor and event loop',
    'Processor time used in a second, and by how much the program was late at its worst.',
    series(
      [rate('tidemark_process_cpu_seconds_total', 'instance'), '{{instance}}: processor'],
      [of('tidemark_nodejs_eventloop_lag_max_seconds'), '{{instance}}: late by'],
    ),
    { unit: 's' },
  ),
  number(
    'Reading stopped',
    'Whether nothing is asked of the API because the archive or the disk is full.',
    `max(${of('tidemark_pulling_stopped')})`,
    { unit: 'none', thresholds: BAD_IF_ANY },
  ),
  number(
    'Running for',
    'Since the process was started.',
    `time() - max(${of('tidemark_process_start_time_seconds')})`,
    {
      unit: 's',
      decimals: 0,
      thresholds: PLAIN,
    },
  ),
];

export const SYNC: DashboardSpec = {
  uid: 'tidemark-sync',
  title: 'Tidemark / Sync health',
  description: 'The daemon itself: requests, allowance, freshness, delivery, storage. For whoever runs it.',
  source: 'prometheus',
  from: 'now-6h',
  refresh: '30s',
  variables: [INSTANCE],
  sections: [
    { title: 'Now', panels: [...NOW, ...REASONS] },
    { title: 'Freshness and coverage', panels: COVERAGE },
    { title: 'Requests', panels: REQUESTS },
    { title: 'Allowance', panels: ALLOWANCE },
    { title: 'Readings', panels: READINGS },
    { title: 'Delivery', panels: DELIVERY },
    { title: 'Machine', panels: MACHINE },
  ],
};

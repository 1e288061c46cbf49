/**
 * Every metric: name, kind, unit, labels and help text. The metrics endpoint, the reference page (`docs/metrics.md`)
 * and the types of `metrics.ts` use this table; no other metric is served.
 *
 * Names begin with `tidemark_` and use base units. No label has an unlimited number of values: only the metrics of
 * `PER_DEVICE` have a label per device. `metrics.per_device` turns them on, for a limited number of devices.
 */
import { FAULT_TEXTS } from '../core/faults.ts';
import { MOST_DEVICE_SERIES } from '../core/fleet.ts';
import { STREAMS } from '../core/ports.ts';
import { WAIT_REASONS } from '../core/quota.ts';
import { JOB_RULES } from '../core/state/jobs.ts';
import { GAP_REASONS } from '../core/state/telemetry.ts';
import { grouped } from '../core/text.ts';

/** One metric. Each of its series has all of its labels. */
export interface MetricRow<L extends string = string> {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly unit: string;
  readonly labels: readonly L[];
  readonly help: string;
  /** The upper bounds of a histogram, in its unit. */
  readonly buckets?: readonly number[];
  /** All values of its labels: its series begin at 0, so that their first event is an increase. */
  readonly values?: Readonly<Record<L, readonly string[] | typeof CONFIGURED>> | undefined;
}

/** The names of the configured destinations, as the values of a label. */
export const CONFIGURED = 'configured';

type Row<K extends MetricRow['kind'], L extends string> = MetricRow<L> & { readonly kind: K };

function counter<L extends string>(
  unit: string,
  labels: readonly L[],
  help: string,
  values?: MetricRow<NoInfer<L>>['values'],
): Row<'counter', L> {
  return { kind: 'counter', unit, labels, help, values };
}

function gauge<L extends string>(
  unit: string,
  labels: readonly L[],
  help: string,
  values?: MetricRow<NoInfer<L>>['values'],
): Row<'gauge', L> {
  return { kind: 'gauge', unit, labels, help, values };
}

function timing<L extends string>(labels: readonly L[], buckets: readonly number[], help: string): Row<'histogram', L> {
  return { kind: 'histogram', unit: 'seconds', labels, help, buckets };
}

const REQUEST_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const WRITE_SECONDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** The metrics of `/metrics` with their help, without the additional ones per device. */
// biome-ignore format: a table, a row a metric
export const METRICS = {
  // The program
  tidemark_build_info: gauge('always 1', ['version'], 'The version of Tidemark.'),
  tidemark_workspace_info: gauge('always 1', ['workspace_id', 'workspace_name'],
    'The workspace: the id that its points carry, and its name in the account; absent before the id is known.'),
  tidemark_healthy: gauge('0 or 1', [], 'Is 1 while every loop of the daemon makes progress, as /healthz reports.'),
  tidemark_ready: gauge('0 or 1', [], 'Is 1 while the last 24 hours of every device are synced and nothing prevents the sync, as /readyz reports; older history does not count.'),
  tidemark_not_ready: gauge('0 or 1', ['code'],
    'Is 1 for each code that /readyz reports as a reason for not being ready.'),
  tidemark_loop_idle_seconds: gauge('seconds', ['loop'],
    'Time by which the heartbeat of a loop is overdue: below 20 in normal operation; from 60 on, /healthz returns 503.'),

  // Requests to the API
  tidemark_api_requests_total: counter('requests', ['stream', 'lane', 'status'],
    'Requests sent to the API, by endpoint (stream), purpose (lane) and HTTP status; status "none" if there was no response.'),
  tidemark_api_request_duration_seconds: timing(['stream'], REQUEST_SECONDS,
    'Time from sending a request to the end of its response.'),
  tidemark_api_response_bytes_total: counter('bytes', ['stream', 'form'],
    'Bytes of response bodies, as received (form: wire) and decompressed (form: decoded).'),
  tidemark_api_faults_total: counter('requests', ['fault'],
    'Failed requests, by kind of failure.', { fault: Object.keys(FAULT_TEXTS) }),
  tidemark_api_throttled_total: counter('requests', [], 'Requests that the API rejected with 429.'),
  tidemark_api_retries_total: counter('requests', [], 'Requests that were sent again after a failure.'),

  // The quota
  tidemark_quota_limit_requests: gauge('requests', ['window'],
    'Rate limit of the workspace in a window (minute, day); absent while unknown.'),
  tidemark_quota_budget_requests: gauge('requests', ['window'],
    'The part of the limit that Tidemark may use (api.share).'),
  tidemark_quota_used_requests: gauge('requests', ['window', 'by'],
    'Requests in the last minute or day, of Tidemark and of other clients (as of the last response that reported them).'),
  tidemark_quota_remaining_requests: gauge('requests', ['window'],
    'Requests that remain of the limit, after those of Tidemark and of other clients.'),
  tidemark_quota_wait_until_timestamp_seconds: gauge('seconds since 1970', [],
    'Unix time until which requests wait for quota; 0 while they may be sent.'),
  tidemark_quota_waits_total: counter('waits', ['reason'],
    'Waits for quota of more than a few seconds, by reason (rate, minute, day, retry_after).', { reason: WAIT_REASONS }),
  tidemark_quota_short: gauge('0 or 1', ['of'],
    'Is 1 if the quota is too small for all schedules (of="schedules"), or even for all readings (of="readings").', { of: ['schedules', 'readings'] }),

  // Readings
  tidemark_readings_received_total: counter('readings', ['lane'],
    'Readings in the responses of the API, including those already stored.'),
  tidemark_readings_new_total: counter('readings', ['lane'], 'New readings that were stored in the archive.'),
  tidemark_readings_late_total: counter('readings', [],
    'Late readings: new readings in a range that was already covered. They are stored and delivered.'),
  tidemark_points_archived_total: counter('points', ['lane'], 'Telemetry points written to the archive.'),
  tidemark_records_rejected_total: counter('records', ['stream'],
    'Records of the API that were rejected because they could not be parsed.', { stream: STREAMS }),
  tidemark_values_dropped_total: counter('values', [], 'Values that were rejected because no point can store them.'),
  tidemark_pages_rejected_total: counter('pages', [], 'Responses that were rejected and requested again.'),
  tidemark_restatements_total: counter('readings', [],
    'Readings that the API no longer returns although it returned them before.'),
  tidemark_stream_runs_total: counter('runs', ['stream', 'result'],
    'Finished tasks of a stream, by result (ok, failed).', { stream: STREAMS, result: ['ok', 'failed'] }),
  tidemark_stream_last_success_timestamp_seconds: gauge('seconds since 1970', ['stream'],
    'Unix time (clock of this machine) of the last successful request of a stream; absent before the first.'),
  tidemark_stream_state: gauge('0 or 1', ['stream', 'state'],
    'Is 1 for the current state of a stream: on, waiting (not read yet), failing, off (the key lacks its scope).'),

  // Coverage
  tidemark_devices: gauge('devices', ['state'],
    'Devices by state: live, catching-up, silent, unreachable, excluded. Those of tidemark_devices_out_of_service count as silent here.'),
  tidemark_devices_out_of_service: gauge('devices', [],
    'Devices that send nothing and were paused, shelved or retired: no readings are expected of them.'),
  tidemark_devices_complete: gauge('devices', [], 'Devices that are complete: their whole sync range is covered.'),
  tidemark_freshness_seconds: gauge('seconds', ['percentile'],
    'Lag of the polled devices, as percentiles: the time between the end of the complete range of a device and the coverage limit (now minus sync.grace_period). A device in its first sync counts only if its newest readings are late by more than tidemark_freshness_target_seconds. No series while most devices are left out.'),
  tidemark_freshness_worst_seconds: gauge('seconds', [], 'Lag of the device with the largest lag.'),
  tidemark_freshness_target_seconds: gauge('seconds', [],
    'Target lag, the behind_after_seconds of /status.json; larger while the quota is too small for all schedules.'),
  tidemark_coverage_ratio: gauge('ratio', [],
    'Covered part of the sync range of all devices, 0 to 1; the newest minutes count as not covered only while the device is behind (a lag above tidemark_freshness_target_seconds). Absent until a device is known.'),
  tidemark_coverage_gap_seconds: gauge('seconds', ['reason'],
    'Length of all gaps of all devices, by reason. The newest minutes of a device are a gap while it is behind. No series for a reason without gaps.'),
  tidemark_gaps_recorded_total: counter('gaps', ['reason'],
    'Gaps that were recorded because they could not be closed, by reason.', { reason: GAP_REASONS }),
  tidemark_hints_wrong_total: counter('devices', [],
    'Devices that had readings newer than their last-seen time in the device list.'),
  tidemark_fleet_snapshot_age_seconds: gauge('seconds', [],
    'Age of the metrics that are computed by a scan of all devices: devices, freshness and coverage.'),

  // History
  tidemark_history_pending_seconds: gauge('seconds', [],
    'Length of the history that is not read yet, summed over all devices.'),
  tidemark_job_running: gauge('0 or 1', ['kind'],
    `Is 1 while a job of this kind that a command started is running: ${Object.keys(JOB_RULES).join(', ')}.`),
  tidemark_job_progress_ratio: gauge('ratio', ['kind'], 'Progress of the job, 0 to 1; absent while unknown.'),
  tidemark_job_eta_seconds: gauge('seconds', ['kind'],
    'Estimated time until the job ends; absent while unknown.'),

  // Delivery
  tidemark_points_written_total: counter('points', ['destination'], 'Points that a database accepted.', { destination: CONFIGURED }),
  tidemark_points_rejected_total: counter('points', ['destination'],
    'Points that a database rejected; they are kept in quarantine.', { destination: CONFIGURED }),
  tidemark_points_retried_total: counter('points', ['destination'],
    'Points that were sent again because a database did not accept them.', { destination: CONFIGURED }),
  tidemark_points_beyond_retention_total: counter('points', ['destination'],
    'Points that are older than the retention of a database.', { destination: CONFIGURED }),
  tidemark_write_duration_seconds: timing(['destination'], WRITE_SECONDS,
    'Time to write a batch of points, up to the response of the database.'),
  tidemark_destination_up: gauge('0 or 1', ['destination'],
    'Is 1 while delivery to a database works, 0 while it is blocked.'),
  tidemark_delivery_lag_points: gauge('points', ['destination'],
    'Archived points that a database has not acknowledged yet.'),
  tidemark_delivery_lag_seconds: gauge('seconds', ['destination'],
    'Time since the oldest unacknowledged point was archived; 0 if there is none.'),
  tidemark_quarantined_points: gauge('points', ['destination'], 'Rejected points in quarantine.'),
  tidemark_missing_points: gauge('points', ['destination', 'reason'],
    'Archived points that a database does not have and does not get without a command, by reason: beyond_retention, skipped_destination, cleared (from the archive), dropped (--quarantine drop).'),

  // The state
  tidemark_archive_points: gauge('points', [], 'Points in the archive.'),
  tidemark_archive_bytes: gauge('bytes', [], 'Size of the points in the archive as line protocol, before compression.'),
  tidemark_state_bytes: gauge('bytes', [],
    'Size of the state without its free pages; archive.max_size limits it.'),
  tidemark_state_limit_bytes: gauge('bytes', [], 'Limit of the size of the state (archive.max_size); absent if there is none.'),
  tidemark_disk_free_bytes: gauge('bytes', [],
    'Free space on the disk of the state; absent if unknown.'),
  tidemark_polling_stopped: gauge('0 or 1', [],
    'Is 1 while polling is stopped because the archive or the disk is full.'),

  // The process
  tidemark_nodejs_version_info: gauge('always 1', ['version', 'major', 'minor', 'patch'], 'The version of Node.'),
  tidemark_process_cpu_seconds_total: counter('seconds', [], 'CPU time used, user and system.'),
  tidemark_process_resident_memory_bytes: gauge('bytes', [], 'Resident memory of the process.'),
  tidemark_process_start_time_seconds: gauge('seconds since 1970', [], 'Start time of the process.'),
  tidemark_process_open_fds: gauge('descriptors', [], 'Open file descriptors.'),
  tidemark_process_max_fds: gauge('descriptors', [], 'Maximum number of open file descriptors.'),
  tidemark_nodejs_eventloop_lag_seconds: gauge('seconds', [], 'Current lag of the event loop.'),
  tidemark_nodejs_eventloop_lag_p99_seconds: gauge('seconds', [],
    'The 99th percentile of the event loop lag since the last scrape, sampled once a second.'),
  tidemark_nodejs_eventloop_lag_max_seconds: gauge('seconds', [],
    'Maximum event loop lag since the last scrape, sampled once a second.'),
  tidemark_nodejs_heap_size_used_bytes: gauge('bytes', [], 'Used heap.'),
  tidemark_nodejs_heap_size_total_bytes: gauge('bytes', [], 'Allocated heap.'),
  tidemark_nodejs_external_memory_bytes: gauge('bytes', [], 'Memory outside the heap, such as buffers.'),
} as const;

/** The additional metrics if `metrics.per_device` is set. */
export const PER_DEVICE = {
  tidemark_device_freshness_seconds: gauge(
    'seconds',
    ['device_id', 'device_name'],
    'Lag of the device: the time between the end of its complete range and the coverage limit (now minus sync.grace_period). Absent in its initial sync, unless its newest readings are missing for longer than tidemark_freshness_target_seconds.',
  ),
  tidemark_device_gap_seconds: gauge('seconds', ['device_id', 'device_name'], 'Length of all gaps of the device.'),
  tidemark_devices_left_out: gauge(
    'devices',
    [],
    `Devices beyond the limit of ${grouped(MOST_DEVICE_SERIES)} that have no series of their own.`,
  ),
} as const;

type Table = typeof METRICS & typeof PER_DEVICE;
type MetricName = keyof Table;
type NameOf<K extends MetricRow['kind']> = {
  [N in MetricName]: Table[N]['kind'] extends K ? N : never;
}[MetricName];
/** Label values of a metric, by label. */
type Labels<N extends MetricName> = Readonly<Record<Table[N]['labels'][number], string>>;

/** The functions that set the values of the table. Label values may be any text. */
export interface Instruments {
  count<N extends NameOf<'counter'>>(name: N, labels: Labels<N>, by?: number): void;
  /** Sets a counter to a total that another part has counted; the total may restart at 0. */
  counted<N extends NameOf<'counter'>>(name: N, labels: Labels<N>, total: number): void;
  time<N extends NameOf<'histogram'>>(name: N, labels: Labels<N>, ms: number): void;
  set<N extends NameOf<'gauge'>>(name: N, labels: Labels<N>, value: number): void;
  /** Removes all series of gauges: their subject is gone, or their values are unknown. */
  clear(...names: readonly NameOf<'gauge'>[]): void;
}

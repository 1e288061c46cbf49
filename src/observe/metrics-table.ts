/**
 * Every metric: name, kind, unit, labels and help text. The metrics endpoint, the reference page (`docs/metrics.md`)
 * and the types of `metrics.ts` use this table; no other metric is served.
 *
 * Names begin with `tidemark_` and use base units. No label has an unlimited number of values: only the metrics of
 * `PER_DEVICE` have a label per device. `metrics.per_device` turns them on, for a limited number of devices.
 */

/** One metric. Labels are those of each of its series. */
export interface MetricRow<L extends string = string> {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly unit: string;
  readonly labels: readonly L[];
  readonly help: string;
  /** The upper bounds of a histogram, in its unit. */
  readonly buckets?: readonly number[];
}

type Row<K extends MetricRow['kind'], L extends string> = MetricRow<L> & { readonly kind: K };

function counter<L extends string>(unit: string, labels: readonly L[], help: string): Row<'counter', L> {
  return { kind: 'counter', unit, labels, help };
}

function gauge<L extends string>(unit: string, labels: readonly L[], help: string): Row<'gauge', L> {
  return { kind: 'gauge', unit, labels, help };
}

function timing<L extends string>(labels: readonly L[], buckets: readonly number[], help: string): Row<'histogram', L> {
  return { kind: 'histogram', unit: 'seconds', labels, help, buckets };
}

const REQUEST_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const WRITE_SECONDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** What is served always. */
// biome-ignore format: a table, a row a metric
export const METRICS = {
  // The program
  tidemark_build_info: gauge('always 1', ['version'], 'The version of Tidemark.'),
  tidemark_healthy: gauge('0 or 1', [], 'Whether all loops move: what /healthz says.'),
  tidemark_ready: gauge('0 or 1', [], 'Whether what is held can be relied on: what /readyz says.'),
  tidemark_not_ready: gauge('0 or 1', ['code'],
    'Whether this is a reason of not being ready; code is that of /readyz.'),
  tidemark_loop_idle_seconds: gauge('seconds', ['loop'],
    'Since the last sign of life of a loop, beyond the rest that it announced: near 0 while it moves.'),

  // Requests to the API
  tidemark_api_requests_total: counter('requests', ['stream', 'lane', 'status'],
    'Requests sent to the API, by endpoint (stream), what for (lane) and HTTP status; none where no answer came.'),
  tidemark_api_request_duration_seconds: timing(['stream'], REQUEST_SECONDS,
    'From sending a request to the end of its answer.'),
  tidemark_api_response_bytes_total: counter('bytes', ['stream', 'form'],
    'Bytes of the bodies of answers, as received (form: wire) and decompressed (form: decoded).'),
  tidemark_api_faults_total: counter('requests', ['fault'],
    'Requests that did not bring what they were sent for, by kind.'),
  tidemark_api_throttled_total: counter('requests', [], 'Requests that the API refused with 429.'),
  tidemark_api_retries_total: counter('requests', [], 'Requests that were sent again after a fault.'),

  // The allowance
  tidemark_allowance_limit_requests: gauge('requests', ['window'],
    'The limit of the workspace in a window (minute, day); absent while it is not known.'),
  tidemark_allowance_budget_requests: gauge('requests', ['window'],
    'The most that this program takes of the limit: its share.'),
  tidemark_allowance_used_requests: gauge('requests', ['window', 'by'],
    'Requests in the last minute or day, own ones and, as of the last answer that told of it, those of others.'),
  tidemark_allowance_remaining_requests: gauge('requests', ['window'],
    'What is left of the limit once own use and that of others are taken off.'),
  tidemark_allowance_wait_until_timestamp_seconds: gauge('seconds since 1970', [],
    'Until when the program waits for allowance; 0 while it may ask.'),
  tidemark_allowance_waits_total: counter('waits', ['reason'],
    'Waits of more than a few seconds that have begun, by reason (pace, minute, day, asked).'),
  tidemark_allowance_short: gauge('0 or 1', ['of'],
    'Whether the allowance cannot carry the schedules, or not even the readings.'),

  // What is read
  tidemark_readings_pulled_total: counter('readings', ['lane'],
    'Readings that pages have brought, known ones included.'),
  tidemark_readings_new_total: counter('readings', ['lane'], 'Readings that brought something new into the archive.'),
  tidemark_readings_late_total: counter('readings', [],
    'New readings in time that counted as held in full: delivered all the same.'),
  tidemark_points_archived_total: counter('points', ['lane'], 'Telemetry points that were archived.'),
  tidemark_records_rejected_total: counter('records', ['stream'],
    'Records of the API that were set aside because they could not be understood.'),
  tidemark_values_dropped_total: counter('values', [], 'Values that were set aside because no point can hold them.'),
  tidemark_pages_distrusted_total: counter('pages', [], 'Pages that proved nothing and were asked for again.'),
  tidemark_restatements_total: counter('readings', [],
    'Readings that the API no longer shows though it showed them before.'),
  tidemark_stream_runs_total: counter('runs', ['stream', 'result'],
    'Pieces of work on a stream that came to their end, or failed.'),
  tidemark_stream_last_success_timestamp_seconds: gauge('seconds since 1970', ['stream'],
    'When a stream was read with success last, by the local clock; absent before the first time.'),
  tidemark_stream_state: gauge('0 or 1', ['stream', 'state'],
    'The state of each stream: on, waiting (not read yet), failing, off (the key lacks its scope).'),

  // What is held
  tidemark_devices: gauge('devices', ['state'], 'Devices by state: live, catching-up, silent, unreachable, excluded.'),
  tidemark_devices_complete: gauge('devices', [], 'Devices of which all that is wanted is held.'),
  tidemark_freshness_seconds: gauge('seconds', ['percentile'],
    'Age of the oldest reading of a device that may be there and is not held, over the devices that are read.'),
  tidemark_freshness_worst_seconds: gauge('seconds', [], 'The same of the device that is worst off.'),
  tidemark_freshness_target_seconds: gauge('seconds', [],
    'What the freshness stays below while all is well: more where the allowance is short.'),
  tidemark_coverage_ratio: gauge('ratio', [],
    'The part of the wanted time of all devices that is held, 0 to 1; absent before anything is wanted.'),
  tidemark_coverage_gap_seconds: gauge('seconds', ['reason'],
    'Wanted time that is not held, summed over the devices, by reason.'),
  tidemark_gaps_named_total: counter('gaps', ['reason'],
    'Gaps that were named because they could not be closed, by reason.'),
  tidemark_hints_wrong_total: counter('devices', [],
    'Devices whose listed last-seen time denied readings that were there.'),
  tidemark_fleet_look_age_seconds: gauge('seconds', [],
    'How old the figures are that take a look at every device: devices, freshness and coverage.'),

  // History
  tidemark_history_open_seconds: gauge('seconds', [],
    'History that is yet to be read, summed over the devices, as the planner knows it.'),
  tidemark_job_running: gauge('0 or 1', ['kind'],
    'Whether work that a command asked for (backfill, once) is under way.'),
  tidemark_job_progress_ratio: gauge('ratio', ['kind'], 'How far that work is, 0 to 1; absent where it does not tell.'),
  tidemark_job_eta_seconds: gauge('seconds', ['kind'],
    'How long that work will take from now; absent where nobody can tell yet.'),

  // Delivery
  tidemark_points_written_total: counter('points', ['destination'], 'Points that a destination has accepted.'),
  tidemark_points_refused_total: counter('points', ['destination'],
    'Points that a destination has refused: kept in quarantine.'),
  tidemark_points_retried_total: counter('points', ['destination'],
    'Points that were kept for another try because a destination did not take them.'),
  tidemark_points_beyond_retention_total: counter('points', ['destination'],
    'Points that are older than a destination keeps.'),
  tidemark_write_duration_seconds: timing(['destination'], WRITE_SECONDS,
    'How long it took to settle a batch of points with a destination.'),
  tidemark_destination_up: gauge('0 or 1', ['destination'],
    'Whether delivery to a destination moves: 0 while it is held.'),
  tidemark_delivery_lag_points: gauge('points', ['destination'],
    'Archived points that a destination has not settled yet.'),
  tidemark_delivery_lag_seconds: gauge('seconds', ['destination'],
    'How long the oldest of them has been in the archive; 0 where there is none.'),
  tidemark_quarantined_points: gauge('points', ['destination'], 'Refused points that are in quarantine.'),
  tidemark_lacking_points: gauge('points', ['destination', 'reason'],
    'Archived points that a destination lacks for good, by reason.'),

  // The state
  tidemark_archive_points: gauge('points', [], 'Points that the archive still keeps.'),
  tidemark_archive_bytes: gauge('bytes', [], 'Their length as lines, before they are compressed.'),
  tidemark_state_bytes: gauge('bytes', [],
    'Size of the state without what is free in it: what archive.max_size is compared with.'),
  tidemark_state_limit_bytes: gauge('bytes', [], 'archive.max_size; absent where there is none.'),
  tidemark_disk_free_bytes: gauge('bytes', [],
    'What is free on the disk of the state; absent where that cannot be told.'),
  tidemark_pulling_stopped: gauge('0 or 1', [],
    'Whether nothing is asked of the API because the archive or the disk is full.'),

  // The process
  tidemark_nodejs_version_info: gauge('always 1', ['version', 'major', 'minor', 'patch'], 'The version of Node.'),
  tidemark_process_cpu_seconds_total: counter('seconds', [], 'Processor time used, user and system.'),
  tidemark_process_resident_memory_bytes: gauge('bytes', [], 'Memory in use by the process.'),
  tidemark_process_start_time_seconds: gauge('seconds since 1970', [], 'When the process was started.'),
  tidemark_process_open_fds: gauge('descriptors', [], 'Open file descriptors.'),
  tidemark_process_max_fds: gauge('descriptors', [], 'The most that may be open.'),
  tidemark_nodejs_eventloop_lag_seconds: gauge('seconds', [], 'Lag of the event loop at this moment.'),
  tidemark_nodejs_eventloop_lag_p99_seconds: gauge('seconds', [],
    'The 99th percentile of the lag of the event loop since the last scrape.'),
  tidemark_nodejs_eventloop_lag_max_seconds: gauge('seconds', [],
    'The longest lag of the event loop since the last scrape.'),
  tidemark_nodejs_heap_size_used_bytes: gauge('bytes', [], 'Heap in use.'),
  tidemark_nodejs_heap_size_total_bytes: gauge('bytes', [], 'Heap that is set aside.'),
  tidemark_nodejs_external_memory_bytes: gauge('bytes', [], 'Memory outside of the heap, such as buffers.'),
} as const;

/** What is served beside that where `metrics.per_device` is set. */
export const PER_DEVICE = {
  tidemark_device_freshness_seconds: gauge(
    'seconds',
    ['device_id', 'device_name'],
    'Age of the oldest reading of the device that may be there and is not held.',
  ),
  tidemark_device_gap_seconds: gauge(
    'seconds',
    ['device_id', 'device_name'],
    'Wanted time of the device that is not held.',
  ),
  tidemark_devices_left_out: gauge('devices', [], 'Devices beyond the most that are told of one by one.'),
} as const;

/** The most devices that have series of their own, those with the first ids: a scrape stays within a megabyte. */
export const MOST_DEVICES = 1000;

type Table = typeof METRICS & typeof PER_DEVICE;
type MetricName = keyof Table;
type NameOf<K extends MetricRow['kind']> = {
  [N in MetricName]: Table[N]['kind'] extends K ? N : never;
}[MetricName];
/** Label values of a metric, by label. */
type Labels<N extends MetricName> = Readonly<Record<Table[N]['labels'][number], string>>;

/** How the values of the table are set. Label values may be any text. */
export interface Instruments {
  count<N extends NameOf<'counter'>>(name: N, labels: Labels<N>, by?: number): void;
  /** What somebody else has counted so far; that may begin anew. */
  counted<N extends NameOf<'counter'>>(name: N, labels: Labels<N>, total: number): void;
  time<N extends NameOf<'histogram'>>(name: N, labels: Labels<N>, ms: number): void;
  set<N extends NameOf<'gauge'>>(name: N, labels: Labels<N>, value: number): void;
  /** Removes all series of gauges: of what is gone, or not known any more. */
  clear(...names: readonly NameOf<'gauge'>[]): void;
}

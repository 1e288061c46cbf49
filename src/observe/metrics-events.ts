/**
 * What each event counts. Events that no metric tells of are left out.
 */
import type { AppEvent, Observe } from '../core/events.ts';
import type { Instruments, MetricsOptions } from './metrics.ts';

type Count = {
  readonly [T in AppEvent['type']]?: (event: Extract<AppEvent, { type: T }>, to: Instruments, nowMs: number) => void;
};

const COUNTS: Count = {
  'request-done': ({ stream, lane, status, durationMs, fault }, to, nowMs) => {
    to.count('tidemark_api_requests_total', { stream, lane, status: status === null ? 'none' : String(status) });
    to.time('tidemark_api_request_duration_seconds', { stream }, durationMs);
    if (fault === null) to.set('tidemark_stream_last_success_timestamp_seconds', { stream }, nowMs / 1000);
    else to.count('tidemark_api_faults_total', { fault });
    if (fault === 'throttled') to.count('tidemark_api_throttled_total', {});
  },
  'request-retried': (_event, to) => to.count('tidemark_api_retries_total', {}),
  'allowance-wait': ({ reason }, to) => to.count('tidemark_allowance_waits_total', { reason }),
  'allowance-short': ({ of }, to) => {
    to.set('tidemark_allowance_short', { of: 'schedules' }, of === 'schedules' ? 1 : 0);
    to.set('tidemark_allowance_short', { of: 'readings' }, of === 'readings' ? 1 : 0);
  },
  'allowance-enough': (_event, to) => nothingShort(to),
  'page-landed': ({ lane, served, readings, newPoints }, to) => {
    to.count('tidemark_readings_pulled_total', { lane }, served);
    to.count('tidemark_readings_new_total', { lane }, readings);
    to.count('tidemark_points_archived_total', { lane }, newPoints);
  },
  'readings-late': ({ count }, to) => to.count('tidemark_readings_late_total', {}, count),
  'records-rejected': ({ stream, count }, to) => to.count('tidemark_records_rejected_total', { stream }, count),
  'values-dropped': ({ count }, to) => to.count('tidemark_values_dropped_total', {}, count),
  'page-distrusted': (_event, to) => to.count('tidemark_pages_distrusted_total', {}),
  restatement: (_event, to) => to.count('tidemark_restatements_total', {}),
  'gap-named': ({ reason }, to) => to.count('tidemark_gaps_named_total', { reason }),
  'stream-read': ({ stream }, to) => to.count('tidemark_stream_runs_total', { stream, result: 'ok' }),
  'stream-failed': ({ stream }, to) => to.count('tidemark_stream_runs_total', { stream, result: 'failed' }),
  'lines-delivered': ({ destination, lines, durationMs }, to) => {
    to.count('tidemark_points_written_total', { destination }, lines);
    to.time('tidemark_write_duration_seconds', { destination }, durationMs);
  },
  'lines-quarantined': ({ destination, lines }, to) =>
    to.count('tidemark_points_refused_total', { destination }, lines),
  'lines-beyond-retention': ({ destination, lines }, to) =>
    to.count('tidemark_points_beyond_retention_total', { destination }, lines),
  'destination-held': ({ destination, lines }, to) => to.count('tidemark_points_retried_total', { destination }, lines),
};

/** Whose counters begin at 0, so that the first of its kind is an increase. */
const STREAMS = ['account', 'devices', 'telemetry', 'alerts'] as const;
const GAP_REASONS = [
  'beyond plan',
  'beyond allowance',
  'page not understood',
  'device unreachable',
  'device gone',
] as const;

/** Counts events. */
export function countEvents(
  to: Instruments,
  { clock, destinations }: Pick<MetricsOptions, 'clock' | 'destinations'>,
): Observe {
  for (const destination of destinations) {
    to.count('tidemark_points_written_total', { destination }, 0);
    to.count('tidemark_points_refused_total', { destination }, 0);
    to.count('tidemark_points_retried_total', { destination }, 0);
    to.count('tidemark_points_beyond_retention_total', { destination }, 0);
  }
  for (const reason of GAP_REASONS) to.count('tidemark_gaps_named_total', { reason }, 0);
  for (const stream of STREAMS) {
    to.count('tidemark_records_rejected_total', { stream }, 0);
    for (const result of ['ok', 'failed']) to.count('tidemark_stream_runs_total', { stream, result }, 0);
  }
  nothingShort(to);
  return (event) => {
    // The table's type ties every kind of event to its count; only a call by name loses sight of that.
    const count = COUNTS[event.type] as ((event: AppEvent, to: Instruments, nowMs: number) => void) | undefined;
    count?.(event, to, clock.nowMs());
  };
}

function nothingShort(to: Instruments): void {
  for (const what of ['schedules', 'readings']) to.set('tidemark_allowance_short', { of: what }, 0);
}

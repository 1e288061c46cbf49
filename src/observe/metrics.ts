/**
 * `/metrics`: counters from the events, as `event-table.ts` defines them, and gauges from the current figures.
 *
 * Only metrics of `metrics-table.ts` are served. A scrape uses cheap figures (`report/figures.ts`), and sends no
 * request. An unknown value, or a value of a removed destination or device, has no series. Names of destinations and
 * devices are label values, escaped and shortened, and contain no secret.
 */

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Observe } from '../core/events.ts';
import type { DestinationFigures, Figures, FleetFigures } from '../core/figures.ts';
import type { LoopState } from '../core/heartbeats.ts';
import type { Clock } from '../core/ports.ts';
import type { Scrub } from '../core/secret.ts';
import { JOB_RULES } from '../core/state/jobs.ts';
import { MISSING_REASONS } from '../core/state/log.ts';
import { type HealthReport, READY_CODES, type ReadyReport, STREAM_STATES } from '../core/status.ts';
import { plainText } from '../core/text.ts';
import { SECOND_MS } from '../core/time.ts';
import { rowOf } from './event-table.ts';
import { CONFIGURED, type Instruments, METRICS, type MetricRow, PER_DEVICE } from './metrics-table.ts';

/** The sources of the figures in a scrape, and the names for its labels. */
export interface MetricsOptions {
  readonly figures: () => Figures;
  readonly health: () => HealthReport;
  readonly ready: () => ReadyReport;
  readonly loops: () => readonly LoopState[];
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly version: string;
  /** `metrics.per_device`. */
  readonly perDevice: boolean;
  /** The names of all configured destinations. Their counters begin at 0. */
  readonly destinations: readonly string[];
  readonly scrub: Scrub;
}

/** Counts events and answers scrapes. */
export interface Metrics {
  readonly observe: Observe;
  /** The metrics in the text format of Prometheus, as of now. */
  text(): Promise<string>;
  readonly contentType: string;
}

/** No label value is longer than this. */
const LONGEST_LABEL = 200;

/** Opens the metrics: everything is at 0. */
export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry();
  const table = { ...METRICS, ...(options.perDevice ? PER_DEVICE : {}) };
  const own = Object.entries(table).filter(([name]) => !isOfTheProcess(name));
  const instruments = createInstruments(registry, new Map(own), options.destinations);
  addProcess(registry);
  instruments.set('tidemark_build_info', { version: options.version }, 1);
  const setGauges = createGauges(instruments, options);
  return {
    observe: (event) => rowOf(event.type).counts?.(event, instruments, options.clock.nowMs()),
    text: async () => {
      setGauges();
      return withCleanLabels(await registry.metrics(), options.scrub);
    },
    contentType: registry.contentType,
  };
}

function createInstruments(
  registry: Registry,
  rows: ReadonlyMap<string, MetricRow>,
  destinations: readonly string[],
): Instruments {
  const counters = new Map<string, Counter>();
  const gauges = new Map<string, Gauge>();
  const histograms = new Map<string, Histogram>();
  for (const [name, { kind, labels, help, buckets = [] }] of rows) {
    const about = { name, help, labelNames: [...labels], registers: [registry] };
    if (kind === 'counter') counters.set(name, new Counter(about));
    else if (kind === 'gauge') gauges.set(name, new Gauge(about));
    else histograms.set(name, new Histogram({ ...about, buckets: [...buckets] }));
  }
  const totals = new Map<string, number>();
  const clear = (name: string): void => {
    const gauge = gauges.get(name);
    gauge?.reset();
    // A gauge without labels would be served as 0, although its value is not known.
    if (rows.get(name)?.labels.length === 0) gauge?.remove();
  };
  for (const name of gauges.keys()) clear(name);
  for (const [name, row] of rows) {
    for (const labels of seriesAtStart(row, destinations).map(clean)) {
      counters.get(name)?.inc(labels, 0);
      gauges.get(name)?.set(labels, 0);
    }
  }
  return {
    count: (name, labels, by = 1) => counters.get(name)?.inc(clean(labels), by),
    counted: (name, labels, total) => {
      const before = totals.get(name) ?? 0;
      totals.set(name, total);
      counters.get(name)?.inc(clean(labels), total < before ? total : total - before);
    },
    time: (name, labels, ms) => histograms.get(name)?.observe(clean(labels), ms / 1000),
    set: (name, labels, value) => gauges.get(name)?.set(clean(labels), value),
    clear: (...names) => {
      for (const name of names) clear(name);
    },
  };
}

function clean(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, plainText(value, LONGEST_LABEL)]));
}

/** Removes secrets from the values of labels. Names, help texts and figures are Tidemark's own. */
function withCleanLabels(text: string, scrub: Scrub): string {
  return text.replace(/="((?:[^"\\\n]|\\.)*)"/g, (_all, value: string) => `="${scrub(value)}"`);
}

const PREFIX = 'tidemark_';

function isOfTheProcess(name: string): boolean {
  return name.startsWith(`${PREFIX}process_`) || name.startsWith(`${PREFIX}nodejs_`);
}

/** Adds the process metrics of prom-client that are in the table, with the help texts of the table. */
function addProcess(registry: Registry): void {
  const rows: Readonly<Record<string, MetricRow>> = METRICS;
  collectDefaultMetrics({ register: registry, prefix: PREFIX, eventLoopMonitoringPrecision: LAG_RESOLUTION_MS });
  // The library counts all three when it collects the first one, which is not in the table.
  const [total, user] = ['process_cpu_seconds_total', 'process_cpu_user_seconds_total'].map(
    (name) => registry.getSingleMetric(PREFIX + name) as { collect?: () => void } | undefined,
  );
  const count = user?.collect?.bind(user);
  if (total !== undefined && count !== undefined) total.collect = count;
  for (const { name } of registry.getMetricsAsArray().filter(({ name }) => isOfTheProcess(name))) {
    const row = rows[name];
    if (row === undefined) registry.removeSingleMetric(name);
    else Object.assign(registry.getSingleMetric(name) ?? {}, { help: row.help });
  }
  for (const name of SAMPLED_LAGS) subtractResolution(registry.getSingleMetric(name));
}

/**
 * How finely the lag of the event loop is measured. Every sample wakes the process: 50 per second took a quarter of the
 * processor time of an idle daemon, and four per second a twelfth, because the core sleeps between them.
 */
const LAG_RESOLUTION_MS = SECOND_MS;

const SAMPLED_LAGS = [`${PREFIX}nodejs_eventloop_lag_p99_seconds`, `${PREFIX}nodejs_eventloop_lag_max_seconds`];

/** Node counts the time between two samples, so a loop without lag would show the resolution as its lag. */
function subtractResolution(metric: ReturnType<Registry['getSingleMetric']>): void {
  if (metric === undefined) return;
  const read = metric.get.bind(metric);
  const lagOf = (seconds: number): number => Math.max(0, seconds - LAG_RESOLUTION_MS / SECOND_MS);
  metric.get = async () => {
    const data = await read();
    return { ...data, values: data.values.map((each) => ({ ...each, value: lagOf(each.value) })) };
  };
}

/** The labels of the series of a metric that begin at 0. */
function seriesAtStart({ values }: MetricRow, destinations: readonly string[]): readonly Record<string, string>[] {
  if (values === undefined) return [];
  return Object.entries(values).reduce<readonly Record<string, string>[]>(
    (series, [label, known]) =>
      (known === CONFIGURED ? destinations : known).flatMap((value) =>
        series.map((labels) => ({ ...labels, [label]: value })),
      ),
    [{}],
  );
}

const NO_LABELS = {};

/** Returns a function that sets all gauges. */
function createGauges(to: Instruments, options: MetricsOptions): () => void {
  let shown: FleetFigures | null = null;
  return () => {
    const figures = options.figures();
    setFigures(to, figures, options);
    // Thousands of series, so they are set again only after another scan of the devices.
    if (options.perDevice && figures.fleet !== shown) setDevices(to, figures.fleet);
    shown = figures.fleet;
  };
}

function setFigures(to: Instruments, figures: Figures, options: MetricsOptions): void {
  to.clear('tidemark_workspace_info');
  const { workspace } = figures;
  if (workspace !== null)
    to.set('tidemark_workspace_info', { workspace_id: workspace.id, workspace_name: workspace.name }, 1);
  setHealth(to, options);
  setQuota(to, figures.quota);
  for (const { name, state } of figures.streams) {
    for (const each of STREAM_STATES)
      to.set('tidemark_stream_state', { stream: name, state: each }, state === each ? 1 : 0);
  }
  setFleet(to, figures);
  setJobs(to, figures);
  for (const destination of figures.destinations) setDestination(to, destination);
  setArchive(to, figures.archive);
}

function setHealth(to: Instruments, { health, ready, loops }: MetricsOptions): void {
  const { ready: isReady, codes } = ready();
  to.set('tidemark_healthy', NO_LABELS, health().healthy ? 1 : 0);
  to.set('tidemark_ready', NO_LABELS, isReady ? 1 : 0);
  for (const code of READY_CODES) to.set('tidemark_not_ready', { code }, codes.includes(code) ? 1 : 0);
  for (const { loop, idleMs } of loops()) to.set('tidemark_loop_idle_seconds', { loop }, idleMs / 1000);
}

function setQuota(to: Instruments, { minute, day, waitingUntilMs }: Figures['quota']): void {
  to.set('tidemark_quota_wait_until_timestamp_seconds', NO_LABELS, (waitingUntilMs ?? 0) / 1000);
  for (const [window, { limit, budget, spent, others }] of Object.entries({ minute, day })) {
    to.set('tidemark_quota_used_requests', { window, by: 'own' }, spent);
    if (others !== null) to.set('tidemark_quota_used_requests', { window, by: 'others' }, others);
    if (budget !== null) to.set('tidemark_quota_budget_requests', { window }, budget);
    if (limit === null) continue;
    to.set('tidemark_quota_limit_requests', { window }, limit);
    to.set('tidemark_quota_remaining_requests', { window }, Math.max(0, limit - spent - (others ?? 0)));
  }
}

function setFleet(to: Instruments, figures: Figures): void {
  const { fleet } = figures;
  to.set('tidemark_freshness_target_seconds', NO_LABELS, figures.lagTargetSeconds);
  to.set('tidemark_history_pending_seconds', NO_LABELS, figures.historyOpenSeconds);
  to.counted('tidemark_hints_wrong_total', NO_LABELS, figures.hintsWrong);
  to.set('tidemark_fleet_snapshot_age_seconds', NO_LABELS, figures.fleetAgeSeconds);
  to.clear('tidemark_freshness_seconds', 'tidemark_freshness_worst_seconds');
  to.clear('tidemark_coverage_ratio', 'tidemark_coverage_gap_seconds');
  if (fleet === null) return;
  for (const [state, devices] of Object.entries(fleet.states)) to.set('tidemark_devices', { state }, devices);
  to.set('tidemark_devices_out_of_service', NO_LABELS, fleet.outOfService);
  to.set('tidemark_devices_complete', NO_LABELS, fleet.complete);
  if (fleet.coveredShare !== null) to.set('tidemark_coverage_ratio', NO_LABELS, fleet.coveredShare);
  for (const [reason, seconds] of fleet.gapSeconds) to.set('tidemark_coverage_gap_seconds', { reason }, seconds);
  setLag(to, fleet);
}

function setLag(to: Instruments, { lag }: FleetFigures): void {
  const { p50, p90, p99, worst } = lag;
  for (const [percentile, seconds] of Object.entries({ 50: p50, 90: p90, 99: p99 })) {
    if (seconds !== null) to.set('tidemark_freshness_seconds', { percentile }, seconds);
  }
  if (worst !== null) to.set('tidemark_freshness_worst_seconds', NO_LABELS, worst);
}

function setDevices(to: Instruments, fleet: FleetFigures | null): void {
  to.clear('tidemark_device_freshness_seconds', 'tidemark_device_gap_seconds');
  if (fleet === null) return;
  const { devices, leftOut } = fleet;
  to.set('tidemark_devices_left_out', NO_LABELS, leftOut);
  for (const { deviceId, name, lagSeconds, gapSeconds } of devices) {
    const labels = { device_id: deviceId, device_name: name };
    if (lagSeconds !== null) to.set('tidemark_device_freshness_seconds', labels, lagSeconds);
    to.set('tidemark_device_gap_seconds', labels, gapSeconds);
  }
}

function setJobs(to: Instruments, { jobs }: Figures): void {
  to.clear('tidemark_job_running', 'tidemark_job_progress_ratio', 'tidemark_job_eta_seconds');
  for (const kind of Object.keys(JOB_RULES)) to.set('tidemark_job_running', { kind }, 0);
  for (const { kind, share, etaSeconds } of jobs) {
    to.set('tidemark_job_running', { kind }, 1);
    if (share !== null) to.set('tidemark_job_progress_ratio', { kind }, share);
    if (etaSeconds !== null) to.set('tidemark_job_eta_seconds', { kind }, etaSeconds);
  }
}

function setDestination(to: Instruments, figures: DestinationFigures): void {
  const { name: destination, blockedReason, pendingPoints, pendingSeconds, quarantined, missing } = figures;
  to.set('tidemark_destination_up', { destination }, blockedReason === null ? 1 : 0);
  to.set('tidemark_delivery_lag_points', { destination }, pendingPoints);
  to.set('tidemark_delivery_lag_seconds', { destination }, pendingSeconds);
  to.set('tidemark_quarantined_points', { destination }, quarantined);
  // Set to 0 first, so that the first point is an increase.
  for (const reason of MISSING_REASONS) to.set('tidemark_missing_points', { destination, reason }, 0);
  for (const { reason, points } of missing) to.set('tidemark_missing_points', { destination, reason }, points);
}

function setArchive(to: Instruments, archive: Figures['archive']): void {
  const { points, bytes, stateBytes, maxBytes, diskFreeBytes, isFull } = archive;
  to.clear('tidemark_disk_free_bytes');
  to.set('tidemark_archive_points', NO_LABELS, points);
  to.set('tidemark_archive_bytes', NO_LABELS, bytes);
  to.set('tidemark_state_bytes', NO_LABELS, stateBytes);
  if (maxBytes !== null) to.set('tidemark_state_limit_bytes', NO_LABELS, maxBytes);
  if (diskFreeBytes !== null) to.set('tidemark_disk_free_bytes', NO_LABELS, diskFreeBytes);
  to.set('tidemark_polling_stopped', NO_LABELS, isFull ? 1 : 0);
}

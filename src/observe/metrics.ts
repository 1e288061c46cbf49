/**
 * `/metrics`: counters from the events, gauges from the figures of the moment, both by the table (`metrics-table.ts`).
 *
 * Promises: nothing is served that is not in the table; a scrape asks for figures that are cheap (`report/figures.ts`) and
 * changes nothing; names of destinations and devices are label values, escaped and shortened, and no secret is in them.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Observe } from '../core/events.ts';
import type { Figures } from '../core/figures.ts';
import type { LoopStanding } from '../core/heartbeats.ts';
import type { Clock } from '../core/ports.ts';
import type { HealthReport, ReadyReport } from '../core/status.ts';
import { plainText } from '../core/text.ts';
import { countEvents } from './metrics-events.ts';
import { createGauges } from './metrics-gauges.ts';
import { METRICS, type MetricRow, PER_DEVICE } from './metrics-table.ts';
import type { Scrub } from './scrub.ts';

type Table = typeof METRICS & typeof PER_DEVICE;
export type MetricName = keyof Table;
export type NameOf<K extends MetricRow['kind']> = {
  [N in MetricName]: Table[N]['kind'] extends K ? N : never;
}[MetricName];
/** Label values of a metric, by label. */
export type Labels<N extends MetricName> = Readonly<Record<Table[N]['labels'][number], string>>;

/** How the values of the table are set. Label values may be any text. */
export interface Instruments {
  count<N extends NameOf<'counter'>>(name: N, labels: Labels<N>, by?: number): void;
  /** What somebody else has counted so far; that may begin anew. */
  counted<N extends NameOf<'counter'>>(name: N, labels: Labels<N>, total: number): void;
  time<N extends NameOf<'histogram'>>(name: N, labels: Labels<N>, ms: number): void;
  set<N extends NameOf<'gauge'>>(name: N, labels: Labels<N>, value: number): void;
  /** Takes away all series of gauges: of what is gone, or not known any more. */
  clear(...names: readonly NameOf<'gauge'>[]): void;
}

export interface MetricsOptions {
  readonly figures: () => Figures;
  readonly health: () => HealthReport;
  readonly ready: () => ReadyReport;
  readonly loops: () => readonly LoopStanding[];
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly version: string;
  /** `metrics.per_device`. */
  readonly perDevice: boolean;
  /** The names of all that are configured: their counters begin at 0. */
  readonly destinations: readonly string[];
  readonly scrub: Scrub;
}

export interface Metrics {
  readonly observe: Observe;
  /** What a scrape gets. */
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
  const instruments = createInstruments(registry, new Map(own));
  addProcess(registry);
  instruments.set('tidemark_build_info', { version: options.version }, 1);
  const setGauges = createGauges(instruments, options);
  return {
    observe: countEvents(instruments, options),
    text: async () => {
      setGauges();
      return options.scrub(await registry.metrics());
    },
    contentType: registry.contentType,
  };
}

function createInstruments(registry: Registry, rows: ReadonlyMap<string, MetricRow>): Instruments {
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
    // One without labels would be served as 0, which is not what is known.
    if (rows.get(name)?.labels.length === 0) gauge?.remove();
  };
  for (const name of gauges.keys()) clear(name);
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

const PREFIX = 'tidemark_';

function isOfTheProcess(name: string): boolean {
  return name.startsWith(`${PREFIX}process_`) || name.startsWith(`${PREFIX}nodejs_`);
}

/** What prom-client tells of the process: what is in the table of it, in the table's words. */
function addProcess(registry: Registry): void {
  const rows: Readonly<Record<string, MetricRow>> = METRICS;
  collectDefaultMetrics({ register: registry, prefix: PREFIX, eventLoopMonitoringPrecision: LAG_GRAIN_MS });
  for (const { name } of registry.getMetricsAsArray().filter(({ name }) => isOfTheProcess(name))) {
    const row = rows[name];
    if (row === undefined) registry.removeSingleMetric(name);
    else Object.assign(registry.getSingleMetric(name) ?? {}, { help: row.help });
  }
}

/** How finely the lag of the event loop is watched: 50 looks a second cost nothing that can be measured. */
const LAG_GRAIN_MS = 20;

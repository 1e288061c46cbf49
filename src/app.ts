/**
 * The composition root: puts the parts together. Nothing is decided here.
 *
 * ```
 * API ──► api/client ──page──► sync/pull ──one transaction──► store: archive + coverage ──► sync/deliver ──► influx ──► InfluxDB
 *             ▲  api/pacer         ▲                                     │                          │
 *             └── store/ledger     └──── core/walk: what next? ◄── holes in coverage ──┘   accepted · refused · kept
 * ```
 *
 * `openSync` gives the parts that sync; a mode (`commands/`) moves them. What it opens it closes in reverse order.
 */
import { createApiClient } from './api/client.ts';
import { createPacer, type Pacer } from './api/pacer.ts';
import type { DemoConfig, InfluxConfig } from './config.ts';
import type { AppEvent } from './core/events.ts';
import type { AllowanceUse } from './core/fact-lines.ts';
import type { Clock, Observe, Random, Transport } from './core/ports.ts';
import { createServerClock } from './core/server-clock.ts';
import type { Store } from './core/state.ts';
import type { AllowanceStatus, ReadyReport, StatusReport } from './core/status.ts';
import { formatExact, msToNs } from './core/time.ts';
import { createInfluxSink } from './influx/sink.ts';
import { type OpenStore, openStore } from './store/store.ts';
import type { SyncContext, SyncSettings } from './sync/context.ts';
import { createDeliverer, type Deliverer, type DestinationOptions } from './sync/deliver.ts';
import { createProgressWatch, type ProgressWatch } from './sync/progress-watch.ts';
import { createPuller, type Puller } from './sync/pull.ts';
import { type ReportParts, readyNow, reportNow } from './sync/report.ts';
import { createStreamNotes } from './sync/stream-notes.ts';
import { VERSION } from './version.ts';

/** Pages are at most this large, whatever the plan says (API document, "Pagination"). */
const MAX_PAGE_SIZE = 200;

export interface SyncOptions {
  /** How requests travel: over HTTP, or in-process in simulations. */
  readonly transport: Transport;
  readonly api: {
    readonly url: string;
    readonly key: () => string;
    readonly share: number;
    readonly concurrency: number;
  };
  readonly settings: SyncSettings;
  readonly destinations: readonly DestinationOptions[];
  readonly dataDir: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: Observe;
}

/** The parts of a running sync. */
export interface Sync {
  readonly context: SyncContext;
  readonly puller: Puller;
  readonly deliverers: readonly Deliverer[];
  readonly watch: ProgressWatch;
  report(): StatusReport;
  ready(): ReadyReport;
  close(): void;
}

/**
 * Opens the state and puts the parts of a sync together.
 *
 * @throws UserError where the state cannot be used.
 */
export function openSync(options: SyncOptions): Sync {
  const opened = openStore(options.dataDir);
  try {
    return assemble(options, opened);
  } catch (error) {
    opened.close();
    throw error;
  }
}

function assemble(options: SyncOptions, { store, ledger, close }: OpenStore): Sync {
  const { clock, random, settings } = options;
  const serverClock = createServerClock(clock);
  const watch = createProgressWatch(clock, serverClock.nowMs);
  const streams = createStreamNotes(serverClock.nowMs);
  const deliverers: Deliverer[] = [];
  const workspaceKnown = createGate();
  const observe = (event: AppEvent): void => {
    watch.observe(event);
    streams.observe(event);
    if (event.type === 'pass-started' || event.type === 'pass-failed') workspaceKnown.open();
    if (event.type === 'page-landed' || event.type === 'pass-started') for (const { ring } of deliverers) ring();
    options.observe(event);
  };
  const pacer = createPacer({
    ledger,
    plan: () => planFigures(store),
    share: options.api.share,
    concurrency: options.api.concurrency,
    clock,
    serverClock,
    random,
    observe,
  });
  const api = createApiClient({
    transport: options.transport,
    baseUrl: options.api.url,
    key: options.api.key,
    pacer,
    serverClock,
    clock,
    random,
    observe,
    pageSize: () => Math.min(MAX_PAGE_SIZE, store.account()?.plan.maxDevicesPerPage ?? MAX_PAGE_SIZE),
    version: VERSION,
  });
  const context: SyncContext = {
    api,
    store,
    clock,
    serverClock,
    random,
    observe,
    allowance: () => allowanceUse(pacer),
    settings,
  };
  const deliver = { store, clock, random, observe };
  deliverers.push(...options.destinations.map((to) => runBehind(workspaceKnown, createDeliverer(deliver, to))));
  const allowance = (): AllowanceStatus =>
    allowanceStatus(pacer, { share: options.api.share, nowMs: serverClock.nowMs() });
  const reported: ReportParts = { context, deliverers, allowance, streams, version: VERSION };
  return {
    context,
    puller: createPuller(context),
    deliverers,
    watch,
    report: () => reportNow(reported),
    ready: () => readyNow(reported),
    close,
  };
}

/**
 * Another workspace behind the key stops the program before anything is written (design 2.1), also what an earlier run
 * has left to be delivered: it may be on its way to the other workspace's database. An API that does not answer holds
 * nothing up.
 */
function runBehind(gate: Gate, deliverer: Deliverer): Deliverer {
  const run = async (signal: AbortSignal): Promise<void> => {
    await gate.pass(signal);
    await deliverer.run(signal);
  };
  return { ...deliverer, run };
}

interface Gate {
  /** Lets pass whoever waits, and from now on everybody. */
  open(): void;
  /** Rejects with the signal's reason when that aborts first. */
  pass(signal: AbortSignal): Promise<void>;
}

function createGate(): Gate {
  const opened = Promise.withResolvers<void>();
  return {
    open: opened.resolve,
    pass: async (signal) => {
      signal.throwIfAborted();
      const aborted = Promise.withResolvers<never>();
      const onAbort = (): void => aborted.reject(signal.reason);
      signal.addEventListener('abort', onAbort, { once: true });
      await Promise.race([opened.promise, aborted.promise]).finally(() => signal.removeEventListener('abort', onAbort));
    },
  };
}

function planFigures(store: Store): { perMinute: number | null; perDay: number | null } | null {
  const plan = store.account()?.plan;
  return plan === undefined ? null : { perMinute: plan.requestsPerMinute, perDay: plan.requestsPerDay };
}

/** Shorter waits are the even pace, and no waiting that anybody needs to know of. */
const WAIT_TOLD_MS = 3000;

function allowanceStatus(pacer: Pacer, { share, nowMs }: { share: number; nowMs: number }): AllowanceStatus {
  const { minute, day, waitingUntilMs } = pacer.figures();
  const told = waitingUntilMs !== null && waitingUntilMs - nowMs >= WAIT_TOLD_MS;
  return { share, minute, day, waiting_until: told ? formatExact(msToNs(waitingUntilMs)) : null };
}

function allowanceUse(pacer: Pacer): AllowanceUse {
  const { minute, day } = pacer.figures();
  const left = ({ limit, spent, others }: typeof minute): number | null =>
    limit === null ? null : Math.max(0, limit - spent - (others ?? 0));
  return { spentMinute: minute.spent, leftMinute: left(minute), spentDay: day.spent, leftDay: left(day) };
}

/** What the configuration says of a sync, the places of the API and of the state apart. */
export function settingsOf(
  config: Pick<DemoConfig, 'sync' | 'api' | 'influx' | 'workspaceId'>,
): Pick<SyncOptions, 'settings' | 'destinations'> {
  return {
    settings: { ...config.sync, concurrency: config.api.concurrency, workspaceTag: config.workspaceId },
    destinations: destinationsOf(config),
  };
}

function destinationsOf({ influx }: Pick<DemoConfig, 'influx'>): DestinationOptions[] {
  if (influx === null) return [];
  const { url, token, org, bucket, timeoutMs, ca, batchLines } = influx;
  const sink = createInfluxSink({ name: 'influx', url, token, org, bucket, timeoutMs, ca: ca ?? undefined });
  return [{ sink, identity: identityOf(influx), batchLines }];
}

/** What makes a destination itself: change any of it and the log is delivered to it from the beginning. */
function identityOf({ url, org, bucket }: InfluxConfig): string {
  return JSON.stringify(['influxdb', url, org, bucket]);
}

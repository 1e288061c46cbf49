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
import { createBudget } from './api/budget.ts';
import { createApiClient } from './api/client.ts';
import { createLearning } from './api/learning.ts';
import { createPacer } from './api/pacer.ts';
import { allowanceStatus, allowanceUse, planFigures } from './app-allowance.ts';
import type { DemoConfig } from './config.ts';
import { MIN_FREE_BYTES } from './core/archive-room.ts';
import type { DayFigures } from './core/day-spread.ts';
import { identityOf } from './core/dialect.ts';
import type { AppEvent } from './core/events.ts';
import { createFilter } from './core/filter.ts';
import type { JobQueue } from './core/jobs.ts';
import type { Learnt } from './core/learnt.ts';
import type { Api, Clock, Disk, Observe, Random, Transport } from './core/ports.ts';
import type { Secret } from './core/secret.ts';
import { createServerClock } from './core/server-clock.ts';
import type { AllowanceStatus, ReadyReport, StatusReport } from './core/status.ts';
import { DAY_MS, type EpochMs } from './core/time.ts';
import { createUnknownServer } from './influx/kind.ts';
import { createInfluxSink } from './influx/sink.ts';
import { createDisk } from './store/disk.ts';
import { API_WORKSPACE } from './store/facts.ts';
import { type OpenStore, openStore } from './store/store.ts';
import type { BackfillSettings } from './sync/backfill.ts';
import type { SyncContext, SyncSettings } from './sync/context.ts';
import { createDeliverer, type Deliverer, type DestinationOptions } from './sync/deliver.ts';
import { createFilterNotes } from './sync/filter-notes.ts';
import type { ArchiveLimits, HousekeepingParts } from './sync/housekeeping.ts';
import { createPlanning, type Planning } from './sync/planning.ts';
import { createProgressWatch, type ProgressWatch } from './sync/progress-watch.ts';
import { createPuller, type Puller } from './sync/pull.ts';
import { takingTurns } from './sync/pull-turns.ts';
import { readyNow } from './sync/ready.ts';
import { type ReportParts, reportNow } from './sync/report.ts';
import { createRoom } from './sync/room.ts';
import { createStreamNotes, oncePerStream } from './sync/stream-notes.ts';
import { createTrouble, type Trouble } from './sync/trouble.ts';
import { createTurns } from './sync/turns.ts';
import { createWorkspaceGate, deliverBehind } from './sync/workspace-gate.ts';
import { VERSION } from './version.ts';

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
  /** What is kept of the archive; all of it where this is left out. */
  readonly archive?: ArchiveLimits;
  /** The disk of the state; the real one where this is left out. */
  readonly disk?: Disk;
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
  readonly trouble: Trouble;
  readonly planning: Planning;
  /** Resolves when a request could go at once. */
  readonly untilTurn: (signal: AbortSignal) => Promise<void>;
  /** What `runHousekeeping` and `housekeepOnce` need. */
  readonly housekeeping: HousekeepingParts;
  /** What commands have asked of whoever holds the state. */
  readonly jobs: JobQueue;
  /** Asks through the same gate, each thing once, and no more often than is allowed. */
  askerOf(requests: number): { readonly api: Api; readonly spent: () => number };
  /** The id in the API of the workspace that the state belongs to; `null` where it belongs to none yet. */
  pinnedWorkspace(): string | null;
  /** What the API's answers have shown so far. */
  learnt(): Learnt;
  /** What a backfill's pace goes by. */
  readonly backfill: Pick<BackfillSettings, 'budgets'> & {
    /** Its requests of the last day, in server time, ascending. */
    sentMs(): EpochMs[];
  };
  /** Until when nothing may be asked for lack of allowance, RFC 3339; `null` while something may. */
  waitingUntil(): string | null;
  /** Lets somebody hear of every event from now on. */
  listen(listener: Observe): void;
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
  const { clock, archive } = options;
  const opened = openStore(options.dataDir, { maxBytes: archive?.maxBytes ?? null, nowMs: clock.nowMs });
  try {
    return assemble(options, opened);
  } catch (error) {
    opened.close();
    throw error;
  }
}

function assemble(options: SyncOptions, { store, ledger, keeper, jobs, facts, close }: OpenStore): Sync {
  const { clock, random } = options;
  const serverClock = createServerClock(clock);
  const watch = createProgressWatch(clock, serverClock.nowMs);
  const streams = createStreamNotes({ serverNowMs: serverClock.nowMs, monoMs: clock.monoMs });
  const deliverers: Deliverer[] = [];
  const workspaceKnown = createWorkspaceGate();
  let planReadings = 0;
  const tell = (event: AppEvent): void => {
    watch.observe(event);
    streams.observe(event);
    trouble.observe(event);
    if (event.type === 'workspace-known') planReadings += 1;
    if (UNGATING.has(event.type)) workspaceKnown.open();
    if (event.type === 'page-landed' || event.type === 'workspace-known') for (const { ring } of deliverers) ring();
    for (const hear of listeners) hear(event);
    options.observe(event);
  };
  const listeners: Observe[] = [];
  const observe = oncePerStream(streams, tell);
  const trouble = createTrouble({ clock, random, observe });
  const pacer = createPacer({
    ledger,
    plan: () => planFigures(store),
    planReadings: () => planReadings,
    share: options.api.share,
    concurrency: options.api.concurrency,
    clock,
    serverClock,
    random,
    observe,
    onBooked: (purpose) => planning.booked(purpose),
  });
  const learning = createLearning({
    transport: options.transport,
    kept: store.fact(LEARNT),
    keep: (text) => store.keepFact(LEARNT, text),
  });
  const asking = {
    transport: learning.transport,
    baseUrl: options.api.url,
    key: options.api.key,
    pacer,
    serverClock,
    clock,
    random,
    observe,
    pageSize: () => store.account()?.plan.maxDevicesPerPage ?? null,
    version: VERSION,
  };
  const api = createApiClient(asking);
  const filterNotes = createFilterNotes(options.settings.filter, { store, observe });
  const limits = options.archive ?? { keepMs: Number.POSITIVE_INFINITY, maxBytes: null };
  const disk = options.disk ?? createDisk(options.dataDir);
  const hasDestinations = options.destinations.length > 0;
  const roomLimits = { maxBytes: limits.maxBytes, minFreeBytes: MIN_FREE_BYTES, hasDestinations };
  const room = createRoom({ keeper, disk, clock, observe, limits: roomLimits });
  const context: SyncContext = {
    api,
    store,
    clock,
    serverClock,
    random,
    observe,
    answeredAtMs: trouble.answeredAtMs,
    allowance: () => allowanceUse(pacer),
    settings: { ...options.settings, filter: filterNotes.filter },
    filterNotes,
    alone: createTurns(),
    room: room.answer,
    stateFull: room.refused,
  };
  const { schedules, sweepMs } = options.settings;
  const day = (): DayFigures => {
    const { day: window, minute } = pacer.figures();
    return { ...window, minuteBudget: minute.budget };
  };
  const planning = createPlanning({ context, schedules, sweepMs, share: options.api.share, day });
  listeners.push(planning.observe);
  const deliver = { store, clock, random, observe };
  deliverers.push(...options.destinations.map((to) => deliverBehind(workspaceKnown, createDeliverer(deliver, to))));
  const allowance = (): Omit<AllowanceStatus, 'lanes'> =>
    allowanceStatus(pacer, { share: options.api.share, nowMs: serverClock.nowMs(), rest: planning.rest() });
  const reported: ReportParts = {
    context,
    deliverers,
    allowance,
    staleMs: planning.staleMs,
    streams,
    room,
    facts,
    isRunning: () => true,
    version: VERSION,
  };
  return {
    context,
    puller: takingTurns(createPuller(context)),
    deliverers,
    watch,
    trouble,
    planning,
    untilTurn: pacer.untilTurn,
    housekeeping: {
      store,
      keeper,
      room,
      destinations: () => deliverers,
      limits,
      clock,
      observe,
      mayBegin: workspaceKnown.pass,
    },
    jobs,
    askerOf: (requests) => {
      const budget = createBudget(pacer, requests);
      return { api: createApiClient({ ...asking, pacer: budget.pacer, retries: 0 }), spent: budget.spent };
    },
    pinnedWorkspace: () => store.fact(API_WORKSPACE),
    learnt: learning.learnt,
    backfill: {
      budgets: () => {
        const { minute, day: window } = pacer.figures();
        return { perMinute: minute.budget, perDay: window.budget };
      },
      sentMs: () => ledger.sentSince(serverClock.nowMs() - DAY_MS, 'backfill'),
    },
    waitingUntil: () => allowance().waiting_until,
    listen: (listener) => void listeners.push(listener),
    report: () => reportNow(reported),
    ready: () => readyNow(reported),
    close,
  };
}

/** The fact that holds what was learnt of the API. */
const LEARNT = 'learnt';

/** What shows that the workspace is the right one, or that the API is not there to tell. */
const UNGATING: ReadonlySet<AppEvent['type']> = new Set([
  'workspace-known',
  'pass-failed',
  'stream-failed',
  'key-refused',
]);

/** What the configuration says of a sync, the places of the API and of the state apart. @param readSecret reads a secret again. */
export function settingsOf(
  config: Pick<DemoConfig, 'sync' | 'api' | 'influx' | 'destinations' | 'proxies' | 'workspaceId' | 'archive'>,
  readSecret: (file: string) => Secret | null = () => null,
): Pick<SyncOptions, 'settings' | 'destinations' | 'archive'> {
  return {
    settings: {
      ...config.sync,
      filter: createFilter(config.sync.leftOut),
      concurrency: config.api.concurrency,
      workspaceTag: config.workspaceId,
    },
    destinations: destinationsOf(config, readSecret),
    archive: config.archive,
  };
}

/** The databases of the configuration, each by its name. */
function destinationsOf(
  { influx, destinations, proxies }: Pick<DemoConfig, 'influx' | 'destinations' | 'proxies'>,
  readSecret: (file: string) => Secret | null,
): DestinationOptions[] {
  const databases = [...(influx === null ? [] : [{ name: 'influx', ...influx }]), ...destinations];
  return databases.map(({ name, kind, url, token, tokenFile, org, bucket, timeoutMs, ca, batchLines }) => {
    const renewToken = tokenFile === null ? undefined : () => readSecret(tokenFile);
    const to = { name, url, token, renewToken, org, bucket, timeoutMs, ca: ca ?? undefined, proxies };
    const served = kind === 'auto' ? createUnknownServer(to) : kind;
    const sink = createInfluxSink(to, kind === 'auto' ? 'influxdb' : kind);
    return { sink, identity: identityOf({ kind, url, org, bucket }), batchLines, kind: served };
  });
}

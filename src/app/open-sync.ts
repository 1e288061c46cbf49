/**
 * The composition root: creates the parts of a sync and connects them. It makes no decisions; the commands
 * (`commands/`) run the parts.
 *
 * The path of a page, step by step:
 *
 * ```
 * decide   scheduler/planner ─► scheduler/dispatch ─► ingest/page-scan ─► ingest/gap-scan
 *                                                                             ▼
 * fetch    ingest/page-request ─► ingest/fetch-page ─► api/client (rate-limiter, quota, store: ledger) ─► the API
 *                                                                             ▼
 * check    api/parse ─► ingest/judge-page ─► covers a range? no: ingest/rejected-answers ─► gap-scan requests again
 *                                                                             ▼ yes
 * archive  ingest/commit (composed by ingest/commit-rules) ─► store: archive and coverage in one transaction
 *                                                                             ▼ hooks: `noteArchived`
 * deliver  delivery/deliver ─► delivery/send-batch ─► delivery/resolve ─► influx/sink ─► influx/answers
 *                                                                             ▼
 * judge    `judge` of delivery/destination: rejected? delivery/resolve sends smaller parts
 *                                                                             ▼ resolved
 *          store: the position of the destination, its quarantine and its missing points
 * ```
 *
 * These loops run the parts: `scheduler/session` (account, devices, then `dispatch`) one after the other (the daemon,
 * `app/service`) or alone (`--once`, `--backfill`), `run` of each delivery, `archive/maintenance` and `report/fleet`.
 * One part informs another by a call (`hooks.ts`, and the functions of `SyncContext`). Events are for observers only:
 * the log, the metrics and the status page.
 */

import type { ArchiveLimits, MaintenanceParts } from '../archive/maintenance.ts';
import { createSpaceWatch, type SpaceWatch } from '../archive/room.ts';
import { MIN_FREE_BYTES, runUnlessFull } from '../core/archive-room.ts';
import { createTurns } from '../core/async.ts';
import type { Observe } from '../core/events.ts';
import { createHeartbeats, type Heartbeats, type Pulse } from '../core/heartbeats.ts';
import type { PageFacts, RecentEvent } from '../core/page-facts.ts';
import type { Clock, Disk, Random, Transport } from '../core/ports.ts';
import { createServerClock } from '../core/server-clock.ts';
import type { JobQueue } from '../core/state/jobs.ts';
import { createFactNote } from '../core/state/state.ts';
import { type QuotaStatus, type ReadyReport, type StatusOverview, type StatusReport, VERSION } from '../core/status.ts';
import type { Deliverer } from '../delivery/deliver.ts';
import type { DestinationOptions } from '../delivery/destination.ts';
import { createPlanCheck } from '../ingest/account.ts';
import type { SyncContext, SyncSettings } from '../ingest/context.ts';
import { createFilterNotes } from '../ingest/filter.ts';
import { createOutageWatch } from '../ingest/outage.ts';
import { openPageScanner, withTurns } from '../ingest/page-scan.ts';
import { createFallWatch, storedTimes } from '../ingest/server-time.ts';
import type { DeviceReportParts } from '../report/device-report.ts';
import { createFigures, type FigureSource } from '../report/figures.ts';
import { createFleetScanner, type FleetScanner } from '../report/fleet.ts';
import { createHistoryEta } from '../report/history-eta.ts';
import { createPageFacts } from '../report/page-facts.ts';
import { readyNow } from '../report/ready.ts';
import { overviewNow, reportNow } from '../report/report.ts';
import {
  API_PROBLEM,
  createApiState,
  createStreamReport,
  noteAnswered,
  noteOff,
  problemFact,
} from '../scheduler/api-state.ts';
import type { DayFigures } from '../scheduler/day-budget.ts';
import type { DispatchParts } from '../scheduler/dispatch.ts';
import { createPlanning, noteWithdrawn, type Planning } from '../scheduler/planning.ts';
import { API_WORKSPACE } from '../store/facts.ts';
import { type OpenStore, openStore } from '../store/store.ts';
import { createDisk } from '../store/views/data-dir.ts';
import {
  type ApiAccess,
  type ApiConnection,
  type BackfillQuota,
  backfillQuota,
  connectApi,
  quotaNow,
  quotaStatus,
  quotaUse,
  watchRequests,
} from './api-access.ts';
import { createWorkspaceConfirmation, openDeliveries } from './deliveries.ts';
import { createHooks, type DeferredParts, type Hooks } from './hooks.ts';
import { storableClock } from './real-clock.ts';

/** The input of {@link openSync}: the ports, the settings and the databases. */
export interface SyncOptions {
  /** Sends requests: over HTTP, or in-process in simulations. */
  readonly transport: Transport;
  readonly api: ApiAccess;
  readonly settings: SyncSettings;
  readonly destinations: readonly DestinationOptions[];
  readonly dataDir: string;
  /** The limits of the archive; without them everything is kept. */
  readonly archive?: ArchiveLimits;
  /** The disk of the state; by default the real one. */
  readonly disk?: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: Observe;
}

/** An open sync: its parts, and the reports about it. */
export interface Sync
  extends FigureSource,
    Pick<ApiConnection, 'limitedApi' | 'learnt' | 'waits'>,
    Omit<DispatchParts, 'rereading' | 'readStream'> {
  readonly deliverers: readonly Deliverer[];
  /** The databases of `deliverers`, in the same order. */
  readonly destinations: readonly DestinationOptions[];
  /** The parts of `runMaintenance` and `maintainOnce`. */
  readonly maintenance: MaintenanceParts;
  /** Work that commands leave for the process that holds the state. */
  readonly jobs: JobQueue;
  /** The API's id of the workspace that the state belongs to; `null` while it belongs to none. */
  knownWorkspace(): string | null;
  /** The quota facts for the estimate and the rate of a backfill. */
  readonly backfill: BackfillQuota;
  /** Whether requests wait for the quota. Waiting only for even spacing does not count. */
  waitsForQuota(): boolean;
  /** Whether requests are rejected for the quota repeatedly, although every wait was observed. */
  isRejectedRepeatedly(): boolean;
  /** Until when history and backfill wait for quota, RFC 3339; `null` while they may send. */
  quotaWaits(): Pick<QuotaStatus, 'waiting_until' | 'history_waiting_until'>;
  readonly heartbeats: Heartbeats;
  /** The scan of all devices that metrics and readiness use. */
  readonly fleet: FleetScanner;
  /** How many attempts have ended, failed ones included. */
  requestsDone(): number;
  /** Subscribes to all future events, to show them. A part that has to act is called instead. */
  listen(listener: Observe): void;
  /** Registers a function that is called with each removed device, so that it removes other data about the device. */
  onForgotten(forget: (deviceId: string) => void): void;
  /** Calls the functions of `onForgotten`. */
  forgotten(deviceId: string): void;
  report(): StatusReport;
  /** The report without its devices, from the last scan of all devices. It costs almost nothing. */
  overview(): StatusOverview;
  /**
   * The data of the status page in addition to the report.
   *
   * @param recentEvents returns the newest events first
   */
  pageFacts(recentEvents: () => readonly RecentEvent[]): PageFacts;
  ready(): ReadyReport;
  close(): void;
}

/**
 * Opens the state and creates the parts of a sync.
 *
 * @throws UserError if the state cannot be used
 */
export function openSync(given: SyncOptions): Sync {
  const options = { ...given, clock: storableClock(given.clock) };
  const { clock, archive } = options;
  const opened = openStore(options.dataDir, { maxBytes: archive?.maxBytes ?? null, nowMs: clock.nowMs });
  try {
    if (opened.upgrade !== null) options.observe({ type: 'state-upgraded', ...opened.upgrade });
    return assembleSync(options, opened);
  } catch (error) {
    opened.close();
    throw error;
  }
}

function assembleSync(options: SyncOptions, opened: OpenStore): Sync {
  const { store, ledger, jobs } = opened;
  const base = createBase(options, store);
  const { serverClock, heartbeats, outage } = base;
  const pulse = heartbeats.openPulse('requests');
  const deliverers: Deliverer[] = [];
  const later: DeferredParts = { planned: null, deliverers };
  const hooks = createHooks(later);
  const connection = openApi(options, opened, { ...base, pulse, hooks });
  const space = openSpaceWatch(options, opened, base.observe);
  const context = createContext(options, { ...base, store, space, connection, hooks });
  const { limiter, limitedApi, learnt, waits, requestsDone } = connection;
  const planning: Planning = openPlanning(options, context, limiter);
  later.planned = {
    planning,
    checkPlan: createPlanCheck(context),
    checkForFall: createFallWatch(context, () => noteWithdrawn(planning)),
  };
  deliverers.push(...openDeliveries(options.destinations, { ...options, ...base, store }));
  const parts = { base, opened, space, context, deliverers, planning, limiter };
  const reports = createReports(options, parts);
  return {
    context,
    scanner: withTurns(openPageScanner(context)),
    deliverers,
    destinations: options.destinations,
    outage,
    planning,
    apiState: base.apiState,
    waitUntilTurn: limiter.waitUntilTurn,
    onRest: () => void runUnlessFull(ledger.writeRest, context.noteStateFull),
    heartbeats,
    pulse,
    ...reports,
    maintenance: maintenanceParts(options, parts),
    jobs,
    limitedApi,
    knownWorkspace: () => store.fact(API_WORKSPACE),
    learnt,
    waits,
    requestsDone,
    backfill: backfillQuota(limiter, ledger, serverClock),
    waitsForQuota: () => !['rate', null].includes(limiter.figures().waitingFor),
    isRejectedRepeatedly: () => limiter.figures().isRejectedRepeatedly,
    listen: (listener) => void base.listeners.push(listener),
    onForgotten: (forget) => void base.forgetters.push(forget),
    forgotten: (deviceId) => {
      for (const forget of base.forgetters) forget(deviceId);
    },
    close: opened.close,
  };
}

/** The parts that all others need: time, events, heartbeats. */
export function createBase(
  { clock, random, observe: report, settings }: Pick<SyncOptions, 'clock' | 'random' | 'observe' | 'settings'>,
  store: OpenStore['store'],
) {
  const others = { toleranceMs: settings.gracePeriodMs, storedMs: () => storedTimes(store) };
  const serverClock = createServerClock(clock, others);
  const listeners: Observe[] = [];
  const forgetters: ((deviceId: string) => void)[] = [];
  const observe: Observe = (event) => {
    for (const listen of listeners) listen(event);
    report(event);
  };
  const noteProblem = createFactNote(store, () => API_PROBLEM);
  const problemChanged = (): void => noteProblem(problemFact(apiState, outage));
  const outage = createOutageWatch({ clock, random, observe, problemChanged });
  const apiState = createApiState({ observe, serverNowMs: serverClock.nowMs, monoMs: clock.monoMs, problemChanged });
  return {
    serverClock,
    apiState,
    listeners,
    forgetters,
    observe,
    outage,
    confirmation: createWorkspaceConfirmation(),
    heartbeats: createHeartbeats(clock),
  };
}

type Base = ReturnType<typeof createBase>;

/** The connection to the API. Each request and answer is reported to the parts that count on it. */
export function openApi(
  { transport, api, clock, random }: Pick<SyncOptions, 'transport' | 'api' | 'clock' | 'random'>,
  { store, ledger }: Pick<OpenStore, 'store' | 'ledger'>,
  parts: Base & { readonly pulse: Pulse; readonly hooks: Hooks },
): ApiConnection & Pick<Sync, 'requestsDone'> {
  const { serverClock, observe, outage, apiState, confirmation, heartbeats, pulse, hooks } = parts;
  const requests = watchRequests(heartbeats, pulse, api.timeoutMs);
  let done = 0;
  const connection = connectApi({
    transport,
    access: api,
    store,
    ledger,
    clock,
    serverClock,
    random,
    observe,
    planReadings: confirmation.timesConfirmed,
    onCheck: requests.onCheck,
    onBooked: (purpose) => {
      requests.onBooked();
      hooks.noteBooked(purpose);
    },
    onLimitMismatch: hooks.noteLimitMismatch,
    onRejected: hooks.noteRejected,
    onRetry: (waitMs, fault) => {
      requests.onRetry(waitMs);
      outage.noteRetried(fault, waitMs);
    },
    onDone: (fault, purpose) => {
      done += 1;
      outage.noteAnswered(fault);
      if (fault === null) noteAnswered(apiState, purpose.stream);
      requests.onDone();
      hooks.noteDone(fault, purpose);
    },
  });
  return { ...connection, requestsDone: () => done };
}

/** The room of the archive, by the limits of the configuration. */
export function openSpaceWatch(
  options: Pick<SyncOptions, 'dataDir' | 'destinations' | 'disk' | 'clock' | 'archive'>,
  { maintenance }: Pick<OpenStore, 'maintenance'>,
  observe: Observe,
): SpaceWatch {
  const { dataDir, destinations, disk = createDisk(dataDir), clock } = options;
  const { maxBytes } = limitsOf(options);
  const limits = { maxBytes, minFreeBytes: MIN_FREE_BYTES, hasDestinations: destinations.length > 0 };
  return createSpaceWatch({ maintenance, disk, clock, observe, limits });
}

function limitsOf({ archive }: Pick<SyncOptions, 'archive'>): ArchiveLimits {
  return archive ?? { retentionMs: Number.POSITIVE_INFINITY, maxBytes: null };
}

interface ContextParts extends Base {
  readonly store: OpenStore['store'];
  readonly space: SpaceWatch;
  readonly connection: ApiConnection;
  readonly hooks: Hooks;
}

/** The parts that ingest and the scheduler use. */
export function createContext(
  { settings, clock, random }: Pick<SyncOptions, 'settings' | 'clock' | 'random'>,
  parts: ContextParts,
): SyncContext {
  const { store, serverClock, observe, outage, apiState, confirmation, space, connection, hooks } = parts;
  const filterNotes = createFilterNotes(settings.filter, { store, observe });
  return {
    api: connection.api,
    store,
    clock,
    serverClock,
    random,
    observe,
    answeredAtMs: outage.answeredAtMs,
    quota: () => quotaUse(connection.limiter),
    settings: { ...settings, filter: filterNotes.filter },
    filterNotes,
    takeTurn: createTurns(),
    space: space.answer,
    checkSpace: space.check,
    noteStateFull: space.noteRefused,
    noteCommitted: hooks.noteCommitted,
    noteArchived: hooks.noteArchived,
    noteWorkspaceKnown: () => {
      confirmation.confirm();
      observe({ type: 'workspace-known' });
    },
    noteWorkspaceUnknown: confirmation.skip,
    noteStreamOff: (stream, scope) => noteOff(apiState, stream, scope),
    noteDeviceLeft: hooks.noteDeviceLeft,
    notePlanChanged: hooks.notePlanChanged,
    nextReadingMs: hooks.nextReadingMs,
  };
}

/** The planning, with the figures of the rate limiter. */
export function openPlanning(
  { api }: Pick<SyncOptions, 'api'>,
  context: SyncContext,
  limiter: ApiConnection['limiter'],
): Planning {
  const day = (): DayFigures => {
    const { day: window, minute } = limiter.figures();
    return { ...window, minuteBudget: minute.budget };
  };
  return createPlanning({ context, share: api.share, day });
}

interface Parts {
  readonly base: Base;
  readonly opened: OpenStore;
  readonly space: SpaceWatch;
  readonly context: SyncContext;
  readonly deliverers: readonly Deliverer[];
  readonly planning: Planning;
  readonly limiter: ApiConnection['limiter'];
}

/** The parts of the archive's maintenance, which begins when the workspace is confirmed. */
export function maintenanceParts(
  options: Pick<SyncOptions, 'clock' | 'archive'>,
  { base, opened, space, deliverers }: Pick<Parts, 'base' | 'opened' | 'space' | 'deliverers'>,
): MaintenanceParts {
  const { store, maintenance } = opened;
  const { observe, confirmation } = base;
  const parts = { store, maintenance, space, clock: options.clock, observe, limits: limitsOf(options) };
  return { ...parts, destinations: () => deliverers, mayBegin: confirmation.wait };
}

type Reports = FigureSource & Pick<Sync, 'fleet' | 'quotaWaits' | 'report' | 'overview' | 'pageFacts' | 'ready'>;

/** Creates the reports, which read the parts and send no request. */
export function createReports(
  { api, settings, clock }: Pick<SyncOptions, 'api' | 'settings' | 'clock'>,
  parts: Parts,
): Reports {
  const { base, opened, space, context, deliverers, planning, limiter } = parts;
  const { store, jobs, facts, ledger } = opened;
  const { apiState, outage, serverClock, heartbeats } = base;
  const streams = createStreamReport(apiState, outage);
  const { staleMs } = planning.demand;
  const fleet = createFleetScanner({ context, staleMs, pulse: heartbeats.openPulse('figures') });
  const quota = () => quotaNow(limiter, { nowMs: serverClock.nowMs(), rest: planning.rest });
  const status = () => quotaStatus(quota(), api.share);
  const historyEta = createHistoryEta({ context, facts, ledger, quota: status });
  const reported: DeviceReportParts = {
    context,
    deliverers,
    quota: status,
    staleMs,
    historyEta,
    streams,
    space,
    facts,
    isRunning: () => true,
    version: VERSION,
    polls: settings.polls,
  };
  return {
    fleet,
    ...createFigures({ context, deliverers, quota, planning, streams, space, fleet, jobs, facts, historyEta }),
    quotaWaits: () => {
      const { waiting_until, history_waiting_until } = status();
      return { waiting_until, history_waiting_until };
    },
    report: () => reportNow(reported),
    overview: () => overviewNow(reported, fleet.latest()?.sums ?? null),
    pageFacts: (recentEvents) => createPageFacts({ ...reported, fleet, clock, recentEvents }),
    ready: () =>
      readyNow({ deliverers, streams, space, store, serverClock, fleet: () => fleet.latest()?.figures ?? null }),
  };
}

/**
 * The composition root: puts the parts together. Nothing is decided here.
 *
 * ```
 * API ──► api/client ──page──► sync/pull ──one transaction──► store: archive + coverage ──► sync/deliver ──► influx ──► InfluxDB
 *             ▲  api/rate-limiter  ▲                                     │                          │
 *             └── store/ledger     └──── core/walk: what next? ◄── holes in coverage ──┘   accepted · refused · kept
 * ```
 *
 * `openSync` gives the parts that sync; a mode (`commands/`) moves them. What it opens it closes in reverse order.
 */

import type { ArchiveLimits, MaintenanceParts } from '../archive/maintenance.ts';
import { createRoom } from '../archive/room.ts';
import { MIN_FREE_BYTES } from '../core/archive-room.ts';
import { createTurns } from '../core/async.ts';
import type { AppEvent, Observe } from '../core/events.ts';
import { createHeartbeats, type Heartbeats, type Pulse } from '../core/heartbeats.ts';
import type { PageFacts, RecentEvent } from '../core/page-facts.ts';
import type { Clock, Disk, Random, Transport } from '../core/ports.ts';
import { createServerClock } from '../core/server-clock.ts';
import type { JobQueue } from '../core/state/jobs.ts';
import type { ReadyReport, StatusOverview, StatusReport } from '../core/status.ts';
import { DAY_MS, type EpochMs } from '../core/time.ts';
import { createDeliverer, type Deliverer } from '../delivery/deliver.ts';
import type { DestinationOptions } from '../delivery/destination.ts';
import type { SyncContext, SyncSettings } from '../ingest/context.ts';
import { createFilterNotes } from '../ingest/filter.ts';
import { createOutageWatch, type OutageWatch } from '../ingest/outage.ts';
import { createPageScanner, type PageScanner } from '../ingest/page-scan.ts';
import { takingTurns } from '../ingest/take-turns.ts';
import type { DeviceReportParts } from '../report/device-report.ts';
import { createFigures, type FigureSource } from '../report/figures.ts';
import { createFleetScanner, type FleetScanner } from '../report/fleet.ts';
import { createPageFacts } from '../report/page-facts.ts';
import { readyNow } from '../report/ready.ts';
import { overviewNow, reportNow } from '../report/report.ts';
import { createStreamTracker, oncePerStream } from '../report/stream-status.ts';
import type { BackfillSettings } from '../scheduler/backfill.ts';
import type { DayFigures } from '../scheduler/day-budget.ts';
import type { PollSettings } from '../scheduler/device-outlook.ts';
import { createPlanning, noteBooked, noteForPlanning, type Planning } from '../scheduler/planning.ts';
import { createStanding, type Standing } from '../scheduler/standing.ts';
import { API_WORKSPACE } from '../store/facts.ts';
import { createDisk } from '../store/look/place.ts';
import { type OpenStore, openStore } from '../store/store.ts';
import { allowanceNow, allowanceStatus, allowanceUse } from './allowance.ts';
import { type ApiAccess, type Asking, createAsking } from './api-access.ts';
import { VERSION } from './version.ts';
import { watchedDelivery, watchRequests } from './watch.ts';
import { createWorkspaceGate, deliverBehind } from './workspace-gate.ts';

export interface SyncOptions {
  /** How requests travel: over HTTP, or in-process in simulations. */
  readonly transport: Transport;
  readonly api: ApiAccess;
  readonly settings: SyncSettings & { readonly polls: PollSettings };
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
export interface Sync extends FigureSource, Pick<Asking, 'askerOf' | 'learnt'> {
  readonly context: SyncContext;
  readonly scanner: PageScanner;
  readonly deliverers: readonly Deliverer[];
  /** The databases that these deliver to, in the same order. */
  readonly destinations: readonly DestinationOptions[];
  readonly outage: OutageWatch;
  readonly planning: Planning;
  readonly standing: Standing;
  /** Resolves when a request could go at once. */
  readonly untilTurn: (signal: AbortSignal) => Promise<void>;
  /** What `runMaintenance` and `maintainOnce` need. */
  readonly housekeeping: MaintenanceParts;
  /** What commands have asked of whoever holds the state. */
  readonly jobs: JobQueue;
  /** The id in the API of the workspace that the state belongs to; `null` where it belongs to none yet. */
  pinnedWorkspace(): string | null;
  /** What a backfill's pace goes by. */
  readonly backfill: Pick<BackfillSettings, 'budgets'> & {
    /** Its requests of the last day, in server time, ascending. */
    sentMs(): EpochMs[];
  };
  /** Whether no request may be made now for lack of quota; the even pace of requests alone is no such wait. */
  waitsForQuota(): boolean;
  /** Until when nothing may be asked for lack of allowance, RFC 3339; `null` while something may. */
  waitingUntil(): string | null;
  /** Of all loops, and of the one that makes the requests. */
  readonly heartbeats: Heartbeats;
  readonly pulse: Pulse;
  /** The look at every device that metrics and readiness go by. */
  readonly fleet: FleetScanner;
  /** Lets somebody hear of every event from now on. */
  listen(listener: Observe): void;
  report(): StatusReport;
  /** The report without its devices, by the last look at all of them: it costs nothing. */
  overview(): StatusOverview;
  /** What the status page shows beside the report. @param recentEvents the newest first. */
  pageFacts(recentEvents: () => readonly RecentEvent[]): PageFacts;
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

function assemble(options: SyncOptions, { store, ledger, maintenance, jobs, facts, close }: OpenStore): Sync {
  const { clock, random } = options;
  const serverClock = createServerClock(clock);
  const streams = createStreamTracker({ serverNowMs: serverClock.nowMs, monoMs: clock.monoMs });
  const deliverers: Deliverer[] = [];
  const workspaceKnown = createWorkspaceGate();
  const heartbeats = createHeartbeats(clock);
  const pulse = heartbeats.pulse('requests');
  const requests = watchRequests(heartbeats, pulse, options.api.timeoutMs);
  let planReadings = 0;
  const tell = (event: AppEvent): void => {
    streams.observe(event);
    outage.observe(event);
    if (event.type === 'workspace-known') planReadings += 1;
    if (UNGATING.has(event.type)) workspaceKnown.open();
    if (event.type === 'page-landed' || event.type === 'workspace-known') for (const { notify } of deliverers) notify();
    for (const hear of listeners) hear(event);
    options.observe(event);
  };
  const listeners: Observe[] = [requests.observe];
  const observe = oncePerStream(streams, tell);
  const outage = createOutageWatch({ clock, random, observe });
  const { api, limiter, learnt, askerOf } = createAsking({
    transport: options.transport,
    access: options.api,
    store,
    ledger,
    clock,
    serverClock,
    random,
    observe,
    planReadings: () => planReadings,
    onLook: requests.onLook,
    onBooked: (purpose) => {
      requests.onBooked();
      noteBooked(planning, purpose);
    },
  });
  const filterNotes = createFilterNotes(options.settings.filter, { store, observe });
  const limits = options.archive ?? { keepMs: Number.POSITIVE_INFINITY, maxBytes: null };
  const disk = options.disk ?? createDisk(options.dataDir);
  const hasDestinations = options.destinations.length > 0;
  const roomLimits = { maxBytes: limits.maxBytes, minFreeBytes: MIN_FREE_BYTES, hasDestinations };
  const room = createRoom({ maintenance, disk, clock, observe, limits: roomLimits });
  const context: SyncContext = {
    api,
    store,
    clock,
    serverClock,
    random,
    observe,
    answeredAtMs: outage.answeredAtMs,
    allowance: () => allowanceUse(limiter),
    settings: { ...options.settings, filter: filterNotes.filter },
    filterNotes,
    alone: createTurns(),
    room: room.answer,
    stateFull: room.refused,
  };
  const { schedules, polls } = options.settings;
  const day = (): DayFigures => {
    const { day: window, minute } = limiter.figures();
    return { ...window, minuteBudget: minute.budget };
  };
  const planning = createPlanning({ context, schedules, polls, share: options.api.share, day });
  listeners.push((event) => noteForPlanning(planning, event));
  for (const each of options.destinations) {
    const { to, clock: beating } = watchedDelivery(heartbeats, clock, each);
    const deliverer = createDeliverer({ store, clock: beating, random, observe }, to);
    deliverers.push(deliverBehind(workspaceKnown, deliverer));
  }
  const fleet = createFleetScanner({ context, staleMs: planning.demand.staleMs, pulse: heartbeats.pulse('figures') });
  const allowance = () => allowanceNow(limiter, { nowMs: serverClock.nowMs(), rest: planning.rest });
  const source = createFigures({ context, deliverers, allowance, planning, streams, room, fleet, jobs, facts });
  const reported: DeviceReportParts = {
    context,
    deliverers,
    allowance: () => allowanceStatus(allowance(), options.api.share),
    staleMs: planning.demand.staleMs,
    streams,
    room,
    facts,
    isRunning: () => true,
    version: VERSION,
    polls,
  };
  return {
    context,
    scanner: takingTurns(createPageScanner(context)),
    deliverers,
    destinations: options.destinations,
    outage,
    planning,
    standing: createStanding(),
    untilTurn: limiter.untilTurn,
    heartbeats,
    pulse,
    fleet,
    ...source,
    housekeeping: {
      store,
      maintenance,
      room,
      destinations: () => deliverers,
      limits,
      clock,
      observe,
      mayBegin: workspaceKnown.pass,
    },
    jobs,
    askerOf,
    pinnedWorkspace: () => store.fact(API_WORKSPACE),
    learnt,
    backfill: {
      budgets: () => {
        const { minute, day: window } = limiter.figures();
        return { perMinute: minute.budget, perDay: window.budget };
      },
      sentMs: () => ledger.sentSince(serverClock.nowMs() - DAY_MS, 'backfill'),
    },
    waitsForQuota: () => !['pace', null].includes(limiter.figures().waitingFor),
    waitingUntil: () => allowanceStatus(allowance(), options.api.share).waiting_until,
    listen: (listener) => void listeners.push(listener),
    report: () => reportNow(reported),
    overview: () => overviewNow(reported, fleet.scan()?.sums ?? null),
    pageFacts: (recentEvents) => createPageFacts({ ...reported, fleet, clock, recentEvents }),
    ready: () => readyNow({ deliverers, streams, room, store, fleet: () => fleet.scan()?.figures ?? null }),
    close,
  };
}

/** What shows that the workspace is the right one, or that the API is not there to tell. */
const UNGATING: ReadonlySet<AppEvent['type']> = new Set(['workspace-known', 'stream-failed', 'key-refused']);

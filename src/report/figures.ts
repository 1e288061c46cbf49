/**
 * The figures behind the metrics, computed on each request (`core/figures.ts`).
 *
 * They are cheap for any size of the fleet and of the archive: figures about all devices come from the last fleet scan,
 * and the store keeps running sums of its log.
 */

import type { SpaceWatch } from '../archive/room.ts';
import type { DestinationFigures, Figures, JobFigures } from '../core/figures.ts';
import { isRecord } from '../core/json.ts';
import type { Clock } from '../core/ports.ts';
import { type Job, type JobQueue, readProgress } from '../core/state/jobs.ts';
import type { StateFacts, Store } from '../core/state/state.ts';
import { POLLING_TEXTS, type ProgressReport, unreadPolling } from '../core/status.ts';
import { progressEta } from '../core/text.ts';
import { type EpochMs, SECOND_MS, timeText } from '../core/time.ts';
import type { Deliverer } from '../delivery/deliver.ts';
import type { SyncContext } from '../ingest/context.ts';
import { openSeconds } from '../ingest/wanted-range.ts';
import type { StreamReport } from '../scheduler/api-state.ts';
import { figuresOf } from '../scheduler/planner.ts';
import type { Planning } from '../scheduler/planning.ts';
import type { FleetScanner } from './fleet.ts';
import type { HistoryEta } from './history-eta.ts';

interface FiguresParts {
  readonly context: Pick<SyncContext, 'store' | 'clock' | 'serverClock' | 'settings'>;
  readonly deliverers: readonly Pick<Deliverer, 'name' | 'destinationId' | 'blockedReason' | 'deliveredLines'>[];
  /** The current quota; the wait is in the server's time. */
  readonly quota: () => Figures['quota'];
  readonly planning: Pick<Planning, 'planner' | 'demand'>;
  readonly streams: Pick<StreamReport, 'list' | 'isKeyRejected'>;
  readonly space: Pick<SpaceWatch, 'status'>;
  readonly fleet: Pick<FleetScanner, 'latest' | 'ageMs'>;
  readonly jobs: Pick<JobQueue, 'open'>;
  readonly facts: Pick<StateFacts, 'oldestPendingMs'>;
  /** How long until all gaps are closed; `null` if unknown: the ETA of the page. */
  readonly historyEta: () => HistoryEta | null;
}

/**
 * Measures the figures that are shown while a sync runs. Each call scans the devices again if that is quick and due.
 */
export interface FigureSource {
  /** The figures behind the metrics. */
  measureFigures(): Figures;
  /** The figures for the progress line of the daemon. */
  measureProgress(): ProgressReport;
  /** Records the progress that a running job reports. */
  noteJob(id: number, progress: unknown): void;
}

/** Creates the source of the metrics and of the progress line; both read the last scan of the devices. */
export function createFigures(parts: FiguresParts): FigureSource {
  const { context, deliverers, planning, fleet, jobs } = parts;
  const { store, clock } = context;
  const destinations = (): DestinationFigures[] => deliverers.map((deliverer) => destinationFigures(parts, deliverer));
  const counts = countsFromNow(store);
  const speeds = createJobSpeeds(clock, () => jobs.open().map(({ id }) => id));
  const measureFigures = (): Figures => {
    const { droppedHints, openHistoryMs } = figuresOf(planning.planner);
    const { lines, bytes } = store.totals();
    const { usedBytes, maxBytes, diskFreeBytes, full } = parts.space.status();
    const id = store.workspaceTag();
    return {
      workspace: id === null ? null : { id, name: store.account()?.name ?? '' },
      quota: localQuota(parts),
      streams: parts.streams.list(),
      fleet: fleet.latest()?.figures ?? null,
      fleetAgeSeconds: fleet.ageMs() / SECOND_MS,
      lagTargetSeconds: openSeconds({ context, staleMs: planning.demand.staleMs }),
      hintsWrong: droppedHints,
      historyOpenSeconds: Object.values(openHistoryMs).reduce((sum, ms) => sum + ms, 0) / SECOND_MS,
      jobs: speeds.figures(jobs.open()),
      destinations: destinations(),
      archive: { points: lines, bytes, stateBytes: usedBytes, maxBytes, diskFreeBytes, isFull: full !== null },
    };
  };
  const measureProgress = (): ProgressReport => {
    const seen = fleet.latest()?.figures;
    const { waitingUntilMs, historyWaitsUntilMs } = parts.quota();
    // It checks every device, and no reading is missing in a daemon that is in sync.
    const isFirstRead = (seen?.polled ?? 0) === 0 && store.account() === null;
    const polling = unreadPolling(parts.streams.list(), parts.streams.isKeyRejected());
    const unread = polling === null ? null : POLLING_TEXTS[polling].progress;
    const eta = seen?.coveredShare === 1 || unread !== null ? null : parts.historyEta();
    return {
      totals: {
        devices: seen?.polled ?? 0,
        devices_complete: seen?.complete ?? 0,
        ...counts(),
        covered_share: seen?.coveredShare ?? null,
      },
      destinations: destinations().map(({ pendingPoints }, index) => ({
        pending_points: pendingPoints,
        delivered_points: deliverers[index]?.deliveredLines() ?? 0,
      })),
      allowance: { waiting_until: timeText(waitingUntilMs), history_waiting_until: timeText(historyWaitsUntilMs) },
      ...(isFirstRead ? { waits: 'reading the account' } : {}),
      eta: progressEta(eta?.seconds ?? null, eta?.assumesFullHistory === true),
      unread,
      backfill: backfillProgress(jobs.open(), unread),
    };
  };
  return { measureFigures, measureProgress, noteJob: speeds.note };
}

/** Returns a function that counts the readings archived and the requests sent from now on. */
export function countsFromNow({
  totals,
}: Pick<Store, 'totals'>): () => Pick<ProgressReport['totals'], 'archived_readings' | 'requests'> {
  const before = totals();
  return () => {
    const { readings, requests } = totals();
    return { archived_readings: readings - before.readings, requests: requests - before.requests };
  };
}

/** The wait by the clock of this machine. */
function localQuota({ quota, context: { clock, serverClock } }: FiguresParts): Figures['quota'] {
  const { minute, day, waitingUntilMs, historyWaitsUntilMs } = quota();
  const localMs = (untilMs: EpochMs | null): EpochMs | null => {
    const waitMs = untilMs === null ? 0 : untilMs - serverClock.nowMs();
    return waitMs <= 0 ? null : clock.nowMs() + waitMs;
  };
  return { minute, day, waitingUntilMs: localMs(waitingUntilMs), historyWaitsUntilMs: localMs(historyWaitsUntilMs) };
}

function destinationFigures(
  { context: { store, clock }, facts }: FiguresParts,
  { name, destinationId, blockedReason }: FiguresParts['deliverers'][number],
): DestinationFigures {
  const { pendingLines, quarantined } = store.backlog(destinationId);
  const since = facts.oldestPendingMs(destinationId);
  return {
    name,
    blockedReason: blockedReason(),
    pendingPoints: pendingLines,
    pendingSeconds: since === null ? 0 : Math.max(0, clock.nowMs() - since) / SECOND_MS,
    quarantined,
    missing: store.missingSums(destinationId).map(({ reason, points }) => ({ reason, points })),
  };
}

/** How long a job is watched before its speed counts. */
const MIN_OBSERVED_MS = 30 * SECOND_MS;

/** The speed of the running jobs that do not report their own remaining time. */
interface JobSpeeds {
  /** Records the progress that a running job reports. */
  note(id: number, progress: unknown): void;
  /** The figures of those of these jobs that are running. */
  figures(jobs: readonly Job[]): JobFigures[];
}

/**
 * Creates the record of the speeds.
 *
 * @param openIds the ids of all open jobs: records of other jobs are dropped.
 */
export function createJobSpeeds({ monoMs }: Pick<Clock, 'monoMs'>, openIds: () => readonly number[]): JobSpeeds {
  /** The first share that each job has reported. */
  let first: ReadonlyMap<number, { readonly share: number; readonly atMs: number }> = new Map();
  const guessed = (id: number, share: number | null): number | null => {
    const began = first.get(id);
    if (share === null || began === undefined) return null;
    const [tookMs, done] = [monoMs() - began.atMs, share - began.share];
    return tookMs < MIN_OBSERVED_MS || done <= 0 ? null : ((1 - share) * tookMs) / done / SECOND_MS;
  };
  return {
    note: (id, progress) => {
      const share = shareOf(progress);
      if (share === null || first.has(id)) return;
      const open = new Set(openIds());
      first = new Map([...[...first].filter(([known]) => open.has(known)), [id, { share, atMs: monoMs() }]]);
    },
    figures: (jobs) =>
      jobs
        .filter(({ state }) => state === 'running')
        .map(({ id, kind, progress }) => {
          const share = shareOf(progress);
          return { kind, share, etaSeconds: reportedEta(progress) ?? guessed(id, share) };
        }),
  };
}

/** The progress of the first running backfill that reports one. Its ETA does not hold while telemetry is not read. */
function backfillProgress(jobs: readonly Job[], unread: string | null): ProgressReport | null {
  const running = jobs.filter(({ kind, state }) => kind === 'backfill' && state === 'running');
  const found = running.map(({ progress }) => readProgress(progress)).find((progress) => progress !== null) ?? null;
  return found === null || unread === null ? found : { ...found, eta: null, unread };
}

function shareOf(progress: unknown): number | null {
  return readProgress(progress)?.totals.covered_share ?? null;
}

/** The remaining time that a job reports. */
function reportedEta(progress: unknown): number | null {
  const eta = isRecord(progress) ? progress['eta'] : null;
  const seconds = isRecord(eta) ? eta['seconds'] : null;
  return typeof seconds === 'number' && seconds >= 0 ? seconds : null;
}

/**
 * The status report: one object for the page, for scripts, for the progress line and for `--status`, with a sentence
 * that sums it up. It is made from the state and the running parts, or from the state alone.
 */
import type { SpaceWatch } from '../archive/room.ts';
import { missingStatuses } from '../core/device-coverage.ts';
import type { Schedules } from '../core/ports.ts';
import { type BackfillArgs, isBackfillArgs } from '../core/state/job-args.ts';
import { readProgress } from '../core/state/jobs.ts';
import type { OpenJob, StateFacts } from '../core/state/state.ts';
import type {
  ArchiveStatus,
  DestinationReport,
  JobStatus,
  NextStatus,
  ProcessStatus,
  QuotaStatus,
  ReadyCode,
  StatusOverview,
  StatusReport,
  StreamStatus,
} from '../core/status.ts';
import { capitalized, counted, databaseText, duration, etaText, percent } from '../core/text.ts';
import { type EpochMs, formatExact, formatMs, SECOND_MS, timeText } from '../core/time.ts';
import type { BlockFacts } from '../delivery/flow-control.ts';
import type { ReportContext } from '../ingest/context.ts';
import { includedDevices } from '../ingest/filter.ts';
import { openSeconds, wantedNow } from '../ingest/wanted-range.ts';
import type { StreamReport } from '../scheduler/api-state.ts';
import { meanPeriodMs, phaseOf } from '../scheduler/streams.ts';
import { type DeviceSums, silentDevicesText, snapshotDevices, sumUp } from './device-snapshot.ts';
import type { HistoryEta } from './history-eta.ts';

/** A destination, from its deliverer or from the state. The state does not have the times of a block. */
export interface ReportedDestination extends BlockFacts {
  readonly name: string;
  /** Its number in the state; `null` if the state does not know it yet, so that every point waits for it. */
  readonly destinationId: number | null;
  /** `null` if no process delivers. */
  deliveredLines(): number | null;
}

/** The facts that the report is made from. */
export interface ReportParts {
  readonly context: ReportContext;
  readonly deliverers: readonly ReportedDestination[];
  readonly quota: () => Omit<QuotaStatus, 'lanes'>;
  /** The normal lag of readings if the quota is too small, in ms. */
  readonly staleMs: () => number;
  /** How long until all gaps are closed, in seconds; `null`: not known. Sometimes checks every device. */
  readonly historyEta: () => HistoryEta | null;
  readonly streams: Pick<
    StreamReport,
    'list' | 'problem' | 'isKeyRejected' | 'failingLong' | 'isListed' | 'nextAttemptInMs'
  >;
  readonly space: Pick<SpaceWatch, 'status'>;
  readonly facts: Omit<StateFacts, 'requestsOf' | 'daysOf'>;
  /** Whether a process uses the state. */
  readonly isRunning: () => boolean;
  readonly version: string;
}

/** Composes the report. Costs a scan of every device, so it is made on request and not stored. */
export function reportNow(parts: ReportParts): StatusReport {
  const { context } = parts;
  const wantedRange = wantedNow(context);
  const behindAfter = openSeconds(parts);
  const view = wantedRange && { context, wantedRange, openSeconds: behindAfter };
  const snapshots = view === null ? [] : snapshotDevices(view, (_device, _now, snapshot) => snapshot);
  const overview = composeOverview(parts, sumUp(snapshots, behindAfter), view !== null);
  return { ...overview, devices: snapshots.map(({ status }) => status) };
}

/**
 * The report without its devices.
 *
 * @param found the sums of an earlier scan, which cost nothing; `null`: the devices are scanned now.
 */
export function overviewNow(parts: ReportParts, found: DeviceSums | null): StatusOverview {
  if (found !== null) return composeOverview(parts, found, true);
  const { devices: _, ...overview } = reportNow(parts);
  return overview;
}

/**
 * Composes the overview.
 *
 * @param isTimeKnown while the server's time is unknown, devices are only counted.
 */
function composeOverview(parts: ReportParts, sums: DeviceSums, isTimeKnown: boolean): StatusOverview {
  const { context, version, facts } = parts;
  const { store, serverClock } = context;
  const totals = store.totals();
  const behindAfter = openSeconds(parts);
  const nowMs = serverClock.nowMs();
  const included = isTimeKnown ? sums.devices : includedDevices(context).length;
  const excluded = isTimeKnown ? sums.excluded : store.devices().length - included;
  const destinations = parts.deliverers.map((each) =>
    destinationReport(parts, each, { nowMs, medianSeconds: sums.lag.median_seconds }),
  );
  const jobs = facts.jobs().map((job) => movingJob(parts, jobStatus(job)));
  const next = nextStatus(parts, sums, nowMs);
  return {
    version,
    generated_at: timeText(nowMs),
    workspace_id: store.workspaceTag(),
    workspace_name: store.account()?.name ?? null,
    ...composeSummary(parts, { devices: included, excluded, sums, destinations, jobs, next }),
    process: processStatus(parts),
    streams: streamsOf(parts),
    freshness: {
      ...lagSummary(parts, nowMs),
      behind_after_seconds: behindAfter,
      ...sums.lag,
    },
    gaps: sums.gaps,
    totals: {
      devices: included,
      devices_complete: sums.complete,
      archived_readings: totals.readings,
      archived_points: totals.points,
      requests: totals.requests,
      rejected_records: totals.rejectedRecords,
      covered_share: sums.coveredShare,
    },
    destinations,
    allowance: { ...parts.quota(), lanes: facts.spending(nowMs) },
    archive: archiveStatus(parts),
    jobs,
    next,
  };
}

/** The streams. Before the first answer since the start, each has the time of its last answer before it. */
function streamsOf({ streams, facts }: ReportParts): readonly StreamStatus[] {
  const list = streams.list();
  // A stream without its scope stays unread, and finding its last answer takes a scan of all requests each time.
  if (list.every(({ state, last_read_at }) => state === 'off' || last_read_at !== null)) return list;
  const storedMs = new Map(facts.streams().map(({ stream, readAtMs }) => [stream, readAtMs]));
  return list.map((each) => ({
    ...each,
    last_read_at: each.last_read_at ?? timeText(storedMs.get(each.name) ?? null),
  }));
}

function processStatus({ facts, isRunning }: ReportParts): ProcessStatus {
  return {
    running: isRunning(),
    last_request_at: timeText(facts.lastRequestMs()),
    last_archived_at: timeText(facts.lastArchivedMs()),
  };
}

function lagSummary({ context, staleMs }: ReportParts, nowMs: EpochMs) {
  const targetMs = meanPeriodMs(context.settings.schedules.telemetry, nowMs);
  const seconds = (ms: number): number => (Number.isFinite(ms) ? Math.round(ms / 1000) : 0);
  return { target_seconds: seconds(targetMs), expected_seconds: seconds(Math.max(targetMs, staleMs())) };
}

/** An open job, with the progress that it reports. */
function jobStatus({ id, kind, state, requestedBy, requestedMs, startedMs, args, progress }: OpenJob): JobStatus {
  const known = readProgress(progress);
  return {
    id,
    kind,
    state,
    requested_by: requestedBy,
    requested_at: timeText(requestedMs),
    started_at: timeText(startedMs),
    range: kind === 'backfill' && isBackfillArgs(args) ? jobRange(args) : null,
    share: known?.totals.covered_share ?? null,
    requests: known?.totals.requests ?? null,
    readings: known?.totals.archived_readings ?? null,
    requests_per_minute: known?.requests_per_minute ?? null,
    eta_seconds: known?.eta?.seconds ?? null,
    eta_basis: known?.eta?.basis ?? null,
    waits: known?.waits ?? null,
  };
}

/**
 * A job with the ETA and the rate that it has reported, if they still apply. They do not while no process runs it, or
 * while the API cannot be read.
 */
function movingJob({ isRunning, streams }: ReportParts, job: JobStatus): JobStatus {
  const still = { ...job, requests_per_minute: null, eta_seconds: null, eta_basis: null, waits: null };
  if (job.state !== 'running' || !isRunning()) return still;
  const isUnread = job.kind === 'backfill' && streams.problem() !== null;
  return isUnread ? { ...still, waits: 'waiting until the API can be read' } : job;
}

function jobRange({ from, to, begunTo }: BackfillArgs): NonNullable<JobStatus['range']> {
  const end = to ?? begunTo ?? null;
  return {
    from: from === 'all' ? null : formatExact(BigInt(from)),
    to: end === null ? null : formatExact(BigInt(end)),
  };
}

/**
 * The report on a destination.
 *
 * @param medianSeconds the lag of the archive.
 */
function destinationReport(
  { context: { store }, facts }: ReportParts,
  { name, destinationId: id, deliveredLines, blockedReason, nextAttemptInMs, blockedForMs }: ReportedDestination,
  { nowMs, medianSeconds }: { readonly nowMs: EpochMs; readonly medianSeconds: number | null },
): DestinationReport {
  const [waitMs, blockedMs] = [nextAttemptInMs(), blockedForMs()];
  const delivery = {
    name,
    delivered_points: deliveredLines(),
    blocked_reason: blockedReason(),
    blocked_since: timeText(blockedMs === null ? null : Math.round(nowMs - blockedMs)),
    next_attempt_at: timeText(waitMs === null ? null : Math.round(nowMs + waitMs)),
  };
  if (id === null) {
    const { lines } = store.totals();
    const common = { quarantined: 0, missing: [], lag_seconds: null };
    return { ...delivery, pending_points: lines, oldest_pending_at: null, oldest_live_pending_at: null, ...common };
  }
  const { pendingLines, quarantined } = store.backlog(id);
  const waitsSinceMs = facts.oldestLivePendingMs(id);
  const waitsSeconds = waitsSinceMs === null ? 0 : Math.max(0, nowMs - waitsSinceMs) / SECOND_MS;
  return {
    ...delivery,
    pending_points: pendingLines,
    quarantined,
    oldest_pending_at: pendingLines === 0 ? null : timeText(facts.oldestPendingMs(id)),
    oldest_live_pending_at: pendingLines === 0 ? null : timeText(waitsSinceMs),
    lag_seconds: medianSeconds === null ? null : Math.round(medianSeconds + waitsSeconds),
    missing: missingStatuses(store.missingSums(id)),
  };
}

function archiveStatus({ context, space }: ReportParts): ArchiveStatus {
  const { usedBytes, maxBytes, diskFreeBytes, full } = space.status();
  return {
    points: context.store.totals().lines,
    state_bytes: usedBytes,
    max_bytes: maxBytes,
    disk_free_bytes: diskFreeBytes,
    full,
  };
}

function nextStatus(
  { context, streams, historyEta, isRunning }: ReportParts,
  { open, initial }: DeviceSums,
  nowMs: EpochMs,
): NextStatus {
  const { store, settings } = context;
  const after = dueAfter(settings.schedules, store.workspaceTag() ?? '');
  const attemptInMs = isRunning() ? streams.nextAttemptInMs() : null;
  const attemptMs = attemptInMs === null ? null : Math.round(nowMs + attemptInMs);
  const attempt_at = timeText(attemptMs);
  // No gap is closed while no process runs.
  const eta = open.devices === 0 || !isRunning() ? null : historyEta();
  return {
    attempt_at,
    streams: streams.list().map(({ name, state, last_read_at }) => {
      // No stream is read before the attempt, and all are read soon after a key is accepted.
      if (streams.isKeyRejected()) return { name, due_at: state === 'off' ? null : attempt_at };
      // Each device is due at its own time. Telemetry gets the next time of the schedule.
      const dueMs = after(name, name === 'telemetry' || last_read_at === null ? nowMs : Date.parse(last_read_at));
      return { name, due_at: state === 'off' || dueMs === null ? null : timeText(Math.max(dueMs, attemptMs ?? 0)) };
    }),
    devices_with_gaps: open.devices,
    gap_seconds: open.seconds,
    initial_devices: initial,
    eta_seconds: eta?.seconds ?? null,
    eta_assumes_full_history: eta?.assumesFullHistory ?? false,
  };
}

/** The first time of a stream's schedule after a given time, in the phase of the workspace. */
export function dueAfter(
  schedules: Schedules,
  workspace: string,
): (name: keyof Schedules, fromMs: EpochMs) => EpochMs | null {
  const phaseMs = phaseOf(workspace);
  return (name, fromMs) => {
    const at = schedules[name].next(fromMs - phaseMs);
    return at === null ? null : at + phaseMs;
  };
}

/** The counts and states from which the summary is chosen. */
interface SummaryFacts {
  /** Devices that are not excluded. */
  readonly devices: number;
  readonly excluded: number;
  readonly sums: DeviceSums;
  readonly destinations: readonly DestinationReport[];
  readonly jobs: readonly JobStatus[];
  readonly next: NextStatus;
}

/**
 * The state in one sentence: the most serious problem, or the progress of the sync. A missing process comes first,
 * except before a rejected key: that is to be replaced before a process is started.
 */
function composeSummary(parts: ReportParts, facts: SummaryFacts): Pick<StatusReport, 'summary' | 'summary_problem'> {
  const found = worstProblem(parts) ?? {
    summary: syncText(parts, facts),
    summary_problem: parts.streams.isListed() ? null : { code: 'devices_not_listed' as const, name: null },
  };
  if (parts.isRunning()) return found;
  const [first, last] =
    found.summary_problem?.code === 'key_refused'
      ? [`${found.summary}.`, stoppedText(parts)]
      : [stoppedText(parts), found.summary];
  return { ...found, summary: `${first} ${last}` };
}

/** The text if no process uses the state: since when, and the remedy. */
function stoppedText({ facts }: ReportParts): string {
  const lastMs = facts.lastRequestMs();
  const last = lastMs === null ? '' : `; the last request was at ${formatMs(lastMs).replace(/\.\d+/, '')}`;
  return `No daemon is running${last}. Start it, or run --once.`;
}

/** The progress of the sync, in one or more sentences. */
function syncText(parts: ReportParts, { devices, excluded, sums, destinations, jobs, next }: SummaryFacts): string {
  const isAtWork = parts.isRunning();
  if (!parts.streams.isListed()) return noListText(devices, isAtWork);
  if (devices === 0) return noDeviceText(excluded);
  const leftOut = excluded === 0 ? '' : ` (${excluded} excluded)`;
  const { waiting_until } = parts.quota();
  const waiting = waiting_until === null || !isAtWork ? '' : ` Quota used up: requests resume at ${waiting_until}.`;
  const silent = silentDevicesText(sums.silent, parts.context.serverClock.nowMs());
  const more = `${isAtWork ? backfillText(jobs) : ''}${silent}${waiting}`;
  if (sums.complete === devices) {
    const one = devices === 1 ? 'the device is complete' : `all ${devices} devices are complete`;
    // While telemetry is not read, it is not called in sync.
    const head = isAtWork ? `In sync: ${one}` : capitalized(one);
    return `${head}${leftOut}${deliveredText(destinations)}.${more}`;
  }
  const work = isAtWork ? (next.initial_devices > 0 ? 'Initial sync: ' : 'Catching up: ') : '';
  return `${work}${sums.complete} of ${devices} devices complete${leftOut}${etaText(next)}.${more}`;
}

/** The running backfills, one sentence each: they read beyond the sync range. */
function backfillText(jobs: readonly JobStatus[]): string {
  return jobs
    .filter(({ kind, state }) => kind === 'backfill' && state === 'running')
    .map(({ share, eta_seconds, waits }) => {
      const done = share === null ? '' : `: ${percent(share)} of its range covered`;
      const eta = eta_seconds === null ? '' : `, ETA ${duration(eta_seconds)}`;
      return ` Backfill running${done}${waits === null ? eta : `, ${waits}`}.`;
    })
    .join('');
}

/** The sentence about the points that the databases have. */
function deliveredText(destinations: readonly DestinationReport[]): string {
  if (destinations.length === 0) return '';
  const textOf = ({ name }: DestinationReport): string => databaseText(name, destinations.length);
  const behind = destinations.filter(({ pending_points }) => pending_points > 0);
  if (behind.length === 0) return `; ${completeText(destinations, textOf)}`;
  const waiting = behind.map((each) => {
    const isHistory = each.oldest_live_pending_at === null && each.oldest_pending_at !== null;
    const points = `${counted(each.pending_points, 'point')}${isHistory ? ' of history' : ''}`;
    return `${points} not delivered to ${textOf(each)} yet`;
  });
  return `; ${waiting.join(', ')}`;
}

/** If no point waits for delivery: which databases have accepted every point, and how many the others do not have. */
function completeText(
  destinations: readonly DestinationReport[],
  textOf: (destination: DestinationReport) => string,
): string {
  const missing = destinations.map((each) => ({
    each,
    points: each.quarantined + each.missing.reduce((sum, { points }) => sum + points, 0),
  }));
  const whole = missing.filter(({ points }) => points === 0).map(({ each }) => textOf(each));
  return [
    ...(whole.length === 0
      ? []
      : [`${whole.join(' and ')} ${whole.length === 1 ? 'has' : 'have'} accepted every point`]),
    ...missing
      .filter(({ points }) => points > 0)
      .map(({ each, points }) => `${textOf(each)} has all but ${counted(points, 'point')}`),
  ].join(', ');
}

/** The most serious problem; `null` if there is none. */
function worstProblem({
  isRunning,
  deliverers,
  streams,
  space,
}: ReportParts): Pick<StatusReport, 'summary' | 'summary_problem'> | null {
  const about = (code: ReadyCode, name: string | null, summary: string) => ({
    summary,
    summary_problem: { code, name },
  });
  const problem = streams.problem();
  if (problem !== null) {
    const code = streams.isKeyRejected() ? 'key_refused' : 'api_unreachable';
    return about(code, null, `${apiProblemText(isRunning())}: ${problem}`);
  }
  const { full } = space.status();
  if (full !== null) return about('state_full', null, `Polling stopped: ${full}`);
  const unread = unreadStream(streams);
  if (unread !== null)
    return about(unread.code, unread.name, `The stream ${unread.name} cannot be read: ${unread.reason}`);
  for (const { name, blockedReason, isBlockedByAnswer } of deliverers) {
    const reason = blockedReason();
    if (reason === null) continue;
    const why = isBlockedByAnswer() ? `the database, or a proxy in front of it, answers ${reason}` : reason;
    const summary = `Delivery to ${databaseText(name, deliverers.length)} is blocked: ${why}`;
    return about('destination_blocked', name, summary);
  }
  return null;
}

/** The beginning of the sentence about why the API cannot be read. */
export function apiProblemText(isRunning: boolean): string {
  return isRunning ? 'The API cannot be read' : 'Polling failed at the last attempt';
}

function noListText(devices: number, isAtWork: boolean): string {
  if (!isAtWork) return 'The device list has not been read yet.';
  const known = devices === 0 ? '' : ` The state has ${counted(devices, 'device')}.`;
  return `Starting: the device list is not complete yet.${known}`;
}

function noDeviceText(excluded: number): string {
  return excluded > 0 ? `No device is synced: all ${excluded} are excluded.` : 'The workspace has no devices.';
}

/**
 * A stream whose state is worth reporting. Others may be off on purpose; without telemetry no wanted range is ever
 * read.
 */
function unreadStream({
  list,
  failingLong,
}: ReportParts['streams']): { readonly code: ReadyCode; readonly name: string; readonly reason: string } | null {
  const failing = failingLong()[0];
  if (failing !== undefined) return { code: 'stream_failing', ...failing };
  const off = list().find(({ name, state }) => name === 'telemetry' && state === 'off');
  return off === undefined
    ? null
    : { code: 'scope_missing', name: off.name, reason: off.reason ?? 'its stream is off' };
}

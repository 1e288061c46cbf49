/**
 * Makes the status report, and the report rates of the devices, from the state alone, without a running daemon. A value
 * that only a running process has is taken from the state where possible, and is `null` otherwise.
 */

import { configuredDatabases, readRunsWith, readSchedules } from '../../app/settings.ts';
import { createSpaceWatch } from '../../archive/room.ts';
import type { StateConfig } from '../../config/config.ts';
import { MIN_FREE_BYTES } from '../../core/archive-room.ts';
import { faultText } from '../../core/faults.ts';
import { createFilter, type DeviceFilter } from '../../core/filter.ts';
import { deviceFacts, type FleetRates, fleetRates, MEASURED_DAYS } from '../../core/fleet.ts';
import { DESTINATION_KINDS, destinationIdentity, withKind } from '../../core/lines/dialect.ts';
import type { Clock } from '../../core/ports.ts';
import { budgetOf, REPORTED_FROM_MS } from '../../core/quota.ts';
import { readProgress } from '../../core/state/jobs.ts';
import { blockedByAnswerFact, blockedFact } from '../../core/state/log.ts';
import { gracePeriodOf } from '../../core/state/telemetry.ts';
import { type QuotaStatus, type QuotaWindow, type StreamStatus, VERSION } from '../../core/status.ts';
import { DAY_MS, type EpochMs, MINUTE_MS, nsToMs, timeText } from '../../core/time.ts';
import type { DeviceReportParts } from '../../report/device-report.ts';
import { createHistoryEta } from '../../report/history-eta.ts';
import type { ReportedDestination } from '../../report/report.ts';
import { API_PROBLEM, FAILING_LONG_MS, storedProblem } from '../../scheduler/api-state.ts';
import { MOVED_NS } from '../../scheduler/coverage-points.ts';
import { readStaleMs } from '../../scheduler/demand-watch.ts';
import { createDisk } from '../../store/views/data-dir.ts';
import { type ReadState, readStateView } from '../../store/views/read-state.ts';

/** The part of the configuration that the report needs. */
export type StatusConfig = Pick<StateConfig, 'influx' | 'destinations' | 'dataDir' | 'archive'> & {
  readonly api: Pick<StateConfig['api'], 'share'>;
  readonly sync: StateConfig['sync'];
};

/** Composes the parts over a state that is open for reading. */
export function partsOfState(state: ReadState, config: StatusConfig, clock: Clock): DeviceReportParts {
  const { store, facts, maintenance } = state;
  // Times in the state are the server's. If the local clock lags, the newest of them counts.
  const nowMs = Math.max(clock.nowMs(), state.newestMs);
  // A daemon may run with other settings than this configuration, as in the demo.
  const runsWith = state.isLocked ? readRunsWith(store) : null;
  const { include, exclude } = runsWith ?? config.sync.leftOut;
  const filter = createFilter({ ...config.sync.leftOut, include, exclude });
  // Before the first sync, `--check` may have sent requests, which stored nothing.
  const isSynced = store.workspaceTag() !== null;
  const requests = facts.streams();
  const streams = requests.map((each) => streamStatus(isSynced ? each : { ...each, readAtMs: null }));
  const destinations =
    runsWith?.destinations.map(({ name, id }) => reportedDestination(state, name, id)) ??
    reportedDestinations(state, config);
  const space = createSpaceWatch({
    maintenance: maintenance,
    disk: createDisk(config.dataDir),
    clock,
    observe: () => {},
    limits: {
      maxBytes: config.archive.maxBytes,
      minFreeBytes: MIN_FREE_BYTES,
      hasDestinations: destinations.length > 0,
    },
  });
  const quota = quotaStatus(state, config, nowMs);
  const schedules = (state.isLocked ? readSchedules(store) : null) ?? config.sync.schedules;
  const context = {
    store,
    serverClock: clockAt(nowMs),
    settings: { ...config.sync, schedules, filter },
    nextReadingMs: nextReadings(store, config.sync.gracePeriodMs),
  };
  return {
    context,
    deliverers: destinations,
    quota: () => quota,
    staleMs: () => readStaleMs(store),
    historyEta: createHistoryEta({ context, facts, ledger: state.ledger, quota: () => quota }),
    streams: {
      ...storedProblem(store.fact(API_PROBLEM) ?? '', streams, state.isLocked ? [] : requests, nowMs),
      isListed: () => store.devices().length > 0 || wasReadEmpty(streams, store.account()?.devices ?? 0),
      failingLong: () =>
        streams
          .filter(({ state: each }) => each === 'failing')
          .map(({ name, reason }) => ({ name, reason: reason ?? '' })),
    },
    space,
    facts,
    isRunning: () => state.isLocked,
    version: VERSION,
    polls: config.sync.polls,
  };
}

/**
 * Until when no reading of a device is overdue, in ms. Only the daemon knows the rates. No reading was overdue up to
 * the watermark of the last point, and a running daemon writes another point as soon as the watermark has moved far
 * enough.
 */
function nextReadings(
  store: Pick<ReadState['store'], 'coveragePoints' | 'telemetry'>,
  gracePeriodMs: number,
): (deviceId: string) => EpochMs | null {
  const points = store.coveragePoints();
  return (deviceId) => {
    const watermarkNs = points.get(deviceId)?.watermarkNs ?? null;
    if (watermarkNs === null) return null;
    return nsToMs(watermarkNs + MOVED_NS) + gracePeriodOf(gracePeriodMs, store.telemetry(deviceId).late);
  };
}

/**
 * Whether the device list was read and is empty.
 *
 * @param counted how many devices the account counts.
 */
function wasReadEmpty(streams: readonly StreamStatus[], counted: number): boolean {
  return counted === 0 && streams.some(({ name, last_read_at }) => name === 'devices' && last_read_at !== null);
}

function streamStatus({ stream, readAtMs, failure }: ReturnType<ReadState['facts']['streams']>[number]): StreamStatus {
  const last_read_at = timeText(readAtMs);
  const state = readAtMs === null ? 'waiting' : 'on';
  if (failure === null) return { name: stream, state, reason: null, last_read_at };
  const reason = faultText(failure.fault);
  if (failure.fault === 'scope-missing') return { name: stream, state: 'off', reason, last_read_at };
  const isLong = readAtMs === null || failure.atMs - readAtMs >= FAILING_LONG_MS;
  return isLong
    ? { name: stream, state: 'failing', reason, last_read_at }
    : { name: stream, state, reason: null, last_read_at };
}

/**
 * The configured databases as destinations in the state; without any, the destinations that the state has delivered to.
 */
function reportedDestinations(state: ReadState, config: StatusConfig): ReportedDestination[] {
  const configured = configuredDatabases(config);
  if (configured.length === 0) {
    return state.destinations
      .filter(({ isCurrent }) => isCurrent)
      .map(({ id, name }) => reportedDestination(state, name, id));
  }
  return configured.map(({ name, kind, url, org, bucket }) => {
    const identity = destinationIdentity({ kind, url, org, bucket });
    const identities =
      kind === 'auto' ? [...DESTINATION_KINDS.map((each) => withKind(identity, each)), identity] : [identity];
    const found = state.store.knownIdentity(name, identities);
    const known = state.destinations.find((each) => each.name === name && each.identity === found);
    return reportedDestination(state, name, known?.id ?? null);
  });
}

function reportedDestination({ store }: ReadState, name: string, id: number | null): ReportedDestination {
  const blocked = (id === null ? null : store.fact(blockedFact(id))) || null;
  const isAnswer = id !== null && store.fact(blockedByAnswerFact(id)) === 'yes';
  return {
    name,
    destinationId: id,
    deliveredLines: () => null,
    blockedReason: () => blocked,
    isBlockedByAnswer: () => isAnswer,
    nextAttemptInMs: () => null,
    blockedForMs: () => null,
  };
}

/** A server clock that stands still, for a report of one moment. */
function clockAt(nowMs: EpochMs) {
  return { nowMs: () => nowMs, highestPassedMs: () => nowMs, passedMs: () => nowMs };
}

function quotaStatus(state: ReadState, { api: { share } }: StatusConfig, nowMs: EpochMs): Omit<QuotaStatus, 'lanes'> {
  const { store, ledger } = state;
  const plan = store.account()?.plan;
  const ofDay = ledger.sentSince(nowMs - DAY_MS);
  const ofMinute = ofDay.filter((atMs) => atMs > nowMs - MINUTE_MS);
  const quotaWindow = (limit: number | null | undefined, sent: readonly EpochMs[]): QuotaWindow => ({
    limit: limit ?? null,
    budget: limit == null ? null : budgetOf(limit, share),
    spent: sent.length,
  });
  const [minute, day] = [quotaWindow(plan?.requestsPerMinute, ofMinute), quotaWindow(plan?.requestsPerDay, ofDay)];
  // The day's quota is free again when enough of its requests are a day old.
  const over = day.budget === null ? -1 : ofDay.length - day.budget;
  const freeMs = over < 0 ? 0 : (ofDay[over] ?? 0) + DAY_MS;
  const untilMs = Math.max(ledger.blockedUntilMs(nowMs), freeMs);
  const waits = untilMs - nowMs < REPORTED_FROM_MS ? null : timeText(untilMs);
  return { share, minute, day, waiting_until: waits, history_waiting_until: waits ?? backfillWaits(state, nowMs) };
}

/** Until when the daemon's backfill waits for quota, by its last progress; `null`: it does not wait, or none runs. */
function backfillWaits({ facts, isLocked }: ReadState, nowMs: EpochMs): string | null {
  const reported = isLocked ? facts.jobs().filter(({ state }) => state === 'running') : [];
  const untils = reported.map(({ progress }) => readProgress(progress)?.allowance.history_waiting_until ?? null);
  return untils.find((until) => until !== null && Date.parse(until) > nowMs) ?? null;
}

/** Returns a function that reads from the state how often the devices report. Each call reads every device. */
export function ratesOfState(dataDir: string, filter: DeviceFilter): (nowMs: EpochMs) => FleetRates {
  return (nowMs) => {
    const state = readStateView(dataDir, { day: Math.floor(nowMs / DAY_MS) - MEASURED_DAYS, requestsMs: nowMs });
    const records = (state?.devices ?? []).map(({ record }) => record);
    return fleetRates(deviceFacts(records, state?.telemetry ?? new Map(), filter), nowMs);
  };
}

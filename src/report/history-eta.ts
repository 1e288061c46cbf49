/**
 * How long it takes until all gaps are closed, for the initial sync and after an outage: the requests that the gaps
 * cost by the report rates of the devices, sent by the budget that the planner will give them while load and quota stay
 * as they are. It is computed from the state, so a daemon and a `--status` at the same time give the same figure.
 */
import { coveredIntervals } from '../core/coverage.ts';
import { emptyByListing } from '../core/device-coverage.ts';
import { deviceFacts, fleetRates, MEASURED_DAYS } from '../core/fleet.ts';
import { normalize, union } from '../core/intervals.ts';
import type { Ledger } from '../core/ports.ts';
import { pageSizeOf } from '../core/records.ts';
import type { StateFacts } from '../core/state/state.ts';
import { NOTHING_COVERED } from '../core/state/telemetry.ts';
import type { QuotaStatus } from '../core/status.ts';
import { DAY_MS, type EpochMs, type EpochNs, MINUTE_MS, msToNs, nsToMs, SECOND_MS } from '../core/time.ts';
import type { ReportContext } from '../ingest/context.ts';
import { maxWidthNs } from '../ingest/page-request.ts';
import { wantedNow } from '../ingest/wanted-range.ts';
import {
  type BackfillInput,
  type BesideSupply,
  backfillNeed,
  besideFinishMs,
  besideSupply,
  findBeginning,
  LOAD_OVER_MS,
  measureDaySupply,
} from '../scheduler/estimate.ts';
import { USUAL_RESERVES } from '../scheduler/reserves.ts';

/** The sources of the estimate; it sends no request. */
interface HistoryEtaParts {
  readonly context: ReportContext;
  readonly facts: Pick<StateFacts, 'daysOf'>;
  readonly ledger: Pick<Ledger, 'sentSince'>;
  readonly quota: () => Pick<QuotaStatus, 'share' | 'minute' | 'day'>;
}

/** How long until all gaps are closed. */
export interface HistoryEta {
  readonly seconds: number;
  /**
   * Whether nothing is known yet about where the readings of the devices begin. The time is shorter if devices are
   * younger than the range.
   */
  readonly assumesFullHistory: boolean;
}

/** How long an estimate is cached: each one reads every device, and every request of the last day. */
const GOOD_FOR_MS = 10 * SECOND_MS;
/** How long an unknown estimate is cached: in the first seconds the next computation may return one. */
const UNKNOWN_FOR_MS = 2 * SECOND_MS;

/**
 * Prepares the estimate.
 *
 * @returns the time left; `null` if it is not known.
 */
export function createHistoryEta(parts: HistoryEtaParts): () => HistoryEta | null {
  let last: { readonly atMs: EpochMs; readonly eta: HistoryEta | null } | null = null;
  return () => {
    const nowMs = parts.context.serverClock.nowMs();
    const goodForMs = last?.eta == null ? UNKNOWN_FOR_MS : GOOD_FOR_MS;
    if (last === null || nowMs < last.atMs || nowMs - last.atMs >= goodForMs) {
      last = { atMs: nowMs, eta: etaNow(parts, nowMs) };
    }
    return last.eta;
  };
}

function etaNow(parts: HistoryEtaParts, nowMs: EpochMs): HistoryEta | null {
  const wanted = wantedNow(parts.context);
  const supply = measuredSupply(parts, nowMs);
  if (wanted === null || supply === null) return null;
  const plan = parts.context.store.account()?.plan;
  const { requests, assumesFullHistory } = backfillNeed({
    devices: ratesNow(parts, nowMs, wanted.wantedFrom),
    range: { from: wanted.wantedFrom, to: wanted.limit },
    now: msToNs(nowMs),
    limit: wanted.limit,
    pageSize: pageSizeOf(plan),
    windowNs: maxWidthNs(plan?.historyMaxDays ?? null),
  });
  // A gap of less than an hour is live work.
  if (requests === 0) return null;
  const ms = besideFinishMs(requests, supply);
  const leastMs = besideFinishMs(requests, { ...supply, othersPerMs: 0 });
  if (ms === null || leastMs === null) return null;
  // If the other lanes decide, their load has to be known well.
  const isKnown = supply.measuredMs >= LOAD_OVER_MS || ms <= 1.5 * leastMs;
  return isKnown ? { seconds: Math.ceil(ms / SECOND_MS), assumesFullHistory } : null;
}

/** The rates of the devices that are read. Ranges that no request will close soon count as covered. */
function ratesNow({ context, facts }: HistoryEtaParts, nowMs: EpochMs, wantedFrom: EpochNs): BackfillInput['devices'] {
  const { store, settings } = context;
  const known = store.devices().filter(({ goneSinceMs }) => goneSinceMs === null);
  const coverage = store.coverageOfAll();
  const fromDay = Math.floor(nowMs / DAY_MS) - MEASURED_DAYS;
  const coverageOf = new Map(
    known.map((device) => {
      const { deviceId } = device.record;
      const coverageNow = coverage.get(deviceId) ?? NOTHING_COVERED;
      const days = facts.daysOf(deviceId, fromDay);
      const newestMs = coverageNow.newestNs === null ? null : nsToMs(coverageNow.newestNs);
      const named = normalize(coverageNow.gaps.map(({ fromNs: from, toNs: to }) => ({ from, to })));
      const closed = union(
        coveredIntervals(coverageNow.covered),
        union(named, emptyByListing(context, device, coverageNow)),
      );
      const beginsNs = findBeginning(coverageNow.covered, wantedFrom);
      return [deviceId, { covered: coveredIntervals(coverageNow.covered), newestMs, days, closed, beginsNs }] as const;
    }),
  );
  const records = known.map(({ record }) => record);
  return fleetRates(deviceFacts(records, coverageOf, settings.filter), nowMs).devices.map((device) => ({
    ...device,
    covered: coverageOf.get(device.deviceId)?.closed ?? [],
  }));
}

/** A shorter time is not measured. */
const LEAST_MS = 5 * SECOND_MS;

/**
 * The requests that the history of the devices gets. Assumes the reserve of an ordinary plan.
 *
 * @returns `null` while the quota, or the load of the other lanes, is not known.
 */
function measuredSupply(
  { ledger, quota }: HistoryEtaParts,
  nowMs: EpochMs,
): (BesideSupply & { readonly measuredMs: number }) | null {
  const { share, minute, day } = quota();
  if (minute.budget === null) return null;
  const others = day.others ?? null;
  const sentMs = ledger.sentSince(nowMs - DAY_MS);
  // The first minute of a daemon is not typical, because everything is read once.
  const beganMs = sentMs[0] ?? nowMs;
  const fromMs = nowMs - beganMs < 2 * MINUTE_MS ? beganMs : beganMs + MINUTE_MS;
  const sinceMs = Math.max(nowMs - LOAD_OVER_MS, fromMs);
  const measuredMs = nowMs - sinceMs;
  if (measuredMs < LEAST_MS) return null;
  const ofHistory = ledger.sentSince(sinceMs, 'first-history');
  const ofOthers = ledger.sentSince(sinceMs).length - ofHistory.length - ledger.sentSince(sinceMs, 'backfill').length;
  const othersPerMs = ofOthers / measuredMs;
  const sendingMs = Math.max(LEAST_MS, nowMs - (ofHistory[0] ?? nowMs));
  const seenPerMs = ofHistory.length > 0 ? ofHistory.length / sendingMs : null;
  const supply = {
    ...measureDaySupply({ ...day, others, share, sentMs }, nowMs),
    backfillReserve: USUAL_RESERVES['first-history'],
  };
  return { ...besideSupply(supply, { minute: minute.budget, seenPerMs, othersPerMs }), measuredMs };
}

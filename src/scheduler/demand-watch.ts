/**
 * Reports once when the quota is too small for the schedules, again when the shortage changes, and once when it ends.
 * It also stores the lag that the schedule or the shortage causes. `demand.ts` holds the rules.
 */
import type { Store } from '../core/state/state.ts';
import { HOUR_MS } from '../core/time.ts';
import type { SyncContext } from '../ingest/context.ts';
import { meanIntervalMs, type SchedulerDemand, type Shortfall, shortfallNow, shortfallText } from './demand.ts';

/** Watches whether the quota suffices for the schedules. */
export interface DemandWatch {
  /** Compares the demand with the plan, and emits a change. */
  check(current: Omit<SchedulerDemand, 'lastIntervalMs'>): void;
  /** The usual lag of readings, in ms: by the schedule, or by the quota if that is too small. */
  staleMs(): number;
}

/** The fact that holds the last `staleMs`, for processes that only read the state. */
const STALE = 'stale_ms';

/** Returns the usual lag of readings that the last process has stored, in ms; 0 before the first check. */
export function readStaleMs(store: Pick<Store, 'fact'>): number {
  const ms = Number(store.fact(STALE) ?? 0);
  return Number.isFinite(ms) ? ms : 0;
}

function saveStale(store: Pick<Store, 'fact' | 'saveFact'>, ms: number): void {
  const text = String(Math.round(ms));
  if ((store.fact(STALE) ?? '0') !== text) store.saveFact(STALE, text);
}

/**
 * The fact that holds the last `meanIntervalMs`. The next process uses it to report a shortage before it has measured.
 */
const INTERVAL = 'report_interval_ms';

/** The stored interval is replaced when it has changed by this factor. */
const KEEP_FACTOR = 1.1;

/** The figures are reported again when they have changed by this factor, and at most this often. */
const REPORT_FACTOR = 1.25;
const REPORT_EVERY_MS = HOUR_MS;

/** The shortfall that was reported last, and when. */
interface Reported {
  readonly shortfall: Shortfall;
  readonly atMs: number;
}

/**
 * Opens the watch without an earlier report.
 *
 * @param periodMs the mean interval of the polls; infinite for a schedule that is due once.
 */
export function createDemandWatch(
  { store, observe, clock }: Pick<SyncContext, 'store' | 'observe' | 'clock'>,
  periodMs: number,
): DemandWatch {
  let reported: Reported | null = null;
  const everyMs = Number.isFinite(periodMs) ? periodMs : 0;
  const staleMs = (): number => Math.max(everyMs, reported?.shortfall.lag.p95Ms ?? 0);
  const keep = (): void => saveStale(store, staleMs());
  return {
    check: (current) => {
      const plan = store.account()?.plan;
      const rates = current.rates();
      const storedMs = readInterval(store);
      const changedMs = changedInterval(storedMs, meanIntervalMs(rates, current.settings.telemetryMs));
      if (changedMs !== null) store.saveFact(INTERVAL, String(Math.round(changedMs)));
      const lastIntervalMs = changedMs ?? storedMs;
      const known = { ...current, rates: () => rates, lastIntervalMs };
      const shortfall = plan === undefined ? null : shortfallNow(known, plan);
      if (shortfall === null) {
        if (reported !== null) observe({ type: 'quota-enough' });
        reported = null;
        keep();
        return;
      }
      const now = { shortfall, atMs: clock.monoMs() };
      if (reported !== null && !hasChanged(reported, now)) return;
      reported = now;
      keep();
      observe({ type: 'quota-short', unmet: shortfall.unmet, message: shortfallText(shortfall) });
    },
    staleMs,
  };
}

/** Returns the stored interval, in ms; `null` for none. */
function readInterval(store: Pick<Store, 'fact'>): number | null {
  const ms = Number(store.fact(INTERVAL) ?? 0);
  return ms > 0 && Number.isFinite(ms) ? ms : null;
}

/** Returns a measured interval that differs enough from the stored one to replace it; `null` if there is none. */
function changedInterval(storedMs: number | null, measuredMs: number | null): number | null {
  if (measuredMs === null || (storedMs !== null && !hasMoved(storedMs, measuredMs, KEEP_FACTOR))) return null;
  return measuredMs;
}

/**
 * Whether to report again. Another kind of shortfall or another plan is reported at once, another size only now and
 * then, unless more of the rates are measured.
 */
function hasChanged(before: Reported, now: Reported): boolean {
  const [was, is] = [before.shortfall, now.shortfall];
  if (was.unmet !== is.unmet || hasMoved(was.available, is.available)) return true;
  const isBetterKnown = (is.assumed?.devices ?? 0) < (was.assumed?.devices ?? 0);
  return (isBetterKnown || now.atMs - before.atMs >= REPORT_EVERY_MS) && hasMoved(was.needed, is.needed);
}

function hasMoved(before: number, after: number, factor = REPORT_FACTOR): boolean {
  return Math.max(before, after) > factor * Math.min(before, after);
}

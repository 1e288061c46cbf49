/**
 * Holds what the schedules ask for against what the allowance carries, and tells once where it does not fit: what is asked
 * for, what is carried, what freshness results and what would change it (issue 4, "When it cannot fit").
 *
 * Looked at whenever the account or the devices were read; told again only where it has become another matter.
 */

import { ASSUMED_INTERVAL_MS } from '../core/fleet-rates.ts';
import type { Store } from '../core/state/state.ts';
import { HOUR_MS } from '../core/time.ts';
import type { SyncContext } from '../ingest/context.ts';
import type { DemandInput } from './demand.ts';
import type { PlannerSettings, Rates } from './planner-types.ts';
import { type Shortfall, shortfallOf, shortfallText } from './shortfall.ts';

export interface DemandWatch {
  look(): void;
  /** How old readings become as a matter of course where the allowance is short, in ms; 0 where it is not. */
  staleMs(): number;
}

/** The fact that holds `staleMs` as it was told last, for whoever looks at the state alone. */
const STALE = 'stale_ms';

/** How old readings become as a matter of course, as the last process that weighed it has left it, in ms. */
export function staleMsOf(store: Pick<Store, 'fact'>): number {
  const ms = Number(store.fact(STALE) ?? 0);
  return Number.isFinite(ms) ? ms : 0;
}

function noteStale(store: Pick<Store, 'fact' | 'keepFact'>, ms: number): void {
  const text = String(Math.round(ms));
  if ((store.fact(STALE) ?? '0') !== text) store.keepFact(STALE, text);
}

/** By how much the figures have to move to be told again, and how often that is at most. */
const WORTH_TELLING = 1.25;
const TELL_EVERY_MS = HOUR_MS;

/** @param asked the schedules in force. @param rates as they are known now. */
export function createDemandWatch(
  { store, observe, clock }: Pick<SyncContext, 'store' | 'observe' | 'clock'>,
  { asked, rates, othersPerDay }: { asked: () => PlannerSettings; rates: () => Rates; othersPerDay: () => number },
): DemandWatch {
  const note = (): void => noteStale(store, told?.shortfall.freshness.p95Ms ?? 0);
  let told: { readonly shortfall: Shortfall; readonly atMs: number } | null = null;
  const now = (): Shortfall | null => {
    const plan = store.account()?.plan;
    const known = rates();
    if (plan === undefined || known.knownMs.length + known.unknown === 0) return null;
    return shortfallOf(
      demandInput(asked(), known, {
        perMinute: plan.requestsPerMinute,
        perDay: plan.requestsPerDay,
        othersPerDay: othersPerDay(),
      }),
    );
  };
  return {
    look: () => {
      const shortfall = now();
      if (shortfall === null) {
        if (told !== null) observe({ type: 'allowance-enough' });
        told = null;
        note();
        return;
      }
      if (told !== null && !isNews(told, { shortfall, atMs: clock.monoMs() })) return;
      told = { shortfall, atMs: clock.monoMs() };
      note();
      observe({ type: 'allowance-short', of: shortfall.of, message: shortfallText(shortfall) });
    },
    staleMs: () => told?.shortfall.freshness.p95Ms ?? 0,
  };
}

function demandInput(
  { freshnessMs, devicesMs, alertsMs, accountMs, sweepMs, pageSize, share }: PlannerSettings,
  { knownMs, unknown, quiet }: Rates,
  allowance: Pick<DemandInput, 'perMinute' | 'perDay' | 'othersPerDay'>,
): DemandInput {
  const sorted = knownMs.toSorted((a, b) => a - b);
  const middleMs = sorted[sorted.length >> 1] ?? ASSUMED_INTERVAL_MS;
  const intervalsMs = [...knownMs, ...Array.from({ length: unknown }, () => middleMs)];
  return {
    intervalsMs,
    quietDevices: quiet,
    freshnessMs,
    devicesMs,
    alertsMs,
    accountMs,
    sweepMs,
    pageSize,
    share,
    ...allowance,
  };
}

interface Told {
  readonly shortfall: Shortfall;
  readonly atMs: number;
}

/** Another kind of shortfall or another plan is told at once, another size of it now and then. */
function isNews(before: Told, now: Told): boolean {
  const [was, is] = [before.shortfall, now.shortfall];
  if (was.of !== is.of || moved(was.carried, is.carried)) return true;
  return now.atMs - before.atMs >= TELL_EVERY_MS && moved(was.asked, is.asked);
}

function moved(before: number, after: number): boolean {
  return Math.max(before, after) > WORTH_TELLING * Math.min(before, after);
}

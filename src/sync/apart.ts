/**
 * Stretches that were backfilled with an end of their own: an island of the past that somebody wanted, no end of live work
 * that was broken off. What lies between it and what is kept up with is nobody's debt.
 */
import type { CoveredSpan } from '../core/coverage.ts';
import type { Store } from '../core/state.ts';
import { type EpochNs, minNs } from '../core/time.ts';

/** A fact that outlives the process: a list of these, times as texts. */
const APART = 'backfilled_apart';

interface Stretch {
  readonly from: string;
  readonly to: string;
  /** `null`: all. */
  readonly devices: readonly string[] | null;
}

type Facts = Pick<Store, 'fact' | 'keepFact'>;

/** Remembers a stretch. */
export function noteApart(store: Facts, from: EpochNs, to: EpochNs, devices: readonly string[]): void {
  const next: Stretch = { from: String(from), to: String(to), devices: devices.length === 0 ? null : devices };
  const others = stretchesOf(store).filter((known) => !isWithin(known, next));
  store.keepFact(APART, JSON.stringify([...others, next]));
}

function isWithin(a: Stretch, b: Stretch): boolean {
  const hasDevices = b.devices === null || a.devices?.every((id) => b.devices?.includes(id)) === true;
  return hasDevices && BigInt(a.from) >= BigInt(b.from) && BigInt(a.to) <= BigInt(b.to);
}

function stretchesOf(store: Facts): readonly Stretch[] {
  const kept = store.fact(APART);
  return kept === null ? [] : JSON.parse(kept);
}

/**
 * Where the wanted span of a device begins: what came after the newest that is held stays wanted, however long the
 * allowance or an outage has kept it waiting.
 */
export function goesOnFrom(
  store: Facts,
  { deviceId, spans }: { readonly deviceId: string; readonly spans: readonly CoveredSpan[] },
  wantedFrom: EpochNs,
): EpochNs {
  const stretches = stretchesOf(store).filter(({ devices }) => devices === null || devices.includes(deviceId));
  const isApart = ({ to }: CoveredSpan): boolean =>
    stretches.some((stretch) => BigInt(stretch.from) < to && to <= BigInt(stretch.to));
  const own = stretches.length === 0 ? spans : spans.filter((span) => !isApart(span));
  const held = own.at(-2) ?? own.at(-1);
  return held === undefined ? wantedFrom : minNs(wantedFrom, held.to);
}

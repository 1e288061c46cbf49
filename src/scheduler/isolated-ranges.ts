/**
 * The ranges that were backfilled by themselves. A backfill may end before the present. The daemon does not fill the
 * time between such an isolated range and the range that it keeps up to date, because no one requested it.
 */

import type { CoveredRange } from '../core/coverage.ts';
import type { Interval } from '../core/intervals.ts';
import { BACKFILLED_APART, type IsolatedText, parseList, type Store } from '../core/state/state.ts';
import type { TelemetryState } from '../core/state/telemetry.ts';
import { type EpochNs, minNs } from '../core/time.ts';

/** A stored range, parseIsolated for many devices. */
interface IsolatedRange extends Interval {
  isOf(deviceId: string): boolean;
}

type Facts = Pick<Store, 'fact' | 'saveFact'>;

interface RequestedRange extends Interval {
  /** Ids; empty: all. */
  readonly devices: readonly string[];
  /** The coverage of each device that the backfill fills. */
  readonly states: readonly TelemetryState[];
}

/** Records a range that is about to be filled. */
export function noteIsolated(store: Facts, { from, to, devices, states }: RequestedRange): void {
  const isolated = createIsolatedRanges(store)();
  const except = states.filter((state) => isWantedAfter(isolated, state, { from, to })).map(({ deviceId }) => deviceId);
  const own = { from: String(from), to: String(to), devices: devices.length === 0 ? null : devices };
  const next: IsolatedText = except.length === 0 ? own : { ...own, except };
  const others = parseList<IsolatedText>(store.fact(BACKFILLED_APART)).filter((known) => !isWithin(known, next));
  store.saveFact(BACKFILLED_APART, JSON.stringify([...others, next]));
}

/** Returns whether the covered range of a device that the daemon keeps up to date ends within this range. */
function isWantedAfter(isolated: readonly IsolatedRange[], state: TelemetryState, { from, to }: Interval): boolean {
  return withoutIsolated(isolated, state)
    .slice(-2)
    .some((range) => from < range.to && range.to <= to);
}

function isWithin(a: IsolatedText, b: IsolatedText): boolean {
  const hasDevices = b.devices === null || a.devices?.every((id) => b.devices?.includes(id)) === true;
  return hasDevices && BigInt(a.from) >= BigInt(b.from) && BigInt(a.to) <= BigInt(b.to);
}

/** The isolated ranges of a state, parsed again only when they have changed. */
export type IsolatedRanges = () => readonly IsolatedRange[];

/** Creates a reader of the stored ranges. It parses them only when they have changed. */
export function createIsolatedRanges(store: Pick<Facts, 'fact'>): IsolatedRanges {
  let last: { readonly text: string | null; readonly ranges: readonly IsolatedRange[] } = { text: null, ranges: [] };
  return () => {
    const text = store.fact(BACKFILLED_APART);
    if (text !== last.text) last = { text, ranges: parseList<IsolatedText>(text).map(parseIsolated) };
    return last.ranges;
  };
}

function parseIsolated({ from, to, devices, except = [] }: IsolatedText): IsolatedRange {
  const [all, none] = [devices === null ? null : new Set(devices), new Set(except)];
  const isOf = (deviceId: string): boolean => all?.has(deviceId) !== false && !none.has(deviceId);
  return { from: BigInt(from), to: BigInt(to), isOf };
}

/** Returns the covered ranges of a device without its isolated ranges. */
function withoutIsolated(
  isolated: readonly IsolatedRange[],
  { deviceId, covered }: DeviceCoverage,
): readonly CoveredRange[] {
  const own = isolated.filter(({ isOf }) => isOf(deviceId));
  if (own.length === 0) return covered;
  return covered.filter(({ to }) => !own.some((each) => each.from < to && to <= each.to));
}

type DeviceCoverage = Pick<TelemetryState, 'deviceId' | 'covered'>;

/**
 * Returns where the wanted range of a device begins. Everything after the newest covered instant stays wanted, however
 * long the quota or an outage has delayed it.
 */
export function ownWantedFrom(isolated: readonly IsolatedRange[], state: DeviceCoverage, wantedFrom: EpochNs): EpochNs {
  const own = withoutIsolated(isolated, state);
  const last = own.at(-2) ?? own.at(-1);
  return last === undefined ? wantedFrom : minNs(wantedFrom, last.to);
}

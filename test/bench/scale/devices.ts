/**
 * The devices of `fill.ts`: most in order, of every hundred a few with something the matter.
 */
import { DAY_MS, HOUR_MS, MINUTE_MS, msToNs } from '../../../src/core/time.ts';
import { digestAt, intervalMsOf, type Timed } from './values.ts';

export interface Fill {
  readonly devices: number;
  /** Of all devices together. */
  readonly readings: number;
  /** Over so many days, evenly. */
  readonly days: number;
  /** Values of a reading. */
  readonly sensors: number;
  readonly seed: number;
  /** The URL of the destination that has acknowledged most of it. */
  readonly influx: string;
  /** When the newest reading was taken. */
  readonly newestMs: number;
  readonly onDay?: (day: number, of: number) => void;
}

/** How long a reading is awaited in these states. */
const SETTLE_MS = 2 * MINUTE_MS;

export interface FilledEdge {
  readonly atMs: number;
  readonly digest: string;
}

export interface FilledSpan {
  readonly fromMs: number;
  readonly toMs: number;
  readonly first: FilledEdge;
  readonly last: FilledEdge;
}

export interface FilledDevice extends Timed {
  readonly deviceId: string;
  readonly name: string;
  /** As the inventory keeps it. */
  readonly record: string;
  readonly covered: readonly FilledSpan[];
  readonly gap: { readonly fromMs: number; readonly toMs: number; readonly reason: string } | null;
  readonly goneSinceMs: number | null;
}

/** The problem of a device, by its number modulo 100. All others are in order. */
const oddities = {
  /** Gone for two days. */
  gone: 3,
  /** A gap of six hours a week ago, not understood. */
  misread: 17,
  /** A gap of a day that was not reached yet. */
  behind: 42,
  /** The first five days are beyond what the plan serves. */
  beyond: 71,
  /** Nothing for three hours, though it was seen. */
  late: 90,
} as const;

/** The devices of a state, by id. */
export function createDevices(fill: Fill): readonly FilledDevice[] {
  return Array.from({ length: fill.devices }, (_, index) => createDevice(index, fill));
}

function createDevice(index: number, fill: Fill): FilledDevice {
  const { newestMs, days, sensors, seed } = fill;
  const intervalMs = intervalMsOf(fill);
  const odd = index % 100;
  const phaseMs = ((index + seed) * 7919) % intervalMs;
  const onGrid = (atMs: number): number => phaseMs + Math.floor((atMs - phaseMs) / intervalMs) * intervalMs;
  const beginMs = newestMs - days * DAY_MS;
  const goneSinceMs = odd === oddities.gone ? newestMs - 2 * DAY_MS : null;
  const endMs = goneSinceMs ?? (odd === oddities.late ? newestMs - 3 * HOUR_MS : claimedToMs(newestMs));
  const liveGap = holeOf(odd, newestMs, beginMs);
  const timed = {
    index,
    phaseMs,
    newestReadingMs: onGrid(Math.min(endMs - 1, newestMs)),
    oldestReadingMs: onGrid(beginMs) + intervalMs,
    left: liveGap === null ? [] : [liveGap],
  };
  const edge = (atMs: number): FilledEdge => ({ atMs, digest: digestAt(timed, atMs, { sensors, intervalMs }) });
  const ranges =
    liveGap === null
      ? [{ fromMs: beginMs, toMs: endMs }]
      : [
          { fromMs: beginMs, toMs: liveGap.fromMs },
          { fromMs: liveGap.toMs, toMs: endMs },
        ];
  const covered = ranges
    .filter(({ fromMs, toMs }) => fromMs < toMs)
    .map(({ fromMs, toMs }) => ({
      fromMs,
      toMs,
      first: edge(onGrid(fromMs - 1) + intervalMs),
      last: edge(Math.min(onGrid(toMs - 1), timed.newestReadingMs)),
    }));
  const deviceId = `dev_${String(index).padStart(6, '0')}`;
  const name = `Sensor ${index}`;
  const seenMs = odd === oddities.late ? newestMs : timed.newestReadingMs;
  return {
    ...timed,
    deviceId,
    name,
    record: recordOf({ deviceId, name, seenMs, isGone: goneSinceMs !== null }),
    covered,
    gap: liveGap === null || liveGap.reason === null ? null : { ...liveGap, reason: liveGap.reason },
    goneSinceMs,
  };
}

function holeOf(
  odd: number,
  newestMs: number,
  beginMs: number,
): { fromMs: number; toMs: number; reason: string | null } | null {
  const weekAgoMs = Math.max(beginMs, newestMs - 7 * DAY_MS);
  if (odd === oddities.misread) {
    return { fromMs: weekAgoMs, toMs: weekAgoMs + 6 * HOUR_MS, reason: 'page_rejected' };
  }
  if (odd === oddities.behind) return { fromMs: weekAgoMs, toMs: weekAgoMs + DAY_MS, reason: null };
  if (odd === oddities.beyond) return { fromMs: beginMs, toMs: beginMs + 5 * DAY_MS, reason: 'beyond_plan' };
  return null;
}

function recordOf(of: { deviceId: string; name: string; seenMs: number; isGone: boolean }): string {
  return JSON.stringify({
    deviceId: of.deviceId,
    name: of.name,
    modelId: 'model-a',
    firmwareVersion: '1.2.3',
    isAddon: false,
    parentDeviceId: null,
    lifecycleStatus: 'active',
    online: !of.isGone,
    presence: of.isGone ? 'offline' : 'online',
    lastSeenAt: `${msToNs(of.seenMs)}`,
    latitude: null,
    longitude: null,
    locationUpdatedAt: `${msToNs(of.seenMs - 90 * MINUTE_MS)}`,
    tags: ['bench'],
  });
}

/** The expected report of a device without problems. */
function claimedToMs(newestMs: number): number {
  return newestMs + 4 * MINUTE_MS - SETTLE_MS;
}

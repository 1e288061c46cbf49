/**
 * The range of time that a telemetry request speaks of (API document, "Telemetry window").
 *
 * Whatever the bounds mean by the settings, the outcome is one half-open range of nanoseconds, fixed for the first page
 * and all that follow. A request with `before` alone reaches as far back as the plan allows.
 */
import {
  DAY_NS,
  type EpochMs,
  type EpochNs,
  floorToSecond,
  maxNs,
  msToNs,
  parseTimestamp,
  SECOND_NS,
} from '../core/time.ts';
import { invalidRequest, Refusal } from './refusal.ts';
import type { BoundShape, SimSettings } from './settings.ts';

/** Readings with `fromNs <= recorded_at < toNs` are in the window. */
export interface TelemetryWindow {
  readonly fromNs: EpochNs;
  readonly toNs: EpochNs;
}

/** @throws Refusal where the bounds cannot be read, are too far apart or are not allowed. */
export function resolveWindow(query: URLSearchParams, settings: SimSettings, nowMs: EpochMs): TelemetryWindow {
  const { bounds, plan } = settings;
  const afterNs = readBound('after', query, bounds.formats);
  const beforeNs = readBound('before', query, bounds.formats);
  const shape = shapeOf(afterNs, beforeNs);
  if (bounds.refusedShapes.includes(shape)) throw invalidRequest(shape, 'is not a supported combination of bounds.');
  const nowNs = msToNs(nowMs);
  const endNs = beforeNs ?? nowNs;
  const widestNs = plan.historyMaxDays === null ? null : BigInt(plan.historyMaxDays) * DAY_NS;
  const beginNs = afterNs ?? (widestNs === null ? 0n : endNs - widestNs);
  if (beginNs > endNs && bounds.reversed === 'refused') throw invalidRequest('after', 'must not be later than before.');
  if (widestNs !== null && endNs - beginNs > widestNs) throw rangeTooLarge(plan.historyMaxDays);
  const oldestNs = widestNs === null ? 0n : nowNs - widestNs;
  if (bounds.age === 'refused' && beginNs < oldestNs) throw rangeTooLarge(plan.historyMaxDays);
  const fromNs = afterNs === null ? beginNs : lowest(afterNs, bounds);
  return {
    fromNs: bounds.age === 'empty' ? maxNs(fromNs, oldestNs) : fromNs,
    toNs: beforeNs === null ? nowNs + 1n : beyondHighest(beforeNs, bounds),
  };
}

function shapeOf(afterNs: EpochNs | null, beforeNs: EpochNs | null): BoundShape {
  if (afterNs === null) return beforeNs === null ? 'none' : 'before';
  return beforeNs === null ? 'after' : 'both';
}

function rangeTooLarge(days: number | null): Refusal {
  return new Refusal(400, 'range_too_large', `The time range is too wide: the plan allows ${days} days.`);
}

const FORMATS: Record<SimSettings['bounds']['formats'], RegExp> = {
  any: /^/,
  utc: /[Zz]$/,
  'utc-seconds': /^[^.]*Z$/,
};

function readBound(
  name: 'after' | 'before',
  query: URLSearchParams,
  formats: SimSettings['bounds']['formats'],
): EpochNs | null {
  const given = query.get(name);
  if (given === null) return null;
  const parsed = FORMATS[formats].test(given) ? parseTimestamp(given) : null;
  if (parsed === null) throw invalidRequest(name, 'must be an RFC 3339 timestamp.');
  return parsed;
}

/** The earliest time that satisfies `after`. */
function lowest(afterNs: EpochNs, { after, resolution }: SimSettings['bounds']): EpochNs {
  if (resolution === 'exact') return after === 'inclusive' ? afterNs : afterNs + 1n;
  const second = floorToSecond(afterNs);
  return after === 'inclusive' ? second : second + SECOND_NS;
}

/** The earliest time that no longer satisfies `before`. */
function beyondHighest(beforeNs: EpochNs, { before, resolution }: SimSettings['bounds']): EpochNs {
  if (resolution === 'exact') return before === 'exclusive' ? beforeNs : beforeNs + 1n;
  const second = floorToSecond(beforeNs);
  return before === 'exclusive' ? second : second + SECOND_NS;
}

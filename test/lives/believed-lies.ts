/**
 * False pages that the program has to accept: several about one device in a row cannot be distinguished from true ones.
 * Their ranges are requested again after an hour and after a day.
 */
import { type EpochMs, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import type { Stage } from './stage.ts';
import type { Misfortune } from './story.ts';

/** A page that was served. */
export interface ServedPage {
  readonly path: string;
  readonly atMs: EpochMs;
}

/** A false one. */
export interface ServedLie extends ServedPage {
  /** The name of the misfortune. */
  readonly name: string;
}

/** For how long false pages continue until they are accepted despite contrary evidence. */
export const BELIEVED_AFTER_MS = 30 * MINUTE_MS;
/** For how long a page of one device supports empty answers about another. */
const VOUCHES_MS = 2 * MINUTE_MS;
/** Within what time a further false page confirms the first. */
const CONFIRMED_WITHIN_MS = 5 * MINUTE_MS;
/** How long an answer is under way at the most: what comes meanwhile is there before it. */
const UNDER_WAY_MS = 30 * SECOND_MS;

/** Whether answers about devices were true so shortly before all of them became empty that one supports these. */
export function isVouchedFor({ simulator }: Stage, { what, fromMs }: Misfortune): boolean {
  const beganMs = fromMs + simulator.settings.time.offsetMs;
  const isPage = ({ path, status }: { readonly path: string; readonly status: number | null }): boolean =>
    path.endsWith('/telemetry') && status === 200;
  return (
    (what.kind === 'lies always' || what.kind === 'lies') &&
    simulator.log.requests.some((each) => isPage(each) && beganMs - VOUCHES_MS <= each.atMs && each.atMs < beganMs)
  );
}

/**
 * Since when false pages about a device may be accepted; infinite where they may not.
 *
 * - Two empty ones shortly after each other: at once beside true pages of others, or where the device list may have no
 * last-seen time of a device; else after half an hour. True pages come beside a rate of 1, too: slow ones are true.
 * - Pages without their newest readings: once these have been missing for half an hour; three that stop short of the
 * sign
 *   of life at once where answers have no `Date`.
 * - Old windows without a reading, more than a window away from every stored one: at once.
 */
export function believedFromMs(stage: Stage, each: Misfortune, deviceId: string): EpochMs {
  const { what, name } = each;
  if (what.kind !== 'lies') return Infinity;
  const path = `/devices/${encodeURIComponent(deviceId)}/telemetry`;
  const reported = stage.fate.reported.filter((lie) => lie.name === name && lie.path === path).map(({ atMs }) => atMs);
  const first = reported[0] ?? Infinity;
  if (what.lie === 'without the newest' && stage.story.api.time?.date === 'absent') {
    return reported.find((atMs, index) => atMs - (reported[index - 2] ?? -Infinity) < CONFIRMED_WITHIN_MS) ?? Infinity;
  }
  if (what.lie === 'an old window without a reading') return first;
  if (what.lie.endsWith('newest')) {
    return reported.find((atMs) => atMs - first >= BELIEVED_AFTER_MS) ?? Infinity;
  }
  if (what.lie !== 'empty') return Infinity;
  const seconds = reported.filter((atMs, index) => atMs - (reported[index - 1] ?? -Infinity) < CONFIRMED_WITHIN_MS);
  const second = seconds[0] ?? Infinity;
  if (what.rate < 1 || isVouchedFor(stage, each) || (stage.story.api.surprises?.missingFields ?? 0) > 0) return second;
  const vouched = seconds.find((atMs) => isBesideTruePage(stage, { path, atMs })) ?? Infinity;
  return Math.min(vouched, second + BELIEVED_AFTER_MS);
}

/** Whether a true page of another device with readings came shortly before an empty one. */
function isBesideTruePage({ truePages }: Stage, empty: ServedPage): boolean {
  return truePages.some(
    ({ path, atMs }) => path !== empty.path && empty.atMs - VOUCHES_MS <= atMs && atMs <= empty.atMs + UNDER_WAY_MS,
  );
}

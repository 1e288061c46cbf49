/**
 * What a backfill is asked for, as it travels in a job: plain JSON.
 */
import type { EpochMs } from '../time.ts';

/** What is asked for, as it travels in a job: plain JSON. Times are nanoseconds since 1970, as texts. */
export interface BackfillArgs {
  /** `all`: as far back as there is anything. */
  readonly from: string;
  /** `null`: up to what can be claimed when it begins. */
  readonly to: string | null;
  /** Where that was, of a job that was begun before: the end stays where it was however often the daemon restarts. */
  readonly begunTo?: string | undefined;
  /** Ids; none: all of them. */
  readonly devices: readonly string[];
  /** The part of the share that it may take, above 0 and up to 1; `null`: all of it. */
  readonly maxShare: number | null;
  /** When it should have come to its end; it goes no faster than that takes. `null`: as soon as it may. */
  readonly finishByMs: EpochMs | null;
}

const TIME = /^\d{1,19}$/;

/** Whether something that stands in the state is what a backfill can be asked for. */
export function isBackfillArgs(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const { from, to, begunTo, devices, maxShare, finishByMs } = value as Readonly<Record<string, unknown>>;
  return (
    typeof from === 'string' &&
    (from === 'all' || TIME.test(from)) &&
    (to === null || (typeof to === 'string' && TIME.test(to))) &&
    (begunTo === undefined || (typeof begunTo === 'string' && TIME.test(begunTo))) &&
    Array.isArray(devices) &&
    devices.every((id) => typeof id === 'string') &&
    (maxShare === null || (typeof maxShare === 'number' && maxShare > 0 && maxShare <= 1)) &&
    (finishByMs === null || (typeof finishByMs === 'number' && Number.isFinite(finishByMs)))
  );
}

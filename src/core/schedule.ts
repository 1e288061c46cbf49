/**
 * When something is due, as the motion sees it: `schedule/` reads cron expressions into this.
 */
import type { Stream } from './ports.ts';
import type { EpochMs } from './time.ts';

/** A rule that names times, in UTC. Pure: the present is an argument. */
export interface Schedule {
  /** As it was written. */
  readonly text: string;
  /** The first time later than `afterMs` that it names; `null` where it names none for years. */
  next(afterMs: EpochMs): EpochMs | null;
}

/** When each stream of the API is due. */
export type Schedules = Readonly<Record<Stream, Schedule>>;

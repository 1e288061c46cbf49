/** Settings and arguments of the program as they are by default, for tests that change a part of them. */
import { readCron } from '../../src/config/cron.ts';
import { createFilter, type DeviceFilter } from '../../src/core/filter.ts';
import type { PollSettings, Schedule, Schedules } from '../../src/core/ports.ts';
import { END_OF_TIME } from '../../src/core/state/archive.ts';
import type { ReplayArgs } from '../../src/core/state/job-args.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import type { SyncSettings } from '../../src/ingest/context.ts';

/** The filter that leaves nothing out. */
export const KEEP_ALL: DeviceFilter = createFilter({
  include: [],
  exclude: [],
  excludeSensors: [],
  includesLocation: true,
});

/** How often devices without news are polled. */
export const POLLS: PollSettings = { idlePollMs: 6 * HOUR_MS, gonePollMs: DAY_MS, fullPollMs: 15 * MINUTE_MS };

/** The arguments of a replay: of everything, into every destination. */
export function replayArgs(changes: Partial<ReplayArgs> = {}): ReplayArgs {
  return {
    destination: null,
    devices: [],
    typed: { from: null, to: null },
    from: '0',
    to: String(END_OF_TIME),
    maxRate: null,
    ...changes,
  };
}

/** The schedule of a cron expression. */
export function cron(text: string): Schedule {
  const read = readCron(text);
  if ('mistake' in read) throw new Error(read.mistake);
  return read;
}

/** How often each stream is polled. */
export const SCHEDULES: Schedules = {
  devices: cron('*/5 * * * *'),
  telemetry: cron('* * * * *'),
  alerts: cron('*/2 * * * *'),
  account: cron('0 * * * *'),
};

/** The settings of a sync that reads this much history. */
export function syncSettings(changes: Pick<SyncSettings, 'history'> & Partial<SyncSettings>): SyncSettings {
  return {
    gracePeriodMs: 2 * MINUTE_MS,
    concurrency: 4,
    workspaceTag: null,
    filter: KEEP_ALL,
    schedules: SCHEDULES,
    polls: POLLS,
    ...changes,
  };
}

/** Settings and arguments of the program as they are by default, for tests that change a part of them. */
import { createFilter, type DeviceFilter } from '../../src/core/filter.ts';
import type { PollSettings } from '../../src/core/ports.ts';
import { END_OF_TIME } from '../../src/core/state/archive.ts';
import type { ReplayArgs } from '../../src/core/state/job-args.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';

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

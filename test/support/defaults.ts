/** Settings of the program as they are by default, for tests that change a part of them. */
import { createFilter, type DeviceFilter } from '../../src/core/filter.ts';
import type { PollSettings } from '../../src/core/ports.ts';
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

/** How often devices without news are polled, as by default. */

import type { PollSettings } from '../../src/core/ports.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';

export const POLLS: PollSettings = { idlePollMs: 6 * HOUR_MS, gonePollMs: DAY_MS, fullPollMs: 15 * MINUTE_MS };

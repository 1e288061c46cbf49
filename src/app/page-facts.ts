/**
 * What the status page shows, as it may be shown: without a secret, whatever device, alert or event bears it.
 */

import type { PageFacts } from '../core/page-facts.ts';
import { createRecentEvents } from '../observe/recent-events.ts';
import type { Scrub } from '../observe/scrub.ts';
import type { Sync } from './open-sync.ts';
import { realClock } from './real-clock.ts';

/** Listens from now on, and tells. */
export function pageFactsOf(sync: Pick<Sync, 'listen' | 'pageFacts'>, scrub: Scrub): PageFacts {
  const recent = createRecentEvents({ clock: realClock, scrub });
  sync.listen(recent.observe);
  const { devices, device, alerts } = sync.pageFacts(recent.latest);
  const clean = <T>(facts: T): T => JSON.parse(scrub(JSON.stringify(facts)));
  return {
    devices: (query) => clean(devices(query)),
    device: async (deviceId, spanSeconds) => clean(await device(deviceId, spanSeconds)),
    alerts: () => clean(alerts()),
    events: recent.latest,
  };
}

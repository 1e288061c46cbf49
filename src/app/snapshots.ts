/**
 * What is shown of a running sync, to people and to programs, with every secret removed, whatever device, alert or event
 * bears it.
 *
 * The whole report costs a scan of every device: it is kept for a moment, and says itself when it was made. The page uses
 * the last scan that was made anyway, and shows how old that is.
 */
import type { PageFacts } from '../core/page-facts.ts';
import type { Clock } from '../core/ports.ts';
import type { HealthReport, ReadyReport, StatusOverview, StatusReport } from '../core/status.ts';
import { createRecentEvents } from '../observe/log.ts';
import type { Scrub } from '../observe/scrub.ts';
import type { Sync } from './open-sync.ts';
import { realClock } from './real-clock.ts';

/** For how long a report is as good as a new one. */
const GOOD_FOR_MS = 1000;

interface SnapshotParts {
  readonly report: () => StatusReport;
  readonly overview: () => StatusOverview;
  /** The age of the scan of the devices that the overview uses. */
  readonly ageMs: () => number;
  readonly health: () => HealthReport;
  readonly ready: () => ReadyReport;
  /** Removes secrets from a text. */
  readonly scrub: Scrub;
  readonly clock: Pick<Clock, 'monoMs'>;
}

interface Snapshots {
  readonly report: () => StatusReport;
  /** What the page begins with. */
  readonly overview: () => {
    readonly report: StatusOverview;
    readonly ageSeconds: number;
    readonly health: HealthReport;
    readonly ready: ReadyReport;
  };
}

/** Prepares both. */
export function createSnapshots({ report, overview, ageMs, health, ready, scrub, clock }: SnapshotParts): Snapshots {
  let kept: { readonly report: StatusReport; readonly atMs: number } | null = null;
  return {
    report: () => {
      const nowMs = clock.monoMs();
      if (kept === null || nowMs - kept.atMs >= GOOD_FOR_MS) kept = { report: scrubbed(report(), scrub), atMs: nowMs };
      return kept.report;
    },
    overview: () => {
      const shown = scrubbed(overview(), scrub);
      return { report: shown, ageSeconds: Math.round(ageMs() / 1000), health: health(), ready: ready() };
    },
  };
}

/** What the status page shows beside that. Keeps the recent events from now on. */
export function createShownFacts(sync: Pick<Sync, 'listen' | 'pageFacts'>, scrub: Scrub): PageFacts {
  const recent = createRecentEvents({ clock: realClock, scrub });
  sync.listen(recent.observe);
  const { devices, device, alerts } = sync.pageFacts(recent.latest);
  return {
    devices: (query) => scrubbed(devices(query), scrub),
    device: async (deviceId, spanSeconds) => scrubbed(await device(deviceId, spanSeconds), scrub),
    alerts: () => scrubbed(alerts(), scrub),
    events: recent.latest,
  };
}

/** A copy of plain data with every text scrubbed. */
function scrubbed<T>(value: T, scrub: Scrub): T {
  return JSON.parse(scrub(JSON.stringify(value))) as T;
}

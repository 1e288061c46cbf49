/**
 * Reports about a running sync, for people and programs, with every secret removed, even one in the name of a device.
 *
 * A whole report needs a scan of all devices, so it is reused for a second and states when it was made. The page uses
 * the last scan that was made for other reasons, and shows its age.
 */
import { StateFullError } from '../core/archive-room.ts';
import { type PageFacts, RECENT_EVENTS } from '../core/page-facts.ts';
import type { Clock } from '../core/ports.ts';
import type { HealthReport, ReadyReport, StatusOverview, StatusReport } from '../core/status.ts';
import { createRecentEvents } from '../observe/log.ts';
import type { Scrub } from '../observe/scrub.ts';
import type { Sync } from './open-sync.ts';
import { realClock } from './real-clock.ts';

/** For how long a report is reused. */
const GOOD_FOR_MS = 1000;

interface SnapshotParts {
  readonly report: () => StatusReport;
  readonly overview: () => StatusOverview;
  /** The age of the scan that the overview uses, in ms. */
  readonly ageMs: () => number;
  readonly health: () => HealthReport;
  readonly ready: () => ReadyReport;
  /** Removes secrets from a text. */
  readonly scrub: Scrub;
  readonly clock: Pick<Clock, 'monoMs'>;
}

interface Snapshots {
  readonly report: () => StatusReport;
  /** What the status page shows first. */
  readonly overview: () => {
    readonly report: StatusOverview;
    readonly ageSeconds: number;
    readonly health: HealthReport;
    readonly ready: ReadyReport;
  };
}

/** Creates the functions that return the report and the overview. */
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

/** What the status page shows beside the report. */
interface ShownFacts {
  readonly facts: PageFacts;
  /** Keeps the recent events in the state, where there are new ones, for the next process. */
  readonly keepEvents: () => void;
}

/** Prepares it. Listens to the events from now on. */
export function createShownFacts(
  sync: Pick<Sync, 'listen' | 'onForgotten' | 'pageFacts' | 'context'>,
  scrub: Scrub,
): ShownFacts {
  const { store } = sync.context;
  const recent = createRecentEvents({ clock: realClock, scrub, before: store.fact(RECENT_EVENTS) });
  sync.listen(recent.observe);
  sync.onForgotten(recent.forget);
  const { devices, device, alerts } = sync.pageFacts(recent.latest);
  return {
    facts: {
      devices: (query) => scrubbed(devices(query), scrub),
      device: async (deviceId, spanSeconds) => scrubbed(await device(deviceId, spanSeconds), scrub),
      alerts: () => scrubbed(alerts(), scrub),
      events: recent.latest,
    },
    keepEvents: () => {
      const text = recent.takeUnkept();
      try {
        if (text !== null) store.saveFact(RECENT_EVENTS, text);
      } catch (error) {
        // They are in the log.
        if (!(error instanceof StateFullError)) throw error;
      }
    },
  };
}

/** Returns a copy of plain data with every text scrubbed. */
function scrubbed<T>(value: T, scrub: Scrub): T {
  return JSON.parse(scrub(JSON.stringify(value))) as T;
}

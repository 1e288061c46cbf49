/**
 * What is looked at when somebody asks how it stands, with every secret hidden.
 *
 * The whole report costs a look at every device: one that is asked for again within a moment is the same one, and says
 * itself when it was made. The page goes by a look that was made anyway, and is told how old that is.
 */
import type { Clock } from '../core/ports.ts';
import type { HealthReport, ReadyReport, StatusOverview, StatusReport } from '../core/status.ts';

/** For how long a report is as good as a new one. */
const GOOD_FOR_MS = 1000;

export interface LookParts {
  readonly report: () => StatusReport;
  readonly overview: () => StatusOverview;
  /** How old the look at the devices is that the overview goes by. */
  readonly ageMs: () => number;
  readonly health: () => HealthReport;
  readonly ready: () => ReadyReport;
  /** Hides secrets in a text. */
  readonly scrub: (text: string) => string;
  readonly clock: Pick<Clock, 'monoMs'>;
}

export interface Looks {
  readonly report: () => StatusReport;
  /** What the page begins with. */
  readonly look: () => {
    readonly report: StatusOverview;
    readonly ageSeconds: number;
    readonly health: HealthReport;
    readonly ready: ReadyReport;
  };
}

/** Prepares both. */
export function createLooks({ report, overview, ageMs, health, ready, scrub, clock }: LookParts): Looks {
  // Every text of it is gone through: what is told of is plain data.
  const hidden = <T>(value: T): T => JSON.parse(scrub(JSON.stringify(value))) as T;
  let kept: { readonly report: StatusReport; readonly atMs: number } | null = null;
  return {
    report: () => {
      const nowMs = clock.monoMs();
      if (kept === null || nowMs - kept.atMs >= GOOD_FOR_MS) kept = { report: hidden(report()), atMs: nowMs };
      return kept.report;
    },
    look: () => {
      const shown = hidden(overview());
      return { report: shown, ageSeconds: Math.round(ageMs() / 1000), health: health(), ready: ready() };
    },
  };
}

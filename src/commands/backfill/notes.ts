/**
 * What is heard of a backfill while it runs: what its requests brought, and what stands in its way.
 */
import type { AppEvent } from '../../core/events.ts';
import type { Clock } from '../../core/ports.ts';
import { MINUTE_MS } from '../../core/time.ts';

export interface BackfillCounts {
  readonly requests: number;
  readonly readings: number;
  readonly points: number;
}

export interface BackfillNotes {
  observe(event: AppEvent): void;
  /** Begins to count anew. */
  begin(): void;
  counts(): BackfillCounts;
  /** Requests a minute lately; `null` while too few were made to tell. */
  perMinute(): number | null;
  /** Whether its last request came to nothing, or the service does not answer at all. */
  isFailing(): boolean;
  /** Why the key is of no use now; `null` while it is. */
  refusal(): string | null;
  /** The scope that it lacks for telemetry. */
  lackedScope(): string | null;
}

/** What the rate goes by. */
const RATE_OVER_MS = 5 * MINUTE_MS;
const LEAST_REQUESTS = 3;

export function createBackfillNotes(clock: Clock): BackfillNotes {
  let counts = { requests: 0, readings: 0, points: 0 };
  let recent: number[] = [];
  let beganMs = clock.monoMs();
  const troubles = { service: false, request: false };
  let refusal: string | null = null;
  let scope: string | null = null;

  const noteRequest = (fault: string | null): void => {
    counts = { ...counts, requests: counts.requests + 1 };
    const nowMs = clock.monoMs();
    recent = [...recent.filter((atMs) => nowMs - atMs < RATE_OVER_MS), nowMs].slice(-RECENT_AT_MOST);
    // A wait that is asked for is no failure; a refusal for what was asked has its own name and rest.
    troubles.request = fault !== null && FAILURES.has(fault);
  };
  const notePage = (readings: number, points: number): void => {
    counts = { ...counts, readings: counts.readings + readings, points: counts.points + points };
  };
  const noteScope = (event: AppEvent): void => {
    if (event.type === 'stream-off' && event.stream === 'telemetry') ({ scope } = event);
    if (event.type === 'stream-on' && event.stream === 'telemetry') scope = null;
  };
  return {
    observe: (event) => {
      switch (event.type) {
        case 'request-done':
          if (event.lane === 'backfill') noteRequest(event.fault);
          return;
        case 'page-landed':
          if (event.lane === 'backfill') notePage(event.readings, event.newPoints);
          return;
        case 'service-trouble':
        case 'service-back':
          troubles.service = event.type === 'service-trouble';
          return;
        case 'key-refused':
          refusal = event.message;
          return;
        case 'workspace-known':
          refusal = null;
          return;
        default:
          noteScope(event);
      }
    },
    begin: () => {
      counts = { requests: 0, readings: 0, points: 0 };
      recent = [];
      beganMs = clock.monoMs();
      troubles.request = false;
    },
    counts: () => counts,
    perMinute: () => {
      const nowMs = clock.monoMs();
      const made = recent.filter((atMs) => nowMs - atMs < RATE_OVER_MS);
      const first = made[0];
      if (first === undefined || made.length < LEAST_REQUESTS) return null;
      const overMs = Math.max(
        1,
        made.length < RECENT_AT_MOST ? Math.min(nowMs - beganMs, RATE_OVER_MS) : nowMs - first,
      );
      return (made.length * MINUTE_MS) / overMs;
    },
    isFailing: () => troubles.service || troubles.request,
    refusal: () => refusal,
    lackedScope: () => scope,
  };
}

const RECENT_AT_MOST = 1000;

const FAILURES: ReadonlySet<string> = new Set(['unreachable', 'server-fault', 'malformed']);

/**
 * A naive telemetry service over a list of readings, and a scanner that closes the gaps of a coverage with only the
 * rules of a page scan. After every answer the walker holds the rules to their promise: what counts as proven was
 * served.
 */
import { addRange, type CoveredRange, gapsIn, overlapsOf } from '../../src/core/coverage.ts';
import type { Interval } from '../../src/core/intervals.ts';
import type { Cursor, Reading, TelemetryPage } from '../../src/core/records.ts';
import { ceilToSecond, type EpochNs, floorToSecond } from '../../src/core/time.ts';
import { judgePage } from '../../src/ingest/judge-page.ts';
import { nextRequest, type PageRequest, requestFor, type WindowLimits } from '../../src/ingest/page-request.ts';
import { edgeOf } from '../core/support/readings.ts';

/** The variants that the API document leaves open to a service. */
export interface ServiceHabits {
  readonly pageSize: number;
  readonly afterIncluded: boolean;
  readonly beforeIncluded: boolean;
  /** How the time of a reading is rounded when it is compared with the bounds. */
  readonly rounding: 'none' | 'down' | 'up';
  /** Whether a full last page names a next one, which is empty then. */
  readonly emptyLastPage: boolean;
}

export type Service = (request: PageRequest) => TelemetryPage;

const ROUND: Readonly<Record<ServiceHabits['rounding'], (at: EpochNs) => EpochNs>> = {
  none: (at) => at,
  down: floorToSecond,
  up: ceilToSecond,
};

/** A service over readings in ascending order. Its cursors carry the window and how much of it was served. */
export function createService(readings: readonly Reading[], habits: ServiceHabits): Service {
  const newestFirst = readings.toReversed();
  const { pageSize, afterIncluded, beforeIncluded, emptyLastPage } = habits;
  const inWindow = (request: PageRequest, recordedAt: EpochNs): boolean => {
    const seenAs = ROUND[habits.rounding](recordedAt);
    const above = afterIncluded ? seenAs >= request.after : seenAs > request.after;
    return above && (request.before === null || (beforeIncluded ? seenAs <= request.before : seenAs < request.before));
  };
  return (request) => {
    const window = newestFirst.filter(({ recordedAt }) => inWindow(request, recordedAt));
    const from = request.cursor === null ? 0 : Number(request.cursor.split(' ')[2]);
    const to = from + pageSize;
    const more = emptyLastPage ? to <= window.length : to < window.length;
    return {
      deviceId: request.deviceId,
      readings: window.slice(from, to),
      rejected: [],
      nextCursor: more ? (`${request.after} ${request.before} ${to}` as Cursor) : null,
    };
  };
}

/** The setting of a page scan: all readings, the coverage at its start, and the wanted range. */
export interface Scene {
  /** Ascending. */
  readonly readings: readonly Reading[];
  readonly wanted: Interval;
  readonly held: readonly CoveredRange[];
  readonly limits: WindowLimits;
  /** Whether live requests extend into the covered range. */
  readonly reachesBack?: boolean;
}

export interface Walked {
  readonly covered: readonly CoveredRange[];
  readonly requests: number;
  /** All readings that were served. */
  readonly served: ReadonlySet<Reading>;
  /** The answers that proved nothing, each with its reason. */
  readonly distrusted: readonly string[];
}

/** A range as covered after all its readings were seen. */
export function holdAll(range: Interval, readings: readonly Reading[]): CoveredRange {
  const inside = readings.filter(({ recordedAt }) => range.from <= recordedAt && recordedAt < range.to);
  const [first, last] = [inside[0], inside.at(-1)];
  return { ...range, first: first ? edgeOf(first) : null, last: last ? edgeOf(last) : null };
}

/**
 * Closes all gaps of the wanted range, newest first.
 *
 * @throws Error if a range is covered whose readings were not all served, or that was not requested, and if the scan
 * needs more than `maxRequests`
 */
export function walkAll(scene: Scene, service: Service, maxRequests: number): Walked {
  const run = createRun(scene, maxRequests);
  for (let gap = run.nextGap(); gap !== null; gap = run.nextGap()) walkGap(scene, { gap, run, service });
  return run.result();
}

type Run = ReturnType<typeof createRun>;

function walkGap(scene: Scene, { gap, run, service }: { gap: Interval; run: Run; service: Service }): void {
  const { near, far } = overlapsOf(gap, run.covered());
  const live = gap.to === scene.wanted.to && near === null;
  let empties = 0;
  const below = scene.reachesBack === true ? run.covered().find(({ to }) => to === gap.from) : undefined;
  const question = { deviceId: 'd1', gap, near, far, live, lateFrom: below?.from ?? null };
  let request: PageRequest | null = requestFor(question, scene.limits);
  while (request !== null) {
    run.countRequest();
    const page: TelemetryPage = service(request);
    const judged = judgePage(request, page, {
      visibleFromNs: null,
      emptyBefore: empties,
      accepts: 'none',
      seenAt: null,
    });
    run.take(request, judged);
    if (judged.next !== 'again') {
      empties = 0;
      request = nextRequest(request, judged, { page, gap, far, limits: scene.limits });
    } else if (judged.overlapMissing !== null) request = { ...request, cursor: null, nearSeen: request.near === null };
    else if (judged.readings.length === 0) empties += 1;
  }
}

function createRun({ readings, wanted, held }: Scene, maxRequests: number) {
  const served = new Set<Reading>();
  const distrusted: string[] = [];
  let covered = held;
  let requests = 0;
  const check = (request: PageRequest, covers: Interval): void => {
    if (covers.from < request.gap.from || covers.to > request.gap.to) throw new Error('claimed beyond what was asked');
    const lost = readings.filter(
      (reading) => covers.from <= reading.recordedAt && reading.recordedAt < covers.to && !served.has(reading),
    );
    if (lost.length > 0) throw new Error(`claimed, but ${lost.length} readings were never served`);
  };
  return {
    nextGap: (): Interval | null => gapsIn(wanted, covered).at(-1) ?? null,
    covered: () => covered,
    countRequest: (): void => {
      requests += 1;
      if (requests > maxRequests) throw new Error(`more than ${maxRequests} requests`);
    },
    take: (request: PageRequest, { readings: kept, covers, next, reason }: ReturnType<typeof judgePage>): void => {
      for (const reading of kept) served.add(reading);
      if (next === 'again') distrusted.push(reason ?? '');
      if (covers === null) return;
      check(request, covers);
      covered = addRange(covered, covers);
    },
    result: (): Walked => ({ covered, requests, distrusted, served }),
  };
}

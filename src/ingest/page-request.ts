/**
 * The requests of a page scan: what to request for a gap of one device, and what to request next.
 *
 * Pure. A request extends beyond the gap to the stored readings on both sides, the overlap readings. The near one lies
 * above the gap: the scan continues from it into the past. The far one lies below the gap: the scan ends there. If an
 * answer shows both, no reading between them can be missing; see `judge-page.ts`.
 */
import type { Edge } from '../core/coverage.ts';
import type { Interval } from '../core/intervals.ts';
import { readingDigest } from '../core/lines/points.ts';
import type { Cursor, Reading, TelemetryPage } from '../core/records.ts';
import { ceilToSecond, DAY_NS, type EpochNs, floorToSecond, HOUR_NS, maxNs, minNs, SECOND_NS } from '../core/time.ts';

/**
 * How much wider than needed every bound is. Bounds may be exclusive, truncated to seconds, or both, on a service that
 * stores its times more precisely than it serves them.
 */
export const SLACK_NS = 2n * SECOND_NS;

/** A request for a page, and what its answer must contain. */
export interface PageRequest {
  readonly deviceId: string;
  /** The range that a complete answer would cover. */
  readonly gap: Interval;
  readonly after: EpochNs;
  /** `null` for a live request, which includes everything newer. */
  readonly before: EpochNs | null;
  /** The overlap readings that the answer must contain; `null` if none is stored within reach. */
  readonly near: Edge | null;
  readonly far: Edge | null;
  /** The next page of the same window. Set if a request by time would make no progress. */
  readonly cursor: Cursor | null;
  /** Whether an earlier page of the same window has shown `near`. */
  readonly nearSeen: boolean;
  /** With a cursor: the oldest time of the previous page. No later reading may come after it. */
  readonly below?: EpochNs | null;
  /** With a cursor: the pages of the chain so far. */
  readonly chain?: Chain;
}

/** The readings that the pages of a chain of cursors have shown for the instant that they have reached (`below`). */
interface Chain {
  /** The readings with that instant, by their digests. Shared along the chain. */
  readonly shown: Set<string>;
  /** How many of the last pages in a row had only such readings. */
  readonly idlePages: number;
}

/** How many readings of one instant are remembered, so that a hostile service cannot fill the memory. */
const SHOWN_MOST = 100_000;

/** The progress of a scan: where the next request continues. */
export interface Progress {
  /**
   * - `done`: the window was read to its end.
   * - `time`: continue below the oldest reading, with that reading as the overlap reading.
   * - `cursor`: continue by `next_cursor`, because a request by time would make no progress.
   * - `again`: the answer covers nothing (`reason`): request the same again.
   */
  readonly next: 'done' | 'time' | 'cursor' | 'again';
  /** The oldest reading of the page: where the scan continues. */
  readonly oldest: Edge | null;
  /** Whether this page or an earlier one of the same window has shown the near overlap reading. */
  readonly nearSeen: boolean;
}

/** The plan's limits of a window. */
export interface WindowLimits {
  /** The widest range that a request may have; `null`: any. */
  readonly widthNs: bigint | null;
  /** The server's time now, as well as it is known. */
  readonly nowNs: EpochNs;
  /** Whether the service rejects `after` alone, so that a live request names the present as its end. */
  readonly bothBounds: boolean;
}

/** A gap to request, with the stored readings on both sides of it. */
export interface OpenGap extends Pick<PageRequest, 'deviceId' | 'gap' | 'near' | 'far'> {
  /** Whether the gap ends at the coverage limit, so that no stored reading lies above it. */
  readonly live: boolean;
  /** How far below the gap the request may extend to find late readings, over the covered part of the wanted range. */
  readonly lateFrom?: EpochNs | null;
}

/**
 * The window that the plan's figure allows, minus an hour, so that rounding and slack stay inside it. A figure of no
 * days is read as one hour, because some window must be possible.
 */
export function maxWidthNs(historyMaxDays: number | null): bigint | null {
  if (historyMaxDays === null) return null;
  return maxNs(BigInt(Math.floor(historyMaxDays)) * DAY_NS - HOUR_NS, HOUR_NS);
}

/**
 * Turns a gap into a request: its newest part that fits one window, with the bounds extended outwards over the overlap
 * readings. An overlap reading that does not fit is left out; so is the present of a live gap.
 */
export function requestFor(open: OpenGap, limits: WindowLimits): PageRequest {
  const { deviceId, gap } = open;
  const { widthNs } = limits;
  const tooFar = (top: EpochNs): boolean => widthNs !== null && top - gap.to > widthNs / 2n;
  const live = open.live && !tooFar(limits.nowNs);
  const near = live || open.near === null || tooFar(open.near.at) ? null : open.near;
  const top = live ? maxNs(limits.nowNs, gap.to) : near === null ? gap.to : maxNs(near.at, gap.to);
  const end = ceilToSecond(top) + SLACK_NS;
  const before = live && !limits.bothBounds ? null : end;
  const floor = widthNs === null ? 0n : end - widthNs;
  const reach = (from: EpochNs): EpochNs => floorToSecond(from) - SLACK_NS;
  const { from, far } = withinWindow(open, reach, floor);
  const needed = reach(far === null ? from : minNs(from, far.at));
  const free = live && far !== null ? extendBack(open, { needed, end, widthNs }) : needed;
  return {
    deviceId,
    gap: { from, to: gap.to },
    after: maxNs(free, 0n),
    before,
    near,
    far,
    cursor: null,
    nearSeen: near === null,
  };
}

/** Returns the same request from its first page: a chain of cursors starts again. */
export function fromFirstPage(request: PageRequest): PageRequest {
  const { chain, ...rest } = request;
  return { ...rest, cursor: null, nearSeen: request.near === null };
}

/** How many pages in a row, including a further one, had only readings that the chain has shown before. */
export function idlePagesWith({ cursor, below, chain }: PageRequest, readings: readonly Reading[]): number {
  if (cursor === null || chain === undefined) return 0;
  const isIdle = readings.every((reading) => reading.recordedAt === below && chain.shown.has(readingDigest(reading)));
  return isIdle ? chain.idlePages + 1 : 0;
}

/** The chain after a further page whose oldest readings have the time `below`. */
function chainWith(request: PageRequest, readings: readonly Reading[], below: EpochNs | null): Chain {
  const idlePages = idlePagesWith(request, readings);
  const before = request.below === below ? request.chain?.shown : undefined;
  const shown = before === undefined || before.size > SHOWN_MOST ? new Set<string>() : before;
  for (const reading of readings) if (reading.recordedAt === below) shown.add(readingDigest(reading));
  return { shown, idlePages };
}

function withinWindow(
  { gap, far }: OpenGap,
  reach: (from: EpochNs) => EpochNs,
  floor: EpochNs,
): { from: EpochNs; far: Edge | null } {
  if (reach(gap.from) < floor) return { from: minNs(ceilToSecond(floor) + SLACK_NS, gap.to - 1n), far: null };
  if (far !== null && reach(far.at) < floor) return { from: gap.from, far: null };
  return { from: gap.from, far };
}

/**
 * Where a live request begins so that it uses the rest of its page to find late readings.
 *
 * It costs nothing: the newest readings fill the page in any case, and a full page that reaches below the gap, where
 * the far overlap reading is, ends the scan as the end of the window would. Without a far overlap reading, the gap
 * alone could fill the page to its last reading and lead to a next page, so the request does not extend then. Half of
 * the window is enough: a server whose clock is ahead of the known time must not reject it as too wide.
 */
function extendBack(
  { lateFrom = null }: OpenGap,
  { needed, end, widthNs }: { needed: EpochNs; end: EpochNs; widthNs: bigint | null },
): EpochNs {
  if (lateFrom === null) return needed;
  const widest = widthNs === null ? 0n : ceilToSecond(end - widthNs / 2n);
  return minNs(needed, maxNs(floorToSecond(lateFrom), widest));
}

/**
 * The request after a page: by cursor, or by time below the oldest reading.
 *
 * @param scan the complete gap that is scanned, which may be larger than `request`, and the stored reading below it.
 * @returns `null` if the window was read to its end or the answer covered nothing.
 */
export function nextRequest(
  request: PageRequest,
  judged: Progress,
  scan: { page: TelemetryPage; gap: Interval; far: Edge | null; limits: WindowLimits },
): PageRequest | null {
  if (judged.next === 'cursor') {
    const below = judged.oldest?.at ?? request.below ?? null;
    const chain = chainWith(request, scan.page.readings, below);
    return { ...request, cursor: scan.page.nextCursor, nearSeen: judged.nearSeen, below, chain };
  }
  if (judged.next !== 'time' || judged.oldest === null) return null;
  const to = minNs(request.gap.to, judged.oldest.at + 1n);
  if (to <= scan.gap.from) return null;
  const gap = { from: scan.gap.from, to };
  return requestFor({ deviceId: request.deviceId, gap, near: judged.oldest, far: scan.far, live: false }, scan.limits);
}

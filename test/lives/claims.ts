/**
 * Every report of the program against the truth of that moment: readings that its status calls covered must be in the
 * database or archived and undelivered, no range after the present may be covered, and a program that reports ready
 * must have the last day of every device.
 */
import type { Sync } from '../../src/app/open-sync.ts';
import { type Interval, intersect, lengthNs, normalize, subtract } from '../../src/core/intervals.ts';
import { LOG_LANES } from '../../src/core/state/log.ts';
import type { QuarantinedItem } from '../../src/core/state/quarantine.ts';
import type { ReadyReport, StatusReport } from '../../src/core/status.ts';
import {
  DAY_MS,
  type EpochNs,
  formatExact,
  HOUR_MS,
  MINUTE_MS,
  maxNs,
  msToNs,
  nsToMs,
  parseTimestamp,
  SECOND_MS,
} from '../../src/core/time.ts';
import type { MsRange, SimReading } from '../../src/sim/spec.ts';
import { BELIEVED_AFTER_MS, believedFromMs, isVouchedFor } from './believed-lies.ts';
import { createLineStore, type LineStore } from './line-store.ts';
import type { Stage } from './stage.ts';
import type { Misfortune } from './story.ts';
import { isLate, type Moment } from './truth.ts';

/**
 * The coverage of a state when it is opened, after a kill.
 *
 * @returns what of it is false.
 */
export function examineState(stage: Stage, sync: Sync): string[] {
  const { store } = sync.context;
  const covered = new Map(
    store.devices().map(({ record }) => [record.deviceId, store.telemetry(record.deviceId).covered] as const),
  );
  return examineCovered(stage, covered, {
    lateByMs: Number.NEGATIVE_INFINITY,
    pending: pendingOf(sync),
    isExcused: excuseOf(stage),
  });
}

/**
 * The current status, and the readiness of a daemon, which only the daemon serves.
 *
 * @returns what of it is false.
 *
 * @param sinceMs since when a daemon has looked for what is new, by the story's clock; `null` where there is none.
 */
export function examineStatus(stage: Stage, sync: Sync, sinceMs: number | null): string[] {
  sync.fleet.request();
  const report: StatusReport = JSON.parse(JSON.stringify(sync.report()));
  const covered = new Map(
    report.devices.map(({ device_id, covered }) => [device_id, covered.map(([from, to]) => intervalOf({ from, to }))]),
  );
  const openMs = openMsOf(stage, report);
  const nowMs = stage.simulator.worldNowMs();
  const hasLooked = sinceMs !== null && stage.clock.nowMs() - undisturbedSinceMs(stage, sinceMs) >= openMs;
  const pending = pendingOf(sync);
  const isExcused = excuseOf(stage);
  const moment = { lateByMs: hasLooked ? nowMs - openMs : Number.NEGATIVE_INFINITY, pending, isExcused };
  const quarantined =
    report.destinations.reduce((sum, destination) => sum + destination.quarantined, 0) - ownOfTheFuture(stage, sync);
  return [
    ...examineCovered(stage, covered, moment),
    ...(sinceMs === null ? [] : examineReady(stage, { report, ready: sync.ready() }, moment)),
    ...(quarantined > 0 ? [`${quarantined} points in quarantine`] : []),
  ];
}

/** The facts of the program's own in quarantine that were made while the service's clock was more than a day ahead. */
function ownOfTheFuture({ story, clock }: Stage, { context: { store } }: Sync): number {
  const wasAhead = story.misfortunes.some(
    ({ what, fromMs }) => what.kind === 'server clock' && what.byMs > DAY_MS && fromMs <= clock.nowMs(),
  );
  if (!wasAhead) return 0;
  const isOwn = ({ destinationId, content, reason }: QuarantinedItem): boolean =>
    destinationId !== null && reason.endsWith('more than a day in the future') && !content.startsWith('telemetry,');
  let own = 0;
  for (let page = store.quarantine.page(0); page.length > 0; page = store.quarantine.page(page.at(-1)?.id ?? 0)) {
    own += page.filter(isOwn).length;
  }
  return own;
}

/** Since when the service has answered as it should, and a plan of few requests a day holds nothing up any more. */
function undisturbedSinceMs(stage: Stage, sinceMs: number): number {
  const nowMs = stage.clock.nowMs();
  const begun = stage.story.misfortunes.filter(
    ({ fromMs, what }) => fromMs <= nowMs && what.kind !== 'database' && what.kind !== 'local clock',
  );
  const answeredMs = Math.max(sinceMs, ...begun.map(({ toMs }) => Math.min(toMs, nowMs)));
  return begun.some((each) => isBelieved(stage, each)) ? Math.min(nowMs, answeredMs + DAY_MS) : answeredMs;
}

/**
 * Whether a plan of few requests a day is still accepted: until the account is read again, which may itself have to
 * wait until the day's requests are free.
 */
function isBelieved({ fate, planReadMs }: Stage, { name, what, toMs }: Misfortune): boolean {
  const isOfDay = what.kind === 'settings' && what.change.plan?.requestsPerDay !== undefined;
  return isOfDay && fate.hit.has(name) && planReadMs < toMs;
}

/** How long it takes until accepted false pages are requested again. */
const CHECKED_WITHIN_MS = 25 * HOUR_MS;
/** How long a run needs for the work that was due at its beginning, once the service answers as it should. */
const DUE_DONE_MS = HOUR_MS;
/** A plan is small that has fewer requests a day for the program. */
const SMALL_PLAN = 400;
/** How long it takes at the most until answers have shown that a clock has fallen back. */
const SEEN_TO_FALL_MS = 7 * HOUR_MS;

/** Whether the effect of a misfortune that ended then may last still: until so long after it, or into this life. */
function mayLast(stage: Stage, endedMs: number, forMs: number): boolean {
  const nowMs = stage.clock.nowMs();
  const { api, program } = stage.story;
  // Failed requests may have spent what a small plan has for the day.
  const isSmall = (api.plan?.requestsPerDay ?? Infinity) * program.share < SMALL_PLAN;
  const doneMs = undisturbedSinceMs(stage, stage.lifeStartedMs) + (isSmall ? DAY_MS : DUE_DONE_MS);
  return nowMs < endedMs + forMs || nowMs < doneMs;
}

/** When a device could be polled again after a misfortune: one that is away answers nothing. */
function backAfterMs({ story, simulator }: Stage, deviceId: string, { toMs }: Misfortune): number {
  const { vanishesAtMs, returnsAtMs = Number.POSITIVE_INFINITY } = {
    ...story.devices.find(({ spec }) => spec.deviceId === deviceId)?.spec,
  };
  const { offsetMs } = simulator.settings.time;
  const isAway = vanishesAtMs !== undefined && vanishesAtMs - offsetMs < toMs + CHECKED_WITHIN_MS;
  return isAway ? Math.max(toMs, returnsAtMs - offsetMs) : toMs;
}

/** The misfortunes of now, or of before, by which the service's clock was ahead. */
function aheadNow(stage: Stage): (Misfortune & { readonly byMs: number })[] {
  return stage.story.misfortunes.flatMap((each) => {
    const byMs = each.what.kind === 'server clock' ? each.what.byMs : 0;
    const isNow = each.fromMs <= stage.clock.nowMs() && mayLast(stage, each.toMs, SEEN_TO_FALL_MS);
    return byMs > 0 && isNow ? [{ ...each, byMs }] : [];
  });
}

/**
 * Readings that a plan hides without any sign of it: without a `Date`, while the local clock is behind, the newest
 * time that was served is all that is known of the present.
 */
function hiddenUnknown(stage: Stage): Interval[] {
  const { story, simulator } = stage;
  const { settings } = simulator;
  const { historyMaxDays } = settings.plan;
  const isHidden = historyMaxDays !== null && settings.bounds.age !== 'unlimited';
  if (settings.time.date !== 'absent' || !isHidden) return [];
  return story.misfortunes.flatMap(({ what, fromMs, toMs }) => {
    if (what.kind !== 'local clock' || what.byMs > 0) return [];
    const backNs = msToNs(historyMaxDays * DAY_MS);
    return [{ from: newestNs(stage, fromMs) - backNs, to: msToNs(toMs + SLACK_MS) - backNs }];
  });
}

/** The newest time that the device list has at a moment. */
function newestNs({ story, simulator: { world } }: Stage, atMs: number): EpochNs {
  const newest = story.devices.flatMap(({ spec: { deviceId } }) => {
    const seen = world.has(deviceId, atMs) ? world.device(deviceId, atMs)?.lastSeenAt : null;
    return parseTimestamp(seen ?? '') ?? [];
  });
  return newest.reduce(maxNs, 0n);
}

/** How many answers it takes to show that the service's clock has fallen back: one may be a stray. */
const SHOW_A_FALL = 2;

/**
 * When the service gave what it received the time of a clock that had fallen back, unless answers have shown that:
 * a program that has seen at most one of them cannot know that readings come below its coverage.
 */
function fallsUnseen({ story, datedMs, simulator }: Stage): (MsRange & { readonly byMs: number })[] {
  const { offsetMs } = simulator.settings.time;
  return story.misfortunes.flatMap(({ what, fromMs, toMs }) => {
    if (what.kind !== 'server clock and stamps') return [];
    const shown = datedMs.filter((atMs) => fromMs <= atMs && atMs < toMs).length;
    return shown < SHOW_A_FALL ? [{ fromMs: fromMs + offsetMs, toMs: toMs + offsetMs, byMs: what.byMs }] : [];
  });
}

/**
 * Whether a device handed in a reading after its time, and that lay further back than the plan shows for sure when the
 * device was looked at next. A covered silence is requested again only as far back as that.
 */
function isHandedInTooLate({ story, simulator }: Stage, deviceId: string, reading: SimReading): boolean {
  const { historyMaxDays } = simulator.settings.plan;
  if (historyMaxDays === null || !isLate(reading, story.program.gracePeriodMs)) return false;
  const path = `/devices/${encodeURIComponent(deviceId)}/telemetry`;
  const look = simulator.log.requests.find(
    (request) => request.atMs >= reading.visibleAtMs && request.path === path && request.status === 200,
  );
  return look !== undefined && nsToMs(reading.recordedAtNs) < look.atMs - historyMaxDays * DAY_MS + SLACK_MS;
}

/**
 * Whether nobody could see that a clock which was ahead has fallen back: until the time that it had shown came, fewer
 * answers than show a fall had a `Date`, and no answer about the device has come since.
 */
function isFallUnseen({ datedMs, simulator }: Stage, deviceId: string, ahead: MsRange & { byMs: number }): boolean {
  const { byMs } = ahead;
  const { offsetMs } = simulator.settings.time;
  const [fromMs, toMs] = [ahead.fromMs + offsetMs, ahead.toMs + offsetMs];
  const path = `/devices/${encodeURIComponent(deviceId)}/telemetry`;
  const shown = datedMs.filter((atMs) => ahead.toMs <= atMs && atMs < ahead.toMs + byMs).length;
  // Requests while the clock was ahead are logged by that clock.
  const isSince = (atMs: number): boolean => toMs <= atMs && !(fromMs + byMs <= atMs && atMs < toMs + byMs);
  const { requests } = simulator.log;
  return (
    shown < SHOW_A_FALL && !requests.some((each) => each.path === path && each.status === 200 && isSince(each.atMs))
  );
}

/** By how much the service's clock was ahead by them all. */
function aheadByMs(stage: Stage): number {
  return aheadNow(stage).reduce((sum, { byMs }) => sum + byMs, 0);
}

/**
 * Readings that may be missing at this moment although their range is covered:
 * - what the service has called empty, of every device and for more than half an hour, or shortly after it has shown
 * readings of one, until that is requested again after an hour and after a day, of a device that is away once it is
 * back; a service that hides old readings calls
 *   all of them empty while its clock is far ahead;
 * - what other false pages about the device hid that have to be accepted, as long ({@link believedFromMs});
 * - what a clock that was ahead, and that nothing has spoken against for a minute, had shown as passed, until it was seen
 *   to fall back, of a device that is away once it is back, and where no answer could show the fall ({@link isFallUnseen});
 * - what the plan has just hidden while nothing tells the time ({@link hiddenUnknown});
 * - what a clock has stamped that had fallen back, where answers have not shown it ({@link fallsUnseen});
 * - what a device has handed in when the plan did not reach back to it any more ({@link isHandedInTooLate}).
 *
 * @param isDone whether a run has ended, after all due repeated requests
 */
export function excuseOf(stage: Stage, isDone = false): NonNullable<Moment['isExcused']> {
  const { story, clock, simulator } = stage;
  const nowMs = clock.nowMs();
  const { offsetMs } = simulator.settings.time;
  const graceMs = story.program.gracePeriodMs;
  const believed = story.misfortunes.filter(
    (each) =>
      (each.what.kind === 'lies always' || (each.what.kind === 'server clock' && each.what.byMs > 0)) &&
      nowMs >= each.fromMs + (isVouchedFor(stage, each) ? 0 : BELIEVED_AFTER_MS),
  );
  const ahead = story.misfortunes.flatMap((each) => {
    if (each.what.kind !== 'server clock' || each.what.byMs <= 0 || nowMs < each.fromMs) return [];
    const from = msToNs(Math.floor(each.fromMs + offsetMs - graceMs - SLACK_MS));
    const to = msToNs(Math.ceil(each.toMs + offsetMs + each.what.byMs + SLACK_MS));
    return [{ each, byMs: each.what.byMs, from, to }];
  });
  const hidden = hiddenUnknown(stage);
  const falls = fallsUnseen(stage);
  const isStamped = ({ visibleAtMs, recordedAtNs }: SimReading): boolean =>
    falls.some(
      ({ fromMs, toMs, byMs }) =>
        fromMs <= visibleAtMs &&
        visibleAtMs < toMs &&
        Math.abs(nsToMs(recordedAtNs) - (visibleAtMs + byMs)) <= SECOND_MS,
    );
  const isSeen = (story.api.surprises?.missingFields ?? 0) === 0;
  const isToBeAsked = (deviceId: string, each: Misfortune): boolean => {
    const askedMs = backAfterMs(stage, deviceId, each);
    // One that has left meanwhile, or that has no known sign of life, could not be polled again.
    const isAsked = isDone && isSeen && simulator.world.has(deviceId, simulator.worldNowMs());
    return isAsked ? nowMs < askedMs + CHECKED_WITHIN_MS : mayLast(stage, askedMs, CHECKED_WITHIN_MS);
  };
  return (deviceId, reading) =>
    isStamped(reading) ||
    isHandedInTooLate(stage, deviceId, reading) ||
    hidden.some(({ from, to }) => from <= reading.recordedAtNs && reading.recordedAtNs < to) ||
    ahead.some(
      ({ each, byMs, from, to }) =>
        from <= reading.recordedAtNs &&
        reading.recordedAtNs < to &&
        (mayLast(stage, backAfterMs(stage, deviceId, each), SEEN_TO_FALL_MS) ||
          isFallUnseen(stage, deviceId, { ...each, byMs })),
    ) ||
    believed.some(
      (each) => isToBeAsked(deviceId, each) && simulator.isVisible(deviceId, reading, each.toMs + offsetMs),
    ) ||
    story.misfortunes.some(
      (each) =>
        nowMs >= believedFromMs(stage, each, deviceId) &&
        isToBeAsked(deviceId, each) &&
        simulator.isVisible(deviceId, reading, each.toMs + offsetMs),
    );
}

/** The time is known to some seconds. */
const SLACK_MS = 10 * SECOND_MS;

/** The archived lines that the destination has not acknowledged, read on demand. */
function pendingOf(sync: Sync): () => LineStore {
  let pending: LineStore | null = null;
  return () => {
    pending ??= readPending(sync);
    return pending;
  };
}

function readPending({ context: { store }, deliverers }: Sync): LineStore {
  const pending = createLineStore();
  const [deliverer] = deliverers;
  if (deliverer === undefined) return pending;
  for (const lane of LOG_LANES) {
    let from = store.position(deliverer.destinationId, lane);
    for (;;) {
      const { text, segments } = store.read(lane, from, { lines: 5000, bytes: 2 ** 30 });
      const last = segments.at(-1);
      if (last === undefined) break;
      pending.write(text.toString());
      from = last.rest ? { block: last.block, line: last.line + last.lines } : { block: last.block + 1, line: 0 };
    }
  }
  return pending;
}

function examineCovered(
  stage: Stage,
  covered: ReadonlyMap<string, readonly Interval[]>,
  moment: Omit<Moment, 'nowMs'>,
): string[] {
  const { simulator, truth, counts } = stage;
  const nowMs = simulator.worldNowMs();
  const wrong: string[] = [];
  const aheadMs = aheadByMs(stage);
  for (const [deviceId, ranges] of covered) {
    counts.claims += ranges.length;
    const last = ranges.at(-1);
    if (last !== undefined && last.to > msToNs(Math.ceil(nowMs + aheadMs))) {
      wrong.push(`${deviceId} is called complete up to ${formatExact(last.to)}, which is yet to come`);
    }
    const lacking = truth.lacking(deviceId, ranges, { nowMs, ...moment });
    if (lacking.length > 0)
      wrong.push(`${lacking.length} readings of ${deviceId} are called covered and are not there: ${few(lacking)}`);
  }
  return wrong;
}

/** The readings that a due poll may still bring. */
const DUE_MS = 2 * MINUTE_MS;

function examineReady(
  stage: Stage,
  { report, ready }: { report: StatusReport; ready: ReadyReport },
  moment: Omit<Moment, 'nowMs'>,
): string[] {
  const { simulator, truth, story } = stage;
  if (!ready.ready) return [];
  const nowMs = simulator.worldNowMs();
  const openMs = openMsOf(stage, report);
  // The last day is that of the clock that the program trusts.
  const dayMs = Math.min(DAY_MS, story.program.historyMs);
  const from = msToNs(Math.floor(nowMs + aheadByMs(stage) - dayMs + DUE_MS));
  const range: Interval = { from, to: msToNs(Math.floor(nowMs - openMs)) };
  return report.devices.flatMap(({ device_id, state, gaps }) => {
    if (state === 'unreachable' || !simulator.world.has(device_id, nowMs)) return [];
    // A gap with a reason of its own is named: it is not reported as covered. So is as much as may be open while all is
    // well, wherever in the day it is.
    const pending = gaps.filter(({ reason }) => reason === 'pending').map(intervalOf);
    const isMuch =
      lengthNs(intersect(normalize(pending), [range])) > msToNs(report.freshness.behind_after_seconds * 1000);
    const named = gaps.filter(({ reason }) => reason !== 'pending' || !isMuch);
    const ranges = subtract([range], normalize(named.map(intervalOf)));
    const lacking = truth.lacking(device_id, ranges, { nowMs, shownByMs: nowMs - openMs, ...moment });
    return lacking.length === 0
      ? []
      : [`ready, but ${lacking.length} readings of ${device_id} are not there: ${few(lacking)}`];
  });
}

/** For how long the newest end of a device may be open while all is well. */
function openMsOf(stage: Stage, { freshness }: StatusReport): number {
  const openMs = freshness.behind_after_seconds * 1000 + stage.story.program.gracePeriodMs + DUE_MS;
  const nowMs = stage.clock.nowMs();
  if (stage.simulator.settings.time.date !== 'absent') return openMs + behindMs(stage);
  // Without `Date` time continues from the newest one that the first list of the life has, however old that was.
  const sinceMs = stage.lifeStartedMs;
  const olderMs = sinceMs - nsToMs(newestNs(stage, sinceMs));
  return openMs + behindMs(stage) + olderMs + localBehindMs(stage, { fromMs: nowMs - openMs, toMs: nowMs });
}

function intervalOf({ from, to }: { readonly from: string; readonly to: string }): Interval {
  return { from: parseTimestamp(from) ?? 0n, to: parseTimestamp(to) ?? 0n };
}

/** How far the service's clock was behind lately: what is ready is so as of its time. */
function behindMs({ story, clock }: Stage): number {
  const nowMs = clock.nowMs();
  return Math.max(
    0,
    ...story.misfortunes.map(({ what, fromMs, toMs }) =>
      (what.kind === 'server clock' || what.kind === 'server clock and stamps') &&
      fromMs <= nowMs &&
      nowMs < toMs + LATELY_MS
        ? -what.byMs
        : 0,
    ),
  );
}

/** How far the local clock is behind within that time. Without `Date` nothing later than it is in the wanted range. */
export function localBehindMs({ story }: Stage, during: MsRange): number {
  return story.misfortunes.reduce(
    (sum, { what, fromMs, toMs }) =>
      what.kind === 'local clock' && fromMs <= during.toMs && during.fromMs < toMs
        ? sum + Math.max(0, -what.byMs)
        : sum,
    0,
  );
}

/** How long answers of a wrong clock are remembered at the most. */
const LATELY_MS = 12 * HOUR_MS;

function few(times: readonly EpochNs[]): string {
  return times.slice(0, 3).map(formatExact).join(', ');
}

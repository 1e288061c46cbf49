/**
 * The report on one device (`--status --device ID`), from the state: when it was polled, when it is due, and which
 * problems it has. It applies the rules of the planner and of coverage; it cannot see the planner's own plans.
 */
import { coveredIntervals } from '../core/coverage.ts';
import { emptyByListing, gapText, PENDING, wantedPart } from '../core/device-coverage.ts';
import { faultText } from '../core/faults.ts';
import type { Interval } from '../core/intervals.ts';
import type { DeviceReport } from '../core/page-facts.ts';
import type { PollSettings } from '../core/ports.ts';
import type { KnownDevice } from '../core/state/inventory.ts';
import type { StateFacts } from '../core/state/state.ts';
import { type Gap, gracePeriodOf, telemetryNow } from '../core/state/telemetry.ts';
import { duration } from '../core/text.ts';
import { DAY_NS, type EpochMs, formatExact, maxNs, minNs, nsToMs, SECOND_MS, timeText } from '../core/time.ts';
import type { WantedRange } from '../ingest/context.ts';
import { CLOCK_RESOLUTION_MS, limitFor } from '../ingest/coverage-rules.ts';
import { gonePollDueMs } from '../ingest/devices.ts';
import { isAwaitingRetry } from '../ingest/named-gaps.ts';
import { openSeconds, wantedNow } from '../ingest/wanted-range.ts';
import { idlePollDueMs } from '../scheduler/device-outlook.ts';
import { type DeviceSnapshot, snapshotDevice } from './device-snapshot.ts';
import { apiProblemText, dueAfter, type ReportParts } from './report.ts';
import { coverageCells } from './series.ts';

/** The sources of the report on one device, in addition to those of the status report. */
export interface DeviceReportParts extends ReportParts {
  readonly facts: StateFacts;
  readonly polls: PollSettings;
}

/** How many of the last requests are listed. */
const ANSWERS_SHOWN = 5;
/** The longest range of the bar. */
const BAR_NS = 30n * DAY_NS;

/** The facts about the device at one moment. */
interface DeviceFactsNow {
  readonly device: KnownDevice;
  readonly snapshot: DeviceSnapshot;
  readonly telemetry: ReturnType<typeof telemetryNow>;
  readonly requests: ReturnType<StateFacts['requestsOf']>;
  readonly nowMs: EpochMs;
  readonly behindAfter: number;
}

/** Composes the report; `null` while the time is unknown. */
export function deviceReport(parts: DeviceReportParts, device: KnownDevice): DeviceReport | null {
  const { context, facts } = parts;
  const { store, settings, serverClock } = context;
  const wantedRange = wantedNow(context);
  if (wantedRange === null) return null;
  const { deviceId } = device.record;
  const telemetry = telemetryNow(store, deviceId);
  const behindAfter = openSeconds(parts);
  const known: DeviceFactsNow = {
    device,
    snapshot: snapshotDevice({ context, wantedRange, openSeconds: behindAfter }, device, telemetry),
    telemetry,
    requests: facts.requestsOf(deviceId, ANSWERS_SHOWN),
    nowMs: serverClock.nowMs(),
    behindAfter,
  };
  const due = dueNext(parts, known);
  const isOnHold = parts.isRunning() && parts.streams.isKeyRejected();
  return {
    ...known.snapshot.status,
    version: parts.version,
    generated_at: timeText(known.nowMs),
    workspace_id: store.workspaceTag(),
    running: parts.isRunning(),
    polled: !known.snapshot.isExcluded && stopReasons(parts).length === 0,
    fresh: isFresh(known),
    behind_after_seconds: known.behindAfter,
    reasons: whyNotFresh(parts, known, due),
    listed: listedOf(device),
    last_polled_at: timeText(due.polledMs),
    next_due_at: isOnHold ? null : timeText(due.atMs),
    next_kind: isOnHold ? null : due.as,
    last_answers: known.requests.last.map(({ atMs, lane, status, fault, newReadings }) => ({
      at: timeText(atMs),
      lane,
      status,
      fault,
      new_readings: newReadings,
    })),
    failed_requests: known.requests.failed,
    covered_share: known.snapshot.share,
    named_gaps: telemetry.gaps.map(({ fromNs, toNs, reason, retryAtMs }) => ({
      from: formatExact(fromNs),
      to: formatExact(toNs),
      reason,
      retry_at: timeText(retryAtMs),
    })),
    grace_period_seconds: gracePeriodOf(settings.gracePeriodMs, telemetry.late) / 1000,
    late: { readings: telemetry.late.readings, max_seconds: telemetry.late.worstMs / 1000 },
    names: telemetry.names.map(({ fromNs, name }) => ({ from: fromNs === 0n ? null : formatExact(fromNs), name })),
    ...wantedAndBar(parts, known, wantedRange),
  };
}

function isFresh({ snapshot: { isExcluded, isGone, isCurrent } }: DeviceFactsNow): boolean {
  return !isExcluded && !isGone && isCurrent;
}

function listedOf({ record, lastListedMs, goneSinceMs }: KnownDevice): DeviceReport['listed'] {
  return {
    last_seen_at: record.lastSeenAt === null ? null : formatExact(record.lastSeenAt),
    online: record.online,
    presence: record.presence,
    lifecycle_status: record.lifecycleStatus,
    last_listed_at: timeText(lastListedMs),
    gone_since: timeText(goneSinceMs),
  };
}

function wantedAndBar(
  { facts }: DeviceReportParts,
  known: DeviceFactsNow,
  wantedRange: WantedRange,
): Pick<DeviceReport, 'wanted' | 'bar'> {
  const { device, telemetry } = known;
  const wanted: Interval = wantedPart(device, { from: wantedRange.wantedFrom, to: limitFor(wantedRange, telemetry) });
  // The newest end is always open. Without a lag it is not a gap.
  const to = isFresh(known) ? minNs(wanted.to, telemetry.covered.at(-1)?.to ?? wanted.to) : wanted.to;
  const drawn: Interval = { from: maxNs(wanted.from, to - BAR_NS), to };
  const covered = coveredIntervals(telemetry.covered);
  const days = facts.daysOf(device.record.deviceId, Number(drawn.from / DAY_NS));
  const { cells, cellNs } = coverageCells(drawn, { covered, days });
  return {
    wanted: [formatExact(wanted.from), formatExact(wanted.to)],
    bar: {
      from: formatExact(drawn.from),
      to: formatExact(drawn.to),
      cell_seconds: nsToMs(cellNs) / 1000,
      cells,
    },
  };
}

/** When the device was last polled and when it is due next. */
interface Due {
  readonly polledMs: EpochMs | null;
  readonly atMs: EpochMs | null;
  readonly as: DeviceReport['next_kind'];
  /** The gap at the newest end that is resting because it could not be read, with its reason. */
  readonly rest: Gap | null;
}

function dueNext(parts: DeviceReportParts, known: DeviceFactsNow): Due {
  const { settings, store, nextReadingMs } = parts.context;
  const { device, telemetry, nowMs, snapshot, requests } = known;
  const top = telemetry.covered.at(-1);
  // Bookings are kept for two days. For earlier polls the coverage shows the time: the device was polled the grace
  // period after the end of its coverage.
  const byCoverage = top === undefined ? null : nsToMs(top.to) + settings.gracePeriodMs + CLOCK_RESOLUTION_MS;
  const polledMs = requests.last[0]?.atMs ?? byCoverage;
  if (snapshot.isExcluded) return { polledMs, atMs: null, as: null, rest: null };
  const rest =
    telemetry.gaps.find((gap) => isAwaitingRetry(gap, nowMs) && (top === undefined || gap.toNs > top.to)) ?? null;
  if (rest !== null) return { polledMs, atMs: rest.retryAtMs, as: 'newest_readings', rest };
  // A device that was polled once, was never seen by the list and has never had a reading waits for its idle poll as
  // well. Only the list counts here: a device whose next reading is due later is polled at that time.
  const isQuiet =
    emptyByListing({ settings, nextReadingMs: () => null }, device, telemetry).length > 0 ||
    (device.record.lastSeenAt === null && telemetry.newestNs === null && top !== undefined);
  if (device.goneSinceMs !== null && polledMs !== null)
    return { polledMs, atMs: gonePollDueMs(polledMs, parts.polls), as: 'idle_poll', rest: null };
  if (isQuiet && polledMs !== null)
    return { polledMs, atMs: idlePollDueMs(polledMs, parts.polls), as: 'idle_poll', rest: null };
  const readingMs = nextReadingMs(device.record.deviceId) ?? Number.NEGATIVE_INFINITY;
  const after = dueAfter(settings.schedules, store.workspaceTag() ?? '');
  return {
    polledMs,
    atMs: polledMs === null ? nowMs : after('telemetry', Math.max(polledMs, readingMs)),
    as: 'newest_readings',
    rest: null,
  };
}

/** Why it is not fresh, the most important reason first. */
function whyNotFresh(parts: DeviceReportParts, known: DeviceFactsNow, due: Due): string[] {
  const { snapshot, device, requests } = known;
  if (snapshot.isExcluded) return ['The device is excluded by sync.include or sync.exclude.'];
  if (device.goneSinceMs !== null) {
    return [
      `The device has not been in the workspace since ${timeText(device.goneSinceMs)}. Tidemark checks every ${duration(parts.polls.gonePollMs / SECOND_MS)} whether it is back.`,
    ];
  }
  const last = requests.last[0];
  const failed = last?.fault ?? null;
  return [
    ...obstacles(parts, known.nowMs),
    ...(failed === null ? [] : [`The last request for the device failed: ${faultText(failed)}.`]),
    ...(due.rest === null
      ? []
      : [`After failures (${gapText(due.rest.reason).why}) it is tried again at ${timeText(due.rest.retryAtMs)}.`]),
    ...(isFresh(known) ? [] : [whyBehind(known, due)]),
  ];
}

/** Why no device is polled at all. */
function stopReasons({ isRunning, streams, space }: DeviceReportParts): string[] {
  const telemetry = streams.list().find(({ name }) => name === 'telemetry');
  const problem = streams.problem();
  const { full } = space.status();
  return [
    ...(isRunning() ? [] : ['No daemon is running, and no --once.']),
    ...(problem === null ? [] : [`${apiProblemText(isRunning())}: ${problem}.`]),
    ...(telemetry?.state === 'off' ? [`Telemetry is not polled: ${telemetry.reason ?? ''}.`] : []),
    ...(full === null ? [] : [`Polling stopped: ${full}`]),
  ];
}

/** The problems that concern every device. */
function obstacles(parts: DeviceReportParts, nowMs: EpochMs): string[] {
  const { waiting_until, day } = parts.quota();
  const spent = day.budget !== null && day.spent >= day.budget ? ` (${day.spent} of ${day.budget} of the day)` : '';
  return [
    ...stopReasons(parts),
    ...(waiting_until === null || Date.parse(waiting_until) <= nowMs
      ? []
      : [`Quota used up${spent}: requests resume at ${waiting_until}.`]),
  ];
}

function whyBehind({ telemetry, snapshot, device, behindAfter }: DeviceFactsNow, { as, atMs, polledMs }: Due): string {
  if (telemetry.covered.length === 0) {
    return polledMs === null
      ? 'The device was never polled.'
      : 'The device was polled, but none of its range is covered yet.';
  }
  const named = namedAtTheEnd(snapshot.status.gaps);
  if (named !== null) return `Its newest range cannot be read: ${gapText(named).why}.`;
  const seen = device.record.lastSeenAt;
  if (as === 'idle_poll' && seen === null) {
    return 'The device list has no last-seen time for the device. It is polled when the list has one, or at the next idle poll.';
  }
  if (as === 'idle_poll' && seen !== null) {
    return `The device list reports nothing new since ${formatExact(seen)}: the device is polled when that changes, or at the next idle poll.`;
  }
  const when = atMs === null ? '' : ` Its poll has been due since ${timeText(atMs)}.`;
  return `The lag of the device is ${Math.round(snapshot.status.lag_seconds ?? 0)} s, more than ${Math.round(behindAfter)} s.${when}`;
}

/** The reason of the newest gap, even if its last minutes have none yet. */
function namedAtTheEnd(gaps: DeviceReport['gaps']): string | null {
  const [before, last] = gaps.slice(-2).length === 2 ? gaps.slice(-2) : [undefined, gaps.at(-1)];
  if (last === undefined || last.reason !== PENDING) return last?.reason ?? null;
  return before !== undefined && before.to === last.from && before.reason !== PENDING ? before.reason : null;
}

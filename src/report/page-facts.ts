/**
 * The facts of the status page in addition to the status report (`core/page-facts.ts`), composed from the state: the
 * devices, a page at a time; one device with the values of its sensors over a range; the alerts.
 *
 * The list of devices comes from the last scan of the fleet (`fleet.ts`), so states, lags and shares have the age of
 * that scan: a few seconds with ten thousand devices. The bars and the values are expensive, so they are read only for
 * the rows of the page.
 *
 * The page of a device reads the archive in its order, each block once, step by step, because a range may hold a
 * million lines. Other work has a turn between any two steps, and pages take their steps in rotation, so that a small
 * one does not wait for a large one. If a page is already in progress, all clients get the same one.
 *
 * Before the first answer of the API the server's time is unknown. Then the local clock is used to show the state, and
 * nothing counts as covered by it.
 */

import { beginTimeSlice, createTurns, NEVER_ABORTED } from '../core/async.ts';
import { coveredIntervals } from '../core/coverage.ts';
import { emptyByListing, wantedPart } from '../core/device-coverage.ts';
import { union } from '../core/intervals.ts';
import type { KnownAlert } from '../core/lines/fact-lines.ts';
import type { DeviceReport } from '../core/page-facts.ts';
import {
  ALERTS_SHOWN,
  type AlertRow,
  BAR_DAYS,
  DEVICE_ALERTS,
  type DevicePageFacts,
  type DeviceRow,
  type DevicesPage,
  type DevicesQuery,
  LEAST_RANGE_SECONDS,
  MAX_SHOWN_LENGTH,
  MOST_RANGE_SECONDS,
  type PageFacts,
  type RecentEvent,
  VALUES_A_ROW,
} from '../core/page-facts.ts';
import type { Clock } from '../core/ports.ts';
import type { ArchiveReader, ReadRange } from '../core/state/archive.ts';
import type { KnownDevice } from '../core/state/inventory.ts';
import { telemetryNow } from '../core/state/telemetry.ts';
import { shortened } from '../core/text.ts';
import { DAY_NS, DAY_SECONDS, type EpochMs, formatExact, maxNs, minNs, msToNs, SECOND_MS } from '../core/time.ts';
import type { WantedRange } from '../ingest/context.ts';
import { limitFor } from '../ingest/coverage-rules.ts';
import { openSeconds, wantedAt } from '../ingest/wanted-range.ts';
import { type DeviceSummary, type ListEntry, listByName, pickDevices } from './device-list.ts';
import { type DeviceReportParts, deviceReport } from './device-report.ts';
import { snapshotDevices, toSummary } from './device-snapshot.ts';
import type { FleetSnapshot } from './fleet.ts';
import { createGrid, createSeriesCells, dayBar, lastValues, type SeriesCells } from './series.ts';

/** The sources of the page's facts. */
export interface PageParts extends DeviceReportParts {
  readonly fleet: { latest(): Pick<FleetSnapshot, 'listing'> | null };
  readonly clock: Pick<Clock, 'monoMs' | 'sleep'>;
  /** Returns the newest events of the log, newest first. */
  readonly recentEvents: () => readonly RecentEvent[];
}

/** Creates the source of the page's facts. */
export function createPageFacts(given: PageParts): PageFacts {
  const parts = byAnyClock(given);
  const { store } = parts.context;
  const step = createSteps(parts.clock);
  return {
    devices: createPageDevices(parts),
    device: madeOnce(async (deviceId, rangeSeconds) => {
      const device = store.device(deviceId);
      return device === null ? null : await devicePage({ ...parts, step }, device, rangeSeconds);
    }),
    alerts: () => {
      const { alerts, open, first } = parts.facts.alertsSeen(ALERTS_SHOWN);
      return { alerts, open, rows: first.map(alertRow) };
    },
    events: parts.recentEvents,
  };
}

/** The same parts, with a time that is always known. */
interface TimedParts extends PageParts {
  readonly wantedRange: () => WantedRange;
}

/** The same parts, with the local clock while the server's time is not known. */
function byAnyClock(parts: PageParts): TimedParts {
  const { settings, serverClock } = parts.context;
  const { nowMs } = serverClock;
  const highestPassedMs = (): EpochMs => serverClock.highestPassedMs() ?? nowMs();
  const passedMs = (): EpochMs => serverClock.passedMs() ?? nowMs();
  return {
    ...parts,
    context: { ...parts.context, serverClock: { nowMs, highestPassedMs, passedMs } },
    wantedRange: () => wantedAt(settings, { nowMs: Math.min(highestPassedMs(), nowMs()), passedMs: passedMs() }),
  };
}

function alertRow(alert: KnownAlert): AlertRow {
  const { alertId, deviceId, deviceName, kind, sensor, openedAt, stateNs, isOpen, facts } = alert;
  const shown = (text: string | null): string | null => (text === null ? null : shortened(text, MAX_SHOWN_LENGTH));
  return {
    alert_id: alertId,
    device_id: deviceId,
    device_name: shown(deviceName),
    kind: shown(kind),
    sensor: shown(sensor),
    opened_at: formatExact(openedAt),
    open: isOpen,
    rule_name: shown(facts?.ruleName ?? null),
    condition: shown(facts?.condition ?? null),
    threshold: facts?.threshold ?? null,
    value: facts?.value ?? null,
    fire_count: facts?.fireCount ?? null,
    status: shown(facts?.status ?? null),
    observed_at: formatExact(stateNs),
  };
}

/**
 * Before the first scan of the fleet (the API has not answered since the start) the list is made here, and cached for
 * this long.
 */
const OWN_LIST_MS = 15 * SECOND_MS;

/** Prepares the list of devices. It is sorted by name once for each scan. */
function createPageDevices(parts: TimedParts): (query: DevicesQuery) => DevicesPage {
  const listing = createListing(parts);
  let listed: { readonly listing: readonly DeviceSummary[]; readonly byName: readonly ListEntry[] } | null = null;
  return (query) => {
    const latest = listing();
    if (listed?.listing !== latest) listed = { listing: latest, byName: listByName(latest) };
    const { rows, matching, states, page, pages } = pickDevices(listed.byName, query);
    const wantedRange = parts.wantedRange();
    // The last day is the last covered one: just after midnight no part of the new day is wanted yet.
    const lastDay = Number(maxNs(wantedRange.limit - 1n, 0n) / DAY_NS);
    const fromDay = Math.min(lastDay, Math.max(lastDay - BAR_DAYS + 1, Number(wantedRange.wantedFrom / DAY_NS)));
    const days = lastDay - fromDay + 1;
    return {
      query: { ...query, search: shortened(query.search, MAX_SHOWN_LENGTH) },
      devices: latest.length,
      matching,
      states,
      page,
      pages,
      bar_from: formatExact(BigInt(Math.max(0, fromDay)) * DAY_NS),
      rows: rows.map((device) => deviceRow(parts, { device, wantedRange, fromDay, days })),
    };
  };
}

function createListing(parts: TimedParts): () => readonly DeviceSummary[] {
  const { context, fleet, clock, wantedRange } = parts;
  let own: { readonly listing: readonly DeviceSummary[]; readonly atMs: number } | null = null;
  return () => {
    const latest = fleet.latest();
    if (latest !== null) {
      own = null;
      return latest.listing;
    }
    const nowMs = clock.monoMs();
    if (own === null || nowMs - own.atMs >= OWN_LIST_MS) {
      const view = { context, wantedRange: wantedRange(), openSeconds: openSeconds(parts) };
      own = { listing: snapshotDevices(view, toSummary), atMs: nowMs };
    }
    return own.listing;
  };
}

interface RowFacts {
  readonly device: ListEntry;
  readonly wantedRange: WantedRange;
  readonly fromDay: number;
  /** The number of days in the bar. */
  readonly days: number;
}

function deviceRow(parts: TimedParts, row: RowFacts): DeviceRow {
  const { deviceId, name, modelId, hubName, state, active, lagSeconds, share, newestNs } = row.device;
  return {
    device_id: deviceId,
    device_name: name,
    model_id: modelId,
    hub_name: hubName,
    state,
    active,
    lag_seconds: lagSeconds,
    covered_share: share,
    newest_reading_at: newestNs === null ? null : formatExact(newestNs),
    bar: coverageCells(parts, row),
    values: lastValues(parts.facts.newestLines(deviceId), VALUES_A_ROW),
  };
}

/** Ranges that are empty according to the device list count as covered, as in the state of the device. */
function coverageCells(
  parts: TimedParts,
  { device: { deviceId, state, isCurrent, newestNs }, wantedRange, fromDay, days }: RowFacts,
) {
  const { context } = parts;
  const known = context.store.device(deviceId);
  // The device was forgotten since the scan.
  if (known === null) return ' '.repeat(days);
  const now = { ...telemetryNow(context.store, deviceId), newestNs };
  const all = union(coveredIntervals(now.covered), emptyByListing(context, known, now));
  const whole = wantedPart(known, { from: wantedRange.wantedFrom, to: limitFor(wantedRange, now) });
  // The newest end is always open. Without a lag it is not a gap.
  const wanted = isCurrent ? { ...whole, to: minNs(whole.to, all.at(-1)?.to ?? whole.to) } : whole;
  const withReadings = new Set(parts.facts.daysOf(deviceId, fromDay).map(({ day }) => day));
  return dayBar({ fromDay, days, wanted, covered: all, withReadings, isLeftOut: state === 'excluded' });
}

/** About how many characters are read in one step, and how long a page continues without a turn for others. */
const STEP_BYTES = 256 * 1024;
const SLICE = { workMs: 12, pauseMs: 1 };

/**
 * One device.
 *
 * @returns `null` while the server's time is unknown.
 */
async function devicePage(
  parts: PageParts & { readonly step: Step },
  device: KnownDevice,
  rangeSeconds: number,
): Promise<DevicePageFacts | null> {
  const report = deviceReport(parts, device);
  if (report === null) return null;
  const { deviceId } = device.record;
  const toMs = Math.floor(parts.context.serverClock.nowMs());
  const rangeMs = drawnIn(rangeSeconds) * SECOND_MS;
  const fromMs = Math.max(0, toMs - rangeMs);
  const range: ReadRange = { from: msToNs(fromMs), to: msToNs(toMs), devices: [deviceId], kinds: 'telemetry' };
  const cells = createSeriesCells(createGrid(fromMs, toMs));
  await fill(cells, { archiveReader: parts.context.store.replays.archiveReader, range, step: parts.step });
  const { sensors, leftOut } = cells.result();
  const since = parts.facts.archivedSince(deviceId);
  return {
    device: withShortNames(report),
    range_seconds: rangeMs / SECOND_MS,
    from: formatExact(range.from),
    to: formatExact(range.to),
    sensors,
    sensors_left_out: leftOut,
    alerts: parts.facts.alertsOf(deviceId, DEVICE_ALERTS).map(alertRow),
    archived_since: since === null ? null : formatExact(since),
    archive_cleared: parts.facts.isCleared(deviceId),
  };
}

function drawnIn(seconds: number): number {
  const wanted = Number.isNaN(seconds) ? DAY_SECONDS : seconds;
  return Math.floor(Math.min(MOST_RANGE_SECONDS, Math.max(LEAST_RANGE_SECONDS, wanted)));
}

interface Reading {
  readonly archiveReader: ArchiveReader;
  readonly range: ReadRange;
  readonly step: Step;
}

async function fill(cells: SeriesCells, { archiveReader, range, step }: Reading): Promise<void> {
  let position = archiveReader.begin(range);
  const readOn = (isOver: () => boolean): void => {
    while (position !== null) {
      const { lines, next } = archiveReader.read(range, position, STEP_BYTES);
      cells.add(lines);
      position = next;
      if (isOver()) return;
    }
  };
  while (position !== null) await step(readOn);
}

function withShortNames(report: DeviceReport): DeviceReport {
  return {
    ...report,
    device_name: shortened(report.device_name, MAX_SHOWN_LENGTH),
    names: report.names.map(({ from, name }) => ({ from, name: shortened(name, MAX_SHOWN_LENGTH) })),
  };
}

/** Takes a step when no other page takes one, and gives others their turn afterwards. */
type Step = (work: (isOver: () => boolean) => void) => Promise<void>;

/** Creates the steps of one page source: one step at a time. */
function createSteps(clock: PageParts['clock']): Step {
  const turns = createTurns();
  return async (work) => {
    const take = async (): Promise<void> => {
      const slice = beginTimeSlice(clock, SLICE);
      work(slice.isOver);
      await slice.pause();
    };
    // The end of the client is not reported here.
    await turns('step', take, NEVER_ABORTED);
  };
}

/** Shares one result among all clients that request the same page while it is in progress. */
function madeOnce(make: PageFacts['device']): PageFacts['device'] {
  const underWay = new Map<string, Promise<DevicePageFacts | null>>();
  return (deviceId, rangeSeconds) => {
    const key = `${rangeSeconds} ${deviceId}`;
    const same = underWay.get(key);
    if (same !== undefined) return same;
    const page = make(deviceId, rangeSeconds).finally(() => underWay.delete(key));
    underWay.set(key, page);
    return page;
  };
}

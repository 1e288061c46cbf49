/**
 * Reads alerts: new ones from the top of the listing, and open ones until they are resolved.
 *
 * The listing is newest first, and alerts change, so its top shows only new alerts. A listing stops early only at an
 * alert that a *completed* listing has contained; an interrupted one shows nothing about the rest. Open alerts that the
 * top does not show are requested by id, or by listing further, whichever takes fewer requests. The account counts the
 * open alerts. If that count differs from the known ones (an alert was reopened or missed), everything is listed again.
 *
 * Alerts of excluded devices make no points, but they are followed too: the account counts them, and listings stop at
 * known alerts. The state digest of such an alert is that of the last state that became a point, or empty. So when the
 * device is included again, the next reading of the alert writes exactly the missing points. The state stores the
 * excluded devices as a fact, so that all their alerts, including resolved ones, are read again at that time.
 */

import { nameAt } from '../core/device-names.ts';
import { ApiFault, findMissingScope } from '../core/faults.ts';
import { isOpen, type KnownAlert, type Observed, observeAlert } from '../core/lines/fact-lines.ts';
import type { Purpose, Reply } from '../core/ports.ts';
import {
  type AlertPage,
  type AlertRecord,
  type Cursor,
  type OpenAlerts,
  pageSizeOf,
  pagesBelowFirst,
} from '../core/records.ts';
import { isListedAgain } from '../core/retry.ts';
import { ALERTS_LEFT_OUT, parseList } from '../core/state/state.ts';
import { type EpochNs, HOUR_MS, msToNs } from '../core/time.ts';
import { accountReadAt } from './account.ts';
import type { SyncContext } from './context.ts';
import { endlessList, noteRejectedRecords } from './devices.ts';
import { exclusionNow } from './filter.ts';

const PURPOSE: Purpose = { lane: 'alerts', stream: 'alerts' };

/**
 * The limits of a listing, far beyond any workspace. Each id is kept until the listing ends, so this many ids take
 * about 40 MB. A longer listing counts as failed; its alerts up to there are stored.
 */
const MAX_PAGES = 10_000;
const MAX_LISTED = 200_000;

/** How many pages in a row may contain no new alert. This ends a listing whose cursors lead in a circle. */
const MAX_IDLE_PAGES = 10;

/**
 * The difference in counts for which all alerts were last listed, and when. The same difference is not examined again
 * soon.
 */
const LISTED_FOR = 'alerts_listed_for';

/**
 * The reading of the account with which the alerts were last compared. An old reading would differ because of newer
 * alerts.
 */
const COUNTED_BY = 'alerts_counted_by';
const RELIST_MS = HOUR_MS;

/**
 * Brings the alerts up to date.
 *
 * @returns whether the key may read them; a missing scope is reported once, and the sync continues without alerts.
 * @throws ApiFault of any other kind; alerts that were read before it stay stored.
 */
export async function syncAlerts(context: SyncContext, signal: AbortSignal): Promise<boolean> {
  return await context.takeTurn('alerts', async () => await syncAlertList(context, signal), signal);
}

async function syncAlertList(context: SyncContext, signal: AbortSignal): Promise<boolean> {
  try {
    const openBefore = context.store.alerts.open(MAX_LISTED);
    const included = newlyIncluded(context);
    const depth = included.length > 0 ? { to: null, isWhole: true } : depthFor(context, openBefore.length);
    const seen = await list(context, depth, signal);
    noteReadAnew(context, included);
    await followById(
      context,
      openBefore.filter((alertId) => !seen.has(alertId)),
      signal,
    );
    if (noteCountDiffers(context)) await list(context, { to: null, isWhole: true }, signal);
    return true;
  } catch (error) {
    const scope = findMissingScope(error, 'alerts');
    if (scope === null) throw error;
    context.noteStreamOff('alerts', scope);
    return false;
  }
}

/** Where a listing of the alerts ends. */
interface ListDepth {
  /** The listing continues down to alerts opened at this time; `null`: only as long as it finds new alerts. */
  readonly to: EpochNs | null;
  /** Whether the listing continues to its very end, even if all alerts are known. */
  readonly isWhole: boolean;
}

/** Lists down to the oldest open alert if that takes fewer requests than reading each open alert by its id. */
function depthFor({ store }: SyncContext, open: number): ListDepth {
  const oldest = store.alerts.oldestOpen();
  if (oldest === null) return { to: null, isWhole: false };
  const pages = pagesBelowFirst(store.alerts.countFrom(oldest), pageSizeOf(store.account()?.plan));
  return { to: pages < open ? oldest : null, isWhole: false };
}

/** Counts the open alerts of the state. */
export function openAlertsOf({ alerts }: Pick<SyncContext['store'], 'alerts'>): OpenAlerts {
  const oldest = alerts.oldestOpen();
  if (oldest === null) return { open: 0, sinceOldest: 0 };
  return { open: alerts.open(MAX_LISTED).length, sinceOldest: alerts.countFrom(oldest) };
}

/**
 * Lists alerts from the top.
 *
 * @returns the ids that were seen.
 */
async function list(context: SyncContext, depth: ListDepth, signal: AbortSignal): Promise<ReadonlySet<number>> {
  for (let starts = 1; ; starts += 1) {
    try {
      return await listOnce(context, depth, signal);
    } catch (error) {
      if (!isListedAgain(error, starts)) throw error;
    }
  }
}

async function listOnce(context: SyncContext, depth: ListDepth, signal: AbortSignal): Promise<ReadonlySet<number>> {
  const { api, store } = context;
  const seen = new Set<number>();
  let cursor: Cursor | null = null;
  let idlePages = 0;
  for (let pages = 0; idlePages <= MAX_IDLE_PAGES; pages += 1) {
    if (pages >= MAX_PAGES || seen.size > MAX_LISTED)
      throw endlessList('alerts', `the list is too long: ${seen.size} alerts`);
    const reply: Reply<AlertPage> = await api.alerts(cursor, PURPOSE, signal);
    const { alerts, nextCursor } = reply.value;
    const isKnownGround = alerts.some(({ alertId }) => store.alerts.find(alertId)?.isListed === true);
    commitAlerts(context, reply);
    const seenBefore = seen.size;
    for (const { alertId } of alerts) seen.add(alertId);
    idlePages = seen.size > seenBefore ? 0 : idlePages + 1;
    const isFarEnough = depth.to === null || alerts.some(({ openedAt }) => openedAt <= (depth.to ?? openedAt));
    if (nextCursor === null || (!depth.isWhole && isKnownGround && isFarEnough)) {
      store.alerts.markListed([...seen]);
      return seen;
    }
    if (nextCursor === cursor) break;
    cursor = nextCursor;
  }
  throw endlessList('alerts', 'the pages repeat');
}

function commitAlerts(context: SyncContext, { value, answeredAtMs }: Reply<AlertPage>): void {
  storeAlerts(context, value.alerts, msToNs(answeredAtMs));
  noteRejectedRecords(context, 'alerts', value.rejected, answeredAtMs);
}

/** Archives the changes of these alerts in one transaction. */
function storeAlerts(context: SyncContext, alerts: readonly AlertRecord[], atNs: EpochNs): void {
  const { store } = context;
  const workspaceTag = store.workspaceTag();
  if (workspaceTag === null) throw new Error('alerts were read before the workspace was known');
  // If a listing shifts while it is read, an alert may appear twice.
  const once = new Map(alerts.map((alert) => [alert.alertId, alert]));
  const isExcluded = exclusionNow(context);
  recordLeftOut(
    context,
    [...once.values()].flatMap(({ deviceId }) => (deviceId !== null && isExcluded(deviceId) ? [deviceId] : [])),
  );
  const observed = [...once.values()].map((alert) => {
    const known = store.alerts.find(alert.alertId);
    const names = alert.deviceId === null ? [] : store.telemetry(alert.deviceId).names;
    const seen = { known, deviceName: nameAt(names, alert.openedAt), atNs, workspaceTag };
    return isExcluded(alert.deviceId) ? observeLeftOut(alert, seen) : observeIncluded(alert, seen);
  });
  const changed = observed.filter((one) => one.changed);
  const lines = changed.flatMap((one) => one.lines);
  store.alerts.keep(
    changed.map(({ known }) => known),
    lines,
  );
  if (lines.length > 0) context.noteArchived();
  context.observe({ type: 'list-page-committed', stream: 'alerts', records: alerts.length, newPoints: lines.length });
}

async function followById(context: SyncContext, open: readonly number[], signal: AbortSignal): Promise<void> {
  for (const alertId of open) {
    try {
      const reply = await context.api.alert(alertId, PURPOSE, signal);
      storeAlerts(context, [reply.value], msToNs(reply.answeredAtMs));
    } catch (error) {
      if (!(error instanceof ApiFault) || error.kind !== 'not-found') throw error;
      context.store.alerts.forget(alertId);
    }
  }
}

/**
 * Compares the number of open alerts in the account with the number of known ones, once for each reading of the
 * account.
 *
 * @returns whether they differ, and no listing was tried for that difference recently; in that case one is recorded as
 * tried.
 */
function noteCountDiffers({ store, serverClock }: SyncContext): boolean {
  const counted = store.account()?.openAlerts ?? null;
  const reading = accountReadAt(store);
  if (counted === null || reading === null || reading === store.fact(COUNTED_BY)) return false;
  store.saveFact(COUNTED_BY, reading);
  const known = store.alerts.open(MAX_LISTED).length;
  if (counted === known) return false;
  const [about, at] = (store.fact(LISTED_FOR) ?? '').split(' at ');
  const difference = `${counted} of ${known}`;
  if (about === difference && Math.abs(serverClock.nowMs() - Number(at)) < RELIST_MS) return false;
  store.saveFact(LISTED_FOR, `${difference} at ${serverClock.nowMs()}`);
  return true;
}

type FilterParts = Pick<SyncContext, 'store' | 'settings'>;

/** The longest stored list of devices whose alerts were excluded: no workspace has more. */
const MAX_LEFT_OUT = 4_000_000;

/** Records devices before an alert of theirs is excluded. One device too many does no harm. */
function recordLeftOut(parts: FilterParts, deviceIds: readonly string[]): void {
  if (deviceIds.length === 0) return;
  const before = leftOut(parts);
  if (deviceIds.every((deviceId) => before.has(deviceId))) return;
  saveLeftOut(parts, new Set([...before, ...deviceIds]));
}

/** The devices that are included again. */
function newlyIncluded(parts: FilterParts): readonly string[] {
  const before = leftOut(parts);
  if (before.size === 0) return [];
  const isExcluded = exclusionNow(parts);
  return [...before].filter((deviceId) => !isExcluded(deviceId));
}

/** Records that all alerts of these devices were read again. */
function noteReadAnew(parts: FilterParts, deviceIds: readonly string[]): void {
  if (deviceIds.length === 0) return;
  const left = leftOut(parts);
  for (const deviceId of deviceIds) left.delete(deviceId);
  saveLeftOut(parts, left);
}

function leftOut({ store }: FilterParts): Set<string> {
  return new Set(parseList<string>(store.fact(ALERTS_LEFT_OUT)));
}

function saveLeftOut({ store }: FilterParts, deviceIds: ReadonlySet<string>): void {
  const text = JSON.stringify([...deviceIds]);
  if (text.length <= MAX_LEFT_OUT) store.saveFact(ALERTS_LEFT_OUT, text);
}

/** The state digest of an alert without a point. */
const NO_POINT = '';

type Seen = Parameters<typeof observeAlert>[1];

/** Records an alert of an excluded device: known, without points. */
export function observeLeftOut(alert: AlertRecord, seen: Seen): Observed {
  const { known } = seen;
  const open = isOpen(alert);
  if (known !== null) {
    const { status } = alert;
    const facts = known.facts && { ...known.facts, status };
    return { known: { ...known, isOpen: open, facts }, changed: known.isOpen !== open, lines: [] };
  }
  const first = observeAlert(alert, seen);
  return { known: { ...first.known, stateDigest: NO_POINT }, changed: true, lines: [] };
}

/** Makes the points of an alert of a synced device. An alert that was excluded before counts as new. */
export function observeIncluded(alert: AlertRecord, seen: Seen): Observed {
  const { known } = seen;
  if (known === null || known.stateDigest !== NO_POINT) return observeAlert(alert, seen);
  const { deviceId, deviceName, kind, sensor } = known;
  const first = observeAlert({ ...alert, deviceId, kind, sensor }, { ...seen, known: null, deviceName });
  const kept: KnownAlert = { ...first.known, isListed: known.isListed };
  return { ...first, known: kept };
}

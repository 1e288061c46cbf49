/**
 * The inventory: it reads one complete list of the devices, records the changes since the last one, and makes the
 * `device` points.
 *
 * Only a complete list shows that a device is missing. A list whose cursor is rejected half-way is read again from its
 * beginning. So is an empty list if the account counts devices, or if it has no count and some devices are known: a
 * service whose storage fails returns such lists.
 *
 * Devices that are gone are requested occasionally; a device that answers again is back. A device that the last list
 * did not contain is back when a list contains it, even if it was gone because of its own 404. A device that stays
 * listed although it answers 404 is back when it answers.
 */

import { nameOf } from '../core/device-names.ts';
import { ApiFault, type ApiFaultKind } from '../core/faults.ts';
import { filterRecord } from '../core/filter.ts';
import { deviceDigest, deviceLine } from '../core/lines/fact-lines.ts';
import type { PollSettings } from '../core/ports.ts';
import type { Cursor, DevicePage, DeviceRecord, RejectedRecord } from '../core/records.ts';
import { isListedAgain, LISTING_STARTS } from '../core/retry.ts';
import type { KnownDevice, ListedDevice } from '../core/state/inventory.ts';
import { type EpochMs, type EpochNs, HOUR_MS, HOUR_NS, isLater, msToNs, nsToMs } from '../core/time.ts';
import type { Peeking, SyncContext } from './context.ts';
import { freshestFirst, includedDevices } from './filter.ts';

/** A `device` point is made when a value has changed, and at least this often. */
const POINT_EVERY_NS = HOUR_NS;

/** How long to wait before a listing starts again. */
const RETRY_MS = 1000;

/** How many devices are polled to find out whether they exist, if the account has no count. */
const MAX_CONTROLS = 3;

/**
 * The limits of a listing: this many times the number that the account counts, and some more; without a count, and
 * whatever the account counts, a number far beyond any workspace. The texts of all records together may have this many
 * characters; each record counts as a few even without text.
 */
const LISTED_MOST = { timesCounted: 10, more: 1000, ever: 100_000, characters: 32_000_000, ofARecord: 200 };

/**
 * Lists all devices and stores the listing in one transaction.
 *
 * @throws ApiFault if the listing could not be completed; then nothing is changed.
 */
export async function syncDevices(context: SyncContext, signal: AbortSignal): Promise<void> {
  await context.takeTurn('devices', async () => await syncDeviceList(context, signal), signal);
}

async function syncDeviceList(context: SyncContext, signal: AbortSignal): Promise<void> {
  const { store, observe } = context;
  const listing = await listDevices(context, signal);
  await checkAgainstDevices(context, listing, signal);
  const { records, answeredAtMs, unreadable } = listing;
  const listedToMs = listedTo(context, answeredAtMs);
  const tag = store.workspaceTag();
  if (tag === null) throw new Error('devices were listed before the workspace was known');
  const known = new Map(store.devices().map((device) => [device.record.deviceId, device]));
  const listed = [...records.values()].map((record) => toListed(context, record, { tag, atMs: answeredAtMs }));
  // A record that could not be read may be any of the known devices.
  const missing = unreadable > 0 ? [] : [...known.keys()].filter((deviceId) => !records.has(deviceId));
  store.saveInventory({ listed, missing, atMs: answeredAtMs, listedToMs });
  const newPoints = listed.filter(({ line }) => line !== null).length;
  if (newPoints > 0) context.noteArchived();
  observe({ type: 'list-page-committed', stream: 'devices', records: listed.length, newPoints });
  context.filterNotes.noteDevicesListed(listed.map(({ record }) => record));
  reportAppeared(
    context,
    listed.filter(({ record }) => !known.has(record.deviceId)),
  );
  for (const { record, name } of listed) reportRename(context, known.get(record.deviceId), name);
  for (const device of store.devices()) {
    const before = known.get(device.record.deviceId);
    if (before === undefined) continue;
    const { deviceId } = device.record;
    if (device.goneSinceMs !== null && before.goneSinceMs === null) {
      context.noteDeviceLeft(deviceId);
      observe({ type: 'device-gone', deviceId });
    }
    if (device.goneSinceMs === null && before.goneSinceMs !== null) observe({ type: 'device-returned', deviceId });
  }
}

/**
 * The time up to which a list shows signs of life. While no `Date` counts, the time of its answer comes from the local
 * clock, which may be ahead. Then the result is at most the time that the server's clock has certainly passed according
 * to the list itself, or the unconfirmed `Date`. Otherwise a later range would count as empty because of an older list.
 */
function listedTo({ serverClock }: Pick<SyncContext, 'serverClock'>, answeredAtMs: EpochMs): EpochMs {
  if (serverClock.isKnown()) return answeredAtMs;
  return Math.min(answeredAtMs, serverClock.passedMs() ?? serverClock.unconfirmed()?.dateMs ?? answeredAtMs);
}

/** The devices of all pages of one listing. */
interface Listing {
  readonly records: ReadonlyMap<string, DeviceRecord>;
  /** The number of records without a usable id. */
  readonly unreadable: number;
  /** The server's time of the last page. */
  readonly answeredAtMs: EpochMs;
}

/**
 * Lists all devices without storing them.
 *
 * @throws ApiFault if the listing could not be completed, or has none of the known devices.
 */
export async function listDevices(context: SyncContext, signal: AbortSignal): Promise<Listing> {
  for (let starts = 1; ; starts += 1) {
    try {
      const listing = await listOnce(context, signal);
      if (!isImplausible(context, listing)) return listing;
      if (starts >= LISTING_STARTS) return acceptEmptyList(context, listing);
    } catch (error) {
      if (!isListedAgain(error, starts)) throw error;
    }
    await context.clock.sleep(RETRY_MS, signal);
  }
}

/** Whether a listing has no devices although the account counts some, or, without a count, although some are known. */
function isImplausible({ store }: SyncContext, { records, unreadable }: Listing): boolean {
  const counted = store.account()?.devices ?? null;
  return records.size === 0 && unreadable === 0 && (counted === null ? isAnyKnown(store) : counted > 0);
}

/**
 * Accepts an empty list if the account has no count or no device is known. Otherwise the list would mean that all known
 * devices are gone.
 *
 * @throws ApiFault if the list is not accepted.
 */
function acceptEmptyList({ store }: SyncContext, listing: Listing): Listing {
  const counted = store.account()?.devices ?? null;
  if (counted === null || !isAnyKnown(store)) return listing;
  throw noneListed(`the account counts ${counted}`);
}

function noneListed(though: string): ApiFault {
  const message = `GET /devices: no device is listed, though ${though}`;
  return new ApiFault('malformed', message, { request: 'GET /devices' });
}

/**
 * Polls the known devices to find out whether an empty listing is true, if the account has no count.
 *
 * @throws ApiFault if it is not true.
 */
async function checkAgainstDevices(context: SyncContext, listing: Listing, signal: AbortSignal): Promise<void> {
  if (!isImplausible(context, listing) || !isAnyKnown(context.store)) return;
  const answering = await answeringDevice(context, signal);
  if (answering !== null) throw noneListed(`device ${answering} answers`);
}

function isAnyKnown(store: SyncContext['store']): boolean {
  return store.devices().some(({ goneSinceMs }) => goneSinceMs === null);
}

/**
 * Returns one of the known devices that exists (no 404); `null` if none does, or if the key does not have the scope.
 */
async function answeringDevice(context: SyncContext, signal: AbortSignal): Promise<string | null> {
  for (const { record } of freshestFirst(includedDevices(context)).slice(0, MAX_CONTROLS)) {
    const { deviceId } = record;
    const query = { deviceId, after: null, before: null, cursor: null };
    try {
      await context.api.telemetry(query, { lane: 'inventory', stream: 'devices' }, signal);
      return deviceId;
    } catch (error) {
      if (!(error instanceof ApiFault) || (error.kind !== 'not-found' && error.kind !== 'scope-missing')) throw error;
    }
  }
  return null;
}

async function listOnce(context: SyncContext, signal: AbortSignal): Promise<Listing> {
  const { api, settings } = context;
  const records = new Map<string, DeviceRecord>();
  const checkLength = createLengthCheck(context);
  let cursor: Cursor | null = null;
  let unreadable = 0;
  for (;;) {
    const reply = await api.devices(cursor, { lane: 'inventory', stream: 'devices' }, signal);
    const { devices, rejected, nextCursor } = reply.value;
    for (const record of devices) records.set(record.deviceId, filterRecord(settings.filter, record));
    unreadable += rejected.length;
    const kept = settings.filter.includesLocation ? rejected : withoutPositions(rejected);
    noteRejectedRecords(context, 'devices', kept, reply.answeredAtMs);
    if (nextCursor === null) return { records, unreadable, answeredAtMs: reply.answeredAtMs };
    if (nextCursor === cursor) throw endlessList('devices', 'the pages repeat');
    checkLength(reply.value);
    cursor = nextCursor;
  }
}

/** Keeps the records of a page that could not be read, and reports them. */
export function noteRejectedRecords(
  { store, observe }: SyncContext,
  stream: 'devices' | 'alerts',
  rejected: readonly RejectedRecord[],
  atMs: EpochMs,
): void {
  const [first] = rejected;
  if (first === undefined) return;
  store.quarantine.add(stream, rejected, atMs);
  observe({ type: 'records-rejected', stream, count: rejected.length, reason: first.reason });
}

/**
 * Checks page by page that a listing has an end.
 *
 * @returns a function that takes each page, and throws an ApiFault if there are more records than any workspace has
 */
function createLengthCheck({ store }: SyncContext): (page: DevicePage) => void {
  const counted = store.account()?.devices ?? 0;
  const expected = counted === 0 ? LISTED_MOST.ever : LISTED_MOST.timesCounted * counted + LISTED_MOST.more;
  const most = Math.min(expected, LISTED_MOST.ever);
  let listed = 0;
  let characters = 0;
  return ({ devices, rejected }) => {
    // A page without a record counts as one record.
    listed += Math.max(1, devices.length + rejected.length);
    characters += devices.reduce((sum, record) => sum + charactersOf(record), 0);
    if (listed > most)
      throw endlessList('devices', `the list is too long: ${listed} records, where the account counts ${counted}`);
    if (characters > LISTED_MOST.characters) throw endlessList('devices', 'the records are too large');
  };
}

/** The fault of a listing without an end. */
export function endlessList(stream: 'devices' | 'alerts', message: string): ApiFault {
  const request = `GET /${stream}`;
  return new ApiFault('malformed', `${request}: ${message}`, { request });
}

/** How much of the limit a record uses: its texts, and a constant for the other members. */
function charactersOf(record: DeviceRecord): number {
  const texts = Object.values(record).flat() as readonly unknown[];
  return texts.reduce<number>(
    (sum, value) => sum + (typeof value === 'string' ? value.length : 0),
    LISTED_MOST.ofARecord,
  );
}

/** Records that could not be read may contain a position anywhere in their text. */
function withoutPositions(rejected: readonly RejectedRecord[]): RejectedRecord[] {
  return rejected.map(({ reason }) => ({ reason, record: '(not kept: sync.location is false)' }));
}

function toListed(
  { store, settings, serverClock }: SyncContext,
  record: DeviceRecord,
  { tag, atMs }: { tag: string; atMs: EpochMs },
): ListedDevice {
  const name = nameOf(record);
  const digest = deviceDigest(record);
  const last = store.lastDevicePoint(record.deviceId);
  const atNs = msToNs(atMs);
  const due = last === null || last.digest !== digest || isFarFrom(atNs, last.atNs);
  // A state is written with a later time than the previous one, or not at all: two at one instant would be one point.
  const later = last === null || isLater(atMs, nsToMs(last.atNs));
  const written = due && later && serverClock.unconfirmed() === null && !settings.filter.excludes(record);
  return { record, name, digest, line: written ? deviceLine(record, tag, atMs) : null };
}

/** Whether an hour lies between two times. The earlier one may be the second, if a wrong clock made it. */
function isFarFrom(a: EpochNs, b: EpochNs): boolean {
  return a - b >= POINT_EVERY_NS || b - a >= POINT_EVERY_NS;
}

/** How many new devices of one list are reported one by one: the log has no more lines of one kind per minute. */
const APPEARED_NAMED = 10;

/** Reports the new devices of one list. */
export function reportAppeared(
  { observe }: Pick<SyncContext, 'observe'>,
  appeared: readonly Pick<ListedDevice, 'record' | 'name'>[],
): void {
  const named = appeared.slice(0, APPEARED_NAMED);
  for (const [index, { record, name }] of named.entries()) {
    const more = index === named.length - 1 ? appeared.length - named.length : 0;
    observe({ type: 'device-appeared', deviceId: record.deviceId, name, more });
  }
}

function reportRename({ observe }: SyncContext, before: KnownDevice | undefined, name: string): void {
  if (before === undefined || before.name === name) return;
  observe({ type: 'device-renamed', deviceId: before.record.deviceId, before: before.name, after: name });
}

/** The fact that records when all devices that are gone were polled. */
const POLLED_AT = 'gone_looked_at_ms';

/** The device is still gone, or the key does not have the scope. */
const NO_ANSWER: ReadonlySet<ApiFaultKind> = new Set(['not-found', 'scope-missing']);

/** Faults that one device may have forever. They must not prevent the list of the others from being accepted. */
const DEVICE_FAULTS: ReadonlySet<ApiFaultKind> = new Set(['server-fault', 'unreachable', 'malformed']);

/** How soon a device is polled again after such a fault. */
const REPOLL_MS = HOUR_MS;

/** When a device that left the workspace is due for a poll. */
export function gonePollDueMs(polledMs: EpochMs, { gonePollMs }: PollSettings): EpochMs {
  return polledMs + gonePollMs;
}

/**
 * Polls the gone devices that are due.
 *
 * @throws ApiFault for a fault that is not about one device.
 */
export async function pollGoneDevices(
  { context, scanner }: { context: SyncContext; scanner: Peeking },
  signal: AbortSignal,
): Promise<void> {
  const { store, serverClock, observe } = context;
  const { polls } = context.settings;
  const gone = includedDevices(context).filter(({ goneSinceMs }) => goneSinceMs !== null);
  const nowMs = serverClock.nowMs();
  const last = store.fact(POLLED_AT);
  if (last === null) return store.saveFact(POLLED_AT, String(nowMs));
  // A poll in the future was dated by a clock that was ahead.
  if (Number(last) <= nowMs && nowMs < gonePollDueMs(Number(last), polls)) return;
  let wasSilent = false;
  for (const { record } of gone) {
    const { deviceId } = record;
    const answer = await pollPresence(scanner, deviceId, signal);
    wasSilent ||= answer === 'silence';
    if (answer !== 'page') continue;
    store.markBack(deviceId);
    observe({ type: 'device-returned', deviceId });
  }
  // Stored only now: if a fault interrupts the polls, the other devices are polled with the next listing.
  store.saveFact(POLLED_AT, String(wasSilent ? nowMs - polls.gonePollMs + REPOLL_MS : nowMs));
}

async function pollPresence(
  scanner: Peeking,
  deviceId: string,
  signal: AbortSignal,
): Promise<'page' | 'gone' | 'silence'> {
  try {
    await scanner.peek(deviceId, signal);
    return 'page';
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    if (NO_ANSWER.has(error.kind)) return 'gone';
    if (DEVICE_FAULTS.has(error.kind)) return 'silence';
    throw error;
  }
}

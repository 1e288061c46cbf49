/**
 * The list of devices that a user requests: searched, filtered, sorted, one page at a time. Names are sorted without
 * regard to case, and numbers inside them by value. Pure.
 *
 * It uses the result of one scan for each device (`DeviceSummary`). More expensive facts are read only for the rows of
 * the page.
 */
import {
  DEVICES_A_PAGE,
  type DeviceSort,
  type DevicesPage,
  type DevicesQuery,
  MAX_SHOWN_LENGTH,
} from '../core/page-facts.ts';
import { type DeviceState, type ShownState, shownState } from '../core/status.ts';
import { compare, shortened } from '../core/text.ts';
import type { EpochNs } from '../core/time.ts';

/** A device in a scan of all of them. */
export interface DeviceSummary {
  readonly deviceId: string;
  readonly name: string;
  readonly modelId: string | null;
  /** The id of the hub that the device is connected to; `null` for none. */
  readonly parentId: string | null;
  readonly state: DeviceState;
  /** Whether readings are expected from it. */
  readonly active: boolean;
  /** As `lag_seconds` of `DeviceStatus`. */
  readonly lagSeconds: number | null;
  /** Whether it is covered up to the present. A newest range that only waits for the next poll does not count. */
  readonly isCurrent: boolean;
  /** The covered share of the wanted range, 0 to 1. */
  readonly share: number;
  readonly newestNs: EpochNs | null;
}

/** A device as the list shows it: with shortened texts and the name of its hub. */
export interface ListEntry extends Omit<DeviceSummary, 'parentId'> {
  readonly hubName: string | null;
}

/** The requested page of the devices that match a query, with the counts of all matching devices. */
interface PickedDevices extends Pick<DevicesPage, 'matching' | 'states' | 'page' | 'pages'> {
  readonly rows: readonly ListEntry[];
}

/** Sorts the devices by name, once for many queries. */
export function listByName(devices: readonly DeviceSummary[]): readonly ListEntry[] {
  const shown = (text: string): string => shortened(text, MAX_SHOWN_LENGTH);
  const names = new Map(devices.map(({ deviceId, name }) => [deviceId, shown(name)]));
  return devices
    .map(({ parentId, ...rest }) => {
      const name = shown(rest.name);
      const modelId = rest.modelId === null ? null : shown(rest.modelId);
      const hubName = parentId === null ? null : (names.get(parentId) ?? null);
      return { key: orderKey(name), device: { ...rest, name, modelId, hubName } };
    })
    .sort((a, b) => compare(a.key, b.key) || compare(a.device.deviceId, b.device.deviceId))
    .map(({ device }) => device);
}

/**
 * Picks a page.
 *
 * @param byName the result of {@link listByName}. Equal devices stay in that order.
 */
export function pickDevices(byName: readonly ListEntry[], query: DevicesQuery): PickedDevices {
  const { state, sort, reversed } = query;
  const search = foldCase(query.search.trim().slice(0, MAX_SHOWN_LENGTH));
  const found = search === '' ? byName : byName.filter((device) => matchesSearch(device, search));
  const states = { live: 0, 'catching-up': 0, silent: 0, 'out-of-service': 0, unreachable: 0, excluded: 0 };
  for (const device of found) states[shownState(device)] += 1;
  const narrowed = state === null ? found : found.filter((device) => shownState(device) === state);
  const pages = Math.max(1, Math.ceil(narrowed.length / DEVICES_A_PAGE));
  const page = Number.isFinite(query.page) ? Math.min(pages, Math.max(1, Math.floor(query.page))) : 1;
  const rows = inOrder(narrowed, sort, reversed).slice((page - 1) * DEVICES_A_PAGE, page * DEVICES_A_PAGE);
  return { rows, matching: narrowed.length, states, page, pages };
}

function matchesSearch({ name, deviceId, modelId, hubName }: ListEntry, search: string): boolean {
  const has = (text: string | null): boolean => text !== null && foldCase(text).includes(search);
  return has(name) || has(deviceId) || has(modelId) || has(hubName);
}

/** The order of states by how urgent they are. */
const URGENCY: Readonly<Record<ShownState, number>> = {
  unreachable: 0,
  'catching-up': 1,
  silent: 2,
  live: 3,
  'out-of-service': 4,
  excluded: 5,
};

/**
 * Numbers that sort the worst device first. Times are doubles: two times closer than the precision of a double count as
 * equal.
 */
const RANKS: Readonly<Record<Exclude<DeviceSort, 'name'>, (device: ListEntry) => number>> = {
  state: (device) => URGENCY[shownState(device)],
  lag: ({ lagSeconds }) => (lagSeconds === null ? Number.NEGATIVE_INFINITY : -lagSeconds),
  covered: ({ share }) => share,
  reading: ({ newestNs }) => (newestNs === null ? Number.NEGATIVE_INFINITY : Number(newestNs)),
};

function inOrder(byName: readonly ListEntry[], sort: DeviceSort, reversed: boolean): readonly ListEntry[] {
  if (sort === 'name') return reversed ? byName.toReversed() : byName;
  const rank = RANKS[sort];
  const sign = reversed ? -1 : 1;
  const isLast = ({ state }: ListEntry): number => Number(state === 'excluded');
  return byName
    .map((device) => ({ device, last: isLast(device), rank: sign * rank(device) }))
    .sort((a, b) => a.last - b.last || compare(a.rank, b.rank))
    .map(({ device }) => device);
}

/** Longer runs of digits are compared as text. */
const MOST_DIGITS = 15;

/** A text by which a name is sorted. It is made once per name, because there may be ten thousand names. */
export function orderKey(name: string): string {
  return foldCase(name).replace(/\d+/g, (digits) => digits.padStart(MOST_DIGITS, '0'));
}

/** A text without the differences of case and of the way in which accents are written. */
function foldCase(text: string): string {
  return text.normalize('NFC').toLowerCase();
}

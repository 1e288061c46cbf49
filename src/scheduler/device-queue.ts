/**
 * The device queue: it orders the devices by how much a request for their newest readings is worth. Each device has a
 * state, and each state that waits for something has a heap. A change takes a few heap steps for any number of devices.
 *
 * | state   | what it means                                   | its heaps, and their order                          |
 * | ------- | ----------------------------------------------- | --------------------------------------------------- |
 * | absent  | not known                                       | -                                                   |
 * | idle    | no new reading is expected                      | `idle`: when its idle poll is due                   |
 * | waiting | a new reading is expected later                 | `waiting`: when it becomes ready or full            |
 * | ready   | a new reading is expected to be there           | `ready`: oldest reading; `filling`: when it is full |
 * | full    | a full page is there; waiting costs another one | `full`: when it runs over, or its turn              |
 * | polling | a request about it is under way                 | -                                                   |
 *
 * The next state for each state and event. `placed` is `idle` or `waiting`, as the outlook of the device
 * (`computeOutlook`) decides.
 *
 * | event     | absent | idle    | waiting | ready   | full    | polling |
 * | --------- | ------ | ------- | ------- | ------- | ------- | ------- |
 * | stored    | placed | placed  | placed  | placed  | placed  | polling |
 * | listed    | placed | placed  | placed  | placed  | placed  | polling |
 * | left      | absent | absent  | absent  | absent  | absent  | absent  |
 * | began     | absent | polling | polling | polling | polling | polling |
 * | answered  | absent | placed  | placed  | placed  | placed  | placed  |
 * | failed    | absent | placed  | placed  | placed  | placed  | placed  |
 * | released  | absent | placed  | placed  | placed  | placed  | placed  |
 * | reordered | absent | placed  | placed  | placed  | placed  | polling |
 * | due       | absent | idle    | ready   | ready   | full    | polling |
 * | filled    | absent | idle    | waiting | full    | full    | polling |
 *
 * A live request goes to the head of `full`, otherwise to the head of `ready`. So a page that fills up before the turn
 * of its device goes first. If the quota cannot carry all readings, every device gets its newest page in turn.
 */

import { MINUTE_MS } from '../core/time.ts';
import {
  computeOutlook,
  idlePollDueMs,
  type LiveGap,
  NEVER_MS,
  needsRate,
  nextReadingMs,
  noteFailure,
  noteListed,
  notePollAnswer,
  noteSilent,
  type Outlook,
  type OutlookFacts,
  type OutlookRules,
  type PollAnswer,
  stopAtMs,
  turnOrderMs,
  unknownDevice,
} from './device-outlook.ts';
import { createHeap, dropSlot, type Heap, headKey, headSlot, putSlot } from './heap.ts';
import type { ReportRate } from './report-rate.ts';

/** Where a device is in the queue. */
export type QueueState = 'absent' | 'idle' | 'waiting' | 'ready' | 'full' | 'polling';

/** `left`: the device is gone, excluded or removed. `reordered`: the rules changed, or its rest ended early. */
export type DeviceEvent =
  | 'stored'
  | 'listed'
  | 'left'
  | 'began'
  | 'answered'
  | 'failed'
  | 'released'
  | 'reordered'
  | 'due'
  | 'filled';

/** The state after each event, as in the table in the header. */
// biome-ignore format: a row for each event
const TRANSITIONS: Readonly<Record<DeviceEvent, Readonly<Record<QueueState, QueueState | 'placed'>>>> = {
  stored:    { absent: 'placed', idle: 'placed',  waiting: 'placed',  ready: 'placed',  full: 'placed',  polling: 'polling' },
  listed:    { absent: 'placed', idle: 'placed',  waiting: 'placed',  ready: 'placed',  full: 'placed',  polling: 'polling' },
  left:      { absent: 'absent', idle: 'absent',  waiting: 'absent',  ready: 'absent',  full: 'absent',  polling: 'absent' },
  began:     { absent: 'absent', idle: 'polling', waiting: 'polling', ready: 'polling', full: 'polling', polling: 'polling' },
  answered:  { absent: 'absent', idle: 'placed',  waiting: 'placed',  ready: 'placed',  full: 'placed',  polling: 'placed' },
  failed:    { absent: 'absent', idle: 'placed',  waiting: 'placed',  ready: 'placed',  full: 'placed',  polling: 'placed' },
  released:  { absent: 'absent', idle: 'placed',  waiting: 'placed',  ready: 'placed',  full: 'placed',  polling: 'placed' },
  reordered: { absent: 'absent', idle: 'placed',  waiting: 'placed',  ready: 'placed',  full: 'placed',  polling: 'polling' },
  due:       { absent: 'absent', idle: 'idle',    waiting: 'ready',   ready: 'ready',   full: 'full',    polling: 'polling' },
  filled:    { absent: 'absent', idle: 'idle',    waiting: 'waiting', ready: 'full',    full: 'full',    polling: 'polling' },
};

type HeapName = 'idle' | 'waiting' | 'ready' | 'filling' | 'full';

/** The heaps that a device is in. */
const HEAPS_OF: Readonly<Record<QueueState, readonly HeapName[]>> = {
  absent: [],
  idle: ['idle'],
  waiting: ['waiting'],
  ready: ['ready', 'filling'],
  full: ['full'],
  polling: [],
};

const NOTHING_EXPECTED: Outlook = {
  oldestMs: Number.POSITIVE_INFINITY,
  dueMs: Number.POSITIVE_INFINITY,
  fullMs: Number.POSITIVE_INFINITY,
};

/** A device with its place in the heaps and the facts that decide when it is polled. */
interface QueuedDevice {
  readonly deviceId: string;
  readonly slot: number;
  state: QueueState;
  readonly facts: OutlookFacts;
  /** The outlook at its last placement. */
  outlook: Outlook;
}

/** The rules that depend on the quota and the settings. */
export type QuotaRules = Omit<OutlookRules, 'isUnlisted'>;

/** The queue of all devices. Only the functions of this file change it. */
export interface DeviceQueue {
  rules: OutlookRules;
  readonly devices: Map<string, QueuedDevice>;
  readonly bySlot: (QueuedDevice | undefined)[];
  readonly freeSlots: number[];
  readonly heaps: Readonly<Record<HeapName, Heap>>;
  /** The readings per ms of each slot, and their sum, updated with each change. */
  readonly rates: number[];
  rateSum: number;
  droppedHints: number;
}

/** Creates a queue without devices. */
export function createDeviceQueue(rules: QuotaRules): DeviceQueue {
  return {
    rules: { ...rules, isUnlisted: false },
    devices: new Map(),
    bySlot: [],
    freeSlots: [],
    heaps: {
      idle: createHeap(),
      waiting: createHeap(),
      ready: createHeap(),
      filling: createHeap(),
      full: createHeap(),
    },
    rates: [],
    rateSum: 0,
    droppedHints: 0,
  };
}

/** How long a device rests after a failure if only its history was requested. */
const UNTRACKED_REST_MS = MINUTE_MS;
/** At most this many devices are moved at once: after a start all are due at once, and no decision may take long. */
const MOVES = 200;

/** The stored facts about a device at the start. */
interface StoredDevice {
  readonly newestMs: number | null;
  readonly polledMs: number | null;
  readonly rate: ReportRate;
  /** The gap below the newest covered range. */
  readonly liveGap?: LiveGap | null;
  /** Whether its empty answers were confirmed for good: its signs of life come without readings. */
  readonly isSilent?: boolean;
}

/** A device as a listing shows it. */
export interface PlannedDevice {
  readonly deviceId: string;
  /** `last_seen_at`; `null` if the listing has none. */
  readonly seenMs: number | null;
  /**
   * Whether readings are expected in its lifecycle status. A paused, shelved or retired device is polled only by hint
   * and idle poll.
   */
  readonly isActive: boolean;
  /** Whether the listing shows it as offline; by default it does not. */
  readonly isOffline?: boolean;
}

/** Adds a device with its stored facts: at the start, when it returns, and when other work has polled it. */
export function noteDeviceStored(queue: DeviceQueue, deviceId: string, stored: StoredDevice): void {
  const device = openDevice(queue, deviceId);
  Object.assign(device.facts, {
    newestMs: stored.newestMs ?? NEVER_MS,
    polledMs: stored.polledMs ?? NEVER_MS,
    rate: stored.rate,
    liveGap: stored.liveGap ?? null,
    isQuiet: false,
    failures: 0,
    restMs: NEVER_MS,
  });
  if (stored.isSilent === true) noteSilent(device.facts);
  move(queue, device, 'stored');
}

/**
 * Records a device of a listing.
 *
 * @returns whether a quiet device has new readings.
 */
export function noteDeviceListed(
  queue: DeviceQueue,
  { deviceId, seenMs, isActive, isOffline = false }: PlannedDevice,
  nowMs: number,
): boolean {
  const device = openDevice(queue, deviceId);
  Object.assign(device.facts, { isActive, isOffline });
  const hasNewReadings = noteListed(device.facts, seenMs, nowMs);
  move(queue, device, 'listed');
  return hasNewReadings;
}

/** Removes a device from the queue. */
export function dropDevice(queue: DeviceQueue, deviceId: string): void {
  const device = queue.devices.get(deviceId);
  if (device !== undefined) move(queue, device, 'left');
}

/** Records that a request about the device is under way; the request may be for its history. */
export function beginDevice(queue: DeviceQueue, deviceId: string): void {
  const device = queue.devices.get(deviceId);
  if (device !== undefined) move(queue, device, 'began');
}

/** Records an answer about the newest end of a device. The device may have left in the meantime. */
export function noteDeviceAnswer(queue: DeviceQueue, deviceId: string, answer: PollAnswer, nowMs: number): void {
  const device = queue.devices.get(deviceId);
  if (device === undefined) return;
  if (notePollAnswer(device.facts, answer, nowMs)) queue.droppedHints += 1;
  move(queue, device, 'answered');
}

/**
 * Records a failure of the device.
 *
 * @returns the end of its rest.
 */
export function noteDeviceFailure(queue: DeviceQueue, deviceId: string, nowMs: number): number {
  const device = queue.devices.get(deviceId);
  if (device === undefined) return nowMs + UNTRACKED_REST_MS;
  noteFailure(device.facts, nowMs);
  move(queue, device, 'failed');
  return device.facts.restMs;
}

/** Ends the rest of a device after failures that were not its own. */
export function endDeviceRest(queue: DeviceQueue, deviceId: string): void {
  const device = queue.devices.get(deviceId);
  if (device === undefined) return;
  Object.assign(device.facts, { failures: 0, restMs: NEVER_MS });
  move(queue, device, 'reordered');
}

/** Records that the request is over without an answer about the newest end. */
export function releaseDevice(queue: DeviceQueue, deviceId: string): void {
  const device = queue.devices.get(deviceId);
  if (device !== undefined) move(queue, device, 'released');
}

/** Sets the rules that the quota gives. */
export function setRules(queue: DeviceQueue, rules: QuotaRules): void {
  queue.rules = { ...rules, isUnlisted: queue.rules.isUnlisted };
  reorder(queue);
}

/** Records whether the device list is out of date. Then devices are polled without it. */
export function setUnlisted(queue: DeviceQueue, isUnlisted: boolean): void {
  if (isUnlisted === queue.rules.isUnlisted) return;
  queue.rules = { ...queue.rules, isUnlisted };
  reorder(queue);
}

function reorder(queue: DeviceQueue): void {
  for (const device of queue.devices.values()) move(queue, device, 'reordered');
}

/** Moves devices whose time has come: to ready, and to full. */
export function advance(queue: DeviceQueue, nowMs: number): void {
  const { waiting, filling } = queue.heaps;
  for (let moves = 0; moves < MOVES && headKey(waiting) <= nowMs; moves += 1) moveHead(queue, waiting, 'due');
  for (let moves = 0; moves < MOVES && headKey(filling) <= nowMs; moves += 1) moveHead(queue, filling, 'filled');
}

function moveHead(queue: DeviceQueue, heap: Heap, event: DeviceEvent): void {
  const device = queue.bySlot[headSlot(heap)];
  if (device !== undefined) move(queue, device, event);
}

/** Moves a device to the state that an event leads to, and into the heaps of that state. */
function move(queue: DeviceQueue, device: QueuedDevice, event: DeviceEvent): void {
  const next = TRANSITIONS[event][device.state];
  for (const heap of HEAPS_OF[device.state]) dropSlot(queue.heaps[heap], device.slot);
  if (next === 'placed') {
    const outlook = computeOutlook(device.facts, queue.rules);
    device.outlook = outlook ?? NOTHING_EXPECTED;
    device.state = outlook === null ? 'idle' : 'waiting';
  } else device.state = next;
  setRate(queue, device);
  enter(queue, device);
}

function enter(queue: DeviceQueue, { deviceId, state, slot, facts, outlook }: QueuedDevice): void {
  const { heaps, rules } = queue;
  switch (state) {
    case 'idle':
      putSlot(heaps.idle, slot, Math.max(idlePollDueMs(facts.polledMs, rules.polls), facts.restMs));
      break;
    case 'waiting':
      putSlot(heaps.waiting, slot, Math.min(outlook.dueMs, outlook.fullMs));
      break;
    case 'ready':
      putSlot(heaps.ready, slot, outlook.oldestMs);
      putSlot(heaps.filling, slot, outlook.fullMs);
      break;
    case 'full':
      putSlot(heaps.full, slot, turnOrderMs(facts, rules));
      break;
    case 'polling':
      break;
    case 'absent':
      queue.devices.delete(deviceId);
      queue.bySlot[slot] = undefined;
      queue.freeSlots.push(slot);
  }
}

/** Returns a device of the queue, and adds it if it is not there. */
function openDevice(queue: DeviceQueue, deviceId: string): QueuedDevice {
  const known = queue.devices.get(deviceId);
  if (known !== undefined) return known;
  const slot = queue.freeSlots.pop() ?? queue.bySlot.length;
  const device: QueuedDevice = { deviceId, slot, state: 'absent', facts: unknownDevice(), outlook: NOTHING_EXPECTED };
  queue.devices.set(deviceId, device);
  queue.bySlot[slot] = device;
  return device;
}

function setRate(queue: DeviceQueue, device: QueuedDevice): void {
  const { intervalMs } = device.facts.rate;
  const isCounted = isSpeaking(device) && intervalMs !== null && intervalMs > 0;
  const perMs = isCounted ? 1 / intervalMs : 0;
  queue.rateSum += perMs - (queue.rates[device.slot] ?? 0);
  queue.rates[device.slot] = perMs;
}

function isSpeaking(device: QueuedDevice): boolean {
  return device.state !== 'absent' && !device.facts.isQuiet;
}

/** The device whose live request is most valuable. */
export interface LivePick {
  readonly deviceId: string;
  /** The lag of its oldest uncovered reading, in ms; infinite if it was never polled. */
  readonly lagMs: number;
  /** Where the request should stop; `null`: at the newest reading. */
  readonly untilMs: number | null;
}

/** The device whose request is most valuable, at the time of the last `advance`; `null` if none has new readings. */
export function pickLive({ heaps, bySlot, rules }: DeviceQueue, nowMs: number): LivePick | null {
  const device = bySlot[heaps.full.size > 0 ? headSlot(heaps.full) : headSlot(heaps.ready)];
  if (device === undefined) return null;
  const { facts, outlook } = device;
  const isNew = facts.newestMs === NEVER_MS && facts.liveGap === null;
  const lagMs = isNew ? Number.POSITIVE_INFINITY : nowMs - outlook.oldestMs;
  return { deviceId: device.deviceId, lagMs, untilMs: stopAtMs(facts, rules, nowMs) };
}

/** The device whose idle poll is due. */
export function pickIdle({ heaps, bySlot }: DeviceQueue, nowMs: number): string | null {
  return headKey(heaps.idle) <= nowMs ? (bySlot[headSlot(heaps.idle)]?.deviceId ?? null) : null;
}

/**
 * The time until which no reading of a device is overdue, if the listing does not follow the device; `null` if no such
 * time is known.
 */
export function nextDeviceReadingMs({ devices, rules }: DeviceQueue, deviceId: string): number | null {
  const device = devices.get(deviceId);
  return device === undefined ? null : nextReadingMs(device.facts, rules.polls);
}

/** Whether the next page of a device should show how often it reports. */
export function needsDeviceRate({ devices, rules }: DeviceQueue, deviceId: string): boolean {
  const device = devices.get(deviceId);
  return device !== undefined && needsRate(device.facts, rules);
}

/** When the next device becomes ready; infinite if none will. */
export function nextReadyMs({ heaps }: DeviceQueue): number {
  return headKey(heaps.waiting);
}

/** When the next idle poll is due; infinite if none will be. */
export function nextIdleMs({ heaps }: DeviceQueue): number {
  return headKey(heaps.idle);
}

/** How many devices are ready or full now. */
export function readyCount({ heaps }: DeviceQueue): number {
  return heaps.ready.size + heaps.full.size;
}

/** The readings that all reporting devices make, per ms. */
export function readingsPerMs({ rateSum }: DeviceQueue): number {
  return Math.max(0, rateSum);
}

/** The report rates of the polled devices, for the demand. */
export interface Rates {
  /** The interval between readings, in ms, of each device that reports and whose rate is known. */
  readonly knownMs: readonly number[];
  /** Devices that report at an unknown rate. */
  readonly unknown: number;
  readonly quiet: number;
}

/** How fast the devices report, as far as is known. Reads every device. */
export function ratesOf({ devices }: DeviceQueue): Rates {
  const knownMs: number[] = [];
  let [unknown, quiet] = [0, 0];
  for (const device of devices.values()) {
    const { intervalMs } = device.facts.rate;
    if (!isSpeaking(device)) quiet += 1;
    else if (intervalMs === null) unknown += 1;
    else knownMs.push(intervalMs);
  }
  return { knownMs, unknown, quiet };
}

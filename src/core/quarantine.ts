/**
 * Rules of the quarantine: which items a filter selects, which belong together, and what is lost when they are dropped.
 * Pure.
 *
 * A server's message usually repeats the value or the line that it rejects, so every message is different. Items are
 * grouped by the form of the message, without figures and quotations.
 */

import { identityTag } from './lines/line-protocol.ts';
import { readLine } from './lines/line-reader.ts';
import type { MissingPoints } from './state/log.ts';
import type { QuarantinedItem } from './state/quarantine.ts';
import { type EpochNs, msToNs } from './time.ts';

/** Selects the items that match every given member. */
export interface QuarantineFilter {
  /** The name of a destination: selects only its lines. */
  readonly destination: string | null;
  /** Ids; empty: all. */
  readonly devices: readonly string[];
  /** A part of the message; case is ignored. */
  readonly reason: string | null;
  /** A half-open range: of the points for lines, of the rejection times for records of the API. */
  readonly from: EpochNs | null;
  readonly to: EpochNs | null;
}

/** Whether a filter selects less than all. */
export function isNarrow({ destination, devices, reason, from, to }: QuarantineFilter): boolean {
  return destination !== null || devices.length > 0 || reason !== null || from !== null || to !== null;
}

/** The subject of a line or a record. */
interface About {
  /** The value of the `device_id` tag; `null` if there is none. */
  readonly deviceTag: string | null;
  readonly at: EpochNs;
}

/** The subject of an item: the point of a line, or the time at which a record was rejected. */
export function aboutItem({ destinationId, content, source, atMs }: QuarantinedItem): About {
  if (destinationId === null) {
    return { deviceTag: RECORD_STREAMS.has(source) ? null : identityTag(source), at: msToNs(atMs) };
  }
  return aboutLine(content) ?? { deviceTag: null, at: msToNs(atMs) };
}

/** The sources of rejected records that are lists of the API, not devices. */
const RECORD_STREAMS: ReadonlySet<string> = new Set(['devices', 'alerts']);

/** The subject of a line; `null` for an invalid line. */
function aboutLine(line: string): About | null {
  try {
    const { tags, at } = readLine(line);
    return { deviceTag: tags.find(([key]) => key === 'device_id')?.[1] ?? null, at };
  } catch {
    return null;
  }
}

/**
 * Creates a function that checks whether a filter selects an item.
 *
 * @param destinations the numbers that the filter's destination has in the state.
 */
export function createMatcher(
  filter: QuarantineFilter,
  destinations: ReadonlySet<number>,
): (item: QuarantinedItem) => boolean {
  const { devices, from, to } = filter;
  const part = filter.reason?.toLowerCase() ?? '';
  const tags = new Set<string>(devices.map(identityTag));
  const mentions = devices.map((deviceId) => JSON.stringify(deviceId));
  const isOfDevice = (item: QuarantinedItem, { deviceTag }: About): boolean => {
    if (deviceTag !== null) return tags.has(deviceTag);
    return item.destinationId === null && mentions.some((mention) => item.content.includes(mention));
  };
  const isOfDestination = ({ destinationId }: QuarantinedItem): boolean =>
    filter.destination === null || (destinationId !== null && destinations.has(destinationId));
  const isInTime = ({ at }: About): boolean => (from === null || at >= from) && (to === null || at < to);
  const hasPointFilter = devices.length > 0 || from !== null || to !== null;
  return (item) => {
    if (!isOfDestination(item) || !item.reason.toLowerCase().includes(part)) return false;
    if (!hasPointFilter) return true;
    const about = aboutItem(item);
    return isInTime(about) && (devices.length === 0 || isOfDevice(item, about));
  };
}

/**
 * The points that are missing in a destination after a line is dropped; `null` for a record.
 *
 * @param deviceOf returns the id of a device by its tag.
 */
export function missingAfterDrop(line: string, deviceOf: (tag: string) => string): MissingPoints | null {
  const about = aboutLine(line);
  if (about === null) return null;
  const { deviceTag, at } = about;
  const deviceId = deviceTag === null ? '' : deviceOf(deviceTag);
  return { deviceId, fromNs: at, toNs: at + 1n, reason: 'dropped', points: 1 };
}

/** Items with the same kind of message. */
export interface QuarantineGroup {
  readonly destinationId: number | null;
  /** The message of its first item; `many other reasons` in the group of the rest. */
  readonly reason: string;
  /** Parts of the message that all items contain, safe to be typed into a shell, the most specific first. */
  readonly parts: readonly string[];
  count: number;
  from: EpochNs;
  to: EpochNs;
  /** The contents of its first `SAMPLES` items. */
  readonly samples: string[];
}

/** The most groups of a destination; further items are added to its last group. */
const MAX_GROUPS = 200;
const SAMPLES = 3;

/** Groups items in constant memory. */
export function createGroups(): { add(item: QuarantinedItem): void; all(): readonly QuarantineGroup[] } {
  const groups = new Map<string, QuarantineGroup>();
  return {
    add: (item) => {
      const { destinationId, reason, content } = item;
      const shape = shapeOf(reason);
      const own = `${destinationId} ${shape}`;
      const isRoom = groups.size < MAX_GROUPS || groups.has(own);
      const key = isRoom ? own : `${destinationId} `;
      const { at } = aboutItem(item);
      const known = groups.get(key);
      if (known === undefined) {
        const group = isRoom ? { reason, parts: searchableRuns(shape) } : { reason: 'many other reasons', parts: [] };
        groups.set(key, { destinationId, ...group, count: 1, from: at, to: at, samples: [content] });
        return;
      }
      known.count += 1;
      if (at < known.from) known.from = at;
      if (at > known.to) known.to = at;
      if (known.samples.length < SAMPLES) known.samples.push(content);
    },
    all: () => [...groups.values()].toSorted((a, b) => b.count - a.count),
  };
}

/** Replaces the varying parts of a message. */
const GAP = '\u0000';

/** How many characters of a message distinguish rejections. */
const SHAPE_LENGTH = 400;

/** The message without figures and long quotations. */
function shapeOf(text: string): string {
  return text
    .slice(0, 4 * SHAPE_LENGTH)
    .replace(/'[^']{25,}'|"[^"]{25,}"/g, GAP)
    .replace(/\d[\d.:TZ+-]*/g, GAP)
    .slice(0, SHAPE_LENGTH);
}

/** Long enough to distinguish reasons, short enough for a line. */
const PART_LENGTH = { least: 6, most: 40 };

/** The parts of the shape that have no special meaning inside quotes in a shell, the longest first. */
function searchableRuns(shape: string): string[] {
  const runs = shape.match(/[A-Za-z][A-Za-z _.,:=/()-]*/g) ?? [];
  return runs
    .flatMap((run) => run.split(': '))
    .map((run) => wholeWords(run.trim()))
    .filter((run) => run.length >= PART_LENGTH.least && /^[A-Za-z]/.test(run))
    .toSorted((a, b) => b.length - a.length);
}

/** Cuts a text to `PART_LENGTH.most` characters, at a space if there is one. */
function wholeWords(run: string): string {
  if (run.length <= PART_LENGTH.most) return run;
  const cut = run.slice(0, PART_LENGTH.most + 1);
  return cut.slice(0, cut.includes(' ') ? cut.lastIndexOf(' ') : PART_LENGTH.most);
}

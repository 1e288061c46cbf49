/** Sends a batch of the log to a destination in its dialect, and returns the result for each line of the log. */
import { translate } from '../core/lines/dialect.ts';
import { identityTag, isAltered } from '../core/lines/line-protocol.ts';
import { kindOf } from '../core/lines/line-reader.ts';
import type { Clock, PackedText, Sink, WriteAnswer } from '../core/ports.ts';
import { type KeptLines, type MissingPoints, NEWLINE } from '../core/state/log.ts';
import type { Store } from '../core/state/state.ts';
import { type EpochNs, isStorable, msToNs } from '../core/time.ts';
import { type Blocked, judge, type ServedDestination } from './destination.ts';
import { type RejectedLine, type Resolution, resolveBatch } from './resolve.ts';
import { missingForAge, timeOf } from './too-old.ts';

/** A batch that was sent: how far it is resolved, and what happens to the lines that were not accepted. */
export interface Sent {
  readonly resolution: Resolution;
  /** The resolved lines that go to the quarantine, with the destination's message. */
  readonly rejected: readonly RejectedLine[];
  /** The resolved lines that are older than the destination keeps. */
  readonly missing: readonly MissingPoints[];
}

/** A batch of the log that was sent. */
export interface SentKept extends Sent {
  /**
   * The last lines of a batch that one request carried, the controls for the next refusal. The caller remembers them
   * when its next request is under way.
   */
  readonly controls: readonly string[];
}

interface BatchParts {
  readonly store: Pick<Store, 'movedTo' | 'devices' | 'newestLines'>;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly controls: ControlLines;
  /** The latest time that a point may have, a day after every clock; `null` while the API's clock is unknown. */
  readonly latestNs?: (() => EpochNs | null) | undefined;
}

/** A batch that was packed in advance. */
export interface PackedBatch {
  readonly text: PackedText;
  /** Its last lines. */
  readonly controls: readonly string[];
}

/** Starts to pack a batch, for a database that takes the text of the log as it is; `undefined` for another one. */
export function packBatch({ kind, sink }: ServedDestination, { text }: KeptLines): PackedBatch | undefined {
  const packed = kind === 'influxdb' ? sink.pack?.(text) : undefined;
  return packed === undefined ? undefined : { text: packed, controls: lastLines(text, CONTROLS_FROM) };
}

/**
 * Sends a batch of the log as it is kept, in one request. Its lines are examined only if the database refuses some of
 * them, or if some may not be sent as they are.
 *
 * @param packed the batch, if it was packed in advance. Then only the packed text is kept during the request, which
 * takes a tenth of the memory. It is unpacked if the lines have to be examined.
 * @returns the result for the lines of the log
 */
export async function sendKept(
  parts: BatchParts,
  served: ServedDestination,
  { batch, packed }: { readonly batch: KeptLines; readonly packed?: PackedBatch | undefined },
  signal: AbortSignal,
): Promise<SentKept> {
  const { kind, sink } = served;
  const isWhole = kind === 'influxdb' && isSendable(batch.extent, parts.latestNs?.() ?? null);
  const send = sink.writeText;
  if (!isWhole || send === undefined) return withoutControls(await sendBatch(parts, served, batch, signal));
  const body = packed === undefined ? textBody(batch) : packedBody(packed);
  return await sendWhole(parts, served, { ...body, send, count: batch.count }, signal);
}

/** A batch as one request carries it. It holds the text of the batch only if that is not packed. */
interface WholeBatch {
  readonly body: Uint8Array | PackedText;
  readonly lines: () => Promise<readonly string[]>;
  /** The last lines, which become controls if the whole batch is accepted. */
  readonly controls: readonly string[];
}

function textBody(batch: KeptLines): WholeBatch {
  return { body: batch.text, lines: async () => batch.lines, controls: lastLines(batch.text, CONTROLS_FROM) };
}

function packedBody({ text, controls }: PackedBatch): WholeBatch {
  return { body: text, lines: async () => linesOf(await text.unpack()), controls };
}

function linesOf(text: Uint8Array): string[] {
  return Buffer.from(text.buffer, text.byteOffset, text.length - 1)
    .toString('utf8')
    .split('\n');
}

/** Sends the whole batch in one request. */
async function sendWhole(
  parts: BatchParts,
  served: ServedDestination,
  {
    send,
    body,
    lines,
    count,
    controls,
  }: WholeBatch & {
    readonly send: NonNullable<Sink['writeText']>;
    readonly count: number;
  },
  signal: AbortSignal,
): Promise<SentKept> {
  const answer = await send(body, signal);
  const verdict = judge(answer);
  // The answer concerned no single line.
  if (verdict.does === 'keep') return noneRejected({ accepted: 0, blocked: verdict.blocked, controls: [] });
  if (verdict.does !== 'accept')
    return withoutControls(await sendBatch(parts, served, { lines: await lines(), answered: answer }, signal));
  return noneRejected({ accepted: count, blocked: null, controls });
}

/** `sendBatch` remembers its controls itself. */
function withoutControls(sent: Sent): SentKept {
  return { ...sent, controls: [] };
}

/** The result of one request that rejected no line. */
function noneRejected({
  accepted,
  blocked,
  controls,
}: {
  readonly accepted: number;
  readonly blocked: Blocked | null;
  readonly controls: readonly string[];
}): SentKept {
  const resolution = { resolved: accepted, acceptedLines: accepted, blocked, requests: 1, tooLarge: false };
  return { resolution: { ...resolution, rejected: [] }, rejected: [], missing: [], controls };
}

/** Whether all lines with times in this extent may be sent: see `unsendable`. */
function isSendable(extent: KeptLines['extent'], latestNs: EpochNs | null): boolean {
  if (extent === null) return true;
  return isStorable(extent.first) && isStorable(extent.last) && (latestNs === null || extent.last <= latestNs);
}

/** Returns the last lines of a text, at most `most`. */
function lastLines(text: Uint8Array, most: number): string[] {
  let from = text.length - 1;
  for (let left = most; left > 0 && from > 0; left -= 1) from = text.lastIndexOf(NEWLINE, from - 1);
  const bytes = text.subarray(Math.max(from + 1, 0), -1);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8').split('\n');
}

/** A kill loses at most the results of this many requests. The next run repeats that search. */
const MAX_REQUESTS = 1000;

/**
 * Sends a batch, and remembers its last accepted lines as controls.
 *
 * @param answered the answer of the database to all of the lines at once, if there is one already
 * @returns the result for the lines of the log
 */
export async function sendBatch(
  { store, clock, controls, latestNs }: BatchParts,
  { kind, sink }: ServedDestination,
  { lines, answered }: { readonly lines: readonly string[]; readonly answered?: WriteAnswer },
  signal: AbortSignal,
): Promise<Sent> {
  const latest = latestNs?.() ?? null;
  const storable = lines.flatMap((line, index) => (unsendable(line, latest) === null ? [index] : []));
  const { lines: sent, origins: indexes } = translate(
    kind,
    storable.map((index) => lines[index] ?? ''),
    store.movedTo,
  );
  const origins = indexes.map((index) => storable[index] ?? 0);
  const ages = { newestAccepted: controls.newest, now: () => msToNs(clock.nowMs()) };
  const otherControlFor = (line: string): string | null => controls.latestUnlike(line) ?? archivedUnlike(store, line);
  const options = { controlFor: controls.latestLike, otherControlFor, ages, maxRequests: MAX_REQUESTS };
  const isAnswered = answered !== undefined && sent.length === lines.length;
  const outcome = await resolveBatch(isAnswered ? answeredFirst(sink, answered) : sink, sent, options, signal);
  controls.remember(acceptedAtEnd(sent, outcome));
  // Lines that this destination does not get are resolved together with the line before them.
  const resolved = origins[outcome.resolved] ?? lines.length;
  const refused = outcome.rejected.map((each) => {
    const index = origins[each.index] ?? 0;
    return { ...each, index, line: lines[index] ?? '' };
  });
  const notSent = storable.length === lines.length ? [] : neverSent(lines.slice(0, resolved), latest);
  const rejected = [...refused, ...notSent].sort((a, b) => a.index - b.index);
  const resolution = { ...outcome, rejected, resolved };
  const tooOld = rejected.filter(({ retention }) => retention).map(({ line }) => line);
  return {
    resolution,
    rejected: rejected.filter(({ retention }) => !retention),
    missing: tooOld.length === 0 ? [] : missingForAge(tooOld, (tag) => findDeviceId(store, tag)),
  };
}

/** Wraps a sink: its first request returns an answer that was received before. */
function answeredFirst(sink: Sink, answer: WriteAnswer): Sink {
  let isFirst = true;
  return {
    name: sink.name,
    write: async (lines, signal) => {
      if (!isFirst) return await sink.write(lines, signal);
      isFirst = false;
      return answer;
    },
  };
}

/** A time with fewer digits always fits 64 bits. */
const LONG_TIME = 19;

/**
 * Why a line must not be sent to any database; `null`: it may be sent. A time that no database can store would block
 * the delivery forever, and a time that no clock has reached comes from a wrong clock.
 */
function unsendable(line: string, latestNs: EpochNs | null): string | null {
  if (line.length - line.lastIndexOf(' ') - 1 < LONG_TIME) return null;
  const at = timeOf(line);
  if (!isStorable(at)) {
    return 'not sent: no database can store the time of this point (outside 1677 to 2262)';
  }
  const isFuture = latestNs !== null && at > latestNs;
  return isFuture ? 'not sent: the time of this point is more than a day in the future' : null;
}

/** The resolved lines that are not sent because of their time. */
function neverSent(lines: readonly string[], latestNs: EpochNs | null): RejectedLine[] {
  return lines.flatMap((line, index) => {
    const message = unsendable(line, latestNs);
    return message === null ? [] : [{ index, line, message, retention: false }];
  });
}

/** The id of the device with a `device_id` tag: the tag itself, unless the id is not allowed in a line. */
export function findDeviceId(store: Pick<Store, 'devices'>, tag: string): string {
  if (!isAltered(tag)) return tag;
  return store.devices().find(({ record }) => identityTag(record.deviceId) === tag)?.record.deviceId ?? tag;
}

/** Accepted lines in the form in which they were sent: controls for the next refusal (`resolve.ts`). */
export interface ControlLines {
  /** The latest accepted line with the same measurement and fields as `line`. */
  latestLike(line: string): string | null;
  /** The latest accepted line with another measurement or other fields. */
  latestUnlike(line: string): string | null;
  /** The newest accepted line by time. */
  newest(): string | null;
  /** Records accepted lines, the latest last. */
  remember(accepted: readonly string[]): void;
}

/** Returns the last remembered line of any other kind. */
export function otherKind(byKind: ReadonlyMap<string, string>, line: string): string | null {
  return [...byKind].findLast(([kind]) => kind !== kindOf(line))?.[1] ?? null;
}

/**
 * An archived line with another measurement or other fields. It is used after a restart, when no accepted line is
 * remembered.
 *
 * @returns `null` if the newest blocks have none.
 */
function archivedUnlike(store: Pick<Store, 'newestLines'>, line: string): string | null {
  const kind = kindOf(line);
  return store.newestLines().find((each) => kindOf(each) !== kind) ?? null;
}

/** How many lines at the end of a batch are remembered as controls. */
const CONTROLS_FROM = 50;

/** Creates control lines without any accepted line. */
export function createControlLines(): ControlLines {
  const byKind = new Map<string, string>();
  let newest: { readonly line: string; readonly at: EpochNs } | null = null;
  return {
    latestLike: (line) => byKind.get(kindOf(line)) ?? null,
    latestUnlike: (line) => otherKind(byKind, line),
    newest: () => newest?.line ?? null,
    remember: (accepted) => {
      for (const line of accepted) {
        const kind = kindOf(line);
        // Deleted first, so that the map keeps the kinds in the order of their last acceptance.
        byKind.delete(kind);
        byKind.set(kind, line);
        const at = timeOf(line);
        if (newest === null || at > newest.at) newest = { line, at };
      }
    },
  };
}

/** The accepted lines among the last resolved ones. */
function acceptedAtEnd(lines: readonly string[], { resolved, rejected }: Resolution): string[] {
  const isRejected = new Set(rejected.map(({ index }) => index));
  const first = Math.max(0, resolved - CONTROLS_FROM);
  return lines.slice(first, resolved).filter((_, nth) => !isRejected.has(first + nth));
}

/**
 * Translates the lines of the log for VictoriaMetrics, which stores only numbers, and times in milliseconds.
 *
 * Pure: the same line of the log always becomes the same line, so sending it again changes nothing. Every result is
 * valid, because VictoriaMetrics answers 204 to lines that it drops.
 */

import { parseJson } from '../json.ts';
import { type EpochNs, MS_NS } from '../time.ts';
import { identityTag } from './line-protocol.ts';
import { isTelemetryLine, readLine, seriesOf } from './line-reader.ts';

/** The kinds of database that points can go to. */
export const DESTINATION_KINDS = ['influxdb', 'victoriametrics'] as const;
export type DestinationKind = (typeof DESTINATION_KINDS)[number];

/** The name of each kind, for people. */
export const DESTINATION_NAMES: Readonly<Record<DestinationKind, string>> = {
  influxdb: 'InfluxDB',
  victoriametrics: 'VictoriaMetrics',
};

/** A telemetry value that is written next to its own time, identified by its written time. */
export interface MovedValue {
  readonly deviceId: string;
  /** The sensor as its tag value reads. */
  readonly sensor: string;
  readonly recordedNs: EpochNs;
  readonly writtenNs: EpochNs;
}

/** Finds the values that were written at any of the given instants instead of their own time. */
export type FindMoved = (writtenAt: readonly EpochNs[]) => readonly MovedValue[];

/** The translated lines of a batch. */
interface Translation {
  readonly lines: readonly string[];
  /** For each of `lines` the index of its line in the batch; ascending. */
  readonly origins: readonly number[];
}

/** Translates lines of the log for a database of a kind. Lines that it cannot store are left out. */
export function translate(kind: DestinationKind, lines: readonly string[], findMoved: FindMoved): Translation {
  if (kind === 'influxdb') return { lines, origins: lines.map((_, index) => index) };
  const moved = movedAmong(lines, findMoved);
  const sent: string[] = [];
  const origins: number[] = [];
  lines.forEach((line, index) => {
    const text = numbersOnly(line, moved);
    if (text === null) return;
    sent.push(text);
    origins.push(index);
  });
  return { lines: sent, origins };
}

/** The recorded times of values with an offset, by series and written time. */
type Recorded = ReadonlyMap<string, EpochNs>;

/** Looks up only values that can have an offset: telemetry whose time is no whole millisecond. */
function movedAmong(lines: readonly string[], findMoved: FindMoved): Recorded {
  const instants = new Set<EpochNs>();
  for (const line of lines) {
    if (!isTelemetryLine(line) || line.endsWith('000000')) continue;
    instants.add(BigInt(line.slice(line.lastIndexOf(' ') + 1)));
  }
  if (instants.size === 0) return new Map();
  const found = findMoved([...instants]);
  return new Map(
    found.map(({ deviceId, sensor, recordedNs, writtenNs }) => [
      valueKey(identityTag(deviceId), sensor, writtenNs),
      recordedNs,
    ]),
  );
}

function valueKey(device: string, sensor: string, writtenNs: EpochNs): string {
  return `${writtenNs} ${device}\n${sensor}`;
}

/** Returns the line for VictoriaMetrics, with its time in milliseconds; `null` if it has no number. */
function numbersOnly(line: string, moved: Recorded): string | null {
  const { measurement, tags, fields, at } = readLine(line);
  const numbers = fields.filter(([, raw]) => !raw.startsWith('"')).map(([key, raw]) => `${key}=${numberOf(raw)}`);
  if (numbers.length === 0) return null;
  const tag = (name: string): string => tags.find(([key]) => key === name)?.[1] ?? '';
  const recordedNs =
    measurement === 'telemetry' && moved.size > 0
      ? moved.get(valueKey(tag('device_id'), tag('sensor'), at))
      : undefined;
  // A point k nanoseconds after its instant is written k milliseconds after it.
  const ms = recordedNs === undefined ? floorToMs(at) : floorToMs(recordedNs) + (at - recordedNs);
  return `${seriesOf(line)} ${numbers.join(',')} ${ms}`;
}

function numberOf(raw: string): string {
  if (raw === 'true') return '1';
  return raw === 'false' ? '0' : raw;
}

/** Rounds down, also before 1970: bigint division alone would round up there. */
function floorToMs(at: EpochNs): bigint {
  const ms = at / MS_NS;
  return at < 0n && ms * MS_NS !== at ? ms - 1n : ms;
}

/** The identity of a destination: if any of it changes, the log is delivered to it from the beginning. */
interface DestinationAddress {
  /** `auto` while it is not known yet. */
  readonly kind: DestinationKind | 'auto';
  readonly url: string;
  readonly org: string;
  readonly bucket: string;
}

/** The text that identifies a destination in the state. It must not change: another text means another destination. */
export function destinationIdentity({ kind, url, org, bucket }: DestinationAddress): string {
  return JSON.stringify([kind, url, org, bucket]);
}

/** The same identity, with a known kind. */
export function withKind(identity: string, kind: DestinationKind): string {
  const [, ...place]: unknown[] = JSON.parse(identity);
  return JSON.stringify([kind, ...place]);
}

/** Whether the kind of the database is not known yet: nothing was sent to it so far. */
export function isKindUnknown(identity: string): boolean {
  return parseIdentity(identity)?.[0] === 'auto';
}

/** A destination in words for people, without anything secret: kind, address, bucket. */
export function describeIdentity(identity: string): string {
  const parts = parseIdentity(identity);
  if (parts === null) return 'another destination';
  const [kind = '', url = '', , bucket = ''] = parts;
  const address = URL.canParse(url) ? new URL(url).origin + new URL(url).pathname.replace(/\/$/, '') : 'an address';
  return `${DESTINATION_NAMES[kind === 'victoriametrics' ? kind : 'influxdb']} at ${address}${bucket === '' ? '' : `, bucket ${bucket}`}`;
}

function parseIdentity(identity: string): readonly string[] | null {
  const parts = parseJson(identity);
  return Array.isArray(parts) ? parts.map(String) : null;
}

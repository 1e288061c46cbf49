/**
 * The databases of a configuration: the `influx` section, and those under `destinations`, each by a name of its own
 * with the keys that `influx` takes (design 1.3).
 */

import type { DestinationKind } from '../core/lines/dialect.ts';
import type { Secret } from '../core/secret.ts';
import { isGiven, type Reading, readCertificates, readSecret, readValue } from './reader.ts';
import type { Given } from './sources.ts';

/** One database. */
export interface InfluxConfig {
  /** Without a slash at its end. */
  readonly url: string;
  readonly token: Secret | null;
  readonly tokenFile: string | null;
  readonly org: string;
  /** Empty where a VictoriaMetrics needs none. */
  readonly bucket: string;
  readonly kind: 'auto' | DestinationKind;
  readonly ca: string | null;
  readonly timeoutMs: number;
  readonly batchLines: number;
}

/** A database under `destinations`. */
export interface NamedDatabase extends InfluxConfig {
  readonly name: string;
}

/** The name of the database that the `influx` section is. */
const SECTION = 'influx';

/** The database of the `influx` section: `url` and `bucket` make one, and nothing may be said about one without them. */
export function readInflux(reading: Reading): InfluxConfig | null {
  const influx = readDatabase(reading);
  const first = [...reading.given].find(([path]) => path.startsWith(`${SECTION}.`))?.[1].place;
  if (first === undefined) return null;
  demandPlace(reading, { section: SECTION, first, kind: influx.kind });
  return influx;
}

/** The databases under `destinations`, in the order of the file. */
export function readDestinations(reading: Reading): NamedDatabase[] {
  const named = [...reading.given].filter(([path]) => /^destinations\.[^.]+$/.test(path));
  return named.flatMap(([section, { place }]) => {
    const name = section.slice('destinations.'.length);
    const mistake = mistakeIn(name);
    if (mistake !== null) reading.mistakes.push(`${place}: ${mistake}`);
    const own = sectionAsInflux(reading, section);
    const database = readDatabase(own);
    demandPlace(own, { section, first: place, kind: database.kind });
    return [{ name, ...database }];
  });
}

function mistakeIn(name: string): string | null {
  if (name === SECTION) return 'this name is taken by the section influx; choose another one';
  if (/^[a-z][a-z0-9_-]{0,31}$/.test(name)) return null;
  return 'expected a name of at most 32 small letters, digits, - and _, beginning with a letter';
}

/** A reading in which the keys of one section stand where those of `influx` are looked for. */
function sectionAsInflux(reading: Reading, section: string): Reading {
  const given = new Map<string, Given>();
  for (const [path, value] of reading.given) {
    if (path.startsWith(`${section}.`)) given.set(`${SECTION}${path.slice(section.length)}`, value);
  }
  return { ...reading, given };
}

function readDatabase(reading: Reading): InfluxConfig {
  const { secret, file } = readSecret(reading, 'influx.token');
  return {
    url: readValue(reading, 'influx.url') ?? '',
    token: secret,
    tokenFile: file,
    org: readValue(reading, 'influx.org') ?? '',
    bucket: readValue(reading, 'influx.bucket') ?? '',
    kind: readValue(reading, 'influx.kind'),
    ca: readCertificates(reading, 'influx.ca_file'),
    timeoutMs: readValue(reading, 'influx.timeout'),
    batchLines: readValue(reading, 'influx.batch_lines'),
  };
}

interface Demand {
  readonly section: string;
  /** Where the section is named first. */
  readonly first: string;
  readonly kind: InfluxConfig['kind'];
}

function demandPlace(reading: Reading, { section, first, kind }: Demand): void {
  const keys = kind === 'victoriametrics' ? (['url'] as const) : (['url', 'bucket'] as const);
  for (const key of keys) {
    if (isGiven(reading, `${SECTION}.${key}`)) continue;
    const needed = keys.map((each) => `${section}.${each}`).join(' and ');
    const unless = key === 'bucket' ? ` (with ${section}.kind: victoriametrics no bucket)` : '';
    reading.mistakes.push(
      `${section}.${key}: is missing, although ${first} is given; a database needs ${needed}${unless}`,
    );
  }
}

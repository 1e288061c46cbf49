/**
 * The settings of a sync: from the configuration to the options of the parts (the filter, the limits, the databases to
 * write to and to read from), and in the state, for commands that read it with another configuration.
 */
import type { DemoConfig, StateConfig } from '../config/config.ts';
import { readCron } from '../config/cron.ts';
import { UserError } from '../core/faults.ts';
import { createFilter, type FilterSpec } from '../core/filter.ts';
import { isNumber, isRecord, isText, isTexts, parseAs, parseJson, shapeOf } from '../core/json.ts';
import { DESTINATION_KINDS, destinationIdentity } from '../core/lines/dialect.ts';
import { type Schedules, STREAMS } from '../core/ports.ts';
import { createFactNote, type Store } from '../core/state/state.ts';
import type { DestinationCandidate } from '../core/state/verify.ts';
import { nearest } from '../core/text.ts';
import type { DestinationOptions } from '../delivery/destination.ts';
import { sectionOf } from '../influx/answers.ts';
import { createUnknownServer } from '../influx/probe.ts';
import { createInfluxSink, type InfluxSinkOptions } from '../influx/sink.ts';
import type { SyncOptions } from './open-sync.ts';
import type { ReadSecret } from './secret-files.ts';

/**
 * The options of a sync from the configuration, without the API's address and the state's directory.
 *
 * @param readSecret reads the file of a secret again
 */
export function createSyncOptions(
  config: Pick<DemoConfig, 'sync' | 'api' | 'influx' | 'destinations' | 'proxies' | 'workspaceId' | 'archive'>,
  readSecret: ReadSecret = () => null,
): Pick<SyncOptions, 'settings' | 'destinations' | 'archive'> {
  return {
    settings: {
      ...config.sync,
      filter: createFilter(config.sync.leftOut),
      concurrency: config.api.concurrency,
      workspaceTag: config.workspaceId,
    },
    destinations: createDestinationOptions(config, readSecret),
    archive: config.archive,
  };
}

/** The databases of the configuration as destinations, each with its name. */
function createDestinationOptions(
  { influx, destinations, proxies }: Pick<DemoConfig, 'influx' | 'destinations' | 'proxies'>,
  readSecret: ReadSecret,
): DestinationOptions[] {
  return configuredDatabases({ influx, destinations }).map((database) => {
    const { name, kind, url, tokenFile, org, bucket, timeoutMs, batchLines } = database;
    const origin = { key: `${sectionOf(name)}.token_file`, url };
    const renewToken = tokenFile === null ? undefined : () => readSecret(tokenFile, origin);
    const to = { ...sinkOptions(database, proxies), renewToken };
    const served = kind === 'auto' ? createUnknownServer(to) : kind;
    const sink = createInfluxSink(to, kind === 'auto' ? 'influxdb' : kind);
    return { sink, identity: destinationIdentity({ kind, url, org, bucket }), batchLines, kind: served, timeoutMs };
  });
}

/** How to connect to a configured database. */
function sinkOptions(
  { name, url, token, org, bucket, timeoutMs, ca }: StateConfig['destinations'][number],
  proxies: StateConfig['proxies'],
): InfluxSinkOptions {
  return { name, url, token, org, bucket, timeoutMs, ca: ca ?? undefined, proxies };
}

/** A configured database: how to connect to it, and which destinations of the state it may be. */
export interface Database {
  readonly options: InfluxSinkOptions;
  readonly candidates: readonly DestinationCandidate[];
  readonly batchLines: number;
}

/** All databases of a configuration with their names: the section `influx` and the further destinations. */
export function configuredDatabases<Influx extends object, Destination>({
  influx,
  destinations,
}: {
  readonly influx: Influx | null;
  readonly destinations: readonly Destination[];
}): (Destination | (Influx & { readonly name: string }))[] {
  return [...(influx === null ? [] : [{ name: 'influx', ...influx }]), ...destinations];
}

/**
 * All databases of a configuration, or the one with the given name.
 *
 * @throws UserError (exit code 2) if no database has the name
 */
export function selectDatabases(
  config: Pick<StateConfig, 'influx' | 'destinations' | 'proxies'>,
  name: string | null,
): Database[] {
  const { proxies } = config;
  const all = configuredDatabases(config);
  const names = all.map((database) => database.name);
  if (name !== null && !names.includes(name)) throw unknownDestination(name, names);
  return all
    .filter((database) => name === null || database.name === name)
    .map((database) => {
      const { kind, url, org, bucket, batchLines } = database;
      const kinds = kind === 'auto' ? DESTINATION_KINDS : [kind];
      return {
        options: sinkOptions(database, proxies),
        candidates: kinds.map((each) => ({
          kind: each,
          identity: destinationIdentity({ kind: each, url, org, bucket }),
        })),
        batchLines,
      };
    });
}

/** The error (exit 2) for a name that is not among those of the databases. */
export function unknownDestination(name: string, names: readonly string[]): UserError {
  const meant = nearest(name, names);
  const there = names.length === 0 ? 'There is none.' : `There is ${names.join(', ')}.`;
  const remedy = meant === null ? there : `Did you mean ${meant}?`;
  return new UserError('--destination: there is no database of that name', remedy, 2);
}

/** The keys under which the state stores the settings of its daemon. */
const SCHEDULES = 'schedules';
const RUNS_WITH = 'runs_with';

/** The devices that a daemon reads and the databases that it writes to. */
interface RunsWith extends Pick<FilterSpec, 'include' | 'exclude'> {
  readonly destinations: readonly { readonly name: string; readonly id: number }[];
}

/** Stores the filter and the databases of the daemon, for commands that read its state with another configuration. */
export function saveRunsWith(
  store: Pick<Store, 'fact' | 'saveFact'>,
  { include, exclude }: FilterSpec,
  deliverers: readonly { readonly name: string; readonly destinationId: number }[],
): void {
  const destinations = deliverers.map(({ name, destinationId: id }) => ({ name, id }));
  createFactNote(store, () => RUNS_WITH)(JSON.stringify({ include, exclude, destinations } satisfies RunsWith));
}

/** Stores the settings of a process that reads and delivers with a state, for commands that only read it. */
export function saveSettings({
  context: { store, settings },
  deliverers,
}: {
  readonly context: {
    readonly store: Pick<Store, 'fact' | 'saveFact'>;
    readonly settings: { readonly schedules: Schedules; readonly filter: { readonly spec: FilterSpec } };
  };
  readonly deliverers: Parameters<typeof saveRunsWith>[2];
}): void {
  saveSchedules(store, settings.schedules);
  saveRunsWith(store, settings.filter.spec, deliverers);
}

/** The filter and the databases of the daemon of a state; `null` if they are not stored or cannot be read. */
export function readRunsWith({ fact }: Pick<Store, 'fact'>): RunsWith | null {
  return parseAs(fact(RUNS_WITH), isRunsWith);
}

const isNamed = shapeOf<RunsWith['destinations'][number]>({ name: isText, id: isNumber });
const isRunsWith = shapeOf<RunsWith>({
  include: isTexts,
  exclude: isTexts,
  destinations: (value): value is RunsWith['destinations'] => Array.isArray(value) && value.every(isNamed),
});

/** Stores the schedules of the daemon, for commands that read its state with another configuration. */
export function saveSchedules(store: Pick<Store, 'fact' | 'saveFact'>, schedules: Schedules): void {
  const texts = STREAMS.map((stream) => [stream, schedules[stream].text]);
  createFactNote(store, () => SCHEDULES)(JSON.stringify(Object.fromEntries(texts)));
}

/** The schedules of the daemon of a state; `null` if they are not stored or cannot be read. */
export function readSchedules({ fact }: Pick<Store, 'fact'>): Schedules | null {
  const texts: unknown = parseJson(fact(SCHEDULES));
  if (!isRecord(texts)) return null;
  const read = STREAMS.flatMap((stream) => {
    const text = texts[stream];
    const schedule = typeof text === 'string' ? readCron(text) : null;
    return schedule === null || 'mistake' in schedule ? [] : [[stream, schedule] as const];
  });
  return read.length === STREAMS.length ? (Object.fromEntries(read) as Schedules) : null;
}

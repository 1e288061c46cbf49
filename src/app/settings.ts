/**
 * What the configuration says of a sync, in the terms of its parts: the databases with their sinks, the filter, the limits;
 * and how a secret is read again from its file while the program runs.
 */
import type { DemoConfig } from '../config/config.ts';
import { secretText, Unfit } from '../config/values.ts';
import { createFilter } from '../core/filter.ts';
import { identityOf } from '../core/lines/dialect.ts';
import { Secret } from '../core/secret.ts';
import type { DestinationOptions } from '../delivery/destination.ts';
import { createUnknownServer } from '../influx/probe.ts';
import { createInfluxSink } from '../influx/sink.ts';
import type { SyncOptions } from './open-sync.ts';

/** What the configuration says of a sync, the places of the API and of the state apart. @param readSecret reads a secret again. */
export function settingsOf(
  config: Pick<DemoConfig, 'sync' | 'api' | 'influx' | 'destinations' | 'proxies' | 'workspaceId' | 'archive'>,
  readSecret: (file: string) => Secret | null = () => null,
): Pick<SyncOptions, 'settings' | 'destinations' | 'archive'> {
  return {
    settings: {
      ...config.sync,
      filter: createFilter(config.sync.leftOut),
      concurrency: config.api.concurrency,
      workspaceTag: config.workspaceId,
    },
    destinations: destinationsOf(config, readSecret),
    archive: config.archive,
  };
}

/** The databases of the configuration, each by its name. */
function destinationsOf(
  { influx, destinations, proxies }: Pick<DemoConfig, 'influx' | 'destinations' | 'proxies'>,
  readSecret: (file: string) => Secret | null,
): DestinationOptions[] {
  const databases = [...(influx === null ? [] : [{ name: 'influx', ...influx }]), ...destinations];
  return databases.map(({ name, kind, url, token, tokenFile, org, bucket, timeoutMs, ca, batchLines }) => {
    const renewToken = tokenFile === null ? undefined : () => readSecret(tokenFile);
    const to = { name, url, token, renewToken, org, bucket, timeoutMs, ca: ca ?? undefined, proxies };
    const served = kind === 'auto' ? createUnknownServer(to) : kind;
    const sink = createInfluxSink(to, kind === 'auto' ? 'influxdb' : kind);
    return { sink, identity: identityOf({ kind, url, org, bucket }), batchLines, kind: served, timeoutMs };
  });
}

/** @param secrets what must not be shown: what is read joins it before anybody can use it. */
interface SecretParts {
  readonly readFile: (path: string) => string;
  readonly secrets: Secret[];
}

/** A reader of secrets from files. It gives `null` for a file that is half-written, empty, or away for a moment. */
export function createSecretReader({ readFile, secrets }: SecretParts): (file: string) => Secret | null {
  return (file) => {
    let text: string | Unfit;
    try {
      text = secretText(readFile(file));
    } catch {
      return null;
    }
    if (text instanceof Unfit) return null;
    const known = secrets.find((secret) => secret.reveal() === text);
    if (known !== undefined) return known;
    const read = new Secret(text);
    secrets.push(read);
    return read;
  };
}

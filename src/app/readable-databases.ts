/**
 * The databases that `--verify` compares: which of the configured ones, and as what the state may know each.
 */

import type { StateConfig } from '../config/config.ts';
import { UserError } from '../core/faults.ts';
import { DESTINATION_KINDS, identityOf } from '../core/lines/dialect.ts';
import type { DestinationCandidate } from '../core/state/verify.ts';
import type { InfluxSinkOptions } from '../influx/sink.ts';

export interface Database {
  readonly options: InfluxSinkOptions;
  readonly candidates: readonly DestinationCandidate[];
  readonly batchLines: number;
}

/** Every database of a configuration with its name: that of the section `influx`, and the further destinations. */
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
 * The databases of a configuration, or the one of a name.
 *
 * @throws UserError (exit 2) for a name that is none of them.
 */
export function databasesOf(
  config: Pick<StateConfig, 'influx' | 'destinations' | 'proxies'>,
  name: string | null,
): Database[] {
  const { proxies } = config;
  const all = configuredDatabases(config);
  if (name !== null && !all.some((database) => database.name === name)) {
    const names = all.map((database) => database.name).join(', ');
    const there = names === '' ? 'none is configured' : `there is ${names}`;
    throw new UserError(`--destination: the configuration has no database of that name; ${there}.`, 2);
  }
  return all
    .filter((database) => name === null || database.name === name)
    .map((database) => {
      const { kind, url, token, org, bucket, timeoutMs, ca, batchLines } = database;
      const kinds = kind === 'auto' ? DESTINATION_KINDS : [kind];
      return {
        options: { name: database.name, url, token, org, bucket, timeoutMs, ca: ca ?? undefined, proxies },
        candidates: kinds.map((each) => ({ kind: each, identity: identityOf({ kind: each, url, org, bucket }) })),
        batchLines,
      };
    });
}

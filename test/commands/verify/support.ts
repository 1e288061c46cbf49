/**
 * Shared parts of the tests of `--verify`: a rig whose destination is known by a true identity, the comparison over its
 * state as the program makes it, and a hand in the archive.
 */
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { SyncOptions } from '../../../src/app/open-sync.ts';
import { realClock } from '../../../src/app/real-clock.ts';
import { compareDestination, daysToCompare, type OnProgress } from '../../../src/commands/verify/compare.ts';
import { createResender } from '../../../src/commands/verify/repair.ts';
import {
  type Compared,
  type DestinationVerdict,
  sumTally,
  verifyVerdict,
} from '../../../src/commands/verify/result.ts';
import { type DestinationKind, destinationIdentity } from '../../../src/core/lines/dialect.ts';
import { identityTag } from '../../../src/core/lines/line-protocol.ts';
import type { Clock, Sink } from '../../../src/core/ports.ts';
import { Secret } from '../../../src/core/secret.ts';
import type { PointSource } from '../../../src/core/state/verify.ts';
import { createPointSource } from '../../../src/influx/point-source.ts';
import { requestRetention } from '../../../src/influx/probe.ts';
import { createInfluxSink, type InfluxSinkOptions } from '../../../src/influx/sink.ts';
import { openStore } from '../../../src/store/store.ts';
import { openVerifyState } from '../../../src/store/views/verify.ts';
import type { Bench } from '../../support/bench.ts';
import { type Rig, TOKEN } from '../../support/rig.ts';
import type { Victoria } from '../../support/victoria.ts';

export type Destination = SyncOptions['destinations'][number];

/** A database as the configuration names it. */
export interface Place {
  readonly kind: DestinationKind;
  readonly options: InfluxSinkOptions;
}

export function influxPlace({ proxy }: Bench, bucket: string, name = 'influx'): Place {
  return {
    kind: 'influxdb',
    options: { name, url: proxy.url, token: new Secret(TOKEN), org: '', bucket, timeoutMs: 10_000 },
  };
}

export function victoriaPlace({ url }: Victoria, name = 'influx'): Place {
  return { kind: 'victoriametrics', options: { name, url, token: null, org: '', bucket: '', timeoutMs: 10_000 } };
}

const identityOfPlace = ({ kind, options: { url, org, bucket } }: Place): string =>
  destinationIdentity({ kind, url, org, bucket });

/** The destination of a rig at a place; virtual time stands still while it is at work. */
export function destinationAt({ clock }: Rig, place: Place, wrap: (sink: Sink) => Sink = (sink) => sink): Destination {
  const sink = wrap(createInfluxSink(place.options, place.kind));
  return {
    sink: { name: sink.name, write: (lines, signal) => clock.busy(sink.write(lines, signal)) },
    identity: identityOfPlace(place),
    batchLines: 5000,
    kind: place.kind,
  };
}

export interface VerifyOptions {
  readonly repair?: boolean;
  readonly deviceIds?: readonly string[];
  readonly from?: bigint | null;
  readonly to?: bigint | null;
  readonly source?: (source: PointSource) => PointSource;
  readonly sink?: (sink: Sink) => Sink;
  readonly signal?: AbortSignal;
  readonly onProgress?: OnProgress;
  /** Whether waits are waited; true by default. */
  readonly sleeps?: boolean;
}

/** The result of a destination's comparison. */
export interface Verified {
  readonly verdict: DestinationVerdict;
  readonly sums: ReturnType<typeof sumTally>;
  readonly hidden: Compared['hidden']['days'];
  readonly estimate: Compared['hidden']['estimate'];
}

/** Compares as the program does, over a look at the state of its own. */
export async function verifyAt(rig: Rig, place: Place, options: VerifyOptions = {}): Promise<Verified> {
  const state = openVerifyState(rig.dataDir);
  if (state === null) throw new Error('no state');
  try {
    const destination = state.destination(place.options.name, [{ kind: place.kind, identity: identityOfPlace(place) }]);
    const sleep = options.sleeps === false ? { sleep: () => Promise.resolve() } : {};
    const clock: Clock = { ...realClock, nowMs: rig.clock.nowMs, ...sleep };
    const days = daysToCompare(state, { from: options.from ?? null, to: options.to ?? null }, clock);
    if (destination === null || days === null) throw new Error('nothing was sent to it');
    const tag = identityTag(state.workspaceTag ?? '');
    const source = (options.source ?? ((same) => same))(createPointSource(place.options, place.kind, tag));
    const sink = (options.sink ?? ((same) => same))(createInfluxSink(place.options, place.kind));
    const resender =
      options.repair === true
        ? createResender({ destination: { kind: place.kind, sink }, state, clock, batchLines: 5000 })
        : null;
    const range = {
      ...days,
      deviceIds: options.deviceIds ?? state.deviceIds(),
      isAll: options.deviceIds === undefined,
    };
    const comparison = {
      state,
      source,
      destination,
      clock,
      historyFrom: 0n,
      // In virtual time, which is behind that of the database.
      requestRetention: async (stop: AbortSignal) => {
        const reported = place.kind === 'victoriametrics' ? await requestRetention(place.options, stop) : null;
        return reported === null ? null : reported - (Date.now() - clock.nowMs());
      },
      resender,
    };
    const signal = options.signal ?? new AbortController().signal;
    const compared = await compareDestination(
      comparison,
      { range, onProgress: options.onProgress ?? (() => {}) },
      signal,
    );
    const verdict = verifyVerdict(source, compared, resender === null ? {} : { rejections: resender.rejections() });
    return {
      verdict,
      sums: sumTally(compared.tally),
      hidden: compared.hidden.days,
      estimate: compared.hidden.estimate,
    };
  } finally {
    state.close();
  }
}

/** Changes the state behind the program's back. */
export function inState(rig: Rig, sql: string): void {
  const db = new Database(join(rig.dataDir, 'tidemark.db'));
  try {
    db.exec(sql);
  } finally {
    db.close();
  }
}

/** Clears every acknowledged block away, as maintenance does once they are old. */
export function clearArchive(rig: Rig): void {
  const { maintenance, close } = openStore(rig.dataDir);
  try {
    const ids = [1];
    while (maintenance.clear({ active: ids, configured: ids, beforeMs: Number.MAX_SAFE_INTEGER }).blocks > 0);
  } finally {
    close();
  }
}

/** How many requests the simulated API has answered. */
export function requestsOf(rig: Rig): number {
  return rig.simulator.log.requests.length;
}

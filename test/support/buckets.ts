/**
 * A database for the tests of a file, and a new bucket for each of them.
 */
import { beforeEach } from 'vitest';
import type { Sink } from '../../src/core/ports.ts';
import { Secret } from '../../src/core/secret.ts';
import { createInfluxSink } from '../../src/influx/sink.ts';
import { type Bench, startBench } from './bench.ts';
import { sharedBench } from './shared-bench.ts';

const TOKEN = 'buckets-token';

export interface Buckets extends Pick<Bench, 'influxd' | 'proxy'> {
  /** The one of the test that runs. */
  readonly bucket: string;
  /** The writer of the bucket. */
  sink(): Sink;
}

/**
 * Registers it where it is called.
 *
 * @param options the options of `CREATE DATABASE` for each
 */
export function sharedBuckets(options = ''): Buckets {
  const bench = sharedBench(() => startBench(TOKEN));
  let run = 0;
  const now = (): string => `bucket${run}`;
  beforeEach(async () => {
    run += 1;
    bench.proxy.setFaults(null);
    await bench.influxd.query('', `CREATE DATABASE ${now()} ${options}`);
  });
  return {
    get influxd() {
      return bench.influxd;
    },
    get proxy() {
      return bench.proxy;
    },
    get bucket() {
      return now();
    },
    sink: () =>
      createInfluxSink({
        name: 'influx',
        url: bench.proxy.url,
        token: new Secret(TOKEN),
        org: '',
        bucket: now(),
        timeoutMs: 30_000,
      }),
  };
}

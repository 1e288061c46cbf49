/**
 * One database for all tests of a file: started before the first and ended after the last.
 */
import { afterAll, beforeAll } from 'vitest';
import { influxdAvailable } from './influxd.ts';

/**
 * Registers its start and its end where it is called: at the top of a file, or in the `describe` that needs it.
 *
 * @returns what there is of it once tests run; nothing of it may be used before. Without a database on this machine nothing
 * is started: tests that need it say so by themselves.
 */
export function sharedBench<Bench extends AsyncDisposable>(open: () => Promise<Bench>): Bench {
  let opened: Bench | null = null;
  beforeAll(async () => {
    if (influxdAvailable()) opened = await open();
  });
  afterAll(async () => {
    await opened?.[Symbol.asyncDispose]();
  });
  const now = (): Bench => {
    if (opened === null) throw new Error('the database of this file is not there yet, or not any more');
    return opened;
  };
  return new Proxy({} as Bench, { get: (_, name) => Reflect.get(now(), name) });
}

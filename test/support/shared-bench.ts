/**
 * One database for all tests of a file: started before the first and ended after the last.
 */
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { influxdAvailable } from './influxd.ts';
import { startVictoria, type Victoria, victoriaAvailable } from './victoria.ts';

/**
 * Registers its start and its end where it is called: at the top of a file, or in the `describe` that needs it.
 *
 * @returns its parts once tests run; they may not be used before Without a database on this machine nothing
 * is started: tests that need it report that themselves.
 */
export function sharedBench<Bench extends AsyncDisposable>(open: () => Promise<Bench>): Bench {
  return sharedServer(open, influxdAvailable);
}

/** The same of a VictoriaMetrics, which is empty before each test. */
export function sharedVictoria(): Victoria {
  const victoria = sharedServer(startVictoria, victoriaAvailable);
  beforeEach(async () => {
    if (victoriaAvailable()) await victoria.clear();
  });
  return victoria;
}

function sharedServer<Server extends AsyncDisposable>(open: () => Promise<Server>, isHere: () => boolean): Server {
  let opened: Server | null = null;
  beforeAll(async () => {
    if (isHere()) opened = await open();
  });
  afterAll(async () => {
    await opened?.[Symbol.asyncDispose]();
  });
  const now = (): Server => {
    if (opened === null) throw new Error('the database of this file is not there yet, or not any more');
    return opened;
  };
  return new Proxy({} as Server, { get: (_, name) => Reflect.get(now(), name) });
}

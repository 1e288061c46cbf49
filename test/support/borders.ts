/**
 * Shared parts of the scenarios of the borders: the parts of the program that the network reaches, and how a scenario
 * reports errors in them. No database, no process: HTTP on loopback, and parts on their own.
 */
import type * as client from '../../src/api/client.ts';
import type * as transport from '../../src/api/transport.ts';
import type * as sending from '../../src/delivery/send-batch.ts';
import type * as sink from '../../src/influx/sink.ts';
import type * as account from '../../src/ingest/account.ts';
import type * as alerts from '../../src/ingest/alerts.ts';
import type * as devices from '../../src/ingest/devices.ts';
import type * as server from '../../src/observe/server.ts';
import type * as store from '../../src/store/store.ts';
import type * as backup from '../../src/store/views/backup.ts';

/** The parts of the program, real or of a variant that is broken on purpose. */
export interface Borders {
  readonly serveStatus: typeof server.serveStatus;
  readonly createHttpTransport: typeof transport.createHttpTransport;
  readonly createApiClient: typeof client.createApiClient;
  readonly syncAccount: typeof account.syncAccount;
  readonly syncAlerts: typeof alerts.syncAlerts;
  readonly listDevices: typeof devices.listDevices;
  readonly sendKept: typeof sending.sendKept;
  readonly createInfluxSink: typeof sink.createInfluxSink;
  readonly createControlLines: typeof sending.createControlLines;
  readonly openStore: typeof store.openStore;
  readonly backUpState: typeof backup.backUpState;
}

/** Returns the errors; an empty list where there are none. */
export type BorderScenario = (borders: Borders) => Promise<readonly string[]>;

/** An error where a figure is not the expected one. */
export function unless(what: string, got: unknown, wanted: unknown): readonly string[] {
  const [is, should] = [got, wanted].map((value) => JSON.stringify(value));
  return is === should ? [] : [`${what}: ${is}, not ${should}`];
}

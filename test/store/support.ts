/**
 * Shared parts of the tests of the state: directories of their own, the tables over a real file, and plain records.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { UserError } from '../../src/core/faults.ts';
import type { DeviceRecord } from '../../src/core/records.ts';
import type { LogBatch, LogLane } from '../../src/core/state/log.ts';
import type { PageCommit } from '../../src/core/state/telemetry.ts';
import { type OpenStore, openStore, type StoreOptions } from '../../src/store/store.ts';

export interface Scratch extends Disposable {
  readonly path: string;
  /** The state file below it. */
  readonly file: string;
}

/** A directory that is gone when the test is. */
export function scratch(): Scratch {
  const path = mkdtempSync(join(tmpdir(), 'tidemark-store-'));
  return {
    path,
    file: join(path, 'tidemark.db'),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

export interface ScratchStore extends OpenStore, Disposable {
  readonly file: string;
  /** Reads the file over a connection of its own, as another process would. */
  rows(sql: string): unknown[];
  /** Closes it and opens it again. */
  reopen(): void;
}

/** A new state in a directory of its own. */
export function scratchStore(options: StoreOptions = {}): ScratchStore {
  const place = scratch();
  let open = openStore(place.path, options);
  let isOpen = true;
  const close = (): void => {
    if (isOpen) open.close();
    isOpen = false;
  };
  return {
    get store() {
      return open.store;
    },
    get ledger() {
      return open.ledger;
    },
    get maintenance() {
      return open.maintenance;
    },
    get jobs() {
      return open.jobs;
    },
    get facts() {
      return open.facts;
    },
    path: open.path,
    upgrade: open.upgrade,
    file: place.file,
    close,
    rows: (sql) => {
      const db = new Database(place.file, { readonly: true });
      try {
        return db.prepare(sql).all();
      } finally {
        db.close();
      }
    },
    reopen: () => {
      close();
      open = openStore(place.path, options);
      isOpen = true;
    },
    [Symbol.dispose]: () => {
      close();
      place[Symbol.dispose]();
    },
  };
}

/** A commit of a page of a device that has none yet, with what the test changes. */
export function pageCommit(changes: Partial<PageCommit> = {}): PageCommit {
  return {
    deviceId: 'd',
    revision: 0,
    lane: 'live',
    requestId: 1,
    lines: [],
    sideLines: [],
    firstNs: null,
    lastNs: null,
    newReadings: 0,
    offsets: [],
    daySums: [],
    covered: [],
    hourReadings: new Map(),
    hoursWritten: [],
    lastPage: [],
    rejected: [],
    atMs: 1000,
    ...changes,
  };
}

/** A device as listed. */
export function device(deviceId: string, changes: Partial<DeviceRecord> = {}): DeviceRecord {
  return {
    deviceId,
    name: deviceId,
    modelId: 'model',
    firmwareVersion: '1.0.0',
    isAddon: false,
    parentDeviceId: null,
    lifecycleStatus: 'active',
    online: true,
    presence: 'online',
    lastSeenAt: 1_700_000_000_123_456_789n,
    latitude: 53.5,
    longitude: 9.9,
    locationUpdatedAt: 1_600_000_000_000_000_001n,
    tags: ['a', 'b'],
    ...changes,
  };
}

export const NO_LIMIT = { lines: Number.MAX_SAFE_INTEGER, bytes: Number.MAX_SAFE_INTEGER };

/** Everything of a lane. */
export function readAll({ store }: Pick<OpenStore, 'store'>, lane: LogLane): LogBatch {
  return store.read(lane, { block: 0, line: 0 }, NO_LIMIT);
}

/** The message of a refusal; empty where there is none. */
export function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof UserError) return error.message;
    throw error;
  }
  return '';
}

/**
 * The state of one workspace, put together: opens the file and offers the `Store` and the `Ledger` over it.
 *
 * Every writing call here is one transaction. Nothing in this folder knows the API, a database server or a clock.
 */
import type Database from 'better-sqlite3';
import { UserError } from '../core/faults.ts';
import type { Ledger } from '../core/ports.ts';
import type { Account } from '../core/records.ts';
import type { Store } from '../core/state.ts';
import { createAlertTable } from './alerts.ts';
import { createArchive } from './archive.ts';
import { openDatabase } from './database.ts';
import { createDelivery } from './delivery.ts';
import { explained, explainedCalls } from './explain.ts';
import { createInventory } from './inventory.ts';
import { createLedger } from './ledger.ts';
import { createTelemetryTables } from './telemetry.ts';

export interface OpenStore {
  readonly store: Store;
  readonly ledger: Ledger;
  readonly path: string;
  close(): void;
}

const API_WORKSPACE = 'workspace_id';
const WORKSPACE_TAG = 'workspace_tag';
const ACCOUNT = 'account';

/**
 * Opens the state in a directory, making it where there is none.
 *
 * @throws UserError where it cannot be used.
 */
export function openStore(directory: string): OpenStore {
  const { db, path, close } = openDatabase(directory);
  try {
    return { ...explained(path, () => assemble(db, path)), path, close };
  } catch (error) {
    close();
    throw error;
  }
}

function assemble(db: Database.Database, path: string): Pick<OpenStore, 'store' | 'ledger'> {
  const archive = createArchive(db);
  const telemetry = createTelemetryTables(db, archive);
  const inventory = createInventory(db, archive, telemetry);
  const alerts = createAlertTable(db);
  const delivery = createDelivery(db, archive);
  const facts = createFacts(db);
  const quarantine = db.prepare(
    'INSERT OR IGNORE INTO quarantine (destination_id, source, content, reason, at_ms) VALUES (NULL, ?, ?, ?, ?)',
  );
  const addRejected = (source: string, records: readonly { record: string; reason: string }[], atMs: number): void => {
    for (const { record, reason } of records) quarantine.run(source, record, reason, Math.floor(atMs));
  };
  const guarded = <A extends unknown[], R>(work: (...args: A) => R): ((...args: A) => R) => {
    const transaction = db.transaction(work);
    return (...args) => transaction.immediate(...args);
  };
  const store: Store = {
    workspaceTag: () => facts.read(WORKSPACE_TAG),
    pinWorkspace: guarded(({ apiId, tag }) => {
      const pinned = facts.read(API_WORKSPACE);
      if (apiId !== null && pinned !== null && pinned !== apiId) throw otherWorkspace(path, pinned, apiId);
      const pinnedTag = facts.read(WORKSPACE_TAG);
      if (pinnedTag !== null && pinnedTag !== tag) throw otherTag(path, pinnedTag, tag);
      if (apiId !== null) facts.write(API_WORKSPACE, apiId);
      facts.write(WORKSPACE_TAG, tag);
    }),
    account: () => readAccount(facts.read(ACCOUNT)),
    keepAccount: guarded((account, lines) => {
      facts.write(ACCOUNT, JSON.stringify(account));
      archive.append({ lane: 'live', deviceId: null, firstNs: null, lastNs: null, lines });
    }),
    devices: inventory.all,
    lastDevicePoint: inventory.lastPoint,
    keepInventory: guarded(inventory.keep),
    markGone: guarded(inventory.markGone),
    coveragePoints: inventory.coveragePoints,
    keepCoveragePoints: guarded(inventory.keepCoveragePoints),
    alerts: explainedCalls(path, {
      ...alerts,
      keep: guarded((seen, lines) => {
        alerts.keep(seen);
        archive.append({ lane: 'live', deviceId: null, firstNs: null, lastNs: null, lines });
      }),
      markListed: guarded(alerts.markListed),
    }),
    telemetry: telemetry.state,
    held: (deviceId, from, to) => ({
      lines: archive.linesAround(deviceId, from, to),
      ties: archive.tiesAround(deviceId, from, to),
    }),
    land: guarded((landing) => {
      telemetry.land(landing);
      addRejected(landing.deviceId, landing.rejected, landing.atMs);
    }),
    append: guarded((lines, lane) => {
      archive.append({ lane, deviceId: null, firstNs: null, lastNs: null, lines });
    }),
    quarantineRecords: guarded(addRejected),
    gaps: telemetry.gaps,
    nameGap: guarded(telemetry.nameGap),
    clearGaps: guarded(telemetry.clearGaps),
    fact: facts.read,
    keepFact: guarded(facts.write),
    destination: guarded(delivery.destination),
    position: delivery.position,
    read: archive.read,
    settle: guarded(delivery.settle),
    backlog: delivery.backlog,
    totals: archive.totals,
  };
  return { store: explainedCalls(path, store), ledger: explainedCalls(path, createLedger(db)) };
}

function createFacts(db: Database.Database) {
  const read = db.prepare<[string], string>('SELECT value FROM fact WHERE key = ?').pluck();
  const write = db.prepare('INSERT OR REPLACE INTO fact (key, value) VALUES (?, ?)');
  return {
    read: (key: string): string | null => read.get(key) ?? null,
    write: (key: string, value: string): void => {
      write.run(key, value);
    },
  };
}

function readAccount(text: string | null): Account | null {
  if (text === null) return null;
  const account: Account = JSON.parse(text);
  return account;
}

function otherWorkspace(path: string, pinned: string, found: string): UserError {
  return new UserError(
    `${path}: this state belongs to the workspace ${JSON.stringify(pinned)}, but the key is of ${JSON.stringify(found)}. Use the right key, or give this workspace a data_dir of its own. Nothing was written.`,
    1,
  );
}

function otherTag(path: string, pinned: string, found: string): UserError {
  return new UserError(
    `workspace.id: the points of this state carry ${JSON.stringify(pinned)}, not ${JSON.stringify(found)} (${path}). The tag is pinned for the life of a state: take workspace.id back, or give data_dir a new directory.`,
    78,
  );
}

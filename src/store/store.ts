/**
 * Opens the state of one workspace and offers the `Store` and the `Ledger` over it.
 *
 * Every writing call is one transaction. Nothing in this folder depends on the API, a database server or a clock.
 */
import type Database from 'better-sqlite3';
import { HARD_LIMIT_ABOVE_BYTES } from '../core/archive-room.ts';
import type { Ledger } from '../core/ports.ts';
import type { ArchiveMaintenance } from '../core/state/archive.ts';
import type { AlertStore, InventoryStore } from '../core/state/inventory.ts';
import type { JobQueue } from '../core/state/jobs.ts';
import type { ArchiveTotals, LogStore } from '../core/state/log.ts';
import type { QuarantineStore } from '../core/state/quarantine.ts';
import type { ReplayStore } from '../core/state/replay.ts';
import type { StateFacts, StateUpgrade, Store } from '../core/state/state.ts';
import type { PageCommit, TelemetryStore } from '../core/state/telemetry.ts';
import type { EpochMs } from '../core/time.ts';
import { type Archive, createArchive } from './archive/archive.ts';
import { createCleared } from './archive/clearing.ts';
import { createMaintenance } from './archive/maintenance.ts';
import { createLog } from './delivery/delivery.ts';
import { createMissingTable } from './delivery/missing-points.ts';
import { createPositionTable } from './delivery/positions.ts';
import { createQuarantine, createQuarantineTable } from './delivery/quarantine.ts';
import { createReplays } from './delivery/replay.ts';
import { createForgetting, type Forgetting } from './device/forget.ts';
import {
  createEmptyRanges,
  createEmptyWindows,
  createGaps,
  createMissedOverlaps,
  createRereads,
} from './device/gaps.ts';
import { createAlerts, createInventory } from './device/inventory.ts';
import {
  createCoverageOfAll,
  dropTelemetry,
  newestNs,
  prepareTelemetry,
  rememberCommit,
  type TelemetryTables,
  telemetryState,
  writePage,
} from './device/telemetry.ts';
import { explained, explainedCalls } from './explain.ts';
import { createFacts, createWorkspace } from './facts.ts';
import { createJobQueue, type OwnedJobQueue } from './jobs.ts';
import { createLedger, type OwnedLedger, type Unwritten } from './ledger.ts';
import { openDatabase } from './open/database.ts';
import { createStateFacts } from './report-facts.ts';
import { asTransactions, createPiggybackWriter, createWriter, type Writer } from './transactions.ts';

/** The parts of the state of one workspace, open for the one process that writes it. */
export interface OpenStore {
  readonly store: Store;
  readonly ledger: Ledger;
  /** The functions that keep the archive small. */
  readonly maintenance: ArchiveMaintenance;
  /** The jobs that commands have left. */
  readonly jobs: JobQueue;
  readonly facts: StateFacts;
  readonly path: string;
  /** The upgrade that opening the state made; `null` if it had the newest shape. */
  readonly upgrade: StateUpgrade | null;
  close(): void;
}

/** The limits and the clock of a state. */
export interface StoreOptions {
  /** `archive.max_size`. The file may exceed it by a fixed amount, but not more. `null`: no limit. */
  readonly maxBytes?: number | null;
  /** Returns the time of archiving; SQLite's own clock by default. */
  readonly nowMs?: () => EpochMs;
}

/**
 * Opens the state in a directory, creates it if it is missing, and completes the work that the last process left
 * unfinished.
 *
 * @throws UserError if it cannot be used.
 */
export function openStore(directory: string, { maxBytes = null, nowMs }: StoreOptions = {}): OpenStore {
  const most = maxBytes === null ? null : maxBytes + HARD_LIMIT_ABOVE_BYTES;
  const { db, path, upgrade, close } = openDatabase(directory, most);
  try {
    const { store, ledger, maintenance, jobs, facts } = explained(path, () => {
      const state = assembleStore(db, { path, nowMs });
      // The lock has a new holder, so the jobs of the last holder are no longer running.
      state.jobs.recover(nowMs?.() ?? sqliteNowMs(db));
      finishForgetting(state);
      return state;
    });
    const closeAll = (): void => {
      try {
        ledger.flush();
      } finally {
        close();
      }
    };
    return { store, ledger, maintenance, jobs, facts, path, upgrade, close: closeAll };
  } catch (error) {
    close();
    throw error;
  }
}

/** The ports over an open database. */
interface State {
  readonly store: Store;
  readonly forgetting: Forgetting;
  readonly ledger: OwnedLedger;
  readonly maintenance: ArchiveMaintenance;
  readonly jobs: OwnedJobQueue;
  readonly facts: StateFacts;
}

/**
 * Prepares the ports over an open database without changing it. Over a read-only connection the database refuses the
 * writing calls.
 */
export function assembleStore(
  db: Database.Database,
  { path, nowMs }: { readonly path: string; readonly nowMs?: StoreOptions['nowMs'] },
): State {
  const parts = prepareParts(db, path, nowMs);
  const ledger = createLedger(db);
  const write = createPiggybackWriter(db, ledger.writeAlong);
  const forgetting = forgettingPort(parts, write, ledger);
  const store: Store = {
    ...asTransactions(write, parts.workspace, ['pinWorkspace', 'saveAccount', 'saveFact']),
    ...inventoryPort(parts, write),
    ...telemetryPort(parts, write),
    ...asTransactions(write, parts.log, ['append', 'useDestination', 'identify', 'acknowledge', 'amendMissing']),
    totals: () => sentTotals(parts.log.totals(), ledger.unwrittenBookings()),
    alerts: asTransactions(write, parts.alerts, ['keep', 'markListed']),
    quarantine: asTransactions(write, parts.quarantine, ['resolve', 'takeOut', 'drop', 'add']),
    replays: asTransactions(createWriter(db), parts.replays, ['resolve']),
    forgetting,
  };
  return explainedCalls(path, {
    store,
    forgetting,
    ledger,
    maintenance: parts.maintenance,
    jobs: createJobQueue(db),
    facts: createStateFacts(db, ledger.unwrittenBookings),
  });
}

/** The sums without the requests that are booked in advance and not sent yet. */
export function sentTotals(totals: ArchiveTotals, { ids, bookings }: Unwritten): ArchiveTotals {
  return { ...totals, requests: totals.requests - (ids.length - bookings.length) };
}

/** The parts of the state over their prepared statements. Writing calls need a transaction. */
export interface Parts {
  readonly archive: Archive;
  readonly telemetry: TelemetryTables;
  readonly gaps: ReturnType<typeof createGaps>;
  readonly overlaps: ReturnType<typeof createMissedOverlaps>;
  readonly empties: ReturnType<typeof createEmptyRanges>;
  readonly windows: ReturnType<typeof createEmptyWindows>;
  readonly rereads: ReturnType<typeof createRereads>;
  readonly coverageOfAll: TelemetryStore['coverageOfAll'];
  readonly workspace: ReturnType<typeof createWorkspace>;
  readonly inventory: InventoryStore;
  readonly alerts: AlertStore;
  readonly log: LogStore;
  readonly quarantine: QuarantineStore;
  readonly replays: ReplayStore;
  readonly forgetting: Forgetting;
  readonly maintenance: ArchiveMaintenance;
}

/** Prepares the parts over an open database. */
export function prepareParts(db: Database.Database, path: string, nowMs?: StoreOptions['nowMs']): Parts {
  const archive = createArchive(db, nowMs);
  const telemetry = prepareTelemetry(db, archive);
  const gaps = createGaps(db);
  const overlaps = createMissedOverlaps(db);
  const empties = createEmptyRanges(db);
  const facts = createFacts(db);
  const missing = createMissingTable(db);
  const positions = createPositionTable(db);
  const items = createQuarantineTable(db);
  const quarantine = createQuarantine(db, { items, missing });
  const forgetting = createForgetting(db, {
    positions,
    quarantine,
    items,
    facts,
    dropDevice: (deviceId) => {
      dropTelemetry(telemetry, deviceId);
      overlaps.dropMemory(deviceId);
      empties.dropMemory(deviceId);
      gaps.clearGaps(deviceId);
    },
  });
  const { isForgotten, isForgottenTag } = forgetting;
  const log = createLog(db, {
    archive,
    positions,
    quarantine: items,
    missing,
    cleared: createCleared(db),
    isForgotten,
  });
  return {
    archive,
    telemetry,
    gaps,
    overlaps,
    empties,
    windows: createEmptyWindows(db),
    rereads: createRereads(db),
    coverageOfAll: createCoverageOfAll(db, () => gaps.gaps()),
    workspace: createWorkspace(facts, { archive, path }),
    inventory: createInventory(db, archive, telemetry),
    alerts: createAlerts(db, archive),
    log,
    quarantine,
    replays: createReplays(db, { archive, position: positions.read, quarantine: items, missing, isForgottenTag }),
    forgetting,
    maintenance: createMaintenance(db, { positions, missing, path }),
  };
}

/** The inventory. A device that is listed no longer counts as removed. */
export function inventoryPort(
  { inventory, forgetting }: Pick<Parts, 'inventory' | 'forgetting'>,
  write: Writer,
): InventoryStore {
  const saveInventory: InventoryStore['saveInventory'] = (change) => {
    inventory.saveInventory(change);
    for (const { record } of change.listed) forgetting.noteListed(record.deviceId);
  };
  const names = ['saveInventory', 'markGone', 'markBack', 'saveCoveragePoints'] as const;
  return asTransactions(write, { ...inventory, saveInventory }, names);
}

/** The telemetry of all devices. Nothing is written about a removed device until it is listed again. */
export function telemetryPort(parts: Parts, write: Writer): TelemetryStore {
  const { archive, telemetry, gaps, overlaps, empties, windows, rereads, quarantine, forgetting } = parts;
  const isKept = (deviceId: string): boolean => !forgetting.isForgotten(deviceId);
  const commit = write((page: PageCommit) => {
    writePage(telemetry, page);
    return quarantine.add(page.deviceId, page.rejected, page.atMs);
  });
  return {
    telemetry: (deviceId) => telemetryState(telemetry, deviceId),
    coverageOfAll: parts.coverageOfAll,
    newestNs: (deviceId) => newestNs(telemetry, deviceId),
    stored: (deviceId, from, to) => ({
      lines: archive.linesAround(deviceId, from, to),
      offsets: archive.offsetsAround(deviceId, from, to),
      cleared: archive.clearedAround(deviceId, from, to),
    }),
    cleared: archive.clearedAround,
    commitPage: (page) => {
      forgetting.guard(page.deviceId);
      const rejected = commit(page);
      rememberCommit(telemetry, page);
      return rejected;
    },
    gaps: gaps.gaps,
    nameGap: write((gap) => {
      if (isKept(gap.deviceId)) gaps.nameGap(gap);
    }),
    clearGaps: write(gaps.clearGaps),
    missedOverlaps: overlaps.missedOverlaps,
    saveMissedOverlap: write((deviceId, overlap) => {
      if (isKept(deviceId)) overlaps.saveMissedOverlap(deviceId, overlap);
    }),
    dropMissedOverlaps: write(overlaps.dropMissedOverlaps),
    emptyRange: empties.emptyRange,
    dueEmptyRanges: empties.dueEmptyRanges,
    saveEmptyRange: write((deviceId, range) => {
      if (isKept(deviceId)) empties.saveEmptyRange(deviceId, range);
    }),
    emptyWindows: windows.emptyWindows,
    saveEmptyWindow: write((deviceId, window) => {
      if (isKept(deviceId)) windows.saveEmptyWindow(deviceId, window);
    }),
    dropEmptyWindow: write(windows.dropEmptyWindow),
    rereadDays: rereads.rereadDays,
    saveReread: write((deviceId, day) => {
      if (isKept(deviceId)) rereads.saveReread(deviceId, day);
    }),
    recheck: rereads.recheck,
    saveRecheck: write((deviceId, progress) => {
      if (isKept(deviceId)) rereads.saveRecheck(deviceId, progress);
    }),
  };
}

/** The removal of devices, each call as one transaction. */
export function forgettingPort(
  { forgetting }: Pick<Parts, 'forgetting'>,
  write: Writer,
  ledger: Pick<OwnedLedger, 'flush'>,
): Forgetting {
  const begin = write(forgetting.begin);
  return {
    ...asTransactions(write, forgetting, ['step', 'startOver']),
    begin: (deviceId, keepsAlerts) => {
      // Bookings that are not written yet may name the device too.
      ledger.flush();
      return begin(deviceId, keepsAlerts);
    },
  };
}

/** Completes a removal that a process left unfinished when it died, so that no device stays half removed. */
export function finishForgetting({
  store: { quarantine },
  forgetting,
}: {
  readonly store: { readonly quarantine: Pick<QuarantineStore, 'destinations'> };
  readonly forgetting: Forgetting;
}): void {
  const unfinished = forgetting.unfinished();
  if (unfinished.length === 0) return;
  forgetting.startOver();
  const current = quarantine.destinations().flatMap(({ id, isCurrent }) => (isCurrent ? [id] : []));
  for (const deviceId of unfinished) while (forgetting.step(deviceId, current).state === 'going-on');
  forgetting.emptyLog();
}

function sqliteNowMs(db: Database.Database): EpochMs {
  return Number(db.prepare("SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)").pluck().get());
}

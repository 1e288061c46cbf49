/**
 * The state of one workspace, put together: opens the file and offers the `Store` and the `Ledger` over it.
 *
 * Every writing call here is one transaction. Nothing in this folder knows the API, a database server or a clock.
 */
import type Database from 'better-sqlite3';
import { HARD_LIMIT_ABOVE_BYTES } from '../core/archive-room.ts';
import type { Ledger } from '../core/ports.ts';
import type { ArchiveMaintenance } from '../core/state/archive.ts';
import type { StateFacts } from '../core/state/facts.ts';
import type { JobQueue } from '../core/state/jobs.ts';
import type { ReplayStore } from '../core/state/replay.ts';
import type { Store } from '../core/state/state.ts';
import type { PageCommit } from '../core/state/telemetry.ts';
import type { EpochMs } from '../core/time.ts';
import { createAlertTable } from './alerts.ts';
import { createArchive } from './archive/archive.ts';
import { createKeeper } from './archive/maintenance.ts';
import { createCleared } from './clear-memory.ts';
import { createDelivery } from './delivery/delivery.ts';
import { createLacks } from './delivery/missing-points.ts';
import { createQuarantine } from './delivery/quarantine.ts';
import { createReplays, type ReplayParts } from './delivery/replay.ts';
import { createForgetting } from './device/forget.ts';
import { createInventory } from './device/inventory.ts';
import { createTelemetryTables } from './device/telemetry.ts';
import { explained, explainedCalls } from './explain.ts';
import {
  ACCOUNT,
  API_WORKSPACE,
  createAccountReader,
  createFacts,
  otherTag,
  otherWorkspace,
  WORKSPACE_TAG,
} from './facts.ts';
import { createHeldOfAll } from './held-of-all.ts';
import { createJobQueue } from './jobs.ts';
import { createLedger, type OwnedLedger } from './ledger.ts';
import { openDatabase } from './open/database.ts';
import { createStateFacts } from './report-facts.ts';

export interface OpenStore {
  readonly store: Store;
  readonly ledger: Ledger;
  /** What keeps the archive small. */
  readonly keeper: ArchiveMaintenance;
  /** What commands have asked of whoever holds the state. */
  readonly jobs: JobQueue;
  /** What the state tells of the work itself. */
  readonly facts: StateFacts;
  readonly path: string;
  close(): void;
}

export interface StoreOptions {
  /** `archive.max_size`: the file may grow a little beyond it, and no further. `null`: no limit. */
  readonly maxBytes?: number | null;
  /** When something is archived; without it SQLite's own clock tells. */
  readonly nowMs?: () => EpochMs;
}

/**
 * Opens the state in a directory, making it where there is none.
 *
 * @throws UserError where it cannot be used.
 */
export function openStore(directory: string, { maxBytes = null, nowMs }: StoreOptions = {}): OpenStore {
  const most = maxBytes === null ? null : maxBytes + HARD_LIMIT_ABOVE_BYTES;
  const { db, path, close } = openDatabase(directory, most);
  try {
    const { store, ledger, keeper, jobs, facts } = explained(path, () => assemble(db, { path, nowMs }));
    const closeAll = (): void => {
      try {
        explained(path, ledger.flush);
      } finally {
        close();
      }
    };
    return { store, ledger, keeper, jobs, facts, path, close: closeAll };
  } catch (error) {
    close();
    throw error;
  }
}

/**
 * Prepares everything over an open database. @param isLook it is only looked at, and cannot be written: nothing is put in
 * order here, and whatever writes is refused by the database.
 */
export function assemble(
  db: Database.Database,
  { path, nowMs, isLook = false }: { path: string; nowMs?: StoreOptions['nowMs']; isLook?: boolean },
): { store: Store; ledger: OwnedLedger; keeper: ArchiveMaintenance; jobs: JobQueue; facts: StateFacts } {
  const archive = createArchive(db, nowMs);
  const telemetry = createTelemetryTables(db, archive);
  const inventory = createInventory(db, archive, telemetry);
  const alerts = createAlertTable(db);
  const lacks = createLacks(db);
  const cleared = createCleared(db);
  // Whoever is known when something is cleared is told then (`clear.ts`); whoever is new, below.
  const delivery = createDelivery(db, { archive, lacks });
  const facts = createFacts(db);
  const ledger = createLedger(db);
  const quarantine = createQuarantine(db, lacks);
  const forgetting = createForgetting(db, { quarantine, facts, dropMemory: telemetry.dropMemory });
  const guarded = <A extends unknown[], R>(work: (...args: A) => R): ((...args: A) => R) => {
    const transaction = db.transaction((...args: A) => ({ result: work(...args), onDisk: ledger.ride() }));
    return (...args) => {
      const { result, onDisk } = transaction.immediate(...args);
      onDisk();
      return result;
    };
  };
  const land = guarded((landing: PageCommit) => {
    telemetry.land(landing);
    return quarantine.add(landing.deviceId, landing.rejected, landing.atMs);
  });
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
    account: createAccountReader(() => facts.read(ACCOUNT)),
    keepAccount: guarded((account, lines) => {
      facts.write(ACCOUNT, JSON.stringify(account));
      archive.append({ lane: 'live', deviceId: null, firstNs: null, lastNs: null, lines });
    }),
    devices: inventory.all,
    device: inventory.find,
    lastDevicePoint: inventory.lastPoint,
    keepInventory: guarded((change) => {
      inventory.keep(change);
      for (const { record } of change.listed) forgetting.listed(record.deviceId);
    }),
    markGone: guarded(inventory.markGone),
    markBack: guarded(inventory.markBack),
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
    quarantine: explainedCalls(path, {
      ...quarantine,
      resolve: guarded(quarantine.resolve),
      takeOut: guarded(quarantine.takeOut),
      drop: guarded(quarantine.drop),
      add: guarded(quarantine.add),
    }),
    forgetting: explainedCalls(path, {
      ...forgetting,
      begin: (deviceId, keepsAlerts) => {
        // Bookings that are not written yet name devices too.
        ledger.flush();
        return guarded(forgetting.begin)(deviceId, keepsAlerts);
      },
      step: guarded(forgetting.step),
    }),
    telemetry: telemetry.state,
    heldOfAll: createHeldOfAll(db, () => telemetry.gaps()),
    newestNs: telemetry.newestNs,
    held: (deviceId, from, to) => ({
      lines: archive.linesAround(deviceId, from, to),
      ties: archive.tiesAround(deviceId, from, to),
      cleared: archive.clearedAround(deviceId, from, to),
    }),
    cleared: archive.clearedAround,
    commitPage: (landing) => {
      forgetting.guard(landing.deviceId);
      const setAside = land(landing);
      telemetry.landed(landing);
      return setAside;
    },
    append: guarded((lines, lane) => {
      archive.append({ lane, deviceId: null, firstNs: null, lastNs: null, lines });
    }),
    gaps: telemetry.gaps,
    nameGap: guarded((gap) => {
      if (!forgetting.isForgotten(gap.deviceId)) telemetry.nameGap(gap);
    }),
    clearGaps: guarded(telemetry.clearGaps),
    missedOverlaps: telemetry.missedOverlaps,
    keepMissedOverlap: guarded((deviceId, anchor) => {
      if (!forgetting.isForgotten(deviceId)) telemetry.keepMissedOverlap(deviceId, anchor);
    }),
    dropMissedOverlaps: guarded(telemetry.dropMissedOverlaps),
    rereadDays: telemetry.rereadDays,
    keepReread: guarded((deviceId, day) => {
      if (!forgetting.isForgotten(deviceId)) telemetry.keepReread(deviceId, day);
    }),
    fact: facts.read,
    keepFact: guarded(facts.write),
    destination: guarded((name, identity) => {
      const destination = delivery.destination(name, identity);
      if (destination.created) lacks.add(destination.id, cleared.asLacks());
      return destination;
    }),
    knownIdentity: delivery.knownIdentity,
    identify: guarded(delivery.identify),
    displacedTo: delivery.displacedTo,
    position: delivery.position,
    endOf: archive.endOf,
    read: archive.read,
    acknowledge: guarded(delivery.settle),
    backlog: delivery.backlog,
    missing: lacks.list,
    amendMissing: guarded((destinationId, { found, missed }) => {
      const lacking = missed.filter(({ deviceId }) => !forgetting.isForgotten(deviceId));
      // What is missed anew takes the place of what was known of it: it is not lacking twice.
      for (const stretch of [...found, ...lacking]) lacks.take(destinationId, stretch);
      lacks.add(destinationId, lacking);
    }),
    missingSums: lacks.sums,
    replays: createGuardedReplays(db, path, {
      archive,
      position: delivery.position,
      lacks,
      isForgottenTag: forgetting.isForgottenTag,
    }),
    totals: archive.totals,
  };
  const jobs = createJobQueue(db);
  // Whoever holds the lock now is another one than whoever did these.
  if (!isLook) {
    jobs.recover(nowMs?.() ?? sqliteNowMs(db));
    finishForgetting(store);
  }
  return {
    store: explainedCalls(path, store),
    ledger: explainedCalls(path, ledger),
    keeper: explainedCalls(path, createKeeper(db, { lacks, path })),
    jobs: explainedCalls(path, jobs),
    facts: explainedCalls(path, createStateFacts(db)),
  };
}

function createGuardedReplays(db: Database.Database, path: string, parts: ReplayParts): ReplayStore {
  const replays = createReplays(db, parts);
  const settle = db.transaction(replays.resolve);
  const { walker, ...calls } = replays;
  return {
    ...explainedCalls(path, { ...calls, resolve: (outcome) => settle.immediate(outcome) } satisfies Omit<
      ReplayStore,
      'walker'
    >),
    walker: explainedCalls(path, walker),
  };
}

/** What a process that died was forgetting is forgotten to the end: nothing of it is ever half there. */
function finishForgetting({ forgetting, quarantine }: Pick<Store, 'forgetting' | 'quarantine'>): void {
  const unfinished = forgetting.unfinished();
  if (unfinished.length === 0) return;
  const current = quarantine.destinations().flatMap(({ id, isCurrent }) => (isCurrent ? [id] : []));
  for (const deviceId of unfinished) while (forgetting.step(deviceId, current).state === 'going-on');
  forgetting.emptyLog();
}

function sqliteNowMs(db: Database.Database): EpochMs {
  return Number(db.prepare("SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)").pluck().get());
}

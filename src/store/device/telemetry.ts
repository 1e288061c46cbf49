/**
 * What is known of the telemetry of each device: coverage, names, hours, sums of days, named gaps.
 *
 * Promise: `land` is one transaction, and it is refused (`StaleStateError`) if the state of the device has moved since
 * the landing was computed. So rows and coverage agree at every moment, whatever is killed when.
 */
import type Database from 'better-sqlite3';
import { pinName } from '../../core/lines/names.ts';
import { type NameHold, type PageCommit, StaleStateError, type TelemetryState } from '../../core/state/telemetry.ts';
import type { EpochNs } from '../../core/time.ts';
import type { Archive } from '../archive/archive.ts';
import { createCoverage } from '../coverage.ts';
import { createHours } from '../hours.ts';
import { createLateness, createRereads } from '../lateness.ts';
import { createMissedAnchors } from '../missed-anchors.ts';
import { createGaps } from './gaps.ts';

export interface TelemetryTables extends ReturnType<typeof createGaps>, ReturnType<typeof createMissedAnchors> {
  state(deviceId: string): TelemetryState;
  /** The time of the newest telemetry line of a device, cleared ones included. */
  newestNs(deviceId: string): EpochNs | null;
  /** Drops all that is remembered of a device, whose rows are removed. Only inside a transaction. */
  dropMemory(deviceId: string): void;
  /** Writes what a landing changes. Only inside a transaction. */
  land(landing: PageCommit): void;
  /** Takes in that this landing is on the disk: what it has come to needs no look. */
  landed(landing: PageCommit): void;
  /** Pins the name that a device was seen under. Only inside a transaction. */
  pin(deviceId: string, name: string, atNs: EpochNs): void;
  rereadDays(): ReadonlyMap<string, number>;
  keepReread(deviceId: string, day: number): void;
}

/** Prepares the tables of an open database. */
export function createTelemetryTables(db: Database.Database, archive: Archive): TelemetryTables {
  const revisions = createRevisions(db);
  const coverage = createCoverage(db);
  const names = createNames(db);
  const hours = createHours(db);
  const sums = createDaySums(db);
  const lateness = createLateness(db);
  const requestYield = db.prepare('UPDATE request SET new_readings = ifnull(new_readings, 0) + ? WHERE id = ?');
  const readWhole = (deviceId: string, revision: number): TelemetryState => ({
    deviceId,
    revision,
    spans: coverage.read(deviceId),
    names: names.read(deviceId),
    ...hours.read(deviceId),
    late: lateness.read(deviceId),
  });
  const memory = createMemory();
  const gaps = createGaps(db);
  const missedAnchors = createMissedAnchors(db);
  const newest = new Map<string, { readonly revision: number; readonly at: EpochNs | null }>();
  return {
    state: (deviceId) => {
      const revision = revisions.read(deviceId);
      const known = memory.at(deviceId, revision);
      if (known !== null) return known;
      const state = readWhole(deviceId, revision);
      // What a transaction has written may be taken back, and another change may come to the same revision.
      if (!db.inTransaction) memory.keep(state);
      return state;
    },
    newestNs: (deviceId) => {
      // Only a landing adds lines.
      const revision = revisions.read(deviceId);
      const known = newest.get(deviceId);
      if (known?.revision === revision) return known.at;
      const at = archive.newestNs(deviceId);
      if (!db.inTransaction) newest.set(deviceId, { revision, at });
      return at;
    },
    ...gaps,
    ...missedAnchors,
    ...createRereads(db),
    dropMemory: (deviceId) => {
      memory.drop(deviceId);
      missedAnchors.dropMemory(deviceId);
      newest.delete(deviceId);
      revisions.drop(deviceId);
      gaps.clearGaps(deviceId);
    },
    land: (landing) => {
      const { deviceId, revision } = landing;
      revisions.advance(deviceId, revision);
      const before = memory.at(deviceId, revision) ?? readWhole(deviceId, revision);
      archive.append({ ...landing, lines: [...landing.lines, ...landing.sideLines] });
      archive.addTies(deviceId, landing.ties);
      coverage.replace(deviceId, before.spans, landing.spans);
      hours.replace(deviceId, before, landing);
      sums.add(deviceId, landing.daySums);
      sums.addTexts(deviceId, landing.dayTexts ?? []);
      if (landing.late !== undefined) lateness.keep(deviceId, landing.late.record);
      requestYield.run(landing.newReadings, landing.requestId);
    },
    landed: ({ deviceId, revision, spans, hourReadings, hoursWritten, late }) => {
      const before = memory.at(deviceId, revision);
      if (before === null) return;
      memory.keep({
        ...before,
        revision: revision + 1,
        spans,
        hourReadings,
        hoursWritten,
        late: late === undefined ? before.late : lateness.read(deviceId),
      });
    },
    pin: (deviceId, name, atNs) => {
      const held = names.read(deviceId);
      const pinned = pinName(held, { name, atNs, newestArchivedNs: archive.newestNs(deviceId) });
      if (pinned === held) return;
      const added = pinned.at(-1);
      if (added === undefined) return;
      names.add(deviceId, added);
      // Lines that were computed under the old name must not land any more.
      revisions.advance(deviceId, revisions.read(deviceId));
    },
  };
}

/** Devices of which the state is remembered at most: what asks for all of them again and again asks for that many. */
const REMEMBERED = 4096;

/** Remembers states by their revision, which moves with every change of them. */
function createMemory() {
  const known = new Map<string, TelemetryState>();
  return {
    at: (deviceId: string, revision: number): TelemetryState | null => {
      const state = known.get(deviceId);
      return state?.revision === revision ? state : null;
    },
    drop: (deviceId: string): void => void known.delete(deviceId),
    keep: (state: TelemetryState): void => {
      if (!known.has(state.deviceId) && known.size >= REMEMBERED) known.clear();
      known.set(state.deviceId, state);
    },
  };
}

function createRevisions(db: Database.Database) {
  const read = db.prepare<[string], bigint>('SELECT revision FROM device_revision WHERE device_id = ?').pluck();
  const write = db.prepare('INSERT OR REPLACE INTO device_revision (device_id, revision) VALUES (?, ?)');
  // Asked for of every device again and again. What a transaction has written may be taken back.
  const known = new Map<string, number>();
  const current = (deviceId: string): number => {
    const remembered = known.get(deviceId);
    if (remembered !== undefined) return remembered;
    const revision = Number(read.get(deviceId) ?? 0n);
    if (!db.inTransaction) known.set(deviceId, revision);
    return revision;
  };
  return {
    read: current,
    drop: (deviceId: string): void => void known.delete(deviceId),
    advance: (deviceId: string, from: number): void => {
      const stored = Number(read.get(deviceId) ?? 0n);
      known.delete(deviceId);
      if (stored !== from) throw new StaleStateError(`${deviceId}: computed from revision ${from}, now ${stored}`);
      write.run(deviceId, from + 1);
    },
  };
}

function createNames(db: Database.Database) {
  const read = db.prepare<[string], { from_ns: bigint; name: string }>(
    'SELECT from_ns, name FROM device_name WHERE device_id = ? ORDER BY from_ns',
  );
  const insert = db.prepare('INSERT INTO device_name (device_id, from_ns, name) VALUES (?, ?, ?)');
  return {
    read: (deviceId: string): NameHold[] => read.all(deviceId).map((row) => ({ fromNs: row.from_ns, name: row.name })),
    add: (deviceId: string, hold: NameHold): void => {
      insert.run(deviceId, hold.fromNs, hold.name);
    },
  };
}

function createDaySums(db: Database.Database) {
  const add = db.prepare(
    `INSERT INTO day_sum (device_id, day, readings, points, hash_high, hash_low) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET readings = readings + excluded.readings, points = points + excluded.points,
       hash_high = (hash_high + excluded.hash_high) % 4294967296,
       hash_low = (hash_low + excluded.hash_low) % 4294967296`,
  );
  const addText = db.prepare(
    `INSERT INTO day_text (device_id, day, points) VALUES (?, ?, ?)
     ON CONFLICT DO UPDATE SET points = points + excluded.points`,
  );
  return {
    add: (deviceId: string, sums: PageCommit['daySums']): void => {
      for (const sum of sums) add.run(deviceId, sum.day, sum.readings, sum.points, sum.hashHigh, sum.hashLow);
    },
    addTexts: (deviceId: string, texts: Iterable<readonly [number, number]>): void => {
      for (const [day, points] of texts) addText.run(deviceId, day, points);
    },
  };
}

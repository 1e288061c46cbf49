/**
 * A move from one host to another, as in docs/maintenance.md: a backup beside the running daemon, an empty `data_dir` of
 * another user, and a daemon there that continues without repeating requests for covered ranges.
 */
import { chmodSync, chownSync, copyFileSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { influxdAvailable } from '../support/influxd.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { openBench, openStage, type Stage, until } from './support.ts';

const ANY_PORT = { TIDEMARK_LISTEN: '127.0.0.1:0' };
const OTHER_USER = 4242;
const isRoot = process.getuid?.() === 0;

const bench = sharedBench(openBench);

interface Held {
  readonly device_id: string;
  readonly from_ns: bigint;
  readonly to_ns: bigint;
}

function held(file: string): Held[] {
  const db = new Database(file, { readonly: true });
  try {
    db.defaultSafeIntegers(true);
    return db.prepare<[], Held>('SELECT device_id, from_ns, to_ns FROM coverage ORDER BY 1, 2').all();
  } finally {
    db.close();
  }
}

/** "Make an empty `data_dir` (mode 0700), copy the file there as `tidemark.db`, start": for another user, where this one may. */
function restore(stage: Stage, file: string): string {
  const elsewhere = join(stage.directory, 'elsewhere');
  mkdirSync(elsewhere, { mode: 0o700 });
  copyFileSync(file, join(elsewhere, 'tidemark.db'));
  if (isRoot) {
    for (const path of [elsewhere, join(elsewhere, 'tidemark.db')]) chownSync(path, OTHER_USER, OTHER_USER);
    chmodSync(stage.directory, 0o755);
  }
  return elsewhere;
}

describe.runIf(influxdAvailable())('a state that moves', () => {
  test('continues on another host under another user: one page of new readings, none of covered ones', async () => {
    await using stage = await openStage({ bench });
    const daemon = stage.start([], { env: ANY_PORT });
    await until('all is held', () => daemon.stderr().includes('initial-sync-done'));
    const file = join(stage.directory, 'copy.db');
    const backup = await stage.run(['--backup', file]);
    expect(backup.code, backup.stderr).toBe(0);
    expect(backup.stdout).toContain('copy it as tidemark.db into an empty data_dir and start Tidemark');
    expect(daemon.child.exitCode, 'it goes on beside it').toBeNull();
    daemon.child.kill('SIGTERM');
    expect((await daemon.ended).code).toBe(0);

    const elsewhere = restore(stage, file);
    const copied = held(file);
    expect(copied).toHaveLength(3);
    const asked = stage.simulator.log.total;
    const startedMs = Date.now();
    const env = { ...ANY_PORT, TIDEMARK_DATA_DIR: elsewhere, TIDEMARK_SYNC_TELEMETRY: '*/2 * * * * *' };
    const moved = stage.start([], { env, ...(isRoot ? { uid: OTHER_USER } : {}) });
    const isBeyond = movedOn(copied);
    await until('something new was committed', () => held(join(elsewhere, 'tidemark.db')).some(isBeyond));
    moved.child.kill('SIGTERM');
    expect((await moved.ended).code, moved.stderr()).toBe(0);
    for (const [path, queries] of asksSince(stage, asked)) {
      expect(
        queries.filter((query) => query.includes('cursor=')),
        path,
      ).toEqual([]);
    }
    const own = readdirSync(elsewhere).map((name) => statSync(join(elsewhere, name)).uid);
    expect(new Set(own)).toEqual(new Set([isRoot ? OTHER_USER : process.getuid?.()]));
    const verdict = await stage.verdict(startedMs);
    expect([verdict.missing.slice(0, 5), verdict.invented.slice(0, 5)]).toEqual([[], []]);
    expect(verdict.expected).toBeGreaterThan(300);
  });
});

/** The telemetry requests for each device after so many requests. */
function asksSince(stage: Stage, requests: number): Map<string, string[]> {
  const asks = new Map<string, string[]>();
  for (const { number, path, query, status } of stage.simulator.log.requests) {
    if (number <= requests || status !== 200 || !path.endsWith('/telemetry')) continue;
    asks.set(path, [...(asks.get(path) ?? []), query]);
  }
  return asks;
}

/** Whether the coverage of a device begins where the copy's did, in one range, and extends further. */
function movedOn(copied: readonly Held[]): (now: Held) => boolean {
  return ({ device_id, from_ns, to_ns }) =>
    copied.some((before) => before.device_id === device_id && before.from_ns === from_ns && to_ns > before.to_ns);
}

/**
 * A state without room: a disk that is really full, and the limit of the file; nothing is lost, nothing is there twice.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { HARD_LIMIT_ABOVE_BYTES, StateFullError } from '../../../src/core/archive-room.ts';
import { type OpenStore, openStore } from '../../../src/store/store.ts';
import { createDisk } from '../../../src/store/views/data-dir.ts';
import { smallDisk } from '../../support/small-disk.ts';
import { NO_LIMIT, readAll, scratch } from '../support.ts';

const MIB = 1024 * 1024;

let made = 0;

/**
 * Appends lines that hardly compress until that is refused.
 *
 * @returns those that were taken, and the refusal.
 */
function fill({ store }: OpenStore, linesEach: number): { taken: string[]; error: unknown } {
  const taken: string[] = [];
  for (let n = 0; n < 20_000; n += 1) {
    const lines = Array.from({ length: linesEach }, () => {
      made += 1;
      return `m v=${Math.sin(made)}${Math.cos(made * 3)} ${made}`;
    });
    try {
      store.append(lines, 'live');
    } catch (error) {
      return { taken, error };
    }
    taken.push(...lines);
  }
  throw new Error('it never was full');
}

/** Everything that a destination has not acknowledged yet. */
function deliver({ store }: OpenStore, id: number): readonly string[] {
  const from = store.position(id, 'live');
  const batch = store.read('live', from, NO_LIMIT);
  const to = { block: (batch.segments.at(-1)?.block ?? 0) + 1, line: 0 };
  store.acknowledge({ destinationId: id, lane: 'live', from, to, rejected: [], missing: [], atMs: 1 });
  return batch.lines;
}

describe('a disk that is full', () => {
  test('is reported as such, changes nothing, and once there is room all continues where it was', ({ skip }) => {
    using disk = smallDisk('8m');
    if (disk === null) return skip('nothing can be mounted here');
    const filler = join(disk.path, 'filler');
    writeFileSync(filler, Buffer.alloc(4 * MIB));
    const state = openStore(disk.path);
    const { id } = state.store.useDestination('x', 'x');
    const first = fill(state, 20);
    expect(first.error).toBeInstanceOf(StateFullError);
    expect(first.error).toMatchObject({
      exitCode: 1,
      message: expect.stringContaining(
        'tidemark.db: the disk is full. Free space on the disk and start again; the data stored before is safe.',
      ),
    });
    expect(createDisk(disk.path).freeBytes()).toBeLessThan(MIB);
    // Reads work without free space, and every further write is refused completely.
    expect(readAll(state, 'live').lines).toEqual(first.taken);
    expect(fill(state, 2000).error).toBeInstanceOf(StateFullError);
    expect(readAll(state, 'live').lines).toEqual(first.taken);
    rmSync(filler);
    expect(deliver(state, id)).toEqual(first.taken);
    const second = fill(state, 20);
    expect(second.taken.length).toBeGreaterThan(1000);
    expect(readAll(state, 'live').lines).toEqual([...first.taken, ...second.taken]);
    state.close();
    const again = openStore(disk.path);
    expect(readAll(again, 'live').lines).toEqual([...first.taken, ...second.taken]);
    again.close();
  });
});

describe('the limit of the file', () => {
  test('refuses writes beyond archive.max_size and 64 MiB while delivery and clearing make room', () => {
    using place = scratch();
    const state = openStore(place.path, { maxBytes: MIB - HARD_LIMIT_ABOVE_BYTES + 3 * MIB });
    const { id } = state.store.useDestination('x', 'x');
    const first = fill(state, 200);
    expect(first.error).toBeInstanceOf(StateFullError);
    const { usedBytes } = state.maintenance.size();
    expect(usedBytes).toBeGreaterThan(3.8 * MIB);
    expect(usedBytes).toBeLessThanOrEqual(4 * MIB);
    expect(deliver(state, id)).toEqual(first.taken);
    while (state.maintenance.clear({ configured: [id], active: [id], beforeMs: null }).blocks > 0);
    expect(state.maintenance.size().usedBytes).toBeLessThan(MIB);
    const second = fill(state, 200);
    expect(second.taken.length).toBeGreaterThan(1000);
    expect(deliver(state, id)).toEqual(second.taken);
    expect(state.store.missing(id)).toEqual([]);
    state.close();
  });

  test('lets a state be opened that is larger already, and grow no more', () => {
    using place = scratch();
    const large = openStore(place.path);
    const lines = Array.from({ length: 40_000 }, (_, at) => `m v=${Math.sin(at)} ${at}`);
    large.store.append(lines, 'live');
    large.close();
    const state = openStore(place.path, { maxBytes: MIB / 4 - HARD_LIMIT_ABOVE_BYTES });
    expect(readAll(state, 'live').lines).toEqual(lines);
    expect(fill(state, 2000).error).toBeInstanceOf(StateFullError);
    state.close();
  });
});

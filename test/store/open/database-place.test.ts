/** How a state is refused in a place that cannot hold one: no directory, a dead link, a lost or locked file. */
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { requireState } from '../../../src/store/open/read-only.ts';
import { openStore } from '../../../src/store/store.ts';
import { inspectState, isStateLocked } from '../../../src/store/views/inspect.ts';
import { openToRead } from '../../../src/store/views/read-state.ts';
import { scratch } from '../support.ts';
import { fill, refusal } from './support.ts';

describe('a place that cannot hold a state', () => {
  test('a file instead of the directory is named', () => {
    using place = scratch();
    writeFileSync(join(place.path, 'file'), 'mine');
    for (const path of [join(place.path, 'file'), join(place.path, 'file', 'deeper')]) {
      const error = refusal(path);
      expect(error.exitCode).toBe(1);
      expect(error.message).toMatch(
        /cannot be made, because \S+\/file is not a directory .* Set data_dir to another directory/,
      );
    }
    expect(readFileSync(join(place.path, 'file'), 'utf8')).toBe('mine');
  });

  test.skipIf(!existsSync('/proc/self'))('a file system that accepts no directory, and a name that is too long', () => {
    const long = join('/tmp', 'a'.repeat(300), 'data');
    for (const path of ['/proc/tidemark/data', long]) {
      const error = refusal(path);
      expect([error.exitCode, error.message]).toEqual([
        1,
        expect.stringContaining('Set data_dir to another directory'),
      ]);
    }
    expect(refusal(long).message).toMatch(
      /this path, or a name in it, is too long \(ENAMETOOLONG.* Set data_dir to another directory, with a shorter path\.$/,
    );
  });

  test.each([
    ['the directory', '', 'link/state'],
    ['the state', 'state', 'state/tidemark.db'],
    ['the lock', 'state', 'state/tidemark.lock'],
  ])('a link to what is not there, such as a disk that is not mounted: %s', (_what, made, link) => {
    using place = scratch();
    const directory = join(place.path, made === '' ? link : made);
    const at = made === '' ? dirname(directory) : join(place.path, link);
    if (made !== '') mkdirSync(directory);
    symlinkSync(join(place.path, 'not-mounted'), at);
    const said = `${at}: this is a link to ${place.path}/not-mounted, which does not exist. Mount or restore the target of the link, or correct the link. Nothing was written.`;
    expect(refusal(directory)).toMatchObject({ exitCode: 1, message: said });
    const look = at.endsWith('.lock') ? isStateLocked : inspectState;
    expect(() => look(directory)).toThrow(said);
    expect(existsSync(join(place.path, 'not-mounted')), 'nothing is made at the far end').toBe(false);
  });

  test('a lost state is reported as lost to a reader, too', () => {
    using place = scratch();
    fill(place);
    for (const [is, lose] of [
      ['empty', () => truncateSync(place.file)],
      ['missing', () => rmSync(place.file)],
    ] as const) {
      lose();
      const lost = refusal(place.path).message;
      expect(lost).toMatch(
        new RegExp(
          `: the state file is ${is}, but other files of a state are in the same directory\\. Restore a backup`,
        ),
      );
      for (const read of [openToRead, inspectState, requireState]) expect(() => read(place.path)).toThrow(lost);
    }
  });

  test('a directory instead of the file is named', () => {
    using place = scratch();
    mkdirSync(place.file);
    expect(refusal(place.path)).toMatchObject({
      exitCode: 1,
      message: `${place.file}: this is not a file. Set data_dir to another directory, or move it away.`,
    });
  });

  test('a state that another program has locked for itself', () => {
    using place = scratch();
    fill(place);
    const db = new Database(place.file);
    db.pragma('journal_mode = DELETE');
    db.exec('BEGIN EXCLUSIVE');
    try {
      const error = refusal(place.path);
      expect(error.exitCode).toBe(1);
      expect(error.message).toMatch(/another program has locked the state file.*Close that program/);
    } finally {
      db.close();
    }
    // It is closed.
    openStore(place.path).close();
  });
});

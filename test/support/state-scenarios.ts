/**
 * Scenarios of what somebody else does to the files of a state: removes them, cuts them, puts garbage in their place,
 * kills a backup. Nothing is lost without a word.
 */
import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Scratch, scratch } from '../store/support.ts';
import { type BorderScenario, type Borders, unless } from './borders.ts';

/** What opening a state says; `opened` where it is opened. */
function opening({ openStore }: Borders, { path }: Scratch): string {
  try {
    openStore(path).close();
    return 'opened';
  } catch (error) {
    return error instanceof Error ? error.message.replace(/^.*\/|\. .*/gs, '') : String(error);
  }
}

/** The state file is removed or cut to nothing, beside what else belongs to a state. */
export const stateThatIsGone: BorderScenario = async (borders) => {
  const found: string[] = [];
  const ways: readonly [is: string, lose: (place: Scratch) => void][] = [
    ['missing', ({ file }) => rmSync(file)],
    ['empty', ({ file }) => truncateSync(file)],
    [
      'missing',
      ({ file, path }) => {
        rmSync(file);
        rmSync(join(path, 'tidemark.lock'));
        writeFileSync(`${file}-wal`, 'the last pages');
      },
    ],
  ];
  for (const [is, lose] of ways) {
    using place = scratch();
    borders.openStore(place.path).close();
    lose(place);
    const before = readdirSync(place.path).filter((name) => name !== 'tidemark.lock');
    const lost = `tidemark.db: the state file is ${is}, but other files of a state are in the same directory`;
    found.push(...unless('opening', opening(borders, place), lost));
    const after = readdirSync(place.path).filter((name) => name !== 'tidemark.lock');
    found.push(...unless('files', after, before));
  }
  return await Promise.resolve(found);
};

/** Garbage stands where the lock or a journal of the state should be. */
export const garbageBesideAState: BorderScenario = async (borders) => {
  const found: string[] = [];
  for (const [name, what] of [
    ['tidemark.lock', 'tidemark.lock: this is not a lock file of Tidemark'],
    ['tidemark.db-journal', 'tidemark.db-journal: this journal does not belong to a state of Tidemark'],
  ] as const) {
    using place = scratch();
    borders.openStore(place.path).close();
    writeFileSync(join(place.path, name), 'garbage'.repeat(1000));
    const before = readFileSync(place.file).toString('base64');
    found.push(...unless(name, opening(borders, place), what));
    found.push(...unless('the state', readFileSync(place.file).toString('base64') === before, true));
    rmSync(join(place.path, name));
    found.push(...unless('without it', opening(borders, place), 'opened'));
  }
  return await Promise.resolve(found);
};

/** Backups were killed an hour ago; another one is made now, and files of other programs are in the same place. */
export const killedBackups: BorderScenario = async ({ openStore, backUpState }) => {
  using place = scratch();
  const state = join(place.path, 'state');
  openStore(state).close();
  const nowMs = Date.now();
  const touch = (name: string, ageMs: number): void => {
    const path = join(place.path, name);
    writeFileSync(path, 'pages');
    utimesSync(path, (nowMs - ageMs) / 1000, (nowMs - ageMs) / 1000);
  };
  const kept = ['copy.db.bak', 'now.db.ff.tidemark-part', 'other.db.12ab.tidemark-part.txt', 'photo.1a2b.part'];
  for (const name of kept) touch(name, name.startsWith('now') ? 1000 : 3_600_000);
  for (const name of ['copy.db.1a2b3c4d.tidemark-part', 'copy.db.1a2b3c4d.tidemark-part-journal']) touch(name, 10);
  for (const name of ['copy.db.ff.part', 'yesterday.db.0.tidemark-part']) touch(name, 120_000);
  const file = join(place.path, 'copy.db');
  const { signal } = new AbortController();
  await backUpState({ directory: state, file, random: () => 0.5, nowMs, onProgress: () => undefined }, signal);
  const left = readdirSync(place.path).toSorted();
  return [
    ...unless('files', left, [...kept, 'copy.db', 'state'].toSorted()),
    ...unless('copy', existsSync(file), true),
  ];
};

/**
 * Scenarios of what somebody else does to the files of a state: removes them, cuts them, puts garbage in their place,
 * kills a backup. Nothing is lost without a word.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type Scratch, scratch } from '../store/support.ts';
import { type BorderScenario, type Borders, unless } from './borders.ts';

/** The result of opening a state; `opened` where it is opened. */
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

/** Whether a call is refused because another process may use the state. */
function isRefused(call: () => unknown): boolean {
  try {
    call();
    return false;
  } catch (error) {
    return error instanceof Error && error.message.includes('was deleted or replaced while the daemon held its lock');
  }
}

/** The lock file is deleted under a process that writes: each of its writes is refused, however small. */
export const writesWithoutTheLock: BorderScenario = async ({ openStore }) => {
  using place = scratch();
  const { store, ledger, jobs, maintenance, close } = openStore(place.path);
  const job = { kind: 'once', args: {}, requestedBy: '--once', requestedMs: 1 } as const;
  const writes: Record<string, () => unknown> = {
    saveFact: () => store.saveFact('a', '1'),
    append: () => store.append(['m v=1 1'], 'live'),
    forget: () => store.alerts.forget(1),
    book: () => ledger.book(1, { stream: 'account', lane: 'inventory' }),
    block: () => ledger.block(1, 1000),
    dateBack: () => ledger.dateBack(1, 1),
    dateAheadAsNow: () => ledger.dateAheadAsNow(1),
    submit: () => jobs.submit(job),
    beat: () => jobs.beat(),
    take: () => jobs.take(1, 1),
    release: () => jobs.release(1),
    saveArgs: () => jobs.saveArgs(1, {}),
    reportProgress: () => jobs.reportProgress(1, null),
    end: () => jobs.end(1, { state: 'done', exitCode: 0, summary: null, message: null }, 1),
    clear: () => jobs.clear(1),
    vacuum: () => maintenance.vacuum(1),
  };
  const refused = (): string[] => Object.entries(writes).flatMap(([name, write]) => (isRefused(write) ? [name] : []));
  const before = refused();
  rmSync(join(place.path, 'tidemark.lock'));
  const after = refused();
  close();
  return await Promise.resolve([
    ...unless('refused with the lock', before, []),
    ...unless('refused without it', after, Object.keys(writes)),
  ]);
};

/** The state is elsewhere, and links lead to it: of all the ways to it one can be used at a time. */
export const linkedState: BorderScenario = async (borders) => {
  using place = scratch();
  const at = (name: string): Scratch => ({ ...place, path: join(place.path, name) });
  for (const name of ['state', 'one', 'other']) mkdirSync(join(place.path, name));
  borders.openStore(at('state').path).close();
  symlinkSync('state', join(place.path, 'directory'));
  symlinkSync('../state/tidemark.db', join(place.path, 'one', 'tidemark.db'));
  symlinkSync('../one/tidemark.db', join(place.path, 'other', 'tidemark.db'));
  const found: string[] = [];
  const ways = ['state', 'directory', 'one', 'other'].map(at);
  for (const [index, way] of ways.entries()) {
    const { close } = borders.openStore(way.path);
    const said = opening(borders, ways.at(index - 1) ?? way);
    close();
    found.push(...unless(way.path, said, 'tidemark.lock: Tidemark already runs with this state'));
  }
  found.push(...unless('kept locks', existsSync(join(place.path, 'one', 'tidemark.lock')), false));
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

/** A second backup to the same file begins while the first one copies: the file is that of the one that ends first. */
export const secondBackup: BorderScenario = async ({ openStore, backUpState }) => {
  using place = scratch();
  const directory = join(place.path, 'state');
  openStore(directory).close();
  const file = join(place.path, 'copy.db');
  const { signal } = new AbortController();
  let began = (): void => undefined;
  const isCopying = new Promise<void>((resolve) => {
    began = resolve;
  });
  const backUp = (draw: number): Promise<string> =>
    backUpState({ directory, file, random: () => draw, nowMs: Date.now(), onProgress: () => began() }, signal).then(
      () => 'done',
      (error: unknown) => (error instanceof Error ? error.message.replace(/\/.*\//, '') : String(error)),
    );
  const first = backUp(0.25);
  await isCopying;
  const said = await Promise.all([first, backUp(0.5)]);
  const taken = '--backup: copy.db already exists and is not overwritten. Choose another name, or remove it.';
  return [
    ...unless('ends', said.toSorted(), [taken, 'done']),
    ...unless('files', readdirSync(place.path).toSorted(), ['copy.db', 'state']),
  ];
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

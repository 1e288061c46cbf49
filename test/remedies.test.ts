/**
 * Remedies that are a configuration key or a change of a file, followed to the letter: something is broken, the message
 * names the remedy, the remedy is followed, and the message is gone. `test/fixtures/remedies.ts` lists which remedy is
 * tried by which test.
 */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { configuredDatabases } from '../src/app/settings.ts';
import { parseArguments } from '../src/cli/argv.ts';
import { requireDestination } from '../src/commands/replay/job.ts';
import { readBackfillOptions } from '../src/commands/shared/options.ts';
import { loadConfig } from '../src/config/load.ts';
import { clearingMarks, judgeSpace, MIN_FREE_BYTES } from '../src/core/archive-room.ts';
import { findDeviceIds } from '../src/core/device-names.ts';
import { openAgent } from '../src/influx/connection.ts';
import { APPLICATION_ID, MIGRATIONS } from '../src/store/open/migrations.ts';
import { requireNewFile } from '../src/store/open/new-file.ts';
import { explainedReading, hasShape, openReading, readOnce, requireState } from '../src/store/open/read-only.ts';
import { openStore } from '../src/store/store.ts';
import { backUpState } from '../src/store/views/backup.ts';
import { refusal, type Scratch, scratch } from './store/support.ts';

const start = (directory: string): string => refusal(() => openStore(directory).close());

describe('the state', () => {
  /** The broken setup, the advice, and the steps that follow it. */
  interface Trial {
    readonly broken: (place: Scratch) => void;
    readonly advice: RegExp;
    /** Follows the advice; returns the directory to start with. */
    readonly follow: (place: Scratch) => string;
  }

  const other = (place: Scratch): string => join(place.path, 'another-data_dir');
  const move = (place: Scratch, ...names: string[]): string => {
    mkdirSync(join(place.path, 'away'));
    for (const name of names) {
      const file = join(place.path, name);
      if (existsSync(file)) renameSync(file, join(place.path, 'away', name));
    }
    return place.path;
  };
  const foreign = ({ file }: Scratch): void => {
    const db = new Database(file);
    db.pragma('journal_mode = WAL');
    db.exec('CREATE TABLE theirs (a)');
    // As another program leaves it that was killed.
    for (const end of ['-wal', '-shm']) writeFileSync(`${file}.killed${end}`, readFileSync(`${file}${end}`));
    writeFileSync(`${file}.killed`, readFileSync(file));
    db.close();
    for (const end of ['', '-wal', '-shm']) renameSync(`${file}.killed${end}`, `${file}${end}`);
  };
  const link = (place: Scratch): void => symlinkSync(join(place.path, 'not-mounted'), place.file);
  const fileInTheWay = (place: Scratch): void => writeFileSync(join(place.path, 'file'), 'mine');
  const newer = (place: Scratch): void => {
    openStore(place.path).close();
    writeFileSync(join(place.path, 'backup'), readFileSync(place.file));
    const db = new Database(place.file);
    db.pragma('user_version = 999');
    db.close();
  };
  const damaged = (place: Scratch): void => {
    openStore(place.path).close();
    writeFileSync(join(place.path, 'backup'), readFileSync(place.file));
    writeFileSync(place.file, 'x'.repeat(8192));
  };
  /** Into an empty directory: the log of another state beside it would change the backup, or damage it. */
  const restored = (place: Scratch): string => {
    const directory = other(place);
    mkdirSync(directory);
    writeFileSync(join(directory, 'tidemark.db'), readFileSync(join(place.path, 'backup')));
    return directory;
  };
  const loop = (place: Scratch): void => symlinkSync('tidemark.db', place.file);
  const directory = (place: Scratch): void => mkdirSync(place.file);
  const STATE_FILES = ['tidemark.db', 'tidemark.db-wal', 'tidemark.db-shm', 'tidemark.lock'];

  test.each<[string, Trial]>([
    [
      'of another program: another directory',
      { broken: foreign, advice: /Set data_dir to another directory/, follow: other },
    ],
    [
      'of another program: moved away',
      {
        broken: foreign,
        advice: /or move that file away, together with its -wal and -shm/,
        follow: (place) => move(place, 'tidemark.db', 'tidemark.db-wal', 'tidemark.db-shm'),
      },
    ],
    [
      'that is a directory: another directory',
      { broken: directory, advice: /Set data_dir to another directory, or move it away/, follow: other },
    ],
    [
      'that is a directory: moved away',
      { broken: directory, advice: /or move it away/, follow: (place) => move(place, 'tidemark.db') },
    ],
    [
      'that is a link to itself: another directory',
      { broken: loop, advice: /leads back to itself .*or set data_dir to another directory/, follow: other },
    ],
    [
      'that is a link to itself: the link corrected',
      {
        broken: loop,
        advice: /Correct that link/,
        follow: (place) => {
          const elsewhere = other(place);
          openStore(elsewhere).close();
          rmSync(place.file);
          symlinkSync(join(elsewhere, 'tidemark.db'), place.file);
          return place.path;
        },
      },
    ],
    [
      'of a newer version: a backup restored',
      { broken: newer, advice: /restore a backup of an older state into an empty data_dir/, follow: restored },
    ],
    [
      'damaged: a backup restored',
      { broken: damaged, advice: /Stop Tidemark and restore a backup into an empty data_dir/, follow: restored },
    ],
    [
      'damaged: its files moved away together',
      {
        broken: damaged,
        advice:
          /move tidemark\.db, tidemark\.db-wal, tidemark\.db-shm and tidemark\.lock away together and start again/,
        follow: (place) => move(place, ...STATE_FILES),
      },
    ],
    [
      'lost, with its log beside it: the files moved away',
      {
        broken: (place) => writeFileSync(`${place.file}-wal`, 'x'.repeat(100)),
        advice: /move tidemark\.db, tidemark\.db-wal, tidemark\.db-shm and tidemark\.lock away together/,
        follow: (place) => move(place, ...STATE_FILES),
      },
    ],
    [
      'with a lock file of another program: moved away',
      {
        broken: (place) => {
          openStore(place.path).close();
          writeFileSync(join(place.path, 'tidemark.lock'), 'x'.repeat(5000));
        },
        advice: /Move it away and start again; the state next to it was not changed/,
        follow: (place) => move(place, 'tidemark.lock'),
      },
    ],
    [
      'behind a link to nowhere: the link corrected',
      {
        broken: link,
        advice: /or correct the link/,
        follow: (place) => {
          rmSync(place.file);
          return place.path;
        },
      },
    ],
    [
      'behind a link to nowhere: its target restored',
      {
        broken: link,
        advice: /Mount or restore the target of the link/,
        follow: (place) => {
          const elsewhere = other(place);
          openStore(elsewhere).close();
          renameSync(join(elsewhere, 'tidemark.db'), join(place.path, 'not-mounted'));
          return place.path;
        },
      },
    ],
  ])('%s', (_name, { broken, advice, follow }) => {
    using place = scratch();
    broken(place);
    expect(start(place.path)).toMatch(advice);
    const directory = follow(place);
    expect(start(directory)).toBe('');
  });

  test('a journal of another database beside a state: a copy kept, and moved away', () => {
    using place = scratch();
    openStore(place.path).close();
    const theirs = join(place.path, 'theirs.db');
    const db = new Database(theirs);
    db.exec('CREATE TABLE theirs (a)');
    db.pragma('cache_size = 1');
    const insert = db.prepare('INSERT INTO theirs VALUES (?)');
    for (let n = 0; n < 50; n += 1) insert.run('x'.repeat(2000));
    db.exec("BEGIN; UPDATE theirs SET a = 'changed' || a");
    const journal = readFileSync(`${theirs}-journal`);
    db.exec('ROLLBACK');
    db.close();
    writeFileSync(`${place.file}-journal`, journal);
    expect(start(place.path)).toMatch(
      /is your state, keep a copy of both files, move the journal away and start again/,
    );
    for (const name of ['tidemark.db', 'tidemark.db-journal'])
      writeFileSync(join(place.path, `copy-of-${name}`), readFileSync(join(place.path, name)));
    expect(start(move(place, 'tidemark.db-journal'))).toBe('');
  });

  test('a state of an older version beside a reader: the daemon started, which upgrades it', () => {
    using place = scratch();
    const db = new Database(place.file);
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}; ${MIGRATIONS[0]} PRAGMA user_version = 1;`);
    db.close();
    const read = (): string =>
      refusal(() =>
        openReading(place.path, (own, path) => {
          hasShape(own, path);
          return null;
        }),
      );
    expect(read()).toMatch(/Start the daemon of this version or run --once, which upgrade it/);
    expect(start(place.path)).toBe('');
    expect(read()).toBe('');
  });

  test('a state that this user may not read: a backup of its owner in a directory of its own', async () => {
    using place = scratch();
    const state = openStore(place.path);
    state.store.pinWorkspace({ apiId: 'ws', tag: 'ws' });
    const closed = (): never => {
      throw Object.assign(new Error('unable to open database file'), { code: 'SQLITE_CANTOPEN' });
    };
    expect(refusal(() => explainedReading(place.file, closed))).toMatch(
      /make a copy with --backup, move it to tidemark\.db in a directory of your own, and set data_dir to that/,
    );
    const directory = other(place);
    mkdirSync(directory);
    // While the daemon runs.
    const copy = { directory: place.path, file: join(place.path, 'copy.db'), nowMs: Date.now() };
    await backUpState({ ...copy, random: Math.random, onProgress: () => {} }, new AbortController().signal);
    renameSync(copy.file, join(directory, 'tidemark.db'));
    const tag = readOnce(directory, (db) =>
      db.prepare("SELECT value FROM fact WHERE key = 'workspace_tag'").pluck().get(),
    );
    expect(tag).toContain('ws');
    state.close();
  });

  test('a state of another workspace: a key for its own, or another data_dir', () => {
    using place = scratch();
    const read = (directory: string, workspace: string): string => {
      const state = openStore(directory);
      const reported = refusal(() => state.store.pinWorkspace({ apiId: workspace, tag: workspace }));
      state.close();
      return reported;
    };
    expect(read(place.path, 'home')).toBe('');
    expect(read(place.path, 'office')).toMatch(/Use a key for that workspace, or set another data_dir for this one/);
    expect(read(place.path, 'home')).toBe('');
    expect(read(other(place), 'office')).toBe('');
  });

  test('a data_dir below a file is remedied by another directory', () => {
    using place = scratch();
    fileInTheWay(place);
    const directory = join(place.path, 'file', 'data');
    expect(start(directory)).toMatch(/Set data_dir to another directory, or mount the missing file system/);
    expect(start(other(place))).toBe('');
    // As a mount in its place.
    rmSync(join(place.path, 'file'));
    mkdirSync(directory, { recursive: true });
    expect(start(directory)).toBe('');
  });

  test.each(['/proc/tidemark', '/sys/tidemark'])('a data_dir in %s is remedied by another directory', (path) => {
    using place = scratch();
    expect(start(path)).toMatch(/nobody can create files in this file system. Set data_dir to another directory.$/);
    expect(refusal(() => requireState(path))).toBe(start(path).replace('.lock', '.db'));
    expect(start(other(place))).toBe('');
  });

  test('a state in use is remedied by waiting for the end of the process, or by another data_dir', () => {
    using place = scratch();
    const running = openStore(place.path);
    try {
      expect(start(place.path)).toMatch(
        /start again when it has ended\. A daemon for another workspace needs a data_dir of its own\./,
      );
      expect(start(other(place))).toBe('');
    } finally {
      running.close();
    }
    expect(start(place.path)).toBe('');
  });

  test('an older state in place of a new one: copied into an empty data_dir', () => {
    using place = scratch();
    const older = other(place);
    const state = openStore(older);
    state.store.pinWorkspace({ apiId: 'ws', tag: 'ws' });
    for (let n = 0; n < 3; n += 1) state.store.append([`m,device_id=d value=${n} ${n}`], 'live');
    state.close();
    openStore(place.path).close();
    const directory = join(place.path, 'empty');
    mkdirSync(directory);
    writeFileSync(join(directory, 'tidemark.db'), readFileSync(join(older, 'tidemark.db')));
    const followed = openStore(directory);
    expect(followed.store.read('live', { block: 0, line: 0 }, { lines: 9, bytes: 1e6 }).lines).toHaveLength(3);
    followed.close();
  });

  test('not there yet: started once', () => {
    using place = scratch();
    expect(refusal(() => requireState(place.path))).toMatch(
      /add it by --config FILE \(or set the same data_dir\)\. Else start the daemon, or run --once, first/,
    );
    openStore(other(place)).close();
    expect(refusal(() => requireState(other(place)))).toBe('');
    openStore(place.path).close();
    expect(refusal(() => requireState(place.path))).toBe('');
  });
});

describe('a file that a command writes', () => {
  test('that exists: another name, or removed', () => {
    using place = scratch();
    writeFileSync(join(place.path, 'b'), 'mine');
    const reported = (name: string): string => refusal(() => requireNewFile('--backup', join(place.path, name)));
    expect(reported('b')).toMatch(/Choose another name, or remove it/);
    expect(reported('c')).toBe('');
    rmSync(join(place.path, 'b'));
    expect(reported('b')).toBe('');
  });

  test('that no file can be: another path', () => {
    using place = scratch();
    symlinkSync('loop', join(place.path, 'loop'));
    writeFileSync(join(place.path, 'file'), 'mine');
    const reported = (...names: string[]): string =>
      refusal(() => requireNewFile('--backup', join(place.path, ...names)));
    for (const names of [['loop'], ['loop', 'b'], ['a'.repeat(300)]])
      expect(reported(...names)).toMatch(/^--backup: .* cannot be created \(E[A-Z]+\)\. Choose another path\.$/);
    for (const names of [
      ['file', 'b'],
      ['file', 'b', 'c'],
    ])
      expect(reported(...names)).toMatch(/^--backup: .*\/file is not a directory\. Choose another path\.$/);
    expect(reported('b')).toBe('');
  });

  test('that is a directory, or in none: a file in it, and the directory made', () => {
    using place = scratch();
    const reported = (...names: string[]): string =>
      refusal(() => requireNewFile('--backup', join(place.path, ...names)));
    expect(reported()).toMatch(/Choose the name of a new file in it/);
    expect(reported('b')).toBe('');
    expect(reported('none', 'b')).toBe(`--backup: there is no directory ${join(place.path, 'none')}. Create it first.`);
    const relative = refusal(() => requireNewFile('--backup', 'none/b'));
    expect(relative).toBe(
      `--backup: there is no directory ${resolve('none')} (a relative path starts in the working directory, ${resolve('.')}). Create it first.`,
    );
    mkdirSync(join(place.path, 'none'));
    expect(reported('none', 'b')).toBe('');
  });
});

describe('the command line', () => {
  const parsed = (...argv: string[]): string => refusal(() => parseArguments(argv));

  test.each<[string, RegExp, string[], string[]]>([
    ['two modes: one', /Give one of them/, ['--once', '--status'], ['--once']],
    ['a mode twice: once', /Give it once/, ['--once', '--once'], ['--once']],
    ['a flag twice: once', /Give it once/, ['--once', '--config', 'a', '--config', 'b'], ['--once', '--config', 'a']],
    ['a value for a flag without: no equals sign', /write it without the equals sign/, ['--once=now'], ['--once']],
    ['a mode for the daemon: none', /run tidemark without one, with --config FILE if needed/, ['daemon'], []],
    [
      'a mode for the daemon: a file',
      /without one, with --config FILE/,
      ['daemon', '--config', 'a'],
      ['--config', 'a'],
    ],
    [
      'two devices to remove: one',
      /Give --device once/,
      ['--forget', '--device', 'a', '--device', 'b'],
      ['--forget', '--device', 'a'],
    ],
    [
      'a configuration of the demo: left out',
      /leave --config out, or set TIDEMARK_ variables for it/,
      ['--demo', '--config', 'a'],
      ['--demo'],
    ],
    [
      'the kind of no database: with its address',
      /give --influx-url URL/,
      ['init', '--influx-kind', 'influxdb'],
      ['init', '--influx-kind', 'influxdb', '--influx-url', 'http://127.0.0.1:8086'],
    ],
  ])('%s', (_name, advice, broken, followed) => {
    expect(parsed(...broken)).toMatch(advice);
    expect(parsed(...followed)).toBe('');
  });

  test('a rate that is given twice, or has no end: one of both, and --max-share', () => {
    const command = { from: '1d', to: null, finishBy: null, maxShare: null, recheck: false };
    const read = (given: Partial<Parameters<typeof readBackfillOptions>[0]>): string =>
      refusal(() => readBackfillOptions({ ...command, ...given }, Date.UTC(2026, 10, 21)));
    expect(read({ finishBy: '12h', maxShare: '0.5' })).toMatch(/Give one of them/);
    expect([read({ finishBy: '12h' }), read({ maxShare: '0.5' })]).toEqual(['', '']);
    expect(read({ from: 'all', finishBy: '12h' })).toMatch(/Use --max-share instead/);
    expect(read({ from: 'all', maxShare: '0.5' })).toBe('');
  });

  test('a name of two devices: the id of one', () => {
    const devices = ['hub-1', 'hub-2'].map((deviceId) => ({ deviceId, name: 'Twin' }));
    const found = (text: string): string => refusal(() => findDeviceIds(devices, [text]));
    expect(found('twin')).toMatch(/Give the id of one/);
    expect(found('hub-2')).toBe('');
  });
});

describe('the archive that is full', () => {
  const figures = { usedBytes: 1e9, freeBytes: 0, walBytes: 0, directory: '/data', diskFreeBytes: 1e12, refusal: null };
  const reason = (maxBytes: number, hasDestinations: boolean, used = figures): string =>
    judgeSpace(null, used, { maxBytes, minFreeBytes: MIN_FREE_BYTES, hasDestinations })?.reason ?? '';

  test('has room again with a larger archive.max_size, or where a database takes its points', () => {
    expect(reason(1e9 - 1, true)).toMatch(/when you raise archive\.max_size/);
    expect(reason(2e9, true)).toBe('');
    expect(reason(1e9 - 1, false)).toMatch(/when you raise archive\.max_size or configure a database/);
    expect(reason(2e9, false)).toBe('');
    // Delivered points are removed from the archive.
    expect(reason(1e9, true, { ...figures, usedBytes: clearingMarks(1e9).downTo })).toBe('');
  });

  test('has room again on a full disk once space is free', () => {
    expect(reason(2e9, true, { ...figures, diskFreeBytes: 1 })).toMatch(/delete or move other files there/);
    expect(reason(2e9, true)).toBe('');
  });
});

describe('the configuration', () => {
  const NOW_MS = Date.UTC(2026, 10, 21);
  const KEY = 'tm_key_4242\n';
  const FILES: Readonly<Record<string, string>> = {
    key: 'tm_key',
    ca: '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n',
    other: 'log: {level: info}\n',
  };
  const API = { TIDEMARK_API_URL: 'https://api.test/external/v1', TIDEMARK_API_KEY: 'key-4242' };

  type Environment = Readonly<Record<string, string | undefined>>;

  function reported(changes: Environment, yaml?: string, file: string | null = null): string {
    const set = Object.entries({ ...API, ...changes }).filter(
      (entry): entry is [string, string] => entry[1] !== undefined,
    );
    const readFile = (path: string): string => {
      const text = path === 'config/tidemark.yaml' ? yaml : FILES[path];
      if (text === undefined) throw Object.assign(new Error('ENOENT'), { code: 'ENOENT' });
      return text;
    };
    const input = { file, environment: Object.fromEntries(set), readFile, nowMs: NOW_MS };
    let warnings = '';
    const message = refusal(() => {
      warnings = loadConfig(input)
        .warnings.map(({ what, remedy }) => `${what}; ${remedy}`)
        .join('\n');
    });
    return message + warnings;
  }

  const INFLUX = { TIDEMARK_INFLUX_URL: 'http://127.0.0.1:8086', TIDEMARK_INFLUX_BUCKET: 'b' };

  test.each<[string, RegExp, Environment, Environment]>([
    ['no address of the API: set', /set it in .*, or set TIDEMARK_API_URL/, { TIDEMARK_API_URL: undefined }, {}],
    [
      'no address of the API under systemd: set',
      /set TIDEMARK_API_URL in \/etc\/tidemark\/home\/tidemark\.env: the base address/,
      { TIDEMARK_DATA_DIR: '/var/lib/tidemark/home', TIDEMARK_API_URL: undefined },
      {},
    ],
    [
      'no key under systemd: in a file',
      /the workspace API key into \/etc\/tidemark\/home\/tidemark_api_key and name that file by TIDEMARK_API_KEY_FILE in /,
      { TIDEMARK_DATA_DIR: '/var/lib/tidemark/home', TIDEMARK_API_KEY: undefined },
      { TIDEMARK_API_KEY: undefined, TIDEMARK_API_KEY_FILE: 'key' },
    ],
    [
      'no key: in a file',
      /write only the workspace API key into a file and name that file by .*TIDEMARK_API_KEY_FILE/,
      { TIDEMARK_API_KEY: undefined },
      { TIDEMARK_API_KEY: undefined, TIDEMARK_API_KEY_FILE: 'key' },
    ],
    [
      'a key twice: one removed',
      /remove one of them/,
      { TIDEMARK_API_KEY_FILE: 'key' },
      { TIDEMARK_API_KEY: undefined, TIDEMARK_API_KEY_FILE: 'key' },
    ],
    [
      'a variable misspelt',
      /did you mean TIDEMARK_LISTEN\?/,
      { TIDEMARK_LISTN: 'x' },
      { TIDEMARK_LISTEN: '127.0.0.1:0' },
    ],
    [
      'an old variable: renamed',
      /is now TIDEMARK_SYNC_IDLE_POLL; rename the variable/,
      { TIDEMARK_SYNC_SWEEP: '6h' },
      { TIDEMARK_SYNC_IDLE_POLL: '6h' },
    ],
    [
      'a database without a bucket: named',
      /a database needs influx\.url and influx\.bucket/,
      { TIDEMARK_INFLUX_URL: INFLUX.TIDEMARK_INFLUX_URL },
      INFLUX,
    ],
    [
      'a short token: a longer one',
      /use a longer one if other machines can reach the database/,
      { ...INFLUX, TIDEMARK_INFLUX_TOKEN: 'u:p' },
      { ...INFLUX, TIDEMARK_INFLUX_TOKEN: 'user:gk7-Rw2x' },
    ],
    [
      'an ordinary word as a token: a long random one',
      /use a long random one/,
      { ...INFLUX, TIDEMARK_INFLUX_TOKEN: 'admin:swordfish' },
      { ...INFLUX, TIDEMARK_INFLUX_TOKEN: 'admin:gk7-Rw2x-0419' },
    ],
    [
      'an ordinary word as the key: the complete one',
      /check that it is the complete key/,
      { TIDEMARK_API_KEY: 'telemetry' },
      { TIDEMARK_API_KEY: 'tmk_gk7-Rw2x-0419' },
    ],
    [
      'a short token for another machine: a longer one',
      /use a longer token; only a database on this machine may have such a short one/,
      { ...INFLUX, TIDEMARK_INFLUX_URL: 'http://db:8086', TIDEMARK_INFLUX_TOKEN: 'u:p' },
      { ...INFLUX, TIDEMARK_INFLUX_URL: 'http://db:8086', TIDEMARK_INFLUX_TOKEN: 'user:gk7-Rw2x' },
    ],
    [
      'the API key in another value: removed there',
      /contains the secret of api\.key .*; remove it here/,
      { TIDEMARK_SYNC_INCLUDE: `hub-1,${API.TIDEMARK_API_KEY}` },
      { TIDEMARK_SYNC_INCLUDE: 'hub-1' },
    ],
    [
      'the API key as a token: another value',
      /use another value: only the API may receive the API key/,
      { ...INFLUX, TIDEMARK_INFLUX_TOKEN: API.TIDEMARK_API_KEY },
      { ...INFLUX, TIDEMARK_INFLUX_TOKEN: 'user:gk7-Rw2x' },
    ],
    [
      'a key with what no header can carry: corrected',
      /no HTTP header can carry/,
      { TIDEMARK_API_KEY: 'key→4242' },
      { TIDEMARK_API_KEY: 'key-4242' },
    ],
    [
      'a key with a space in it: only the key',
      /has a space in it; write only the key, without "Bearer"/,
      { TIDEMARK_API_KEY: 'Bearer key-4242' },
      { TIDEMARK_API_KEY: 'key-4242' },
    ],
    [
      'no certificates in a file: another file, or none',
      /holds no certificates in PEM form/,
      { TIDEMARK_API_CA_FILE: 'key' },
      { TIDEMARK_API_CA_FILE: 'ca' },
    ],
    [
      'a cron step out of range: in range',
      /expected 1 to 59/,
      { TIDEMARK_SYNC_TELEMETRY: '*/70 * * * *' },
      { TIDEMARK_SYNC_TELEMETRY: '*/30 * * * *' },
    ],
  ])('%s', (_name, advice, broken, followed) => {
    expect(reported(broken)).toMatch(advice);
    expect(reported(followed)).toBe('');
  });

  test.each<[string, RegExp, string, string]>([
    [
      'an old key: renamed',
      /sync\.settle.*is now sync\.grace_period; rename the key/,
      'sync: {settle: 3m}\n',
      'sync: {grace_period: 3m}\n',
    ],
    [
      'an empty path: removed',
      /give the path of a file, or remove the key/,
      'listen_password_file: ""\n',
      'log: {level: info}\n',
    ],
    [
      'an empty path: that of a file',
      /give the path of a file, or remove the key/,
      'listen_password_file: ""\n',
      'listen_password_file: key\n',
    ],
    [
      'an empty value: given',
      /is empty; give a value, or remove the key/,
      'log: {level: ""}\n',
      'log: {level: info}\n',
    ],
    [
      'an empty value: removed',
      /is empty; give a value, or remove the key/,
      'log: {level: ""}\n',
      'listen: 127.0.0.1:0\n',
    ],
    [
      'a reserved character: in quotes',
      /YAML reserves; put the value in quotes/,
      'sync: {include: @hub}\n',
      'sync: {include: "@hub"}\n',
    ],
    [
      'a line that is indented too far: as the one above',
      /indented further than line 2.*; give both lines the same indentation/,
      'log:\n  level: info\n   format: json\n',
      'log:\n  level: info\n  format: json\n',
    ],
    ['a tab: spaces', /a tab is used for indentation; use spaces/, 'log:\n\tlevel: info\n', 'log:\n  level: info\n'],
    [
      'a key with its section before a dot: a section',
      /write log\.level as a section: "log:" and on the next line, indented, "level:"/,
      'log.level: info\n',
      'log:\n  level: info\n',
    ],
    ['a key misspelt', /did you mean log\.level\?/, 'log: {levl: info}\n', 'log: {level: info}\n'],
    [
      'a database that is called influx: another name',
      /choose another one/,
      'destinations: {influx: {url: "http://127.0.0.1:8086", bucket: b}}\n',
      'destinations: {second: {url: "http://127.0.0.1:8086", bucket: b}}\n',
    ],
  ])('%s', (_name, advice, broken, followed) => {
    expect(reported({}, broken)).toMatch(advice);
    expect(reported({}, followed)).toBe('');
  });

  test('no database for --replay: influx.url, or destinations', () => {
    const replay = (environment: Environment, yaml = 'log: {level: info}\n'): string => {
      const readFile = (): string => yaml;
      const set = { TIDEMARK_API_URL: API.TIDEMARK_API_URL, TIDEMARK_API_KEY: API.TIDEMARK_API_KEY, ...environment };
      const { config } = loadConfig({ file: 'config/tidemark.yaml', environment: set, readFile, nowMs: NOW_MS });
      const names = configuredDatabases(config).map(({ name }) => name);
      return refusal(() => requireDestination(names, null));
    };
    expect(replay({})).toMatch(/set influx\.url or destinations/);
    expect(replay(INFLUX)).toBe('');
    expect(replay({}, 'destinations: {second: {url: "http://127.0.0.1:8086", bucket: b}}\n')).toBe('');
  });

  test('a proxy that is not a URL: as http://host:port, or unset', () => {
    const opened = (...proxies: string[]): string =>
      refusal(() =>
        openAgent('http://127.0.0.1:8086', { ca: undefined, proxies: { HTTP_PROXY: proxies[0] } }).destroy(),
      );
    expect(opened('http://[')).toMatch(/Set it as http:\/\/host:port, or unset it/);
    expect(opened('http://127.0.0.1:3128')).toBe('');
    expect(opened()).toBe('');
  });

  test.each<[string, RegExp, (place: string) => void, (place: string) => void]>([
    [
      'is missing: created',
      /does not exist: .*; create it, or correct the path/,
      () => {},
      (file) => writeFileSync(file, KEY),
    ],
    [
      'is a directory: the path of a file',
      /this is a directory: .*; give the path of a file/,
      (file) => mkdirSync(file),
      (file) => {
        renameSync(file, `${file}.d`);
        writeFileSync(file, KEY);
      },
    ],
    [
      'may not be read: its mode changed',
      /may not read the file: .*; let this user read it and enter its directory: change owner, group or mode/,
      (file) => writeFileSync(file, KEY, { mode: 0o600 }),
      (file) => chmodSync(file, 0o604),
    ],
    [
      'may not be read: the mode of its directory changed',
      /may not read the file: .*; let this user read it and enter its directory: change owner, group or mode/,
      (file) => {
        writeFileSync(file, KEY, { mode: 0o604 });
        chmodSync(dirname(file), 0o700);
      },
      (file) => chmodSync(dirname(file), 0o701),
    ],
    [
      'is a link to itself: the link corrected',
      /a link in the path leads back to itself: .*; correct the link, or give another path/,
      (file) => symlinkSync(file, file),
      (file) => {
        rmSync(file);
        writeFileSync(`${file}.text`, KEY, { mode: 0o604 });
        symlinkSync(`${file}.text`, file);
      },
    ],
  ])('the file of a secret %s', (_name, advice, broken, follow) => {
    using place = scratch();
    const file = join(place.path, 'key');
    /** As a user that owns neither the file nor its directory. */
    const readFile = (path: string): string => {
      const text = readFileSync(path, 'utf8');
      const isOpen = (statSync(path).mode & 0o004) !== 0 && (statSync(dirname(path)).mode & 0o001) !== 0;
      if (path === file && !isOpen) throw Object.assign(new Error('EACCES'), { code: 'EACCES' });
      return text;
    };
    const environment = { TIDEMARK_API_URL: API.TIDEMARK_API_URL, TIDEMARK_API_KEY_FILE: file };
    const read = (): string => refusal(() => loadConfig({ file: null, environment, readFile, nowMs: NOW_MS }));
    chmodSync(place.path, 0o701);
    broken(file);
    expect(read()).toMatch(advice);
    follow(file);
    expect(read()).toBe('');
  });

  test('no file by that name: made, or another one named', () => {
    expect(reported({}, undefined, 'config/tidemark.yaml')).toMatch(/create it, or name another with --config/);
    expect(reported({}, 'log: {level: info}\n', 'config/tidemark.yaml')).toBe('');
    expect(reported({}, undefined, 'other')).toBe('');
  });
});

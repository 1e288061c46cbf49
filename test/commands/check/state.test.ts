/**
 * `--check`, configuration and state: each result, good and bad, with the command that repairs it.
 */
import { execFileSync, execSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { APPLICATION_ID, MIGRATIONS } from '../../../src/store/open/migrations.ts';
import { openStore } from '../../../src/store/store.ts';
import { start } from '../../process/support.ts';
import { bad, type CheckStage, KEY, line, openStage, TOKEN } from './support.ts';

/** The API is out of the way: nothing but this machine is looked at. */
const ALONE = { TIDEMARK_API_URL: 'http://127.0.0.1:1/external/v1' };

/** A state with points in it, closed. */
function fill({ dataDir }: CheckStage): string {
  const { store, close } = openStore(dataDir);
  store.pinWorkspace({ apiId: 'ws-simulated', tag: 'ws-simulated' });
  store.useDestination('influx', 'x');
  for (let n = 0; n < 200; n += 1) {
    store.append(
      Array.from({ length: 100 }, (_, k) => `m,device_id=d${k} value=${n * k} ${n}`),
      'live',
    );
  }
  close();
  return join(dataDir, 'tidemark.db');
}

function change(file: string, sql: string): void {
  const db = new Database(file);
  db.exec(sql);
  db.close();
}

/** The content of every file of a directory. */
function bytesOf(directory: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(directory).map((name) => [name, readFileSync(join(directory, name)).toString('base64')]),
  );
}

describe('configuration', () => {
  test('every mistake is a line, and 78 takes precedence; state and databases are still checked', async () => {
    await using stage = await openStage();
    const report = await stage.report({
      TIDEMARK_API_URL: 'nowhere',
      TIDEMARK_API_KEY: undefined,
      TIDEMARK_API_KEY_FILE: '/no/such/file',
    });
    expect(bad(report)).toEqual(['fail api.key_file', 'fail api.url']);
    expect(report.exit_code).toBe(78);
    expect(line(report, 'api.url')).toMatchObject({
      exit_code: 78,
      message: expect.stringMatching(/TIDEMARK_API_URL/),
    });
    expect(line(report, 'directory').area).toBe('state');
  });

  test('mistakes in the basic keys: no other check runs', async () => {
    await using stage = await openStage();
    const { code, stdout } = await stage.run([], { env: { TIDEMARK_ARCHIVE_RETENTION: 'ever' } });
    expect(code).toBe(78);
    expect(stdout).toMatch(/^Configuration\n {2}FAIL {2}archive\.retention /);
    expect(stdout).toMatch(/\n {2}- {5}other checks {8}not run \(state, API, databases, status page\):\s+correct the/);
    expect(stdout).not.toContain('State');
    expect(existsSync(stage.dataDir)).toBe(false);
  });

  test.each([
    ['', /is empty/],
    [`${KEY}\nmore\n`, /line breaks/],
    [` ${KEY}`, /has a space in it/],
    [`Bearer ${KEY}\n`, /has a space in it/],
  ])('a key file that holds no key alone: %j', async (text, words) => {
    await using stage = await openStage();
    const file = join(stage.directory, 'key');
    writeFileSync(file, text);
    const report = await stage.report({ TIDEMARK_API_KEY: undefined, TIDEMARK_API_KEY_FILE: file });
    expect(line(report, 'api.key_file')).toMatchObject({ exit_code: 78, message: expect.stringMatching(words) });
    expect(report.exit_code).toBe(78);
  });

  test('secrets that every user can read, and addresses that are overheard', async () => {
    await using stage = await openStage();
    chmodSync(stage.directory, 0o755);
    const file = join(stage.directory, 'a key');
    writeFileSync(file, KEY);
    chmodSync(file, 0o644);
    const config = join(stage.directory, 'config.yaml');
    writeFileSync(config, `influx: {url: "http://192.0.2.1:1", bucket: b, token: "${TOKEN}", timeout: 1s}\n`);
    chmodSync(config, 0o644);
    const env = { ...ALONE, TIDEMARK_API_KEY: undefined, TIDEMARK_API_KEY_FILE: file };
    const report = await stage.report(env, ['--config', config]);
    expect(bad(report, 'configuration')).toEqual(['warn api.key_file', 'warn influx.token', 'warn influx.url']);
    expect(line(report, 'api.key_file').remedy).toBe(`chmod o-rwx '${file}'`);
    expect(line(report, 'influx.token').remedy).toBe(`chmod o-rwx ${config}`);
    expect(line(report, 'influx.url').message).toMatch(/anybody who sees the traffic can read influx\.token/);
    // A container reads them so: in a directory that nobody else can enter.
    chmodSync(stage.directory, 0o700);
    expect(bad(await stage.report(env, ['--config', config]), 'configuration')).toEqual(['warn influx.url']);
    chmodSync(stage.directory, 0o755);
    for (const name of ['api.key_file', 'influx.token'])
      execFileSync('/bin/sh', ['-c', line(report, name).remedy ?? 'false']);
    const closed = await stage.report(env, ['--config', config]);
    expect(bad(closed, 'configuration')).toEqual(['warn influx.url']);
    expect(line(closed, 'influx.url').remedy).toMatch(/^Set influx\.url to an https:\/\/ address/);
    writeFileSync(config, readFileSync(config, 'utf8').replace('http:', 'https:'));
    expect(bad(await stage.report(env, ['--config', config]), 'configuration')).toEqual([]);
  });
});

const NO_FILES = /: nobody can create files in this file system$/;

describe('the place of the state', () => {
  test('none yet: none is created unless a request is sent', async () => {
    await using stage = await openStage();
    const report = await stage.report(ALONE);
    expect(bad(report, 'state')).toEqual([]);
    expect(line(report, 'directory').message).toBe(
      `${stage.dataDir}: does not exist yet; it will be created in ${stage.directory}`,
    );
    expect(existsSync(stage.dataDir)).toBe(false);
  });

  test('permissions: the exact command, and with it all is well', async () => {
    await using stage = await openStage();
    const file = fill(stage);
    chmodSync(stage.dataDir, 0o755);
    chmodSync(file, 0o640);
    const report = await stage.report(ALONE);
    expect(bad(report, 'state')).toEqual(['warn permissions']);
    const { message, remedy } = line(report, 'permissions');
    expect(message).toContain(`${stage.dataDir} (0755), ${file} (0640)`);
    execFileSync('/bin/sh', ['-c', remedy ?? '']);
    expect([statSync(stage.dataDir).mode & 0o777, statSync(file).mode & 0o777]).toEqual([0o700, 0o600]);
    expect(bad(await stage.report(ALONE), 'state')).toEqual([]);
  });

  test.each(['directory', 'link to nowhere', 'below a file'])('no directory: %s', async (what) => {
    await using stage = await openStage();
    const { dataDir } = stage;
    if (what === 'link to nowhere') symlinkSync(join(stage.directory, 'nowhere', 'deep'), dataDir);
    else writeFileSync(dataDir, 'a file');
    const env = what === 'below a file' ? { TIDEMARK_DATA_DIR: join(dataDir, 'deep') } : {};
    const report = await stage.report(env);
    expect(report.exit_code).toBe(1);
    expect(bad(report, 'state').some((each) => each.startsWith('fail '))).toBe(true);
    expect([report.requests, stage.simulator.log.total], 'nothing is asked that cannot be booked').toEqual([0, 0]);
  });

  test.runIf(existsSync('/proc/self'))('where Linux shows itself as files: another directory', async () => {
    await using stage = await openStage();
    const report = await stage.report({ ...ALONE, TIDEMARK_DATA_DIR: '/proc/tidemark' });
    expect(bad(report, 'state')).toEqual(['fail directory']);
    expect(line(report, 'directory').remedy).toBe('Set data_dir to another directory.');
  });

  test('a directory in the place of the file: another one, or moved away', async () => {
    await using stage = await openStage();
    mkdirSync(join(stage.dataDir, 'tidemark.db'), { recursive: true });
    chmodSync(stage.dataDir, 0o700);
    const report = await stage.report(ALONE);
    expect(bad(report, 'state')).toEqual(['fail file']);
    expect(line(report, 'file').remedy).toBe('Set data_dir to another directory, or move it away.');
  });

  test.each([
    ['a file system without directories', () => '/proc/x', NO_FILES],
    ['such a file system itself', () => '/proc', NO_FILES],
    [
      'below a link to nowhere',
      (place: string) => {
        symlinkSync(join(place, 'nowhere'), join(place, 'link'));
        return join(place, 'link', 'x');
      },
      /link\/x: this path, or a part of it, is not a directory|this is a link to/,
    ],
    [
      'below a link in a circle',
      (place: string) => {
        symlinkSync(join(place, 'circle'), join(place, 'circle'));
        return join(place, 'circle', 'x');
      },
      /circle/,
    ],
    [
      'a name too long for the file system',
      (place: string) => join(place, 'new', 'x'.repeat(256)),
      /cannot be created or written to \(ENAMETOOLONG\)$/,
    ],
  ])('none can be made: %s', async (_what, placed, words) => {
    await using stage = await openStage();
    const env = { ...ALONE, TIDEMARK_DATA_DIR: placed(stage.directory) };
    const before = readdirSync(stage.directory);
    const report = await stage.report(env);
    expect(bad(report, 'state').filter((each) => each !== 'warn permissions')).toEqual(['fail directory']);
    expect(line(report, 'file').status).toBe('skip');
    expect(line(report, 'directory').message).toMatch(words);
    expect([report.exit_code, report.requests]).toEqual([1, 0]);
    expect(readdirSync(stage.directory)).toEqual(before);
    expect(() => openStore(env.TIDEMARK_DATA_DIR).close()).toThrow();
  });

  test.each([
    ['directory', ''],
    ['file', 'tidemark.db'],
    ['in use', 'tidemark.lock'],
  ])('a link to nowhere fails once, in the words of the daemon: %s', async (name, file) => {
    await using stage = await openStage();
    if (file !== '') mkdirSync(stage.dataDir, { mode: 0o700 });
    symlinkSync(join(stage.directory, 'nowhere'), join(stage.dataDir, file));
    const report = await stage.report(ALONE);
    expect(bad(report, 'state')).toEqual([`fail ${name}`]);
    const { message, remedy } = line(report, name);
    expect(() => openStore(stage.dataDir)).toThrow(`${message}. ${remedy}`);
    expect(message).toMatch(/this is a link to .*nowhere, which does not exist$/);
    expect([report.requests, existsSync(join(stage.directory, 'nowhere'))]).toEqual([0, false]);
  });

  test.runIf(process.getuid?.() === 0)(
    'a volume that is open to a group: only where somebody else may be in it',
    async () => {
      await using stage = await openStage();
      fill(stage);
      chmodSync(stage.dataDir, 0o770);
      // As the container's volume is, and as Kubernetes makes one.
      expect(bad(await stage.report(ALONE), 'state')).toEqual([]);
      chownSync(stage.dataDir, 0, 100);
      expect(bad(await stage.report(ALONE), 'state')).toEqual(['warn permissions']);
    },
  );

  test.runIf(process.getuid?.() === 0)('a volume of another user: its owner, and the remedy', async () => {
    await using stage = await openStage();
    fill(stage);
    chmodSync(stage.directory, 0o755);
    chmodSync(stage.dataDir, 0o755);
    const { code, stdout, stderr } = await asNobody(stage);
    expect(code, stderr).toBe(1);
    const report = JSON.parse(stdout);
    expect(line(report, 'directory')).toMatchObject({
      status: 'fail',
      message: `this user (65534) may not write to ${stage.dataDir}, which belongs to user 0`,
      remedy: 'Run Tidemark as user 0, or set data_dir to another directory.',
    });
    expect(stage.simulator.log.total).toBe(0);
    expect(readdirSync(stage.dataDir).map((name) => statSync(join(stage.dataDir, name)).uid)).not.toContain(65_534);
    const byOwner = await stage.report();
    expect(line(byOwner, 'directory').status, 'as user 0').toBe('ok');
    const elsewhere = await stage.report({ TIDEMARK_DATA_DIR: join(stage.directory, 'another') });
    expect(line(elsewhere, 'directory').status).toBe('ok');
    chmodSync(stage.dataDir, 0o700);
    const hidden = await asNobody(stage);
    expect([hidden.code, hidden.stderr]).toEqual([1, '']);
    expect(line(JSON.parse(hidden.stdout), 'file').message).toContain('this user cannot read the state');
  });

  test.runIf(process.getuid?.() === 0)('a new volume of another user: the command that repairs it', async () => {
    await using stage = await openStage();
    chmodSync(stage.directory, 0o755);
    mkdirSync(stage.dataDir, { mode: 0o755 });
    const { stdout } = await asNobody(stage);
    const { remedy } = line(JSON.parse(stdout), 'directory');
    expect(remedy).toBe(`As root: chown 65534 ${stage.dataDir}`);
    execSync(remedy?.replace('As root: ', '') ?? '');
    const mended = await asNobody(stage);
    const open = line(JSON.parse(mended.stdout), 'permissions');
    expect([mended.code, open.remedy], mended.stderr).toEqual([0, `chmod 700 ${stage.dataDir}`]);
    execSync(open.remedy ?? '');
    expect(bad(JSON.parse((await asNobody(stage)).stdout))).toEqual([]);
  });
});

/** The program as another user. */
async function asNobody(stage: CheckStage): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const env = {
    TIDEMARK_LISTEN: '127.0.0.1:0',
    TIDEMARK_API_URL: stage.url,
    TIDEMARK_API_KEY: KEY,
    TIDEMARK_DATA_DIR: stage.dataDir,
  };
  return await start(['--check', '--json'], { env, cwd: '/', uid: 65_534 }).ended;
}

describe('the file of the state', () => {
  test('a valid one: the check changes nothing', async () => {
    await using stage = await openStage();
    fill(stage);
    const before = bytesOf(stage.dataDir);
    const report = await stage.report(ALONE);
    expect(bad(report, 'state')).toEqual([]);
    expect(line(report, 'file').facts).toMatchObject({ state_version: MIGRATIONS.length });
    expect(bytesOf(stage.dataDir)).toEqual(before);
  });

  test('damaged: after moving the files away as advised, a new state begins', async () => {
    await using stage = await openStage();
    const file = fill(stage);
    change(file, 'UPDATE log_sum SET lines = lines + 1');
    const { status, remedy = '' } = line(await stage.report(ALONE), 'integrity');
    expect(status).toBe('fail');
    const files = new Set(String(remedy).match(/tidemark\.[a-z]+(?:-[a-z]+)?/g));
    const away = join(stage.directory, 'away');
    mkdirSync(away);
    for (const name of readdirSync(stage.dataDir).filter((each) => files.has(each)))
      renameSync(join(stage.dataDir, name), join(away, name));
    openStore(stage.dataDir).close();
    expect(bad(await stage.report(ALONE), 'state')).toEqual([]);
  });

  test('damaged: that is reported, and nothing is booked in it', async () => {
    await using stage = await openStage();
    const file = fill(stage);
    const bytes = readFileSync(file);
    bytes.fill(0x5a, 8192, bytes.length - 4096);
    writeFileSync(file, bytes);
    const report = await stage.report();
    expect(report.exit_code).toBe(1);
    const reported = report.checks.filter(({ area, status }) => area === 'state' && status === 'fail');
    expect(reported).toMatchObject([
      { message: expect.stringMatching(/damaged/), remedy: expect.stringMatching(/[Rr]estore a backup/) },
    ]);
    expect([report.requests, stage.simulator.log.total]).toEqual([0, 0]);
    expect(line(report, 'devices:read').message).toMatch(/each request must first be recorded in the state/);
  });

  test.each([
    ['no database', (file: string) => writeFileSync(file, 'x'.repeat(5000)), /damaged/],
    [
      'of another program',
      (file: string) => {
        rmSync(file);
        change(file, 'CREATE TABLE other (a)');
        chmodSync(file, 0o600);
      },
      /another program/,
    ],
    ['of a newer version', (file: string) => change(file, 'PRAGMA user_version = 99'), /newer Tidemark/],
  ])('%s', async (_what, spoil, words) => {
    await using stage = await openStage();
    const file = fill(stage);
    spoil(file);
    const report = await stage.report(ALONE);
    expect(bad(report, 'state')).toEqual(['fail file']);
    expect(line(report, 'file').message).toMatch(words);
    expect(line(report, 'file').remedy).toMatch(/^(Stop|Restore|Set|Use|Run|Give)/);
  });

  test('of version 1: the effect of the next start, which alone upgrades it', async () => {
    await using stage = await openStage();
    mkdirSync(stage.dataDir, { mode: 0o700 });
    const file = join(stage.dataDir, 'tidemark.db');
    change(file, `PRAGMA application_id = ${APPLICATION_ID}; ${MIGRATIONS[0]} PRAGMA user_version = 1;`);
    chmodSync(file, 0o600);
    const report = await stage.report();
    expect(bad(report, 'state')).toEqual([]);
    expect(line(report, 'file').message).toMatch(
      new RegExp(`^state version 1, .*; the next start of the daemon upgrades it to version ${MIGRATIONS.length}$`),
    );
    expect(line(report, 'devices:read')).toMatchObject({
      status: 'skip',
      message: expect.stringContaining('a check does not upgrade a state of an older version'),
    });
    expect([report.requests, report.exit_code, readdirSync(stage.dataDir)]).toEqual([0, 0, ['tidemark.db']]);
    openStore(stage.dataDir).close();
    const after = await stage.report();
    expect(line(after, 'file').message).toMatch(new RegExp(`^state version ${MIGRATIONS.length}, [^;]*$`));
    expect(line(after, 'devices:read').status).toBe('ok');
  });

  test.each([
    ["INSERT INTO coverage (device_id, from_ns, to_ns) VALUES ('d', 1, 10), ('d', 9, 20)", /covered ranges overlap/],
    [
      "UPDATE position SET block = 999; INSERT OR IGNORE INTO position VALUES (1, 'live', 999, 0)",
      /beyond the end of the archive/,
    ],
    ["DELETE FROM fact WHERE key = 'workspace_tag'", /there are points but no workspace/],
    [
      'UPDATE log_sum SET lines = lines - 1',
      /the recorded numbers of blocks and points differ from the blocks in the archive/,
    ],
    ['UPDATE day_total SET readings = readings + 1', /the total number of readings differs/],
    [
      "UPDATE block SET data = x'00112233' WHERE seq = (SELECT max(seq) FROM block)",
      /the newest block cannot be decompressed/,
    ],
    ["PRAGMA foreign_keys = OFF; INSERT INTO position VALUES (77, 'live', 1, 0)", /rows refer to missing rows/],
  ])('a damaged state is reported: %s', async (sql, words) => {
    await using stage = await openStage();
    const file = fill(stage);
    change(file, sql);
    const report = await stage.report();
    expect(bad(report, 'state')).toEqual(['fail integrity']);
    expect(line(report, 'integrity').message).toMatch(words);
    expect([report.exit_code, report.requests]).toEqual([1, 0]);
  });

  test('another tag than the one that is pinned: 78', async () => {
    await using stage = await openStage();
    fill(stage);
    const report = await stage.report({ ...ALONE, TIDEMARK_WORKSPACE_ID: 'mine' });
    expect(bad(report, 'state')).toEqual(['fail workspace.id']);
    expect(report.exit_code).toBe(78);
    expect(line(report, 'workspace.id').remedy).toMatch(
      /^Set workspace\.id back to the old value, or set data_dir to a new directory/,
    );
    expect(bad(await stage.report({ ...ALONE, TIDEMARK_WORKSPACE_ID: 'ws-simulated' }), 'state')).toEqual([]);
    const elsewhere = { TIDEMARK_WORKSPACE_ID: 'mine', TIDEMARK_DATA_DIR: join(stage.directory, 'new') };
    expect(bad(await stage.report({ ...ALONE, ...elsewhere }), 'state')).toEqual([]);
  });

  test('used by another process that accepts no jobs: no request is sent, and no check fails for it', async () => {
    await using stage = await openStage();
    fill(stage);
    const { close } = openStore(stage.dataDir);
    try {
      const report = await stage.report();
      expect(line(report, 'in use').facts).toEqual({ locked: true });
      expect(bad(report).filter((each) => !each.startsWith('skip '))).toEqual([]);
      expect(line(report, 'requests')).toMatchObject({
        status: 'skip',
        message: expect.stringMatching(/^not sent: another process .* Run --check again when it has ended$/),
      });
      expect([report.exit_code, report.requests, stage.simulator.log.total]).toEqual([0, 0, 0]);
    } finally {
      close();
    }
    expect((await stage.report()).requests).toBe(5);
  });
});

describe('room', () => {
  test('a disk that is nearly full, really', async () => {
    const disk = mkdtempSync(join(tmpdir(), 'tidemark-check-disk-'));
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=20m,mode=700', 'tmpfs', disk], { stdio: 'ignore' });
    } catch {
      rmSync(disk, { recursive: true });
      process.stderr.write('no disk can be mounted here: that one is full is not tried\n');
      expect(existsSync(disk)).toBe(false);
      return;
    }
    try {
      await using stage = await openStage();
      const report = await stage.report({ TIDEMARK_DATA_DIR: disk });
      expect(bad(report)).toEqual(['fail disk']);
      expect(line(report, 'disk').message).toMatch(/only \d+(\.\d)? MiB of its disk are free: polling stops/);
      expect(line(report, 'disk').remedy).toMatch(
        /^Polling resumes when \d.* are free: delete or move other files there\.$/,
      );
      expect([report.exit_code, report.requests]).toEqual([1, 5]);
      expect(() => writeFileSync(join(disk, 'ballast'), Buffer.alloc(30 * 1024 * 1024))).toThrow(/ENOSPC/);
      const full = await stage.report({ TIDEMARK_DATA_DIR: disk });
      expect(full.exit_code).toBe(1);
      expect(bad(full)).toContain('fail disk');
      rmSync(join(disk, 'ballast'));
      execFileSync('mount', ['-o', 'remount,size=3g', disk]);
      expect(bad(await stage.report({ TIDEMARK_DATA_DIR: disk, TIDEMARK_ARCHIVE_MAX_SIZE: '1GiB' }))).toEqual([]);
    } finally {
      execFileSync('umount', [disk]);
      rmSync(disk, { recursive: true });
    }
  });

  test('an archive that has outgrown archive.max_size, one that is near it, and one that may outgrow the disk', async () => {
    await using stage = await openStage();
    const { store, maintenance, close } = openStore(stage.dataDir);
    store.pinWorkspace({ apiId: 'ws-simulated', tag: 'ws-simulated' });
    const fillTo = (mib: number): void => {
      while (maintenance.size().usedBytes < mib * 1024 * 1024) {
        store.append([`m text="${randomBytes(100_000).toString('base64')}" 1`], 'live');
      }
    };
    fillTo(62);
    const env = { ...ALONE, TIDEMARK_ARCHIVE_MAX_SIZE: '64MiB' };
    const near = await stage.report(env);
    expect(bad(near, 'state')).toEqual(['warn size']);
    fillTo(66);
    close();
    const full = await stage.report(env);
    expect(bad(full, 'state')).toEqual(['fail size']);
    expect(line(full, 'size').message).toMatch(/^the archive is full: \d\d(\.\d)? MiB of archive\.max_size 64 MiB$/);
    expect(line(full, 'size').remedy).toMatch(/^Raise archive\.max_size/);
    const beyond = await stage.report({ ...env, TIDEMARK_ARCHIVE_MAX_SIZE: '4096GiB' });
    expect(bad(beyond, 'state')).toEqual(['warn disk']);
    expect(line(beyond, 'disk').remedy).toBe(
      'Lower archive.max_size, or stop Tidemark and move data_dir to a larger disk.',
    );
    expect(bad(await stage.report({ ...env, TIDEMARK_ARCHIVE_MAX_SIZE: '2GiB' }), 'state')).toEqual([]);
  });
});

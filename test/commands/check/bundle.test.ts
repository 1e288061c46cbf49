/**
 * `--check --bundle FILE`: it contains the facts for a support question and nothing private, whatever is broken.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, relative } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { createPseudonyms, withoutPeople, withoutQuotes } from '../../../src/commands/check/bundle.ts';
import { MIGRATIONS } from '../../../src/store/open/migrations.ts';
import { writeBundle } from '../../../src/store/open/new-file.ts';
import { type CheckRun, type CheckStage, KEY, openStage, runHere, TOKEN } from './support.ts';

const NAMED = [
  { deviceId: 'greenhouse-7@nordlicht.example', intervalMs: 30_000 },
  { deviceId: 'cold.store (north)', intervalMs: 60_000 },
] as const;

// biome-ignore lint/suspicious/noExplicitAny: what is looked into here is what a reader sees: plain JSON.
type Bundle = any;

interface Written {
  readonly run: CheckRun;
  readonly text: string;
  readonly bundle: Bundle;
}

async function bundleOf(
  stage: CheckStage,
  env: Record<string, string | undefined> = {},
  args: string[] = [],
): Promise<Written> {
  const file = join(stage.directory, `bundle-${readdirSync(stage.directory).length}.json`);
  const run = await stage.run([...args, '--bundle', file], { env });
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return { run, text, bundle: text === '' ? null : JSON.parse(text) };
}

/** Fills the state as a one-off does. */
async function fill(stage: CheckStage): Promise<void> {
  const env = {
    TIDEMARK_API_URL: stage.url,
    TIDEMARK_API_KEY: KEY,
    TIDEMARK_DATA_DIR: stage.dataDir,
    TIDEMARK_API_SHARE: '1',
    TIDEMARK_SYNC_HISTORY: '2h',
  };
  const { code, stderr } = await runHere(['--once', '--json'], { env });
  expect(code, stderr).toBe(0);
}

/** Everything that a bundle may not contain. */
function expectDiscreet(text: string): void {
  for (const word of [
    'CANARY',
    'nordlicht',
    'greenhouse',
    'cold.store',
    'Nordlicht Foods',
    'ws-secret',
    'latitude',
    '[object',
  ])
    expect(text.toLowerCase(), word).not.toContain(word.toLowerCase());
}

describe('a bundle', () => {
  test('goes with the lines that --log-level debug adds: each request and its answer', async () => {
    await using stage = await openStage({ devices: NAMED, workspaceId: 'ws-secret-4' });
    const env = { ...stage.env, TIDEMARK_SYNC_HISTORY: '2h' };
    const log = async (...args: string[]): Promise<string> =>
      (await runHere(['--once', '--json', ...args], { env })).stderr;
    expect(await log()).not.toContain('Request finished');
    const lines = await log('--log-level', 'debug');
    expect(lines).toMatch(/Request finished/);
    const { run, bundle } = await bundleOf(stage);
    expect([run.code, bundle.state.requests.length > 5]).toEqual([0, true]);
  });

  test('contains versions, configuration, lines, status, sizes and the last requests, and no names', async () => {
    await using stage = await openStage({ devices: NAMED, workspaceId: 'ws-secret-4' });
    await fill(stage);
    const db = new Database(join(stage.dataDir, 'tidemark.db'));
    db.prepare(
      "INSERT INTO quarantine (destination_id, source, content, reason, at_ms) VALUES (NULL, 'telemetry', '{}', ?, 1)",
    ).run(
      `unable to parse 'telemetry,device_name=Cold\\ one value="CANARY"': for ${NAMED[1].deviceId}, ask me@person.example`,
    );
    db.close();
    const { run, text, bundle } = await bundleOf(stage, { TIDEMARK_SYNC_EXCLUDE: 'my-patterned-*' });
    expect(run.code, run.stdout).toBe(0);
    expect(run.stderr).toContain('"event":"bundle-written"');
    expect(run.stderr).toContain('check it for private data before you send it');
    expect(bundle.about).toMatch(
      /Read it before you send it: it contains addresses of servers, names of buckets and paths/i,
    );
    expectDiscreet(text);
    expect(text).not.toContain('my-patterned');
    expect(text).not.toContain('person.example');
    expect(bundle.versions).toMatchObject({ tidemark: expect.any(String), os: expect.any(String) });
    expect(bundle.configuration.values).toMatchObject({
      'api.key': '(set, not shown)   (environment)',
      'api.url': expect.stringContaining('/external/v1   (environment)'),
      'archive.retention': '30d   (default)',
      'sync.exclude': expect.stringMatching(/^\(patterns: 1; not shown/),
    });
    expect(bundle.check).toMatchObject({ ok: true, exit_code: 0 });
    expect(bundle.check.checks.length).toBeGreaterThan(15);
    expect(bundle.status).toMatchObject({ workspace_id: 'workspace', totals: { devices: 2 } });
    expect(bundle.status).not.toHaveProperty('devices');
    expect(bundle.status.devices_worst.map(({ device }: Bundle) => device).sort()).toEqual(['d1', 'd2']);
    expect(bundle.state.requests.length).toBeGreaterThan(5);
    expect(bundle.state.requests).toContainEqual(
      expect.objectContaining({ stream: 'telemetry', device: 'd1', status: 200 }),
    );
    expect(bundle.state.tables).toContainEqual({ table: 'device', rows: 2, bytes: expect.any(Number) });
    expect(bundle.state.shape).toMatchObject({
      user_version: MIGRATIONS.length,
      sqlite: expect.stringMatching(/^3\./),
    });
    expect(bundle.state.quarantine).toMatchObject([
      { reason: "unable to parse '…': for d1, ask [e-mail]", records: 1 },
    ]);
    expect(bundle.state.files.map(({ file }: Bundle) => file)).toContain('tidemark.db');
  });

  test('is readable by its owner only, and never replaces another file', async () => {
    await using stage = await openStage();
    const file = join(stage.directory, 'bundle.json');
    const first = await stage.run(['--bundle', file]);
    expect(first.code).toBe(0);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const before = readFileSync(file, 'utf8');
    const total = stage.simulator.log.total;
    const again = await stage.run(['--bundle', file]);
    expect([again.code, again.stdout]).toEqual([1, '']);
    expect(again.stderr).toMatch(/bundle\.json already exists and is not overwritten\. Choose another name/);
    expect(stage.simulator.log.total, 'nothing was asked for it').toBe(total);
    expect(readFileSync(file, 'utf8')).toBe(before);
    for (const [place, words] of [
      [stage.directory, /is a directory/],
      [join(stage.directory, 'none', 'b.json'), /there is no directory/],
    ] as const) {
      const { code, stderr } = await stage.run(['--bundle', place]);
      expect([code, stderr]).toEqual([1, expect.stringMatching(words)]);
    }
    expect(readdirSync(stage.directory).filter((name) => name.includes('.part'))).toEqual([]);
  });

  test('leaves a file alone that has come while it was made, and nothing of its own', async () => {
    await using stage = await openStage();
    const file = join(stage.directory, 'bundle.json');
    writeFileSync(file, 'mine');
    const parts = { random: () => 0.5, dataDir: '/data' };
    expect(() => writeBundle(file, 'new', parts)).toThrow(/already exists and is not overwritten/);
    const place = join(stage.directory, 'none', 'b');
    expect(() => writeBundle(relative('', place), 'new', parts)).toThrow(
      `--bundle: ${place} (a relative path starts in the working directory, ${process.cwd()}) could not be written (ENOENT). Choose a directory that this user may write to, such as /data/b.`,
    );
    expect(() => writeBundle(place, 'new', { ...parts, dataDir: null })).toThrow(/may write to\.$/);
    expect([readFileSync(file, 'utf8'), readdirSync(stage.directory)]).toEqual(['mine', ['bundle.json']]);
    writeBundle(join(stage.directory, 'another.json'), 'new', parts);
    expect(readFileSync(join(stage.directory, 'another.json'), 'utf8')).toBe('new');
  });

  test('includes the daemon’s messages without text that a database quoted, in any spelling', async () => {
    await using stage = await openStage({
      devices: [
        { deviceId: 'a', name: 'Greenhouse, north=left' },
        { deviceId: 'b', name: "Bob's greenhouse" },
      ],
    });
    await fill(stage);
    const words = (name: string): string =>
      `HTTP 400: unable to parse 'telemetry,device_id=a,sensor=CANARY,device_name=${name} value=1': invalid number`;
    const reported: Record<string, unknown> = {
      '/healthz': { healthy: true, reasons: [], codes: [] },
      '/readyz': { ready: false, reasons: [`destination influx: ${words("Bob's\\ greenhouse")}`], codes: [] },
      '/events.json': [
        {
          at: '',
          level: 'warn',
          event: 'delivery-blocked',
          message: `Delivery blocked: ${words('Greenhouse\\,\\ north\\=left')}`,
        },
      ],
    };
    const daemon = createServer(({ url }, response) => response.end(JSON.stringify(reported[url ?? ''] ?? null)));
    await new Promise<void>((resolve) => daemon.listen(0, '127.0.0.1', resolve));
    const { port } = daemon.address() as AddressInfo;
    const { bundle, text } = await bundleOf(stage, { TIDEMARK_LISTEN: `127.0.0.1:${port}` });
    daemon.close();
    expect(bundle.daemon.events[0].message).toBe("Delivery blocked: HTTP 400: unable to parse '…': invalid number");
    expect(bundle.daemon.ready.reasons[0]).toMatch(/^destination influx: HTTP 400: unable to parse /);
    expectDiscreet(text);
  });

  test('leaves the answer of --json and its exit code alone', async () => {
    await using stage = await openStage({ settings: { key: { revoked: true } } });
    const { run, bundle } = await bundleOf(stage, {}, ['--json']);
    expect(run.code).toBe(77);
    expect(JSON.parse(run.stdout)).toMatchObject({ exit_code: 77 });
    expect(bundle.check).toMatchObject({ exit_code: 77 });
    expectDiscreet(JSON.stringify(bundle));
  });

  test('is written where the configuration cannot be used, and names the reason', async () => {
    await using stage = await openStage();
    const { run, bundle, text } = await bundleOf(stage, {
      TIDEMARK_LISTEN: 'nowhere',
      TIDEMARK_ARCHIVE_RETENTION: KEY,
    });
    expect(run.code).toBe(78);
    expect(bundle.configuration.mistakes).toHaveLength(3);
    expect(bundle.configuration.values.listen).toBe('(set, but invalid: not shown)   (environment)');
    expect(bundle.status.unavailable).toMatch(/configuration is invalid/);
    expectDiscreet(text);
  });

  test.each([
    ['damaged', 'no database at all, nordlicht and greenhouse'.repeat(100)],
    ['empty', ''],
  ])('is written where the state is %s, and names the reason', async (_what, content) => {
    await using stage = await openStage();
    mkdirSync(stage.dataDir, { mode: 0o700 });
    writeFileSync(join(stage.dataDir, 'tidemark.db'), content, { mode: 0o600 });
    const { run, bundle, text } = await bundleOf(stage);
    expect([0, 1]).toContain(run.code);
    expect(bundle.check.checks.length).toBeGreaterThan(3);
    expect(bundle.state.files).toContainEqual(expect.objectContaining({ file: 'tidemark.db' }));
    expectDiscreet(text);
    if (content !== '') {
      expect(run.code).toBe(1);
      expect(bundle.status.unavailable).toMatch(/damaged|no state|another program/);
      expect(bundle.state.tables.unavailable).toMatch(/not a database/);
    }
  });

  test('is written of a state of the first version, as much as can be read', async () => {
    await using stage = await openStage({ devices: NAMED });
    await fill(stage);
    const db = new Database(join(stage.dataDir, 'tidemark.db'));
    db.exec('DROP TABLE job; PRAGMA user_version = 1');
    db.close();
    const { bundle, text } = await bundleOf(stage, { TIDEMARK_API_URL: 'http://127.0.0.1:9/external/v1' });
    expect(bundle.status.unavailable).toMatch(/older Tidemark/);
    expect(bundle.state.jobs.unavailable).toMatch(/no such table: job/);
    expect(bundle.state.requests.length).toBeGreaterThan(3);
    expectDiscreet(text);
  });
});

/** Every key with a text value, with a value that may be there by mistake. */
const PLACES = [
  'API_URL',
  'API_KEY',
  'API_KEY_FILE',
  'API_SHARE',
  'API_CA_FILE',
  'INFLUX_URL',
  'INFLUX_TOKEN',
  'INFLUX_TOKEN_FILE',
  'INFLUX_ORG',
  'INFLUX_BUCKET',
  'INFLUX_KIND',
  'INFLUX_CA_FILE',
  'WORKSPACE_ID',
  'DATA_DIR',
  'SYNC_HISTORY',
  'SYNC_GRACE_PERIOD',
  'SYNC_DEVICES',
  'SYNC_INCLUDE',
  'SYNC_EXCLUDE',
  'SYNC_EXCLUDE_SENSORS',
  'SYNC_LOCATION',
  'ARCHIVE_RETENTION',
  'ARCHIVE_MAX_SIZE',
  'LISTEN',
  'METRICS_PER_DEVICE',
  'LOG_LEVEL',
  'LOG_FORMAT',
];

describe('a secret', () => {
  test.each(PLACES)('that stands in %s is in no bundle', async (place) => {
    await using stage = await openStage();
    const base = {
      TIDEMARK_INFLUX_URL: 'http://127.0.0.1:9',
      TIDEMARK_INFLUX_BUCKET: 'b',
      TIDEMARK_INFLUX_TOKEN: TOKEN,
    };
    for (const secret of [KEY, TOKEN, 'http://CANARYuser:CANARYpass77@host.example/external/v1']) {
      const file = join(stage.directory, `b-${place}-${secret.length}.json`);
      // The check itself may show a path that it was given; the bundle may not.
      const env = {
        TIDEMARK_API_URL: 'http://127.0.0.1:9/external/v1',
        TIDEMARK_DATA_DIR: stage.dataDir,
        ...base,
        HTTPS_PROXY: 'http://CANARYuser:CANARYpass77@proxy.example:1',
        [`TIDEMARK_${place}`]: secret.startsWith('http') && place === 'DATA_DIR' ? join(stage.directory, 'x') : secret,
      };
      const ran = await runHere(['--check', '--bundle', file], { env });
      expect(existsSync(file), ran.stderr + ran.stdout).toBe(true);
      expect(readFileSync(file, 'utf8')).not.toContain('CANARY');
    }
  });

  test('of a file, of a section of its own, and of a file that holds it is in no bundle', async () => {
    await using stage = await openStage();
    writeFileSync(join(stage.directory, 'key'), `${KEY}\n`, { mode: 0o600 });
    const yaml = `api:\n  url: ${stage.url}\n  key_file: ${join(stage.directory, 'key')}\ndata_dir: ${stage.dataDir}
destinations:\n  second:\n    url: http://127.0.0.1:9\n    bucket: ${KEY}\n    token: "${TOKEN}"\n    org: ${TOKEN}\n`;
    const config = join(stage.directory, 'c.yaml');
    writeFileSync(config, yaml, { mode: 0o600 });
    const file = join(stage.directory, 'b.json');
    const { code, stdout } = await runHere(['--check', '--config', config, '--bundle', file], { env: {} });
    expect(code, stdout).toBe(78);
    const text = readFileSync(file, 'utf8');
    expect(text).not.toContain('CANARY');
    expect(JSON.parse(text).configuration.values).toMatchObject({
      'api.key_file': '(read from a file, not shown)   (file)',
      'destinations.second.url': 'http://127.0.0.1:9/   (file)',
      'destinations.second.token': '(set, not shown)   (file)',
      'destinations.second.org': expect.stringContaining('not shown'),
    });
  });
});

describe('pseudonyms', () => {
  test('are the same wherever a device stands, in any case of letters, the longest name first', () => {
    const names = createPseudonyms({
      devices: [
        { id: 'b', names: ['Cold Store'] },
        { id: 'a-1', names: ['Cold Store 2', 'Cold'] },
      ],
      workspace: ['ws-1'],
    });
    expect([names.device('a-1'), names.device('b'), names.device('other')]).toEqual(['d1', 'd2', 'd?']);
    expect(names.text('COLD STORE 2, cold store, Cold: a-1 of ws-1')).toBe('d1, d2, d1: d1 of workspace');
  });

  test('messages of servers lose their quotes and personal names', () => {
    expect(withoutQuotes(`field type conflict: input field "value" on 'telemetry,a=b c', x=My\\ one,y=2 "open`)).toBe(
      `field type conflict: input field "…" on '…', x=…,y=… "…"`,
    );
    expect(withoutPeople('http://me:pw@host/x of jo.doe+1@example.com')).toBe('http://[user]@host/x of [e-mail]');
  });
});

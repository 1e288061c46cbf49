/**
 * The search for secrets: the program is run in all ways that could bring one to light, and everything that it has
 * written is searched for the key and the token, in every form that they could take. Programs that do leak show that
 * the search finds what is there.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { textOfFrames } from '../support/frames.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { type Ended, KEY, openBench, openStage, ROOT, type Stage, start, TOKEN, until } from './support.ts';

const bench = sharedBench(openBench);

/** The forms in which a secret may be written, and the core of it that no encoding of text changes. */
function formsOf(secret: string): string[] {
  const bare = Buffer.from(secret);
  const base64 = [bare, Buffer.from(`Bearer ${secret}`), Buffer.from(`Token ${secret}`)].map((bytes) =>
    bytes.toString('base64').replace(/=+$/, ''),
  );
  return [
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret),
    encodeURI(secret),
    secret.replaceAll('&', '&amp;').replaceAll('/', '&#x2F;'),
    ...base64,
    bare.toString('base64url'),
    bare.toString('hex'),
    ...(/CANARY\w+/.exec(secret) ?? []),
  ];
}

const FORMS = [KEY, TOKEN].flatMap(formsOf);

/** Where a secret stands in what was written; empty where it stands nowhere. */
function leaksIn(written: Readonly<Record<string, Buffer | string>>): string[] {
  return Object.entries(written).flatMap(([where, content]) =>
    FORMS.filter((form) => content.includes(form)).map((form) => `${where}: ${form}`),
  );
}

/** Every file below a directory, and what the pages of a database hold once they are unpacked. */
function filesBelow(directory: string): Record<string, Buffer> {
  const found: Record<string, Buffer> = {};
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    const path = join(directory, name);
    if (!statSync(path).isFile()) continue;
    found[name] = readFileSync(path);
  }
  return found;
}

/** All cells of all tables, archived lines unpacked. */
function cellsOf(dataDir: string): string {
  const db = new Database(join(dataDir, 'tidemark.db'));
  try {
    const tables = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all();
    const rows = tables.flatMap((table) => db.prepare(`SELECT * FROM "${table}"`).raw().all() as unknown[][]);
    return rows
      .flat()
      .map((cell) => (Buffer.isBuffer(cell) ? textOfFrames(cell) : String(cell)))
      .join('\n');
  } finally {
    db.close();
  }
}

function everythingOf(stage: Stage, ended: Ended): Record<string, Buffer | string> {
  const files = filesBelow(stage.dataDir);
  const cells = Object.keys(files).length === 0 ? '' : cellsOf(stage.dataDir);
  return { stdout: ended.stdout, stderr: ended.stderr, ...files, cells };
}

const ARGS = ['--once', '--json', '--log-level', 'debug'];

/** Runs until it ends, or until its output is long enough and it is stopped. */
async function runUntil(stage: Stage, said: RegExp, env: Record<string, string> = {}): Promise<Ended> {
  const run = stage.start(ARGS, { env });
  await until(String(said), () => said.test(run.stderr()) || run.child.exitCode !== null);
  run.child.kill('SIGTERM');
  return await run.ended;
}

/** An API that answers every request with what it was sent, in many forms. */
async function echoingApi(status: number) {
  const server = createServer((request, response) => {
    const { authorization = '' } = request.headers;
    const secret = authorization.replace('Bearer ', '');
    const said = [authorization, encodeURIComponent(secret), Buffer.from(secret).toString('base64')].join(' | ');
    response.writeHead(status, { 'content-type': 'application/json', 'x-echo': secret, location: `/${secret}` });
    response.end(JSON.stringify({ error: { code: `code ${secret}`, message: said, required_scope: secret } }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}/external/v1`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The log line of a daemon once the API has refused a request, whatever it answered. */
const FAILED = /"event":"(?:request-retried|stream-failed|api-outage|quota-wait|key-refused)"/;

describe.runIf(influxdAvailable())('the key and the token appear nowhere', () => {
  test('when all is well, at the level debug', async () => {
    await using stage = await openStage({ bench });
    const ended = await stage.run(ARGS);
    expect(ended.code, ended.stderr).toBe(0);
    expect(ended.stderr).toContain('"level":"debug"');
    expect(leaksIn(everythingOf(stage, ended))).toEqual([]);
  });

  test('when the API rejects the key', async () => {
    await using stage = await openStage({ bench, settings: { key: { revoked: true } } });
    const ended = await stage.run(ARGS);
    expect(ended.code).toBe(77);
    expect(leaksIn(everythingOf(stage, ended))).toEqual([]);
  });

  test.each([400, 401, 403, 404, 429, 302, 500])(
    'when the API answers %i and repeats the header in every form',
    async (status) => {
      await using stage = await openStage({ bench });
      await using api = await echoingApi(status);
      const ended = await runUntil(stage, FAILED, { TIDEMARK_API_URL: api.url });
      expect(ended.stderr.length).toBeGreaterThan(50);
      expect(leaksIn(everythingOf(stage, ended))).toEqual([]);
    },
  );

  const REPEATING = {
    'refuses the token': { status: 401, body: `{"code":"unauthorized","message":"Token ${TOKEN} is not known"}` },
    'is overloaded and repeats the token': { status: 503, body: `<h1>${TOKEN}</h1> ${encodeURIComponent(TOKEN)}` },
    'answers with a login page that repeats it': { status: 200, body: `<title>Log in, ${TOKEN}</title>` },
    'finds lines at fault and repeats it': {
      status: 400,
      body: `{"code":"invalid","message":"unable to parse 'x': asked with ${TOKEN}"}`,
    },
  };
  test.each(Object.keys(REPEATING) as (keyof typeof REPEATING)[])('when the database %s', async (how) => {
    await using stage = await openStage({ bench });
    // At fault is one line alone, so that it goes to quarantine with the words.
    let bad: string | undefined;
    const isBad = (lines: readonly string[]): boolean => {
      if (how !== 'finds lines at fault and repeats it') return true;
      bad ??= lines.find((line) => line.startsWith('telemetry,'));
      return bad !== undefined && lines.includes(bad);
    };
    bench.proxy.setFaults(({ lines }) => (isBad(lines) ? { kind: 'answer', ...REPEATING[how] } : null));
    try {
      const reported =
        how === 'finds lines at fault and repeats it'
          ? /see tidemark --quarantine: HTTP 400/
          : /Delivery blocked: HTTP/;
      const ended = await runUntil(stage, reported);
      expect(ended.stderr).toMatch(reported);
      expect(leaksIn(everythingOf(stage, ended))).toEqual([]);
    } finally {
      bench.proxy.setFaults(null);
    }
  });

  test('when they are given as the value of another setting', async () => {
    await using stage = await openStage();
    writeFileSync(join(stage.directory, 'wrong.yaml'), `api:\n  key: ${KEY}\n   token ${TOKEN}: [\n`);
    writeFileSync(join(stage.directory, 'strange.yaml'), `api:\n  ${KEY}: ${TOKEN}\ninflux:\n  token: [${TOKEN}]\n`);
    const tries: readonly (readonly [string[], Record<string, string | undefined>])[] = [
      [[], { TIDEMARK_API_URL: KEY }],
      [[], { TIDEMARK_API_URL: `https://user:${KEY}@host/external/v1` }],
      // One with a slash could be a path as well.
      [[], { TIDEMARK_API_KEY: undefined, TIDEMARK_API_KEY_FILE: KEY.replaceAll('/', '_') }],
      [[], { TIDEMARK_API_KEY_FILE: '/run/key' }],
      [[], { TIDEMARK_SYNC_HISTORY: KEY, TIDEMARK_LISTEN: TOKEN, TIDEMARK_INFLUX_TOKEN: TOKEN }],
      [[], { TIDEMARK_API_KEY: `${KEY}\n\n` }],
      [['--config', 'wrong.yaml'], {}],
      [['--config', 'strange.yaml'], {}],
      [[KEY], {}],
      [[`--key=${KEY}`], {}],
      [['--key', KEY], {}],
      [['--log-level', KEY], {}],
    ];
    for (const [args, env] of tries) {
      const ended = await stage.run(['--once', ...args], { env });
      expect([2, 78], ended.stderr).toContain(ended.code);
      expect(leaksIn({ stdout: ended.stdout, stderr: ended.stderr }), JSON.stringify([args, env])).toEqual([]);
    }
  });

  test('on the status page about a database that repeats the token', async () => {
    await using stage = await openStage({ bench });
    const said = `${TOKEN} ${encodeURIComponent(TOKEN)} ${Buffer.from(TOKEN).toString('base64')}`;
    bench.proxy.setFaults(() => ({ kind: 'answer', status: 500, body: `{"error":"${said}"}` }));
    try {
      const { TIDEMARK_INFLUX_URL, TIDEMARK_INFLUX_TOKEN, TIDEMARK_INFLUX_BUCKET, TIDEMARK_DATA_DIR } = stage.env;
      const env = { TIDEMARK_INFLUX_URL, TIDEMARK_INFLUX_TOKEN, TIDEMARK_INFLUX_BUCKET, TIDEMARK_DATA_DIR };
      const run = start(['--demo', '--log-level', 'debug'], { cwd: stage.directory, env });
      try {
        await until('it shows itself', () => run.stdout().includes('\n'));
        const url = run.stdout().slice('Status page: '.length).trim();
        const shown = async () => {
          const texts = ['', 'alerts', 'events', 'status.json', 'events.json', 'devices.json', 'readyz', 'healthz'].map(
            async (path) => {
              const answer = await fetch(`${url}${path}`);
              return [path, `${JSON.stringify([...answer.headers])}${await answer.text()}`] as const;
            },
          );
          return Object.fromEntries(await Promise.all(texts));
        };
        await until('it is held', async () => String((await shown())['status.json']).includes('HTTP 500'));
        const pages = await shown();
        expect(pages.readyz).toContain('destination influx');
        run.child.kill('SIGTERM');
        const ended = await run.ended;
        expect(leaksIn({ ...pages, ...everythingOf(stage, ended) })).toEqual([]);
      } finally {
        run.child.kill('SIGKILL');
        await run.ended;
      }
    } finally {
      bench.proxy.setFaults(null);
    }
  });
});

/** A database that refuses every write and repeats the credential and its password. */
async function echoingDatabase(password: string) {
  const server = createServer((request, response) => {
    const { authorization = '' } = request.headers;
    const said = [authorization, `password ${password} is wrong`, Buffer.from(password).toString('base64')].join(' | ');
    response.writeHead(401, { 'content-type': 'application/json', 'x-influxdb-version': '2.7.12' });
    response.end(JSON.stringify({ code: 'unauthorized', message: said }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The names of all members, at any depth. */
function namesIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.flatMap(namesIn);
  return Object.entries(value).flatMap(([name, each]) => [name, ...namesIn(each)]);
}

describe('a password that is a plain word', () => {
  test.each(['second', 'telemetry', 'tidemark'])(
    '%s is not shown, and leaves every name as it is',
    async (password) => {
      await using stage = await openStage({ devices: [{ deviceId: 'one', intervalMs: 60_000 }] });
      await using database = await echoingDatabase(password);
      const run = stage.start(['--log-level', 'debug'], {
        env: {
          TIDEMARK_INFLUX_URL: database.url,
          TIDEMARK_INFLUX_TOKEN: `tidemark:${password}`,
          TIDEMARK_INFLUX_BUCKET: 'b',
          TIDEMARK_LISTEN: '127.0.0.1:0',
          TIDEMARK_LOG_FORMAT: 'json',
        },
      });
      const address = /http:\/\/127\.0\.0\.1:\d+\//g;
      const served = () => [...run.stderr().matchAll(address)].map(([url]) => url).find((url) => !isOther(url));
      const isOther = (url: string) => url.startsWith(database.url) || stage.server.url.startsWith(url);
      await until('its page is served', () => served() !== undefined);
      const get = async (path: string) => await (await fetch(`${served()}${path}`)).text();
      await until('the database has refused', async () => (await get('status.json')).includes('is wrong'));
      const paths = ['', 'events', 'status.json', 'events.json', 'devices.json', 'readyz', 'metrics'];
      const pages = Object.fromEntries(await Promise.all(paths.map(async (path) => [path, await get(path)] as const)));
      run.child.kill('SIGTERM');
      const everything = { ...pages, ...everythingOf(stage, await run.ended) };
      const leaks = [`tidemark:${password}`, `password ${password} is`, btoa(password).replace(/=+$/, '')];
      const found = Object.entries(everything).flatMap(([where, text]) =>
        leaks.filter((leak) => text.includes(leak)).map((leak) => `${where}: ${leak}`),
      );
      expect(found).toEqual([]);
      expect(pages.metrics).toMatch(/^tidemark_build_info\{version="[^"]+"\} 1$/m);
      expect(pages.metrics).toContain('stream="telemetry"');
      expect(pages.metrics?.replaceAll(/^tidemark_delivery.*$/gm, '')).not.toContain('[secret]');
      const logged = run
        .stderr()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown);
      const shown = [JSON.parse(pages['status.json'] ?? ''), JSON.parse(pages['devices.json'] ?? ''), ...logged];
      expect(namesIn(shown).filter((name) => name.includes('[secret]'))).toEqual([]);
      expect(namesIn(shown)).toContain('lag_seconds');
      expect(run.stderr()).toContain('password [secret] is wrong');
    },
  );
});

describe('the search', () => {
  test('finds a secret in any form, in any file', async () => {
    await using stage = await openStage({ devices: [{ deviceId: 'one', intervalMs: 600_000 }] });
    const ended = await stage.run(ARGS);
    expect(leaksIn(everythingOf(stage, ended))).toEqual([]);
    const db = new Database(join(stage.dataDir, 'tidemark.db'));
    db.prepare("INSERT INTO fact (key, value) VALUES ('planted', ?)").run(Buffer.from(KEY).toString('base64'));
    db.close();
    const leaks = leaksIn(everythingOf(stage, { ...ended, stderr: `${ended.stderr}?t=${encodeURIComponent(TOKEN)}` }));
    expect([...new Set(leaks.map((leak) => leak.split(':')[0]))].sort()).toEqual(['cells', 'stderr', 'tidemark.db']);
  });

  test('finds leaks of a program whose log was opened without the secrets', () => {
    const url = (file: string): string => JSON.stringify(pathToFileURL(join(ROOT, 'src', file)).href);
    // The program itself, without the secrets that its terminal should mask; a server sends it one.
    const leaky = `
      const { openTerminalOutput } = await import(${url('app/terminal.ts')});
      const { createLogger } = await import(${url('observe/log.ts')});
      const { Secret } = await import(${url('core/secret.ts')});
      const ports = { stderr: process.stderr, environment: {} };
      const open = (secrets) => openTerminalOutput({ ports, log: { level: 'info', format: 'json' }, level: null, secrets });
      const event = { type: 'api-outage', message: 'the server says ' + process.argv[1], waitMs: 60000 };
      open(process.argv[2] === 'knows' ? [new Secret(process.argv[1])] : []).observe(event);`;
    const say = (how: string): string =>
      spawnSync(process.execPath, ['--input-type=module', '-e', leaky, KEY, how], { encoding: 'utf8', cwd: ROOT })
        .stderr;
    expect(leaksIn({ stderr: say('knows not') }).length).toBeGreaterThan(0);
    expect(say('knows')).toContain('the server says [secret]');
    expect(leaksIn({ stderr: say('knows') })).toEqual([]);
  });
});

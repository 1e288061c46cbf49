/** `tidemark init`: by flags and by answers, with everything tried at once and nothing written before it works. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { realClock } from '../../../src/app/real-clock.ts';
import { parseArguments } from '../../../src/cli/argv.ts';
import { runCommand } from '../../../src/commands/run.ts';
import { UserError } from '../../../src/core/faults.ts';
import { type SimServer, serveSimulator } from '../../../src/sim/server.ts';
import { createSimulator } from '../../../src/sim/simulator.ts';
import { createWorld } from '../../../src/sim/world.ts';
import { TEST_CERTIFICATE, TEST_KEY } from '../../api/support/certificate.ts';
import { startInfluxdb3 } from '../../support/influxdb3.ts';
import { bad, runHere } from '../check/support.ts';
import { inputOf } from './support.ts';

const KEY = 'tmk_CANARYkey_4242';
const TOKEN = 'CANARYuser:CANARYtoken';
/** Other proxy settings of an environment. */
const NO_PROXIES = ['http_proxy', 'no_proxy', 'NO_PROXY'].map((name) => [name, undefined] as const);

let api: SimServer;
beforeAll(async () => {
  const devices = [{ deviceId: 'hub-1', intervalMs: 60_000 }];
  const world = createWorld({ seed: 1, originMs: Date.now(), historyMs: 600_000, devices });
  const plan = { requestsPerMinute: 6000, requestsPerDay: 1_000_000 };
  api = await serveSimulator(createSimulator({ world, clock: realClock, settings: { plan, key: { secret: KEY } } }));
});
afterAll(async () => await api.close());

function place(): string {
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-init-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly raw: readonly boolean[];
}

async function init(
  directory: string,
  args: readonly string[],
  {
    answers,
    isTTY = answers !== undefined,
    env = {},
  }: { answers?: readonly string[]; isTTY?: boolean; env?: Record<string, string> } = {},
): Promise<Ran> {
  const texts = { stdout: '', stderr: '' };
  const { next, raw, stream } = inputOf(answers ?? [], isTTY, (text) => {
    texts.stderr += text;
  });
  const dataDir = relative(process.cwd(), join(directory, 'data'));
  const argv = ['init', '--config', join(directory, 'conf', 't.yaml'), '--data-dir', dataDir, ...args];
  const command = parseArguments(argv);
  if (command.mode === 'help' || command.mode === 'version' || command.mode === 'health') throw new Error('no run');
  const write = (text: string): void => {
    texts.stderr += text;
    // A question ends without a new line.
    if (/[:\]] $/.test(text)) next();
  };
  const pipe = Readable.from((answers ?? []).map((answer) => `${answer}\n`));
  const ports = {
    environment: env,
    forget: () => {},
    readFile: (path: string) => readFileSync(path, 'utf8'),
    print: (text: string) => {
      texts.stdout += text;
    },
    stdin: isTTY ? stream : pipe,
    stdout: { isTTY: false, write: async () => true },
    stderr: { write },
    signal: new AbortController().signal,
  };
  const code = await runCommand(command, ports).catch((error: unknown) => {
    if (!(error instanceof UserError)) throw error;
    texts.stderr += error.message;
    return error.exitCode;
  });
  expect(texts.stdout + texts.stderr).not.toContain('CANARY');
  return { code, ...texts, raw };
}

const modeOf = (path: string): number => statSync(path).mode & 0o777;

describe('by flags', () => {
  test('writes the files for their owner alone, and --check of them passes', async () => {
    const directory = place();
    const { code, stdout, stderr } = await init(directory, ['--api-url', api.url, '--api-key-file', '-'], {
      answers: [KEY],
      isTTY: false,
    });
    expect(code, stderr).toBe(0);
    const config = join(directory, 'conf', 't.yaml');
    const key = join(directory, 'conf', 'secrets', 'tidemark_api_key');
    expect(stdout).toContain(`Start it:  npm start -- --config ${config}\n`);
    expect(readFileSync(key, 'utf8')).toBe(`${KEY}\n`);
    expect([config, key, join(directory, 'conf', 'secrets')].map(modeOf)).toEqual([0o600, 0o600, 0o700]);
    expect(readFileSync(config, 'utf8')).not.toContain('CANARY');
    // The daemon may start in any directory.
    expect(readFileSync(config, 'utf8')).toContain(`data_dir: ${JSON.stringify(join(directory, 'data'))}\n`);
    const env = { TIDEMARK_LISTEN: '127.0.0.1:0' };
    const checked = await runHere(['--check', '--config', config], { env });
    expect(checked.code, checked.stdout).toBe(0);
    expect(checked.stdout).not.toMatch(/warn|FAIL/);
    // Only the lines that are shown are counted.
    const skipped = checked.stdout.match(/^ {2}- /gm)?.length ?? 0;
    const counted = /, (\d+) not checked \(marked -\)\. /.exec(checked.stdout.replaceAll(/\s+/g, ' '))?.[1] ?? '0';
    expect(Number(counted)).toBe(skipped);
    // Without a terminal no line is cut.
    expect(checked.stdout).not.toContain('…');
  });

  test('the command of docs/getting-started.md writes a configuration that syncs', async () => {
    const directory = place();
    const page = readFileSync(join(import.meta.dirname, '../../../docs/getting-started.md'), 'utf8');
    const [, shown = ''] = /^npm start -- init (.*)$/m.exec(page) ?? [];
    const influx = createServer((_request, response) => {
      response.writeHead(204, { 'x-influxdb-build': 'OSS', 'x-influxdb-version': '2.7.12' }).end();
    });
    await new Promise<void>((resolve) => void influx.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void influx.close());
    const here = new Map([
      ['https://monitoring.example/external/v1', api.url],
      ['http://127.0.0.1:8086', `http://127.0.0.1:${(influx.address() as AddressInfo).port}`],
      ['./key', join(directory, 'key')],
      ['./token', join(directory, 'token')],
    ]);
    writeFileSync(join(directory, 'key'), KEY, { mode: 0o600 });
    writeFileSync(join(directory, 'token'), TOKEN, { mode: 0o600 });
    const words = shown.split(' ');
    expect([...here.keys()].filter((each) => !words.includes(each))).toEqual([]);
    const { code, stderr } = await init(
      directory,
      words.map((word) => here.get(word) ?? word),
    );
    expect(code, stderr).toBe(0);
    const config = readFileSync(join(directory, 'conf', 't.yaml'), 'utf8');
    expect(config).toMatch(/history: "30d"/);
    expect(config).toMatch(/bucket: "devices"/);
    const env = { TIDEMARK_LISTEN: '127.0.0.1:0' };
    const checked = await runHere(['--check', '--config', join(directory, 'conf', 't.yaml'), '--json'], { env });
    const report = JSON.parse(checked.stdout);
    expect((['configuration', 'state', 'api'] as const).map((area) => bad(report, area))).toEqual([[], [], []]);
  });

  test('a token of three characters is for a database on this machine, with a warning', async () => {
    const written: unknown[] = [];
    const influx = createServer(({ headers }, response) => {
      written.push(headers.authorization);
      response.writeHead(204, { 'x-influxdb-build': 'OSS', 'x-influxdb-version': '2.7.12' }).end();
    });
    await new Promise<void>((resolve) => void influx.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void influx.close());
    const here = `http://127.0.0.1:${(influx.address() as AddressInfo).port}`;
    const directory = place();
    const env = { TIDEMARK_API_KEY: KEY, TIDEMARK_INFLUX_TOKEN: 'u:p' };
    const flags = ['--api-url', api.url, '--influx-bucket', 'b', '--influx-url'];
    const { code, stderr } = await init(directory, [...flags, here], { env });
    expect([code, written.at(-1)], stderr).toEqual([0, 'Token u:p']);
    expect(stderr).toContain('Warning: the token is shorter than 4 characters, so Tidemark cannot mask it everywhere.');
    const config = join(directory, 'conf', 't.yaml');
    const checked = await runHere(['--check', '--config', config], { env: { TIDEMARK_LISTEN: '127.0.0.1:0' } });
    // The place comes first, and its path is wrapped.
    expect(checked.stdout.replaceAll(/\s+/g, '')).toMatch(
      /warninflux\.token_file\S+\/t\.yaml,line\d+:thetokenisshorterthan4characters/,
    );
    for (const [given, source] of [
      [{ TIDEMARK_INFLUX_TOKEN: 'u:p' }, 'TIDEMARK_INFLUX_TOKEN'],
      [
        { TIDEMARK_INFLUX_TOKEN_FILE: join(directory, 'conf', 'secrets', 'tidemark_influx_token') },
        'TIDEMARK_INFLUX_TOKEN_FILE',
      ],
    ] as const) {
      const elsewhere = await init(place(), [...flags, 'http://db.example:8086'], {
        env: { TIDEMARK_API_KEY: KEY, ...given },
      });
      expect([elsewhere.code, elsewhere.stderr.split('\n').at(-1)]).toEqual([
        2,
        `${source}: the secret is shorter than 4 characters; use a longer token; only a database on this machine may have such a short one.`,
      ]);
    }
  });

  test('a key from the environment, or from a file that stays where it is', async () => {
    const one = place();
    const own = await init(one, ['--api-url', api.url, '--history', '2d'], { env: { TIDEMARK_API_KEY: KEY } });
    expect(own.code, own.stderr).toBe(0);
    expect(readFileSync(join(one, 'conf', 't.yaml'), 'utf8')).toContain('history: "2d"');
    const two = place();
    const file = join(two, 'key');
    writeFileSync(file, KEY, { mode: 0o600 });
    const named = await init(two, ['--api-url', api.url, '--api-key-file', file]);
    expect(named.code, named.stderr).toBe(0);
    expect(readFileSync(join(two, 'conf', 't.yaml'), 'utf8')).toContain(`key_file: "${file}"`);
    expect(existsSync(join(two, 'conf', 'secrets'))).toBe(false);
  });

  test('another address of the page: tried, and written', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => void taken.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void taken.close());
    const address = `127.0.0.1:${(taken.address() as AddressInfo).port}`;
    const directory = place();
    const env = { TIDEMARK_API_KEY: KEY };
    const given = ['--api-url', api.url, '--listen', address];
    for (const [flags, code, words] of [
      [['--listen', '9464'], 2, /^--listen: expected host:port/],
      [
        ['--listen', address],
        1,
        /^--listen: .* is in use by .*\. Set --listen to another port; .* Or stop that program\. If it is a Tidemark daemon/,
      ],
    ] as const) {
      const refused = await init(directory, ['--api-url', api.url, ...flags], { env });
      expect([refused.code, refused.stderr]).toEqual([code, expect.stringMatching(words)]);
      expect(readdirSync(directory)).toEqual([]);
    }
    await new Promise((resolve) => taken.close(resolve));
    const free = await init(directory, given, { env });
    expect(free.code, free.stderr).toBe(0);
    const checked = await runHere(['--check', '--config', join(directory, 'conf', 't.yaml')], {});
    expect(checked.stdout).toMatch(new RegExp(`listen +${address}: free for the daemon`));
  });

  test('an API behind a certificate authority of its own, and one behind a proxy', async () => {
    const directory = place();
    const answer: RequestListener = (request, response) => {
      // A proxy gets the complete address.
      const to = new URL(request.url ?? '', api.url);
      const headers = { authorization: String(request.headers.authorization) };
      void fetch(new URL(to.pathname + to.search, api.url), { headers }).then(async (answered) => {
        response.writeHead(answered.status, { 'content-type': 'application/json' }).end(await answered.text());
      });
    };
    const listening = async (server: Server): Promise<number> => {
      await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
      onTestFinished(() => void server.close());
      return (server.address() as AddressInfo).port;
    };
    const port = await listening(createTlsServer({ key: TEST_KEY, cert: TEST_CERTIFICATE }, answer));
    const given = ['--api-url', `https://127.0.0.1:${port}/external/v1`];
    const env = { TIDEMARK_API_KEY: KEY };
    const unknown = await init(directory, given, { env });
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('The API cannot be reached')]);
    const ca = join(directory, 'ca.pem');
    writeFileSync(ca, TEST_CERTIFICATE);
    const known = await init(directory, given, { env: { ...env, TIDEMARK_API_CA_FILE: ca } });
    expect(known.code, known.stderr).toBe(0);
    const proxy = `http://127.0.0.1:${await listening(createServer(answer))}`;
    for (const [name, value] of [['HTTP_PROXY', proxy], ...NO_PROXIES] as const) vi.stubEnv(name, value);
    onTestFinished(() => void vi.unstubAllEnvs());
    const proxied = await init(place(), ['--api-url', 'http://api.invalid/external/v1'], {
      env: { ...env, HTTP_PROXY: proxy },
    });
    expect(proxied.code, proxied.stderr).toBe(0);
  });

  test.each<[string, string[], Record<string, string>, number, RegExp]>([
    [
      'no address',
      [],
      { TIDEMARK_API_KEY: KEY },
      2,
      /--api-url is required without a terminal: tidemark help init lists the flags\.$/m,
    ],
    [
      'a wrong address',
      ['--api-url', 'http://127.0.0.1:1/external/v1'],
      {},
      1,
      /The API cannot be reached: connection refused \(ECONNREFUSED\)\. Check --api-url and that the server is up\.$/m,
    ],
    ['an address of something else', ['--api-url', 'http://127.0.0.1:1/'], {}, 2, /ending in \/external\/v1/],
    ['no key', ['--api-url', '@api'], {}, 2, /An API key is required/],
    [
      'a wrong key',
      ['--api-url', '@api'],
      { TIDEMARK_API_KEY: 'CANARY-wrong' },
      77,
      /^The API rejects the key: .* and give its file by --api-key-file\.$/,
    ],
    [
      'a history',
      ['--api-url', '@api', '--history', 'soon'],
      { TIDEMARK_API_KEY: KEY },
      2,
      /--history: expected an age/,
    ],
    [
      'a database that does not answer',
      ['--api-url', '@api', '--influx-url', 'http://127.0.0.1:1', '--influx-bucket', 'b'],
      { TIDEMARK_API_KEY: KEY },
      1,
      /The database does not accept points: .*refuses the connection/,
    ],
    [
      'the key as a token',
      ['--api-url', '@api', '--influx-url', 'http://127.0.0.1:1', '--influx-bucket', 'b'],
      { TIDEMARK_API_KEY: KEY, TIDEMARK_INFLUX_TOKEN: KEY },
      78,
      /only the API may receive the API key/,
    ],
  ])('%s: nothing is written', async (_what, args, env, exitCode, words) => {
    const directory = place();
    const { code, stderr } = await init(
      directory,
      args.map((arg) => (arg === '@api' ? api.url : arg)),
      { env },
    );
    expect([code, stderr]).toEqual([exitCode, expect.stringMatching(words)]);
    expect(readdirSync(directory)).toEqual([]);
  });

  test('an existing file is replaced only on request', async () => {
    const directory = place();
    mkdirSync(join(directory, 'conf'));
    const config = join(directory, 'conf', 't.yaml');
    writeFileSync(config, 'mine');
    const env = { TIDEMARK_API_KEY: KEY };
    const refused = await init(directory, ['--api-url', api.url], { env });
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('--overwrite replaces existing files')]);
    expect(readFileSync(config, 'utf8')).toBe('mine');
    expect((await init(directory, ['--api-url', api.url, '--overwrite'], { env })).code).toBe(0);
    expect([readFileSync(config, 'utf8').includes('mine'), modeOf(config)]).toEqual([false, 0o600]);
  });

  test('names the settings that a replaced file had and the new one has not, and keeps the password of the page', async () => {
    const directory = place();
    const config = join(directory, 'conf', 't.yaml');
    const env = { TIDEMARK_API_KEY: KEY };
    const given = ['--api-url', api.url, '--overwrite'];
    expect((await init(directory, given, { env })).code).toBe(0);
    const own = 'listen: 127.0.0.1:9470\nlisten_password_file: page\narchive: { max_size: 1GiB, retention: 90d }\n';
    const before = `${readFileSync(config, 'utf8')}${own}influx: { url: "http://db:8086", bucket: b, timeout: 5s }\n`;
    writeFileSync(config, before.replace('api:\n', 'api:\n  share: 0.5\n'));
    const { code, stderr } = await init(directory, [...given, '--listen', '0.0.0.0:0'], { env });
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining(
        `The section influx of ${config} stays. To remove it, give --influx-url none.\nWarning: ${config} no longer has these settings: api.share, archive.max_size, archive.retention. Copy those that you need from ${config}.before, which is the earlier file.\n`,
      ),
    ]);
    expect(readFileSync(config, 'utf8')).toContain('\nlisten: "0.0.0.0:0"\nlisten_password_file: page\n');
    expect([modeOf(`${config}.before`), readFileSync(`${config}.before`, 'utf8').includes(own)]).toEqual([0o600, true]);
    expect((await init(directory, given, { env })).stderr).toContain('no longer has these settings: listen. ');
    const [copied] = /^listen: .*\n/m.exec(readFileSync(`${config}.before`, 'utf8')) ?? [];
    writeFileSync(join(directory, 'page'), 'a-long-password-4242', { mode: 0o600 });
    writeFileSync(config, `${copied}${readFileSync(config, 'utf8').replace('page', join(directory, 'page'))}`);
    expect((await runHere(['--check', '--config', config], {})).stdout).toMatch(/listen +0\.0\.0\.0:0/);
  });

  test('without a flag for the database, that of a replaced file stays with its token; none removes it', async () => {
    const directory = place();
    const config = join(directory, 'conf', 't.yaml');
    const tokenFile = join(directory, 'conf', 'secrets', 'tidemark_influx_token');
    const flags = ['--api-url', api.url, '--overwrite'];
    const env = { TIDEMARK_API_KEY: KEY };
    expect((await init(directory, flags, { env })).code).toBe(0);
    writeFileSync(tokenFile, TOKEN, { mode: 0o600 });
    const section = `influx:\n  url: http://127.0.0.1:1\n  token_file: ${tokenFile}\n  bucket: "7"\n  timeout: 5s\n`;
    writeFileSync(config, `${readFileSync(config, 'utf8')}# mine\n${section}`);
    const kept = await init(directory, [...flags, '--history', '9d'], { env });
    expect([kept.code, kept.stderr]).toEqual([0, expect.stringContaining(`The section influx of ${config} stays.`)]);
    expect(kept.stderr).not.toContain('Warning');
    expect(readFileSync(config, 'utf8')).toContain(`\n${section}sync:\n  history: "9d"\n`);
    expect(readFileSync(tokenFile, 'utf8')).toBe(TOKEN);
    expect((await runHere(['--check', '--config', config], {})).stdout).toContain('influx.token_file ');
    const none = await init(directory, [...flags, '--influx-url', 'none'], { env });
    expect([none.code, none.stderr]).toEqual([0, expect.not.stringContaining('influx of')]);
    expect(readFileSync(config, 'utf8')).not.toContain('influx:');
    expect(readFileSync(config, 'utf8'), 'the history that no flag gives').toContain('  history: "9d"\n');
  });

  test('a secret that is there is no obstacle where the key comes from another file', async () => {
    const directory = place();
    mkdirSync(join(directory, 'conf', 'secrets'), { recursive: true });
    writeFileSync(join(directory, 'conf', 'secrets', 'tidemark_api_key'), 'mine');
    writeFileSync(join(directory, 'key'), KEY);
    const given = ['--api-url', api.url, '--api-key-file', join(directory, 'key')];
    expect((await init(directory, given)).code).toBe(0);
    const refused = await init(directory, ['--api-url', api.url, '--overwrite', '--influx-url', '127.0.0.1:8428'], {
      env: { TIDEMARK_API_KEY: KEY },
    });
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringMatching(/--influx-url: expected .*https?:/)]);
    expect(readFileSync(join(directory, 'conf', 'secrets', 'tidemark_api_key'), 'utf8')).toBe('mine');
  });
});

test('a database that an InfluxDB 3 cannot create is an error of the bucket', async () => {
  await using influx = await startInfluxdb3({ databases: ['a', 'b', 'c', 'd', 'e'], token: '' });
  const api3 = ['--influx-url', influx.url, '--influx-bucket', 'f'];
  const { code, stderr } = await init(place(), ['--api-url', api.url, ...api3], { env: { TIDEMARK_API_KEY: KEY } });
  expect(code).toBe(1);
  expect(stderr).toContain(
    'The database does not accept points: this InfluxDB 3 has no database "f" and cannot create',
  );
  expect(stderr).toContain('correct --influx-bucket, or delete one there that nobody needs any more');
  expect([...influx.databases]).toHaveLength(5);
});

test('a server that answers in sentences is quoted with one full stop', async () => {
  const message = 'This is not allowed.';
  const server = createServer(({ url: path }, response) => {
    response.writeHead(404);
    response.end(path?.startsWith('/external') ? JSON.stringify({ error: { code: 'no', message } }) : message);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const database = ['--api-url', api.url, '--influx-bucket', 'b', '--influx-url', url];
  for (const flags of [['--api-url', `${url}/external/v1`], database]) {
    const { code, stderr } = await init(place(), flags, { env: { TIDEMARK_API_KEY: KEY } });
    expect([code, stderr]).toEqual([1, expect.stringMatching(/ot allowed\. [A-Z-]/)]);
  }
});

test('an InfluxDB needs a bucket', async () => {
  const influx = createServer((_request, response) => response.writeHead(204, { 'x-influxdb-build': 'OSS' }).end());
  await new Promise<void>((resolve) => void influx.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void influx.close());
  const url = `http://127.0.0.1:${(influx.address() as AddressInfo).port}`;
  const flags = ['--api-url', api.url, '--influx-url', url, '--influx-kind', 'influxdb'];
  const without = await init(place(), flags, { env: { TIDEMARK_API_KEY: KEY } });
  expect([without.code, without.stderr]).toEqual([
    2,
    expect.stringContaining('InfluxDB requires a bucket (--influx-bucket).'),
  ]);
  const given = await init(place(), [...flags, '--influx-bucket', 'home'], { env: { TIDEMARK_API_KEY: KEY } });
  expect(given.code, given.stderr).toBe(0);
});

test('without a bucket, the database has to show that it is VictoriaMetrics', async () => {
  const { url: influx } = await acceptingInflux();
  const env = { TIDEMARK_API_KEY: KEY };
  const directory = place();
  const named = await init(directory, ['--api-url', api.url, '--influx-url', influx], { env });
  expect([named.code, named.stderr.split('\n').at(-1)]).toEqual([2, 'InfluxDB requires a bucket (--influx-bucket).']);
  const nameless = await nameless204();
  const refused = await init(directory, ['--api-url', api.url, '--influx-url', nameless], { env });
  expect([refused.code, refused.stderr.split('\n').at(-1)]).toEqual([
    2,
    'The kind of the database is unknown: it does not answer like VictoriaMetrics. Give --influx-bucket NAME for InfluxDB (1.8 or later), or --influx-kind victoriametrics.',
  ]);
  const other = ['--api-url', api.url, '--influx-url', influx, '--influx-kind', 'victoriametrics'];
  const wrong = await init(directory, other, { env });
  expect([wrong.code, wrong.stderr.split('\n').at(-1)]).toEqual([
    1,
    'The database is InfluxDB, not VictoriaMetrics. Give a bucket (--influx-bucket).',
  ]);
  expect(readdirSync(directory)).toEqual([]);
  const followed = await init(directory, ['--api-url', api.url, '--influx-url', influx, '--influx-bucket', 'b'], {
    env,
  });
  expect(followed.code, followed.stderr).toBe(0);
});

test('messages about the key, a file or the kind include a remedy', async () => {
  const url = ['--api-url', api.url];
  const followed = async (broken: Promise<Ran>, advice: RegExp, ...others: Promise<Ran>[]): Promise<void> => {
    const { code, stderr } = await broken;
    expect([code === 0, stderr]).toEqual([false, expect.stringMatching(advice)]);
    for (const ran of await Promise.all(others)) expect(ran.code, ran.stderr).toBe(0);
  };
  const file = join(place(), 'key');
  writeFileSync(file, `${KEY}\n`);
  const byFile = [...url, '--api-key-file', file];
  const right = init(place(), byFile);
  const env = { TIDEMARK_API_KEY: KEY };
  const advice = /give --api-key-file FILE \(- reads standard input\) or set TIDEMARK_API_KEY/;
  await followed(init(place(), url), advice, right, init(place(), url, { env }));
  const wrong = init(place(), url, { env: { TIDEMARK_API_KEY: 'CANARY-wrong' } });
  await followed(wrong, /give its file by --api-key-file/, right);
  const prefixed = join(place(), 'key');
  writeFileSync(prefixed, `Bearer ${KEY}\n`);
  const spaced = init(place(), [...url, '--api-key-file', prefixed]);
  expect((await spaced).stderr).not.toContain(KEY);
  await followed(
    spaced,
    /^--api-key-file: the secret has a space in it; write only the key, without "Bearer"\.$/m,
    right,
  );
  const missing = init(place(), [...url, '--api-key-file', join(place(), 'CANARY-none')]);
  expect((await missing).stderr).toMatch(/^--api-key-file: this file does not exist\. Give/m);
  expect((await missing).stderr).not.toContain('CANARY-none');
  await followed(missing, /Give the path of a file that holds the secret alone/, right);
  const directory = init(place(), [...url, '--api-key-file', place()]);
  await followed(directory, /Give the path of a file that holds the secret alone/, right);
  const occupied = place();
  writeFileSync(join(occupied, 'conf'), 'a file in the way');
  await followed(init(occupied, byFile), /Give another path with --config/, right);
  const victoria = createServer((_request, response) => response.writeHead(204, { 'x-server-hostname': 'vm' }).end());
  await new Promise<void>((resolve) => void victoria.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void victoria.close());
  const to = [...byFile, '--influx-url', `http://127.0.0.1:${(victoria.address() as AddressInfo).port}`];
  const kind = init(place(), [...to, '--influx-kind', 'influxdb', '--influx-bucket', 'b']);
  await followed(kind, /Give neither --influx-kind nor --influx-bucket/, init(place(), to));
});

test('a key without a scope, or without API access, is reported with the next step', async () => {
  const code = { current: 'insufficient_scope' };
  const server = createServer((_request, response) => {
    response.writeHead(403, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { code: code.current, message: 'no' } }));
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const flags = ['--api-url', `http://127.0.0.1:${(server.address() as AddressInfo).port}/external/v1`];
  const env = { TIDEMARK_API_KEY: KEY };
  const scopeless = await init(place(), flags, { env });
  expect([scopeless.code, scopeless.stderr]).toEqual([
    0,
    expect.stringContaining('account:read. Give the key that scope, or set workspace.id before the first start.\n'),
  ]);
  code.current = 'forbidden';
  const denied = await init(place(), flags, { env });
  expect([denied.code, denied.stderr]).toEqual([77, expect.stringMatching(/API access, then run init again\.$/)]);
  const answers = [String(flags[1]), KEY];
  const typed = await init(place(), [], { answers });
  expect(typed.stderr).toContain('API access, then enter the key here.\nWorkspace API key');
  const right = await init(place(), ['--api-url', api.url], { env });
  expect([right.code, right.stderr]).toEqual([0, expect.stringContaining('The key is valid for workspace')]);
});

test('the token is tried on a VictoriaMetrics, too', async () => {
  const right = `Basic ${Buffer.from(TOKEN).toString('base64')}`;
  const victoria = createServer(({ headers }, response) => {
    response.writeHead(headers.authorization === right ? 204 : 401, { 'x-server-hostname': 'vm' }).end();
  });
  await new Promise<void>((resolve) => void victoria.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void victoria.close());
  const given = ['--api-url', api.url, '--influx-url', `http://127.0.0.1:${(victoria.address() as AddressInfo).port}`];
  const directory = place();
  for (const token of [{}, { TIDEMARK_INFLUX_TOKEN: 'user:another' }]) {
    const refused = await init(directory, given, { env: { TIDEMARK_API_KEY: KEY, ...token } });
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/does not accept points: .*401/)]);
    expect(refused.stderr).toMatch(
      / and VictoriaMetrics\); if .* correct --influx-url\. Correct it and run init again\.$/,
    );
    expect(readdirSync(directory)).toEqual([]);
  }
  const env = { TIDEMARK_API_KEY: KEY, TIDEMARK_INFLUX_TOKEN: TOKEN };
  const database = given.at(-1) ?? '';
  const typed = await init(place(), [], {
    answers: [api.url, KEY, database, 'user:Rz7-wrong-81', database, TOKEN, '7d'],
  });
  expect([typed.code, typed.stderr]).toEqual([
    0,
    expect.stringMatching(/ correct the address\. The prompts for the database follow again\.\nAddress of InfluxDB/),
  ]);
  const accepted = await init(directory, given, { env });
  expect(accepted.code, accepted.stderr).toBe(0);
  expect(readFileSync(join(directory, 'conf', 't.yaml'), 'utf8')).toContain('kind: "victoriametrics"');
});

/** A server that accepts everything and does not say what it is. */
async function nameless204(): Promise<string> {
  const server = createServer((_request, response) => response.writeHead(204).end());
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** An InfluxDB 2 that accepts every write, and the credentials of all requests to it. */
async function acceptingInflux(): Promise<{ readonly url: string; readonly written: string[] }> {
  const written: string[] = [];
  const influx = createServer((request, response) => {
    written.push(String(request.headers.authorization));
    response.writeHead(204, { 'x-influxdb-build': 'OSS', 'x-influxdb-version': '2.7.12' }).end();
  });
  await new Promise<void>((resolve) => void influx.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void influx.close());
  return { url: `http://127.0.0.1:${(influx.address() as AddressInfo).port}`, written };
}

describe('on a terminal', () => {
  test('warns about a token that is a plain word, and accepts another one or keeps it', async () => {
    const { url: database, written } = await acceptingInflux();
    const warning = 'this secret, or the password behind the colon in it, is an ordinary word';
    for (const [other, sent] of [
      [TOKEN, `Token ${TOKEN}`],
      ['', 'Token tidemark:second'],
    ] as const) {
      const answers = [api.url, KEY, database, 'b', 'home', 'tidemark:second', other, '7d'];
      const { code, stderr } = await init(place(), [], { answers });
      expect(code, stderr).toBe(0);
      expect(stderr).toContain(warning);
      expect(stderr).toContain('Type another one (not shown), or press Enter to keep this one: ');
      expect(written.at(-1)).toBe(sent);
    }
    const flags = ['--api-url', api.url, '--influx-url', database, '--influx-bucket', 'b', '--influx-org', 'home'];
    const env = { TIDEMARK_API_KEY: KEY, TIDEMARK_INFLUX_TOKEN: 'admin:tidemark' };
    expect((await init(place(), flags, { env })).stderr).toContain(`Warning: TIDEMARK_INFLUX_TOKEN: ${warning}`);
  });

  test('prompts for everything, hides the secrets, and prompts again where an answer does not work', async () => {
    const directory = place();
    const { url: database, written } = await acceptingInflux();
    const answers = ['nowhere', api.url, ' ', 'abc', 'CANARY-wrong', KEY, database, 'b', 'home', TOKEN, '', '7d'];
    const { code, stderr, raw } = await init(directory, [], { answers: answers.filter((answer) => answer !== '') });
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(/Expected an address that begins with https/);
    expect(stderr).toContain('\nThe secret is shorter than 4 characters.\n');
    expect(stderr).toMatch(/The API rejects the key: .* and enter it here\./);
    expect(stderr).not.toMatch(/--api|api\.key/);
    expect(stderr).toContain('InfluxDB 2.7.12 accepts points.');
    expect(stderr).toContain('\nAn API key is required: type or paste it here.\n');
    // On and off for four keys and one token.
    expect(raw.filter((isRaw) => isRaw)).toHaveLength(5);
    expect(raw.at(-1)).toBe(false);
    // Its kind is requested without the token.
    expect(written.slice(0, 2)).toEqual(['undefined', `Token ${TOKEN}`]);
    const text = readFileSync(join(directory, 'conf', 't.yaml'), 'utf8');
    const lines = [
      `url: "${database}"`,
      'org: "home"',
      'bucket: "b"',
      'history: "7d"',
      'secrets/tidemark_influx_token"',
    ];
    for (const line of lines) expect(text).toContain(line);
    expect(modeOf(join(directory, 'conf', 'secrets', 'tidemark_influx_token'))).toBe(0o600);
  });

  test('repeats the prompt for the address where a request shows that it is wrong', async () => {
    const server = createServer((_request, response) => void response.writeHead(404).end());
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const wrong = `http://127.0.0.1:${(server.address() as AddressInfo).port}/external/v1`;
    const answers = [wrong, KEY, api.url, KEY, '', '1d'];
    const { code, stderr } = await init(place(), [], { answers });
    expect(stderr).toContain(
      'The request for the account failed: GET /account: the server has no such endpoint (404). Check the address.',
    );
    expect(code, stderr).toBe(0);
  });

  test('a token that is the API key is rejected in words of the answers, and another one is taken', async () => {
    const directory = place();
    const { url, written } = await acceptingInflux();
    const flags = ['--api-url', api.url, '--api-key-file', '-', '--influx-url', url, '--influx-bucket', 'b'];
    const piped = await init(directory, [...flags, '--influx-token-file', '-'], { answers: [KEY, KEY], isTTY: false });
    expect([piped.code, existsSync(join(directory, 'conf'))]).toEqual([78, false]);
    expect(piped.stderr).toMatch(
      /\n--influx-token-file: this is the API key. Use another value: only the API may receive the API key.$/,
    );
    const followed = await init(directory, [...flags, '--influx-token-file', '-'], {
      answers: [KEY, TOKEN],
      isTTY: false,
    });
    expect(followed.code, followed.stderr).toBe(0);
    const answers = [api.url, KEY, url, 'b', '', KEY, url, 'b', '', TOKEN, '1d'];
    const typed = await init(place(), [], { answers });
    expect(typed.stderr).toContain('\nThe token is the API key. Use another value: ');
    expect([typed.code, /TIDEMARK_/.test(typed.stderr)], typed.stderr).toEqual([0, false]);
    expect(written.filter((given) => given.includes(KEY))).toEqual([]);
  });

  test('gets the prompt for the address of the database again before its bucket and token', async () => {
    const victoria = createServer((_request, response) => response.writeHead(204, { 'x-server-hostname': 'vm' }).end());
    await new Promise<void>((resolve) => void victoria.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void victoria.close());
    const database = `http://127.0.0.1:${(victoria.address() as AddressInfo).port}`;
    const answers = [api.url, KEY, 'http://127.0.0.1:1', database, '', '7d'];
    const { code, stderr } = await init(place(), [], { answers });
    expect(code, stderr).toBe(0);
    expect(stderr).toContain(
      'The database cannot be reached: the database refuses the connection; check that it is running and that the address is right.\nAddress of InfluxDB',
    );
    expect(stderr).not.toContain('Bucket');
    expect(stderr.split('Token, or user:password')).toHaveLength(2);
  });

  test('gets the prompt again for an address with a path that VictoriaMetrics does not have', async () => {
    const victoria = createServer(({ url = '' }, response) => {
      const isThere = url.startsWith('/api/v2/write');
      response.writeHead(isThere ? 204 : 400, { 'x-server-hostname': 'vm' });
      response.end(
        isThere ? undefined : `remoteAddr: "[::1]:5"; requestURI: ${url}; unsupported path requested: "${url}"`,
      );
    });
    await new Promise<void>((resolve) => void victoria.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void victoria.close());
    const database = `http://127.0.0.1:${(victoria.address() as AddressInfo).port}`;
    const answers = [api.url, KEY, `${database}/foo`, '', database, '', '7d'];
    const { code, stderr } = await init(place(), [], { answers });
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(
      /The address: VictoriaMetrics has no such path; the address is http:\/\/host:8428, .*\nAddress of/,
    );
    expect(stderr).not.toContain('the first write will show');
  });

  test('gets no prompt for the bucket and the organization of a VictoriaMetrics', async () => {
    const directory = place();
    const victoria = createServer((_request, response) => response.writeHead(204, { 'x-server-hostname': 'vm' }).end());
    await new Promise<void>((resolve) => void victoria.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void victoria.close());
    const database = `http://127.0.0.1:${(victoria.address() as AddressInfo).port}`;
    const { code, stderr } = await init(directory, [], { answers: [api.url, KEY, database, '', '7d'] });
    expect(code, stderr).toBe(0);
    expect(stderr).toContain('VictoriaMetrics accepts points.');
    expect(stderr).not.toMatch(/Bucket|Organization/);
    expect(readFileSync(join(directory, 'conf', 't.yaml'), 'utf8')).toContain('kind: "victoriametrics"');
  });

  test('of an InfluxDB 3 without authentication: no database is created, and a missing one is reported', async () => {
    await using influx = await startInfluxdb3({ databases: ['home'], token: '' });
    const answers = [api.url, KEY, influx.url, 'hmoe', '-', '', '7d'];
    const { code, stderr } = await init(place(), [], { answers });
    expect(code, stderr).toBe(0);
    expect([...influx.databases]).toEqual(['home']);
    expect(stderr).not.toContain('accepts points');
    expect(stderr).toContain(
      'Warning: this InfluxDB 3 has no database "hmoe"; it creates one with the first point. If you meant an existing database, correct the bucket.\n',
    );
  });

  test.each([
    ['366d', 'sync.history goes back 366 days'],
    ['all', 'sync.history is all'],
    ['365d', null],
  ])('gets a warning about a history beyond the plan: %s', async (wanted, words) => {
    const { code, stderr } = await init(place(), [], { answers: [api.url, KEY, '', wanted] });
    expect(code, stderr).toBe(0);
    if (words === null) expect(stderr).not.toContain('Warning');
    else
      expect(stderr).toContain(
        `Warning: ${words}, but history_max_days of the plan is 365 days: older readings are synced only if the API serves them. Nothing to do, or take a larger plan. `,
      );
  });

  test('gets a warning about a VictoriaMetrics without deduplication, or with a retention shorter than the history', async () => {
    const flags = '-storageDataPath="data"\n-retentionPeriod="1"\n';
    const victoria = createServer(({ url }, response) => {
      if (url === '/flags') response.end(flags);
      else response.writeHead(204, { 'x-server-hostname': 'vm' }).end();
    });
    await new Promise<void>((resolve) => void victoria.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void victoria.close());
    const database = `http://127.0.0.1:${(victoria.address() as AddressInfo).port}`;
    const { code, stderr } = await init(place(), [], { answers: [api.url, KEY, database, '', '90d'] });
    expect(code, stderr).toBe(0);
    expect(stderr).toContain(
      'VictoriaMetrics accepts points.\nWarning: deduplication is off: points that are sent again, for instance after a crash, are stored twice. Start VictoriaMetrics with -dedup.minScrapeInterval=1ms.\nIt keeps points for 31 days (-retentionPeriod).\n',
    );
    expect(stderr).toMatch(
      /Warning: the database keeps points for only 31 days, but sync\.history goes back 90 days: .*\. Start VictoriaMetrics with a longer -retentionPeriod, or shorten sync\.history\.\n$/,
    );
    const shorter = await init(place(), [], { answers: [api.url, KEY, database, '', '30d'] });
    expect(shorter.stderr).toContain('deduplication is off');
    expect(shorter.stderr).toContain(
      'Warning: the database keeps points for only 31 days, the default of VictoriaMetrics: it deletes every point that becomes older',
    );
    expect(shorter.stderr).not.toContain('sync.history');
  });

  test('a cancelled dialogue, and one that keeps the existing files', async () => {
    const directory = place();
    const stopped = 'Stopped before every prompt was answered. Nothing was written. Run init again.';
    for (const answers of [['\u0003'], [api.url, '\u0003'], [api.url]]) {
      const { code, stderr } = await init(directory, [], { answers });
      expect(code).toBe(3);
      expect(stderr.split('\n'), 'on a line of its own').toContain(stopped);
    }
    expect(existsSync(join(directory, 'conf'))).toBe(false);
    mkdirSync(join(directory, 'conf'));
    writeFileSync(join(directory, 'conf', 't.yaml'), 'mine');
    const kept = await init(directory, [], { answers: ['n'] });
    expect([kept.code, kept.stderr]).toEqual([
      1,
      expect.stringMatching(
        /To keep the existing files, give --config in another directory; in the same one, the secrets are replaced too\.$/m,
      ),
    ]);
    expect(readFileSync(join(directory, 'conf', 't.yaml'), 'utf8')).toBe('mine');
  });

  test('learns at once that an InfluxDB is too old, and is prompted for a bucket until there is one', async () => {
    const old = createServer((_request, response) =>
      response.writeHead(404, { 'x-influxdb-build': 'OSS', 'x-influxdb-version': '1.6.7' }).end(),
    );
    await new Promise<void>((resolve) => void old.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void old.close());
    const tooOld = `http://127.0.0.1:${(old.address() as AddressInfo).port}`;
    const { url } = await acceptingInflux();
    const answers = [api.url, KEY, tooOld, url, '', url, 'home', '', '', '30d'];
    const { code, stderr } = await init(place(), [], { answers });
    expect(code, stderr).toBe(0);
    const order = [
      'InfluxDB 1.6.7 is too old',
      'InfluxDB requires a bucket',
      'Token, or user:password',
      'accepts points',
    ];
    const at = order.map((text) => stderr.indexOf(text));
    expect([at.every((each) => each > 0), at]).toEqual([true, at.toSorted((a, b) => a - b)]);
    expect(stderr).not.toContain('empty for VictoriaMetrics');
  });

  test('typed again, Enter keeps both addresses, and the token only with the address of its database', async () => {
    const directory = place();
    const { url: database, written } = await acceptingInflux();
    const config = join(directory, 'conf', 't.yaml');
    const token = join(directory, 'conf', 'secrets', 'tidemark_influx_token');
    const first = await init(directory, [], { answers: [api.url, KEY, database, 'b', 'home', TOKEN, '7d'] });
    expect(first.code, first.stderr).toBe(0);
    const [before, requests] = [readFileSync(config, 'utf8'), written.length];
    const again = await init(directory, [], { answers: ['y', '', KEY, '', ''] });
    expect(again.code, again.stderr).toBe(0);
    for (const question of [
      `Address of the API, ending in /external/v1 [${api.url}]: `,
      `Address of InfluxDB or VictoriaMetrics (none: no database, only the archive) [${database}]: `,
      'The key is valid',
      `The section influx of ${config} stays. To remove it, run init again and answer none.`,
    ])
      expect(again.stderr).toContain(question);
    expect(again.stderr).not.toMatch(/Bucket|Token/);
    expect([readFileSync(config, 'utf8').replaceAll('"', ''), readFileSync(token, 'utf8'), written.length]).toEqual([
      before.replaceAll('"', ''),
      `${TOKEN}\n`,
      requests,
    ]);
    // Another database gets its own token.
    const { url: other, written: sent } = await acceptingInflux();
    const moved = await init(directory, [], { answers: ['y', '', KEY, other, 'b', 'home', '', ''] });
    expect(moved.code, moved.stderr).toBe(0);
    expect(new Set(sent)).toEqual(new Set(['undefined']));
    expect(readFileSync(config, 'utf8')).not.toContain('token_file');
    expect((await init(directory, [], { answers: ['y', '', KEY, 'none', ''] })).code).toBe(0);
    expect(readFileSync(config, 'utf8')).toMatch(/^(?!.*influx:).*url: "http.*history: "7d"/s);
    // Without a terminal the address of the API is a flag, and one that cannot be valid is not offered.
    const env = { TIDEMARK_API_KEY: KEY };
    expect((await init(directory, ['--overwrite'], { env })).stderr).toContain('--api-url is required without a');
    writeFileSync(config, 'api:\n  url: nowhere\ninflux:\n  url: http://a:secret@db:8086\n');
    const { code, stderr } = await init(directory, [], { answers: ['y', api.url, KEY, '', '7d'] });
    expect([code, stderr]).toEqual([0, expect.not.stringMatching(/nowhere|secret@/)]);
  });

  test('replaces a secret file without a question if it has the same secret', async () => {
    const directory = place();
    expect((await init(directory, [], { answers: [api.url, KEY, '', '30d'] })).code).toBe(0);
    const answers = ['y', api.url, KEY, '', '90d'];
    const { code, stderr } = await init(directory, [], { answers });
    expect(code, stderr).toBe(0);
    expect(stderr.match(/Replace\?/g)).toHaveLength(1);
    expect(readFileSync(join(directory, 'conf', 't.yaml'), 'utf8')).toContain('history: "90d"');
  });
});

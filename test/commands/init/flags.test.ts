/** `tidemark init` by flags: everything is tried at once, and nothing is written before it works. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { SimServer } from '../../../src/sim/server.ts';
import { TEST_CERTIFICATE, TEST_KEY } from '../../api/support/certificate.ts';
import { bad, runHere } from '../check/support.ts';
import { init, KEY, modeOf, place, startApi, TOKEN } from './support.ts';

/** Other proxy settings of an environment. */
const NO_PROXIES = ['http_proxy', 'no_proxy', 'NO_PROXY'].map((name) => [name, undefined] as const);

let api: SimServer;
beforeAll(async () => {
  api = await startApi();
});
afterAll(async () => await api.close());

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

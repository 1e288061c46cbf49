/**
 * Remedies that concern servers and the rights of files, followed to the letter as in `test/remedies.test.ts`: a message
 * names the remedy, the remedy is followed, and the message is gone.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { classifyAnswer } from '../src/api/classify.ts';
import { createKeySource } from '../src/app/secret-files.ts';
import { runHealthCommand } from '../src/commands/health/command.ts';
import type { WriteAnswer } from '../src/core/ports.ts';
import { Secret } from '../src/core/secret.ts';
import { createInfluxSink, type InfluxSinkOptions } from '../src/influx/sink.ts';
import { explained } from '../src/store/explain.ts';
import { openStore } from '../src/store/store.ts';
import { TEST_CERTIFICATE, TEST_KEY } from './api/support/certificate.ts';
import { ask, failure } from './api/support/odd-server.ts';
import { KEY, openStage, runHere } from './commands/check/support.ts';
import { servePage } from './page/support.ts';
import { pageCommit, refusal, scratch } from './store/support.ts';
import { addPrograms, runInside } from './support/own-root.ts';
import { startVictoria, victoriaAvailable } from './support/victoria.ts';

/** Starts it until the end of the test; returns its address without the scheme. */
async function started(server: Server | RequestListener, port = 0): Promise<string> {
  const own = typeof server === 'function' ? createServer(server) : server;
  await new Promise<void>((resolve) => void own.listen(port, '127.0.0.1', resolve));
  onTestFinished(() => {
    own.closeAllConnections();
    own.close();
  });
  return `127.0.0.1:${(own.address() as AddressInfo).port}`;
}

/** An address at which nothing listens any more. */
async function closedAddress(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `127.0.0.1:${port}`;
}

describe('the address of the API', () => {
  test('of a server without TLS: with http://', async () => {
    const address = await started((_request, response) => void response.end('{}'));
    const { message } = await failure(ask(`https://${address}`));
    expect(message).toMatch(/If that is intended, write api\.url with http:\/\//);
    expect((await ask(`http://${address}`)).status).toBe(200);
  });

  test('of a slow server: with a longer api.timeout', async () => {
    const slow = await started((_request, response) => void setTimeout(() => response.end('{}'), 150));
    const { message } = await failure(ask(`http://${slow}`, { timeoutMs: 50 }));
    expect(message).toMatch(/no complete response within 50 ms/);
    expect((await ask(`http://${slow}`, { timeoutMs: 60_000 })).status).toBe(200);
  });

  /** A name longer than a name server may have. */
  const NO_HOST = `${'x'.repeat(64)}.invalid`;

  test('whose host has no address: corrected', async () => {
    const { message } = await failure(ask(`http://${NO_HOST}`));
    expect(message).toMatch(/Check api\.url and the name servers of this machine/);
    const address = await started((_request, response) => void response.end('{}'));
    expect((await ask(`http://${address}`)).status).toBe(200);
  });

  test('of a login page or a proxy: corrected', async () => {
    const asked = { request: 'GET /account', hasCursor: false, nowMs: 0, secret: KEY };
    const read = async (url: string) => classifyAnswer(await ask(url), asked);
    for (const [status, body, words] of [
      [200, '<html>Log in</html>', /Check that api\.url is right and that no proxy or login page answers/],
      [405, 'blocked', /Check that api\.url is right and that no proxy answers/],
    ] as const) {
      const page = await started((_request, response) => void response.writeHead(status).end(body));
      expect(await read(`http://${page}`)).toMatchObject({ fault: { message: expect.stringMatching(words) } });
    }
    const address = await started((_request, response) => void response.end('{}'));
    expect(await read(`http://${address}`)).toMatchObject({ kind: 'ok' });
  });

  test('at which nothing listens: corrected, or the server started', async () => {
    const closed = await closedAddress();
    expect((await failure(ask(`http://${closed}`))).message).toMatch(/Check api\.url and that the server is up/);
    const address = await started((_request, response) => void response.end('{}'));
    expect((await ask(`http://${address}`)).status).toBe(200);
    await started((_request, response) => void response.end('{}'), Number(new URL(`http://${closed}`).port));
    expect((await ask(`http://${closed}`)).status).toBe(200);
  });
});

describe('a database', () => {
  const never = new AbortController().signal;
  const TOKEN = 'sekret-token-0123456789';
  const OPTIONS = { name: 'influx', token: new Secret(TOKEN), org: 'o', bucket: 'b', timeoutMs: 10_000 };

  /** The message about a write; empty if it is accepted. */
  async function written(options: Partial<InfluxSinkOptions> & { readonly url: string }): Promise<string> {
    const answer: WriteAnswer = await createInfluxSink({ ...OPTIONS, ...options }).write(['m v=1 1'], never);
    if (answer.kind === 'accepted') return '';
    return `${answer.message} ${'hint' in answer ? answer.hint : ''}`;
  }

  test('without TLS: with http://', async () => {
    const address = await started((_request, response) => void response.writeHead(204).end());
    expect(await written({ url: `https://${address}` })).toMatch(
      /if that is intended, write influx\.url with http:\/\//,
    );
    expect(await written({ url: `http://${address}` })).toBe('');
  });

  test('with a certificate of its own: in the file of influx.ca_file', async () => {
    const tls = { key: TEST_KEY, cert: TEST_CERTIFICATE };
    const url = `https://${await started(createTlsServer(tls, (_request, response) => void response.writeHead(204).end()))}`;
    expect(await written({ url })).toMatch(/to trust it, write it into the file of influx\.ca_file \(PEM\)/);
    expect(await written({ url, ca: TEST_CERTIFICATE })).toBe('');
  });

  test('at which nothing listens: started, or the address corrected', async () => {
    const closed = await closedAddress();
    const accepting: RequestListener = (_request, response) => void response.writeHead(204).end();
    expect(await written({ url: `http://${closed}` })).toMatch(
      /check that it is running and that influx\.url is right/,
    );
    expect(await written({ url: `http://${await started(accepting)}` })).toBe('');
    await started(accepting, Number(new URL(`http://${closed}`).port));
    expect(await written({ url: `http://${closed}` })).toBe('');
  });

  test('whose host has no address: corrected', async () => {
    expect(await written({ url: `http://${'x'.repeat(64)}.invalid` })).toMatch(
      /check influx\.url and the name servers of this machine/,
    );
    const own = await started((_request, response) => void response.writeHead(204).end());
    expect(await written({ url: `http://${own}` })).toBe('');
  });

  test('behind a proxy that does not connect: its host in NO_PROXY', async () => {
    const tls = { key: TEST_KEY, cert: TEST_CERTIFICATE };
    const url = `https://${await started(createTlsServer(tls, (_request, response) => void response.writeHead(204).end()))}`;
    const proxy = await started((_request, response) => void response.writeHead(403).end());
    const proxies = { HTTPS_PROXY: `http://${proxy}` };
    const options = { url, ca: TEST_CERTIFICATE };
    expect(await written({ ...options, proxies })).toMatch(
      /if the database should be reached directly, add its host to NO_PROXY/,
    );
    expect(await written({ ...options, proxies: { ...proxies, NO_PROXY: '127.0.0.1' } })).toBe('');
  });

  /** One that has the bucket `there`, and accepts writes with some tokens only. */
  async function guarded({ buckets, writers }: { buckets: Set<string>; writers: Set<string> }): Promise<string> {
    const answer: RequestListener = ({ url = '', headers }, response) => {
      const bucket = new URL(url, 'http://x').searchParams.get('bucket') ?? '';
      response.setHeader('x-influxdb-version', '2.7.12');
      if (!buckets.has(bucket))
        response.writeHead(404).end(`{"code":"not found","message":"bucket \\"${bucket}\\" not found"}`);
      else response.writeHead(writers.has(headers.authorization ?? '') ? 204 : 403).end();
    };
    return `http://${await started(answer)}`;
  }

  test('without the bucket: created, or influx.bucket corrected', async () => {
    const buckets = new Set(['there']);
    const url = await guarded({ buckets, writers: new Set([`Token ${TOKEN}`]) });
    expect(await written({ url })).toMatch(/create it, or correct influx\.bucket and influx\.org/);
    expect(await written({ url, bucket: 'there' })).toBe('');
    buckets.add('b');
    expect(await written({ url })).toBe('');
  });

  test('that lets the token not write: the permission, or another token', async () => {
    const writers = new Set(['Token another-token-0123']);
    const url = await guarded({ buckets: new Set(['b']), writers });
    expect(await written({ url })).toMatch(
      /give it that permission, or write another token into the file of influx\.token_file/,
    );
    expect(await written({ url, token: new Secret('another-token-0123') })).toBe('');
    writers.add(`Token ${TOKEN}`);
    expect(await written({ url })).toBe('');
  });

  test('without the organization: influx.org set', async () => {
    const answer: RequestListener = ({ url = '' }, response) => {
      const isOwn = new URL(url, 'http://x').searchParams.get('org') === 'mine';
      response.setHeader('x-influxdb-version', '2.7.12');
      response
        .writeHead(isOwn ? 204 : 404)
        .end(isOwn ? '' : '{"code":"not found","message":"organization \\"o\\" not found"}');
    };
    const url = `http://${await started(answer)}`;
    expect(await written({ url })).toMatch(/set or correct influx\.org/);
    expect(await written({ url, org: 'mine' })).toBe('');
  });

  test.each([
    [
      'of which it has enough',
      'exceed limit of 5 databases',
      /correct influx\.bucket, or delete one there that nobody needs any more/,
    ],
    [
      'that it does not allow',
      'namespace name length must be shorter',
      /does not allow this name; correct influx\.bucket/,
    ],
  ])('with a bucket %s: another one', async (_what, error, advice) => {
    const answer: RequestListener = ({ url = '' }, response) => {
      const isThere = new URL(url, 'http://x').searchParams.get('bucket') === 'there';
      response.setHeader('x-influxdb-version', '3.1.0');
      response.writeHead(isThere ? 204 : 422).end(isThere ? '' : JSON.stringify({ error }));
    };
    const url = `http://${await started(answer)}`;
    expect(await written({ url })).toMatch(advice);
    expect(await written({ url, bucket: 'there' })).toBe('');
  });

  test('at the address of a login page: the base URL of the database', async () => {
    const page = await started((_request, response) => void response.end('<html>Log in</html>'));
    const own = await started((_request, response) => void response.writeHead(204).end());
    expect(await written({ url: `http://${page}` })).toMatch(/influx\.url must be the base URL of the database/);
    expect(await written({ url: `http://${own}` })).toBe('');
  });

  test('without the path for writes: the base URL of an InfluxDB', async () => {
    const server = await started((_request, response) => void response.writeHead(404).end('not here'));
    const own = await started((_request, response) => void response.writeHead(204).end());
    expect(await written({ url: `http://${server}` })).toMatch(
      /influx\.url must be the base URL of InfluxDB 1\.8 or later/,
    );
    expect(await written({ url: `http://${own}` })).toBe('');
  });

  test('of another kind: influx.kind set to influxdb, and influx.bucket', async () => {
    const answer: RequestListener = ({ url = '' }, response) => {
      response.setHeader('x-influxdb-build', 'OSS');
      response.writeHead(new URL(url, 'http://x').searchParams.get('bucket') === 'there' ? 204 : 404).end();
    };
    const options = { ...OPTIONS, url: `http://${await started(answer)}` };
    expect(
      await createInfluxSink({ ...options, bucket: '' }, 'victoriametrics').write(['m v=1 1'], never),
    ).toMatchObject({
      hint: expect.stringMatching(/set influx\.kind to influxdb \(or remove it\) and set influx\.bucket/),
    });
    expect(await written({ ...options, bucket: 'there' })).toBe('');
  });

  test('at the address of another server: influx.url corrected', async () => {
    const other = await started((_request, response) => void response.writeHead(401).end());
    const own = await started((_request, response) => void response.writeHead(204).end());
    expect(await written({ url: `http://${other}` })).toMatch(
      /if another server answers at this address, correct influx\.url/,
    );
    expect(await written({ url: `http://${own}` })).toBe('');
  });
});

test('a range of --plan that ends before sync.history: --from as well', async () => {
  await using stage = await openStage();
  const env = {
    TIDEMARK_API_URL: stage.url,
    TIDEMARK_API_KEY: KEY,
    TIDEMARK_API_SHARE: '1',
    TIDEMARK_DATA_DIR: stage.dataDir,
  };
  const until = ['--plan', '--to', '2020-01-01'];
  expect(await runHere(until, { env })).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/give --from as well/),
  });
  expect(await runHere([...until, '--from', '2019-01-01'], { env })).toMatchObject({ code: 0 });
});

test.runIf(victoriaAvailable())(
  'a removed device leaves VictoriaMetrics by the request that --forget prints',
  async () => {
    await using victoria = await startVictoria();
    using place = scratch();
    const { store, close } = openStore(place.path);
    store.pinWorkspace({ apiId: 'ws', tag: 'ws' });
    store.commitPage(pageCommit({ deviceId: 'a"b', lines: [] }));
    store.markGone('a"b', 1);
    close();
    const atMs = Date.now() - 60_000;
    const body = `telemetry,device_id=a"b value=1 ${atMs}\ntelemetry,device_id=other value=2 ${atMs}`;
    const { status } = await fetch(`${victoria.url}/api/v2/write?precision=ms`, { method: 'POST', body });
    expect(status).toBe(204);
    await victoria.exported();
    const devices = async () => (await victoria.exported()).map(({ metric }) => metric['device_id']).toSorted();
    expect(await devices()).toEqual(['a"b', 'other']);
    const api = { TIDEMARK_API_URL: 'http://127.0.0.1:1/external/v1', TIDEMARK_API_KEY: KEY };
    const env = { ...api, TIDEMARK_DATA_DIR: place.path };
    const { stdout } = await runHere(['--forget', '--device', 'a"b'], { env });
    const [, path = '', selector = ''] =
      /To remove it from VictoriaMetrics, request (\S+) with\n {2}match\[\]=(.*)\n/.exec(stdout) ?? [];
    await (await fetch(`${victoria.url}${path}?${new URLSearchParams({ 'match[]': selector })}`)).text();
    expect(await devices()).toEqual(['other']);
  },
);

describe('the status page', () => {
  async function health(listen: string): Promise<string> {
    let text = '';
    const print = (words: string): void => {
      text += words;
    };
    const readFile = (): never => {
      throw new Error('no file');
    };
    const command = { mode: 'health', configFile: null, json: false } as const;
    await runHealthCommand(command, { environment: { TIDEMARK_LISTEN: listen }, readFile, print });
    return text;
  }

  test('has a fixed port for --health, and the same address as there', async () => {
    const page = await started((_request, response) => void response.end('{"healthy":true,"reasons":[]}'));
    expect(await health('127.0.0.1:0')).toMatch(/set a fixed port/);
    expect(await health(await closedAddress())).toMatch(
      /check that the daemon is running and uses the same listen address/,
    );
    expect(await health(page)).toBe('healthy\n');
  });

  test('needs the id of a device', async () => {
    await using served = await servePage();
    for (const [path, advice] of [
      ['device', /use \/device\?id=…/],
      ['device.json', /use \/device\.json\?id=…/],
    ] as const) {
      const without = await fetch(`${served.url}${path}`);
      expect([without.status, await without.text()]).toEqual([400, expect.stringMatching(advice)]);
      expect((await fetch(`${served.url}${path}?id=dev-00003`)).status).toBe(200);
    }
  });
});

test('a state that the daemon may not write is remedied by its rights, if it is its own', () => {
  using place = scratch();
  openStore(place.path).close();
  for (const name of readdirSync(place.path)) chmodSync(join(place.path, name), 0o400);
  chmodSync(place.path, 0o500);
  /** As for a user without the rights of root. */
  const write = (): void => {
    const paths = [place.path, ...readdirSync(place.path).map((name) => join(place.path, name))];
    if (paths.some((path) => (statSync(path).mode & 0o200) === 0))
      throw Object.assign(new Error('permission denied'), { code: 'EACCES' });
  };
  const report = refusal(() => explained(place.file, write));
  const [, command] = /Give this user write permission: (chmod u\+rwx .*), or set data_dir/.exec(report) ?? [];
  expect(report).toMatch(/, or set data_dir to another directory\.$/);
  using another = scratch();
  expect(refusal(() => openStore(another.path).close())).toBe('');
  execFileSync('/bin/sh', ['-c', command ?? 'false']);
  expect(refusal(() => explained(place.file, write))).toBe('');
});

test.runIf(process.getuid?.() === 0)('an empty data_dir of another user becomes this user’s by the command', () => {
  using place = scratch();
  const directory = join(place.path, "another's data");
  mkdirSync(directory);
  chownSync(directory, 65_534, 65_534);
  /** As for a user without the rights of root. */
  const write = (): void => {
    if (statSync(directory).uid !== process.getuid?.())
      throw Object.assign(new Error('permission denied'), { code: 'EACCES' });
  };
  const report = refusal(() => explained(join(directory, 'tidemark.db'), write));
  const [, command] = /Make this user the owner: (chown .*) \(in a container: of the mounted volume/.exec(report) ?? [];
  execFileSync('/bin/sh', ['-c', command ?? 'false']);
  expect([refusal(write), refusal(() => openStore(directory).close())]).toEqual(['', '']);
});

test.runIf(process.getuid?.() === 0)(
  'a key file that the daemon of systemd may not read gets its group and mode',
  () => {
    using place = scratch();
    const keyFile = '/etc/tidemark/home/tidemark_api_key';
    addPrograms(place.path, ['chgrp', 'chmod']);
    mkdirSync(join(place.path, 'etc', 'tidemark', 'home'), { recursive: true });
    writeFileSync(join(place.path, 'etc', 'group'), 'tidemark-home:x:4711:\n');
    writeFileSync(join(place.path, keyFile), 'the-next-key\n', { mode: 0o600 });
    /** As the daemon, whose group is that of its workspace. */
    const readFile = (path: string): string => {
      const { gid, mode } = statSync(join(place.path, path));
      if (gid !== 4711 || (mode & 0o040) === 0) throw Object.assign(new Error('refused'), { code: 'EACCES' });
      return readFileSync(join(place.path, path), 'utf8');
    };
    const reports: string[] = [];
    const onUnusable = (message: string): void => void reports.push(message);
    const key = createKeySource({ key: new Secret('the-key'), keyFile }, { readFile, secrets: [], onUnusable });
    for (let time = 0; time < 3; time += 1) key.checkFile?.();
    expect(key.hasChanged()).toBe(false);
    const [, commands = 'false'] = /\. Let the daemon read it: (sudo .*)$/.exec(reports[0] ?? '') ?? [];
    // This test runs as root.
    expect(runInside(place.path, commands.replaceAll('sudo ', ''))).toMatchObject({ status: 0, stderr: '' });
    expect([key.hasChanged(), statSync(join(place.path, keyFile)).mode & 0o777]).toEqual([true, 0o640]);
  },
);

test('a data_dir that this user cannot create is made by the command', () => {
  using place = scratch();
  const directory = join(place.path, 'var', "owner's data");
  const write = (): void => {
    if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true)
      throw Object.assign(new Error('permission denied'), { code: 'EACCES' });
  };
  const report = refusal(() => explained(join(directory, 'tidemark.db'), write));
  const [, command] = /As root: (mkdir -p .* && chown .*); or set data_dir to another directory/.exec(report) ?? [];
  execFileSync('/bin/sh', ['-c', command ?? 'false']);
  expect([statSync(directory).uid, refusal(() => openStore(directory).close())]).toEqual([process.getuid?.(), '']);
});

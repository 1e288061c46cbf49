/** The messages of `tidemark init` when a key, an API or a database is wrong: each names the next step. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { SimServer } from '../../../src/sim/server.ts';
import { startInfluxdb3 } from '../../support/influxdb3.ts';
import { acceptingInflux, init, KEY, nameless204, place, type Ran, startApi, TOKEN } from './support.ts';

let api: SimServer;
beforeAll(async () => {
  api = await startApi();
});
afterAll(async () => await api.close());

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

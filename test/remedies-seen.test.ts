/**
 * Advice that no test here can follow, because it concerns the API, a plan, a database or a proxy: the situation of each
 * and its text, where no other test shows both. `test/fixtures/remedies.ts` lists them.
 */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { classifyAnswer } from '../src/api/classify.ts';
import { noteFault, notePlan } from '../src/commands/check/findings.ts';
import { createNotes } from '../src/commands/check/report.ts';
import { loadConfig } from '../src/config/load.ts';
import { ApiFault, type ApiFaultKind } from '../src/core/faults.ts';
import type { Account } from '../src/core/records.ts';
import { createPointSource } from '../src/influx/point-source.ts';
import { openStore } from '../src/store/store.ts';
import { KEY, runHere } from './commands/check/support.ts';
import { pageCommit, refusal, scratch } from './store/support.ts';

const never = new AbortController().signal;

test.each<[ApiFaultKind, string]>([
  [
    'invalid-request',
    'If the sync works, ignore this: it uses other parameters. Otherwise please report this message.',
  ],
  ['no-api-access', 'Switch to a plan that includes API access.'],
])('--check: the API answers with %s', (kind, remedy) => {
  const notes = createNotes('api');
  noteFault(notes, 'telemetry:read', new ApiFault(kind, 'no', { request: 'GET /devices' }));
  expect(notes.lines).toMatchObject([{ remedy }]);
});

test('--check: the advice of a fault stands in the remedy alone', () => {
  const notes = createNotes('api');
  const answer = (status: number) => ({ status, headers: {}, body: Buffer.from('no') });
  const asked = { request: 'GET /devices', hasCursor: false, nowMs: 0, secret: KEY };
  for (const status of [301, 403, 404, 405]) {
    const read = classifyAnswer(answer(status), asked);
    if (read.kind === 'fault') noteFault(notes, 'devices:read', read.fault);
  }
  expect(notes.lines.map(({ message, remedy }) => [message, remedy])).toEqual([
    ['GET /devices: the response is a redirect (301)', expect.stringMatching(/^Run --check again\./)],
    [
      'the plan of this workspace has no API access (GET /devices: the API denies access (403))',
      'Switch to a plan that includes API access.',
    ],
    ['GET /devices: the server has no such endpoint (404)', expect.stringMatching(/^Correct api\.url: /)],
    [
      'granted, but the API rejected the request: GET /devices: the response does not look like one of the API (405)',
      'Check that api.url is right and that no proxy answers.',
    ],
  ]);
});

test('--check: the plan has no known limits', () => {
  const notes = createNotes('api');
  const plan = { planId: null, name: null, requestsPerMinute: null, requestsPerDay: null, historyMaxDays: null };
  notePlan(notes, { plan: { ...plan, maxDevicesPerPage: null }, devices: null, openAlerts: null } as Account);
  expect(notes.lines.flatMap(({ remedy }) => remedy ?? [])).toEqual([
    'Nothing to do: Tidemark derives a conservative limit from the responses.',
  ]);
});

test('the file of a secret on a disk that fails', () => {
  const readFile = (): never => {
    throw Object.assign(new Error('EIO'), { code: 'EIO' });
  };
  const environment = { TIDEMARK_API_URL: 'https://api.test/external/v1', TIDEMARK_API_KEY_FILE: '/key' };
  expect(refusal(() => loadConfig({ file: null, environment, readFile, nowMs: 0 }))).toMatch(
    /the file cannot be read \(EIO\): .*; check the path and its file system/,
  );
});

/** The problem that a comparison has with a server. */
async function problemWith(listener: RequestListener, kind: 'influxdb' | 'victoriametrics'): Promise<unknown> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const options = { name: 'influx', url, token: null, org: '', bucket: 'b', timeoutMs: 10_000 };
  return await createPointSource(options, kind, 'ws').points({ device: 'd', from: 0n, to: 9n }, () => {}, never);
}

test.each([
  ['influxdb', 'influx.url: the server that answers at /query is not an InfluxDB'],
  ['victoriametrics', 'influx.url: the server is not a VictoriaMetrics, or its export is disabled'],
] as const)('--verify: what answers is not the database: %s', async (kind, hint) => {
  expect(await problemWith((_request, response) => void response.end('<html>\n'), kind)).toMatchObject({ hint });
});

test('--verify: a proxy that buffers the whole answer', async () => {
  const long = 'x'.repeat(33 * 1024 * 1024);
  expect(await problemWith((_request, response) => void response.end(long), 'influxdb')).toMatchObject({
    hint: 'check the proxy between Tidemark and the database: it must not buffer responses',
  });
});

test('--forget: a device whose id cannot be printed, and one that can', async () => {
  using place = scratch();
  const { store, close } = openStore(place.path);
  store.pinWorkspace({ apiId: 'ws', tag: 'ws' });
  for (const deviceId of ['a\u202eb', 'plain']) {
    store.commitPage(pageCommit({ deviceId, lines: [] }));
    store.markGone(deviceId, 1);
  }
  close();
  const env = { TIDEMARK_API_URL: 'http://127.0.0.1:1/external/v1', TIDEMARK_API_KEY: KEY };
  const forget = async (device: string): Promise<string> =>
    (await runHere(['--forget', '--device', device], { env: { ...env, TIDEMARK_DATA_DIR: place.path } })).stdout;
  expect((await forget('a\u202eb')).replaceAll(/\s+/g, ' ')).toMatch(
    /cannot be printed: find the series of the device in the database and remove them there\./,
  );
  expect(await forget('plain')).toContain(
    'To remove it from VictoriaMetrics, request /api/v1/admin/tsdb/delete_series with\n  match[]={device_id="plain"}',
  );
});

/** Reads over a real socket: lines as they arrive, what a rejection means, and what ends the reading. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { DestinationKind } from '../../src/core/lines/dialect.ts';
import { Secret } from '../../src/core/secret.ts';
import type { ReadProblem } from '../../src/core/state/verify.ts';
import { createReader } from '../../src/influx/reader.ts';
import type { InfluxSinkOptions } from '../../src/influx/sink.ts';
import { influxdAvailable, startInfluxd } from '../support/influxd.ts';

const NEVER = new AbortController().signal;
const TOKEN = 'sekret-token-0123456789';

async function serve(answer: (response: ServerResponse, request: IncomingMessage) => void): Promise<string> {
  const server = createServer((request, response) => answer(response, request));
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

type Options = Partial<InfluxSinkOptions & { readonly kind: DestinationKind }>;

/** Reads everything that a server sends. */
async function readAll(
  url: string,
  {
    take = () => null,
    signal = NEVER,
    ...options
  }: Options & {
    readonly take?: (line: string) => ReadProblem | null;
    readonly signal?: AbortSignal;
  } = {},
): Promise<{ readonly lines: string[]; readonly problem: ReadProblem | null }> {
  const lines: string[] = [];
  const secret = new Secret(TOKEN);
  const given = {
    name: 'influx',
    url,
    token: secret,
    org: '',
    bucket: 'b',
    timeoutMs: 10_000,
    kind: 'influxdb',
  } as const;
  const read = createReader({ ...given, ...options });
  const problem = await read(
    '/query?q=1',
    (line) => {
      lines.push(line);
      return take(line);
    },
    signal,
  );
  return { lines, problem };
}

describe('an answer', () => {
  test('is handed on by lines, wherever its pieces are cut; blank lines are none', async () => {
    const whole = Buffer.from('first\n\nzweite Zeile mit ü\nlast without its end');
    for (const cut of [3, 6, whole.indexOf(0xc3) + 1, whole.length - 1]) {
      const url = await serve((response) => {
        response.write(whole.subarray(0, cut));
        setImmediate(() => response.end(whole.subarray(cut)));
      });
      expect(await readAll(url)).toEqual({
        lines: ['first', 'zweite Zeile mit ü', 'last without its end'],
        problem: null,
      });
    }
  });

  test('without a line is one as well', async () => {
    expect(await readAll(await serve((response) => response.end()))).toEqual({ lines: [], problem: null });
  });

  test('ends with the problem of a line, and its connection with it', async () => {
    const closed = Promise.withResolvers<void>();
    const url = await serve((response) => {
      response.on('close', () => closed.resolve());
      response.write('good\nbad\nmore\n');
    });
    const problem: ReadProblem = { kind: 'rejected', message: 'bad', hint: '' };
    const read = await readAll(url, { take: (line) => (line === 'bad' ? problem : null) });
    expect(read).toEqual({ lines: ['good', 'bad'], problem });
    await closed.promise;
  });
});

describe('the token', () => {
  const sentWith = async (options: Options): Promise<string | undefined> => {
    let sent: string | undefined;
    const url = await serve((response, { headers }) => {
      sent = headers.authorization;
      response.end();
    });
    await readAll(url, options);
    return sent;
  };

  test.each<[string, Options, string | undefined]>([
    ['as it is', {}, `Token ${TOKEN}`],
    [
      'as user and password, where that is required',
      { token: new Secret('u:pass'), kind: 'victoriametrics' },
      `Basic ${btoa('u:pass')}`,
    ],
    ['as it is, where it has no user', { kind: 'victoriametrics' }, `Token ${TOKEN}`],
    ['not at all, where there is none', { token: null }, undefined],
  ])('is sent %s', async (_how, options, sent) => {
    expect(await sentWith(options)).toBe(sent);
  });
});

describe('a rejection', () => {
  const rejectedWith = async (status: number, body: string): Promise<ReadProblem | null> => {
    const url = await serve((response) => response.writeHead(status).end(body));
    const { lines, problem } = await readAll(url);
    expect(lines).toEqual([]);
    return problem;
  };

  test.each([
    [401, '{"error":"no right"}', 'HTTP 401: no right', /^influx\.token needs read permission/],
    [403, '{"message":"no right"}', 'HTTP 403: no right', /^influx\.token needs read permission/],
    [404, 'not here', 'HTTP 404: not here', /DBRP mapping/],
    [400, '', 'HTTP 400', /^influx\.url: the server does not accept queries/],
  ])('with %i has a remedy', async (status, body, message, hint) => {
    expect(await rejectedWith(status, body)).toEqual({ kind: 'rejected', message, hint: expect.stringMatching(hint) });
  });

  test.each([
    [
      400,
      'influx.url: the server does not answer the export of VictoriaMetrics at this address; it is http://host:8428, of a cluster that of a proxy to vminsert and vmselect (docs/schema.md)',
    ],
    [403, 'influx.token: the server does not let this user read'],
  ])('of a VictoriaMetrics with %i names neither a bucket nor a right that it does not have', async (status, hint) => {
    const url = await serve((response) => response.writeHead(status).end());
    expect((await readAll(url, { kind: 'victoriametrics' })).problem).toMatchObject({ hint });
  });

  test.each([408, 429, 500, 503])('with %i is temporary', async (status) => {
    expect(await rejectedWith(status, '')).toEqual({ kind: 'down', message: `HTTP ${status}`, hint: '' });
  });

  test('for too many files is no outage, but leads to a shorter range', async () => {
    const problem = await rejectedWith(500, '{"error":"Query would exceed file limit of 432"}');
    expect(problem).toMatchObject({
      kind: 'rejected',
      isTooWide: true,
      hint: expect.stringMatching(
        /^start InfluxDB 3 with a larger --query-file-limit, or request a shorter range \(--from, --to\)/,
      ),
    });
  });

  test('is shown without the token, and not at any length', async () => {
    const problem = await rejectedWith(400, `${TOKEN} ${encodeURIComponent(TOKEN)} ${'x'.repeat(100_000)}`);
    expect(problem?.message).toContain('[secret]');
    expect(problem?.message).not.toContain(TOKEN);
    expect(problem?.message.length).toBeLessThan(250);
  });
});

describe('servers that do not answer', () => {
  test('ends the reading after the time limit, before the answer and within it', async () => {
    const silent = await serve(() => {});
    const silentLater = await serve((response) => void response.write('line\n'));
    for (const url of [silent, silentLater]) {
      const { problem } = await readAll(url, { timeoutMs: 200 });
      expect(problem).toEqual({ kind: 'down', message: 'no answer within influx.timeout', hint: '' });
    }
  });

  test('is named where nothing listens', async () => {
    const { problem } = await readAll('http://127.0.0.1:1');
    expect(problem).toMatchObject({ kind: 'down', message: expect.stringMatching(/influx\.url|refused/) });
  });

  test('an abort is thrown, not reported', async () => {
    const stop = new AbortController();
    const url = await serve(() => stop.abort(new Error('stopped')));
    await expect(readAll(url, { signal: stop.signal })).rejects.toThrow('stopped');
    await expect(readAll(url, { signal: stop.signal })).rejects.toThrow('stopped');
  });
});

test.runIf(influxdAvailable())('a user of InfluxDB 1.8 that may not read may do so after GRANT READ', async () => {
  await using database = await startInfluxd({ databases: [], env: { INFLUXDB_HTTP_AUTH_ENABLED: 'true' } });
  const order = async (q: string): Promise<void> => {
    const login = q.includes('ALL PRIVILEGES') ? {} : { authorization: `Basic ${btoa('admin:admins-password')}` };
    const body = new URLSearchParams({ q });
    const answer = await fetch(`${database.url}/query`, { method: 'POST', headers: login, body });
    expect(await answer.text(), q).not.toContain('error');
  };
  await order(`CREATE USER "admin" WITH PASSWORD 'admins-password' WITH ALL PRIVILEGES`);
  await order('CREATE DATABASE "b"');
  await order(`CREATE USER "reader" WITH PASSWORD 'readers-password'`);
  const path = `/query?db=b&q=${encodeURIComponent('SHOW MEASUREMENTS')}`;
  const given = { token: new Secret('reader:readers-password'), org: '', bucket: 'b', timeoutMs: 10_000, basic: true };
  const read = createReader({ name: 'influx', kind: 'influxdb', url: database.url, ...given });
  const problem = async (): Promise<ReadProblem | null> => await read(path, () => null, NEVER);
  expect(await problem()).toMatchObject({
    hint: expect.stringMatching(/or GRANT READ \(or ALL\) on the database to its user/),
  });
  await order('GRANT READ ON "b" TO "reader"');
  expect(await problem()).toBeNull();
});

/** `tidemark init` on a terminal: its prompts, and what it does with the answers. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { SimServer } from '../../../src/sim/server.ts';
import { startInfluxdb3 } from '../../support/influxdb3.ts';
import { acceptingInflux, init, KEY, modeOf, place, startApi, TOKEN } from './support.ts';

let api: SimServer;
beforeAll(async () => {
  api = await startApi();
});
afterAll(async () => await api.close());

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

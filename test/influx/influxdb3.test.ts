/** InfluxDB 3 as a destination: what its recorded answers mean, what `--check` finds, and reading past its file limit. */
import { describe, expect, test } from 'vitest';
import { Secret } from '../../src/core/secret.ts';
import { DAY_NS, MINUTE_NS } from '../../src/core/time.ts';
import { readAnswer } from '../../src/influx/answers.ts';
import { readDatabases } from '../../src/influx/facts.ts';
import { createPointSource } from '../../src/influx/point-source.ts';
import { probeDestination } from '../../src/influx/probe.ts';
import { createInfluxSink } from '../../src/influx/sink.ts';
import { ANSWERS, bodyOf, type Influxdb3, startInfluxdb3 } from '../support/influxdb3.ts';

const never = new AbortController().signal;

const optionsOf = (server: Influxdb3, bucket: string, token = server.token) => ({
  name: 'influx',
  url: server.url,
  token: new Secret(token),
  org: '',
  bucket,
  timeoutMs: 5000,
});
const probe = async (server: Influxdb3, bucket: string, { token = server.token, line = null as string | null } = {}) =>
  await probeDestination(
    {
      ...optionsOf(server, bucket, token),
      kind: 'auto',
      point: line === null ? null : { influxdb: line, victoriametrics: line },
    },
    never,
  );

const FIVE = ['a', 'b', 'c', 'd', 'e'];

test.each(ANSWERS.writes)('the recorded answer to a write: $case', ({ status, means, hint, ...recorded }) => {
  const body = bodyOf({ status, ...recorded });
  const answer = readAnswer({ status, headers: {}, body }, (text) => text);
  expect(answer.kind).toBe(means);
  if (hint !== undefined) expect(answer).toMatchObject({ hint: expect.stringContaining(`${hint}:`) });
});

describe('the findings of a probe', () => {
  test('a database that is there: an empty write is rejected for being empty, so the token is right', async () => {
    await using server = await startInfluxdb3({ databases: ['home'] });
    expect(await probe(server, 'home')).toMatchObject({
      kind: 'influxdb',
      write: { kind: 'accepted' },
      isMissing: false,
      retentionMs: null,
      isQueried: true,
    });
  });

  test('one that does not exist: it is reported, and none is created', async () => {
    await using server = await startInfluxdb3({ databases: ['home'] });
    expect(await probe(server, 'hmoe')).toMatchObject({ kind: 'influxdb', isMissing: true });
    expect([...server.databases]).toEqual(['home']);
  });

  test('one that it cannot create: the sixth of Core, or a name that it rejects', async () => {
    await using server = await startInfluxdb3({ databases: FIVE });
    const cannot = 'this InfluxDB 3 has no database "f" and cannot create one: it has 5 databases, and Core allows 5';
    expect(await probe(server, 'f')).toMatchObject({
      isMissing: true,
      write: { kind: 'blocked', message: cannot, hint: expect.stringContaining('influx.bucket: ') },
    });
    expect(await probe(server, 'e')).toMatchObject({ isMissing: false, write: { kind: 'accepted' } });
    await using other = await startInfluxdb3({ databases: FIVE, build: 'Enterprise' });
    expect(await probe(other, 'f')).toMatchObject({ isMissing: true, write: { kind: 'accepted' } });
    for (const name of ['a b/c?', '_own', '/a', 'é']) {
      expect(await probe(other, name)).toMatchObject({
        isMissing: true,
        write: { kind: 'blocked', message: expect.stringContaining('a name has only letters') },
      });
    }
    for (const name of ['Home_1-b', 'db/rp', '2026']) {
      expect(await probe(other, name)).toMatchObject({ isMissing: true, write: { kind: 'accepted' } });
    }
    expect([...server.databases, ...other.databases]).toEqual([...FIVE, ...FIVE]);
  });

  test('a sixth one, with a point: the bucket is the fault', async () => {
    await using server = await startInfluxdb3({ databases: FIVE });
    expect(await probe(server, 'f', { line: 'm v=1 1' })).toMatchObject({
      write: {
        kind: 'blocked',
        hint: expect.stringContaining(
          'influx.bucket: this InfluxDB has no database of this name and has reached its limit of databases',
        ),
      },
    });
  });

  test('a wrong token: it is the fault', async () => {
    await using server = await startInfluxdb3({ databases: ['home'] });
    expect(await probe(server, 'home', { token: 'wrong-token' })).toMatchObject({
      write: { kind: 'blocked', hint: expect.stringContaining('influx.token') },
    });
  });

  test.each([
    ['[{"iox::database":"a"},{"iox::database":"b"}]', ['a', 'b']],
    ['[{"deleted":false,"iox::database":"a"},{"deleted":true,"iox::database":"b-20260101"}]', ['a']],
    ['{"databases":["a","b"]}', ['a', 'b']],
    ['["a"]', ['a']],
    ['{"databases":"a"}', null],
    ['[1]', null],
    ['[]', null],
    ['[{"name":"a"}]', null],
    ['{"status":"success"}', null],
    ['404 page not found', null],
    [null, null],
  ])('the list of databases: %j', (text, names) => {
    expect(readDatabases(text)).toEqual(names);
  });
});

test.each(['write', 'writeText'] as const)(
  '%s packs all lines into what InfluxDB 3 reads: one member of gzip',
  async (how) => {
    await using server = await startInfluxdb3({ databases: ['home'] });
    const sink = createInfluxSink(optionsOf(server, 'home'));
    // More than the buffers of gzip hold, of what cannot be packed well.
    const lines = Array.from({ length: 20_000 }, (_, nth) => `telemetry value=${Math.sin(nth)} ${nth}`);
    const answer =
      how === 'write'
        ? await sink.write(lines, never)
        : await sink.writeText?.(Buffer.from(`${lines.join('\n')}\n`), never);
    expect(answer).toEqual({ kind: 'accepted' });
    expect(server.stored.length).toBe(lines.length);
    expect(server.stored).toEqual(lines);
  },
);

describe('a line that is rejected', () => {
  const write = async (server: Influxdb3, lines: readonly string[]) =>
    await createInfluxSink(optionsOf(server, 'home')).write(lines, never);

  test('is explained by the path that names the column, and means what it meant', async () => {
    await using server = await startInfluxdb3({ databases: ['home'] });
    expect(await write(server, ['alert value="x" 1'])).toEqual({
      kind: 'rejected',
      message: expect.stringMatching(/invalid column type for column 'value', expected .*float, got .*string/),
      retention: false,
      conflict: true,
    });
    expect(server.explained).toEqual(['alert value="x" 1\n']);
  });

  test('among others is not: which of them is at fault has to be found first', async () => {
    await using server = await startInfluxdb3({ databases: ['home'] });
    const answer = await write(server, ['alert value="x" 1', 'telemetry value=1 1']);
    expect(answer).toMatchObject({
      kind: 'rejected',
      conflict: true,
      isUnexplained: true,
      message: expect.stringContaining('parsing for line protocol'),
    });
    expect(server.explained).toEqual([]);
  });
});

describe('reading past the file limit', () => {
  const day = 24 * 60;
  const read = async (server: Influxdb3, from: bigint, to: bigint) => {
    const source = createPointSource(optionsOf(server, 'home'), 'influxdb', 'ws');
    const found: string[] = [];
    const problem = await source.points(
      { device: 'd', from, to },
      (stamp, _, field) => found.push(`${stamp} ${field}`),
      never,
    );
    return { problem, found, source };
  };
  const expected = (minutes: readonly number[]) =>
    minutes.map((minute) => `${BigInt(minute) * MINUTE_NS} value=${minute}`);

  test('in days, each point once and in order, and what was learnt holds', async () => {
    const minutes = Array.from({ length: 6 * 144 }, (_, index) => 5 + index * 10);
    await using server = await startInfluxdb3({ databases: ['home'], minutes });
    const { problem, found, source } = await read(server, 0n, 6n * DAY_NS);
    expect(problem).toBeNull();
    expect(found).toEqual(expected(minutes));
    expect(server.asked.map((each) => each.minutes)).toEqual([6 * day, ...Array.from({ length: 6 }, () => day)]);
    await source.points({ device: 'd', from: 0n, to: 2n * DAY_NS }, () => {}, never);
    expect(server.asked.slice(7).map((each) => each.minutes)).toEqual([day, day]);
  });

  test('in halves of a day where a day is too many', async () => {
    const minutes = Array.from({ length: 2 * 144 }, (_, index) => 5 + index * 10);
    await using server = await startInfluxdb3({ databases: ['home'], minutes, mostFiles: 40 });
    const { problem, found } = await read(server, 0n, 2n * DAY_NS);
    expect(problem).toBeNull();
    expect(found).toEqual(expected(minutes));
    expect(server.asked.filter(({ answered }) => !answered).map((each) => each.minutes)).toEqual([
      2 * day,
      day,
      day / 2,
    ]);
  });

  test('a server that rejects also the shortest range is a rejection with a hint, not an outage, and ends', async () => {
    await using server = await startInfluxdb3({ databases: ['home'], minutes: [5], mostFiles: 0 });
    const { problem } = await read(server, 0n, DAY_NS);
    expect(problem).toMatchObject({
      kind: 'rejected',
      message: expect.stringContaining('exceed file limit of 432'),
      hint: expect.stringContaining('--query-file-limit'),
    });
    expect(server.asked.length).toBeLessThan(12);
    // A shorter range without those files.
    expect(await read(server, 10n * MINUTE_NS, DAY_NS)).toMatchObject({ problem: null, found: [] });
    // As with a larger --query-file-limit.
    await using larger = await startInfluxdb3({ databases: ['home'], minutes: [5], mostFiles: 500 });
    expect((await read(larger, 0n, DAY_NS)).problem).toBeNull();
  });
});

describe('the devices that a database has', () => {
  const nowMinute = Math.floor(Date.now() / 60_000);
  const devicesOf = async (minutes: readonly number[], mostFiles = 432) => {
    await using server = await startInfluxdb3({ databases: ['home'], minutes, mostFiles });
    const source = createPointSource(optionsOf(server, 'home'), 'influxdb', 'ws');
    return [await source.devices(never), await source.hasAny(never)];
  };

  test('are requested with a time: without one, InfluxDB 3 reads only the last 24 hours', async () => {
    expect(await devicesOf([nowMinute - 3 * 24 * 60])).toEqual([['d'], true]);
  });

  const day = 24 * 60;
  const old = (days: number) => Array.from({ length: days * 144 }, (_, index) => nowMinute - 2 * day - 10 * index);

  test('where that needs too many files, in ranges back from now, also those of years ago', async () => {
    expect(await devicesOf([nowMinute, ...old(30)])).toEqual([['d'], true]);
    expect(await devicesOf(old(30))).toEqual([['d'], true]);
    expect(await devicesOf(old(4), 40)).toEqual([['d'], true]);
    await using server = await startInfluxdb3({ databases: ['home'], minutes: old(300) });
    const source = createPointSource(optionsOf(server, 'home'), 'influxdb', 'ws');
    expect(await source.hasAny(never)).toBe(true);
    // The first range with a point is enough.
    expect(server.asked.length).toBeLessThan(6);
    server.asked.length = 0;
    expect(await source.devices(never)).toEqual(['d']);
    expect(server.asked.at(-1)?.minutes).toBeGreaterThan(50 * 365 * day);
    expect(server.asked.length).toBeLessThan(600);
  });

  test('a server that rejects also the shortest range is a rejection, and ends', async () => {
    const [devices, hasAny] = await devicesOf(old(1), 0);
    expect([devices, hasAny]).toMatchObject([
      { kind: 'rejected', isTooWide: true },
      { kind: 'rejected', isTooWide: true },
    ]);
  });
});

/**
 * `--export` as a real process: its output equals the simulated data, for any reader, alone and beside a daemon.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseCsv } from '../support/csv.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { judge } from '../support/judge.ts';
import { parseReferenceLine, type ReferenceLine } from '../support/reference-parser.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { MAIN, openBench, openStage, type Stage, type StageOptions, until } from './support.ts';

const bench = sharedBench(openBench);

const HOSTILE: StageOptions = {
  historyMs: 2 * 3_600_000,
  devices: [
    { deviceId: 'walk', intervalMs: 20_000, jitter: 0.5 },
    { deviceId: 'tied', intervalMs: 60_000, traits: ['ties'] },
    { deviceId: 'od,d =d"e\\vice', intervalMs: 60_000, traits: ['hostile', 'oddValues', 'ties'] },
    { deviceId: '=cmd|calc!A1', intervalMs: 300_000, traits: ['hostile'] },
  ],
};

/** Without what opens the API: an export needs none of it. */
const NO_KEY = { TIDEMARK_API_KEY: undefined, TIDEMARK_API_URL: undefined, TIDEMARK_API_SHARE: undefined };

async function filled(options: StageOptions = {}): Promise<{ stage: Stage; startedMs: number }> {
  const stage = await openStage(options);
  const startedMs = Date.now();
  const { code, stderr } = await stage.run(['--once']);
  expect(code, stderr).toBe(0);
  return { stage, startedMs };
}

/** The output of an export. */
async function exported(stage: Stage, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await stage.run(['--export', ...args], { env: NO_KEY });
  expect(code, stderr).toBe(0);
  expect(stderr).not.toContain('CANARY');
  return stdout;
}

const linesOf = (text: string): string[] => text.split('\n').slice(0, -1);

function readingsOf(lines: readonly string[]): ReferenceLine[] {
  return lines.map(parseReferenceLine).filter(({ measurement }) => measurement === 'telemetry');
}

function nsOf(time: string): bigint {
  const [, whole = '', fraction = ''] = /^(.{19})(?:\.(\d{1,9}))?Z$/.exec(time) ?? [];
  return BigInt(Date.parse(`${whole}Z`)) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
}

const harmful = (text: string): string => (/^\s*[=+\-@]/.test(text) ? `'${text}` : text);

describe.runIf(influxdAvailable())('--export of the simulated data', () => {
  test('lp goes into a database as it is, and is the seed there, with everything else that was archived', async () => {
    const { stage, startedMs } = await filled({ bench, ...HOSTILE });
    await using _stage = stage;
    const text = await exported(stage, 'lp');
    const copy = `${stage.database}_copy`;
    await bench.influxd.query('', `CREATE DATABASE ${copy}`);
    expect(await bench.influxd.write(copy, text)).toBe(204);
    const range = {
      fromNs: BigInt(startedMs - 2 * 3_600_000 + 5000) * 1_000_000n,
      toNs: BigInt(startedMs - 122_500) * 1_000_000n,
    };
    const ids = stage.simulator.world.deviceIds(Date.now());
    const verdict = await judge({ influxd: bench.influxd, database: copy, simulator: stage.simulator }, range, ids);
    expect([verdict.missing.slice(0, 5), verdict.invented.slice(0, 5)]).toEqual([[], []]);
    expect(verdict.expected).toBeGreaterThan(1000);
    const measurements = ['device', 'alert', 'alert_state', 'workspace', 'coverage', 'coverage_hour'];
    for (const measurement of measurements) {
      const query = `SELECT * FROM ${measurement}`;
      expect(await bench.influxd.query(copy, query), measurement).toEqual(
        await bench.influxd.query(stage.database, query),
      );
    }
    expect(linesOf(text).length).toBe(new Set(linesOf(text)).size);
  });

  test('csv and ndjson, read by the book, are the same readings', async () => {
    const { stage } = await filled({ bench, ...HOSTILE });
    await using _stage = stage;
    const lp = readingsOf(linesOf(await exported(stage, 'lp')));
    const wanted = lp.map(({ tags, fields, at }) => ({ tags, at, value: [...fields.values()][0] }));
    const [header, ...rows] = parseCsv(await exported(stage, 'csv'));
    expect(header).toEqual(['time', 'device_id', 'device_name', 'sensor', 'value', 'type']);
    expect(
      rows.map(([time = '', id, name, sensor, value, type]) => [nsOf(time), id, name, sensor, value, type]),
    ).toEqual(
      wanted.map(({ tags, at, value }) => [
        at,
        ...['device_id', 'device_name', 'sensor'].map((key) => harmful(tags.get(key) ?? '')),
        typeof value === 'string' ? harmful(value) : String(value),
        typeof value === 'string' ? 'text' : typeof value,
      ]),
    );
    const objects = linesOf(await exported(stage, 'ndjson')).map((line) => JSON.parse(line));
    expect(objects.map(({ time, device_id: id, sensor, value }) => [nsOf(time), id, sensor, value])).toEqual(
      wanted.map(({ tags, at, value }) => [at, tags.get('device_id'), tags.get('sensor'), value]),
    );
    expect(rows.some(([, id]) => id?.startsWith("'=cmd"))).toBe(true);
  });

  test('beside a daemon it reads on while that writes, does not lock and leaves no trace', async () => {
    await using stage = await openStage({ bench });
    const daemon = stage.start([], { env: { TIDEMARK_LISTEN: '127.0.0.1:0' } });
    await until('something is held', async () => {
      if (!daemon.stderr().includes('"status_page"')) return false;
      const { stdout } = await stage.run(['--export', 'lp'], { env: NO_KEY });
      return linesOf(stdout).length > 500;
    });
    for (let time = 0; time < 3; time += 1) {
      const lines = linesOf(await exported(stage, 'lp'));
      expect(new Set(lines).size).toBe(lines.length);
      const byDevice = Map.groupBy(readingsOf(lines), ({ tags }) => tags.get('device_id'));
      for (const readings of byDevice.values()) {
        expect(readings.every(({ at }, index) => index === 0 || at >= (readings[index - 1]?.at ?? at))).toBe(true);
      }
    }
    expect(daemon.child.exitCode).toBeNull();
    daemon.child.kill('SIGTERM');
    expect((await daemon.ended).code).toBe(0);
  });
});

describe('a reader of the export', () => {
  test('may close the pipe after ten lines: no failure, no message', async () => {
    const { stage } = await filled({ historyMs: 12 * 3_600_000 });
    await using _stage = stage;
    for (const format of ['csv', 'ndjson', 'lp']) {
      const command = `"${process.execPath}" "${MAIN}" --export ${format} 2>err.txt | head -10; echo "\${PIPESTATUS[0]}"; cat err.txt`;
      const { PATH, NODE_COMPILE_CACHE } = process.env;
      const env = { PATH, NODE_COMPILE_CACHE, ...stage.env };
      const child = spawn('/bin/bash', ['-c', command], { cwd: stage.directory, env });
      let text = '';
      child.stdout.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      await once(child, 'close');
      const [code, ...errors] = text.replaceAll('\r', '').split('\n').slice(10, -1);
      expect([code, errors]).toEqual(['0', []]);
    }
  });

  test('a reader that stops reading makes the export wait; a signal ends it', async () => {
    const { stage } = await filled({ historyMs: 24 * 3_600_000, devices: [{ deviceId: 'much', intervalMs: 5000 }] });
    await using _stage = stage;
    const { PATH, NODE_COMPILE_CACHE } = process.env;
    const env = { PATH, NODE_COMPILE_CACHE, ...stage.env };
    const child = spawn(process.execPath, [MAIN, '--export', 'ndjson'], { env });
    await once(child.stdout, 'readable');
    let errors = '';
    child.stderr.setEncoding('utf8').on('data', (part: string) => {
      errors += part;
    });
    const ended = once(child, 'exit');
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(child.exitCode, 'it waits').toBeNull();
    child.kill('SIGTERM');
    expect((await ended)[0]).toBe(3);
    await until('it says so', () => errors.includes('Export stopped before its end'));
  });
});

describe('its arguments', () => {
  test('exports a range of one device; a range without readings gives a header and a message', async () => {
    const { stage } = await filled();
    await using _stage = stage;
    const all = linesOf(await exported(stage, 'ndjson')).map((line) => JSON.parse(line));
    const walked = all.filter(({ device_id: id }) => id === 'walk');
    const [from, to] = [walked[20].time, walked[80].time];
    const part = linesOf(await exported(stage, 'ndjson', '--device', 'walk', '--from', from, '--to', to));
    expect(part.map((line) => JSON.parse(line))).toEqual(
      walked.filter(({ time }) => nsOf(time) >= nsOf(from) && nsOf(time) < nsOf(to)),
    );
    const none = await stage.run(['--export', 'csv', '--to', '2020-01-01'], { env: NO_KEY });
    expect([none.code, none.stdout]).toEqual([0, 'time,device_id,device_name,sensor,value,type\r\n']);
    expect(none.stderr).toContain('The archive has no points of these devices');
  });

  describe('with a mistake', () => {
    let stage: Stage;
    beforeAll(async () => {
      ({ stage } = await filled({ historyMs: 600_000 }));
    });
    afterAll(async () => await stage[Symbol.asyncDispose]());

    test.each<[string[], number, RegExp]>([
      [['--device', 'wlak'], 2, /--device: the state has no device with that id or name\. Similar: walk\./],
      [['--device', 'CANARY-of-a-key'], 2, /with that id or name\. Known: /],
      [['--from', 'CANARY'], 2, /--from: expected a date/],
      [['--from', '2d', '--to', '3d'], 2, /--from: expected a time before --to/],
      [['--destination', 'influx'], 2, /--destination cannot be used with --export/],
    ])('%j is refused with the reason', async (args, exitCode, words) => {
      const { code, stdout, stderr } = await stage.run(['--export', 'csv', ...args], { env: NO_KEY });
      expect([code, stdout]).toEqual([exitCode, '']);
      expect(stderr).toMatch(words);
      expect(stderr).not.toContain('CANARY');
    });
  });

  test('needs a state, and names that', async () => {
    await using stage = await openStage();
    const { code, stdout, stderr } = await stage.run(['--export', 'csv'], { env: NO_KEY });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/There is no state in .* yet\. If a daemon/);
    expect(stderr).toContain(join(stage.directory, 'state'));
  });
});

/**
 * The parts of the bench count right: a tiny run of the built program, and the arithmetic beside it.
 * Nothing is timed here.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { encodeLine, identityTag } from '../../src/core/lines/line-protocol.ts';
import { MINUTE_MS } from '../../src/core/time.ts';
import { programFile } from '../support/built-program.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { measureBacklog } from './backlog.ts';
import { formatRows, isWithin, runFloor, runPlainClient } from './compared/compare.ts';
import { backfill, checkLines, fewestRequests, newestMsOf, requestUse } from './figures.ts';
import { memoryFigures, requirePolls } from './idle.ts';
import { measureKilled } from './killed.ts';
import { measureLiveDay } from './live-day.ts';
import { ownBytesOf, privateBytesOf, startNullInflux, startOrigin } from './parts.ts';
import { measureRealInflux } from './real-influx.ts';
import { formatTable, judgeFigure, median } from './table.ts';
import { plainly, ticksOf, undisturbed } from './undisturbed.ts';
import {
  countWithin,
  deviceIdOf,
  expectedLines,
  nameOf,
  oldestMs,
  readingTexts,
  type WorkspaceSize,
} from './workspace.ts';

const PROGRAM = programFile();
const SIZE: WorkspaceSize = { devices: 2, readings: 450, intervalMs: MINUTE_MS, newestMs: newestMsOf(Date.now()) };

describe('the workspace of the bench', () => {
  test('has the readings of a window, both ends included, newest first', () => {
    const { newestMs } = SIZE;
    const window = { fromMs: newestMs - 5 * MINUTE_MS, toMs: newestMs - MINUTE_MS, limit: 3 };
    expect(countWithin(SIZE, window.fromMs, window.toMs)).toBe(5);
    const times = readingTexts(SIZE, 1, window).map((text) => Date.parse(JSON.parse(text).recorded_at));
    expect(times).toEqual([1, 2, 3].map((back) => newestMs - back * MINUTE_MS));
    expect(countWithin(SIZE, 0, newestMs + MINUTE_MS), 'and none outside of its span').toBe(450);
    expect(countWithin(SIZE, newestMs + 1, newestMs + MINUTE_MS)).toBe(0);
  });

  test('expects the lines that the program would write', () => {
    const all = { fromMs: oldestMs(SIZE), toMs: SIZE.newestMs, limit: SIZE.readings };
    let sum = 0;
    let lines = 0;
    for (let device = 0; device < SIZE.devices; device += 1) {
      for (const text of readingTexts(SIZE, device, all)) {
        const { recorded_at, values }: { recorded_at: string; values: Record<string, number> } = JSON.parse(text);
        for (const [sensor, value] of Object.entries(values)) {
          sum = (sum + crc32(telemetryLine({ device, sensor, value, ms: Date.parse(recorded_at) }))) >>> 0;
          lines += 1;
        }
      }
    }
    expect(expectedLines(SIZE)).toEqual({ lines, sum });
  });
});

function telemetryLine(at: { device: number; sensor: string; value: number; ms: number }): string {
  const deviceId = deviceIdOf(at.device);
  const line = encodeLine({
    measurement: 'telemetry',
    tags: [
      ['device_id', identityTag(deviceId)],
      ['sensor', identityTag(at.sensor)],
      ['device_name', identityTag(nameOf(deviceId))],
      ['workspace_id', identityTag('bench')],
    ],
    fields: [['value', at.value]],
    at: BigInt(at.ms) * 1_000_000n,
  });
  if (line === null) throw new Error('no line');
  return line;
}

describe('a run of the bench', () => {
  test('finds every line delivered, and the requests that were made', async () => {
    const run = await backfill({ size: SIZE, delivers: true, program: PROGRAM });
    expect(run.readings).toBe(900);
    expect(run.peakBytes).toBeGreaterThan(20_000_000);
    expect(run.peakPrivateBytes).toBeLessThan(run.peakBytes);
    const { requests, worst } = requestUse(run.counts.windows);
    expect(requests).toBe(run.counts.telemetryRequests);
    expect(requests).toBeGreaterThanOrEqual(fewestRequests(SIZE));
    expect(fewestRequests(SIZE)).toBe(2 * 3);
    expect(worst).toBeLessThanOrEqual(1);
  });

  test('fails where a line is missing, there twice or another one', async () => {
    using sink = await startNullInflux();
    const expected = expectedLines({ ...SIZE, devices: 1, readings: 2 });
    const lines = [0, 1].flatMap((back) => {
      const [text = ''] = readingTexts(SIZE, 0, { fromMs: 0, toMs: SIZE.newestMs - back * MINUTE_MS, limit: 1 });
      const { values }: { values: Record<string, number> } = JSON.parse(text);
      const ms = SIZE.newestMs - back * MINUTE_MS;
      return Object.entries(values).map(([sensor, value]) => telemetryLine({ device: 0, sensor, value, ms }));
    });
    const post = async (body: string): Promise<void> => {
      expect((await fetch(`${sink.url}/api/v2/write`, { method: 'POST', body })).status).toBe(204);
    };
    await post(lines.slice(1).join('\n'));
    expect(() => checkLines({ lines: 5, sum: 0 }, expected)).toThrow('5 lines');
    await post(`${lines[0]}\nalert,alert_id=1 open=1 1\n`);
    const whole = await sink.counts();
    expect(whole.otherLines).toBe(1);
    checkLines(whole.telemetry, expected);
    await post(`${lines[0]}\n`);
    const twice = await sink.counts();
    expect(() => checkLines(twice.telemetry, expected)).toThrow('7 lines');
    expect(() => checkLines({ ...whole.telemetry, sum: whole.telemetry.sum ^ 1 }, expected)).toThrow('the sum');
  });

  test('has an API that pages by cursor within the window of the first page', async () => {
    using origin = await startOrigin(SIZE);
    const headers = { authorization: 'Bearer bench_key' };
    const before = new Date(SIZE.newestMs - MINUTE_MS).toISOString();
    let seen = 0;
    let next = '';
    do {
      const url = `${origin.url}/devices/${deviceIdOf(1)}/telemetry?limit=200&before=${before}${next}`;
      const page: { data: unknown[]; next_cursor?: string } = JSON.parse(await (await fetch(url, { headers })).text());
      seen += page.data.length;
      next = page.next_cursor === undefined ? '' : `&cursor=${page.next_cursor}`;
    } while (next !== '');
    expect(seen).toBe(449);
    const { windows, pagesAgain } = await origin.counts();
    expect(windows).toEqual([{ readings: 449, windows: 1, requests: 3, most: 3 }]);
    expect(pagesAgain).toBe(0);
    await fetch(`${origin.url}/devices/${deviceIdOf(1)}/telemetry?limit=200`, { headers });
    expect(await origin.counts(), 'and counts what it serves again').toMatchObject({
      pagesAgain: 1,
      pagesAgainOfRun: 1,
    });
    // A run begins with the account: the page was served to two runs, once each.
    await fetch(`${origin.url}/account`, { headers });
    await fetch(`${origin.url}/devices/${deviceIdOf(1)}/telemetry?limit=200`, { headers });
    await fetch(`${origin.url}/devices/${deviceIdOf(1)}/telemetry?limit=200`, { headers });
    expect(await origin.counts()).toMatchObject({ pagesAgain: 3, pagesAgainOfRun: 2 });
  });
});

describe('the ratios of the bench', () => {
  const say = (): void => {};

  test('count the pages after a kill, of a backfill that is complete in the end', async () => {
    const size = { ...SIZE, devices: 4, readings: 2000 };
    const [again] = await measureKilled({ program: PROGRAM, size, kills: 2, say });
    expect(again?.values[0]).toBeLessThanOrEqual(again?.wanted ?? 0);
  });

  test('count the polls of some hours that bring something new', async () => {
    const [polls, lists, offSchedule] = await measureLiveDay({ hours: 2, part: 0.01 }, say);
    expect(polls?.values[0]).toBeGreaterThanOrEqual(1);
    expect(polls?.values[0]).toBeLessThan(1.1);
    expect(lists?.values[0]).toBeGreaterThan(0);
    expect(offSchedule?.values).toEqual([0]);
  });

  test('measure how soon an outage is caught up', async () => {
    const [fromEnd, fromAnswer] = await measureBacklog({ devices: 2, outages: 1 }, say);
    expect(fromAnswer?.values[0]).toBeGreaterThan(0);
    expect(fromEnd?.values[0]).toBeGreaterThan(fromAnswer?.values[0] ?? Number.POSITIVE_INFINITY);
  });

  test.runIf(influxdAvailable())(
    'compare the delivery with its floor and the same bodies, which hold every value',
    async () => {
      const said: string[] = [];
      const rates = await measureRealInflux({
        program: PROGRAM,
        size: SIZE,
        runs: 1,
        say: (text) => said.push(text),
        guard: plainly,
      });
      expect(rates.map(({ values }) => values.length === 1 && values.every((value) => value > 0))).toEqual(
        Array.from({ length: 8 }, () => true),
      );
      expect(said.filter((text) => /p95 [\d.]+\) to an answer, .* front \d.* database \d/.test(text))).toHaveLength(8);
    },
  );
});

describe('the baselines of the program', () => {
  test('sends every line as well: the plain client, and the floor', async () => {
    for (const { cpuMs, wallMs } of [await runPlainClient(SIZE), await runFloor(SIZE, true)]) {
      expect(cpuMs).toBeGreaterThan(0);
      expect(wallMs).toBeGreaterThan(0);
    }
  });

  test('stands in the table by ratios of the middle ones, with what is above its most marked', () => {
    const row = { figure: 'CPU', unit: 'µs', values: [30, 20, 40], beside: { floor: [10], old: [60, 59] } };
    const within = { ...row, most: { floor: 3 } };
    const beyond = { ...row, figure: 'idle', most: { own: 29, floor: 2.5 } };
    const once = { ...row, figure: 'peak', most: {}, mostOfAny: 39 };
    expect([within, beyond, once].map(isWithin)).toEqual([true, false, false]);
    expect(formatRows([within, beyond, once]).split(/\n| {2,}/)).toEqual([
      ...['figure', 'median', 'spread', '× floor', '× old'],
      ...['CPU', '30.0 µs', '20.0 to 40.0', '3.00', '0.50'],
      ...['idle', '30.0 µs * (29)', '20.0 to 40.0', '3.00 * (2.5)', '0.50'],
      ...['peak', '30.0 µs', '20.0 to 40.0 * (39)', '3.00', '0.50', ''],
    ]);
  });
});

describe('the memory of an idle daemon', () => {
  test("is the private memory, without the pages of Node's file", async () => {
    const directory = mkdtempSync(join(tmpdir(), 'tidemark-bench-'));
    const file = join(directory, 'node');
    cpSync(process.execPath, file);
    const child = spawn(file, ['-e', 'setInterval(() => {}, 1000); console.log()'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    try {
      await once(child.stdout, 'data');
      const bytes = ownBytesOf(child.pid);
      expect(bytes).toBeGreaterThan(5_000_000);
      // Nobody else has this file in memory: its pages belong to this process.
      expect(privateBytesOf(child.pid) - bytes).toBeGreaterThan(10_000_000);
    } finally {
      child.kill('SIGKILL');
      await once(child, 'close');
      rmSync(directory, { recursive: true });
    }
  });

  test('is reported by the largest of the looks, and by the middle one', () => {
    const looks = { privateLooks: [41e6, 43e6, 40e6] };
    const [most, middle] = memoryFigures('idle', looks, 42).map(judgeFigure);
    expect(most).toMatchObject({ figure: 'idle: most private memory', measured: 43, isMet: false });
    expect(middle).toMatchObject({ figure: 'idle: median private memory', measured: 41, isMet: true });
  });
});

test('a daemon that polls less than its fleet reports is no figure', () => {
  expect(() => requirePolls({ pollsPerHour: 1700 }, 30)).toThrow('1700 polls an hour, where 1800 are due');
  expect(() => requirePolls({ pollsPerHour: 1790 }, 30)).not.toThrow();
});

describe('the table of the bench', () => {
  const figure = { figure: 'speed', unit: 'readings/s', wanted: 100, better: 'more', values: [90, 200, 110] } as const;

  test('judges by the middle of the runs, or by the largest', () => {
    const peak = { ...figure, better: 'less', values: [90, 101, 91] } as const;
    expect(judgeFigure(peak)).toMatchObject({ measured: 91, isMet: true });
    expect(judgeFigure({ ...peak, isLargest: true })).toMatchObject({ measured: 101, isMet: false });
    expect(median([3, 1, 2])).toBe(2);
    expect(median([1, 2])).toBe(1.5);
    expect(judgeFigure(figure)).toMatchObject({ measured: 110, isMet: true, ratio: 1.1 });
    expect(judgeFigure({ ...figure, better: 'less' })).toMatchObject({ isMet: false });
    expect(judgeFigure({ ...figure, better: 'less', values: [100] })).toMatchObject({ isMet: true, ratio: 1 });
  });

  test('names the missed figures', () => {
    const table = formatTable([judgeFigure(figure), judgeFigure({ ...figure, figure: 'slow', values: [50] })]);
    expect(table).toContain('at least 100 readings/s');
    expect(table.split('\n').filter((line) => line.includes('MISS'))).toHaveLength(1);
  });
});

describe('a measurement that the host has disturbed', () => {
  /** Each measurement wants 1000 ticks, of which the host takes `stolen`. */
  function host(stolen: readonly number[]) {
    const said: string[] = [];
    let [runs, rests] = [0, 0];
    const sum = (): number => stolen.slice(0, runs).reduce((a, b) => a + b, 0);
    const parts = {
      say: (text: string) => void said.push(text),
      ticks: () => ({ busy: 1000 * runs - sum(), stolen: sum() }),
      rest: () => {
        rests += 1;
        return Promise.resolve();
      },
    };
    const measure = (): Promise<number> => {
      runs += 1;
      return Promise.resolve(runs);
    };
    return { run: async () => await undisturbed('own', measure, parts), said, rests: () => rests };
  }

  test('is measured again after a rest, until the host takes at most 2 % of the processor time', async () => {
    const { run, said, rests } = host([300, 21, 20]);
    expect(await run()).toBe(3);
    expect(said).toEqual([
      'own: the host took 30 % of the processor time; measured again',
      'own: the host took 2 % of the processor time; measured again',
    ]);
    expect(rests()).toBe(2);
  });

  test('counts after ten others, and a line names its disturbance', async () => {
    const { run, said, rests } = host(Array.from({ length: 11 }, () => 100));
    expect(await run()).toBe(11);
    expect(said.at(-1)).toBe('own: the host took 10 % of the processor time; it counts all the same');
    expect([said.length, rests()]).toEqual([11, 10]);
  });

  test('the ticks are those of all cores; waiting is no work', () => {
    const stat = 'cpu  1 2 3 4000 5000 6 7 8 0 0\ncpu0 9 9 9 9 9 9 9 9 0 0\n';
    expect(ticksOf(stat)).toEqual({ busy: 19, stolen: 8 });
    expect(ticksOf('')).toEqual({ busy: 0, stolen: 0 });
  });
});

/**
 * What became of a batch is told in the lines of the log, in whatever dialect it was sent.
 */
import { expect, test } from 'vitest';
import type { Sink } from '../../src/core/ports.ts';
import { createBatchSize, createControlLines, sendBatch } from '../../src/delivery/send-batch.ts';
import { scratchStore } from '../store/support.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

const AT_NS = 1_700_000_000_000_000_000n;

for (const kind of ['influxdb', 'victoriametrics'] as const) {
  test(`a line that ${kind} refuses is quarantined as it stands in the log`, async () => {
    using state = scratchStore();
    const line = (n: number): string => `telemetry,device_id=d,sensor=s value=${n} ${AT_NS + BigInt(n) * 1_000_000n}`;
    const lines = [1, 2, 3, 4].map(line);
    const sink: Sink = {
      name: 'influx',
      write: (sent) =>
        Promise.resolve(
          sent.some((each) => each.includes('value=3'))
            ? { kind: 'refused', words: 'no', retention: false }
            : { kind: 'accepted' },
        ),
    };
    const clock = createVirtualClock(Number(AT_NS / 1_000_000n));
    const parts = { store: state.store, clock, controls: createControlLines() };
    const { resolution, rejected } = await sendBatch(parts, { kind, sink }, lines, new AbortController().signal);
    expect(resolution.resolved).toBe(4);
    expect(rejected.map((each) => each.line)).toEqual([line(3)]);
  });
}

test('the control lines are those that were accepted last, of each kind', () => {
  const controls = createControlLines();
  const line = (kind: string, n: number): string => `${kind},device_id=d value=${n} ${n}`;
  const whole = (resolved: number) => ({
    resolved,
    rejected: [],
    blocked: null,
    acceptedLines: resolved,
    requests: 1,
    tooLarge: false,
  });
  const first = [line('alert', 1), line('telemetry', 2), line('telemetry', 3)];
  controls.remember(first, whole(first.length));
  expect(controls.latestLike(line('telemetry', 9))).toBe(line('telemetry', 3));
  expect(controls.newest()).toBe(line('telemetry', 3));
  controls.remember([line('device', 4)], whole(1));
  controls.remember([line('alert', 5)], whole(1));
  expect(controls.latestUnlike(line('telemetry', 9)), 'a kind that comes again is the latest').toBe(line('alert', 5));
});

test('a batch is halved after one that was too large, and grows again after many that passed', () => {
  const size = createBatchSize(1000);
  size.sent({ lines: 1000, tooLarge: true, isWhole: false });
  size.sent({ lines: 500, tooLarge: true, isWhole: false });
  expect(size.lines()).toBe(250);
  const pass = (times: number, lines: number): void => {
    for (let nth = 0; nth < times; nth += 1) size.sent({ lines, tooLarge: false, isWhole: true });
  };
  pass(1000, 200);
  expect(size.lines(), 'smaller batches show nothing').toBe(250);
  pass(64, 250);
  expect(size.lines()).toBe(500);
  pass(64, 500);
  pass(1000, 1000);
  expect(size.lines(), 'never more than configured').toBe(1000);
});

test('a line of a time that no clock has reached goes to quarantine once the clock of the API is known', async () => {
  using state = scratchStore();
  const line = (at: bigint): string => `workspace,workspace_id=w devices=1 ${at}`;
  const lines = [line(AT_NS), line(AT_NS + 2n), line(AT_NS + 1n)];
  const sent: string[] = [];
  const write: Sink['write'] = (part) => {
    sent.push(...part);
    return Promise.resolve({ kind: 'accepted' });
  };
  const clock = createVirtualClock(0);
  const served = { kind: 'influxdb', sink: { name: 'influx', write } } as const;
  const send = async (latest: bigint | null) => {
    sent.length = 0;
    const parts = { store: state.store, clock, controls: createControlLines(), latestNs: () => latest };
    return await sendBatch(parts, served, lines, new AbortController().signal);
  };
  const { resolution, rejected } = await send(AT_NS + 1n);
  expect(resolution).toMatchObject({ resolved: 3, blocked: null });
  expect(sent).toEqual([lines[0], lines[2]]);
  expect(rejected).toMatchObject([{ index: 1, words: expect.stringContaining('later than every clock') }]);
  expect((await send(null)).rejected).toEqual([]);
  expect(sent).toEqual(lines);
});

test('a line with a time that no database can store goes to quarantine, and the others are sent', async () => {
  using state = scratchStore();
  const line = (at: string): string => `workspace,workspace_id=w devices=1 ${at}`;
  const lines = [line('1700000000000000000'), line('253402300799000000000'), line('1700000060000000000')];
  const sent: string[] = [];
  const write: Sink['write'] = (part) => {
    sent.push(...part);
    return Promise.resolve({ kind: 'accepted' });
  };
  const clock = createVirtualClock(Number(AT_NS / 1_000_000n));
  const parts = { store: state.store, clock, controls: createControlLines() };
  const served = { kind: 'influxdb', sink: { name: 'influx', write } } as const;
  for (const part of [lines, lines.slice(1, 2)]) {
    sent.length = 0;
    const { resolution, rejected } = await sendBatch(parts, served, part, new AbortController().signal);
    expect(resolution).toMatchObject({ resolved: part.length, blocked: null });
    expect(sent).toEqual(part.filter((each) => each !== lines[1]));
    expect(rejected).toMatchObject([{ line: lines[1], words: expect.stringContaining('1677 to 2262') }]);
  }
});

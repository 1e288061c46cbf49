/**
 * The result of a batch is reported in the lines of the log, in whatever dialect it was sent.
 */
import { gunzipSync } from 'node:zlib';
import { expect, test, vi } from 'vitest';
import type { Sink, WriteAnswer } from '../../src/core/ports.ts';
import {
  createControlLines,
  packBatch,
  type Sent,
  type SentKept,
  sendBatch,
  sendKept,
} from '../../src/delivery/send-batch.ts';
import { packText } from '../../src/influx/connection.ts';
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
            ? { kind: 'rejected', message: 'no', retention: false }
            : { kind: 'accepted' },
        ),
    };
    const clock = createVirtualClock(Number(AT_NS / 1_000_000n));
    const parts = { store: state.store, clock, controls: createControlLines() };
    const { resolution, rejected } = await sendBatch(parts, { kind, sink }, { lines }, new AbortController().signal);
    expect(resolution.resolved).toBe(4);
    expect(rejected.map((each) => each.line)).toEqual([line(3)]);
  });
}

test('the control lines are those that were accepted last, of each kind', () => {
  const controls = createControlLines();
  const line = (kind: string, n: number): string => `${kind},device_id=d value=${n} ${n}`;
  const first = [line('alert', 1), line('telemetry', 2), line('telemetry', 3)];
  controls.remember(first);
  expect(controls.latestLike(line('telemetry', 9))).toBe(line('telemetry', 3));
  expect(controls.newest()).toBe(line('telemetry', 3));
  controls.remember([line('device', 4)]);
  controls.remember([line('alert', 5)]);
  expect(controls.latestUnlike(line('telemetry', 9)), 'a kind that comes again is the latest').toBe(line('alert', 5));
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
    return await sendBatch(parts, served, { lines }, new AbortController().signal);
  };
  const { resolution, rejected } = await send(AT_NS + 1n);
  expect(resolution).toMatchObject({ resolved: 3, blocked: null });
  expect(sent).toEqual([lines[0], lines[2]]);
  expect(rejected).toMatchObject([{ index: 1, message: expect.stringContaining('in the future') }]);
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
    const { resolution, rejected } = await sendBatch(parts, served, { lines: part }, new AbortController().signal);
    expect(resolution).toMatchObject({ resolved: part.length, blocked: null });
    expect(sent).toEqual(part.filter((each) => each !== lines[1]));
    expect(rejected).toMatchObject([{ line: lines[1], message: expect.stringContaining('1677 to 2262') }]);
  }
});

/** A database behind a sink that accepts lines and texts alike, and the data that it received. */
function textSink(answer: (lines: readonly string[]) => WriteAnswer) {
  const requests: { readonly by: 'text' | 'lines'; readonly lines: readonly string[] }[] = [];
  const take = (by: 'text' | 'lines', lines: readonly string[]): Promise<WriteAnswer> => {
    requests.push({ by, lines });
    return Promise.resolve(answer(lines));
  };
  const sink: Sink = {
    name: 'influx',
    pack: packText,
    write: (lines) => take('lines', lines),
    writeText: async (text) => {
      const bytes = 'gzip' in text ? gunzipSync(await text.gzip) : Buffer.from(text);
      return await take('text', bytes.toString('utf8').split('\n').slice(0, -1));
    },
  };
  return { sink, requests };
}

/** Lines of the log in three blocks, and the batch of all of them. */
function keptBatch(state: ReturnType<typeof scratchStore>, stamps: readonly bigint[] = []) {
  const line = (n: number, at = AT_NS + BigInt(n) * 1_000_000n): string => `device,device_id=dü${n} value=${n} ${at}`;
  const blocks = [[line(1), line(2)], [line(3)], [line(4), ...stamps.map((at, index) => line(5 + index, at))]];
  for (const lines of blocks) state.store.append(lines, 'live');
  return { lines: blocks.flat(), batch: state.store.read('live', { block: 0, line: 0 }, { lines: 99, bytes: 9e9 }) };
}

for (const [name, answer] of [
  ['all is accepted', () => ({ kind: 'accepted' })],
  ['the database is down', () => ({ kind: 'later', message: 'down', waitMs: null })],
  ['it is blocked', () => ({ kind: 'blocked', message: 'no', hint: '', needsPerson: true, waitMs: null })],
  ['a line is refused', refusing],
] as const satisfies readonly (readonly [string, (lines: readonly string[]) => WriteAnswer])[]) {
  test(`a batch that is sent packed has the same result as its lines, and the same controls: ${name}`, async () => {
    using state = scratchStore();
    const { lines, batch } = keptBatch(state);
    const clock = createVirtualClock(Number(AT_NS / 1_000_000n));
    const outcomes = [];
    for (const way of ['packed', 'kept', 'lines'] as const) {
      const { sink, requests } = textSink(answer);
      const parts = { store: state.store, clock, controls: createControlLines() };
      const served = { kind: 'influxdb', sink } as const;
      const { signal } = new AbortController();
      const sent: Sent & Partial<SentKept> =
        way === 'lines'
          ? await sendBatch(parts, served, { lines }, signal)
          : await sendKept(
              parts,
              served,
              { batch, packed: way === 'packed' ? packBatch(served, batch) : undefined },
              signal,
            );
      const { resolution, rejected, missing } = sent;
      // As the delivery does, when its next request is under way.
      parts.controls.remember(sent.controls ?? []);
      const controls = [parts.controls.newest(), ...lines.map((line) => parts.controls.latestLike(line))];
      outcomes.push({ resolution, rejected, missing, controls, requests: requests.map((each) => each.lines) });
      expect(requests[0]?.by).toBe(way === 'lines' ? 'lines' : 'text');
    }
    expect(outcomes[0]).toEqual(outcomes[2]);
    expect(outcomes[1]).toEqual(outcomes[2]);
  });
}

function refusing(lines: readonly string[]): WriteAnswer {
  const isRefused = lines.some((line) => line.includes('value=3'));
  return isRefused ? { kind: 'rejected', message: 'no', retention: false } : { kind: 'accepted' };
}

test('the lines of a batch are not read again and again while the database is down', async () => {
  using state = scratchStore();
  const { batch } = keptBatch(state);
  const { sink, requests } = textSink(() => ({ kind: 'later', message: 'down', waitMs: null }));
  const parts = { store: state.store, clock: createVirtualClock(0), controls: createControlLines() };
  const kept = { ...batch, lines: [] };
  const lines = vi.spyOn(kept, 'lines', 'get');
  const { resolution } = await sendKept(
    parts,
    { kind: 'influxdb', sink },
    { batch: kept },
    new AbortController().signal,
  );
  expect(resolution).toMatchObject({ resolved: 0, blocked: { message: 'down' } });
  expect(requests).toHaveLength(1);
  expect(lines).not.toHaveBeenCalled();
});

test('the text of a packed batch is not used any more during the request, also where lines are refused', async () => {
  using state = scratchStore();
  const { lines, batch } = keptBatch(state);
  const { sink, requests } = textSink(refusing);
  const served = { kind: 'influxdb', sink } as const;
  const packed = packBatch(served, batch);
  const parts = { store: state.store, clock: createVirtualClock(0), controls: createControlLines() };
  const sent = sendKept(parts, served, { batch, packed }, new AbortController().signal);
  await packed?.text.gzip;
  batch.text.fill(0);
  expect((await sent).rejected).toMatchObject([{ line: lines[2] }]);
  expect(requests[0]?.lines).toEqual(lines);
});

test('a batch is sent line by line if one time may not be sent, or to another dialect', async () => {
  using state = scratchStore();
  const late = AT_NS + 3_600_000_000_000n;
  const { lines, batch } = keptBatch(state, [late]);
  const { sink, requests } = textSink(() => ({ kind: 'accepted' }));
  const clock = createVirtualClock(Number(AT_NS / 1_000_000n));
  const send = async (kind: 'influxdb' | 'victoriametrics', latest: bigint | null) => {
    requests.length = 0;
    const parts = { store: state.store, clock, controls: createControlLines(), latestNs: () => latest };
    return await sendKept(parts, { kind, sink }, { batch }, new AbortController().signal);
  };
  const { rejected } = await send('influxdb', late - 1n);
  expect(rejected.map((each) => each.line)).toEqual(lines.slice(-1));
  expect(requests).toEqual([{ by: 'lines', lines: lines.slice(0, -1) }]);
  await send('victoriametrics', null);
  expect(requests.map(({ by }) => by)).toEqual(['lines']);
  await send('influxdb', late);
  expect(requests).toEqual([{ by: 'text', lines }]);
});

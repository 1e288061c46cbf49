/**
 * What became of a batch is told in the lines of the log, in whatever dialect it was sent.
 */
import { expect, test } from 'vitest';
import type { Sink } from '../../src/core/ports.ts';
import { createControlLines, sendBatch } from '../../src/delivery/send-batch.ts';
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

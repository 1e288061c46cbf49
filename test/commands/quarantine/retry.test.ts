/** A line leaves the quarantine only where it is accepted, or certainly too old. */
import { describe, expect, test } from 'vitest';
import { createLogControls, retryLines } from '../../../src/commands/quarantine/retry.ts';
import type { Sink, WriteAnswer } from '../../../src/core/ports.ts';
import { pageCommit, type ScratchStore, scratchStore } from '../../store/support.ts';
import { createVirtualClock } from '../../support/virtual-clock.ts';

const AT_MS = 1_700_000_000_000;

function line(n: number, measurement = 'telemetry'): string {
  return `${measurement},device_id=d,sensor=s value=${n} ${BigInt(AT_MS + n) * 1_000_000n}`;
}

/** A log of ten lines that a destination has acknowledged; those with these numbers are in quarantine. */
function quarantined(...numbers: readonly number[]): ScratchStore & { readonly id: number } {
  const state = scratchStore();
  const all = Array.from({ length: 10 }, (_, n) => line(n));
  state.store.append(all, 'live');
  const { id } = state.store.useDestination('influx', 'here');
  state.store.acknowledge({
    destinationId: id,
    lane: 'live',
    from: { block: 0, line: 0 },
    to: state.store.endOf('live'),
    rejected: numbers.map((n) => ({ line: line(n), message: 'first' })),
    missing: [],
    atMs: 1,
  });
  return Object.assign(state, { id });
}

/** Sends all of the quarantine again, to a destination that answers by a rule. */
async function retry(state: ReturnType<typeof quarantined>, answer: (sent: readonly string[]) => WriteAnswer) {
  const sink: Sink = { name: 'influx', write: (sent) => Promise.resolve(answer(sent)) };
  const destination = { id: state.id, name: 'influx', kind: 'influxdb', sink } as const;
  const controls = createLogControls(state.store, destination);
  const parts = { store: state.store, clock: createVirtualClock(AT_MS), destination, controls };
  const outcome = await retryLines(parts, state.store.quarantine.page(0), new AbortController().signal);
  const left = state.store.quarantine.page(0).map(({ content, reason }) => [content, reason]);
  return { outcome, left };
}

const ACCEPTED: WriteAnswer = { kind: 'accepted' };

describe('lines of the quarantine that are sent again', () => {
  test('leave it where they are accepted', async () => {
    using state = quarantined(2, 5);
    const { outcome, left } = await retry(state, () => ACCEPTED);
    expect(outcome).toEqual({ accepted: 2, rejected: 0, beyond: 0, blocked: null });
    expect(left).toEqual([]);
  });

  test('stay with the new words where they are refused again, and do not keep others', async () => {
    using state = quarantined(2, 5, 7);
    const { outcome, left } = await retry(state, (sent) =>
      sent.includes(line(5)) ? { kind: 'rejected', message: 'second', retention: false } : ACCEPTED,
    );
    expect(outcome).toEqual({ accepted: 2, rejected: 1, beyond: 0, blocked: null });
    expect(left).toEqual([[line(5), expect.stringContaining('second')]]);
  });

  test.each<[string, WriteAnswer, RegExp]>([
    ['does not answer', { kind: 'later', message: 'no answer', waitMs: null }, /^no answer; /],
    [
      'refuses the token',
      { kind: 'blocked', message: 'HTTP 401', hint: 'look at the token' },
      /^HTTP 401; look at the token$/,
    ],
  ])('all stay as they are where the destination %s', async (_what, answer, words) => {
    using state = quarantined(2, 5);
    const { outcome, left } = await retry(state, () => answer);
    expect(outcome).toEqual({ accepted: 0, rejected: 0, beyond: 0, blocked: expect.stringMatching(words) });
    expect(left).toEqual([
      [line(2), 'first'],
      [line(5), 'first'],
    ]);
  });

  test('are sent with the newest count of their hour', async () => {
    using state = quarantined(2);
    const [hour, later] = [0n, 3_600_000_000_000n];
    const count = (readings: number, at = hour): string =>
      `coverage_hour,device_id=d,device_name=d,workspace_id=w readings=${readings} ${at}`;
    for (const [revision, sideLines] of [[count(4), count(9, later)], [count(6)]].entries()) {
      state.store.commitPage(pageCommit({ revision, sideLines }));
    }
    const rejected = [count(4), count(9, later)].map((each) => ({ line: each, message: 'first' }));
    const from = { block: 0, line: 0 };
    const to = state.store.endOf('history');
    state.store.acknowledge({ destinationId: state.id, lane: 'history', from, to, rejected, missing: [], atMs: 1 });
    const sent: string[] = [];
    const { outcome, left } = await retry(state, (lines) => {
      sent.push(...lines);
      return ACCEPTED;
    });
    expect(sent).toEqual([line(2), count(6), count(9, later)]);
    expect([outcome.accepted, left]).toEqual([3, []]);
  });

  test.each<[string, WriteAnswer, number]>([
    ['is sent after the former one', ACCEPTED, 0],
    ['keeps the former one in quarantine until it is sent', { kind: 'later', message: 'busy', waitMs: null }, 2],
  ])('a count that is corrected while they are sent %s', async (_what, answer, kept) => {
    using state = quarantined(2);
    const count = (readings: number): string =>
      `coverage_hour,device_id=d,device_name=d,workspace_id=w readings=${readings} 0`;
    const commitCount = (revision: number, readings: number): void =>
      void state.store.commitPage(pageCommit({ revision, sideLines: [count(readings)] }));
    commitCount(0, 4);
    const from = { block: 0, line: 0 };
    const to = state.store.endOf('history');
    const rejected = [{ line: count(4), message: 'first' }];
    state.store.acknowledge({ destinationId: state.id, lane: 'history', from, to, rejected, missing: [], atMs: 1 });
    const sent: string[] = [];
    const { left } = await retry(state, (lines) => {
      sent.push(...lines);
      if (!lines.includes(count(4))) return answer;
      commitCount(1, 6);
      return ACCEPTED;
    });
    expect(sent).toEqual([line(2), count(4), count(6)]);
    expect(left).toHaveLength(kept);
  });

  test('are none: nothing is sent', async () => {
    using state = quarantined();
    const { outcome } = await retry(state, () => {
      throw new Error('asked');
    });
    expect(outcome).toEqual({ accepted: 0, rejected: 0, beyond: 0, blocked: null });
  });
});

test('a control line is the last of the log that was accepted, of the same kind or of another', () => {
  using state = quarantined(9);
  state.store.append([line(20)], 'live');
  const controls = createLogControls(state.store, {
    id: state.id,
    name: 'influx',
    kind: 'influxdb',
    sink: { name: 'influx', write: () => Promise.resolve(ACCEPTED) },
  });
  expect(controls.latestLike(line(99)), 'not the rejected one, not one that was never sent').toBe(line(8));
  expect(controls.latestLike(line(99, 'device'))).toBeNull();
  expect(controls.latestUnlike(line(99, 'device'))).toBe(line(8));
  expect(controls.newest()).toBe(line(8));
});

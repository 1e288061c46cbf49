/**
 * Points that a database drops for their age: found by what it reports, with a proof, or not at all.
 */
import { describe, expect, test } from 'vitest';
import type { WriteAnswer } from '../../src/core/ports.ts';
import { HOUR_MS, msToNs } from '../../src/core/time.ts';
import { judge, type Verdict } from '../../src/delivery/destination.ts';
import { findTooOld, missingForAge, timeOf } from '../../src/delivery/too-old.ts';

const NOW = msToNs(100 * HOUR_MS);
const ACCEPTED: WriteAnswer = { kind: 'accepted' };
const dropped = (count: number): WriteAnswer => ({
  kind: 'rejected',
  message: 'too old',
  retention: true,
  dropped: count,
});

/** A run of lines at these hours, of which the database reports `reported` as dropped, and answers in turn. */
function runOf(
  hours: readonly number[],
  reported: number,
  answers: readonly WriteAnswer[],
  control: string | null = null,
) {
  const sent: (readonly number[])[] = [];
  const left = [...answers];
  const next = (): Promise<Verdict> => Promise.resolve(judge(left.shift() ?? ACCEPTED));
  const run = {
    times: hours.map((hour) => msToNs(hour * HOUR_MS)),
    dropped: reported,
    send: (places: readonly number[]) => {
      sent.push(places);
      return next();
    },
    sendLine: next,
    ages: { newestAccepted: () => control, now: () => NOW },
  };
  return { sent, found: findTooOld(run) };
}

describe('the lines that are too old', () => {
  test('are the oldest ones, where all others are accepted', async () => {
    const { sent, found } = runOf([5, 1, 9, 2], 2, [ACCEPTED]);
    expect(await found).toEqual({ tooOld: [1, 3], accepted: [0, 2] });
    expect(sent).toEqual([[0, 2]]);
  });

  test('are more of them where another has grown too old meanwhile, but not without end', async () => {
    expect(await runOf([1, 2, 3], 1, [dropped(1), ACCEPTED]).found).toEqual({ tooOld: [0, 1], accepted: [2] });
    const growing = runOf([1, 2, 3, 4, 5], 1, [dropped(1), dropped(1), dropped(1)]);
    expect(await growing.found).toBe('unclear');
    expect(growing.sent).toHaveLength(3);
  });

  test('are unclear where the limit would lie between lines of one time, or the count matches no run', async () => {
    expect(await runOf([1, 1, 2], 1, []).found).toBe('unclear');
    expect(await runOf([1, 2], 0, []).found).toBe('unclear');
    expect(await runOf([1, 2], 3, []).found).toBe('unclear');
  });

  test('are all of them only if they are older than any retention, and a newer line is accepted again', async () => {
    const newer = `m v=1 ${msToNs(50 * HOUR_MS)}`;
    const all = { tooOld: [0, 1], accepted: [] };
    expect(await runOf([1, 2], 2, [ACCEPTED], newer).found).toEqual(all);
    expect(await runOf([1, 2], 2, []).found).toEqual(all);
    expect(await runOf([1, 99.5], 2, [ACCEPTED], newer).found).toBe('unclear');
    const refused: WriteAnswer = { kind: 'rejected', message: 'no', retention: false };
    expect(await runOf([1, 2], 2, [refused], newer).found).toBe('unclear');
  });

  test('are not looked for in a database that is down or needs a person', async () => {
    const later: WriteAnswer = { kind: 'later', message: 'HTTP 503', waitMs: 7000 };
    expect(await runOf([1, 2], 1, [later]).found).toMatchObject({
      message: 'HTTP 503',
      needsPerson: false,
      waitMs: 7000,
    });
    const held: WriteAnswer = { kind: 'blocked', message: 'HTTP 401', hint: 'the token' };
    expect(await runOf([1, 2], 1, [held]).found).toMatchObject({ hint: 'the token', needsPerson: true });
  });
});

test('missing points are one range for each device, half-open, with the id behind its tag', () => {
  const lines = ['m,device_id=a v=1 30', 'm,device_id=b~0a1b2c3d v=1 5', 'm,device_id=a v=1 10', 'm v=1 7'];
  expect(missingForAge(lines, (tag) => (tag.startsWith('b') ? 'b,c' : tag))).toEqual([
    { deviceId: 'a', fromNs: 10n, toNs: 31n, reason: 'beyond_retention', points: 2 },
    { deviceId: 'b,c', fromNs: 5n, toNs: 6n, reason: 'beyond_retention', points: 1 },
    { deviceId: '', fromNs: 7n, toNs: 8n, reason: 'beyond_retention', points: 1 },
  ]);
  expect(timeOf('m,device_id=a v="a b" -30')).toBe(-30n);
});

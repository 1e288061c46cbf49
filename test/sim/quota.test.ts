/** The quota: two windows of four possible kinds, counted for the complete workspace. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createSimQuota, type WindowKind } from '../../src/sim/quota.ts';
import { createSettings } from '../../src/sim/settings.ts';
import { createSimulator } from '../support/faulty-simulator.ts';
import { askInProcess, createManualClock, ORIGIN_MS, smallSimulator, smallWorld } from './support.ts';

const KINDS: readonly WindowKind[] = ['fixed', 'first-request', 'sliding', 'bucket'];

/** The rest of the minute by the simplest count, given all times at which one was spent. */
const MODELS: Record<Exclude<WindowKind, 'bucket'>, (spent: readonly number[], atMs: number) => number> = {
  fixed: (spent, atMs) => spent.filter((ms) => Math.floor(ms / 60_000) === Math.floor(atMs / 60_000)).length,
  sliding: (spent, atMs) => spent.filter((ms) => ms > atMs - 60_000).length,
  'first-request': (spent, atMs) => {
    let begin = -Infinity;
    let count = 0;
    for (const ms of spent) {
      if (ms >= begin + 60_000) [begin, count] = [ms, 0];
      count += 1;
    }
    return atMs < begin + 60_000 ? count : 0;
  },
};

const gaps = fc.array(fc.oneof(fc.integer({ min: 0, max: 3000 }), fc.integer({ min: 0, max: 90_000 })), {
  maxLength: 60,
});

test.each(['fixed', 'sliding', 'first-request'] as const)('%s: the rest equals that of a plain count', (kind) => {
  fc.assert(
    fc.property(gaps, (waits) => {
      const quota = createSimQuota(createSettings({ quota: { window: kind }, plan: { requestsPerMinute: 7 } }));
      const spent: number[] = [];
      let atMs = ORIGIN_MS;
      for (const wait of waits) {
        atMs += wait;
        const { left } = quota.state(atMs).minute;
        expect(left).toBe(Math.max(0, 7 - MODELS[kind](spent, atMs)));
        if (left > 0) {
          quota.spend(1, atMs);
          spent.push(atMs);
        }
      }
    }),
  );
});

test('bucket: never more than its size plus the refill, and that much on demand', () => {
  fc.assert(
    fc.property(gaps, (waits) => {
      const quota = createSimQuota(createSettings({ quota: { window: 'bucket' }, plan: { requestsPerMinute: 7 } }));
      const spent: number[] = [];
      let atMs = ORIGIN_MS;
      for (const wait of waits) {
        atMs += wait;
        for (; quota.state(atMs).minute.left > 0; spent.push(atMs)) quota.spend(1, atMs);
      }
      for (const [first, fromMs] of spent.entries()) {
        for (let last = first; last < spent.length; last += 1) {
          const flowed = (((spent[last] ?? 0) - fromMs) * 7) / 60_000;
          expect(last - first + 1).toBeLessThanOrEqual(7 + flowed + 1e-6);
        }
      }
      if (waits.length > 0) expect(spent.length).toBeGreaterThanOrEqual(7);
    }),
  );
});

test.each(KINDS)(
  '%s: the wait that is reported is exact: then one is allowed, and a millisecond sooner none',
  (kind) => {
    fc.assert(
      fc.property(gaps, fc.integer({ min: 1, max: 9 }), (waits, others) => {
        const plan = { requestsPerMinute: 5, requestsPerDay: 12 };
        const quota = createSimQuota(createSettings({ quota: { window: kind }, plan }));
        let atMs = ORIGIN_MS;
        for (const wait of waits) {
          atMs += wait;
          quota.spend(1, atMs);
        }
        quota.spend(others, atMs);
        for (const which of ['minute', 'day'] as const) {
          const { waitMs, left } = quota.state(atMs)[which];
          expect(waitMs === 0).toBe(left > 0);
          if (waitMs > 0 && kind !== 'bucket') expect(quota.state(atMs + waitMs - 1)[which].left).toBe(0);
          if (which === 'day' && kind !== 'bucket') expect(quota.state(atMs + waitMs)[which].left).toBeGreaterThan(0);
        }
        let { minute, day } = quota.state(atMs);
        for (let turn = 0; minute.left === 0 || day.left === 0; turn += 1) {
          expect(turn).toBeLessThan(3);
          atMs += Math.max(minute.waitMs, day.waitMs);
          ({ minute, day } = quota.state(atMs));
        }
      }),
    );
  },
);

test('a minute of 60 by every kind: the 61st is refused, the wait kept, the next one served', async () => {
  for (const window of KINDS) {
    const clock = createManualClock(ORIGIN_MS + 20_000);
    const simulator = smallSimulator({ clock, settings: { quota: { window }, plan: { requestsPerMinute: 60 } } });
    const ask = askInProcess(simulator);
    for (let turn = 0; turn < 60; turn += 1) expect((await ask('/account')).status).toBe(200);
    const { status, headers } = await ask('/account');
    expect(status).toBe(429);
    expect([window, headers['retry-after']]).toEqual([
      window,
      { fixed: '40', 'first-request': '60', sliding: '60', bucket: '1' }[window],
    ]);
    clock.advance(Number(headers['retry-after']) * 1000);
    expect((await ask('/account')).status).toBe(200);
    expect(simulator.log.count(429)).toBe(1);
  }
});

test('Limits: the day is counted beside the minute, and its wait is reported when it is spent', async () => {
  const clock = createManualClock(Date.UTC(2026, 0, 15, 22));
  const ask = askInProcess(smallSimulator({ clock, settings: { plan: { requestsPerMinute: 5, requestsPerDay: 6 } } }));
  for (let turn = 0; turn < 6; turn += 1) {
    if (turn === 5) clock.advance(60_000);
    expect((await ask('/account')).status).toBe(200);
  }
  const { status, headers } = await ask('/account');
  expect([status, headers['retry-after']]).toEqual([429, String(2 * 3600 - 60)]);
});

test('Limits: the headers speak of the minute, the day or the tighter of the two, by the settings', async () => {
  const clock = createManualClock();
  const simulator = smallSimulator({ clock, settings: { plan: { requestsPerMinute: 10, requestsPerDay: 12 } } });
  const ask = askInProcess(simulator);
  const reported = async (headers: 'minute' | 'day' | 'tightest'): Promise<string> => {
    simulator.settings.quota.headers = headers;
    const answer = (await ask('/none')).headers;
    return `${answer['x-ratelimit-remaining']}/${answer['x-ratelimit-limit']}`;
  };
  simulator.spend(3);
  expect([await reported('minute'), await reported('day'), await reported('tightest')]).toEqual([
    '7/10',
    '9/12',
    '7/10',
  ]);
  clock.advance(60_000);
  simulator.spend(1);
  simulator.spend(5);
  expect([await reported('minute'), await reported('day'), await reported('tightest')]).toEqual([
    '4/10',
    '3/12',
    '3/12',
  ]);
});

test('Errors: a refusal costs no quota, or by the settings only 401 and 429 cost none', async () => {
  const simulator = smallSimulator();
  const ask = askInProcess(simulator);
  const refused = async (): Promise<void> => {
    await ask('/none');
    await ask('/devices/none');
    await ask('/devices?limit=0');
    await ask('/devices', { method: 'POST' });
    await ask('/devices', { authorization: null });
  };
  await refused();
  expect(simulator.quota().minute.left).toBe(120);
  simulator.settings.quota.rejections = 'counted';
  await refused();
  expect(simulator.quota().minute.left).toBe(116);
  simulator.spend(1000);
  await refused();
  expect(simulator.quota().minute).toMatchObject({ left: 0 });
});

test('Errors: it costs nothing, whatever other refusals cost', async () => {
  for (const refusals of ['free', 'counted'] as const) {
    const clock = createManualClock();
    const quota = { window: 'sliding', refusals } as const;
    const simulator = smallSimulator({ clock, settings: { quota, plan: { requestsPerMinute: 3 } } });
    simulator.spend(3);
    clock.advance(30_000);
    expect((await askInProcess(simulator)('/account')).status).toBe(429);
    clock.advance(30_000);
    expect(simulator.quota().minute.left).toBe(3);
  }
});

test('other clients spend the same quota, and a smaller plan applies at once', async () => {
  const simulator = smallSimulator();
  const ask = askInProcess(simulator);
  simulator.spend(118);
  expect((await ask('/account')).headers['x-ratelimit-remaining']).toBe('1');
  simulator.settings.plan.requestsPerMinute = 100;
  expect((await ask('/account')).status).toBe(429);
  simulator.settings.plan.requestsPerMinute = 200;
  expect((await ask('/account')).headers).toMatchObject({ 'x-ratelimit-limit': '200', 'x-ratelimit-remaining': '80' });
});

test('a clock that jumps moves no window', async () => {
  const clock = createManualClock();
  const simulator = createSimulator({ world: smallWorld(), clock, settings: { quota: { window: 'sliding' } } });
  simulator.spend(20);
  simulator.settings.time.offsetMs = 3_600_000;
  expect(simulator.quota().minute.left).toBe(100);
  simulator.settings.time.offsetMs = -3_600_000;
  clock.advance(60_000);
  expect((await askInProcess(simulator)('/account')).headers['x-ratelimit-remaining']).toBe('119');
});

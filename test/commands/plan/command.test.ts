/** `--plan` on the simulator: its requests, its refusals, and that it changes nothing. */
import { rmSync } from 'node:fs';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { createQuota, quotaFigures } from '../../../src/api/quota.ts';
import { fetchForPlan } from '../../../src/commands/plan/command.ts';
import { backfillText, planText } from '../../../src/commands/plan/text.ts';
import { ASSUMED_PER_MINUTE } from '../../../src/core/quota.ts';
import { MINUTE_MS } from '../../../src/core/time.ts';
import { always, onPath } from '../../support/faults.ts';
import { NOW_MS } from '../../support/rig.ts';
import { createWorld } from '../../support/trait-world.ts';
import { asked, fleet, openPlanRig, type PlanRig, refusalOf } from './support.ts';

/** Everything in the state but the bookings. */
function contentOf(rig: PlanRig): Record<string, unknown[]> {
  const db = new Database(`${rig.dataDir}/tidemark.db`, { readonly: true });
  try {
    const tables = db
      .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'request'")
      .pluck()
      .all();
    return Object.fromEntries(tables.map((table) => [String(table), db.prepare(`SELECT * FROM "${table}"`).all()]));
  } finally {
    db.close();
  }
}

describe('its requests', () => {
  test.each([
    [0, 1],
    [1, 1],
    [200, 1],
    [201, 2],
    [450, 3],
  ])('of %d devices: the account and %d pages of the list, all booked, and nothing else', async (count, pages) => {
    using rig = openPlanRig({ devices: fleet(count, MINUTE_MS) });
    const plan = await rig.plan();
    expect(asked(rig)).toEqual(['/account', ...Array(pages).fill('/devices')]);
    expect(plan.basis).toMatchObject({ source: 'api', requests_spent: 1 + pages });
    expect(plan.devices.total).toBe(count);
    const db = new Database(`${rig.dataDir}/tidemark.db`, { readonly: true });
    expect(db.prepare('SELECT lane, stream, status FROM request ORDER BY id').all()).toEqual([
      { lane: 'inventory', stream: 'account', status: 200 },
      ...Array(pages).fill({ lane: 'inventory', stream: 'devices', status: 200 }),
    ]);
    db.close();
  });

  test('and keeps only the figures of the plan', async () => {
    using rig = openPlanRig({ devices: fleet(3, MINUTE_MS) });
    await rig.plan();
    const { fact, day_total, ...rest } = contentOf(rig);
    expect(fact).toMatchObject([{ key: 'account' }]);
    expect(day_total).toEqual([{ one: 1, readings: 0, points: 0 }]);
    expect(Object.values(rest).flat()).toEqual([]);
    // The following requests do not disturb it.
    await rig.once();
    expect((await rig.plan()).backfill.requests).toBe(0);
  });

  test('a small plan is not overrun, however often the estimate runs', async () => {
    using rig = openPlanRig({ devices: fleet(3, MINUTE_MS), settings: { plan: { requestsPerMinute: 10 } } });
    const startedMs = rig.clock.nowMs();
    for (let run = 0; run < 10; run += 1) await rig.plan();
    expect(asked(rig)).toHaveLength(20);
    expect(rig.simulator.log.count(429)).toBe(0);
    expect(rig.clock.nowMs() - startedMs).toBeGreaterThan(MINUTE_MS);
  });

  test('a refusal for lack of quota is waited out as requested, and booked', async () => {
    using rig = openPlanRig({ devices: fleet(3, MINUTE_MS) });
    rig.simulator.spend(60);
    const startedMs = rig.clock.nowMs();
    const plan = await rig.plan();
    expect(rig.simulator.log.requests.map(({ path, status }) => [path, status])).toEqual([
      ['/account', 429],
      ['/account', 200],
      ['/devices', 200],
    ]);
    // NOW_MS is 3.2 s before a whole minute.
    expect(rig.clock.nowMs() - startedMs).toBeGreaterThan(3000);
    expect(plan.basis.requests_spent).toBe(3);
    expect(plan.allowance.day.spent_last_24h).toBe(3);
  });

  test('where another process works with the state: nothing', async () => {
    using rig = openPlanRig({ devices: [...fleet(5, MINUTE_MS), ...fleet(2, 10 * MINUTE_MS, 's')] });
    await rig.once();
    const alone = await rig.plan();
    const before = rig.simulator.log.total;
    const daemon = rig.open();
    const beside = await rig.plan();
    const older = await rig.plan({ from: '9d', to: '1d' });
    const newer = await rig.plan({ from: '9d' });
    daemon.close();
    expect(rig.simulator.log.total).toBe(before);
    // The polls of the daemon read the newest minutes; a range that ends earlier does not wait for them.
    const waits = /while the daemon runs.*\n.*\n +plus up to 3 min, until the polls have read the newest minutes\n/;
    expect([newer, older].map((plan) => waits.test(backfillText(plan)))).toEqual([true, false]);
    expect(newer.backfill.requests).toBeGreaterThan(0);
    expect(backfillText(await rig.plan({ from: '9d' }))).not.toMatch(/plus\s+up/);
    expect(beside.basis).toMatchObject({ source: 'state', requests_spent: 0 });
    expect(planText(beside)).toMatch(/as\s+of\s+2026-06-15T12:3\d:\d\dZ;\s+no\s+request\s+was\s+sent/);
    expect({ ...beside, basis: null, backfill: null }).toEqual({ ...alone, basis: null, backfill: null });
  });

  test('a process that has not listed the devices yet has no estimate: exit 3', async () => {
    using rig = openPlanRig({ devices: fleet(3, MINUTE_MS) });
    const daemon = rig.open();
    const error = await refusalOf(rig.plan());
    daemon.close();
    expect([error.exitCode, asked(rig)]).toEqual([3, []]);
    expect(error.message).toMatch(/has not read the device list yet\. Run the command again in a minute\.$/);
    await rig.once();
    const later = rig.open();
    expect((await rig.plan()).basis).toMatchObject({ source: 'state' });
    later.close();
  });

  test('a workspace without devices is reported beside a process as well', async () => {
    using rig = openPlanRig();
    await rig.once();
    const daemon = rig.open();
    const plan = await rig.plan();
    daemon.close();
    expect(plan.devices).toMatchObject({ total: 0, reporting: 0 });
    expect(planText(plan)).toContain('no device reports');
  });
});

describe('mistakes', () => {
  test.each<[{ from?: string; to?: string }, RegExp]>([
    [{ from: 'yesterday' }, /^--from: expected a date/],
    [{ from: '2030-01-01' }, /^--from: expected a time in the past/],
    [{ to: '2030-01-01' }, /^--to: expected a time in the past/],
    [{ from: '1d', to: '2d' }, /^--from: expected a time before --to/],
    [{ from: '0s' }, /^--from: expected a time before now/],
  ])('%j: exit 2, and no request is sent', async (span, words) => {
    using rig = openPlanRig({ devices: fleet(1, MINUTE_MS) });
    const error = await refusalOf(rig.plan(span));
    expect(error.message).toMatch(words);
    expect([error.exitCode, asked(rig)]).toEqual([2, []]);
  });

  test('an unknown or excluded device, and a range that ends before it begins: exit 2', async () => {
    using rig = openPlanRig({ devices: fleet(2, MINUTE_MS), filter: { exclude: ['d-0001'] } });
    const ids = await refusalOf(rig.plan({ devices: ['d-0000', 'sk_live_4242'] }));
    expect([ids.exitCode, ids.message]).toEqual([
      2,
      '--device number 2: the workspace has no device with that id or name. Known: d-0000, d-0001.',
    ]);
    const out = await refusalOf(rig.plan({ devices: ['d-0001'] }));
    expect([out.exitCode, out.message]).toEqual([
      2,
      expect.stringMatching(/this device is excluded by .*sync\.exclude/),
    ]);
    const span = await refusalOf(rig.plan({ to: '30d' }));
    expect([span.exitCode, span.message]).toEqual([2, expect.stringMatching(/^--to: .*sync\.history/)]);
  });

  test.each([
    ['a key that is rejected', { key: { revoked: true } }, 77, /the API rejects the key/],
    ['a plan without the API', { plan: { apiAccess: false } }, 77, /API access/],
    ['no devices:read', { key: { scopes: ['account:read'] } }, 77, /lacks the scope devices:read/],
  ])('%s: exit %#', async (_, settings, exitCode, words) => {
    using rig = openPlanRig({ devices: fleet(1, MINUTE_MS), settings });
    const error = await refusalOf(rig.plan());
    expect([error.exitCode, error.message]).toEqual([exitCode, expect.stringMatching(words)]);
  });

  test('an API that does not answer: exit 3, after a few tries', async () => {
    using rig = openPlanRig({ devices: fleet(1, MINUTE_MS) });
    rig.simulator.faults = onPath(/devices/, always({ kind: 'server-error', status: 503 }));
    const error = await refusalOf(rig.plan());
    expect([error.exitCode, error.message]).toEqual([
      3,
      expect.stringMatching(/could not be computed: .*Run --plan again when the API answers\.$/),
    ]);
    expect(asked(rig).length).toBeLessThan(10);
    rig.simulator.faults = null;
    expect((await rig.plan()).basis).toMatchObject({ source: 'api' });
  });

  test('another workspace behind the key: exit 1, before its devices are listed', async () => {
    using rig = openPlanRig({ devices: fleet(1, MINUTE_MS) });
    await rig.once();
    const before = contentOf(rig);
    const total = rig.simulator.log.total;
    rig.simulator.world = createWorld({
      seed: 8,
      originMs: NOW_MS,
      workspaceId: 'ws-other',
      devices: fleet(2, MINUTE_MS),
    });
    const error = await refusalOf(rig.plan());
    expect([error.exitCode, error.message]).toEqual([1, expect.stringMatching(/belongs to workspace "ws-simulated"/)]);
    expect(asked(rig, total)).toEqual(['/account']);
    expect(contentOf(rig)).toEqual(before);
  });

  test('an interrupted plan ends with 3 and sends no more requests', async () => {
    using rig = openPlanRig({ devices: fleet(1, MINUTE_MS) });
    const sync = rig.open();
    const error = await refusalOf(fetchForPlan(sync.context, AbortSignal.abort(new Error('stopped by SIGTERM'))));
    sync.close();
    expect([error.exitCode, asked(rig)]).toEqual([3, []]);
  });

  test('a state that cannot be read beside its process is reported as such', async () => {
    using rig = openPlanRig({ devices: fleet(1, MINUTE_MS) });
    const daemon = rig.open();
    const db = new Database(`${rig.dataDir}/tidemark.db`);
    db.pragma('user_version = 99');
    db.close();
    const error = await refusalOf(rig.plan());
    daemon.close();
    expect([error.exitCode, error.message]).toEqual([
      1,
      expect.stringMatching(/written by a newer Tidemark \(state version 99,/),
    ]);
    rmSync(rig.dataDir, { recursive: true });
  });
});

test('the assumed limits are those of the quota where none is reported', () => {
  const quota = createQuota({ share: 1, random: () => 0.5 });
  expect(quotaFigures(quota, 0).minute.budget).toBe(ASSUMED_PER_MINUTE);
});

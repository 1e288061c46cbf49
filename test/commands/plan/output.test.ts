/** `--plan` on the simulator: its figures and its text, also with the flags of --what-if. */
import { describe, expect, test } from 'vitest';
import { planText } from '../../../src/commands/plan/text.ts';
import { DAY_MS, MINUTE_MS } from '../../../src/core/time.ts';
import { cron } from '../../support/defaults.ts';
import { NOW_MS } from '../../support/rig.ts';
import { asked, fleet, openPlanRig, refusalOf, suppose } from './support.ts';

describe('its output', () => {
  test('rates that are measured, once there is something to measure; silent and paused devices apart', async () => {
    const devices = [
      ...fleet(5, MINUTE_MS),
      ...fleet(3, 10 * MINUTE_MS, 's'),
      { deviceId: 'paused', lifecycle: [{ atMs: NOW_MS - MINUTE_MS, value: 'paused' as const }] },
      { deviceId: 'silent', silences: [{ fromMs: NOW_MS - 2 * DAY_MS, toMs: Number.POSITIVE_INFINITY }] },
      { deviceId: 'left-out', intervalMs: MINUTE_MS },
    ];
    using rig = openPlanRig({ devices, filter: { exclude: ['left-*'] } });
    const before = await rig.plan();
    expect(before.devices).toEqual({
      total: 10,
      reporting: 8,
      quiet: 2,
      left_out: 1,
      rates_measured: 0,
      rates_assumed: 8,
      assumed_interval_seconds: 60,
    });
    expect(before.basis.assumptions).toEqual([
      'report rates: a reading every 60 s for 8 devices (no rate is measured yet)',
    ]);
    expect(before.readings_per_day.made).toBe(8 * 1440);
    await rig.once();
    const after = await rig.plan();
    expect(after.devices).toMatchObject({ reporting: 8, quiet: 2, rates_measured: 8, rates_assumed: 0 });
    expect(after.basis.assumptions).toEqual([]);
    expect(after.readings_per_day.made / (5 * 1440 + 3 * 144)).toBeCloseTo(1, 1);
  });

  test('everything, by names that stay', async () => {
    using rig = openPlanRig({ devices: fleet(2, 10 * MINUTE_MS), settings: { plan: { requestsPerDay: 20_000 } } });
    await rig.once();
    const plan = await rig.plan({ from: '6d', devices: ['d-0001'] });
    expect(JSON.parse(JSON.stringify(plan))).toEqual({
      basis: {
        source: 'api',
        as_of: expect.stringMatching(/^2026-06-15T12:3\d:\d\dZ$/),
        requests_spent: 2,
        assumptions: [],
      },
      what_if: {},
      workspace: { workspace_id: 'ws-simulated', name: 'Simulated workspace', plan_name: 'Business' },
      devices: {
        total: 2,
        reporting: 2,
        quiet: 0,
        left_out: 0,
        rates_measured: 2,
        rates_assumed: 0,
        assumed_interval_seconds: expect.any(Number),
      },
      readings_per_day: { made: expect.any(Number), covered: plan.readings_per_day.made, fit: true },
      schedules: {
        telemetry: { cron: '* * * * *', mean_seconds: 60 },
        devices: { cron: '*/5 * * * *', mean_seconds: 300 },
        alerts: { cron: '*/2 * * * *', mean_seconds: 120 },
        account: { cron: '0 * * * *', mean_seconds: 3600 },
        idle_poll: { mean_seconds: 21_600 },
      },
      requests_per_day: {
        needed: {
          live: expect.any(Number),
          alerts: 720,
          device_list: 288,
          account: 24,
          idle_polls: 0,
          total: expect.any(Number),
        },
        planned: plan.requests_per_day.needed,
        left_for_history: expect.any(Number),
      },
      allowance: {
        share: 0.8,
        budget_per_day: 16_000,
        minute: { limit: 60, budget: 48, planned: expect.any(Number), used_share: expect.any(Number) },
        day: {
          limit: 20_000,
          budget: 16_000,
          planned: plan.requests_per_day.planned.total,
          used_share: expect.any(Number),
          spent_last_24h: rig.simulator.log.total,
          used_by_others: null,
        },
      },
      fits: true,
      slowdown: 1,
      warning: null,
      freshness: { median_seconds: 60, p95_seconds: 60 },
      backfill: {
        from: expect.stringMatching(/^2026-06-09T/),
        to: plan.basis.as_of,
        devices: 1,
        devices_with_gaps: 1,
        gap_share: expect.closeTo(0.5, 2),
        readings: expect.any(Number),
        requests: expect.any(Number),
        beside_daemon: { requests_per_day: expect.any(Number), seconds: expect.any(Number), until: expect.any(String) },
        alone: { requests_per_day: 16_000, seconds: expect.any(Number), until: expect.any(String) },
        rate: null,
        note: 'These figures assume that every device has readings down to the beginning of the range.',
      },
    });
    const { live, total } = plan.requests_per_day.needed;
    expect([live, total]).toEqual([expect.closeTo(2 * (DAY_MS / (10 * MINUTE_MS)), -1), live + 720 + 288 + 24]);
    expect(plan.backfill.readings / (3 * 144)).toBeCloseTo(1, 1);
  });

  test('the estimate of a range is the cost of its page scan', async () => {
    const devices = [...fleet(4, MINUTE_MS), ...fleet(3, 10 * MINUTE_MS, 's'), ...fleet(1, 5000, 'f')];
    // Small pages: a day of them costs as many requests as five.
    const plan = { requestsPerMinute: 6000, requestsPerDay: 1e6, maxDevicesPerPage: 40 };
    using rig = openPlanRig({ devices, settings: { plan }, historyMs: 0.6 * DAY_MS });
    await rig.once();
    const { backfill } = await rig.plan({ from: '1d' });
    const before = rig.simulator.log.total;
    const ageMs = DAY_MS;
    await rig.once({ history: { kind: 'age', ageMs } });
    const walked = asked(rig, before).filter((path) => path.endsWith('/telemetry')).length;
    expect(backfill.requests).toBeGreaterThan(200);
    expect(Math.abs(backfill.requests / walked - 1)).toBeLessThan(0.1);
  });

  test.each(['2d', '3d'])(
    'the estimate of a few days is the cost of their page scan, right after a first sync of one day: %s',
    async (from) => {
      const devices = [...fleet(4, MINUTE_MS), ...fleet(8, 5 * MINUTE_MS, 's'), ...fleet(8, 10 * MINUTE_MS, 'f')];
      using rig = openPlanRig({ devices, settings: { plan: { requestsPerMinute: 6000, requestsPerDay: 1e6 } } });
      await rig.once({ history: { kind: 'age', ageMs: DAY_MS } });
      const { backfill } = await rig.plan({ from });
      const before = rig.simulator.log.total;
      await rig.once({ history: { kind: 'age', ageMs: Number.parseInt(from, 10) * DAY_MS } });
      // Without the live polls, which have no end.
      const walked = rig.simulator.log.requests
        .slice(before - rig.simulator.log.total)
        .filter(({ path, query }) => path.endsWith('/telemetry') && query.includes('before=')).length;
      expect(walked).toBeGreaterThan(60);
      expect(Math.abs(backfill.requests / walked - 1)).toBeLessThan(0.05);
    },
  );

  test('a poll of the alerts costs the pages down to the oldest open one, with and without a process', async () => {
    const resolved = [{ atMs: NOW_MS - MINUTE_MS, value: { status: 'resolved', fireCount: 1, value: 9 } as const }];
    const alerts = Array.from({ length: 700 }, (_, index) => ({
      alertId: index + 1,
      deviceId: 'd-0000',
      openedAtMs: NOW_MS - (700 - index) * MINUTE_MS,
      // From the third page up, every second one is open.
      changes: index >= 250 && index % 2 === 0 ? [] : resolved,
    }));
    using rig = openPlanRig({ devices: fleet(1, 10 * MINUTE_MS), alerts });
    const first = await rig.plan();
    expect(first.requests_per_day.needed.alerts, 'nothing is known yet').toBe(720);
    const assumed = /^an alert poll takes one request: Tidemark has not read the \d+ open alerts? of the account yet/;
    expect(first.basis.assumptions.at(-1)).toMatch(assumed);
    await rig.once();
    const before = asked(rig).length;
    await rig.once();
    const poll = asked(rig, before).filter((path) => path.startsWith('/alerts')).length;
    expect(poll).toBe(3);
    const second = await rig.plan();
    expect(second.requests_per_day.needed.alerts).toBe(720 * poll);
    expect(second.basis.assumptions.filter((text) => assumed.test(text))).toEqual([]);
    const daemon = rig.open();
    const beside = await rig.plan();
    daemon.close();
    expect(beside.requests_per_day.needed.alerts).toBe(720 * poll);
  });

  test('that the demand exceeds the plan, and what would change that', async () => {
    using rig = openPlanRig({ devices: fleet(250, MINUTE_MS) });
    const plan = await rig.plan();
    expect(plan).toMatchObject({ fits: false, readings_per_day: { fit: true } });
    expect(plan.slowdown).toBeGreaterThan(2);
    expect(plan.freshness.median_seconds).toBeGreaterThan(60);
    const { planned, left_for_history } = plan.requests_per_day;
    expect(planned.total + left_for_history).toBeLessThanOrEqual(plan.allowance.budget_per_day + 2);
    expect(planText(plan)).toMatch(/The quota is too small\. The schedules need [\d,]+ requests\s+a\s+day/);
    expect(plan.warning).toMatch(/sync\.telemetry.*a plan of [\d,]+ requests/);
  });

  test('that the readings alone exceed the plan, and how many are read', async () => {
    using rig = openPlanRig({ devices: fleet(250, MINUTE_MS) });
    const plan = await rig.plan({ whatIf: suppose('devices=2000') });
    expect(plan.readings_per_day).toMatchObject({ made: 2000 * 1440, fit: false });
    // 4,000 pages of 200 readings, less what the list of devices and the alerts take.
    expect(plan.readings_per_day.covered).toBeGreaterThan(750_000);
    expect(plan.readings_per_day.covered).toBeLessThanOrEqual(800_000);
    const { planned, left_for_history } = plan.requests_per_day;
    expect(planned.total + left_for_history).toBeLessThanOrEqual(4002);
    expect(plan.allowance.day.used_share).toBeLessThanOrEqual(1);
    expect(plan.warning).toMatch(/of 2,880,000 a day, 7\d\d,\d{3} can be read/);
  });

  test('the assumptions without account:read', async () => {
    const scopes = ['devices:read', 'telemetry:read', 'alerts:read'];
    using rig = openPlanRig({ devices: fleet(3, MINUTE_MS), settings: { key: { scopes } } });
    const plan = await rig.plan();
    expect(asked(rig)).toEqual(['/account', '/devices']);
    expect(plan.workspace).toEqual({ workspace_id: null, name: null, plan_name: null });
    // The header has 60 a minute; the rate limiter accepts a header up to 30.
    expect(plan.allowance.minute).toMatchObject({ limit: 30, budget: 24 });
    expect(plan.allowance.day).toMatchObject({ limit: null, budget: null, used_share: null });
    expect(plan.basis.assumptions.slice(0, 2)).toEqual([
      'requests a minute: the account is unknown (scope account:read); the response headers contain 30',
      'requests a day: the account is unknown (scope account:read); no limit per day is assumed',
    ]);
    expect(planText(plan)).toMatch(/Workspace unknown[\s\S]*Assumed: requests a minute/);
  });

  test('a key that may no longer read the account: the last read account counts', async () => {
    using rig = openPlanRig({ devices: fleet(3, MINUTE_MS) });
    await rig.plan();
    rig.simulator.settings.key.scopes = ['devices:read'];
    const plan = await rig.plan();
    expect([plan.allowance.minute.limit, plan.allowance.day.limit]).toEqual([60, 5000]);
  });

  test('an age is one of the server: a local clock that is wrong changes nothing', async () => {
    using rig = openPlanRig({ devices: fleet(1, MINUTE_MS), settings: { time: { offsetMs: -5 * 60 * MINUTE_MS } } });
    const { backfill, devices } = await rig.plan({ from: '1h' });
    expect(backfill).toMatchObject({ readings: 60, from: expect.stringMatching(/T06:34:5\dZ/) });
    expect(backfill.to).toMatch(/^2026-06-15T07:34:5\dZ/);
    expect(devices.reporting).toBe(1);
  });

  test('the requests of others are left to them', async () => {
    using rig = openPlanRig({ devices: fleet(3, MINUTE_MS), settings: { quota: { headers: 'day' } } });
    rig.simulator.spend(2000);
    const { allowance } = await rig.plan();
    expect(allowance.day.used_by_others).toBeGreaterThan(1990);
    expect(allowance.budget_per_day).toBe(5000 - (allowance.day.used_by_others ?? 0));
  });

  test('devices that are younger than the covered range are not expected to have older readings', async () => {
    const days = (count: number): number => NOW_MS - count * DAY_MS;
    const born = (appearsAtMs: number) => fleet(2, 10 * MINUTE_MS).map((each) => ({ ...each, appearsAtMs }));
    const planned = async (appearsAtMs: number) => {
      using rig = openPlanRig({ devices: born(appearsAtMs), historyMs: 7 * DAY_MS });
      await rig.once();
      const { backfill } = await rig.plan({ from: '14d' });
      return { readings: backfill.readings, assumes: /These figures assume/.test(backfill.note ?? '') };
    };
    expect(await planned(days(3))).toEqual({ readings: 0, assumes: false });
    expect(await planned(days(6))).toEqual({ readings: expect.closeTo(2 * 7 * 144, -2), assumes: true });
  });

  test('old history: that it may not be served', async () => {
    using rig = openPlanRig({ devices: fleet(1, MINUTE_MS), settings: { plan: { historyMaxDays: 2 } } });
    const { backfill } = await rig.plan({ from: '2026-06-11' });
    expect(backfill.note).toMatch(
      /^The plan limits the range of a request to 2 days \(history_max_days\); whether the API also hides older readings is not known/,
    );
  });
});

describe('what-if flags', () => {
  test('another share, schedule, number of devices, plan: each changes its own figures', async () => {
    using rig = openPlanRig({ devices: [...fleet(6, MINUTE_MS), ...fleet(2, 10 * MINUTE_MS, 's')] });
    await rig.once();
    const now = await rig.plan();
    const share = await rig.plan({ whatIf: suppose('share=0.4') });
    expect([now.allowance.day.budget, share.allowance.day.budget]).toEqual([4000, 2000]);
    expect(share.freshness.median_seconds).toBeGreaterThan(now.freshness.median_seconds);
    const slow = await rig.plan({
      whatIf: suppose('telemetry=*/10 * * * *', 'alerts=@hourly', 'sync.devices=*/30 * * * *'),
    });
    expect(slow.schedules).toMatchObject({
      telemetry: { cron: '*/10 * * * *', mean_seconds: 600 },
      alerts: { mean_seconds: 3600 },
      devices: { mean_seconds: 1800 },
      account: { mean_seconds: 3600 },
    });
    expect(slow.requests_per_day.needed).toMatchObject({ alerts: 24, device_list: 48, account: 24 });
    const many = await rig.plan({ whatIf: suppose('devices=800') });
    expect(many.devices).toMatchObject({ total: 800, reporting: 800 });
    expect(many.readings_per_day.made / now.readings_per_day.made).toBeCloseTo(100, 0);
    expect(many.requests_per_day.needed.device_list).toBe(4 * 288);
    // All available data is covered, and nothing else.
    expect([now.backfill.requests, many.backfill.devices]).toEqual([0, 800]);
    expect(many.backfill.requests).toBeGreaterThan(99 * 100);
    const plan = await rig.plan({ whatIf: suppose('requests_per_day=20000', 'requests_per_minute=600') });
    expect(plan.allowance).toMatchObject({
      minute: { limit: 600, budget: 480 },
      day: { limit: 20_000, budget: 16_000 },
    });
    expect(plan.fits).toBe(true);
    expect(plan.what_if).toEqual({ requests_per_minute: 600, requests_per_day: 20_000 });
    expect(planText(slow)).toContain('What if: sync.telemetry=*/10 * * * *, sync.alerts=@hourly, sync.devices=*/30');
  });

  test('a fleet of any size is reckoned', async () => {
    using rig = openPlanRig({ devices: fleet(3, MINUTE_MS) });
    const { devices } = await rig.plan({ whatIf: suppose('devices=100000') });
    expect(devices).toMatchObject({ total: 100_000 });
  });

  test.each<[string[], RegExp]>([
    [['share=1.5'], /^--what-if api\.share: expected a number above 0 and up to 1/],
    [['share=much'], /^--what-if api\.share: expected/],
    [['telemetry=often'], /^--what-if sync\.telemetry: expected a cron expression/],
    [['telemetry=0 0 30 2 *'], /^--what-if sync\.telemetry: the expression matches no time/],
    [['devices=0'], /^--what-if devices: expected a whole number from 1 to 100000/],
    [['devices=*/5 * * * *'], /^--what-if devices: .*sync\.devices/],
    [['requests_per_day=-1'], /^--what-if requests_per_day: expected a whole number/],
    [['requests_per_minute=1e3'], /^--what-if requests_per_minute: expected a whole number/],
    [['share=0.5', 'api.share=0.6'], /^--what-if api\.share was given twice/],
  ])('%j is a mistake of the command line, and no request is sent', async (texts, words) => {
    using rig = openPlanRig({ devices: fleet(1, MINUTE_MS) });
    const error = await refusalOf(rig.plan({ whatIf: suppose(...texts) }));
    expect(error.message).toMatch(words);
    expect([error.exitCode, asked(rig)]).toEqual([2, []]);
  });
});

describe('for people', () => {
  test.each([
    ['a small workspace', fleet(3, MINUTE_MS), {}],
    ['a large one that does not fit', fleet(300, MINUTE_MS), { from: '6d' }],
    [
      'another one',
      fleet(5, 10 * MINUTE_MS),
      { whatIf: suppose('devices=100000', 'share=0.01', 'telemetry=*/20 9-17 * * MON-FRI') },
    ],
  ])('%s: one screen of 80 columns', async (_, devices, command) => {
    using rig = openPlanRig({ devices });
    const text = planText(await rig.plan(command, { schedules: { account: cron('0 0 1 * *') } }));
    const lines = text.trimEnd().split('\n');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(lines.length).toBeLessThanOrEqual(40);
    expect(text).not.toMatch(/NaN|Infinity|undefined|null/);
  });
});

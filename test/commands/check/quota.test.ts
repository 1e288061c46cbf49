/** `--check`, the API: the plan, the clock and the quota, with the schedules that they carry. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test, vi } from 'vitest';
import { openStore } from '../../../src/store/store.ts';
import { device } from '../../store/support.ts';
import { patient } from '../../support/patience.ts';
import { bad, forward, line, openStage, runHere, serve } from './support.ts';

function refuseFor600s(response: ServerResponse): void {
  response.writeHead(429, { 'retry-after': '600', 'content-type': 'application/json' });
  response.end('{"error":{"code":"rate_limited","message":"slow down"}}');
}

/** Answers with what the simulator answers. */
function pass(base: string, request: IncomingMessage, response: ServerResponse): void {
  void forward(base, request.url ?? '').then(({ status, headers, body }) => {
    response.writeHead(status, headers);
    response.end(body);
  });
}

describe('the plan, the clock, the quota', () => {
  test.each([
    [{ dateSkewMs: 300_000 }, 'warn', /behind the API's clock/, -300],
    [{ dateSkewMs: -300_000 }, 'warn', /5 min ahead of the API's/, 300],
    [{ dateSkewMs: 5000 }, 'ok', /agrees with the API's clock/, -5],
    [{ date: 'absent' }, 'skip', /sends no Date header/, null],
  ] as const)('compares the clocks: %j', async (time, status, words, seconds) => {
    await using stage = await openStage({ settings: { time } });
    const report = await stage.report();
    expect(report.exit_code).toBe(0);
    const { message, facts, ...reported } = line(report, 'clock');
    expect(reported.status).toBe(status);
    if (status === 'warn')
      expect(reported.remedy).toBe(
        'Set the clock of this machine by NTP: timedatectl set-ntp true (in a container: on its host)',
      );
    expect(message).toMatch(words);
    if (seconds === null) expect(facts?.['skew_seconds']).toBeNull();
    else expect(Math.abs(Number(facts?.['skew_seconds']) - seconds)).toBeLessThanOrEqual(2);
  });

  test('a history that is wider than the windows of the plan', async () => {
    await using stage = await openStage({ settings: { plan: { historyMaxDays: 7 } } });
    const report = await stage.report({ TIDEMARK_SYNC_HISTORY: '20d' });
    expect(bad(report)).toEqual(['warn history']);
    expect(line(report, 'history').message).toMatch(/back 20 days, but history_max_days of the plan is 7 days/);
    expect(report.exit_code).toBe(0);
    const all = line(await stage.report({ TIDEMARK_SYNC_HISTORY: 'all' }), 'history');
    expect(all.message).toMatch(/^sync\.history is all, but history_max_days of the plan is 7 days/);
    const within = line(await stage.report({ TIDEMARK_SYNC_HISTORY: '7d' }), 'history');
    expect(within).toMatchObject({ status: 'ok', message: 'sync.history goes back 7 days: within the plan' });
  });

  test('schedules that the plan does not carry are warned of, with the figures', async () => {
    await using stage = await openStage({ settings: { plan: { requestsPerDay: 1000 } } });
    const seldom = { TIDEMARK_SYNC_TELEMETRY: '0 * * * *' };
    const often = { ...seldom, TIDEMARK_SYNC_ALERTS: '* * * * *' };
    const report = await stage.report({ ...often, TIDEMARK_SYNC_ACCOUNT: '0 0 * * *' });
    expect(line(report, 'schedules')).toMatchObject({
      status: 'warn',
      message: expect.stringMatching(
        /need [\d,]+ requests a day if 1 device has a reading every 60 s \(sync\.telemetry 24, sync\.alerts 1,440, sync\.devices \d+, sync\.account 1, sync\.idle_poll \d+\), but the budget \(api\.share of the quota\) is 1,000:/,
      ),
    });
    // As --plan counts it: a poll reads the list down to the oldest open alert.
    const db = new Database(join(stage.dataDir, 'tidemark.db'));
    const insert = db.prepare(`INSERT INTO alert (alert_id, opened_ns, state_digest, state_ns, is_open, is_listed)
      VALUES (?, ?, '', 0, ?, 1)`);
    for (let id = 1; id <= 700; id += 1) insert.run(id, id, id >= 251 && id % 2 === 1 ? 1 : 0);
    db.close();
    const deeper = await stage.report(often);
    expect(line(deeper, 'schedules').message).toContain('sync.alerts 4,320');
    const lists = { TIDEMARK_SYNC_ALERTS: '0 * * * *', TIDEMARK_SYNC_DEVICES: '0 * * * *' };
    const slow = await stage.report({ ...seldom, ...lists });
    expect(slow.checks.filter(({ name }) => name === 'schedules')).toEqual([]);
  });

  test('a sync.telemetry that the plan does not carry for so many devices is warned of, with the figures', async () => {
    const devices = Array.from({ length: 3 }, (_, n) => ({ deviceId: `hub-${n}`, intervalMs: 30_000 }));
    await using stage = await openStage({
      devices,
      settings: { plan: { requestsPerDay: 5000 } },
    });
    const report = await stage.report();
    expect(line(report, 'schedules')).toMatchObject({
      status: 'warn',
      message: expect.stringMatching(
        /need 5,\d+ requests a day if 3 devices have a reading every 60 s \(sync\.telemetry 4,320, sync\.alerts 720, .*, but the budget \(api\.share of the quota\) is 5,000: all intervals are lengthened until they fit$/,
      ),
    });
    expect(line(report, 'schedules').remedy).toBe(
      'Set a longer interval for the schedule with the most requests. tidemark --plan shows what fits.',
    );
    const fits = await stage.report({ TIDEMARK_SYNC_TELEMETRY: '*/2 * * * *' });
    expect(fits.checks.filter(({ name }) => name === 'schedules')).toEqual([]);
    const plan = await runHere(['--plan', '--what-if', 'sync.telemetry=*/2 * * * *'], { env: stage.env });
    expect([plan.code, plan.stdout]).toEqual([0, expect.stringContaining('The quota is large enough.')]);
    const before = await runHere(['--plan'], { env: stage.env });
    expect(before.stdout).not.toContain('The quota is large enough.');
    // Once the state has the devices, those that are left out do not count.
    {
      const { store, close } = openStore(stage.dataDir);
      store.pinWorkspace({ apiId: 'ws-simulated', tag: 'ws-simulated' });
      const seen = { lastSeenAt: BigInt(Date.now()) * 1_000_000n };
      const listed = devices.map(({ deviceId }) => ({
        record: device(deviceId, seen),
        name: deviceId,
        line: null,
        digest: '',
      }));
      store.saveInventory({ listed, missing: [], atMs: Date.now() });
      close();
    }
    const left = await stage.report({ TIDEMARK_SYNC_EXCLUDE: 'hub-1' });
    expect(left.checks.filter(({ name }) => name === 'schedules')).toEqual([]);
    expect(line(await stage.report(), 'schedules').message).toContain('if 3 devices have a reading every 60 s');
  });

  test('429 with a long wait: one request, reported at once, and the wait is stored', async () => {
    await using stage = await openStage();
    await using front = await serve((_request, response) => {
      response.writeHead(429, { 'retry-after': '600', 'content-type': 'application/json' });
      response.end('{"error":{"code":"rate_limited","message":"slow down"}}');
    });
    const beganMs = performance.now();
    const report = await stage.report({ TIDEMARK_API_URL: `${front.url}/external/v1` });
    expect(bad(report)[0]).toBe('fail quota');
    expect(line(report, 'quota').message).toMatch(/the next request is possible in 10 min/);
    expect(line(report, 'quota').remedy).toMatch(
      /^Run --check again after that\. If it happens often, lower api\.share/,
    );
    expect(line(report, 'wait header').message).toMatch(/^retry-after /);
    expect([report.exit_code, report.requests]).toEqual([1, 1]);
    const again = await stage.report();
    expect(line(again, 'quota').message).toMatch(
      /^the API asked to wait \(Retry-After\); the next request is possible in 1[01] min$/,
    );
    expect(line(again, 'wait header').message, 'remembered').toMatch(/^retry-after /);
    expect([again.exit_code, again.requests, stage.simulator.log.total]).toEqual([1, 0, 0]);
    expect(performance.now() - beganMs).toBeLessThan(patient(10_000));
  });

  test('429 is over once the check runs again after the wait, with a lower api.share', async () => {
    await using stage = await openStage();
    let isThrottled = true;
    await using front = await serve((request, response) => {
      if (isThrottled) {
        refuseFor600s(response);
        return;
      }
      pass(stage.url, request, response);
    });
    const env = { TIDEMARK_API_URL: `${front.url}/external/v1`, TIDEMARK_API_SHARE: '0.5' };
    expect(bad(await stage.report(env))[0]).toBe('fail quota');
    isThrottled = false;
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 620_000 });
    try {
      expect(bad(await stage.report(env)).filter((each) => each !== 'warn clock')).toEqual([]);
    } finally {
      vi.useRealTimers();
    }
  });

  test('a 429 after an answer gives one line about the quota', async () => {
    await using stage = await openStage();
    let times = 0;
    await using front = await serve((request, response) => {
      times += 1;
      if (times > 1) {
        refuseFor600s(response);
        return;
      }
      pass(stage.url, request, response);
    });
    const report = await stage.report({ TIDEMARK_API_URL: `${front.url}/external/v1` });
    expect(report.checks.filter(({ name }) => name === 'quota').map(({ status }) => status)).toEqual(['fail']);
  });

  test('429 with a short wait is waited out', async () => {
    await using stage = await openStage();
    let times = 0;
    await using front = await serve((request, response) => {
      times += 1;
      if (times === 1) {
        response.writeHead(429, { 'retry-after': '1', date: new Date().toUTCString() });
        response.end('{}');
        return;
      }
      void forward(stage.url, request.url ?? '').then(({ status, headers, body }) => {
        response.writeHead(status, headers);
        response.end(body);
      });
    });
    const report = await stage.report({ TIDEMARK_API_URL: `${front.url}/external/v1` });
    expect(bad(report)).toEqual([]);
    expect([report.requests, times]).toEqual([6, 6]);
  });
});

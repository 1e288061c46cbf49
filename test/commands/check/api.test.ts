/**
 * `--check`, the API: each result, good and bad, the requests that it spends, and the state that it leaves.
 */
import { existsSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test, vi } from 'vitest';
import type { SettingsOverrides } from '../../../src/sim/settings.ts';
import { openStore } from '../../../src/store/store.ts';
import { TEST_CERTIFICATE, TEST_KEY } from '../../api/support/certificate.ts';
import { device } from '../../store/support.ts';
import { always, onPath } from '../../support/faults.ts';
import { patient } from '../../support/patience.ts';
import { bad, type CheckStage, KEY, line, openStage, runHere, serve } from './support.ts';

const ALL = ['account:read', 'devices:read', 'telemetry:read', 'alerts:read'];

function without(scope: string): SettingsOverrides {
  return { key: { secret: KEY, scopes: ALL.filter((each) => each !== scope) } };
}

function rows(stage: CheckStage, sql: string): unknown[] {
  const db = new Database(join(stage.dataDir, 'tidemark.db'), { readonly: true });
  try {
    return db.prepare(sql).all();
  } finally {
    db.close();
  }
}

/** Everything that the state holds but bookings and facts. */
function contentOf(stage: CheckStage): unknown[] {
  const tables = rows(
    stage,
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT IN ('request', 'fact')",
  ) as { name: string }[];
  return tables.flatMap(({ name }) => rows(stage, `SELECT '${name}' AS of_table, * FROM "${name}"`));
}

const asked = ({ simulator }: CheckStage): string[] => simulator.log.requests.map(({ path }) => path);

describe('a key that is right', () => {
  test('all is well: five requests, each booked, and nothing else is kept', async () => {
    await using stage = await openStage();
    const report = await stage.report();
    expect(bad(report)).toEqual([]);
    expect([report.exit_code, report.requests]).toEqual([0, 5]);
    const telemetry = '/devices/hub-1/telemetry';
    expect(asked(stage)).toEqual(['/account', '/devices', telemetry, telemetry, '/alerts']);
    expect(rows(stage, 'SELECT stream, status FROM request ORDER BY id')).toEqual([
      { stream: 'account', status: 200 },
      { stream: 'devices', status: 200 },
      { stream: 'telemetry', status: 200 },
      { stream: 'telemetry', status: 200 },
      { stream: 'alerts', status: 200 },
    ]);
    expect(contentOf(stage).filter((row) => (row as { of_table: string }).of_table !== 'day_total')).toEqual([]);
    expect(rows(stage, 'SELECT key FROM fact')).toEqual([{ key: 'account' }]);
    expect(report.checks.map(({ area, name }) => `${area} ${name}`)).toMatchInlineSnapshot(`
      [
        "configuration values",
        "state directory",
        "state file",
        "state disk",
        "state in use",
        "api connection",
        "api key",
        "api account:read",
        "api devices:read",
        "api telemetry:read",
        "api bounds",
        "api alerts:read",
        "api plan",
        "api history",
        "api workspace",
        "api clock",
        "api quota",
        "api wait header",
        "api challenge header",
        "api rate-limit headers",
        "api page size",
        "destination none",
        "page listen",
        "page readers",
      ]
    `);
  });

  test('its requests count in the next run, and nothing else in the state changes', async () => {
    await using stage = await openStage();
    await stage.report();
    const before = contentOf(stage);
    const report = await stage.report();
    expect(line(report, 'quota').facts).toMatchObject({ spent_day: 10 });
    expect(contentOf(stage)).toEqual(before);
  });

  test('the requests left are those of the budget, as --status shows them, not those of the plan', async () => {
    const plan = { requestsPerMinute: 200, requestsPerDay: 2000 };
    await using stage = await openStage({ settings: { plan } });
    const report = await stage.report({ TIDEMARK_API_SHARE: '0.5' });
    expect(line(report, 'quota').message).toMatch(/^requests left in the budget: 95 for the minute, 995 for the day;/);
    expect(line(report, 'quota').facts).toEqual({ left_minute: 95, left_day: 995, spent_day: 5 });
  });

  test('a budget that is used up is warned of, though the plan leaves requests', async () => {
    await using stage = await openStage({ settings: { plan: { requestsPerMinute: 200, requestsPerDay: 10 } } });
    const report = await stage.report({ TIDEMARK_API_SHARE: '0.5' });
    expect(line(report, 'quota')).toMatchObject({
      status: 'warn',
      facts: { left_day: 0, spent_day: 5 },
      remedy: expect.stringMatching(/^Nothing to do: requests resume .* If it happens often, take a larger plan/),
    });
  });

  test.each([
    ['inclusive', 'exclusive'],
    ['exclusive', 'inclusive'],
  ] as const)('reports that after is %s and before %s', async (after, before) => {
    await using stage = await openStage({ settings: { bounds: { after, before } } });
    expect(line(await stage.report(), 'bounds')).toMatchObject({
      message: `"after" is ${after}, "before" is ${before}`,
      facts: { after_inclusive: after === 'inclusive', before_inclusive: before === 'inclusive' },
    });
  });

  test('a workspace without devices: the scope is still tried', async () => {
    await using stage = await openStage({ devices: [] });
    const report = await stage.report();
    expect(bad(report)).toEqual([]);
    expect(line(report, 'telemetry:read').message).toMatch(/^unknown: .*404/);
    expect(line(report, 'bounds').message).toMatch(
      /whether the request parameters "after" and "before" are inclusive: unknown/,
    );
  });
});

describe('scopes', () => {
  test.each([
    ['devices:read', 77, 'fail'],
    ['telemetry:read', 77, 'fail'],
    ['alerts:read', 0, 'warn'],
    ['account:read', 0, 'warn'],
  ] as const)('%s is missing: %i', async (scope, code, status) => {
    await using stage = await openStage({ settings: without(scope) });
    const report = await stage.report();
    expect(report.exit_code).toBe(code);
    expect(bad(report)).toEqual([`${status} ${scope}`]);
    expect(line(report, scope)).toMatchObject({ message: expect.stringMatching(/^the key lacks this scope: /) });
    expect(line(report, scope).remedy).toContain(scope);
    expect(line(report, 'key').status).toBe('ok');
    expect(report.requests).toBeLessThanOrEqual(5);
  });

  test('one is missing: a key that also has it, in the file of api.key_file', async () => {
    await using stage = await openStage({ settings: without('telemetry:read') });
    expect(line(await stage.report(), 'telemetry:read').remedy).toBe(
      "Create a key in the vendor's web application (Settings, then API) that also has telemetry:read, and write it into the file of api.key_file (or into api.key).",
    );
    const created = 'tmk_CANARYcreated/77';
    stage.simulator.settings.key = { ...stage.simulator.settings.key, secret: created, scopes: ALL };
    expect(bad(await stage.report({ TIDEMARK_API_KEY: created }))).toEqual([]);
    const file = join(stage.directory, 'key');
    writeFileSync(file, created, { mode: 0o600 });
    expect(bad(await stage.report({ TIDEMARK_API_KEY: undefined, TIDEMARK_API_KEY_FILE: file }))).toEqual([]);
  });

  test('none of them: each is reported', async () => {
    await using stage = await openStage({ settings: { key: { secret: KEY, scopes: [] } } });
    const report = await stage.report();
    expect(bad(report)).toEqual(['fail devices:read', 'fail telemetry:read', 'warn account:read', 'warn alerts:read']);
    expect([report.exit_code, report.requests]).toEqual([77, 4]);
  });
});

describe('a key or a plan that is rejected', () => {
  test('another key: 77, one request, the scopes are not tried', async () => {
    await using stage = await openStage();
    const report = await stage.report({ TIDEMARK_API_KEY: 'tmk_CANARYanother' });
    expect(bad(report)).toEqual([
      'fail key',
      'skip devices:read',
      'skip telemetry:read',
      'skip alerts:read',
      'skip account:read',
    ]);
    expect([report.exit_code, report.requests]).toEqual([77, 1]);
    expect(line(report, 'challenge header').message).toMatch(/^www-authenticate /);
  });

  test('a plan without API access ends with 77', async () => {
    await using stage = await openStage({ settings: { plan: { apiAccess: false } } });
    const report = await stage.report();
    expect(bad(report)[0]).toBe('fail access');
    expect(line(report, 'access').message).toMatch(/^the plan of this workspace has no API access/);
    expect([report.exit_code, report.requests]).toEqual([77, 1]);
  });

  test('another workspace than that of the state: 1, and the state stays what it was', async () => {
    await using stage = await openStage({ workspaceId: 'ws-one' });
    const { store, close } = openStore(stage.dataDir);
    store.pinWorkspace({ apiId: 'ws-other', tag: 'ws-other' });
    close();
    const report = await stage.report();
    expect(bad(report)).toEqual(['fail workspace']);
    expect(line(report, 'workspace')).toMatchObject({
      exit_code: 1,
      message: expect.stringMatching(/^the key belongs to the workspace ws-one.*, but the state to ws-other/),
      remedy: expect.stringMatching(/another data_dir for this one/),
    });
    expect(bad(await stage.report({ TIDEMARK_DATA_DIR: join(stage.directory, 'another') }))).toEqual([]);
    expect(rows(stage, 'SELECT key, value FROM fact ORDER BY key')).toEqual([
      { key: 'workspace_id', value: 'ws-other' },
      { key: 'workspace_tag', value: 'ws-other' },
    ]);
  });
});

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

/** Sends requests to the simulator in place of another server. */
async function forward(
  base: string,
  path: string,
): Promise<{ status: number; headers: Record<string, string>; body: string }> {
  const target = `${base}${path.replace(/^\/external\/v1/, '')}`;
  const answer = await fetch(target, { headers: { authorization: `Bearer ${KEY}` } });
  const names = ['content-type', 'date', 'x-ratelimit-limit', 'x-ratelimit-remaining'];
  const headers = Object.fromEntries(names.map((name) => [name, answer.headers.get(name) ?? '']));
  return { status: answer.status, headers, body: await answer.text() };
}

describe('never more than six requests', () => {
  test('a limit that is refused, on top of all else', async () => {
    const settings = { ...without('account:read'), plan: { maxDevicesPerPage: 50 } };
    await using stage = await openStage({ settings });
    const report = await stage.report();
    expect(bad(report)).toEqual(['warn account:read']);
    expect(line(report, 'page size').facts).toEqual({ accepted: 50, refused: 200 });
    expect([report.requests, stage.simulator.log.total]).toEqual([6, 6]);
  });

  test('a service that refuses everything once more than it should', async () => {
    await using stage = await openStage();
    let times = 0;
    await using front = await serve((request, response) => {
      times += 1;
      const isLarge = /limit=\d{2}/.test(request.url ?? '');
      response.writeHead(isLarge ? 400 : 200, { 'content-type': 'application/json', 'x-ratelimit-limit': '6000' });
      response.end(isLarge ? '{"error":{"code":"invalid_request","message":"no"}}' : '{"data":[]}');
    });
    const report = await stage.report({ TIDEMARK_API_URL: `${front.url}/external/v1` });
    expect([report.requests, times]).toEqual([6, 6]);
    expect(rows(stage, 'SELECT count(*) AS n FROM request')).toEqual([{ n: 6 }]);
    expect(
      report.checks.filter(({ message }) => /the limit of requests for a check/.test(message)).length,
    ).toBeGreaterThan(0);
  });
});

describe('the way there', () => {
  test('a wrong path of api.url is named', async () => {
    await using stage = await openStage();
    const wrong = stage.url.replace('/external/v1', '/wrong/external/v1');
    const report = await stage.report({ TIDEMARK_API_URL: wrong });
    expect(bad(report)[0]).toBe('fail address');
    expect(line(report, 'address')).toMatchObject({ remedy: expect.stringMatching(/Correct api\.url/) });
    expect([report.exit_code, report.requests]).toEqual([1, 1]);
    expect(bad(await stage.report({ TIDEMARK_API_URL: stage.url }))).toEqual([]);
  });

  test.each([
    [
      'connection',
      'http://127.0.0.1:1/external/v1',
      /connection refused/,
      /^Check that api\.url is right \(127\.0\.0\.1, port 1\), that the server is up/,
    ],
    [
      'name',
      'http://no-such-host.invalid/external/v1',
      /the host name no-such-host\.invalid (was not found|could not be resolved)/,
      /^Correct the host in api\.url, or check the name servers/,
    ],
  ])(
    '%s fails: no request is made, the state is not touched, the other checks continue',
    async (name, url, words, remedy) => {
      await using stage = await openStage();
      const report = await stage.report({ TIDEMARK_API_URL: url });
      expect(line(report, name)).toMatchObject({
        status: 'fail',
        message: expect.stringMatching(words),
        remedy: expect.stringMatching(remedy),
      });
      expect([report.exit_code, report.requests]).toEqual([1, 0]);
      expect(bad(report, 'api').slice(1)).toEqual([
        'skip devices:read',
        'skip telemetry:read',
        'skip alerts:read',
        'skip account:read',
      ]);
      expect(line(report, 'none').area, 'destinations are told of').toBe('destination');
      expect(existsSync(stage.dataDir), 'no state is left behind').toBe(false);
      expect(bad(await stage.report({ TIDEMARK_API_URL: stage.url }), 'api')).toEqual([]);
    },
  );

  test('TLS: with an unknown authority, with a known one, and with a server without TLS', async () => {
    await using stage = await openStage();
    const server = createTlsServer({ key: TEST_KEY, cert: TEST_CERTIFICATE }, (request, response) => {
      void forward(stage.url, request.url ?? '').then(({ status, headers, body }) => {
        response.writeHead(status, headers);
        response.end(body);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const env = { TIDEMARK_API_URL: `https://127.0.0.1:${(server.address() as AddressInfo).port}/external/v1` };
      const unknown = await stage.report(env);
      expect(bad(unknown)[0]).toBe('fail TLS');
      expect(line(unknown, 'TLS').remedy).toMatch(/api\.ca_file/);
      expect([unknown.exit_code, unknown.requests]).toEqual([1, 0]);
      const file = join(stage.directory, 'ca.pem');
      writeFileSync(file, TEST_CERTIFICATE);
      const known = await stage.report({ ...env, TIDEMARK_API_CA_FILE: file });
      expect(line(known, 'TLS').message).toMatch(
        /^TLSv1\.\d; the certificate is trusted; it expires in [\d,]+(\.\d)? days/,
      );
      expect([bad(known, 'api'), known.requests]).toEqual([[], 5]);
      // Eight days before it expires.
      vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2126, 9, 20) });
      const ending = await stage.report({ ...env, TIDEMARK_API_CA_FILE: file, TIDEMARK_DATA_DIR: `${stage.dataDir}2` });
      expect(line(ending, 'TLS')).toMatchObject({
        status: 'warn',
        message: expect.stringMatching(/^the certificate of the API expires in 8(\.\d)? days/),
        remedy: 'Ask the operator of the API to renew it.',
      });
    } finally {
      vi.useRealTimers();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
    const plain = await stage.report({ TIDEMARK_API_URL: stage.url.replace('http:', 'https:') });
    expect(line(plain, 'TLS')).toMatchObject({
      status: 'fail',
      remedy: expect.stringMatching(/^If that is intended, write api\.url with http:\/\/\.$/),
    });
    expect(bad(await stage.report({ TIDEMARK_API_URL: stage.url }), 'api')).toEqual([]);
  });

  test('TLS: a server that closes the connection instead', async () => {
    await using stage = await openStage();
    const server = createTcpServer((socket) => void socket.once('data', () => socket.destroy()));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const report = await stage.report({ TIDEMARK_API_URL: `https://127.0.0.1:${port}/external/v1` });
    expect(line(report, 'TLS')).toMatchObject({ status: 'fail', remedy: expect.stringMatching(/^Set api\.ca_file/) });
    await new Promise((resolve) => server.close(resolve));
  });

  test('a host that accepts connections and never answers: the timeout, once', async () => {
    await using stage = await openStage();
    stage.simulator.faults = always({ kind: 'hang' });
    const beganMs = performance.now();
    const report = await stage.report({ TIDEMARK_API_TIMEOUT: '1s' });
    expect(performance.now() - beganMs).toBeLessThan(patient(3000));
    expect(bad(report)[0]).toBe('fail answer');
    expect(line(report, 'answer').message).toMatch(/no complete response within 1000 ms/);
    expect(line(report, 'answer').remedy).toBe(
      'Check the network, HTTPS_PROXY and api.ca_file, then run --check again.',
    );
    expect([report.exit_code, report.requests]).toEqual([1, 1]);
    stage.simulator.faults = null;
    expect(bad(await stage.report())).toEqual([]);
  });

  test('something else answers: two such answers are enough', async () => {
    await using stage = await openStage();
    stage.simulator.faults = always({ kind: 'html', status: 200 });
    const report = await stage.report();
    expect(report.checks.filter(({ name }) => name === 'answer')).toHaveLength(2);
    expect(report.checks.find(({ name }) => name === 'answer')).toMatchObject({
      message: expect.stringMatching(/an HTML page/),
      remedy: expect.stringMatching(/^Run --check again\. If the problem stays, check that api\.url is right/),
    });
    expect([report.exit_code, report.requests]).toEqual([1, 2]);
  });

  test('one endpoint that fails keeps no other from being tried', async () => {
    await using stage = await openStage();
    stage.simulator.faults = onPath(/alerts/, always({ kind: 'server-error' }));
    const report = await stage.report();
    expect(bad(report)).toEqual(['fail answer']);
    expect(line(report, 'telemetry:read').status).toBe('ok');
    expect(report.exit_code).toBe(1);
    stage.simulator.faults = null;
    expect(bad(await stage.report())).toEqual([]);
  });
});

test('a state that cannot be used: one row for the requests that were not sent, with --verbose one each', async () => {
  await using stage = await openStage();
  const env = { TIDEMARK_DATA_DIR: '/dev/null/state' };
  const rowsOf = async (args: readonly string[]) =>
    (await stage.run(args, { env })).stdout.split('\n').filter((row) => row.includes('not tried'));
  expect(await rowsOf([])).toEqual([
    expect.stringMatching(/^ {2}- {5}requests {12}not tried: devices:read, telemetry:read/),
  ]);
  expect(await rowsOf(['--verbose'])).toHaveLength(4);
  expect(stage.simulator.log.total).toBe(0);
});

describe('on a terminal', () => {
  test.each([
    [60, 60],
    [120, 120],
    [0, 80],
  ])('of %i columns, a line that is in order takes one row of at most %i', async (columns, width) => {
    await using stage = await openStage();
    const env = { TIDEMARK_API_KEY: undefined, TIDEMARK_DATA_DIR: join(stage.directory, 'd'.repeat(100), 'state') };
    const rows = (await stage.run([], { env, columns })).stdout.split('\n');
    expect(Math.max(...rows.map((row) => row.length))).toBe(width);
    const at = rows.findIndex((row) => row.startsWith('  ok    directory '));
    expect([rows[at]?.length, rows[at]?.at(-1), rows[at + 1]]).toEqual([width, '…', expect.stringMatching(/^ {2}\S/)]);
    const whole = (await stage.run([], { env })).stdout.split('\n');
    expect(whole.find((row) => row.startsWith('  ok    directory '))).toMatch(
      `it will be created in ${stage.directory}`,
    );
  });

  test('shows the step in progress, and removes that line', async () => {
    await using stage = await openStage();
    const { stderr } = await stage.run([], { isTTY: true });
    expect(stderr).toContain('checking the API: devices:read …');
    expect(stderr.endsWith('\r\u001b[K')).toBe(true);
  });

  test('an interrupted check ends with 3 and prints nothing on standard output', async () => {
    await using stage = await openStage();
    stage.simulator.faults = always({ kind: 'hang' });
    const stop = new AbortController();
    const running = stage.run([], { signal: stop.signal });
    while (stage.simulator.log.total === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    stop.abort(new Error('stopped by SIGINT'));
    const { code, stdout, stderr } = await running;
    expect([code, stdout]).toEqual([3, '']);
    expect(stderr).toMatch(/Stopped before every check was done\. Run --check again\./);
    stage.simulator.faults = null;
    expect((await stage.run()).code).toBe(0);
  });
});

/** `--check`, the API: a key and its scopes, the requests that it spends, and the state that it leaves. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import type { SettingsOverrides } from '../../../src/sim/settings.ts';
import { openStore } from '../../../src/store/store.ts';
import { always } from '../../support/faults.ts';
import { bad, type CheckStage, KEY, line, openStage, serve } from './support.ts';

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

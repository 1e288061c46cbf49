/**
 * The log of the real program through faults: every line matches the table, and none contains a secret, a URL with a
 * query or a body.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { VERSION } from '../../src/core/status.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { mistakesOfLine } from '../support/log-lines.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { KEY, openBench, openStage, type Run, TOKEN, until } from './support.ts';

const bench = sharedBench(openBench);

const linesOf = (stderr: string): string[] => stderr.split('\n').filter((line) => line !== '');

/** How often each event was reported on a level that is written by default. */
function reportedIn(stderr: string): Record<string, number> {
  const reported: Record<string, number> = {};
  for (const line of linesOf(stderr)) {
    const { event, level } = JSON.parse(line);
    if (level !== 'debug') reported[event] = (reported[event] ?? 0) + 1;
  }
  return reported;
}

/** Waits for an event to be logged above `debug`. */
async function hears(run: Run, event: string): Promise<void> {
  const isTold = (): boolean =>
    linesOf(run.stderr()).some((line) => line.includes(`"event":"${event}"`) && !line.includes('"level":"debug"'));
  await until(event, () => isTold() || run.child.exitCode !== null);
}

describe('the log of a daemon', () => {
  test.runIf(influxdAvailable())('that meets faults matches its table', async () => {
    await using stage = await openStage({ bench });
    const env = {
      TIDEMARK_LISTEN: '127.0.0.1:0',
      TIDEMARK_SYNC_GRACE_PERIOD: '0s',
      TIDEMARK_SYNC_INCLUDE: 'no-such-device,*',
      TIDEMARK_LOG_LEVEL: 'debug',
      TIDEMARK_LOG_FORMAT: 'json',
      TIDEMARK_API_KEY: undefined,
      TIDEMARK_API_KEY_FILE: join(stage.directory, 'key'),
    };
    writeFileSync(join(stage.directory, 'key'), 'tmk_revoked_CANARYold');
    // The key is revoked, and another one comes by its file; the database is down, and repeats the token.
    const down = `down for ${TOKEN} at http://x/?token=${TOKEN}`;
    bench.proxy.setFaults(() => ({ kind: 'answer', status: 503, body: down }));
    const run = stage.start([], { env });
    await hears(run, 'key-refused');
    writeFileSync(join(stage.directory, 'key'), KEY);
    await hears(run, 'key-changed');
    await hears(run, 'delivery-blocked');
    await until('all is archived', () => run.stderr().includes('"event":"page-committed"'));
    bench.proxy.setFaults(null);
    await hears(run, 'delivery-resumed');
    await hears(run, 'initial-sync-done');
    run.child.kill('SIGTERM');
    const { stderr, code } = await run.ended;
    expect(code).toBe(0);
    expect(linesOf(stderr).flatMap(mistakesOfLine)).toEqual([]);
    for (const secret of [KEY, TOKEN, 'CANARY', encodeURIComponent(TOKEN), '?token', 'limit='])
      expect(stderr).not.toContain(secret);
    const reported = reportedIn(stderr);
    for (const event of ['started', 'poll-summary', 'filter-matches-nothing', 'stopping', 'stopped'])
      expect(reported, event).toHaveProperty(event);
    expect(linesOf(stderr).find((line) => line.includes('"event":"started"'))).toContain(`"version":"${VERSION}"`);
    expect(reported).toMatchObject({
      'delivery-blocked': 1,
      'delivery-resumed': 1,
      'key-refused': 1,
      'key-changed': 1,
      'key-accepted': 1,
    });
    expect(reported['poll-summary']).toBeLessThan(15);
  });

  test('whose API is down reports that once, and its end', async () => {
    await using stage = await openStage();
    stage.simulator.faults = () => ({ kind: 'html', status: 502 });
    const env = { TIDEMARK_LISTEN: '127.0.0.1:0', TIDEMARK_LOG_LEVEL: 'debug', TIDEMARK_LOG_FORMAT: 'json' };
    // A request is tried five times, with growing pauses, before it counts as failed.
    const run = stage.start([], { env });
    await hears(run, 'api-outage');
    stage.simulator.faults = null;
    await hears(run, 'api-recovered');
    await hears(run, 'poll-summary');
    run.child.kill('SIGTERM');
    const { stderr } = await run.ended;
    expect(linesOf(stderr).flatMap(mistakesOfLine)).toEqual([]);
    expect(reportedIn(stderr)).toMatchObject({ 'api-outage': 1, 'api-recovered': 1, 'stream-failed': 1 });
    expect(stderr).not.toContain(KEY);
  });
});

describe('the log of a one-off', () => {
  test('matches its table, also where it ends with an error', async () => {
    await using stage = await openStage({ settings: { key: { scopes: ['devices:read', 'telemetry:read'] } } });
    const env = { TIDEMARK_LOG_FORMAT: 'json', TIDEMARK_LOG_LEVEL: 'debug' };
    const once = await stage.run(['--once', '--json'], { env });
    expect(once.code).toBe(0);
    expect(linesOf(once.stderr).flatMap(mistakesOfLine)).toEqual([]);
    expect(reportedIn(once.stderr)).toMatchObject({ 'run-ended': 1, 'run-incomplete': 1, 'stream-off': 2 });
    const exported = await stage.run(['--export', 'lp'], { env });
    expect(linesOf(exported.stderr).flatMap(mistakesOfLine)).toEqual([]);
    expect(reportedIn(exported.stderr)).toMatchObject({ 'export-report': 1 });
    stage.simulator.settings.key.revoked = true;
    const refused = await stage.run(['--once', '--json'], { env });
    expect(refused.code).toBe(77);
    expect(linesOf(refused.stderr).flatMap(mistakesOfLine)).toEqual([]);
    expect(reportedIn(refused.stderr)).toMatchObject({ failed: 1 });
  });
});

describe('an empty state before a database that is not', () => {
  test.runIf(influxdAvailable())('is warned of once, before the first points', async () => {
    await using stage = await openStage({ bench });
    const env = { TIDEMARK_LOG_FORMAT: 'json' };
    const once = async (): Promise<Record<string, number>> => {
      const { code, stderr } = await stage.run(['--once'], { env });
      expect(code, stderr).toBe(0);
      return reportedIn(stderr);
    };
    expect(await once()).not.toHaveProperty('destination-older');
    expect(await once(), 'the state is not empty').not.toHaveProperty('destination-older');
    rmSync(stage.dataDir, { recursive: true });
    expect(await once()).toMatchObject({ 'destination-older': 1 });
  });
});

describe('a configuration that cannot be used', () => {
  test('is one line of JSON where the log is JSON', async () => {
    await using stage = await openStage();
    writeFileSync(join(stage.directory, 'c.yaml'), `log:\n  format: json\nlisten: "nowhere"\napi:\n  share: ${KEY}\n`);
    const ways: readonly (readonly [string[], Record<string, string>, number])[] = [
      // The key is in place of a share: both are reported.
      [['--config', 'c.yaml'], {}, 3],
      [[], { TIDEMARK_LOG_FORMAT: 'json', TIDEMARK_LISTEN: 'nowhere', TIDEMARK_SYNC_GRACE_PERIOD: 'x' }, 2],
      [['--once'], { TIDEMARK_LOG_FORMAT: 'json', TIDEMARK_LISTEN: 'nowhere', TIDEMARK_NO_SUCH: 'x' }, 2],
    ];
    for (const [args, env, mistakes] of ways) {
      const { code, stderr } = await stage.run(args, {
        env: { TIDEMARK_API_SHARE: undefined, ...env },
      });
      expect(code, stderr).toBe(78);
      const lines = linesOf(stderr);
      expect(lines.flatMap(mistakesOfLine)).toEqual([]);
      expect(lines.map((line) => JSON.parse(line))).toMatchObject(
        [{ level: 'error', event: 'configuration-invalid', exit_code: 78, mistakes, msg: /listen/ }].map(
          ({ msg, ...line }) => ({ ...line, msg: expect.stringMatching(msg) }),
        ),
      );
      expect(stderr).not.toContain('CANARY');
    }
  });

  test('names as many mistakes as fit into the line, whole, and the number of the others', async () => {
    await using stage = await openStage();
    const unknown = Array.from({ length: 40 }, (_, index) => `TIDEMARK_NO_SUCH_${index + 10}`);
    const { code, stderr } = await stage.run([], { env: Object.fromEntries(unknown.map((name) => [name, 'x'])) });
    const { mistakes, msg } = JSON.parse(stderr);
    const named = msg.match(/TIDEMARK_NO_SUCH_\d\d: [^;]*[a-z](?=;)/g) ?? [];
    expect([code, mistakes, named.length > 9 && msg.length <= 1000]).toEqual([78, 40, true]);
    expect(msg.endsWith(`; and ${40 - named.length} more mistakes; tidemark --check lists all`)).toBe(true);
    const checked = await stage.run(['--check'], { env: Object.fromEntries(unknown.map((name) => [name, 'x'])) });
    expect(unknown.filter((name) => !checked.stdout.includes(name))).toEqual([]);
  });

  test('is text for people elsewhere, a line for each mistake', async () => {
    await using stage = await openStage();
    const { code, stderr } = await stage.run([], { env: { TIDEMARK_LISTEN: 'nowhere', TIDEMARK_LOG_FORMAT: 'jsn' } });
    expect(code).toBe(78);
    expect(stderr).toMatch(/^tidemark: The configuration is invalid:\n {2}log\.format .*|listen/);
    expect(stderr.trim().split('\n')).toHaveLength(3);
  });

  test('is JSON for a daemon without a terminal unless the format is pretty, and for a command only if it is json', async () => {
    await using stage = await openStage();
    const isJson = async (args: string[], env: Record<string, string>): Promise<boolean> => {
      const { code, stderr } = await stage.run(args, { env: { TIDEMARK_LISTEN: 'nowhere', ...env } });
      expect(code, stderr).toBe(args.includes('--no-such-flag') ? 2 : 78);
      return !stderr.startsWith('tidemark: ');
    };
    expect(await isJson([], {})).toBe(true);
    expect(await isJson([], { TIDEMARK_LOG_FORMAT: 'pretty' })).toBe(false);
    expect(await isJson(['--once'], {})).toBe(false);
    // The command line is read before the configuration.
    expect(await isJson(['--no-such-flag'], { TIDEMARK_LOG_FORMAT: 'json' })).toBe(false);
  });
});

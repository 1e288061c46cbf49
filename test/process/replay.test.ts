/**
 * `--replay` as a real process: alone and beside a daemon, without a key, and its error messages.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { influxdAvailable } from '../support/influxd.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { openBench, openStage, type Stage, until } from './support.ts';

const bench = sharedBench(openBench);

const NO_KEY = { TIDEMARK_API_KEY: undefined, TIDEMARK_API_URL: undefined, TIDEMARK_API_SHARE: undefined };

async function filled(): Promise<Stage> {
  const stage = await openStage(influxdAvailable() ? { bench } : {});
  const { code, stderr } = await stage.run(['--once']);
  expect(code, stderr).toBe(0);
  return stage;
}

async function empty({ database }: Stage): Promise<void> {
  await bench.influxd.query('', `DROP DATABASE ${database}`);
  await bench.influxd.query('', `CREATE DATABASE ${database}`);
}

async function count({ database }: Stage): Promise<number> {
  const [row] = await bench.influxd.query(database, 'SELECT count(value) FROM telemetry');
  return Number(row?.count ?? 0);
}

describe.runIf(influxdAvailable())('--replay', () => {
  test('alone restores the points that the database has lost, without a key, and reports the sent ones', async () => {
    await using stage = await filled();
    const before = await count(stage);
    const requests = stage.simulator.log.total;
    await empty(stage);
    const { code, stdout, stderr } = await stage.run(['--replay', '--json'], { env: NO_KEY });
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      outcome: 'complete',
      exit_code: 0,
      destinations: [
        {
          name: 'influx',
          outcome: 'complete',
          refused: 0,
          blocked_reason: null,
          from: '1970-01-01T00:00:00Z',
          to: null,
        },
      ],
    });
    expect(stderr).toMatch(/points sent to influx, [\d,]+ accepted/);
    expect(await count(stage)).toBe(before);
    expect(stage.simulator.log.total).toBe(requests);
    await empty(stage);
    const part = await stage.run(['--replay', '--device', 'tied', '--max-rate', '100000'], { env: NO_KEY });
    expect([part.code, part.stdout], part.stderr).toEqual([0, '']);
    const rows = await bench.influxd.query(stage.database, 'SHOW TAG VALUES FROM telemetry WITH KEY = device_id');
    expect(rows.map(({ value }) => value)).toEqual(['tied']);
  });

  test('beside a daemon has it do the work', async () => {
    await using stage = await filled();
    const before = await count(stage);
    const daemon = stage.start([], { env: { TIDEMARK_LISTEN: '127.0.0.1:0' } });
    await until('the daemon runs', () => daemon.stderr().includes('"status_page"'));
    await empty(stage);
    const { code, stdout, stderr } = await stage.run(['--replay', '--json'], { env: NO_KEY });
    expect(code, stderr).toBe(0);
    expect(stderr).toContain('A daemon uses this state');
    expect(JSON.parse(stdout)).toMatchObject({ outcome: 'complete', destinations: [{ name: 'influx' }] });
    expect(await count(stage)).toBeGreaterThanOrEqual(before);
    expect(daemon.stderr()).toContain('"replay-ended"');
    daemon.child.kill('SIGTERM');
    expect((await daemon.ended).code).toBe(0);
  });

  test('stopped ends with 3 and continues when it is run again', async () => {
    await using stage = await filled();
    const before = await count(stage);
    await empty(stage);
    const args = ['--replay', '--max-rate', '200'];
    const run = stage.start(args, { env: NO_KEY });
    await until('some of it is sent', async () => (await count(stage)) > 50);
    run.child.kill('SIGTERM');
    const { code, stderr } = await run.ended;
    expect(code).toBe(3);
    expect(stderr).toContain('run the same command again to continue');
    const again = await stage.run(args, { env: NO_KEY });
    expect(again.code, again.stderr).toBe(0);
    expect(again.stderr).toContain('Replay continues: archived points are sent again');
    expect(await count(stage)).toBe(before);
  });

  describe('a mistake', () => {
    let stage: Stage;
    beforeAll(async () => {
      stage = await filled();
    });
    afterAll(async () => await stage[Symbol.asyncDispose]());

    test.each<[string[], number, RegExp]>([
      [['--destination', 'inflx'], 2, /there is no database of that name\. Did you mean influx\?/],
      [['--destination', 'CANARYCANARY'], 2, /There is influx\./],
      [['--max-rate', '0'], 2, /--max-rate: expected a whole number from 1 to 100000000 lines a second/],
      [['--max-rate', 'CANARY'], 2, /--max-rate: expected a whole number/],
      [['--from', 'CANARY'], 2, /--from: expected a date/],
      [['--device', 'wlak'], 2, /Similar: walk\./],
    ])('%j is refused with the reason', async (args, exitCode, words) => {
      const { code, stdout, stderr } = await stage.run(['--replay', ...args], { env: NO_KEY });
      expect([code, stdout]).toEqual([exitCode, '']);
      expect(stderr).toMatch(words);
      expect(stderr).not.toContain('CANARY');
    });
  });

  test('needs a state', async () => {
    await using stage = await openStage({ bench });
    const { code, stderr } = await stage.run(['--replay'], { env: NO_KEY });
    expect(code).toBe(1);
    expect(stderr).toMatch(/There is no state in .* yet\. If a daemon/);
  });
});

test('--replay needs a database', async () => {
  await using stage = await openStage();
  const { code, stderr } = await stage.run(['--replay'], { env: NO_KEY });
  expect(code).toBe(78);
  expect(stderr).toContain('No database is configured: set influx.url');
});

/**
 * The documented commands of this program, unchanged: in a checkout and as the installed program, with a state and a
 * database that a run has filled, and `init` with the names and ports of the pages. tried-commands.ts lists them.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS } from '../../src/core/time.ts';
import { PAGES_CERTIFICATE, PAGES_KEY } from '../api/support/certificate.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { openNetwork } from '../support/own-network.ts';
import { shell } from '../support/run-command.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { CHECKOUT, commandsBy, DATABASE, INIT, INSTALLED, RESTORE } from '../support/tried-commands.ts';
import { refuse } from './refuse.ts';
import { KEY, MAIN, openBench, openStage, ROOT, type Stage, TOKEN } from './support.ts';

const bench = sharedBench(openBench);

describe.runIf(influxdAvailable())('with a state that a run has left', () => {
  let stage: Stage;
  let env: Readonly<Record<string, string>>;
  /** The checkout. */
  let place: string;
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  beforeAll(async () => {
    const devices = ['hub-1', 'hub-2', 'hub-17', 'walk'].map((deviceId) => ({ deviceId, intervalMs: HOUR_MS }));
    const settings = { plan: { historyMaxDays: null } };
    stage = await openStage({ bench, devices, historyMs: 3 * DAY_MS, settings });
    const { code, stderr } = await stage.run(['--once']);
    expect(code, stderr).toBe(0);
    const line = `telemetry,device_id=hub-1,sensor=refused,workspace_id=ws value=1 ${Date.now()}000000`;
    refuse(stage, [line]);
    cpSync(stage.dataDir, join(stage.directory, 'left'), { recursive: true });
    place = join(stage.directory, 'tidemark');
    for (const path of [place, join(stage.directory, 'bin')]) mkdirSync(path);
    for (const name of ['package.json', 'src', 'node_modules']) symlinkSync(join(ROOT, name), join(place, name));
    // As the image has it.
    symlinkSync(MAIN, join(stage.directory, 'bin', 'tidemark'));
    const path = [join(stage.directory, 'bin'), dirname(process.execPath), process.env['PATH']].join(':');
    env = { ...stage.env, HOME: stage.directory, PATH: path, TIDEMARK_LISTEN: '127.0.0.1:0' };
  });
  afterAll(async () => await stage[Symbol.asyncDispose]());

  const run = async (command: string, more: Readonly<Record<string, string>> = {}): Promise<string> => {
    rmSync(stage.dataDir, { recursive: true });
    cpSync(join(stage.directory, 'left'), stage.dataDir, { recursive: true });
    const { code, stdout, stderr } = await shell(command, { cwd: place, env: { ...env, ...more } });
    expect(code, stdout + stderr).toBe(0);
    expect(stderr).not.toContain('This is a bug');
    return stdout;
  };
  const points = async (where = ''): Promise<number> => {
    const [row] = await bench.influxd.query(stage.database, `SELECT count(value) FROM telemetry ${where}`);
    return Number(row?.['count'] ?? 0);
  };

  /** Deletes points of the last two whole days in the database, and expects that the command sends them again. */
  const restores = async (command: string): Promise<string> => {
    const [from, to] = [-2, 0].map((days) => new Date(today + days * DAY_MS).toISOString());
    const before = await points();
    const lost = `WHERE device_id = 'hub-2' AND time >= '${from}' AND time < '${to}'`;
    await bench.influxd.query(stage.database, `DELETE FROM telemetry ${lost}`);
    expect(await points()).toBeLessThan(before - 40);
    const stdout = await run(command);
    expect(await points()).toBe(before);
    return stdout;
  };

  /** The output or the effect of each command. */
  const EFFECTS: Readonly<Record<string, (command: string) => Promise<void>>> = {
    'tidemark --verify': async (command) =>
      expect(await run(command)).toMatch(
        /^Telemetry: [\d-]{10} to [\d-]{10} \(whole days, UTC\)\n[\s\S]*\ninflux \(InfluxDB\): no differences\n/,
      ),
    'tidemark --verify --sample 5': async (command) => expect(await run(command)).toMatch(/: no differences\n/),
    'tidemark --verify --repair': async (command) =>
      expect(await restores(command)).toMatch(/repaired: \d+ points sent again/),
    'tidemark --verify --repair --destination influx': async (command) =>
      expect(await restores(command)).toMatch(/repaired: \d+ points sent again/),
    'tidemark --replay --max-rate 5000': async (command) => void (await restores(command)),
    'tidemark --quarantine': async (command) => expect(await run(command)).toMatch(/field type conflict/),
    'tidemark --quarantine retry': async (command) => {
      expect(await run(command)).toBe('influx: 1 point accepted\n');
      expect(await points("WHERE sensor = 'refused'")).toBe(1);
    },
    'tidemark --forget --device walk': async (command) =>
      expect(await run(command, { TIDEMARK_SYNC_EXCLUDE: 'walk' })).toMatch(
        /^Removed walk: [\d,]+ points from the archive/,
      ),
  };

  test('each command with a database has an entry in EFFECTS', () => {
    expect(Object.keys(EFFECTS).toSorted()).toEqual(commandsBy(DATABASE).toSorted());
  });

  // First, while the database has what the state has; and `--quarantine retry`, which adds a point, behind `--verify`.
  test.each(commandsBy(DATABASE).toReversed())('%s', async (command) => await EFFECTS[command]?.(command));

  /** The file that a command redirects its output to. */
  const writes = (command: string): string => / > (\w[\w.]*)$/.exec(command)?.[1] ?? '';

  test.each(commandsBy(CHECKOUT))('%s', async (command) => {
    // cron reads five fields, and `\%` as `%`.
    const isCron = command.startsWith('0 3 * * * ');
    const stdout = await run(isCron ? command.slice('0 3 * * * '.length).replaceAll('\\%', '%') : command);
    if (isCron) expect(readdirSync(join(place, 'backups'))).toEqual([`${new Date().toISOString().slice(0, 10)}.db`]);
    else
      expect(
        (writes(command) === '' ? stdout : readFileSync(join(place, writes(command)), 'utf8')).length,
      ).toBeGreaterThan(50);
  });

  test.each(commandsBy(RESTORE))('%s', async (command) => {
    const cwd = join(stage.directory, 'restored');
    mkdirSync(cwd);
    for (const name of ['package.json', 'src', 'node_modules']) symlinkSync(join(ROOT, name), join(cwd, name));
    await run(`tidemark --backup ${join(cwd, 'monday.db')}`);
    cpSync(join(stage.directory, 'left'), join(cwd, 'data'), { recursive: true });
    const { code, stderr } = await shell(command, { cwd, env });
    expect(code, stderr).toBe(0);
    expect(readdirSync(join(cwd, 'data'))).toEqual(['tidemark.db']);
    expect(readdirSync(join(cwd, 'before-restore'))).toContain('tidemark.db');
    const modes = ['data', 'data/tidemark.db'].map((name) => statSync(join(cwd, name)).mode & 0o777);
    expect(modes).toEqual([0o700, 0o600]);
    const own = { ...env, TIDEMARK_DATA_DIR: 'data' };
    const status = await shell('npm start --silent -- --status --json', { cwd, env: own });
    expect(JSON.parse(status.stdout).totals.archived_readings).toBeGreaterThan(100);
  });

  test('the installed program prints the documented output', async () => {
    const lines: Record<string, number> = {};
    for (const command of commandsBy(INSTALLED)) lines[command] = (await run(command)).trimEnd().split('\n').length;
    expect(lines).toMatchObject({
      'tidemark --export csv --from 1d | head -4': 4,
      'tidemark --export ndjson --from 1d | head -1': 1,
      'tidemark --export lp | grep ^telemetry | head -1': 1,
      'tidemark --export csv --from 1d --json > day.csv': 1,
    });
    expect(statSync(join(place, 'monday.db')).size).toBeGreaterThan(4096);
    expect(readFileSync(join(place, 'day.csv'), 'utf8')).toMatch(/^time,device_id,device_name,sensor,value,type\r?\n/);
  });

  test.each(commandsBy(INIT))('%s', async (command) => {
    using network = await openNetwork({
      doors: {
        443: { to: stage.server.url, tls: { cert: PAGES_CERTIFICATE, key: PAGES_KEY } },
        8086: { to: bench.proxy.url },
      },
      names: ['monitoring.example'],
    });
    if (!network.isOwn) return;
    await bench.influxd.query('', 'CREATE DATABASE devices');
    for (const [name, text] of [
      ['key', KEY],
      ['token', TOKEN],
      ['ca.pem', PAGES_CERTIFICATE],
    ] as const)
      writeFileSync(join(place, name), text, { mode: 0o600 });
    const { prefix } = network;
    const extra = { PATH: env['PATH'] ?? '', NODE_EXTRA_CA_CERTS: join(place, 'ca.pem') };
    const { code, stdout, stderr } = await shell(command, { cwd: place, env: extra, prefix });
    expect(code, stdout + stderr).toBe(0);
    const written = readFileSync(join(place, 'config/tidemark.yaml'), 'utf8');
    expect(written).toContain('https://monitoring.example/external/v1');
    expect(written).toContain('http://127.0.0.1:8086');
    expect(stdout + stderr + written).not.toContain(KEY);
    expect(existsSync(join(place, 'data'))).toBe(false);
  });
});

/**
 * `--check` as it runs: the real command in this process, over real HTTP to the simulator, with a state of its own.
 */
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { realClock } from '../../../src/app/real-clock.ts';
import { parseArguments } from '../../../src/cli/argv.ts';
import type { CheckLine, CheckReport } from '../../../src/commands/check/report.ts';
import { runCommand } from '../../../src/commands/run.ts';
import { UserError } from '../../../src/core/faults.ts';
import { HOUR_MS } from '../../../src/core/time.ts';
import { serveSimulator } from '../../../src/sim/server.ts';
import type { SettingsOverrides } from '../../../src/sim/settings.ts';
import { createSimulator, type Simulator } from '../../support/faulty-simulator.ts';
import { createWorld, type DeviceSpec } from '../../support/trait-world.ts';

/** Distinctive, with characters that every encoding changes. */
export const KEY = 'tmk_CANARYkey/7+9%Zz~4242';
export const TOKEN = 'CANARYuser:CANARYtoken+/=%83==xyz';

export interface CheckRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CheckStage extends AsyncDisposable {
  readonly simulator: Simulator;
  readonly url: string;
  readonly directory: string;
  readonly dataDir: string;
  /** The environment of each run. */
  readonly env: Environment;
  /** Runs it as people see it. */
  run(args?: readonly string[], options?: RunOptions): Promise<CheckRun>;
  /** Runs it with `--json`. */
  report(env?: Environment, args?: readonly string[]): Promise<CheckReport>;
}

type Environment = Readonly<Record<string, string | undefined>>;

export interface RunOptions {
  readonly env?: Environment;
  readonly isTTY?: boolean;
  /** The width of the terminal that standard output is; 0 where it is not known. */
  readonly columns?: number;
  readonly signal?: AbortSignal;
}

export interface StageOptions {
  readonly settings?: SettingsOverrides;
  readonly devices?: readonly DeviceSpec[];
  readonly workspaceId?: string;
}

export const DEVICES: readonly DeviceSpec[] = [{ deviceId: 'hub-1', intervalMs: 30_000 }];

/** A workspace, and a place for a state that is not there yet. */
export async function openStage({ settings, devices = DEVICES, workspaceId }: StageOptions = {}): Promise<CheckStage> {
  const simulator = createSimulator({
    world: createWorld({
      seed: 9,
      originMs: Date.now(),
      historyMs: 4 * HOUR_MS,
      devices,
      // Readings on whole seconds.
      precision: 's',
      ...(workspaceId === undefined ? {} : { workspaceId }),
    }),
    clock: realClock,
    settings: {
      ...settings,
      // So that even spacing costs no time.
      plan: { requestsPerMinute: 6000, requestsPerDay: 1_000_000, ...settings?.plan },
      key: { secret: KEY, ...settings?.key },
    },
  });
  const server = await serveSimulator(simulator);
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-check-'));
  const dataDir = join(directory, 'state');
  const base: Environment = {
    TIDEMARK_API_URL: server.url,
    TIDEMARK_API_KEY: KEY,
    TIDEMARK_DATA_DIR: dataDir,
    TIDEMARK_API_SHARE: '1',
    TIDEMARK_LISTEN: '127.0.0.1:0',
  };
  const run = async (args: readonly string[] = [], options: RunOptions = {}): Promise<CheckRun> => {
    const ran = await runHere(['--check', ...args], { ...options, env: { ...base, ...options.env } });
    expect(ran.stdout + ran.stderr).not.toMatch(/CANARY/);
    return ran;
  };
  return {
    simulator,
    url: server.url,
    directory,
    dataDir,
    env: base,
    run,
    report: async (env = {}, args = []) => {
      const { code, stdout, stderr } = await run([...args, '--json'], { env });
      expect(stdout.trim().split('\n'), stderr).toHaveLength(1);
      const report = JSON.parse(stdout) as CheckReport;
      expect([report.exit_code, report.ok]).toEqual([code, code === 0]);
      for (const line of report.checks) expectWhole(line);
      return report;
    },
    [Symbol.asyncDispose]: async () => {
      await server.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** The guarantees about every line of the object. */
function expectWhole(line: CheckLine): void {
  expect(line.message, line.name).not.toBe('');
  expect(line.exit_code === 0, line.name).toBe(line.status !== 'fail');
  expect(line.remedy === null, line.name).toBe(line.status === 'ok' || line.status === 'skip');
  const isOfDestination = line.area === 'dashboards' || (line.area === 'destination' && line.name !== 'none');
  expect(line.destination !== null, line.name).toBe(isOfDestination);
}

/** The program in this process, from the command line to the exit code. */
export async function runHere(
  argv: readonly string[],
  { env = {}, isTTY = false, columns, signal = new AbortController().signal }: RunOptions,
): Promise<CheckRun> {
  const texts = { stdout: '', stderr: '' };
  const own = { ...env };
  const command = parseArguments(argv);
  if (command.mode === 'help' || command.mode === 'version' || command.mode === 'health')
    throw new Error('nothing to run');
  const ports = {
    environment: own,
    forget: (names: readonly string[]) => {
      for (const name of names) delete own[name];
    },
    readFile: (path: string) => readFileSync(path, 'utf8'),
    print: (text: string) => {
      texts.stdout += text;
    },
    stdout: { isTTY: columns !== undefined, columns, write: () => Promise.resolve(true) },
    stderr: {
      isTTY,
      columns: 80,
      write: (text: string) => {
        texts.stderr += text;
      },
    },
    signal,
  };
  try {
    return { code: await runCommand(command, ports), ...texts };
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return { code: error.exitCode, ...texts, stderr: `${texts.stderr}tidemark: ${error.message}\n` };
  }
}

/**
 * The line of a name.
 *
 * @throws where there is none, or more than one.
 */
export function line({ checks }: CheckReport, name: string): CheckLine {
  const [found, ...more] = checks.filter((check) => check.name === name);
  if (found === undefined || more.length > 0) {
    throw new Error(`${more.length + (found ? 1 : 0)} lines ${name} in ${checks.map((each) => each.name).join(', ')}`);
  }
  return found;
}

/** Names and statuses of an area, those that are as they should be left out. */
export function bad({ checks }: CheckReport, area?: CheckLine['area']): string[] {
  const worst = ['fail', 'warn', 'skip', 'ok'];
  return (
    checks
      .filter((check) => check.status !== 'ok' && (area === undefined || check.area === area))
      // A problem that by chance nothing showed is no finding.
      .filter((check) => check.status !== 'skip' || check.message.startsWith('not tried'))
      .toSorted((a, b) => worst.indexOf(a.status) - worst.indexOf(b.status))
      .map(({ status, name }) => `${status} ${name}`)
  );
}

export interface Server extends AsyncDisposable {
  readonly url: string;
}

/** A server of a test's own. */
export async function serve(listener: RequestListener): Promise<Server> {
  const server = createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Sends requests to the simulator in place of another server. */
export async function forward(
  base: string,
  path: string,
): Promise<{ status: number; headers: Record<string, string>; body: string }> {
  const target = `${base}${path.replace(/^\/external\/v1/, '')}`;
  const answer = await fetch(target, { headers: { authorization: `Bearer ${KEY}` } });
  const names = ['content-type', 'date', 'x-ratelimit-limit', 'x-ratelimit-remaining'];
  const headers = Object.fromEntries(names.map((name) => [name, answer.headers.get(name) ?? '']));
  return { status: answer.status, headers, body: await answer.text() };
}

/** Runs of `tidemark init`: an API and databases for it, and the answers of a person or a pipe to its prompts. */
import { EventEmitter } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { Readable } from 'node:stream';
import { expect, onTestFinished } from 'vitest';
import { realClock } from '../../../src/app/real-clock.ts';
import { parseArguments } from '../../../src/cli/argv.ts';
import { runCommand } from '../../../src/commands/run.ts';
import { UserError } from '../../../src/core/faults.ts';
import { type SimServer, serveSimulator } from '../../../src/sim/server.ts';
import { createSimulator } from '../../../src/sim/simulator.ts';
import { createWorld } from '../../../src/sim/world.ts';

export const KEY = 'tmk_CANARYkey_4242';
export const TOKEN = 'CANARYuser:CANARYtoken';

/** The API that `init` tries. */
export async function startApi(): Promise<SimServer> {
  const devices = [{ deviceId: 'hub-1', intervalMs: 60_000 }];
  const world = createWorld({ seed: 1, originMs: Date.now(), historyMs: 600_000, devices });
  const plan = { requestsPerMinute: 6000, requestsPerDay: 1_000_000 };
  return await serveSimulator(createSimulator({ world, clock: realClock, settings: { plan, key: { secret: KEY } } }));
}

/** A directory for the files of one run. */
export function place(): string {
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-init-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly raw: readonly boolean[];
}

/** Runs `init` with these flags; `answers` are typed at its prompts, or come from a pipe. */
export async function init(
  directory: string,
  args: readonly string[],
  {
    answers,
    isTTY = answers !== undefined,
    env = {},
  }: { answers?: readonly string[]; isTTY?: boolean; env?: Record<string, string> } = {},
): Promise<Ran> {
  const texts = { stdout: '', stderr: '' };
  const { next, raw, stream } = inputOf(answers ?? [], isTTY, (text) => {
    texts.stderr += text;
  });
  const dataDir = relative(process.cwd(), join(directory, 'data'));
  const argv = ['init', '--config', join(directory, 'conf', 't.yaml'), '--data-dir', dataDir, ...args];
  const command = parseArguments(argv);
  if (command.mode === 'help' || command.mode === 'version' || command.mode === 'health') throw new Error('no run');
  const write = (text: string): void => {
    texts.stderr += text;
    // A question ends without a new line.
    if (/[:\]] $/.test(text)) next();
  };
  const pipe = Readable.from((answers ?? []).map((answer) => `${answer}\n`));
  const ports = {
    environment: env,
    forget: () => {},
    readFile: (path: string) => readFileSync(path, 'utf8'),
    print: (text: string) => {
      texts.stdout += text;
    },
    stdin: isTTY ? stream : pipe,
    stdout: { isTTY: false, write: async () => true },
    stderr: { write },
    signal: new AbortController().signal,
  };
  const code = await runCommand(command, ports).catch((error: unknown) => {
    if (!(error instanceof UserError)) throw error;
    texts.stderr += error.message;
    return error.exitCode;
  });
  expect(texts.stdout + texts.stderr).not.toContain('CANARY');
  return { code, ...texts, raw };
}

export const modeOf = (path: string): number => statSync(path).mode & 0o777;

/** A server that accepts everything and does not say what it is. */
export async function nameless204(): Promise<string> {
  const server = createServer((_request, response) => response.writeHead(204).end());
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** An InfluxDB 2 that accepts every write, and the credentials of all requests to it. */
export async function acceptingInflux(): Promise<{ readonly url: string; readonly written: string[] }> {
  const written: string[] = [];
  const influx = createServer((request, response) => {
    written.push(String(request.headers.authorization));
    response.writeHead(204, { 'x-influxdb-build': 'OSS', 'x-influxdb-version': '2.7.12' }).end();
  });
  await new Promise<void>((resolve) => void influx.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void influx.close());
  return { url: `http://127.0.0.1:${(influx.address() as AddressInfo).port}`, written };
}

/** A terminal, or a pipe, that answers each prompt at once, and echoes it as terminals do. */
export function inputOf(answers: readonly string[], isTTY: boolean, echo: (text: string) => void) {
  const input = new EventEmitter() as EventEmitter & Record<string, unknown>;
  const left = [...answers];
  const raw: boolean[] = [];
  const next = (): void => {
    const answer = left.shift();
    if (answer !== undefined && raw.at(-1) !== true) echo(answer);
    setImmediate(() => {
      if (answer === undefined) input.emit('end');
      else input.emit('data', Buffer.from(`${answer}\r`));
    });
  };
  return {
    next,
    raw,
    stream: Object.assign(input, { isTTY, setRawMode: (isRaw: boolean) => raw.push(isRaw), destroy: () => {} }),
  };
}

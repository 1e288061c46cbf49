/** Runs of `tidemark init --workspace` in a copy of the checkout, with an API and a database for it. */
import { cpSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { onTestFinished } from 'vitest';
import { realClock } from '../../src/app/real-clock.ts';
import { parseArguments } from '../../src/cli/argv.ts';
import { runCommand } from '../../src/commands/run.ts';
import { UserError } from '../../src/core/faults.ts';
import { type SimServer, serveSimulator } from '../../src/sim/server.ts';
import { createSimulator } from '../../src/sim/simulator.ts';
import { createWorld } from '../../src/sim/world.ts';
import { inputOf } from '../commands/init/support.ts';

const ROOT = join(import.meta.dirname, '..', '..');
export const KEY = 'tmk_office_4242';

/** The API that `init` tries. */
export async function startApi(): Promise<SimServer> {
  const world = createWorld({ seed: 1, originMs: Date.now(), historyMs: 600_000, devices: [] });
  return await serveSimulator(createSimulator({ world, clock: realClock, settings: { key: { secret: KEY } } }));
}

/** A checkout as far as it matters here. */
export function checkout(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-workspace-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const name of ['compose.yaml', 'config']) cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  return folder;
}

/** The other output of the last run. */
export let shown = '';

/**
 * Runs `init` in a directory.
 *
 * @param answers what a person types; `null`: no terminal.
 * @returns what is printed, or the words of the error and its exit code.
 */
export async function run(
  folder: string,
  args: readonly string[],
  answers: readonly string[] | null = null,
): Promise<{ code: number; text: string }> {
  let text = '';
  shown = '';
  const typed = inputOf(answers ?? [], true, () => {});
  const command = parseArguments(['init', '--config', folder, ...args]);
  if (command.mode !== 'init') throw new Error('no init');
  const print = (more: string): void => {
    text += more;
  };
  const ports = {
    environment: { TIDEMARK_API_KEY: KEY },
    forget: () => {},
    readFile: (path: string) => readFileSync(path, 'utf8'),
    print,
    stdin: answers === null ? Readable.from([]) : typed.stream,
    stdout: { isTTY: false, write: async () => true },
    stderr: {
      write: (more: string) => {
        shown += more;
        if (/[:\]] $/.test(more)) typed.next();
      },
    },
    signal: new AbortController().signal,
  };
  // The mask of the program (src/main.ts): files that others read get their rights nevertheless.
  const mask = process.umask(0o077);
  const running = runCommand(command, ports).finally(() => process.umask(mask));
  const code = await running.catch((error: unknown) => {
    if (!(error instanceof UserError)) throw error;
    text += error.message;
    return error.exitCode;
  });
  return { code, text };
}

/** Serves a database that gives every request this answer. */
export async function serve(headers: Readonly<Record<string, string>>, status = 204): Promise<string> {
  const database = createServer((_request, response) => void response.writeHead(status, headers).end());
  await new Promise<void>((resolve) => void database.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void database.close());
  return `http://127.0.0.1:${(database.address() as AddressInfo).port}`;
}

export const read = (...path: readonly string[]): string => readFileSync(join(...path), 'utf8');
export const modeOf = (...path: readonly string[]): number => statSync(join(...path)).mode & 0o777;

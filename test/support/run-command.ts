/** Runs documented commands by the shell. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Ended } from '../process/support.ts';

const has = (program: string): boolean => ['/usr/bin', '/usr/sbin'].some((folder) => existsSync(join(folder, program)));

/** Whether programs are installed. CI installs them, and fails where one is missing; another machine may not have them. */
export function needed(...programs: readonly string[]): boolean {
  const missing = programs.filter((program) => !has(program));
  if (missing.length > 0 && process.env['CI']) throw new Error(`${missing.join(', ')}: not installed`);
  return missing.length === 0;
}

export interface Where {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly prefix?: readonly string[];
}

interface Started {
  readonly child: ChildProcess;
  /** Kills it, with what it has left in the background. */
  readonly kill: () => void;
}

/**
 * The part of the environment of the tests that a command gets: the paths of its tools, of Node's compiled code and of
 * temporary files. States that are committed to a disk all the time take twice as long as those in memory.
 */
export function environment(): Record<string, string> {
  const { PATH = '', HOME = '', NODE_COMPILE_CACHE = '' } = process.env;
  return { PATH, HOME, NODE_COMPILE_CACHE, TMPDIR: tmpdir() };
}

/** Starts a command in a process group of its own. */
function begin(command: string, { cwd, env = {}, prefix = [] }: Where, stdio: 'pipe' | 'ignore'): Started {
  const [program = '', ...args] = [...prefix, '/bin/sh', '-c', command];
  const child = spawn(program, args, {
    cwd,
    env: { ...environment(), ...env },
    stdio: [stdio, stdio, stdio],
    detached: true,
  });
  const kill = (): void => {
    process.off('exit', kill);
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL');
    } catch {
      // No part of it is left.
    }
  };
  process.once('exit', kill);
  return { child, kill };
}

/** Runs a command by the shell to its end. */
export async function shell(command: string, where: Where): Promise<Ended> {
  const { child, kill } = begin(command, where, 'pipe');
  child.stdin?.on('error', () => {}).end(where.input ?? '');
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text;
    });
  }
  const ended = await new Promise<Ended>(
    (resolve) => void child.once('close', (code, signal) => resolve({ code, signal, ...texts })),
  );
  kill();
  return ended;
}

/**
 * Starts a command whose processes stay.
 *
 * @returns what kills them.
 */
export const background = (command: string, where: Where): (() => void) => begin(command, where, 'ignore').kill;

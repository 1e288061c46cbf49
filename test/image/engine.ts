/**
 * Containers without an engine: Debian's buildah and podman with a store of their own, in a directory of its own.
 *
 * Debian's runc is used, because its crun refuses the mixed control groups of many build machines; limits of open files
 * and processes are given, because podman's own are above what such a machine may set. Neither changes what is tested.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from '../bench/idle.ts';

export interface Done {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Engine {
  readonly directory: string;
  /**
   * Runs buildah.
   *
   * @throws Error with its last words unless it ends with 0.
   */
  build(args: readonly string[]): Promise<string>;
  /** Runs podman, whatever it ends with. */
  podman(args: readonly string[]): Promise<Done>;
  /** How podman is started with these arguments, for what runs beside it. */
  command(args: readonly string[]): Command;
}

/** How a careful operator runs it: nothing to write but the volume, no rights, little memory. */
export const HARDENED = [
  '--read-only',
  '--cap-drop=all',
  '--security-opt=no-new-privileges',
  '--memory=256m',
  '--no-healthcheck',
  '--ulimit=nofile=4096:4096',
  '--ulimit=nproc=4096:4096',
  '--network=host',
] as const;

/** Opens a store below a directory; what an earlier run has built there is used again. */
export function openEngine(directory: string): Engine {
  mkdirSync(directory, { recursive: true });
  const conf = join(directory, 'storage.conf');
  const roots = ['graphroot', 'runroot'].map((name) => `${name} = ${JSON.stringify(join(directory, name))}`);
  writeFileSync(conf, ['[storage]', 'driver = "vfs"', ...roots, ''].join('\n'));
  const env = { ...process.env, CONTAINERS_STORAGE_CONF: conf, STORAGE_DRIVER: 'vfs' };
  const command = (args: readonly string[]): Command => ({
    file: 'podman',
    args: ['--runtime=runc', '--cgroup-manager=cgroupfs', ...args],
    env,
    // Where a container is killed for its memory, conmon writes a file into the directory that it was started in.
    cwd: directory,
  });
  return {
    directory,
    command,
    build: async (args) => {
      const done = await run('buildah', args, { env });
      if (done.code !== 0) throw new Error(`buildah ${args.join(' ')}\n${done.stderr.slice(-2000)}`);
      return done.stdout.trim();
    },
    podman: (args) => run('podman', command(args).args, { env, cwd: directory }),
  };
}

/** Runs a program to its end. */
export async function run(
  program: string,
  args: readonly string[],
  options: { readonly env?: NodeJS.ProcessEnv; readonly cwd?: string } = {},
): Promise<Done> {
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text;
    });
  }
  const [code] = await once(child, 'close');
  return { code, ...texts };
}

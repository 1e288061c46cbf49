/**
 * Node of this machine in a container that may use only so much memory, without an image: its root is a directory with
 * a copy of Node, and what else it needs of this machine is mounted into it at its own path.
 *
 * It is a copy because a container is charged for the pages of a file that it is the first to read, as it is for those
 * of an image.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from '../bench/idle.ts';
import { type Done, type Engine, HARDENED, openEngine } from './engine.ts';

/** The limits of a container. */
export interface Bounds {
  /** It is killed beyond that; there is nothing to swap to. */
  readonly memoryMib: number;
  /** Directories that are mounted at their own paths. */
  readonly readable?: readonly string[];
  readonly writable?: readonly string[];
  /** It is killed after so long, so that it does not outlive what has started it. */
  readonly withinMs: number;
}

/** The program in it: this Node, or a tool below `/usr`. */
type Program = Pick<Command, 'file' | 'args' | 'env'>;

/** Such containers, which are all gone before it is disposed. */
export interface BoundedPlace extends Disposable {
  command(program: Program, bounds: Bounds): Command;
  /** Runs it to its end. */
  run(program: Program, bounds: Bounds): Promise<Done>;
}

const LIBRARIES = ['bin', 'lib', 'lib64', 'sbin'];
const STARTED_WITHIN_MS = 60_000;

/** Opens a place for them below `TMPDIR`, which has to be on a disk where the state is not to count as memory. */
export function openBounded(): BoundedPlace {
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-bounded-'));
  const engine = openEngine(directory);
  let made = 0;
  const make = ({ file, args, env }: Program, bounds: Bounds): { name: string; args: string[] } => {
    made += 1;
    const name = `tidemark-bounded-${process.pid}-${made}`;
    const variables = Object.entries(env).map(([key, value]) => `--env=${key}=${value}`);
    const flags = ['--rm', `--name=${name}`, ...flagsOf(bounds), ...variables];
    const root = makeRoot(join(directory, name));
    return { name, args: ['run', ...flags, '--rootfs', root, file === process.execPath ? '/node' : file, ...args] };
  };
  return {
    command: (program, bounds) => {
      const { name, args } = make(program, bounds);
      return { ...engine.command(args), findPid: async () => await pidOf(engine, name) };
    },
    run: async (program, bounds) => await engine.podman(make(program, bounds).args),
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }),
  };
}

function flagsOf({ memoryMib, readable = [], writable = [], withinMs }: Bounds): string[] {
  return [
    ...HARDENED,
    // The last ones count.
    `--memory=${memoryMib}m`,
    `--memory-swap=${memoryMib}m`,
    `--timeout=${Math.ceil(withinMs / 1000)}`,
    ...['/usr', ...readable].map((path) => `--volume=${path}:${path}:ro`),
    ...writable.map((path) => `--volume=${path}:${path}`),
  ];
}

/** Makes the root of one container. */
function makeRoot(root: string): string {
  mkdirSync(root);
  for (const name of LIBRARIES.filter((each) => existsSync(join('/usr', each)))) {
    symlinkSync(join('usr', name), join(root, name));
  }
  const node = join(root, 'node');
  cpSync(process.execPath, node);
  // Written and then evicted: pages that stay in memory would not be charged to the container.
  execFileSync('dd', [`of=${node}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0'], { stdio: 'ignore' });
  return root;
}

async function pidOf(engine: Engine, name: string): Promise<number> {
  const untilMs = performance.now() + STARTED_WITHIN_MS;
  for (;;) {
    const { stdout, stderr } = await engine.podman(['inspect', '--format={{.State.Pid}}', name]);
    if (Number(stdout) > 0) return Number(stdout);
    if (performance.now() > untilMs) throw new Error(`no container within a minute: ${stderr}`);
    await sleep(200);
  }
}

/** A process of one buffer of 192 MiB; one with large files, as Node, reads them again and again before it is killed. */
const LARGE = { file: '/usr/bin/dd', args: ['if=/dev/zero', 'of=/dev/null', 'bs=192M', 'count=1'], env: {} };
/** By SIGKILL. */
const KILLED = 137;

/**
 * Finds out whether podman enforces a limit of memory on this machine: it has to kill a process that uses 192 MiB where
 * it may use 96, and not where it may use 512.
 *
 * @returns why it does not; null where it does.
 */
export async function whyNotEnforced(): Promise<string | null> {
  if (!existsSync('/usr/bin/podman')) return 'podman is not installed';
  using place = openBounded();
  const small = await place.run(LARGE, { memoryMib: 96, withinMs: STARTED_WITHIN_MS });
  const large = await place.run(LARGE, { memoryMib: 512, withinMs: STARTED_WITHIN_MS });
  const reported = ({ code, stderr }: Done): string => `ends with ${code}: ${stderr.slice(-500)}`;
  if (large.code !== 0) return `a process of 192 MiB does not run with --memory 512m, it ${reported(large)}`;
  return small.code === KILLED ? null : `a process of 192 MiB is not killed with --memory 96m, it ${reported(small)}`;
}

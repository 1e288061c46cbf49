/**
 * Containers of the image that run on their own, and directories to mount into them: gone when their check is.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Done, type Engine, HARDENED } from './engine.ts';

export const IMAGE = 'localhost/tidemark:test';

const DAEMON_MS = 60_000;

/** A container that runs on its own until it is stopped. */
export interface Detached extends AsyncDisposable {
  until(words: RegExp): Promise<string>;
  exec(args: readonly string[]): Promise<Done>;
  /** Sends a signal, by its name without SIG. */
  signal(name: string): Promise<void>;
  /**
   * Runs the health check of the image, as Docker would every half minute.
   *
   * @returns whether it passes.
   */
  isHealthy(): Promise<boolean>;
  /**
   * SIGTERM.
   *
   * @returns its exit code.
   */
  stop(): Promise<number>;
}

/** Starts one with the flags of the hardened ones and these. */
export async function detached(
  engine: Engine,
  { flags, args }: { flags: readonly string[]; args: readonly string[] },
): Promise<Detached> {
  const started = await engine.podman(['run', '--detach', ...HARDENED, ...flags, IMAGE, ...args]);
  assert.equal(started.code, 0, started.stderr);
  const id = started.stdout.trim();
  const logs = async (): Promise<string> => {
    const { stdout, stderr } = await engine.podman(['logs', id]);
    return stdout + stderr;
  };
  return {
    until: async (words) => {
      const untilMs = performance.now() + DAEMON_MS;
      for (;;) {
        const text = await logs();
        if (words.test(text)) return text;
        assert.ok(performance.now() < untilMs, `no ${words} within a minute:\n${text}`);
        await sleep(500);
      }
    },
    exec: (command) => engine.podman(['exec', id, ...command]),
    signal: async (name) => void (await engine.podman(['kill', `--signal=${name}`, id])),
    isHealthy: async () => (await engine.podman(['healthcheck', 'run', id])).code === 0,
    stop: async () => {
      await engine.podman(['stop', '--time=10', id]);
      return Number((await engine.podman(['inspect', '--format={{.State.ExitCode}}', id])).stdout);
    },
    [Symbol.asyncDispose]: async () => void (await engine.podman(['rm', '--force', '--time=0', id])),
  };
}

/** A directory to mount, which only this user may enter. */
export function directory(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'tidemark-image-'));
  return {
    path,
    [Symbol.dispose]: () => {
      if (existsSync(path)) rmSync(path, { recursive: true, force: true });
    },
  };
}

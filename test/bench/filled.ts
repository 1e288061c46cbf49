/**
 * A daemon with very many devices, filled: what is measured beside it while it is at work.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { databaseEnv, sourceEnv, startNullInflux, startOrigin, wholeHistory } from './parts.ts';
import type { WorkspaceSize } from './workspace.ts';

const FILLED_WITHIN_MS = 600_000;

/**
 * Runs a daemon on the state until the work beside it is done.
 *
 * @param more more of its environment.
 */
export type BesideFilled = <T>(more: Readonly<Record<string, string>>, work: (url: string) => Promise<T>) => Promise<T>;

/** Runs a daemon on a workspace and a new state until the work beside it is done. */
export async function withDaemon<T>(
  program: string,
  { size, env }: { readonly size: WorkspaceSize; readonly env: Readonly<Record<string, string>> },
  work: (url: string) => Promise<T>,
): Promise<T> {
  return await withState(size, async (own) => await beside(program, { ...own, ...env }, work));
}

/** Prepares a workspace and a state for it. Each daemon is filled before the work begins, the first one from nothing. */
export async function withFleet<T>(
  program: string,
  size: WorkspaceSize,
  work: (beside: BesideFilled) => Promise<T>,
): Promise<T> {
  return await withState(
    size,
    async (env) =>
      await work((more, each) =>
        beside(program, { ...env, ...more }, async (url) => {
          await untilFilled(url, size.devices);
          return await each(url);
        }),
      ),
  );
}

/**
 * Starts what a daemon needs.
 *
 * @param work gets the environment to run one with
 */
async function withState<T>(
  size: WorkspaceSize,
  work: (env: Readonly<Record<string, string>>) => Promise<T>,
): Promise<T> {
  const dataDir = mkdtempSync(join(tmpdir(), 'tidemark-bench-'));
  using origin = await startOrigin(size);
  using sink = await startNullInflux();
  const env = {
    ...sourceEnv(origin.url, dataDir),
    ...databaseEnv(sink.url),
    ...wholeHistory(size),
    TIDEMARK_LISTEN: '127.0.0.1:0',
    TIDEMARK_LOG_FORMAT: 'json',
  };
  try {
    return await work(env);
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Runs a daemon for as long as the work takes. */
async function beside<T>(
  program: string,
  env: Readonly<Record<string, string>>,
  work: (url: string) => Promise<T>,
): Promise<T> {
  const child = spawn(process.execPath, [program], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const served = Promise.withResolvers<string>();
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-10_000);
    const url = /"status_page":"([^"]+)"/.exec(text)?.[1];
    if (url !== undefined) served.resolve(url);
  });
  const ended = once(child, 'close');
  try {
    const url = await Promise.race([served.promise, ended.then(() => Promise.reject(new Error(log)))]);
    return await work(url);
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
}

/** The answer at an address. */
export interface Asked {
  readonly text: string;
  /** Until the first byte, and the last. */
  readonly firstMs: number;
  readonly ms: number;
}

export async function ask(url: string): Promise<Asked> {
  const beganMs = performance.now();
  // A connection of its own: one that is kept may just be closed by the other side.
  const request = get(url, { agent: false });
  const [answer]: IncomingMessage[] = await once(request, 'response');
  const firstMs = performance.now() - beganMs;
  let text = '';
  for await (const piece of answer?.setEncoding('utf8') ?? []) text += String(piece);
  return { text, firstMs, ms: performance.now() - beganMs };
}

async function untilFilled(url: string, devices: number): Promise<void> {
  const endMs = performance.now() + FILLED_WITHIN_MS;
  for (;;) {
    const { text } = await ask(`${url}metrics`);
    const complete = Number(/^tidemark_devices_complete (\d+)$/m.exec(text)?.[1] ?? 0);
    if (complete === devices) return;
    if (performance.now() > endMs) throw new Error(`${complete} of ${devices} devices were held in time`);
    await sleep(1000);
  }
}

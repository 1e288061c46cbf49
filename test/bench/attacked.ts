/**
 * The effect of clients that overload the HTTP server (`test/attacks`) on the sync and on `/healthz`, each beside the
 * same attack on a bare `http` server.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ATTACKS, type AttackName, answerMs, type Target } from '../attacks/attackers.ts';
import { ask, withDaemon } from './filled.ts';
import { memoryOf } from './pause.ts';
import type { Measured } from './table.ts';
import type { WorkspaceSize } from './workspace.ts';

/** The share of the requests without an attack, the time of a health check, and the memory that an attack may add. */
const WANTED = { share: 0.8, healthMs: 100, memoryMb: 30 };

/** A history of many minutes at some thirty requests a second. */
const HISTORY = { devices: 100, readings: 43_200, intervalMs: 60_000 };
const SHARE_OF_ALLOWANCE = '0.00004';

const NO_ANSWER_MS = 10_000;
const HEALTH_EVERY_MS = 250;

interface Period {
  readonly requestsPerS: number;
  readonly healthMs: readonly number[];
  /** The memory of the process at the end, in bytes. */
  readonly bytes: number;
}

/**
 * Attacks a daemon at work.
 *
 * @param seconds the duration of each attack
 */
export async function measureAttacked(program: string, newestMs: number, seconds: number): Promise<Measured[]> {
  const size: WorkspaceSize = { ...HISTORY, newestMs };
  const env = { TIDEMARK_API_SHARE: SHARE_OF_ALLOWANCE };
  return await withDaemon(program, { size, env }, async (url) => {
    const target = targetOf(url);
    await untilAtWork(target);
    const quiet = await watch(target, seconds);
    let { bytes } = quiet;
    const measured: Measured[] = [];
    for (const name of Object.keys(ATTACKS) as AttackName[]) {
      const attacked = await duringAttack(name, target, async () => await watch(target, seconds));
      const bare = await bareHealthMs(name, seconds);
      measured.push(
        {
          figure: `${name}: the sync's requests to those without an attack`,
          unit: 'times',
          wanted: WANTED.share,
          better: 'more',
          values: [attacked.requestsPerS / quiet.requestsPerS],
        },
        { figure: `${name}: /healthz`, unit: 'ms', wanted: WANTED.healthMs, better: 'less', values: attacked.healthMs },
        {
          figure: `${name}: memory added`,
          unit: 'MB',
          wanted: WANTED.memoryMb,
          better: 'less',
          values: [Math.max(0, attacked.bytes - bytes) / 1_000_000],
        },
        { figure: `${name}: of a bare server`, unit: 'ms', wanted: NO_ANSWER_MS, better: 'less', values: bare },
      );
      bytes = Math.max(bytes, attacked.bytes);
    }
    return measured;
  });
}

function targetOf(url: string): Target {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port), path: '/' };
}

async function duringAttack<T>(name: AttackName, target: Target, work: () => Promise<T>): Promise<T> {
  await using _attack = ATTACKS[name](target);
  await sleep(1000);
  return await work();
}

async function metricsOf({ host, port }: Target): Promise<string> {
  return (await ask(`http://${host}:${port}/metrics`)).text;
}

async function requestsSoFar(target: Target): Promise<number> {
  const counts = (await metricsOf(target)).matchAll(/^tidemark_api_requests_total\{[^}]*\} (\d+)$/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

async function untilAtWork(target: Target): Promise<void> {
  while ((await requestsSoFar(target)) < 100) await sleep(1000);
}

async function watch(target: Target, seconds: number): Promise<Period> {
  const before = await requestsSoFar(target);
  const beganMs = performance.now();
  const healthMs = await healthFor(target, seconds);
  const after = await requestsSoFar(target);
  const requestsPerS = ((after - before) / (performance.now() - beganMs)) * 1000;
  return { requestsPerS, healthMs, bytes: memoryOf(await metricsOf(target)) };
}

async function healthFor(target: Target, seconds: number): Promise<number[]> {
  const taken: number[] = [];
  const endMs = performance.now() + seconds * 1000;
  while (performance.now() < endMs) {
    taken.push((await answerMs(target, '/healthz')) ?? NO_ANSWER_MS);
    await sleep(HEALTH_EVERY_MS);
  }
  return taken;
}

async function bareHealthMs(name: AttackName, seconds: number): Promise<number[]> {
  const child = fork(join(import.meta.dirname, 'bare-server.ts'), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  try {
    const [{ port }] = await once(child, 'message');
    const target = { host: '127.0.0.1', port, path: '/' };
    return await duringAttack(name, target, async () => await healthFor(target, seconds));
  } finally {
    child.kill('SIGKILL');
  }
}

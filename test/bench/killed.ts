/**
 * The cost of kills: a backfill that is killed again and again with requests under way, and the pages that are fetched
 * a second time for it.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fewestRequests } from './figures.ts';
import type { OriginCounts } from './origin.ts';
import { type Part, runProgram, sourceEnv, startOrigin, wholeHistory } from './parts.ts';
import { readState } from './read-state.ts';
import type { Measured } from './table.ts';
import type { WorkspaceSize } from './workspace.ts';

export interface KillPlan {
  readonly program: string;
  readonly size: WorkspaceSize;
  readonly kills: number;
  readonly say: (text: string) => void;
}

/** Requests under way at most, by default: what a kill may have fetched again. A page is committed as it comes. */
const UNDER_WAY = 4;
const LOOK_MS = 5;

/**
 * Kills `--once` after equal numbers of requests, then leaves it alone.
 *
 * @throws Error unless all is stored in the end.
 */
export async function measureKilled({ program, size, kills, say }: KillPlan): Promise<Measured[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'tidemark-bench-'));
  using origin = await startOrigin(size);
  const env = { ...sourceEnv(origin.url, dataDir), ...wholeHistory(size) };
  const fewest = fewestRequests(size);
  try {
    for (let kill = 1; kill <= kills; kill += 1) {
      await runUntilKilled({ program, env }, origin, (fewest * kill) / (kills + 1));
    }
    const ended = await runProgram(['--once', '--json'], { program, env });
    if (ended.code !== 0 || readingsIn(dataDir) !== size.devices * size.readings) {
      throw new Error(`${readingsIn(dataDir)} readings, exit ${ended.code}: ${ended.stderr.slice(-2000)}`);
    }
    const { pagesAgain, pagesAgainOfRun, telemetryRequests } = await origin.counts();
    say(`kills: ${kills} of them, ${pagesAgain} pages again; ${telemetryRequests} requests, ${fewest} at the least`);
    const figure = { unit: 'pages', wanted: UNDER_WAY, better: 'less' } as const;
    // A page may be fetched again some kills later, when the turn of its device comes.
    return [
      { ...figure, figure: 'pages fetched again for a kill, most', values: [pagesAgainOfRun] },
      { ...figure, figure: 'the same, mean', values: [pagesAgain / kills] },
    ];
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Kills the program as soon as the API has received requests for so many pages in all. */
async function runUntilKilled(
  { program, env }: { readonly program: string; readonly env: Readonly<Record<string, string>> },
  origin: Part<OriginCounts>,
  requests: number,
): Promise<void> {
  const child = spawn(process.execPath, [program, '--once'], { env, stdio: 'ignore' });
  const ended = once(child, 'close');
  while (child.exitCode === null && (await origin.counts()).telemetryRequests < requests) await sleep(LOOK_MS);
  if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode} before it was killed`);
  child.kill('SIGKILL');
  await ended;
}

function readingsIn(dataDir: string): number {
  const [row] = readState(dataDir, 'SELECT sum(readings) AS readings FROM day_sum');
  return Number(row?.['readings'] ?? 0);
}

/**
 * The time of a scrape of `/metrics` and of a health check, with a busy daemon with very many devices.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ask, withFleet } from './filled.ts';
import { runProgram } from './parts.ts';
import type { WorkspaceSize } from './workspace.ts';

/** The measured times, in ms each. */
export interface Scraped {
  readonly scrapes: readonly number[];
  /** The same with `metrics.per_device`, which reports the first thousand. */
  readonly perDevice: readonly number[];
  /** `--health`, from the start of its process to its end. */
  readonly healthChecks: readonly number[];
}

const SCRAPES = 31;
const HEALTH_CHECKS = 7;
const BETWEEN_MS = 300;

/**
 * Fills a daemon with the devices and scrapes it.
 *
 * @throws Error where it does not come to hold them all.
 */
export async function scrapeMs(program: string, size: WorkspaceSize): Promise<Scraped> {
  return await withFleet(program, size, async (beside) => {
    const { scrapes, healthChecks } = await beside({}, async (url) => ({
      scrapes: await scrapeAgain(url),
      healthChecks: await checkAgain(program, url),
    }));
    const perDevice = await beside({ TIDEMARK_METRICS_PER_DEVICE: 'true' }, scrapeAgain);
    return { scrapes, healthChecks, perDevice };
  });
}

async function scrapeAgain(url: string): Promise<number[]> {
  const taken: number[] = [];
  for (let count = 0; count < SCRAPES; count += 1) {
    await sleep(BETWEEN_MS);
    taken.push((await ask(`${url}metrics`)).ms);
  }
  return taken;
}

async function checkAgain(program: string, url: string): Promise<number[]> {
  const taken: number[] = [];
  const { host } = new URL(url);
  for (let count = 0; count < HEALTH_CHECKS; count += 1) {
    const { code, stdout, wallMs } = await runProgram(['--health'], { program, env: { TIDEMARK_LISTEN: host } });
    if (code !== 0) throw new Error(`--health: ${stdout}`);
    taken.push(wallMs);
  }
  return taken;
}

/**
 * What a scrape of `/metrics` takes beside a daemon with very many devices at work, and what the check of its health takes.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { runProgram, startNullInflux, startOrigin } from './parts.ts';
import { oldestMs, type WorkspaceSize } from './workspace.ts';

/** What was measured, in ms each. */
export interface Scraped {
  readonly scrapes: readonly number[];
  /** The same with `metrics.per_device`, which tells of the first thousand. */
  readonly perDevice: readonly number[];
  /** `--health`, from the start of its process to its end. */
  readonly healthChecks: readonly number[];
}

const SCRAPES = 31;
const HEALTH_CHECKS = 7;
const BETWEEN_MS = 300;
const FILLED_WITHIN_MS = 600_000;

/** Fills a daemon with the devices and scrapes it. @throws Error where it does not come to hold them all. */
export async function scrapeMs(program: string, size: WorkspaceSize): Promise<Scraped> {
  const dataDir = mkdtempSync(join(tmpdir(), 'tidemark-bench-'));
  using origin = await startOrigin(size);
  using sink = await startNullInflux();
  const env = {
    TIDEMARK_API_URL: origin.url,
    TIDEMARK_API_KEY: 'bench_key',
    TIDEMARK_DATA_DIR: dataDir,
    TIDEMARK_LISTEN: '127.0.0.1:0',
    TIDEMARK_LOG_FORMAT: 'json',
    TIDEMARK_SYNC_HISTORY: new Date(oldestMs(size) - 60_000).toISOString(),
    TIDEMARK_INFLUX_URL: sink.url,
    TIDEMARK_INFLUX_TOKEN: 'bench_token',
    TIDEMARK_INFLUX_ORG: 'bench',
    TIDEMARK_INFLUX_BUCKET: 'bench',
  };
  try {
    const { scrapes, healthChecks } = await beside(program, env, async (url) => {
      await untilFilled(url, size.devices);
      return { scrapes: await scrapeAgain(url), healthChecks: await checkAgain(program, url) };
    });
    const perDevice = await beside(program, { ...env, TIDEMARK_METRICS_PER_DEVICE: 'true' }, async (url) => {
      await untilFilled(url, size.devices);
      return await scrapeAgain(url);
    });
    return { scrapes, healthChecks, perDevice };
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

async function scrape(url: string): Promise<{ readonly text: string; readonly ms: number }> {
  const beganMs = performance.now();
  // A connection of its own: one that is kept may just be closed by the other side.
  const request = get(`${url}metrics`, { agent: false });
  const [answer]: IncomingMessage[] = await once(request, 'response');
  let text = '';
  for await (const piece of answer?.setEncoding('utf8') ?? []) text += String(piece);
  return { text, ms: performance.now() - beganMs };
}

async function untilFilled(url: string, devices: number): Promise<void> {
  const endMs = performance.now() + FILLED_WITHIN_MS;
  for (;;) {
    const { text } = await scrape(url);
    const complete = Number(/^tidemark_devices_complete (\d+)$/m.exec(text)?.[1] ?? 0);
    if (complete === devices) return;
    if (performance.now() > endMs) throw new Error(`${complete} of ${devices} devices were held in time`);
    await sleep(1000);
  }
}

async function scrapeAgain(url: string): Promise<number[]> {
  const taken: number[] = [];
  for (let count = 0; count < SCRAPES; count += 1) {
    await sleep(BETWEEN_MS);
    taken.push((await scrape(url)).ms);
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

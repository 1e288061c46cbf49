/**
 * The command `--demo`: serves a simulated workspace over real HTTP and runs the daemon with it, or serves only the
 * workspace, for the user's own configuration.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHttpTransport } from '../../api/transport.ts';
import { openSync } from '../../app/open-sync.ts';
import { realClock, realRandom } from '../../app/real-clock.ts';
import { runService } from '../../app/service.ts';
import { createSyncOptions } from '../../app/settings.ts';
import type { ProcessPorts } from '../../app/terminal.ts';
import type { DemoConfig } from '../../config/config.ts';
import { readCron } from '../../config/cron.ts';
import type { Listen } from '../../config/listen.ts';
import type { Schedule } from '../../core/ports.ts';
import type { Store } from '../../core/state/state.ts';
import type { EpochMs } from '../../core/time.ts';
import { requireFree } from '../../observe/server.ts';
import { createDemoWorld } from '../../sim/demo-world.ts';
import { serveSimulator } from '../../sim/server.ts';
import { createSimulator } from '../../sim/simulator.ts';
import type { CommandRun } from '../shared/command.ts';

/** A plan with which the demo fills in minutes, and still shows the effect of the quota. */
const PLAN = {
  planId: 'demo',
  name: 'Demo',
  requestsPerMinute: 900,
  requestsPerDay: 200_000,
  historyMaxDays: 31,
};

const LOOPBACK = '127.0.0.1';

/** The page changes every few seconds. */
const OFTEN = readCron('*/5 * * * * *') as Schedule;

type DemoRun = CommandRun<{ readonly apiOnly: boolean }, DemoConfig>;

/**
 * Runs the demo until it is stopped.
 *
 * @returns the exit code.
 */
export async function runDemoCommand(run: Omit<DemoRun, 'secrets'>, ports: ProcessPorts): Promise<number> {
  await (run.command.apiOnly ? serveApi(run.config, ports) : runDemo(run, ports));
  run.terminal.logger.write({ type: 'stopped' });
  return 0;
}

/** The address of the API when it is served alone, unless `TIDEMARK_LISTEN` gives another one. */
const API_PLACE: Listen = { host: LOOPBACK, port: 9465 };

/** Fixed, so that the API has the same readings after a restart and a state that was filled from it stays valid. */
const API_BEGAN_MS = Date.UTC(2026, 0, 1);

/** Serves the simulated API alone until it is stopped, and prints its address and its key. */
async function serveApi({ listen }: DemoConfig, { print, signal }: ProcessPorts): Promise<void> {
  const place = listen ?? API_PLACE;
  const world = createDemoWorld(API_BEGAN_MS);
  const simulator = createSimulator({ world, clock: realClock, settings: { plan: PLAN } });
  if (place.port !== 0) await requireFree(place);
  const server = await serveSimulator(simulator, place);
  try {
    print(`Simulated API: ${server.url}\nAPI key: ${simulator.settings.key.secret}\n`);
    await realClock.sleep(Number.POSITIVE_INFINITY, signal).catch(() => {});
  } finally {
    await server.close();
  }
}

/** Runs the daemon with a simulated workspace. */
async function runDemo({ config, terminal }: Omit<DemoRun, 'secrets'>, ports: ProcessPorts): Promise<void> {
  await using closers = new AsyncDisposableStack();
  const simulator = createSimulator({
    world: createDemoWorld(realClock.nowMs()),
    clock: realClock,
    settings: { plan: PLAN },
  });
  const server = await serveSimulator(simulator);
  closers.defer(server.close);
  const http = createHttpTransport({
    timeoutMs: config.api.timeoutMs,
    connections: config.api.concurrency,
    direct: true,
  });
  closers.defer(http.close);
  const sync = openSync({
    ...createSyncOptions({
      ...config,
      sync: { ...config.sync, schedules: { ...config.sync.schedules, telemetry: OFTEN, devices: OFTEN } },
    }),
    observe: terminal.observe,
    clock: realClock,
    random: realRandom,
    transport: http.transport,
    api: { ...config.api, url: server.url, key: () => simulator.settings.key.secret },
    dataDir: config.dataDir ?? temporaryDirectory(closers),
  });
  closers.defer(sync.close);
  // A state that is used again continues with its own simulated workspace.
  simulator.world = createDemoWorld(ensureBeganAtMs(sync.context.store));
  const service = {
    sync,
    terminal,
    listen: config.listen ?? { host: LOOPBACK, port: 0 },
    statusPage: config.statusPage,
    password: { inUse: () => config.statusPage.password, checkFile: () => {} },
    key: { isFixed: true, hasChanged: () => false, adopt: () => {} },
    perDevice: config.metrics.perDevice,
    onServed: (url: string): void => ports.print(`Status page: ${url}\n`),
  };
  await runService(service, ports.signal);
}

const BEGAN_AT = 'demo_began_at_ms';

/** Returns when the demo of this state was first started; stores the present at the first start. */
function ensureBeganAtMs({ fact, saveFact }: Store): EpochMs {
  const stored = fact(BEGAN_AT);
  if (stored !== null) return Number(stored);
  const nowMs = realClock.nowMs();
  saveFact(BEGAN_AT, String(nowMs));
  return nowMs;
}

function temporaryDirectory(closers: AsyncDisposableStack): string {
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-demo-'));
  closers.defer(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/**
 * `--demo` put together: the simulated workspace behind real HTTP, the real sync, the status page.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHttpTransport } from './api/transport.ts';
import { openSync, settingsOf } from './app.ts';
import { runDemo } from './commands/demo.ts';
import type { DemoConfig } from './config.ts';
import { serveStatus } from './observe/server.ts';
import { realClock, realRandom } from './real-clock.ts';
import { createDemoWorld } from './sim/demo-world.ts';
import { serveSimulator } from './sim/server.ts';
import { createSimulator } from './sim/simulator.ts';
import type { ProcessPorts, Voice } from './voice.ts';

/** A plan that lets the demo fill in minutes, and still shows the allowance at work. */
const PLAN = {
  planId: 'demo',
  name: 'Demo',
  requestsPerMinute: 900,
  requestsPerDay: 200_000,
  historyMaxDays: 31,
};

const LOOPBACK = '127.0.0.1';

/** A loop that has not moved for so long stands still. */
const STILL_AFTER_MS = 60_000;

type Closer = () => void | Promise<void>;

/** Runs the demo until it is told to stop. @returns the exit code. */
export async function runDemoCommand(config: DemoConfig, voice: Voice, ports: ProcessPorts): Promise<number> {
  const closers: Closer[] = [];
  try {
    const simulator = createSimulator({
      world: createDemoWorld(realClock.nowMs()),
      clock: realClock,
      settings: { plan: PLAN },
    });
    const server = await serveSimulator(simulator);
    closers.push(server.close);
    const http = createHttpTransport({ timeoutMs: config.api.timeoutMs, connections: config.api.concurrency });
    closers.push(http.close);
    const sync = openSync({
      ...settingsOf(config),
      observe: voice.observe,
      clock: realClock,
      random: realRandom,
      transport: http.transport,
      api: { ...config.api, url: server.url, key: () => simulator.settings.key.secret },
      dataDir: config.dataDir ?? temporaryDirectory(closers),
    });
    closers.push(sync.close);
    let tickedAtMs = realClock.monoMs();
    const status = await serveStatus({
      listen: config.listen ?? { host: LOOPBACK, port: 0 },
      status: sync.report,
      health: () => {
        const healthy = realClock.monoMs() - tickedAtMs < STILL_AFTER_MS;
        return { healthy, reasons: healthy ? [] : ['the main loop stands still'] };
      },
      ready: sync.ready,
      onError: (message) => voice.logger.error(`status page: ${message}`),
    });
    closers.push(status.close);
    ports.print(`Status page: ${status.url}\n`);
    const tick = (): void => {
      tickedAtMs = realClock.monoMs();
      voice.show(sync.report());
    };
    await runDemo({ ...sync, tick }, ports.signal).finally(voice.endProgress);
    return 0;
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

function temporaryDirectory(closers: Closer[]): string {
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-demo-'));
  closers.push(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/**
 * Runs what the daemon and the demo have in common: the scheduled sync, the status page and the progress. It closes
 * them in reverse order.
 */

import { runMaintenance } from '../archive/maintenance.ts';
import { VERSION } from '../cli/help.ts';
import type { StatusPageConfig } from '../config/config.ts';
import type { Listen } from '../config/listen.ts';
import { repeat } from '../core/async.ts';
import { beatingClock, healthOf } from '../core/heartbeats.ts';
import type { PageFacts } from '../core/page-facts.ts';
import type { HealthReport, ReadyReport } from '../core/status.ts';
import { SECOND_MS } from '../core/time.ts';
import { createMetrics } from '../observe/metrics.ts';
import { MOST_DEVICES } from '../observe/metrics-table.ts';
import { type StatusServer, type StatusServerOptions, serveStatus } from '../observe/server.ts';
import type { StatusPageParts } from '../page/page.ts';
import { createFirstFill } from '../report/ready.ts';
import { type DaemonParts, type KeySource, runDaemon } from '../scheduler/sessions.ts';
import type { Sync } from './open-sync.ts';
import { realClock } from './real-clock.ts';
import { createShownFacts, createSnapshots } from './snapshots.ts';
import type { TerminalOutput } from './terminal.ts';

/** How often the main loop runs. */
const TICK_MS = 250;

interface ServiceOptions {
  readonly sync: Sync;
  readonly terminal: TerminalOutput;
  readonly listen: Listen;
  readonly statusPage: StatusPageConfig;
  readonly key: KeySource;
  /** `metrics.per_device`. */
  readonly perDevice: boolean;
  /** Further loops to run beside the sync. */
  readonly beside?: DaemonParts['beside'];
  /** Called with the address of the status page once it is served. */
  readonly onServed: (url: string) => void;
}

/**
 * Runs until the signal aborts.
 *
 * @throws UserError if a person has to act
 */
export async function runService(options: ServiceOptions, signal: AbortSignal): Promise<void> {
  const { sync, terminal } = options;
  const shown = createShownFacts(sync, terminal.scrub);
  const page = await servePage(options, shown.facts);
  try {
    options.onServed(page.url);
    const look = createFirstFill({ ...sync, observe: sync.context.observe, clock: realClock, statusPage: page.url });
    const houseClock = beatingClock(realClock, sync.heartbeats.pulse('housekeeping'));
    const parts: DaemonParts = {
      ...sync,
      key: options.key,
      beside: [
        ...sync.deliverers.map(({ run }) => run),
        (stop) => tickAgainAndAgain({ look, sync, terminal, keepEvents: shown.keepEvents }, stop),
        (stop) => runMaintenance({ ...sync.maintenance, clock: houseClock }, stop),
        sync.fleet.run,
        ...(options.beside ?? []),
      ],
    };
    await runDaemon(parts, signal);
  } finally {
    terminal.endProgress();
    shown.keepEvents();
    await page.close();
  }
}

interface TickParts {
  readonly look: () => void;
  readonly sync: Sync;
  readonly terminal: TerminalOutput;
  readonly keepEvents: () => void;
}

/** How often recent events are kept. */
const KEEP_EVENTS_MS = 10 * SECOND_MS;

async function tickAgainAndAgain({ look, sync, terminal, keepEvents }: TickParts, signal: AbortSignal): Promise<never> {
  const pulse = sync.heartbeats.pulse('main');
  let keptMs = Number.NEGATIVE_INFINITY;
  const tick = (): number => {
    sync.heartbeats.tick();
    pulse.beat(TICK_MS);
    terminal.show(sync.progress);
    look();
    if (realClock.monoMs() - keptMs >= KEEP_EVENTS_MS) {
      keepEvents();
      keptMs = realClock.monoMs();
    }
    return TICK_MS;
  };
  return await repeat(realClock, tick, signal);
}

/** Serves the status page, and counts for its metrics from now on. */
async function servePage(options: ServiceOptions, facts: PageFacts): Promise<StatusServer> {
  const { listen, statusPage, sync, perDevice } = options;
  const { scrub, logger } = options.terminal;
  const { report, overview, figures, deliverers, fleet, heartbeats } = sync;
  const health = (): HealthReport => healthOf(heartbeats.loops());
  const ready = (): ReadyReport => {
    const now = sync.ready();
    return { ...now, reasons: now.reasons.map(scrub) };
  };
  if (perDevice) fleet.listFigures(MOST_DEVICES);
  const metrics = createMetrics({
    figures,
    health,
    ready,
    loops: heartbeats.loops,
    clock: realClock,
    version: VERSION,
    perDevice,
    destinations: deliverers.map(({ name }) => name),
    scrub,
  });
  sync.listen(metrics.observe);
  const snapshots = createSnapshots({ report, overview, ageMs: fleet.ageMs, health, ready, scrub, clock: realClock });
  return await serveStatus({
    listen,
    names: statusPage.names,
    password: statusPage.password,
    clock: realClock,
    status: snapshots.report,
    page: pageOnDemand({ overview: snapshots.overview, facts, links: linksOf(statusPage) }),
    health,
    ready,
    metrics,
    onError: (message) => logger.say({ type: 'status-page-failed', message }),
  });
}

/** Where else the page leads, as far as that is configured. */
function linksOf({ grafanaUrl, docsUrl }: StatusPageConfig): StatusPageParts['links'] {
  return [
    ...(grafanaUrl === null ? [] : [{ words: 'Grafana', url: grafanaUrl }]),
    ...(docsUrl === null ? [] : [{ words: 'Documentation', url: docsUrl }]),
  ];
}

/** Loads the page's code at the first visit, so that a daemon without visitors starts without it. */
function pageOnDemand(parts: StatusPageParts): StatusServerOptions['page'] {
  let page: Promise<StatusServerOptions['page']> | null = null;
  return async (path, params) => {
    page ??= import('../page/page.ts').then(({ createStatusPage }) => createStatusPage(parts));
    return await (await page)(path, params);
  };
}

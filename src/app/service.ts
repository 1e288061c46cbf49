/**
 * Runs the common parts of the daemon and the demo: the scheduled sync, the status page and the progress. It closes
 * them in reverse order.
 *
 * The page and its JSON have every secret removed, even one in the name of a device. A complete report needs a scan of
 * all devices, so it is reused for a second and carries the time when it was made. The page uses the last scan that was
 * made for other reasons, and shows its age.
 */

import { runMaintenance } from '../archive/maintenance.ts';
import type { StatusPageConfig } from '../config/config.ts';
import type { Listen } from '../config/listen.ts';
import { runUnlessFull } from '../core/archive-room.ts';
import { closeAll, repeat } from '../core/async.ts';
import { MOST_DEVICE_SERIES } from '../core/fleet.ts';
import { beatingClock, healthOf } from '../core/heartbeats.ts';
import { type PageFacts, RECENT_EVENTS } from '../core/page-facts.ts';
import type { Clock } from '../core/ports.ts';
import { type Scrub, scrubbed } from '../core/secret.ts';
import {
  type HealthReport,
  type ReadyReport,
  type StatusOverview,
  type StatusReport,
  VERSION,
} from '../core/status.ts';
import { SECOND_MS } from '../core/time.ts';
import { createMetrics } from '../observe/metrics.ts';
import { createRecentEvents } from '../observe/recent-events.ts';
import { type StatusServer, type StatusServerOptions, serveStatus } from '../observe/server.ts';
import type { StatusPageParts } from '../page/page.ts';
import { createFirstFill } from '../report/ready.ts';
import { type DaemonParts, type KeySource, runDaemon } from '../scheduler/session.ts';
import type { Sync } from './open-sync.ts';
import { realClock } from './real-clock.ts';
import type { PasswordSource } from './secret-files.ts';
import { saveSettings } from './settings.ts';
import type { TerminalOutput } from './terminal.ts';

/** How often the main loop runs. */
const TICK_MS = SECOND_MS;

interface ServiceOptions {
  readonly sync: Sync;
  readonly terminal: TerminalOutput;
  readonly listen: Listen;
  readonly statusPage: StatusPageConfig;
  /** The password of the status page. */
  readonly password: PasswordSource;
  readonly key: KeySource;
  /** `metrics.per_device`. */
  readonly perDevice: boolean;
  /** Further loops that run at the same time as the sync. */
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
  saveSettings(sync);
  const shown = subscribeShownFacts(sync, terminal.scrub);
  const page = await servePage(options, shown.facts);
  try {
    options.onServed(page.url);
    const progress = createFirstFill({
      ...sync,
      ready: afterScan(sync, sync.ready),
      observe: sync.context.observe,
      clock: realClock,
      statusPage: page.url,
    });
    const maintenanceClock = beatingClock(realClock, sync.heartbeats.openPulse('maintenance'));
    const everyTenSeconds = (): void => {
      shown.saveEvents();
      options.password.checkFile();
    };
    const parts: DaemonParts = {
      ...sync,
      key: options.key,
      beside: [
        ...sync.deliverers.map(({ run }) => run),
        (stop) => runTicks({ progress, sync, terminal, everyTenSeconds }, stop),
        (stop) => runMaintenance({ ...sync.maintenance, clock: maintenanceClock }, stop),
        sync.fleet.run,
        ...(options.beside ?? []),
      ],
    };
    await runDaemon(parts, signal);
  } finally {
    await closeAll(
      () => terminal.endProgress(),
      () => shown.saveEvents(),
      () => page.close(),
    );
  }
}

interface TickParts {
  readonly progress: () => void;
  readonly sync: Sync;
  readonly terminal: TerminalOutput;
  /** Stores the recent events and checks the file of the password. */
  readonly everyTenSeconds: () => void;
}

const TEN_SECONDS_MS = 10 * SECOND_MS;

async function runTicks({ progress, sync, terminal, everyTenSeconds }: TickParts, signal: AbortSignal): Promise<never> {
  const pulse = sync.heartbeats.openPulse('main');
  let lastMs = Number.NEGATIVE_INFINITY;
  const tick = (): number => {
    sync.heartbeats.tick();
    pulse.beat(TICK_MS);
    terminal.show(afterScan(sync, sync.measureProgress));
    progress();
    if (realClock.monoMs() - lastMs >= TEN_SECONDS_MS) {
      everyTenSeconds();
      lastMs = realClock.monoMs();
    }
    return TICK_MS;
  };
  return await repeat(realClock, tick, signal);
}

/** A measurement of the devices as they are now, where a scan of them is quick. */
function afterScan<A extends readonly unknown[], T>(
  { fleet }: Pick<Sync, 'fleet'>,
  measure: (...args: A) => T,
): (...args: A) => T {
  return (...args) => {
    fleet.request();
    return measure(...args);
  };
}

/** Serves the status page, and starts counting for its metrics. */
async function servePage(options: ServiceOptions, facts: PageFacts): Promise<StatusServer> {
  const { listen, statusPage, password, sync, perDevice } = options;
  const { scrub, logger } = options.terminal;
  const { report, deliverers, fleet, heartbeats } = sync;
  const health = (): HealthReport => healthOf(heartbeats.loops());
  const scrubbedReady = (): ReadyReport => {
    const now = sync.ready();
    return { ...now, reasons: now.reasons.map(scrub) };
  };
  const ready = afterScan(sync, scrubbedReady);
  const overview = afterScan(sync, sync.overview);
  if (perDevice) fleet.setListed(MOST_DEVICE_SERIES);
  const metrics = createMetrics({
    figures: afterScan(sync, sync.measureFigures),
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
    password: password.inUse,
    clock: realClock,
    status: snapshots.report,
    page: pageOnDemand({ overview: snapshots.overview, facts, links: linksOf(statusPage) }),
    health,
    ready: async () => {
      await fleet.requestAndWait();
      return scrubbedReady();
    },
    metrics,
    onError: (message) => logger.write({ type: 'status-page-failed', message }),
  });
}

/** The page's external links, if they are configured. */
function linksOf({ grafanaUrl, docsUrl }: StatusPageConfig): StatusPageParts['links'] {
  return [
    ...(grafanaUrl === null ? [] : [{ label: 'Grafana', url: grafanaUrl }]),
    ...(docsUrl === null ? [] : [{ label: 'Documentation', url: docsUrl }]),
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

/** How long a report is reused. */
const GOOD_FOR_MS = 1000;

interface SnapshotParts {
  readonly report: () => StatusReport;
  readonly overview: () => StatusOverview;
  /** The age of the scan that the overview uses, in ms. */
  readonly ageMs: () => number;
  readonly health: () => HealthReport;
  readonly ready: () => ReadyReport;
  readonly scrub: Scrub;
  readonly clock: Pick<Clock, 'monoMs'>;
}

interface Snapshots {
  readonly report: () => StatusReport;
  /** The first part of the status page. */
  readonly overview: () => {
    readonly report: StatusOverview;
    readonly ageSeconds: number;
    readonly health: HealthReport;
    readonly ready: ReadyReport;
  };
}

/** Creates the functions that return the report and the overview. */
export function createSnapshots({ report, overview, ageMs, health, ready, scrub, clock }: SnapshotParts): Snapshots {
  let snapshot: { readonly report: StatusReport; readonly atMs: number } | null = null;
  return {
    report: () => {
      const nowMs = clock.monoMs();
      if (snapshot === null || nowMs - snapshot.atMs >= GOOD_FOR_MS)
        snapshot = { report: scrubbed(report(), scrub), atMs: nowMs };
      return snapshot.report;
    },
    overview: () => {
      const shown = scrubbed(overview(), scrub);
      return { report: shown, ageSeconds: Math.round(ageMs() / 1000), health: health(), ready: ready() };
    },
  };
}

/** The other parts of the status page. */
interface ShownFacts {
  readonly facts: PageFacts;
  /** Stores new recent events in the state, for the next process. */
  readonly saveEvents: () => void;
}

/** Collects the other facts of the status page. It listens to all future events. */
export function subscribeShownFacts(
  sync: Pick<Sync, 'listen' | 'onForgotten' | 'pageFacts' | 'context' | 'fleet'>,
  scrub: Scrub,
): ShownFacts {
  const { store } = sync.context;
  const recent = createRecentEvents({ clock: realClock, scrub, before: store.fact(RECENT_EVENTS) });
  sync.listen(recent.observe);
  sync.onForgotten(recent.forget);
  const { devices, device, alerts } = sync.pageFacts(recent.latest);
  const devicesNow = afterScan(sync, devices);
  return {
    facts: {
      devices: (query) => scrubbed(devicesNow(query), scrub),
      device: async (deviceId, rangeSeconds) => scrubbed(await device(deviceId, rangeSeconds), scrub),
      alerts: () => scrubbed(alerts(), scrub),
      events: recent.latest,
    },
    saveEvents: () => {
      const text = recent.takeUnsaved();
      if (text === null) return;
      const save = (): void => store.saveFact(RECENT_EVENTS, text);
      // The events are also in the log.
      runUnlessFull(save, () => {});
    },
  };
}

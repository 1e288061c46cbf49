/**
 * What the daemon and the demo have in common: the sync on its schedules, the status page over it, the progress, and
 * the closing of it all in reverse order.
 */
import type { Sync } from '../app.ts';
import { type DaemonParts, type KeySource, runDaemon } from '../commands/daemon.ts';
import type { Listen } from '../config-values.ts';
import type { StatusReport } from '../core/status.ts';
import { type StatusServer, serveStatus } from '../observe/server.ts';
import { realClock } from '../real-clock.ts';
import { createFirstFill } from '../sync/first-fill.ts';
import { runHousekeeping } from '../sync/housekeeping.ts';
import type { Voice } from '../voice.ts';

/** A loop that has not moved for so long stands still. */
const STILL_AFTER_MS = 60_000;

/** How often the main loop shows that it moves. */
const TICK_MS = 250;

export interface ServiceOptions {
  readonly sync: Sync;
  readonly voice: Voice;
  readonly listen: Listen;
  readonly key: KeySource;
  /** Further loops beside the sync. */
  readonly beside?: DaemonParts['beside'];
  /** Told the address of the status page once it is served. */
  readonly onServed: (url: string) => void;
}

/** Runs until told to stop. @throws UserError where a person has to act. */
export async function runService(options: ServiceOptions, signal: AbortSignal): Promise<void> {
  const { sync, voice } = options;
  const page = await servePage(options);
  try {
    options.onServed(page.url);
    const look = createFirstFill({ ...sync, observe: sync.context.observe, clock: realClock, statusPage: page.url });
    const parts: DaemonParts = {
      ...sync,
      key: options.key,
      beside: [
        (stop) => tickAgainAndAgain({ tick: page.tick, look, sync, voice }, stop),
        (stop) => runHousekeeping(sync.housekeeping, stop),
        ...(options.beside ?? []),
      ],
    };
    await runDaemon(parts, signal);
  } finally {
    voice.endProgress();
    await page.close();
  }
}

async function tickAgainAndAgain(
  { tick, look, sync, voice }: { tick: () => void; look: () => void; sync: Sync; voice: Voice },
  signal: AbortSignal,
): Promise<never> {
  for (;;) {
    tick();
    voice.show(sync.report);
    look();
    await realClock.sleep(TICK_MS, signal);
  }
}

/** Serves the status page; the main loop has to `tick` for it, or it is told to stand still. */
async function servePage({
  listen,
  sync: { report, ready },
  voice: { scrub, logger },
}: ServiceOptions): Promise<StatusServer & { readonly tick: () => void }> {
  let tickedAtMs = realClock.monoMs();
  const server = await serveStatus({
    listen,
    status: (): StatusReport => JSON.parse(scrub(JSON.stringify(report()))),
    health: () => {
      const healthy = realClock.monoMs() - tickedAtMs < STILL_AFTER_MS;
      return { healthy, reasons: healthy ? [] : ['the main loop stands still'] };
    },
    ready: () => {
      const now = ready();
      return { ...now, reasons: now.reasons.map(scrub) };
    },
    onError: (message) => logger.error(`status page: ${message}`),
  });
  const tick = (): void => {
    tickedAtMs = realClock.monoMs();
  };
  return { ...server, tick };
}

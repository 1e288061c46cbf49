/**
 * What the status page is made of beside the status report (`core/page-facts.ts`), put together from the state.
 *
 * Before the API has answered for the first time nothing is known of the server's time; the state is shown all the same,
 * by the local clock: nothing is claimed by it.
 */
import type { KnownAlert } from '../core/lines/alerts.ts';
import { ALERTS_SHOWN, type AlertRow, MAX_SHOWN_LENGTH, type PageFacts, type RecentEvent } from '../core/page-facts.ts';
import type { Clock } from '../core/ports.ts';
import { shortened } from '../core/text.ts';
import { type EpochMs, formatExact } from '../core/time.ts';
import type { Horizon } from '../ingest/context.ts';
import { horizonAt } from '../ingest/horizon.ts';
import type { DeviceReportParts } from './device-report.ts';
import type { FleetLook } from './fleet.ts';
import { devicePage } from './page-device.ts';
import { createPageDevices } from './page-devices.ts';
import { createSteps, madeOnce } from './page-turns.ts';

export interface PageParts extends DeviceReportParts {
  /** Who looks at all devices. */
  readonly fleet: Pick<FleetLook, 'listing'>;
  readonly clock: Pick<Clock, 'monoMs' | 'sleep'>;
  /** The newest first. */
  readonly recentEvents: () => readonly RecentEvent[];
}

/** Prepares it. */
export function createPageFacts(given: PageParts): PageFacts {
  const parts = byAnyClock(given);
  const { store } = parts.context;
  const step = createSteps(parts.clock);
  return {
    devices: createPageDevices(parts),
    device: madeOnce(async (deviceId, spanSeconds) => {
      const device = store.device(deviceId);
      return device === null ? null : await devicePage({ ...parts, step }, device, spanSeconds);
    }),
    alerts: () => {
      const { alerts, open, first } = parts.facts.alertsSeen(ALERTS_SHOWN);
      return { alerts, open, rows: first.map(alertRow) };
    },
    events: parts.recentEvents,
  };
}

/** The parts, in which a time is always known. */
export interface TimedParts extends PageParts {
  readonly horizon: () => Horizon;
}

/** The same, with the local clock where the server's is not known yet. */
function byAnyClock(parts: PageParts): TimedParts {
  const { store, settings, serverClock } = parts.context;
  const { nowMs } = serverClock;
  const claimableMs = (): EpochMs => serverClock.claimableMs() ?? nowMs();
  const passedMs = (): EpochMs => serverClock.passedMs() ?? nowMs();
  return {
    ...parts,
    context: { store, settings, serverClock: { nowMs, claimableMs, passedMs } },
    horizon: () => horizonAt(settings, { nowMs: claimableMs(), claimableMs: passedMs() }),
  };
}

function alertRow({ alertId, deviceId, deviceName, kind, sensor, openedAt, stateNs, isOpen }: KnownAlert): AlertRow {
  const shown = (text: string | null): string | null => (text === null ? null : shortened(text, MAX_SHOWN_LENGTH));
  return {
    alert_id: alertId,
    device_id: deviceId,
    device_name: shown(deviceName),
    kind: shown(kind),
    sensor: shown(sensor),
    opened_at: formatExact(openedAt),
    open: isOpen,
    observed_at: formatExact(stateNs),
  };
}

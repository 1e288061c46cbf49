/**
 * The requests of a busy live day, in virtual time: how many of them bring nothing, and whether lists, alerts and
 * account are read as they are scheduled.
 */
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { NOW_MS } from '../support/rig.ts';
import type { DeviceSpec } from '../support/trait-world.ts';
import { readState } from './read-state.ts';
import type { Measured } from './table.ts';
import { type VirtualDaemon, withVirtualDaemon } from './virtual-daemon.ts';

/** Requests of one kind. */
interface Asked {
  readonly requests: number;
  /** How many of them brought something new. */
  readonly useful: number;
}

const WIDE = { requestsPerMinute: 600, requestsPerDay: 500_000 };

/** Devices that report every minute, every five and every fifteen, and some that are silent since before. */
function fleetOf(part: number): readonly DeviceSpec[] {
  const some = (count: number, name: string, more: Omit<DeviceSpec, 'deviceId'>): DeviceSpec[] =>
    Array.from({ length: Math.max(1, Math.round(count * part)) }, (_, index) => ({
      deviceId: `${name}-${index}`,
      ...more,
    }));
  return [
    ...some(12, 'minute', { intervalMs: MINUTE_MS, jitter: 0.2 }),
    ...some(6, 'five', { intervalMs: 5 * MINUTE_MS, jitter: 0.2 }),
    ...some(4, 'fifteen', { intervalMs: 15 * MINUTE_MS, jitter: 0.2 }),
    ...some(2, 'silent', { intervalMs: MINUTE_MS, silences: [{ fromMs: 0, toMs: NOW_MS + 30 * DAY_MS }] }),
  ];
}

/**
 * Runs for so many hours after a first one.
 *
 * @param part of the usual fleet.
 */
export async function measureLiveDay(
  { hours, part = 1 }: { readonly hours: number; readonly part?: number },
  say: (text: string) => void,
): Promise<Measured[]> {
  const devices = fleetOf(part);
  const { live, checks, lists } = await withVirtualDaemon({ devices, plan: WIDE }, async (daemon) => {
    await daemon.clock.sleep(HOUR_MS);
    const fromMs = daemon.clock.nowMs();
    await daemon.clock.sleep(hours * HOUR_MS);
    return askedSince(daemon, fromMs);
  });
  say(
    `live day: ${live.requests} polls of ${devices.length} devices, ${live.useful} with something new; ${checks.requests} checks, ${checks.useful} with something new; lists ${lists.devices}, alerts ${lists.alerts}, account ${lists.account}`,
  );
  const scheduled = { alerts: 30 * hours, account: hours };
  const off = Math.abs(lists.alerts - scheduled.alerts) + Math.abs(lists.account - scheduled.account);
  const figure = { better: 'less' } as const;
  return [
    {
      ...figure,
      figure: 'polls to those with something new',
      unit: 'times',
      wanted: 1.02,
      values: [live.requests / live.useful],
    },
    // The list shows which devices have something new: a request a minute at the most.
    { ...figure, figure: 'lists of devices', unit: 'a minute', wanted: 1, values: [lists.devices / (60 * hours)] },
    { ...figure, figure: 'alerts and account beside their schedules', unit: 'requests', wanted: 0, values: [off] },
    {
      ...figure,
      figure: 'checks of silent ranges and read days',
      unit: '% of the polls',
      wanted: 2,
      values: [(100 * checks.requests) / live.requests],
    },
  ];
}

function askedSince({ dataDir }: VirtualDaemon, fromMs: number) {
  const rows = readState(
    dataDir,
    `SELECT stream, lane = 'idle-poll' AS is_check, count(*) AS requests, total(new_readings > 0) AS useful
     FROM request WHERE at_ms >= ${Math.floor(fromMs)} GROUP BY 1, 2`,
  );
  const asked = (stream: string, isCheck = 0): Asked => {
    const row = rows.find((each) => each['stream'] === stream && each['is_check'] === isCheck);
    return { requests: Number(row?.['requests'] ?? 0), useful: Number(row?.['useful'] ?? 0) };
  };
  return {
    live: asked('telemetry'),
    checks: asked('telemetry', 1),
    lists: {
      devices: asked('devices').requests,
      alerts: asked('alerts').requests,
      account: asked('account').requests,
    },
  };
}

/**
 * Fleets of which the device list does not show when a device was seen: nothing but a poll shows that a device has sent
 * nothing, and the daemon polls a device when its next reading is due. And a list that seems newer than it is. Part of
 * `scenarios.ts`.
 */
import { partsOfState, type StatusConfig } from '../../src/commands/shared/state-report.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, msToNs, SECOND_MS } from '../../src/core/time.ts';
import { reportNow } from '../../src/report/report.ts';
import { openToRead } from '../../src/store/views/read-state.ts';
import type { Bench } from './bench.ts';
import { liveAsDaemon, worldOf } from './daemon-rig.ts';
import { cron, KEEP_ALL } from './defaults.ts';
import { anyOf, onPath } from './faults.ts';
import type { FaultPlan } from './faulty-simulator.ts';
import { NOW_MS, openRig, type Program, type Rig } from './rig.ts';
import type { Scenario } from './scenarios.ts';
import type { DeviceSpec } from './trait-world.ts';
import { withWallOffset } from './virtual-clock.ts';

/** The last-seen time in the list: the time, nothing, or always the same time of long ago. */
export type Listing = 'shown' | 'absent' | 'stuck';

const SHOWN: Readonly<Record<Exclude<Listing, 'shown'>, string>> = {
  absent: 'null',
  stuck: '"2026-06-01T00:00:00Z"',
};

function listedAs(listing: Listing): FaultPlan {
  if (listing === 'shown') return () => null;
  const changed = (record: string): string =>
    record.replace(/"last_seen_at":\s*"[^"]*"/, `"last_seen_at":${SHOWN[listing]}`);
  return onPath(/\/devices$/, () => ({
    kind: 'mangle',
    change: (page) => ({ ...page, records: page.records.map(changed) }),
  }));
}

/** Devices that report this often, with a tenth of it as jitter. */
export function reportersOf(...minutes: readonly number[]): DeviceSpec[] {
  return minutes.map((every) => ({ deviceId: `every-${every}`, intervalMs: every * MINUTE_MS, jitter: 0.1 }));
}

/** Nothing here is about alerts: they are requested once an hour. */
const FEW_ALERTS = { alerts: cron('0 * * * *') };

interface FleetOptions {
  readonly devices: readonly DeviceSpec[];
  readonly listing: Listing;
  readonly date?: 'sent' | 'absent';
}

async function openFleet(
  bench: Bench,
  program: Program,
  { devices, listing, date = 'sent' }: FleetOptions,
): Promise<Rig> {
  const world = worldOf(devices, DAY_MS);
  const settings = { time: { date } };
  return await openRig(bench, { world, historyMs: 12 * HOUR_MS, settings, faults: listedAs(listing), program });
}

/** The checks of a healthy fleet, in all its runs. */
export interface Checks {
  readonly made: number;
  readonly notReady: number;
  /** Checks in which a device was called behind. */
  readonly behind: number;
  /** The largest lag of a device. */
  readonly worstLagSeconds: number;
  readonly behindAfterSeconds: number;
  /** The requests for telemetry in the last run. */
  readonly polls: number;
}

/** How many devices `--status` calls behind, by the state alone. */
function behindByState({ dataDir, settings, clock }: Rig): number {
  const config = {
    dataDir,
    influx: null,
    destinations: [],
    archive: { maxBytes: null },
    api: { share: 0.8 },
    sync: { ...settings, leftOut: KEEP_ALL.spec },
  } as unknown as StatusConfig;
  using state = openToRead(dataDir);
  return state === null ? 0 : reportNow(partsOfState(state, config, clock)).freshness.behind_devices;
}

export const CHECK_MS = 3 * MINUTE_MS;
/** To open a state costs more than three minutes of a daemon. */
const STATE_EVERY = 5;
/** When the checks of a run begin: by then each device was polled once. */
export const STARTED_MS = 10 * MINUTE_MS;

/**
 * Checks a daemon every three minutes, and what `--status` makes of its state every fifteen.
 *
 * @param livesMs how long each of its runs is; it starts again at once.
 */
export async function checkFleet(
  bench: Bench,
  program: Program,
  fleet: FleetOptions,
  livesMs: readonly number[],
): Promise<Checks> {
  using rig = await openFleet(bench, program, fleet);
  const sums = { made: 0, notReady: 0, behind: 0, worstLagSeconds: 0, behindAfterSeconds: 0 };
  const isBehindByState = (): boolean => sums.made % STATE_EVERY === 0 && behindByState(rig) > 0;
  let before = 0;
  for (const forMs of livesMs) {
    before = rig.simulator.log.total;
    await liveAsDaemon(rig, {
      forMs,
      program,
      schedules: FEW_ALERTS,
      meanwhile: async ({ ready, report }) => {
        await rig.clock.sleep(STARTED_MS);
        for (let ms = STARTED_MS + CHECK_MS; ms < forMs; ms += CHECK_MS) {
          await rig.clock.sleep(CHECK_MS);
          const { freshness } = report();
          sums.made += 1;
          if (!ready().ready) sums.notReady += 1;
          if (freshness.behind_devices > 0 || isBehindByState()) sums.behind += 1;
          sums.worstLagSeconds = Math.max(sums.worstLagSeconds, freshness.max_seconds ?? 0);
          sums.behindAfterSeconds = freshness.behind_after_seconds;
        }
      },
    });
  }
  const { requests } = rig.simulator.log;
  return {
    ...sums,
    polls: requests.filter(({ number, path }) => number > before && path.endsWith('/telemetry')).length,
  };
}

/** A healthy fleet is ready between its polls, and after a restart. */
export const unlistedStaysReady: Scenario = async (bench, program) => {
  const fleet = { devices: reportersOf(10, 60), listing: 'absent' } as const;
  const { made, notReady, behind, polls } = await checkFleet(bench, program, fleet, [2 * HOUR_MS, 4 * HOUR_MS]);
  return [
    ...(notReady === 0 && behind === 0 ? [] : [`${notReady} of ${made} checks are not ready, ${behind} are behind`]),
    ...(polls > 24 ? [] : [`${polls} polls in the last four hours`]),
  ];
};

/** The API has every request wait: that is no failure, and nothing is read. */
const HOLDS: FaultPlan = () => ({ kind: 'server-error', status: 429, waitSeconds: 60 });

/**
 * How long a daemon calls a fleet ready, in ms, from when none of it can be read any more. That begins right after a
 * poll of the device that reports least.
 *
 * @param fails what is the matter then.
 */
export async function readyForMs(
  bench: Bench,
  program: Program,
  fleet: FleetOptions,
  fails: FaultPlan = HOLDS,
): Promise<number> {
  using rig = await openFleet(bench, program, fleet);
  const last = fleet.devices.at(-1)?.deviceId ?? '';
  let readyMs = Number.POSITIVE_INFINITY;
  await liveAsDaemon(rig, {
    program,
    meanwhile: async ({ ready }) => {
      await rig.clock.sleep(70 * MINUTE_MS);
      const { log } = rig.simulator;
      const polls = (): number => log.requests.filter(({ path }) => path === `/devices/${last}/telemetry`).length;
      for (const before = polls(); polls() === before; ) await rig.clock.sleep(SECOND_MS);
      rig.simulator.faults = anyOf(fails, listedAs(fleet.listing));
      for (let ms = 0; ms < 90 * MINUTE_MS && readyMs > ms; ms += 10 * SECOND_MS) {
        if (!ready().ready) readyMs = ms;
        await rig.clock.sleep(10 * SECOND_MS);
      }
    },
  });
  return readyMs;
}

/** Nothing can be read for an hour: the report rates of the devices do not predict that. */
export const unlistedStalls: Scenario = async (bench, program) => {
  const readyMs = await readyForMs(bench, program, { devices: reportersOf(60), listing: 'absent' });
  return readyMs < 15 * MINUTE_MS ? [] : [`it is ready for ${readyMs / MINUTE_MS} minutes without a list or a poll`];
};

/**
 * The local clock is two days ahead when the only device list comes, and no `Date` counts then: because the API sends
 * none, or because the first one agrees with no other clock. Minutes later nothing can be read any more.
 */
export const listedByAClockAhead: Scenario = async (bench, program) => {
  const wrong: string[] = [];
  for (const date of ['sent', 'absent'] as const) {
    using rig = await openFleet(bench, program, { devices: reportersOf(60), listing: 'shown', date });
    let lists = 0;
    rig.simulator.faults = onPath(/\/devices$/, (...asked) => {
      lists += 1;
      return lists === 1 ? null : HOLDS(...asked);
    });
    await liveAsDaemon(rig, {
      forMs: 2 * HOUR_MS,
      program,
      schedules: { telemetry: cron('*/15 * * * *') },
      changes: { clock: withWallOffset(rig.clock, () => 2 * DAY_MS) },
      meanwhile: async ({ ready }) => {
        await rig.clock.sleep(8 * MINUTE_MS);
        if (!ready().ready) wrong.push(`Date ${date}: it is not ready after its list`);
        rig.simulator.faults = HOLDS;
        await rig.clock.sleep(80 * MINUTE_MS);
        if (!ready().codes.includes('last_day_missing')) wrong.push(`Date ${date}: no part of the last day is missing`);
      },
    });
  }
  return wrong;
};

/** A device stops for two hours and begins again unseen: its readings are missing until it is polled. */
export const unlistedComesBack: Scenario = async (bench, program) => {
  const backMs = NOW_MS + 190 * MINUTE_MS;
  const silences = [{ fromMs: NOW_MS + HOUR_MS, toMs: backMs }];
  const devices = [{ deviceId: 'stops', intervalMs: 10 * MINUTE_MS, silences }];
  using rig = await openFleet(bench, program, { devices, listing: 'absent' });
  const wrong: string[] = [];
  await liveAsDaemon(rig, {
    forMs: 6 * HOUR_MS,
    program,
    meanwhile: async ({ ready, report }) => {
      await rig.clock.sleep(250 * MINUTE_MS);
      for (let checks = 0; checks < 20; checks += 1) {
        await rig.clock.sleep(MINUTE_MS);
        const newest = Date.parse(report().devices[0]?.newest_reading_at ?? '');
        if (newest < backMs && ready().ready) wrong.push('it is ready while an hour of readings is missing');
      }
    },
  });
  return wrong.slice(0, 1);
};

/**
 * A device of every eight hours begins to report each minute, an hour after a reading.
 *
 * @returns how old its newest archived reading is an idle poll later, in ms.
 */
export async function ageAfterFaster(bench: Bench, program: Program): Promise<number> {
  const lastMs = NOW_MS + HOUR_MS;
  const seldom = [0, 1, 2, 3, 4, 5].map((back) => lastMs - back * 8 * HOUR_MS);
  const often = Array.from({ length: 400 }, (_, minute) => lastMs + HOUR_MS + minute * MINUTE_MS);
  const readings = [...seldom, ...often].map((ms) => ({ recordedAtNs: msToNs(ms), values: [['t', '1']] as const }));
  using rig = await openRig(bench, {
    world: worldOf([{ deviceId: 'faster', readings }], 3 * DAY_MS),
    historyMs: 2 * DAY_MS,
    faults: listedAs('absent'),
    program,
  });
  const forMs = 7 * HOUR_MS + 10 * MINUTE_MS;
  const { lastReport } = await liveAsDaemon(rig, { forMs, program, schedules: FEW_ALERTS });
  return rig.clock.nowMs() - Date.parse(lastReport.devices[0]?.newest_reading_at ?? '');
}

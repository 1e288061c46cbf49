/**
 * The cost of a device and of a reading with ten times the devices and ten times the history: processor time of a
 * backfill and of an idle daemon, and memory, as ratios.
 */
import { HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { type Backfill, backfill } from './figures.ts';
import { type Idle, idle } from './idle.ts';
import { type Measured, median } from './table.ts';
import type { WorkspaceSize } from './workspace.ts';

export interface GrowthPlan {
  readonly program: string;
  readonly size: WorkspaceSize;
  readonly idleDevices: number;
  readonly idleMs: number;
  readonly say: (text: string) => void;
}

const TIMES = 10;
const WANTED = 1.1;
const IDLE_HISTORY_MS = 6 * HOUR_MS;

export async function measureGrowth(plan: GrowthPlan): Promise<Measured[]> {
  return [
    ...(await measureBackfills(plan, true)),
    ...(await measureBackfills(plan, false)),
    ...(await measureIdle(plan)),
  ];
}

/** In turn, the small one before each larger one and after them. */
async function measureBackfills({ program, size, say }: GrowthPlan, delivers: boolean): Promise<Measured[]> {
  const what = delivers ? 'with delivery' : 'archive alone';
  const run = async (of: WorkspaceSize): Promise<Backfill> => {
    const one = await backfill({ size: of, delivers, program });
    const { readings, cpuMs, peakPrivateBytes } = one;
    say(
      `growth, ${what}, ${of.devices} devices: ${readings} readings, ${((cpuMs * 1000) / readings).toFixed(1)} µs of CPU for each, ${mb(peakPrivateBytes)} MB`,
    );
    return one;
  };
  const small = [await run(size)];
  const devices = await run({ ...size, devices: size.devices * TIMES });
  small.push(await run(size));
  const history = await run({ ...size, readings: size.readings * TIMES });
  small.push(await run(size));
  const cpuOf = ({ cpuMs, readings }: Backfill): number => cpuMs / readings;
  const memoryOf = ({ peakPrivateBytes }: Backfill): number => peakPrivateBytes;
  return [
    ratio(`backfill ${what}: CPU per reading, 10 × devices`, cpuOf(devices), small.map(cpuOf)),
    ratio(`backfill ${what}: CPU per reading, 10 × history`, cpuOf(history), small.map(cpuOf)),
    ratio(`backfill ${what}: peak private memory, 10 × devices`, memoryOf(devices), small.map(memoryOf)),
    ratio(`backfill ${what}: peak private memory, 10 × history`, memoryOf(history), small.map(memoryOf)),
  ];
}

/** Side by side, so that all of them have the same machine. */
async function measureIdle({ program, idleDevices, idleMs, say }: GrowthPlan): Promise<Measured[]> {
  const run = async (devices: number, historyMs: number): Promise<Idle> => {
    const one = await idle({ program, devices, historyMs, warmMs: Math.max(idleMs, MINUTE_MS), measuredMs: idleMs });
    say(
      `growth, idle with ${devices} devices and ${historyMs / HOUR_MS} hours: ${one.cpuSPerHour.toFixed(1)} s of CPU an hour, ${mb(one.privateBytes)} MB`,
    );
    return one;
  };
  const [small, devices, history] = await Promise.all([
    run(idleDevices, IDLE_HISTORY_MS),
    run(idleDevices * TIMES, IDLE_HISTORY_MS),
    run(idleDevices, IDLE_HISTORY_MS * TIMES),
  ]);
  return [
    ratio('idle: CPU per device, 10 × devices', devices.cpuSPerHour / TIMES, [small.cpuSPerHour]),
    ratio('idle: private memory per device, 10 × devices', devices.privateBytes / TIMES, [small.privateBytes]),
    ratio('idle: CPU, 10 × history', history.cpuSPerHour, [small.cpuSPerHour]),
    ratio('idle: private memory, 10 × history', history.privateBytes, [small.privateBytes]),
  ];
}

function ratio(figure: string, large: number, small: readonly number[]): Measured {
  return { figure, unit: 'times', wanted: WANTED, better: 'less', values: [large / median(small)] };
}

const mb = (bytes: number): string => (bytes / 1e6).toFixed(1);

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
  const peakOf = ({ peakPrivateBytes }: Backfill): number => peakPrivateBytes;
  return [
    ratio(`backfill ${what}: CPU per reading, 10 × devices`, cpuOf(devices), small.map(cpuOf)),
    ratio(`backfill ${what}: CPU per reading, 10 × history`, cpuOf(history), small.map(cpuOf)),
    ratio(`backfill ${what}: peak private memory, 10 × devices`, peakOf(devices), small.map(peakOf)),
    ratio(`backfill ${what}: peak private memory, 10 × history`, peakOf(history), small.map(peakOf)),
  ];
}

/** Of each of the small fleets, whose figures differ from run to run by as much as the history may cost. */
const IDLE_RUNS = 3;

/** Side by side, so that all of them have the same machine. */
async function measureIdle({ program, idleDevices, idleMs, say }: GrowthPlan): Promise<Measured[]> {
  const run = async (devices: number, historyMs: number): Promise<Idle> => {
    const one = await idle({ program, devices, historyMs, warmMs: Math.max(idleMs, MINUTE_MS), measuredMs: idleMs });
    say(
      `growth, idle with ${devices} devices and ${historyMs / HOUR_MS} hours: ${one.cpuSPerHour.toFixed(1)} s of CPU an hour, ${mb(memoryOf(one))} MB`,
    );
    return one;
  };
  const some = async (historyMs: number): Promise<Idle[]> =>
    await Promise.all(Array.from({ length: IDLE_RUNS }, async () => await run(idleDevices, historyMs)));
  const [small, devices, history] = await Promise.all([
    some(IDLE_HISTORY_MS),
    run(idleDevices * TIMES, IDLE_HISTORY_MS),
    some(IDLE_HISTORY_MS * TIMES),
  ]);
  const cpuOf = ({ cpuSPerHour }: Idle): number => cpuSPerHour;
  return [
    ratio('idle: CPU per device, 10 × devices', cpuOf(devices) / TIMES, small.map(cpuOf)),
    ratio('idle: private memory per device, 10 × devices', memoryOf(devices) / TIMES, small.map(memoryOf)),
    ratio('idle: CPU, 10 × history', median(history.map(cpuOf)), small.map(cpuOf)),
    ratio('idle: private memory, 10 × history', median(history.map(memoryOf)), small.map(memoryOf)),
    ratio('idle: most private memory, 10 × history', median(history.map(mostOf)), small.map(mostOf)),
  ];
}

/** The largest of the looks, which is that before a late collection. */
const mostOf = ({ privateBytes }: Idle): number => privateBytes;

/** The middle one of the looks. */
const memoryOf = ({ privateLooks }: Idle): number => median(privateLooks);

function ratio(figure: string, large: number, small: readonly number[]): Measured {
  return { figure, unit: 'times', wanted: WANTED, better: 'less', values: [large / median(small)] };
}

const mb = (bytes: number): string => (bytes / 1e6).toFixed(1);

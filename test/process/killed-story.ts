/**
 * The story of a seed with real processes: its fleet, its API and its history, moved so that the present is the
 * present, and the built program over HTTP. It is killed with SIGKILL at moments that are drawn, before and after
 * answers of either side, until it is left alone once. The judge is that of the random histories.
 */
import Database from 'better-sqlite3';
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import type { SettingsOverrides } from '../../src/sim/settings.ts';
import { createDice, type Dice } from '../lives/dice.ts';
import { drawStory } from '../lives/draw.ts';
import { storedSeries } from '../lives/examine-run.ts';
import { createLineStore, type LineStore } from '../lives/line-store.ts';
import type { Story } from '../lives/story.ts';
import { worldOf } from '../lives/world.ts';
import { ANSWER_FAULTS } from '../support/faults.ts';
import { judgeSeries } from '../support/judge.ts';
import { patient } from '../support/patience.ts';
import type { DeviceSpec } from '../support/trait-world.ts';
import { type Fault as DatabaseFault, FAULTS, startV2Proxy, type V2Proxy } from '../support/v2-proxy.ts';
import { openStage, type Run, type Stage, TOKEN } from './support.ts';

/** The result of a story. */
export interface KilledStory {
  readonly seed: number;
  /** Processes that were killed, and those of them that had sent a request. */
  readonly kills: number;
  readonly midway: number;
  /** Values that the judge expected and found. */
  readonly values: number;
  /** The errors; empty where there are none. */
  readonly wrong: readonly string[];
}

/** Kills in a story, and runs at the most until there were so many: one may end before it is killed. */
const KILLS = 3;
const MOST_RUNS = 8;

/** The widest range that a story may request: its plan has 31 days. */
const LONGEST_HISTORY_MS = 30 * DAY_MS;

/** Runs it. */
export async function liveKilled(seed: number): Promise<KilledStory> {
  const story = atPresent(drawStory(seed), Date.now());
  const dice = createDice(seed * 1009 + 900);
  const store = createLineStore();
  await using proxy = await startV2Proxy({ upstream: (_, lines) => store.write(lines.join('\n')), token: TOKEN });
  await using stage = await openStageOf(story);
  const env = envOf(story, proxy);
  const isDisturbed = dice.chance(0.5);
  let [runs, kills, midway] = [0, 0, 0];
  while (runs < MOST_RUNS && kills < KILLS) {
    const isKilledMidway = await liveUntilKilled({ stage, proxy, env, dice, isDisturbed }, runs === 0);
    runs += 1;
    if (isKilledMidway !== null) kills += 1;
    if (isKilledMidway === true) midway += 1;
  }
  stage.simulator.faults = null;
  proxy.setFaults(null);
  const startedMs = Date.now();
  const { code, stdout, stderr } = await stage.run(['--once', '--json'], { env });
  if (code !== 0) return { seed, kills, midway, values: 0, wrong: [`exit ${code}: ${stderr.slice(-1000)}`] };
  const { wrong, values } = judgeStory({ stage, store, story }, startedMs);
  wrong.push(...examineSummary(stdout), ...examineBookings(stage));
  if (!isDisturbed) wrong.push(...(await examineCost(story, stage, runs)));
  wrong.push(...(await examineIdle(story, stage, env)));
  return { seed, kills, midway, values, wrong };
}

/** The story with its last life at the present. */
function atPresent(story: Story, nowMs: number): Story {
  const byMs = nowMs - (story.lives.at(-1)?.atMs ?? story.endMs);
  const moved = <T>(value: T): T => {
    if (Array.isArray(value)) return value.map(moved) as T;
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value).map(([key, item]) => [key, isTime(key) ? item + byMs : moved(item)]);
    return Object.fromEntries(entries) as T;
  };
  return {
    ...story,
    startMs: story.startMs + byMs,
    endMs: story.endMs + byMs,
    devices: story.devices.map((device) => moved(device)),
  };
}

/** The members of a device that are moments. */
function isTime(key: string): boolean {
  return ['fromMs', 'toMs', 'atMs', 'appearsAtMs', 'vanishesAtMs', 'returnsAtMs'].includes(key);
}

function historyMsOf({ program, startMs }: Story): number {
  return Math.min(LONGEST_HISTORY_MS, program.historyMs + Date.now() - startMs);
}

async function openStageOf(story: Story): Promise<Stage> {
  return await openStage({ world: worldOf(story), settings: settingsOf(story.api), historyMs: historyMsOf(story) });
}

/** The API of the story as far as real time allows: nothing that lets a run wait for minutes. */
function settingsOf({ quota, time, plan, key: _, ...api }: SettingsOverrides): SettingsOverrides {
  const { offsetMs = 0 } = time ?? {};
  return {
    ...api,
    quota: { ...quota, foreign: { perMinute: 0, everyMs: SECOND_MS } },
    time: {
      ...time,
      date: 'sent',
      offsetMs: Math.abs(offsetMs) > MINUTE_MS ? 0 : offsetMs,
      latencyMs: { min: 0, max: 15 },
    },
    plan: plan?.maxDevicesPerPage === undefined ? {} : { maxDevicesPerPage: plan.maxDevicesPerPage },
  };
}

function envOf({ program }: Story, { url }: V2Proxy): Readonly<Record<string, string>> {
  return {
    TIDEMARK_INFLUX_URL: url,
    TIDEMARK_INFLUX_TOKEN: TOKEN,
    TIDEMARK_INFLUX_BUCKET: 'story',
    TIDEMARK_INFLUX_BATCH_LINES: String(program.batchLines),
    TIDEMARK_SYNC_GRACE_PERIOD: `${program.gracePeriodMs / SECOND_MS}s`,
    TIDEMARK_SYNC_TELEMETRY: '*/2 * * * * *',
    TIDEMARK_LISTEN: '127.0.0.1:0',
  };
}

interface Hunt {
  readonly stage: Stage;
  readonly proxy: V2Proxy;
  readonly env: Readonly<Record<string, string>>;
  readonly dice: Dice;
  /** Whether answers of both sides fail as well. */
  readonly isDisturbed: boolean;
}

/** When a process is killed. */
interface Kill {
  /** Counted in its requests, in its writes to the database, or by the clock, which hits its start. */
  readonly by: 'requests' | 'writes' | 'clock';
  readonly nth: number;
  /** So long after that moment: 0 before anything is answered. */
  readonly afterMs: number;
  /** Whether a write is applied although its answer does not arrive any more. */
  readonly isApplied: boolean;
}

function drawKill(dice: Dice, isFirst: boolean): Kill {
  const by = dice.pick(['requests', 'requests', 'requests', 'writes', 'writes', 'clock'] as const);
  return {
    by,
    // A run that has little left to do ends soon.
    nth: isFirst ? Math.floor(2 ** (dice.unit() * 4.7)) : dice.whole(1, 6),
    afterMs: by === 'clock' ? dice.whole(100, 400) : dice.pick([0, 0, 2, 8]),
    isApplied: dice.chance(0.5),
  };
}

/** A process that has not come to its moment by then is killed anyway. */
const LONGEST_LIFE_MS = 1.5 * SECOND_MS;

/** A daemon that runs, a run, a backfill. */
const WAYS = [['--once'], ['--once'], [], ['--backfill', '--from', '20d']];

/** @returns whether it was killed after its first request; `null` where it had ended before. */
async function liveUntilKilled(
  { stage, proxy, env, dice, isDisturbed }: Hunt,
  isFirst: boolean,
): Promise<boolean | null> {
  // The cost of `--once` is compared with an undisturbed run where nothing else goes wrong.
  const way = isDisturbed ? dice.pick(WAYS) : ['--once'];
  const kill = drawKill(dice, isFirst);
  const before = stage.simulator.log.total;
  const run: Run = stage.start(way, { env });
  const strike = (afterMs: number): void => {
    if (afterMs > 0) setTimeout(strike, afterMs, 0);
    else run.child.kill('SIGKILL');
  };
  const left = {
    requests: kill.by === 'requests' ? kill.nth : 0,
    writes: kill.by === 'writes' ? Math.ceil(kill.nth / 4) : 0,
  };
  stage.simulator.faults = () => {
    left.requests -= 1;
    if (left.requests === 0) strike(kill.afterMs);
    return isDisturbed && dice.chance(0.15) ? dice.pick(ANSWER_FAULTS) : null;
  };
  proxy.setFaults(() => {
    left.writes -= 1;
    if (left.writes !== 0) return isDisturbed && dice.chance(0.2) ? dice.pick(WRITE_FAULTS) : null;
    strike(kill.afterMs);
    return kill.afterMs > 0 ? null : kill.isApplied ? FAULTS.applyAndCut : FAULTS.cut;
  });
  if (kill.by === 'clock') strike(kill.afterMs);
  const timer = setTimeout(strike, patient(LONGEST_LIFE_MS), 0);
  const { code } = await run.ended;
  clearTimeout(timer);
  return code === null ? stage.simulator.log.total > before : null;
}

const WRITE_FAULTS: readonly DatabaseFault[] = [FAULTS.hang, FAULTS.applyAndCut, FAULTS.cut, FAULTS.unavailable];

interface Judged {
  readonly stage: Stage;
  readonly store: LineStore;
  readonly story: Story;
}

/** The clocks are compared to some seconds. */
const SLACK_MS = 7500;

/** Compares the promises of a run that began then with the truth. */
function judgeStory({ stage, store, story }: Judged, startedMs: number): { wrong: string[]; values: number } {
  const { simulator } = stage;
  const { world, settings } = simulator;
  const serverMs = startedMs + settings.time.offsetMs;
  const ns = (ms: number): bigint => BigInt(Math.floor(ms)) * 1_000_000n;
  const span = {
    fromNs: ns(Date.now() + settings.time.offsetMs - historyMsOf(story) + SLACK_MS),
    toNs: ns(serverMs - story.program.gracePeriodMs - SLACK_MS),
  };
  const ids = story.devices.map(({ spec }) => spec.deviceId);
  const verdict = judgeSeries({ stored: storedSeries(store), simulator }, span, ids);
  // A device that is not listed any more was never seen; a reading that was cut off is not there yet.
  const missing = verdict.missing.filter((_, index) => {
    const { deviceId = '', at = 0n } = verdict.missingAt[index] ?? {};
    const shown = [...world.readings(deviceId, at, at + 1n)];
    return world.has(deviceId, serverMs) && shown.every((reading) => simulator.isVisible(deviceId, reading, serverMs));
  });
  const some = (name: string, texts: readonly string[]): string[] =>
    texts.length === 0 ? [] : [`${texts.length} ${name}, such as ${texts.slice(0, 3).join(' | ')}`];
  return {
    wrong: [...some('missing', missing), ...some('invented', verdict.invented)],
    values: verdict.expected - verdict.missing.length,
  };
}

function examineSummary(stdout: string): string[] {
  const { outcome, gaps } = JSON.parse(stdout) as { outcome: string; gaps: readonly { reason: string }[] };
  const reasons = gaps.map(({ reason }) => reason).filter((reason) => reason !== 'device_gone');
  return outcome === 'complete' && reasons.length === 0 ? [] : [`${outcome}, gaps: ${reasons.join()}`];
}

/** Every sent request was booked before. */
function examineBookings({ dataDir, simulator }: Stage): string[] {
  const db = new Database(`${dataDir}/tidemark.db`, { readonly: true });
  const booked = Number(db.prepare('SELECT count(*) FROM request').pluck().get());
  db.close();
  const sent = simulator.log.total;
  return booked >= sent ? [] : [`${sent} requests were sent, and ${booked} booked`];
}

/**
 * Requests that may be under way when a kill comes, and the lists (account, devices, alerts) that each run requests.
 */
const COST_OF_A_KILL = 4 + 3;

/** Requests but those for alerts, which are listed from the first to the last by each run. */
function askedOf({ simulator }: Stage): number {
  return simulator.log.requests.filter(({ path }) => !path.startsWith('/alerts')).length;
}

/** A run that nobody has killed costs as much but for what was under way at each end of so many. */
async function examineCost(story: Story, stage: Stage, runs: number): Promise<string[]> {
  const asked = askedOf(stage);
  const store = createLineStore();
  await using proxy = await startV2Proxy({ upstream: (_, lines) => store.write(lines.join('\n')), token: TOKEN });
  await using calm = await openStageOf(story);
  const { code } = await calm.run(['--once'], { env: envOf(story, proxy) });
  const least = askedOf(calm);
  const most = least + runs * (COST_OF_A_KILL + story.devices.length);
  return code === 0 && asked <= most
    ? []
    : [`${asked} requests of ${runs} runs, ${least} of a calm one (exit ${code})`];
}

/** A run that has nothing to do requests the lists and the unsettled end of each device, where a burst may stand. */
async function examineIdle({ devices, api }: Story, stage: Stage, env: Hunt['env']): Promise<string[]> {
  const before = askedOf(stage);
  const { code, stderr } = await stage.run(['--once'], { env });
  const asked = askedOf(stage) - before;
  const most = devices.reduce((sum, { spec }) => sum + 2 + pagesOfBurst(spec, api.plan?.maxDevicesPerPage ?? 200), 3);
  return code === 0 && asked <= most
    ? []
    : [`exit ${code}, ${asked} requests of a run that has nothing to do: ${stderr}`];
}

function pagesOfBurst({ traits = [], burst }: DeviceSpec, pageSize: number): number {
  return traits.includes('burst') ? Math.ceil((burst?.size ?? 0) / pageSize) : 0;
}

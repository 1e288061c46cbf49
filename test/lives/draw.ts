/**
 * Draws a story from a seed: an API, a fleet with its events, a configuration, runs with kills, and the faults
 * meanwhile.
 *
 * Every draw stays within the faults that the program promises to survive.
 */
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { sensorsOf } from '../../src/sim/devices.ts';
import type { SettingsOverrides } from '../../src/sim/settings.ts';
import type { DeviceSpec, Trait } from '../support/trait-world.ts';
import { createDice, type Dice } from './dice.ts';
import { drawApi } from './draw-api.ts';
import { drawFurther } from './draw-further.ts';
import { drawMisfortunes } from './draw-misfortunes.ts';
import {
  type DeviceLife,
  type Life,
  LONGEST_DEATH_MS,
  type Misfortune,
  type ProgramSettings,
  type Story,
} from './story.ts';

/** When the stories begin, but for some hours that are drawn. */
const EPOCH_MS = Date.UTC(2026, 5, 15, 12, 34, 56, 789);

/** The sizes that are fixed before the rest is drawn. */
interface Size {
  readonly devices: number;
  readonly startMs: number;
  readonly livedMs: number;
  readonly historyMs: number;
  /** How far back readings reach at the start. */
  readonly worldMs: number;
  readonly pageSize: number;
  /** Readings of all devices over the complete story. */
  readonly readings: number;
}

/** Draws the story of a seed. */
export function drawStory(seed: number): Story {
  // Each part has chance of its own, so that a change of one leaves the others as they are.
  const diceOf = (part: number): Dice => createDice(seed * 1009 + part);
  const dice = diceOf(0);
  const historyMaxDays = dice.pick([null, 365, 365, 30, 30, 7, 3]);
  const size = drawSize(dice, historyMaxDays);
  const gracePeriodMs = dice.pick([30 * SECOND_MS, 2 * MINUTE_MS, 2 * MINUTE_MS, 10 * MINUTE_MS]);
  const drawnApi = drawApi(diceOf(1), { historyMaxDays, pageSize: size.pageSize, gracePeriodMs });
  const drawn = drawLives(diceOf(2), size, drawnApi.time?.date === 'absent' ? UNDATED_HOURS : LONGEST_HOURS);
  const devices = Array.from({ length: size.devices }, (_, index) => drawDevice(diceOf(10 + index), index, size));
  const program = drawProgram(diceOf(3), { size, lives: drawn, gracePeriodMs });
  const api = program.share < 0.5 ? withoutOthers(drawnApi) : drawnApi;
  // Without a Date nothing shows that stamps have fallen back.
  const isDated = api.time?.date !== 'absent';
  // Where the list does not report when a device was seen, there is no evidence against empty answers.
  const isSeen = (api.surprises?.missingFields ?? 0) === 0;
  const isPossible = ({ what }: Misfortune): boolean =>
    (isDated || what.kind !== 'server clock and stamps') && (isSeen || what.kind !== 'lies always');
  const misfortunes = drawMisfortunes(diceOf, drawn).filter(isPossible);
  const lives = drawn.map((life, index) => (index < drawn.length - 1 ? life : afterAll(life, misfortunes)));
  const endMs = Math.max(...lives.map(({ atMs }) => atMs)) + (lives.at(-1)?.forMs ?? 0);
  const story: Story = {
    seed,
    startMs: size.startMs,
    endMs,
    world: {
      historyMs: size.worldMs,
      precision: dice.pick(['s', 'ms', 'ms', 'us', 'ns']),
      alerts: { everyMs: dice.pick([HOUR_MS, 6 * HOUR_MS, DAY_MS]) },
    },
    api,
    program,
    devices,
    misfortunes,
    lives,
  };
  return drawFurther(story, diceOf(5));
}

/**
 * Where the account may not be read, the window of a header is unknown: beside other clients a small
 * share of it is one request in a quarter of an hour, and a run does not come to its end within a day.
 */
function withoutOthers(api: SettingsOverrides): SettingsOverrides {
  if (api.key?.scopes?.includes('account:read') !== false) return api;
  return { ...api, quota: { ...api.quota, foreign: { perMinute: 0, everyMs: 1000 } } };
}

function drawSize(dice: Dice, historyMaxDays: number | null): Size {
  const livedMs = Math.floor((3.1 + dice.unit()) * DAY_MS);
  const short = [3 * HOUR_MS, 12 * HOUR_MS, 2 * DAY_MS, 2 * DAY_MS];
  const long = historyMaxDays === null || historyMaxDays >= 30 ? [9 * DAY_MS, 20 * DAY_MS] : [historyMaxDays * DAY_MS];
  const historyMs = dice.pick([...short, ...long, ...long]) + dice.whole(0, 1000);
  const pageSize = dice.pick([3, 20, 50, 100, 200, 200, 200, 200, 200]);
  const most = pageSize < 20 ? 100 : pageSize < 50 ? 400 : dice.whole(2300, 3100);
  return {
    devices: dice.whole(4, 5),
    startMs: EPOCH_MS + dice.whole(0, DAY_MS),
    livedMs,
    historyMs,
    worldMs: Math.floor(historyMs * dice.pick([0.5, 1.1, 1.3])) + HOUR_MS,
    pageSize,
    readings: most,
  };
}

const TRAITS: readonly Trait[] = ['ties', 'burst', 'hostile', 'oddValues', 'empty'];

function drawDevice(dice: Dice, index: number, size: Size): DeviceLife {
  const { startMs, livedMs, worldMs } = size;
  const wholeMs = worldMs + livedMs;
  const some = (): number => startMs - worldMs + Math.floor(dice.unit() * wholeMs);
  const lived = (): number => startMs + Math.floor(dice.unit() * livedMs);
  const own = (size.readings / size.devices) * dice.pick([0.4, 1, 1, 1.3]);
  const intervalMs = Math.ceil(wholeMs / own);
  const span = (fromMs: number, mostMs: number) => ({ fromMs, toMs: fromMs + Math.floor(dice.unit() * mostMs) + 1 });
  const silences = Array.from({ length: dice.chance(0.4) ? dice.whole(1, 2) : 0 }, () => span(some(), wholeMs * 0.4));
  const buffers = dice.chance(0.25) ? [span(lived(), livedMs * 0.4)] : [];
  const vanishesAtMs = lived();
  const spec: DeviceSpec = {
    deviceId: `d${index}`,
    name: `name ${index}`,
    intervalMs,
    jitter: dice.pick([0, 0.5, 0.5, 0.95]),
    sensors: sensorsOf(dice.whole(4, 7)),
    traits: TRAITS.filter(() => dice.chance(0.15)),
    burst: { every: Math.max(20, Math.floor(own / 3)), size: dice.whole(2, size.pageSize < 20 ? 10 : 230) },
    parentDeviceId: index > 0 && dice.chance(0.5) ? 'd0' : null,
    ...(silences.length > 0 ? { silences } : {}),
    ...(dice.chance(0.2) ? { appearsAtMs: some() } : {}),
    ...(dice.chance(0.3) ? { renames: [{ atMs: lived(), value: `renamed ${index}` }] } : {}),
    ...(dice.chance(0.2) ? { moves: [{ atMs: lived(), value: 'd1' }] } : {}),
    ...(dice.chance(0.15) ? drawPause(dice, lived) : {}),
    ...(dice.chance(0.2)
      ? {
          vanishesAtMs,
          ...(dice.chance(0.6) ? { returnsAtMs: vanishesAtMs + Math.floor(dice.unit() * DAY_MS) } : {}),
        }
      : {}),
  };
  return { name: `device ${index}`, spec, buffers, stamps: dice.pick(['receipt', 'device']) };
}

/** A device that is paused, shelved or retired for a while or for good. */
function drawPause(dice: Dice, lived: () => number): Pick<DeviceSpec, 'lifecycle'> {
  const atMs = lived();
  const value = dice.pick(['paused', 'shelved', 'retired'] as const);
  const back = { atMs: atMs + Math.floor(dice.unit() * DAY_MS), value: 'active' as const };
  return { lifecycle: dice.chance(0.6) ? [{ atMs, value }, back] : [{ atMs, value }] };
}

/** The least number of kills in a story, and the lives that they are drawn for. */
const LEAST_KILLS = 3;

/**
 * A daemon runs so long at the most: longer than from one idle poll to the next. Without a Date it requests the time
 * every minute.
 */
const LONGEST_HOURS = 7;
const UNDATED_HOURS = 3;

function drawLives(dice: Dice, { startMs, livedMs, historyMs }: Size, longestHours: number): Life[] {
  const count = dice.whole(4, 5);
  // Each has a part of the story for itself: one that begins late would have missed what was to happen to it.
  const times = Array.from({ length: count }, (_, index) =>
    index === 0 ? 0 : (index + dice.unit() * 0.6) * (0.85 / count),
  );
  const kinds = times.map((_, index): Life['kind'] =>
    index === 0
      ? dice.pick(['once', 'once', 'daemon'])
      : dice.pick(['daemon', 'daemon', 'daemon', 'once', 'once', 'backfill', 'replay']),
  );
  const killed = new Set(times.map((_, index) => index).filter(() => dice.chance(0.4)));
  while (killed.size < LEAST_KILLS) killed.add(dice.whole(0, count - 1));
  const lives = times.map((part, index): Life => {
    const kind = kinds[index] ?? 'once';
    const atMs = startMs + Math.floor(part * livedMs);
    const leftMs = Math.floor(((times[index + 1] ?? 0.95) - part) * livedMs);
    const forMs =
      kind === 'daemon' ? Math.min(leftMs - LONGEST_DEATH_MS, dice.whole(2, longestHours) * HOUR_MS) : HOUR_MS;
    return {
      name: `life ${index}`,
      kind,
      atMs,
      forMs,
      kill: killed.has(index) ? drawKill(dice, { kind, forMs, isFirst: index === 0 }) : null,
      looks: kind === 'daemon' ? [dice.unit() * 0.4, 0.4 + dice.unit() * 0.5] : [],
      reachMs: Math.floor(historyMs * (0.5 + dice.unit())),
      losesFrom: kind === 'replay' ? dice.pick([-1, 0, dice.unit()]) : null,
      movesHouse: dice.chance(0.08),
      maintains: kind !== 'daemon' || (dice.chance(0.3) && forMs < 4 * HOUR_MS),
    };
  });
  const last = {
    name: 'the last life',
    kind: 'once' as const,
    atMs: startMs + livedMs,
    forMs: DAY_MS,
    reachMs: historyMs,
  };
  return [
    ...lives,
    { ...last, kill: null, looks: [], losesFrom: null, movesHouse: dice.chance(0.05), maintains: true },
  ];
}

/** How long it takes at the most until the effects of any misfortune are over. */
const LONGEST_EFFECT_MS = 26 * HOUR_MS;

/** The last life begins when no fault has an effect any more. */
function afterAll(life: Life, misfortunes: readonly Misfortune[]): Life {
  const overMs = misfortunes.filter(lastsADay).map(({ toMs }) => toMs + LONGEST_EFFECT_MS);
  return { ...life, atMs: Math.max(life.atMs, ...overMs) };
}

/** A quota of a day that others have spent; empty answers that were accepted, and are requested again after a day. */
function lastsADay({ what }: Misfortune): boolean {
  const isEmpty = what.kind === 'lies always' || (what.kind === 'server clock' && what.byMs > 0);
  return isEmpty || (what.kind === 'settings' && what.change.quota !== undefined);
}

/** Effects of opening a new state: nothing can go wrong meanwhile but the kill itself. */
const OPENING_EFFECTS = 14;

function drawKill(dice: Dice, { kind, forMs, isFirst }: Killed): Life['kill'] & object {
  if (kind !== 'daemon') {
    // A run that ends before it is killed was not killed: most are killed early.
    const isEarly = kind !== 'once' || dice.chance(0.6);
    const effect = isEarly ? dice.whole(10, 40) : Math.floor(2 ** (2 + dice.unit() * 6));
    const isOpening = !isFirst || dice.chance(0.1);
    return { afterMs: 0, effect: isOpening ? effect : OPENING_EFFECTS + effect };
  }
  const afterMs = Math.floor((!isFirst && dice.chance(0.2) ? 0 : 0.3 + dice.unit() * 0.7) * forMs);
  return { afterMs, effect: 10 + Math.floor(2 ** (dice.unit() * 6)) };
}

/** A life that is to be killed. */
interface Killed {
  readonly kind: Life['kind'];
  readonly forMs: number;
  /** Whether it has no state yet. */
  readonly isFirst: boolean;
}

/** Polls of single devices in a story at most, about: they are most of what a story costs. */
const MOST_POLLS = 25;

const EVERY: readonly (readonly [ms: number, cron: string])[] = [
  [MINUTE_MS, '* * * * *'],
  [5 * MINUTE_MS, '*/5 * * * *'],
  [10 * MINUTE_MS, '*/10 * * * *'],
  [30 * MINUTE_MS, '*/30 * * * *'],
  [HOUR_MS, '0 * * * *'],
  [2 * HOUR_MS, '0 */2 * * *'],
  [3 * HOUR_MS, '0 */3 * * *'],
];

function drawProgram(
  dice: Dice,
  { size, lives, gracePeriodMs }: { size: Size; lives: readonly Life[]; gracePeriodMs: number },
): ProgramSettings {
  const daemonMs = lives.reduce((sum, { kind, forMs }) => sum + (kind === 'daemon' ? forMs : 0), 0);
  const leastMs = (daemonMs * size.devices) / MOST_POLLS;
  const telemetry = EVERY.findIndex(([ms]) => ms >= leastMs);
  const cron = (index: number): string => EVERY[Math.min(Math.max(index, 0), EVERY.length - 1)]?.[1] ?? '';
  const at = telemetry < 0 ? EVERY.length - 1 : telemetry;
  return {
    historyMs: size.historyMs,
    gracePeriodMs,
    share: dice.pick([0.2, 0.8, 1]),
    concurrency: dice.pick([1, 2, 4, 4, 8]),
    batchLines: dice.pick([300, 1000, 5000, 5000]),
    retentionMs: dice.pick([30 * DAY_MS, 90 * DAY_MS]),
    schedules: { telemetry: cron(at), devices: cron(at + dice.whole(0, 1)), alerts: cron(at + dice.whole(0, 1)) },
  };
}

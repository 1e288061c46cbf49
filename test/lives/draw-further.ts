/**
 * Draws what was added to the stories later, each with chance of its own: so the rest of a story stays as its seed has
 * always drawn it.
 *
 * - Misfortunes: pages that end above a stored reading, cursors in a circle, answers without `Date` among others, ranges
 *   that are refused for a while.
 * - Surroundings: a plan of few requests a day beside a silent device; a plan of few days beside a long history, a long
 *   silence, and old windows that are empty for a while.
 */
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import type { SettingsOverrides } from '../../src/sim/settings.ts';
import type { MsRange } from '../../src/sim/spec.ts';
import type { Dice } from './dice.ts';
import type { DeviceLife, Life, Misfortune, Story } from './story.ts';

/** For how long misfortunes of answers last at the most: shorter than the time after which an answer is accepted. */
const MOST_MS = 20 * MINUTE_MS;

/** The drawn story with what was added later. */
export function drawFurther(story: Story, dice: Dice): Story {
  const surroundings = dice.pick<Surroundings>([asItIs, asItIs, withShortQuota, withLongHistory]);
  const among = surroundings(story, dice);
  const count = dice.whole(0, 2);
  const further = Array.from({ length: count }, (_, index) => ({
    name: `further misfortune ${index}`,
    ...drawMisfortune(among, dice),
  }));
  return { ...among, misfortunes: [...among.misfortunes, ...further.filter(({ what }) => isPossible(story, what))] };
}

function drawMisfortune({ api, lives }: Story, dice: Dice): Omit<Misfortune, 'name'> {
  const life = dice.pick(lives.slice(0, -1));
  const what = dice.pick([cutShort, cutShort, circle, undated, refusal])(dice, api);
  const fromMs = life.kind === 'daemon' ? life.atMs + Math.floor(dice.unit() * life.forMs * 0.6) : life.atMs;
  const mostMs = what.kind === 'lies' || life.kind !== 'daemon' ? MOST_MS : Math.max(MOST_MS, life.forMs / 2);
  return { fromMs, toMs: fromMs + Math.floor(mostMs * (0.1 + dice.unit() * 0.9)), what };
}

type What = Misfortune['what'];

function cutShort(dice: Dice): What {
  return { kind: 'lies', lie: 'cut above a stored reading', rate: dice.pick([0.6, 1, 1]), seed: dice.whole(0, 1e9) };
}

function circle(): What {
  return { kind: 'settings', change: { paging: { cursorDuplicates: 'loops' } } };
}

function undated(dice: Dice): What {
  return { kind: 'undated', rate: dice.pick([0.3, 0.6, 0.9]), seed: dice.whole(0, 1e9) };
}

function refusal(dice: Dice, { plan }: SettingsOverrides): What {
  const days = plan?.historyMaxDays ?? null;
  const narrower = { plan: { historyMaxDays: dice.pick([1, 2]) } };
  return { kind: 'settings', change: days !== null && dice.chance(0.5) ? { bounds: { age: 'rejected' } } : narrower };
}

/** A service without any `Date` cannot omit it at times. */
function isPossible({ api }: Story, what: What): boolean {
  return what.kind !== 'undated' || api.time?.date !== 'absent';
}

type Surroundings = (story: Story, dice: Dice) => Story;

function asItIs(story: Story): Story {
  return story;
}

/** A device that reports for a part of the time alone, and others that report a little more often for it. */
function withSilence(story: Story, chosen: DeviceLife, silence: MsRange, longer = 1): DeviceLife[] {
  return story.devices.map((each) => {
    const { intervalMs = MINUTE_MS } = each.spec;
    const isChosen = each === chosen;
    const spec = { ...each.spec, intervalMs: Math.ceil(intervalMs * longer * (isChosen ? 1 : 0.8)) };
    return isChosen ? { ...each, spec: { ...spec, silences: [silence] }, buffers: [] } : { ...each, spec };
  });
}

/** How much later the last life begins: after all requests that are repeated after a day. */
const LATER_MS = 26 * HOUR_MS;

function withLaterEnd({ lives, endMs }: Story): Pick<Story, 'lives' | 'endMs'> {
  const later = (life: Life): Life => ({ ...life, atMs: life.atMs + LATER_MS });
  return {
    lives: lives.map((life, index) => (index < lives.length - 1 ? life : later(life))),
    endMs: endMs + LATER_MS,
  };
}

/** Enough for the requests of a story in a day. Pages of few readings would need more. */
function withShortQuota(story: Story, dice: Dice): Story {
  const { api, program, startMs, endMs, world } = story;
  // It has reported nothing for long, and never will again.
  const fromMs = startMs - Math.floor(world.historyMs * dice.unit() * 0.5);
  const devices = withSilence(story, dice.pick(story.devices), { fromMs, toMs: endMs + 10 * DAY_MS });
  const requestsPerDay = Math.ceil(dice.pick([150, 300]) / program.share);
  if ((api.plan?.maxDevicesPerPage ?? 0) < 50) return story;
  const quota = { ...api.quota, foreign: { perMinute: 0, everyMs: 1000 } };
  return { ...story, ...withLaterEnd(story), devices, api: { ...api, quota, plan: { ...api.plan, requestsPerDay } } };
}

/** How many windows of the plan a long history has. */
const WINDOWS = 4;

/** As many readings as before, over four windows, and a device that was silent for more than one of them. */
function withLongHistory(story: Story, dice: Dice): Story {
  const { api, startMs, endMs, world, program } = story;
  const days = api.plan?.historyMaxDays ?? null;
  const [from, to] = [0.45 + dice.unit() * 0.45, dice.unit() * 0.15];
  const chosen = dice.pick(story.devices);
  const lieFor = Math.floor(MOST_MS * (0.1 + dice.unit() * 0.9));
  const life = story.lives.find(({ kind }) => kind !== 'replay');
  if (days === null || days > 7 || life === undefined) return story;
  const historyMs = WINDOWS * days * DAY_MS;
  const longer = (historyMs * 1.1 + endMs - startMs) / (world.historyMs + endMs - startMs);
  const silence = { fromMs: Math.floor(startMs - historyMs * from), toMs: Math.floor(startMs - historyMs * to) };
  const devices = withSilence(story, chosen, silence, longer);
  const liar: Misfortune = {
    name: 'old windows',
    fromMs: life.atMs,
    toMs: life.atMs + lieFor,
    what: { kind: 'lies', lie: 'an old window without a reading', rate: 1, seed: 0 },
  };
  return {
    ...story,
    ...withLaterEnd(story),
    api: { ...api, bounds: { ...api.bounds, age: 'unlimited' } },
    world: { ...world, historyMs: Math.floor(historyMs * 1.1) },
    program: { ...program, historyMs, retentionMs: 90 * DAY_MS },
    devices,
    misfortunes: [...story.misfortunes, liar],
  };
}

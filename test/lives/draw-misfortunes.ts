/**
 * Draws what goes wrong in a story: at the API, at the database, with the clocks. Each misfortune lies within one life
 * (one process).
 */
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import type { SettingsOverrides } from '../../src/sim/settings.ts';
import { FAULTS, throttled } from '../support/v2-proxy.ts';
import type { Dice } from './dice.ts';
import type { AnswerFault, Lie, Life, Misfortune } from './story.ts';

/** How long a disk is full at the most: every batch is cut to single lines again and again meanwhile. */
const MOST_FULL_MS = MINUTE_MS;

function longestMs({ what }: Drawn): number {
  return what.kind === 'database' && what.fault === FAULTS.diskFull ? MOST_FULL_MS : Infinity;
}

/** Draws them. The last life has none. */
export function drawMisfortunes(diceOf: (part: number) => Dice, lives: readonly Life[]): Misfortune[] {
  const disturbed = lives.slice(0, -1);
  const count = diceOf(4).whole(12, 16);
  return Array.from({ length: count }, (_, index): Misfortune => {
    const dice = diceOf(100 + index);
    // The first ones come two to a life, so that none is without one.
    const isSure = index < 2 * disturbed.length;
    const life = isSure ? (disturbed[index % disturbed.length] ?? dice.pick(disturbed)) : dice.pick(disturbed);
    const isFirst = life === disturbed[0];
    const { fromMs, toMs } = drawRange(dice, life, isSure);
    const drawn = drawKind(dice, { life, isFirst, isSure, isSecond: index >= disturbed.length });
    const mostMs = longestMs(drawn);
    return { name: `misfortune ${index}`, fromMs, toMs: Math.min(toMs, fromMs + mostMs), ...drawn };
  });
}

/** The time of a misfortune: from the beginning of a run that ends by itself, or anywhere within a daemon. */
function drawRange(dice: Dice, { kind, atMs, forMs }: Life, isSure: boolean): { fromMs: number; toMs: number } {
  if (kind !== 'daemon') {
    const lastsMs = dice.pick([10 * SECOND_MS, 30 * SECOND_MS, 2 * MINUTE_MS, 8 * MINUTE_MS, 20 * MINUTE_MS]);
    return { fromMs: atMs, toMs: atMs + lastsMs };
  }
  const fromMs = isSure || dice.chance(0.4) ? atMs : atMs + Math.floor(dice.unit() * forMs * 0.6);
  const lastsMs = Math.floor(forMs * (0.3 + dice.unit() * 0.6));
  return { fromMs, toMs: Math.min(atMs + forMs, fromMs + lastsMs) };
}

type Drawn = Pick<Misfortune, 'what'>;

interface Place {
  readonly life: Life;
  /** Whether nothing is known of the service yet. */
  readonly isFirst: boolean;
  /** Whether it is to be one that hits at the first request. */
  readonly isSure: boolean;
  /** Whether the life already has one of these. */
  readonly isSecond: boolean;
}

function drawKind(dice: Dice, place: Place): Drawn {
  const isReplay = place.life.kind === 'replay';
  // The clock is read before anything else: it hits a life that is killed before its first request or has none to make.
  if (place.isSure && place.isSecond && (place.isFirst || isReplay)) return localClock(dice);
  if (place.isFirst && dice.chance(0.15)) return dice.pick([clockAtStart, emptyService])(dice);
  // A replay sends no request to the service.
  if (isReplay) return database(dice);
  if (place.isSure && place.isSecond) return dice.pick([settings, localClock])(dice);
  if (place.isSure) return dice.pick([answers, answers, settings, settings, localClock])(dice, place);
  const kinds = [answers, answers, lies, lies, emptyService, settings, settings, database, database, database, clock];
  return dice.pick(kinds)(dice, place);
}

const ANSWER_FAULTS: readonly AnswerFault[] = [
  'server-error',
  'server-error with a wait',
  'html',
  'truncated',
  'malformed',
  'no body',
  'reset before',
  'reset after',
  'reset within',
  'slow',
  'slow body',
  'hang',
];

function answers(dice: Dice, { isSure }: Place): Drawn {
  const faults = dice.chance(0.4) ? ANSWER_FAULTS : [dice.pick(ANSWER_FAULTS), dice.pick(ANSWER_FAULTS)];
  const what = {
    kind: 'answers',
    faults,
    rate: isSure ? 1 : dice.pick([0.3, 0.6, 1]),
    seed: dice.whole(0, 1e9),
  } as const;
  return { what };
}

const LIES: readonly Lie[] = [
  'empty',
  'of another device',
  'of no device',
  'oldest first',
  'a page of the past without its newest',
  'without the newest',
];

function lies(dice: Dice): Drawn {
  const lie = dice.pick(LIES);
  const rate = dice.pick([0.3, 0.6, 1]);
  // Those about the newest readings are noticed by other evidence: if they are rare, they are repaired at once.
  return {
    what: { kind: 'lies', lie, rate: lie.endsWith('newest') ? Math.max(rate, 0.9) : rate, seed: dice.whole(0, 1e9) },
  };
}

/** Every answer for telemetry is empty for a while. */
function emptyService(): Drawn {
  return { what: { kind: 'lies always', lie: 'empty' } };
}

function settings(dice: Dice): Drawn {
  const change = dice.pick<SettingsOverrides>([
    { plan: { maxDevicesPerPage: dice.pick([10, 50]) } },
    { plan: { requestsPerMinute: 5 } },
    { plan: { requestsPerDay: 40 } },
    { plan: { apiAccess: false } },
    { key: { revoked: true } },
    { key: { scopes: ['devices:read', 'account:read', 'alerts:read'] } },
    { quota: { foreign: { perMinute: 600, everyMs: 1000 } } },
    { time: { latencyMs: { min: 10_000, max: 25_000 } } },
    { surprises: { unknownMembers: 1, missingFields: 0 } },
  ]);
  return { what: { kind: 'settings', change } };
}

function database(dice: Dice): Drawn {
  const fault = dice.pick([
    FAULTS.unavailable,
    FAULTS.unauthorized,
    FAULTS.bucketMissing,
    FAULTS.badGateway,
    FAULTS.loginPage,
    FAULTS.diskFull,
    FAULTS.cut,
    FAULTS.applyAndCut,
    throttled(7),
    throttled(600),
  ]);
  // A disk that is full now and then makes valid lines look invalid, which cannot be noticed; only a disk that stays
  // full can be recognized.
  const rate = fault === FAULTS.diskFull ? 1 : dice.pick([0.3, 0.6, 1]);
  return { what: { kind: 'database', fault, rate, seed: dice.whole(0, 1e9) } };
}

const JUMPS = [-3 * HOUR_MS, -20 * MINUTE_MS, HOUR_MS, 2 * DAY_MS];

function localClock(dice: Dice): Drawn {
  return { what: { kind: 'local clock', byMs: dice.pick(JUMPS) } };
}

/** Clocks that go wrong while the program runs. */
function clock(dice: Dice): Drawn {
  const byMs = dice.pick(JUMPS);
  if (dice.chance(0.4)) return localClock(dice);
  if (dice.chance(0.4)) return { what: { kind: 'server clock and stamps', byMs: -3 * HOUR_MS } };
  return { what: { kind: 'server clock', byMs } };
}

function clockAtStart(dice: Dice): Drawn {
  const byMs = dice.pick([HOUR_MS, 2 * DAY_MS, 400 * DAY_MS]);
  return { what: { kind: 'server clock', byMs } };
}

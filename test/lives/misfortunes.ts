/**
 * Brings the misfortunes of a story about: faults of the service's answers, its settings, its clock, the database, the
 * local clock. Each happens in its time, and is noted when it has hit something.
 */
import type { Clock } from '../../src/core/ports.ts';
import {
  DAY_MS,
  type EpochMs,
  type EpochNs,
  HOUR_MS,
  msToNs,
  parseTimestamp,
  SECOND_MS,
  SECOND_NS,
} from '../../src/core/time.ts';
import type { SimPage } from '../../src/sim/answers.ts';
import { createSettings, type SimSettings } from '../../src/sim/settings.ts';
import type { Fault, FaultPlan, Simulator } from '../support/faulty-simulator.ts';
import type { Fault as DatabaseFault } from '../support/v2-proxy.ts';
import type { ServedLie } from './believed-lies.ts';
import { createDice, type Dice } from './dice.ts';
import type { AnswerFault, Lie, Misfortune, Story } from './story.ts';

export interface Fate {
  /** The local clock's error now. */
  readonly localOffsetMs: () => number;
  /** Gives the service the settings of this moment. Called before each request. */
  readonly turn: () => void;
  readonly faults: FaultPlan;
  /** Removes the `Date` of an answer, where that happens now. */
  readonly undate: <T extends { readonly headers: Readonly<Record<string, string>> }>(answer: T) => T;
  /** The fault of a write now. */
  readonly database: () => DatabaseFault | null;
  /** The names of the misfortunes that have hit something. */
  readonly hit: ReadonlySet<string>;
  /** The false pages that were served, in their order. */
  readonly reported: readonly ServedLie[];
}

/** The latest sign of life of a device that the program has stored; `null` without one. */
export type KnownSign = (deviceId: string) => EpochNs | null;

/** The readings at the edges of what the program has covered of a device. */
export type KnownEdges = (deviceId: string) => readonly EpochNs[];

/**
 * The service, with the settings of the story, and the facts that the program has, about which a false answer is
 * noticed.
 */
interface Known extends Pick<Simulator, 'settings'> {
  readonly knownSign: KnownSign;
  readonly knownEdges?: KnownEdges;
}

/** Prepares the misfortunes of a story. */
export function createFate(
  story: Story,
  clock: Pick<Clock, 'nowMs'>,
  { settings, knownSign, knownEdges = () => [] }: Known,
): Fate {
  const calm = createSettings(story.api);
  const hit = new Set<string>();
  const reported: ServedLie[] = [];
  const own = new Map(
    story.misfortunes.map((each) => {
      const dice = createDice('seed' in each.what ? each.what.seed : 0);
      const isDated = settings.time.date !== 'absent';
      const windowMs = (calm.plan.historyMaxDays ?? Number.POSITIVE_INFINITY) * DAY_MS;
      const chances = { dice, knownSign, knownEdges, isDated, graceMs: story.program.gracePeriodMs, windowMs };
      return [each, { dice, fault: createFault(each, dice), lie: createLiar(each, chances) }] as const;
    }),
  );
  let turned = '';
  const active = (): readonly Misfortune[] => {
    const nowMs = clock.nowMs();
    return story.misfortunes.filter(({ fromMs, toMs }) => fromMs <= nowMs && nowMs < toMs);
  };
  const note = <T>({ name }: Misfortune, fault: T | null): T | null => {
    if (fault !== null) hit.add(name);
    return fault;
  };
  return {
    hit,
    reported,
    localOffsetMs: () => {
      let sum = 0;
      for (const { name, what } of active()) {
        if (what.kind !== 'local clock') continue;
        hit.add(name);
        sum += what.byMs;
      }
      return sum;
    },
    turn: () => {
      const now = active();
      const key = now.map(({ name }) => name).join();
      for (const { name, what } of now) if (isOfSettings(what.kind)) hit.add(name);
      if (key === turned) return;
      turned = key;
      takeSettings(settings, calm, now);
    },
    faults: (_, request) => {
      const now = active();
      for (const each of now) {
        const fault = note(each, own.get(each)?.fault(request) ?? null);
        if (fault !== null) return fault;
      }
      // A false answer counts only with a page that is served and arrives: true parts of it reach the program.
      const change = (page: SimPage): SimPage => {
        for (const each of now) {
          const lie = note(each, own.get(each)?.lie(request) ?? null);
          if (lie === null) continue;
          reported.push({ name: each.name, path: request.path, atMs: clock.nowMs() });
          return lie(page);
        }
        return page;
      };
      return now.some(({ what }) => what.kind === 'lies') ? { kind: 'mangle', change } : null;
    },
    undate: (answer) => {
      const taker = active().find(
        (each) => each.what.kind === 'undated' && own.get(each)?.dice.chance(each.what.rate) === true,
      );
      if (taker === undefined) return answer;
      hit.add(taker.name);
      const { date, ...headers } = answer.headers;
      return { ...answer, headers };
    },
    database: () => {
      for (const each of active()) {
        if (each.what.kind !== 'database') continue;
        const { fault, rate } = each.what;
        if (own.get(each)?.dice.chance(rate) === true) return note(each, fault);
      }
      return null;
    },
  };
}

function isOfSettings(kind: Misfortune['what']['kind']): boolean {
  return kind === 'settings' || kind === 'server clock' || kind === 'server clock and stamps';
}

function takeSettings(settings: SimSettings, calm: SimSettings, now: readonly Misfortune[]): void {
  const changes = now.map(({ what }) => (what.kind === 'settings' ? what.change : {}));
  for (const section of Object.keys(calm) as (keyof SimSettings)[]) {
    Object.assign(settings[section], structuredClone(calm[section]), ...changes.map((change) => change[section] ?? {}));
  }
  settings.time.jumpMs = now.reduce(
    (sum, { what }) => sum + (what.kind === 'server clock' || what.kind === 'server clock and stamps' ? what.byMs : 0),
    calm.time.jumpMs,
  );
}

const ANSWER_FAULTS: Readonly<Record<AnswerFault, Fault>> = {
  'server-error': { kind: 'server-error' },
  'server-error with a wait': { kind: 'server-error', status: 503, waitSeconds: 7 },
  html: { kind: 'html' },
  truncated: { kind: 'truncated' },
  malformed: { kind: 'malformed' },
  'no body': { kind: 'empty' },
  'reset before': { kind: 'reset', when: 'before-headers' },
  'reset after': { kind: 'reset', when: 'after-headers' },
  'reset within': { kind: 'reset', when: 'in-body' },
  slow: { kind: 'slow', delayMs: 20 * SECOND_MS },
  'slow body': { kind: 'slow', delayMs: 3 * SECOND_MS, part: 'body' },
  hang: { kind: 'hang' },
};

const LIES: Readonly<Record<Lie, (page: SimPage) => SimPage>> = {
  empty: (page) => ({ ...page, records: [], nextCursor: null }),
  'of another device': (page) => ({ ...page, deviceId: 'another' }),
  'of no device': (page) => ({ ...page, deviceId: null }),
  'oldest first': (page) => ({ ...page, records: page.records.toReversed() }),
  'a page of the past without its newest': (page) => ({ ...page, records: withoutNewest(page.records) }),
  'without the newest': (page) => ({ ...page, records: withoutNewest(page.records) }),
  'cut above a stored reading': (page) => page,
  'an old window without a reading': (page) => ({ ...page, records: [], nextCursor: null }),
};

/**
 * A page without its newest three, unless these are of one instant with the next: from the middle of an instant that
 * fills pages, their absence cannot be noticed.
 */
function withoutNewest(records: readonly string[]): readonly string[] {
  return timeOf(records[0]) === timeOf(records[3]) ? records : records.slice(3);
}

function timeOf(record = ''): EpochNs | null {
  return parseTimestamp(/"recorded_at":"([^"]*)"/.exec(record)?.[1] ?? '');
}

/**
 * A page of the past without its newest readings, where one of them is stored: the page has to show that one. Any other
 * page could not be distinguished from a true one, as where a local clock that is behind ends the newest page in the
 * past.
 */
function withoutStoredNewest(edges: readonly EpochNs[], page: SimPage): SimPage {
  const records = withoutNewest(page.records);
  const taken = page.records.slice(0, page.records.length - records.length);
  return taken.some((record) => edges.includes(timeOf(record) ?? -1n)) ? { ...page, records } : page;
}

/** How long before the present a request has to end to be one of the past. */
const PAST_MS = 2 * HOUR_MS;

function isOfThePast(query: URLSearchParams, nowMs: number): boolean {
  return isBefore(query, nowMs - PAST_MS);
}

function isBefore(query: URLSearchParams, atMs: number): boolean {
  const before = query.get('before');
  return before !== null && Date.parse(before) < atMs;
}

type Request = Parameters<FaultPlan>[1];

/** The effect of a misfortune on the answer of a request, whatever it is. */
function createFault({ what }: Misfortune, dice: Dice): (request: Request) => Fault | null {
  switch (what.kind) {
    case 'answers':
      return () => (dice.chance(what.rate) ? ANSWER_FAULTS[dice.pick(what.faults)] : null);
    case 'lies always':
      return ({ path }) => (path.endsWith('/telemetry') ? { kind: 'mangle', change: LIES[what.lie] } : null);
    default:
      return () => null;
  }
}

/** The inputs from which false answers are drawn. */
interface Chances {
  readonly dice: Dice;
  readonly knownSign: KnownSign;
  readonly knownEdges: KnownEdges;
  readonly isDated: boolean;
  readonly graceMs: number;
  readonly windowMs: number;
}

/** By how much a sign of life is older than the newest that can be covered, so that no rounding matters. */
const SIGN_MS = 30 * SECOND_MS;

/**
 * A page without its newest readings that stops short of a sign of life. The absence of readings after the last sign of
 * life cannot be noticed: a page without them is that of a device that has sent nothing since.
 */
function stoppingShortOf(seenAt: EpochNs, page: SimPage): SimPage {
  const records = withoutNewest(page.records);
  const newest = timeOf(records[0]);
  return newest !== null && newest + 2n * SECOND_NS < seenAt ? { ...page, records } : page;
}

/**
 * A page that ends above the newest stored reading below the requested range: half of what it has above that is left. A
 * reading older than the plan may be hidden by it, so that nobody would miss it.
 */
function cutAbove(edges: readonly EpochNs[], page: SimPage): SimPage {
  const times = page.records.map(timeOf);
  const at = times.findIndex((time, index) => index > 0 && time !== null && edges.includes(time));
  if (at < 0 || times[at] === times[0] || page.nextCursor !== null) return page;
  return { ...page, records: page.records.slice(0, Math.ceil(at / 2)) };
}

/**
 * Whether a false page is served in place of such a page. None removes the newest readings from a page behind a cursor:
 * it continues from no reading that it would have to show, so a gap above it cannot be noticed.
 */
function isToldOf(lie: Lie, query: URLSearchParams, atMs: EpochMs): boolean {
  if (lie.endsWith('newest') && query.has('cursor')) return false;
  return lie !== 'a page of the past without its newest' || isOfThePast(query, atMs);
}

/** May lie several times in a row about one device. */
function createLiar({ what }: Misfortune, chances: Chances): (request: Request) => ((page: SimPage) => SimPage) | null {
  if (what.kind !== 'lies') return () => null;
  const { lie, rate } = what;
  return (request) => {
    const { path, query, atMs } = request;
    if (!path.endsWith('/telemetry') || !isToldOf(lie, query, atMs)) return null;
    return chances.dice.chance(rate) ? lieOf(lie, request, chances) : null;
  };
}

/** The lie about the answer to a request; `null` where it could not be noticed. */
function lieOf(
  lie: Lie,
  { path, query, atMs }: Request,
  { knownSign, knownEdges, isDated, graceMs, windowMs }: Chances,
): ((page: SimPage) => SimPage) | null {
  const deviceId = decodeURIComponent(path.split('/')[2] ?? '');
  const shownFrom = msToNs(Math.max(0, Math.ceil(atMs - windowMs + HOUR_MS)));
  const edges = knownEdges(deviceId).filter((edge) => edge > shownFrom);
  switch (lie) {
    case 'an old window without a reading':
      return isBefore(query, atMs - windowMs) ? LIES[lie] : null;
    case 'a page of the past without its newest':
      return (page) => withoutStoredNewest(edges, page);
    case 'cut above a stored reading':
      return (page) => cutAbove(edges, page);
    case 'without the newest': {
      const seenAt = knownSign(deviceId);
      if (query.has('before') || seenAt === null) return null;
      // Without Date the sign itself is the clock.
      const isKnowable = !isDated || seenAt < msToNs(Math.floor(atMs - graceMs - SIGN_MS));
      return isKnowable ? (page) => stoppingShortOf(seenAt, page) : null;
    }
    default:
      return LIES[lie];
  }
}

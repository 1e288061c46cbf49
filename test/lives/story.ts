/**
 * A story: the lives of one state from its first request to its last, with everything that happens to it. A life is one
 * process of the program over that state. It is plain data, drawn from a seed (`draw.ts`); a part can be left out by
 * its name, which is how a failing story is shrunk.
 */
import { HOUR_MS } from '../../src/core/time.ts';
import type { SettingsOverrides } from '../../src/sim/settings.ts';
import type { MsRange } from '../../src/sim/spec.ts';
import type { DeviceSpec, WorldOptions } from '../support/trait-world.ts';
import type { Fault as DatabaseFault } from '../support/v2-proxy.ts';

/** All times of a story are milliseconds since 1970, by the clock that never jumps. */
export interface Story {
  readonly seed: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly world: Pick<WorldOptions, 'precision' | 'alerts'> & { readonly historyMs: number };
  readonly api: SettingsOverrides;
  readonly program: ProgramSettings;
  readonly devices: readonly DeviceLife[];
  readonly misfortunes: readonly Misfortune[];
  /** In the order of time. The last one is undisturbed. */
  readonly lives: readonly Life[];
}

/** How Tidemark is configured. */
export interface ProgramSettings {
  readonly historyMs: number;
  readonly gracePeriodMs: number;
  readonly share: number;
  readonly concurrency: number;
  readonly batchLines: number;
  readonly retentionMs: number;
  /** Cron expressions. */
  readonly schedules: { readonly telemetry: string; readonly devices: string; readonly alerts: string };
}

/** A device, and when it is cut off from the service: what it measures then is handed in at the end of each range. */
export interface DeviceLife {
  readonly name: string;
  readonly spec: DeviceSpec;
  readonly buffers: readonly MsRange[];
  /**
   * The meaning of `recorded_at` for a reading that was handed in late: when it was received, or when it was measured.
   */
  readonly stamps: 'receipt' | 'device';
}

/** Something that goes wrong for a while. */
export interface Misfortune {
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly what: ApiMisfortune | DatabaseMisfortune | ClockMisfortune;
}

/** False pages with status 200. */
export type Lie =
  | 'empty'
  | 'of another device'
  | 'of no device'
  | 'oldest first'
  /** A page of the past, or the newest page, without its newest readings. */
  | 'a page of the past without its newest'
  | 'without the newest'
  /** A page ends above the newest stored reading below its gap. */
  | 'cut above a stored reading'
  /** A page of a window that ends further back than a window is wide. */
  | 'an old window without a reading';

/** The faults of the network or the service in single answers. */
export type AnswerFault =
  | 'server-error'
  | 'server-error with a wait'
  | 'html'
  | 'truncated'
  | 'malformed'
  | 'no body'
  | 'reset before'
  | 'reset after'
  | 'reset within'
  | 'slow'
  | 'slow body'
  | 'hang';

export type ApiMisfortune =
  | { readonly kind: 'answers'; readonly faults: readonly AnswerFault[]; readonly rate: number; readonly seed: number }
  /** Maybe several times in a row for one device. */
  | { readonly kind: 'lies'; readonly lie: Lie; readonly rate: number; readonly seed: number }
  | { readonly kind: 'lies always'; readonly lie: Lie }
  /** Some answers have no `Date`. */
  | { readonly kind: 'undated'; readonly rate: number; readonly seed: number }
  /** The service has other settings for a while. */
  | { readonly kind: 'settings'; readonly change: SettingsOverrides };

export type DatabaseMisfortune = {
  readonly kind: 'database';
  readonly fault: DatabaseFault;
  readonly rate: number;
  readonly seed: number;
};

export type ClockMisfortune =
  /** The local clock is wrong. */
  | { readonly kind: 'local clock'; readonly byMs: number }
  /** The service's clock and with it `Date` are wrong, while readings keep the right time. */
  | { readonly kind: 'server clock'; readonly byMs: number }
  /** The service's clock falls back and stamps what it receives meanwhile. */
  | { readonly kind: 'server clock and stamps'; readonly byMs: number };

/** A daemon that is to be killed has so long until its effect has come: then it is killed anyway. */
export const LONGEST_DEATH_MS = HOUR_MS;

/** One run of the program. */
export interface Life {
  readonly name: string;
  readonly kind: 'once' | 'daemon' | 'backfill' | 'replay';
  /** It begins then, or when the one before it has ended. */
  readonly atMs: number;
  /** How long a daemon runs, and after how long anything else is interrupted. */
  readonly forMs: number;
  /** Killed so long after its beginning, at the nth effect from then on; `null`: it ends by itself or is stopped. */
  readonly kill: { readonly afterMs: number; readonly effect: number } | null;
  /** When its reports are compared with the truth: parts of `forMs`, ascending. */
  readonly looks: readonly number[];
  /** How far back a backfill reads. */
  readonly reachMs: number;
  /** Before it begins, the database loses what it has from this part of the story on; `null`: nothing. */
  readonly losesFrom: number | null;
  /** Whether it delivers to a database that is new to it. */
  readonly movesHouse: boolean;
  /** Whether the archive is maintained meanwhile, which costs as much as all else. */
  readonly maintains: boolean;
}

/** The names of all parts of a story that can be left out. */
export function partsOf({ devices, misfortunes, lives, api }: Story): string[] {
  return [
    ...misfortunes.map(({ name }) => name),
    ...lives.slice(0, -1).map(({ name }) => name),
    ...devices.map(({ name }) => name),
    ...devices.flatMap(({ name, spec, buffers }) => [
      ...ODDITIES.filter((key) => spec[key] !== undefined).map((key) => `${name} ${key}`),
      ...(buffers.length > 0 ? [`${name} buffers`] : []),
    ]),
    ...Object.keys(api).map((section) => `api ${section}`),
  ];
}

/** The parts of a device that can be left out. */
const ODDITIES = [
  'traits',
  'silences',
  'renames',
  'moves',
  'lifecycle',
  'appearsAtMs',
  'vanishesAtMs',
  'returnsAtMs',
  'jitter',
] as const;

/** The story without these parts. */
export function without(story: Story, parts: ReadonlySet<string>): Story {
  const stays = ({ name }: { readonly name: string }): boolean => !parts.has(name);
  return {
    ...story,
    misfortunes: story.misfortunes.filter(stays),
    lives: story.lives.filter(stays),
    devices: story.devices.filter(stays).map((device) => ({
      ...device,
      spec: Object.fromEntries(
        Object.entries(device.spec).filter(([key]) => !parts.has(`${device.name} ${key}`)),
      ) as unknown as DeviceSpec,
      buffers: parts.has(`${device.name} buffers`) ? [] : device.buffers,
    })),
    api: Object.fromEntries(Object.entries(story.api).filter(([section]) => !parts.has(`api ${section}`))),
  };
}

const stamp = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');

/** The story for people: what is left of it, in the order of time. */
export function tellStory(story: Story): string {
  const { program, devices, misfortunes, lives, api } = story;
  const events = [
    ...misfortunes.map(({ name, fromMs, toMs, what }) => ({
      atMs: fromMs,
      text: `${name} until ${stamp(toMs)}: ${JSON.stringify(what)}`,
    })),
    ...lives.map(({ name, kind, atMs, ...rest }) => ({ atMs, text: `${name}: ${kind} ${JSON.stringify(rest)}` })),
  ].sort((a, b) => a.atMs - b.atMs);
  return [
    `seed ${story.seed}, from ${stamp(story.startMs)} to ${stamp(story.endMs)}, world ${JSON.stringify(story.world)}`,
    `program ${JSON.stringify(program)}`,
    `api ${JSON.stringify(api)}`,
    ...devices.map(({ name, spec, buffers, stamps }) => `${name}: ${JSON.stringify({ ...spec, buffers, stamps })}`),
    ...events.map(({ atMs, text }) => `${stamp(atMs)} ${text}`),
  ].join('\n');
}

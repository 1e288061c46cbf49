/**
 * What the lives have shown that is not mended yet. A misfortune that shows one of these is drawn and left out, unless
 * it is asked for by its name: `npm run lives -- --seed N --with NAME`. When it is mended, its entry goes, and its
 * misfortune happens in every run from then on.
 */

/** A known defect: what is seen, and a seed that shows it. */
interface KnownDefect {
  readonly says: string;
  readonly seed: number;
}

export const KNOWN_DEFECTS = {
  'empty answers': {
    says: 'What the service calls empty by mistake for more than half an hour is believed, of all devices at once.',
    seed: 7,
  },
  'late readings': {
    says: 'Readings that arrive later than the grace period inside a covered range are not looked for.',
    seed: 120,
  },
  'clock ahead at the start': {
    says: 'After a clock that was ahead in its first hours a daemon is called ready before the newest reading is there.',
    seed: 165,
  },
  'clock falls back': {
    says: 'Readings that a service stamps while its clock is behind are not looked for.',
    seed: 399,
  },
} as const satisfies Readonly<Record<string, KnownDefect>>;

export type DefectName = keyof typeof KNOWN_DEFECTS;

/**
 * The sums of many stories, and whether they cover enough.
 */
import type { Sums } from './live.ts';

/**
 * The least values of every story, and the median of their values. Of the twelve misfortunes or more that each has,
 * some hit nothing where a life is killed before its first request.
 */
const LEAST = { devices: 4, days: 3, kills: 2, faults: 4 } as const;
const LEAST_MEDIAN_VALUES = 10_000;

/** The figures of many stories. */
export interface Total extends Omit<Sums, 'seed' | 'days'> {
  readonly stories: number;
  readonly days: number;
  readonly medianValues: number;
}

/** Adds stories up. */
export function addUp(all: readonly Sums[]): Total {
  const sum = (of: (sums: Sums) => number): number => all.reduce((so, each) => so + of(each), 0);
  return {
    stories: all.length,
    devices: sum(({ devices }) => devices),
    days: sum(({ days }) => days),
    lives: sum(({ lives }) => lives),
    kills: sum(({ kills }) => kills),
    faults: sum(({ faults }) => faults),
    values: sum(({ values }) => values),
    requests: sum(({ requests }) => requests),
    writes: sum(({ writes }) => writes),
    claims: sum(({ claims }) => claims),
    medianValues: median(all.map(({ values }) => values)),
  };
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? 0;
}

/** The figures for people. */
export function wordsOf(total: Total): string {
  const { stories, lives, days, devices, kills, faults, requests, writes, values, medianValues, claims } = total;
  return `${stories} stories: ${lives} program runs in ${Math.round(days)} days, ${devices} devices, ${kills} kills, ${faults} faults, ${requests} requests, ${writes} writes, ${values} values (median ${medianValues}), ${claims} reported ranges`;
}

/** The stories' shortfalls against the required coverage, one by one and together. */
export function tooLittle(all: readonly Sums[]): string[] {
  const few = all.flatMap((sums) =>
    (Object.keys(LEAST) as (keyof typeof LEAST)[])
      .filter((key) => sums[key] < LEAST[key])
      .map((key) => `seed ${sums.seed}: ${sums[key]} ${key}, at least ${LEAST[key]} wanted`),
  );
  const { medianValues } = addUp(all);
  return medianValues >= LEAST_MEDIAN_VALUES
    ? few
    : [...few, `a median of ${medianValues} values, at least ${LEAST_MEDIAN_VALUES} wanted`];
}

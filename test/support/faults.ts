/**
 * Faults of the simulated API in tests: plans that select the requests with a fault, and quiet faults: an answer with
 * 200, complete and well-formed, that is not true.
 */
import type { EpochMs, EpochNs } from '../../src/core/time.ts';
import { formatExact } from '../../src/core/time.ts';
import type { SimPage } from '../../src/sim/answers.ts';
import { chance, mix, pick, type Seed } from '../../src/sim/random.ts';
import type { Fault, FaultPlan } from './faulty-simulator.ts';

/** Answers that are no pages, or pages that do not arrive completely. */
export const ANSWER_FAULTS: readonly Fault[] = [
  { kind: 'server-error' },
  { kind: 'server-error', status: 503, waitSeconds: 1 },
  { kind: 'html' },
  { kind: 'truncated' },
  { kind: 'malformed' },
  { kind: 'empty' },
  { kind: 'reset', when: 'before-headers' },
  { kind: 'reset', when: 'in-body' },
  { kind: 'slow', delayMs: 300 },
];

/** The nth request, or several of them. */
export function onRequest(numbers: number | readonly number[], fault: Fault): FaultPlan {
  const wanted = new Set(typeof numbers === 'number' ? [numbers] : numbers);
  return (number) => (wanted.has(number) ? fault : null);
}

/** A part of all requests, by the seed: one of these faults each. */
export function atRate(share: number, faults: readonly Fault[], seed: Seed): FaultPlan {
  return (number) => (chance(mix(seed, number), share) ? pick(mix(mix(seed, number), 1), faults) : null);
}

/** Every request from `fromMs` up to `toMs`, in the server's time. */
export function betweenTimes(fromMs: EpochMs, toMs: EpochMs, fault: Fault): FaultPlan {
  return (_, { atMs }) => (atMs >= fromMs && atMs < toMs ? fault : null);
}

/** A plan for the requests whose path matches. */
export function onPath(path: RegExp, plan: FaultPlan): FaultPlan {
  return (number, request) => (path.test(request.path) ? plan(number, request) : null);
}

/** The first plan that decides for a fault. */
export function anyOf(...plans: readonly FaultPlan[]): FaultPlan {
  return (number, request) => {
    for (const plan of plans) {
      const fault = plan(number, request);
      if (fault !== null) return fault;
    }
    return null;
  };
}

/** Always the same fault. */
export function always(fault: Fault): FaultPlan {
  return () => fault;
}

const mangle = (change: (page: SimPage) => SimPage): Fault => ({ kind: 'mangle', change });

/** A list of devices without the time at which each was seen. */
export const withoutLastSeen: Fault = mangle((page) => ({
  ...page,
  records: page.records.map((record) => record.replace(/"last_seen_at":\s*"[^"]*"/, '"last_seen_at":null')),
}));

/** An empty page, the last of its listing, whatever there is. */
export const falselyEmpty: Fault = mangle((page) => ({ ...page, records: [], nextCursor: null }));

/** The right records in the wrong order: oldest first. */
export const upsideDown: Fault = mangle((page) => ({ ...page, records: page.records.toReversed() }));

/** The right records, two neighbours of them exchanged. */
export const twoExchanged: Fault = mangle((page) => {
  const records = [...page.records];
  const middle = records.length >> 1;
  const [first, second] = [records[middle - 1], records[middle]];
  if (first !== undefined && second !== undefined) records.splice(middle - 1, 2, second, first);
  return { ...page, records };
});

/** The newest records of the page are left out: a replica that lags behind. */
export function lagging(records: number): Fault {
  return mangle((page) => ({ ...page, records: page.records.slice(records) }));
}

/** A reading before all others that the device never made, at a time outside of the requested range. */
export function outsideWindow(at: EpochNs): Fault {
  const stray = `{"recorded_at":"${formatExact(at)}","values":{"stray":1}}`;
  return mangle((page) => ({ ...page, records: [stray, ...page.records] }));
}

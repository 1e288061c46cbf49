/**
 * Faults that nobody is told of: an answer with 200, whole and well-formed, that is not true.
 *
 * Each is a fault like any other (`faults.ts`): a plan says which requests it befalls, and may be exchanged at any time.
 */
import type { EpochNs } from '../core/time.ts';
import { formatExact } from '../core/time.ts';
import type { Fault, SimPage } from './faults.ts';

const mangle = (change: (page: SimPage) => SimPage): Fault => ({ kind: 'mangle', change });

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

/** A reading before all others that the device never made, at a time that nobody asked for. */
export function outsideWindow(at: EpochNs): Fault {
  const stray = `{"recorded_at":"${formatExact(at)}","values":{"stray":1}}`;
  return mangle((page) => ({ ...page, records: [stray, ...page.records] }));
}

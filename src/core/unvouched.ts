/**
 * Claims that no reading vouches for: stretches that were called empty while nothing at all was held of a device.
 *
 * Pure. Such answers could not be held against anything (two in a row had to do), and a service that answers emptily for
 * hours would leave all that was before them missing for good. So once a device shows a reading, what was called empty
 * before it is asked for again; from then on there is a reading that the answers have to show.
 */
import { addSpan, type CoveredSpan } from './coverage.ts';
import { hourOf } from './hours.ts';
import { subtract } from './intervals.ts';
import type { Reading } from './records.ts';
import type { TelemetryState } from './telemetry-state.ts';
import { type EpochNs, maxNs } from './time.ts';

type Claims = Pick<TelemetryState, 'spans' | 'hoursWritten'>;

/**
 * The claims that are left when these readings come. What lies above them stays: the next live request reaches over it.
 *
 * @param hasLines whether telemetry of the device was ever archived: its hours are told anew only where none was.
 */
export function upholdClaims<State extends Claims>(
  state: State,
  readings: readonly Reading[],
  hasLines: () => boolean,
): State {
  const newest = readings.reduce<EpochNs | null>(
    (a, { recordedAt }) => (a === null || a < recordedAt ? recordedAt : a),
    null,
  );
  if (newest === null || state.spans.length === 0 || state.spans.some(isVouchedFor)) return state;
  const spans = state.spans
    .filter(({ to }) => to > newest + 1n)
    .reduce<readonly CoveredSpan[]>((all, span) => addSpan(all, { ...span, from: maxNs(span.from, newest + 1n) }), []);
  if (hasLines()) return { ...state, spans };
  const told = [{ from: 0n, to: BigInt(hourOf(newest)) + 1n }];
  return { ...state, spans, hoursWritten: subtract(state.hoursWritten, told) };
}

function isVouchedFor({ first, last }: CoveredSpan): boolean {
  return first !== null || last !== null;
}

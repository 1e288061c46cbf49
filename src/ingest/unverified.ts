/**
 * Claims that no reading vouches for: stretches that were called empty while nothing at all was held of a device.
 *
 * Pure. Such answers could not be held against anything (two in a row had to do), and a service that answers emptily for
 * hours would leave all that was before them missing for good. So once a device shows a reading, what was called empty is
 * asked for again, wherever the reading lies: the page that shows it may be one of history, and tells nothing of what is
 * newer. From then on there is a reading that the answers have to show.
 */
import type { CoveredSpan } from '../core/coverage.ts';
import type { Reading } from '../core/records.ts';
import type { TelemetryState } from '../core/state/telemetry.ts';

type Claims = Pick<TelemetryState, 'spans' | 'hoursWritten'>;

/**
 * The claims that are left when a page lands.
 *
 * @param hasLines whether telemetry of the device was ever archived. Its hours are told anew only where none was; and where
 * some was, nothing is taken back before a page vouches: a reading that is too young to be claimed comes with every page.
 */
export function upholdClaims<State extends Claims>(
  state: State,
  { readings, proven }: { readonly readings: readonly Reading[]; readonly proven: CoveredSpan | null },
  hasLines: () => boolean,
): State {
  if (readings.length === 0 || state.spans.length === 0 || state.spans.some(isVouchedFor)) return state;
  if (!hasLines()) return { ...state, spans: [], hoursWritten: [] };
  return proven !== null && isVouchedFor(proven) ? { ...state, spans: [] } : state;
}

function isVouchedFor({ first, last }: CoveredSpan): boolean {
  return first !== null || last !== null;
}

/**
 * Times on the command line: `--from`, `--to` and their kin (design 1.2). Mistakes are ones of the command line (exit 2);
 * values are not repeated.
 */
import { parseInstant, parseSpanMs } from '../../config/values.ts';
import { UserError } from '../../core/faults.ts';
import { type EpochMs, type EpochNs, msToNs } from '../../core/time.ts';

/** A stretch as it was asked for: half-open; `null` where an end was not given. */
export interface AskedSpan {
  readonly from: EpochNs | null;
  readonly to: EpochNs | null;
}

/** Reads `--from` and `--to`. @throws UserError (exit 2) for the first mistake. */
export function readSpan(
  command: { readonly from: string | null; readonly to: string | null },
  nowMs: EpochMs,
): AskedSpan {
  const from = command.from === null ? null : readInstant('--from', command.from, nowMs);
  const to = command.to === null ? null : readInstant('--to', command.to, nowMs);
  if (from !== null && from >= (to ?? msToNs(nowMs))) {
    throw new UserError(`--from: expected a time before ${to === null ? 'now' : 'that of --to'}`, 2);
  }
  return { from, to };
}

/** A date, an RFC 3339 time or an age that is not in the future. @throws UserError (exit 2) */
export function readInstant(flag: string, text: string, nowMs: EpochMs): EpochNs {
  const ageMs = parseSpanMs(text);
  const at = ageMs === null ? parseInstant(text) : msToNs(Math.max(0, nowMs - ageMs));
  if (at !== null && at <= msToNs(nowMs)) return at;
  const expected = 'a date such as 2026-01-31, an RFC 3339 time or an age such as 90d';
  throw new UserError(`${flag}: expected ${at === null ? expected : 'a time that is not in the future'}`, 2);
}

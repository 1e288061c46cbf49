/**
 * Reads command-line values that several commands take: times and ranges (`--from`, `--to`), and the rate and extent
 * of a backfill. Every mistake is an error of the command line (exit 2). No message repeats a value.
 */
import { InvalidText, parseDurationMs, parseInstant, share } from '../../config/values.ts';
import { UserError } from '../../core/faults.ts';
import type { BackfillArgs } from '../../core/state/job-args.ts';
import { type EpochMs, type EpochNs, msToNs, nsToMs } from '../../core/time.ts';

/** A range from the command line, half-open; `null` for an end that was not given. */
export interface RequestedRange {
  readonly from: EpochNs | null;
  readonly to: EpochNs | null;
}

/**
 * Reads `--from` and `--to`.
 *
 * @throws UserError (exit 2) for the first mistake.
 */
export function readRange(
  command: { readonly from: string | null; readonly to: string | null },
  nowMs: EpochMs,
): RequestedRange {
  const from = command.from === null ? null : readInstant('--from', command.from, nowMs);
  const to = command.to === null ? null : readInstant('--to', command.to, nowMs);
  if (from !== null && from >= (to ?? msToNs(nowMs))) {
    throw new UserError(`--from: expected a time before ${to === null ? 'now' : '--to'}`, null, 2);
  }
  return { from, to };
}

/**
 * A date, an RFC 3339 time or an age that is not in the future.
 *
 * @throws UserError (exit 2)
 */
function readInstant(flag: string, text: string, nowMs: EpochMs, also = ''): EpochNs {
  const ageMs = parseDurationMs(text);
  const at = ageMs === null ? parseInstant(text) : msToNs(Math.max(0, nowMs - ageMs));
  if (at !== null && at <= msToNs(nowMs)) return at;
  const expected = 'a date such as 2026-01-31, an RFC 3339 time or an age such as 90d';
  throw new UserError(`${flag}: expected ${at === null ? `${expected}${also}` : 'a time in the past'}`, null, 2);
}

/** The word for the whole history. */
export const ALL = 'all';

/** The requested rate of a backfill; `null` for an option that was not given. */
export interface RateOptions {
  readonly maxShare: number | null;
  readonly finishByMs: EpochMs | null;
}

/**
 * Reads `--finish-by` and `--max-share`.
 *
 * @throws UserError (exit 2) for the first mistake.
 */
export function readRate(
  { finishBy, maxShare }: { readonly finishBy: string | null; readonly maxShare: string | null },
  nowMs: EpochMs,
): RateOptions {
  if (finishBy !== null && maxShare !== null) {
    throw new UserError('--finish-by and --max-share both set the rate', 'Give one of them.', 2);
  }
  return {
    maxShare: maxShare === null ? null : readShare(maxShare),
    finishByMs: finishBy === null ? null : readFuture('--finish-by', finishBy, nowMs),
  };
}

function readShare(text: string): number {
  const read = share(text);
  if (read instanceof InvalidText)
    throw new UserError(`--max-share: ${read.reason}: the fraction of the budget that the backfill may use`, null, 2);
  return read;
}

/** A date, an RFC 3339 time, or a duration from now on. */
function readFuture(flag: string, text: string, nowMs: EpochMs): EpochMs {
  const aheadMs = parseDurationMs(text);
  const instant = aheadMs === null ? parseInstant(text) : null;
  if (aheadMs === null && instant === null) {
    throw new UserError(
      `${flag}: expected a time in the future: a date such as 2026-01-31 (00:00 UTC), an RFC 3339 time, or a duration from now such as 12h`,
      null,
      2,
    );
  }
  const atMs = instant === null ? nowMs + (aheadMs ?? 0) : nsToMs(instant);
  if (atMs <= nowMs) throw new UserError(`${flag}: expected a time in the future`, null, 2);
  return atMs;
}

/** The range and the rate of a backfill; `from` may be `all`. */
interface ParsedBackfill extends RateOptions {
  readonly from: EpochNs | typeof ALL;
  readonly to: EpochNs | null;
  readonly recheck: boolean;
}

/**
 * Reads the range and the rate.
 *
 * @throws UserError (exit 2) for the first mistake.
 */
export function readBackfillOptions(
  command: {
    readonly from: string | null;
    readonly to: string | null;
    readonly finishBy: string | null;
    readonly maxShare: string | null;
    readonly recheck: boolean;
  },
  nowMs: EpochMs,
): ParsedBackfill {
  if (command.from === null) {
    throw new UserError(
      '--backfill needs --from',
      'a date such as 2026-01-31, an RFC 3339 time, an age such as 90d, or all.',
      2,
      { joint: ':' },
    );
  }
  const from = command.from === ALL ? ALL : readInstant('--from', command.from, nowMs, ', or all');
  const to = command.to === null ? null : readInstant('--to', command.to, nowMs);
  if (from !== ALL && from >= (to ?? msToNs(nowMs))) {
    throw new UserError(`--from: expected a time before ${to === null ? 'now' : '--to'}`, null, 2);
  }
  const rate = readRate(command, nowMs);
  if (from === ALL && rate.finishByMs !== null) {
    throw new UserError(
      '--finish-by needs a --from other than all, because the amount of history is not known in advance',
      'Use --max-share instead.',
      2,
    );
  }
  return { from, to, recheck: command.recheck, ...rate };
}

/**
 * The options as the arguments of a job.
 *
 * @param devices the ids of the devices.
 * @param typed the times as typed.
 */
export function backfillArgs(
  options: ParsedBackfill,
  devices: readonly string[],
  { from: typedFrom, to: typedTo, finishBy }: NonNullable<BackfillArgs['typed']>,
): BackfillArgs {
  const { from, to, maxShare, finishByMs, recheck } = options;
  return {
    from: from === ALL ? ALL : String(from),
    to: to === null ? null : String(to),
    devices: [...new Set(devices)],
    maxShare,
    finishByMs,
    ...(recheck ? { recheck } : {}),
    typed: { from: typedFrom, to: typedTo, finishBy },
  };
}

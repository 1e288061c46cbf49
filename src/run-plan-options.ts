/**
 * What the command line of `--plan` says in values: times, and what is to be supposed. Every mistake is one of the command
 * line (exit 2); values are not repeated.
 */
import type { Command } from './cli.ts';
import { count, cron, parseInstant, parseSpanMs, share, Unfit } from './config-values.ts';
import { UserError } from './core/faults.ts';
import type { Schedule } from './core/schedule.ts';
import { type EpochMs, type EpochNs, msToNs } from './core/time.ts';
import type { WhatIf, WhatIfText } from './core/what-if.ts';

export type PlanCommand = Extract<Command, { mode: 'plan' }>;

/** More is no workspace, and no plan, that there is. */
const MAX_DEVICES = 100_000;
const MAX_REQUESTS = 100_000_000;

export interface PlanOptions {
  readonly whatIf: WhatIf;
  /** `null`: as far back as `sync.history` says. */
  readonly from: EpochNs | null;
  /** `null`: up to now. */
  readonly to: EpochNs | null;
}

/** Reads the values. @throws UserError (exit 2) for the first mistake. */
export function readPlanOptions(command: Pick<PlanCommand, 'whatIf' | 'from' | 'to'>, nowMs: EpochMs): PlanOptions {
  const from = command.from === null ? null : instant('--from', command.from, nowMs);
  const to = command.to === null ? null : instant('--to', command.to, nowMs);
  if (from !== null && from >= (to ?? msToNs(nowMs))) {
    throw new UserError(`--from: expected a time before ${to === null ? 'now' : 'that of --to'}`, 2);
  }
  return { whatIf: readSuppositions(command.whatIf), from, to };
}

/** A date, an RFC 3339 time or an age (design 1.2). */
function instant(flag: string, text: string, nowMs: EpochMs): EpochNs {
  const ageMs = parseSpanMs(text);
  const at = ageMs === null ? parseInstant(text) : msToNs(Math.max(0, nowMs - ageMs));
  if (at !== null && at <= msToNs(nowMs)) return at;
  const expected = 'a date such as 2026-01-31, an RFC 3339 time or an age such as 90d';
  throw new UserError(`${flag}: expected ${at === null ? expected : 'a time that is not in the future'}`, 2);
}

function readSuppositions(texts: readonly WhatIfText[]): WhatIf {
  let whatIf: WhatIf = {};
  const seen = new Set<string>();
  for (const text of texts) {
    if (seen.has(text.key)) throw new UserError(`--what-if ${text.key} was given twice. Give it once.`, 2);
    seen.add(text.key);
    whatIf = suppose(whatIf, text);
  }
  return whatIf;
}

function suppose(whatIf: WhatIf, text: WhatIfText): WhatIf {
  const { key } = text;
  switch (key) {
    case 'api.share':
      return { ...whatIf, share: fitting(text, share) };
    case 'devices':
      return { ...whatIf, devices: fitting(text, devices) };
    case 'requests_per_minute':
      return { ...whatIf, perMinute: fitting(text, count(1, MAX_REQUESTS)) };
    case 'requests_per_day':
      return { ...whatIf, perDay: fitting(text, count(1, MAX_REQUESTS)) };
    default: {
      const schedule: Schedule = fitting(text, cron);
      return { ...whatIf, schedules: { ...whatIf.schedules, [key.slice('sync.'.length)]: schedule } };
    }
  }
}

function devices(text: string): number | Unfit {
  const value = count(1, MAX_DEVICES)(text);
  if (!(value instanceof Unfit)) return value;
  return new Unfit(`${value.reason}: how many there are (when the list is read is sync.devices)`);
}

function fitting<T>({ key, value }: WhatIfText, parse: (text: string) => T | Unfit): T {
  const read = parse(value);
  if (read instanceof Unfit) throw new UserError(`--what-if ${key}: ${read.reason}`, 2);
  return read;
}

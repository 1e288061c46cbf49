/**
 * What the command line of `--plan` says in values: times, and what is to be supposed. Every mistake is one of the command
 * line (exit 2); values are not repeated.
 */
import type { PlanCommand } from '../../cli/command.ts';
import { count, cron, share, Unfit } from '../../config/values.ts';
import { UserError } from '../../core/faults.ts';
import type { Schedule } from '../../core/schedule.ts';
import type { EpochMs } from '../../core/time.ts';
import type { WhatIf, WhatIfText } from '../../core/what-if.ts';
import { ALL, type PaceOptions, readPace } from '../shared/backfill-options.ts';
import { type AskedSpan, readSpan } from '../shared/range.ts';

/** More is no workspace, and no plan, that there is. */
const MAX_DEVICES = 100_000;
const MAX_REQUESTS = 100_000_000;

/** `from`: `null` is as far back as `sync.history` says; `to`: `null` is now. */
export interface PlanOptions extends AskedSpan {
  readonly whatIf: WhatIf;
  /** Whether it is about all there is; then `from` says nothing. */
  readonly isAll: boolean;
  readonly pace: PaceOptions;
}

/** Reads the values. @throws UserError (exit 2) for the first mistake. */
export function readPlanOptions(
  command: Pick<PlanCommand, 'whatIf' | 'from' | 'to' | 'finishBy' | 'maxShare'>,
  nowMs: EpochMs,
): PlanOptions {
  const isAll = command.from === ALL;
  const { from, to } = readSpan(isAll ? { ...command, from: null } : command, nowMs);
  const pace = readPace(command, nowMs);
  return { whatIf: readSuppositions(command.whatIf), from, to, isAll, pace };
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

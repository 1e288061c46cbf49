/**
 * Cron expressions in UTC, with the syntax of node-cron: computes the times of an expression.
 *
 * node-cron only parses and matches expressions here; its timers are not used. Time is an argument everywhere in this
 * program, and a missed time (the machine slept, or the work took longer) must be caught up and not skipped.
 */
import { createTask, parse, validateDetailed } from 'node-cron';
import type { Schedule } from '../core/ports.ts';
import { plainText } from '../core/text.ts';
import { DAY_MS, type EpochMs, firstAfter, HOUR_MS, MINUTE_MS, SECOND_MS } from '../core/time.ts';

/** How far ahead to search: beyond a leap day that is eight years away. */
const LOOKAHEAD_DAYS = 9 * 366;

interface CronMistake {
  readonly mistake: string;
}

/** The fields from the last to the first, with the number of values of each. */
const FIELDS: readonly (readonly [name: string, values: number])[] = [
  ['weekday', 7],
  ['month', 12],
  ['day', 31],
  ['hour', 24],
  ['minute', 60],
  ['second', 60],
];

/**
 * Finds a step that is as large as its field, such as 70 minutes. node-cron accepts it but then matches only the first
 * value of the field.
 *
 * @returns the mistake, in words; `null` if every step fits
 */
export function cronStepMistake(text: string): string | null {
  const fields = text.trim().split(/\s+/).toReversed();
  for (const [index, field] of fields.entries()) {
    const [name, values] = FIELDS[index] ?? ['', 0];
    const steps = [...field.matchAll(/\/0*(\d+)/g)].map(([, step = '']) => step);
    const tooLarge = steps.find((step) => Number(step) >= values);
    if (tooLarge !== undefined) {
      return `the step ${plainText(tooLarge, 12)} of the ${name} is too large: expected 1 to ${values - 1}`;
    }
  }
  return null;
}

/** Reads an expression of five fields, or of six fields with the seconds first. Names such as `@hourly` are allowed. */
export function readCron(text: string): Schedule | CronMistake {
  const { valid, errors } = validateDetailed(text);
  if (!valid) return { mistake: mistakeIn(text, errors[0]?.field ?? '') };
  const schedule = parseSchedule(text);
  return schedule.next(0) === null ? { mistake: NO_TIME } : schedule;
}

/** For example 30 February: every field is valid, but no day matches. */
const NO_TIME = 'the expression matches no time';

/** The mistake in words. node-cron's own messages repeat the value. */
function mistakeIn(text: string, field: string): string {
  const place = { dayOfMonth: 'day', dayOfWeek: 'weekday' }[field] ?? field;
  const range = RANGES.get(place);
  if (range === undefined) return 'expected a cron expression: minute hour day month weekday, such as */5 * * * *';
  // node-cron rejects a day that the month never has.
  const days = text.trim().split(/\s+/).at(-3) ?? '';
  const isImpossible = place === 'day' && validateDetailed(`0 0 ${days} * *`).valid;
  return isImpossible ? NO_TIME : `the ${place} of the cron expression is not valid: expected ${range}`;
}

const RANGES: ReadonlyMap<string, string> = new Map([
  ['second', '0 to 59'],
  ['minute', '0 to 59'],
  ['hour', '0 to 23'],
  ['day', '1 to 31'],
  ['month', '1 to 12, or a name such as jan'],
  ['weekday', '0 to 7, or a name such as mon'],
]);

function parseSchedule(text: string): Schedule {
  const matcher = createTask(text, () => {}, { timezone: 'UTC' });
  const { hour, minute, second, dayOfMonth, month, dayOfWeek } = parse(text);
  const times = timesOfDay({ hour, minute, second });
  // Most schedules match every day. Matching each day of a year would take longer than the rest of a start.
  const isDaily = dayOfMonth.length === 31 && month.length === 12 && dayOfWeek.length === 7;
  /** Whether the expression matches the day that begins at `dayMs`. */
  const isDay = (dayMs: EpochMs): boolean =>
    times[0] !== undefined && (isDaily || matcher.match(new Date(dayMs + times[0])));
  const search = (afterMs: EpochMs): EpochMs | null => {
    const today = Math.floor(afterMs / DAY_MS) * DAY_MS;
    for (let day = 0; day <= LOOKAHEAD_DAYS; day += 1) {
      const dayMs = today + day * DAY_MS;
      const atMs = times[day === 0 ? firstAfter(times, afterMs - dayMs) : 0];
      if (atMs !== undefined && isDay(dayMs)) return dayMs + atMs;
    }
    return null;
  };
  // Cached, because the planner reads it with every decision, and a schedule that is due once a month takes a search of
  // 31 days.
  let last: { readonly afterMs: EpochMs; readonly nextMs: EpochMs } | null = null;
  return {
    text,
    next: (afterMs) => {
      if (last !== null && last.afterMs <= afterMs && afterMs < last.nextMs) return last.nextMs;
      const nextMs = search(afterMs);
      if (nextMs !== null) last = { afterMs, nextMs };
      return nextMs;
    },
  };
}

/** The times of a day that the fields match, in ascending milliseconds since its beginning. */
function timesOfDay(fields: {
  readonly hour: readonly number[];
  readonly minute: readonly number[];
  readonly second: readonly number[];
}): number[] {
  const times = fields.hour.flatMap((hour) =>
    fields.minute.flatMap((minute) =>
      fields.second.map((second) => hour * HOUR_MS + minute * MINUTE_MS + second * SECOND_MS),
    ),
  );
  return times.sort((a, b) => a - b);
}

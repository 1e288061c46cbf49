/**
 * Measures again what the host has disturbed. A virtual machine may have to leave a part of its cores to others (steal:
 * `man 5 proc_stat`), and that falls on some of the runs that are compared and not on the others.
 */
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { MINUTE_MS } from '../../src/core/time.ts';

/** The most that the host may take of the processor time that was wanted. */
const MOST_STOLEN = 0.02;

/** After this many disturbed runs the next one counts, whatever the host does. */
const TRIES = 10;

/** A disturbance usually lasts minutes. */
const REST_MS = MINUTE_MS;

/** Processor time of all cores since they started, in ticks. */
export interface CpuTicks {
  /** Spent on work of this machine. */
  readonly busy: number;
  /** Wanted by this machine, and given to others. */
  readonly stolen: number;
}

const STAT = '/proc/stat';

/** Where the system has no such counters, nothing is known to be stolen. */
function readTicks(): CpuTicks {
  const stat = existsSync(STAT) ? readFileSync(STAT, 'utf8') : '';
  return ticksOf(stat);
}

/** @param stat the text of `/proc/stat` */
export function ticksOf(stat: string): CpuTicks {
  const [user = 0, nice = 0, system = 0, , , interrupts = 0, softInterrupts = 0, stolen = 0] =
    /^cpu +(.*)$/m.exec(stat)?.[1]?.split(' ').map(Number) ?? [];
  return { busy: user + nice + system + interrupts + softInterrupts, stolen };
}

/** How each measurement of a comparison is run: `undisturbed`, or `plainly` in a test. */
export type Guard = <T>(what: string, measure: () => Promise<T>) => Promise<T>;

export const plainly: Guard = async (_what, measure) => await measure();

interface UndisturbedParts {
  readonly say: (text: string) => void;
  readonly ticks?: () => CpuTicks;
  readonly rest?: () => Promise<unknown>;
}

/**
 * Measures until the host has taken at most 2 % of the processor time.
 *
 * @param what for the line that says how much it took otherwise
 * @returns the last measurement: after ten disturbed ones the eleventh counts in any case, and a line says so
 */
export async function undisturbed<T>(
  what: string,
  measure: () => Promise<T>,
  { say, ticks = readTicks, rest = async () => await setTimeout(REST_MS) }: UndisturbedParts,
): Promise<T> {
  for (let left = TRIES; ; left -= 1) {
    const before = ticks();
    const measured = await measure();
    const after = ticks();
    const stolen = after.stolen - before.stolen;
    const share = stolen === 0 ? 0 : stolen / (stolen + after.busy - before.busy);
    if (share <= MOST_STOLEN) return measured;
    const percent = `${what}: the host took ${Math.round(share * 100)} % of the processor time`;
    if (left === 0) {
      say(`${percent}; it counts all the same`);
      return measured;
    }
    say(`${percent}; measured again`);
    await rest();
  }
}

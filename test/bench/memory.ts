/**
 * The private memory of idle daemons, with a small and with a large fleet at once, each in a container with the memory
 * that it has to do with, where podman enforces that. Elsewhere the most that was seen counts.
 */
import { dirname, join } from 'node:path';
import { HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { type BoundedPlace, openBounded, whyNotEnforced } from '../image/bounded.ts';
import { type Idle, type IdleOptions, idle, memoryFigures } from './idle.ts';
import { type Measured, median } from './table.ts';

/** A fleet, the most private memory of an idle daemon beside it, and what a container has to give it. */
export const SMALL_FLEET = { devices: 30, privateMb: 42, limitMib: 96 };
const FLEETS = [SMALL_FLEET, { devices: 2000, privateMb: 70, limitMib: 128 }];

const ROOT = join(import.meta.dirname, '..', '..');
const MIB = 2 ** 20;
/** In the line of a run: the most of each tenth of the time, which grows where something leaks. */
const TENTHS = 10;

/**
 * @throws Error where a daemon ends, as it does beyond the memory of its container; the other one is measured to its
 * end before.
 */
export async function measureMemory(
  program: string,
  measuredMs: number,
  say: (text: string) => void,
): Promise<Measured[]> {
  const why = await whyNotEnforced();
  say(why === null ? 'podman enforces --memory here' : `podman does not enforce --memory here: ${why}`);
  using place = why === null ? openBounded() : null;
  const runs = await Promise.allSettled(
    FLEETS.map(async ({ devices, privateMb, limitMib }) => {
      const within = place === null ? {} : contained(place, { program, limitMib, measuredMs });
      const one = await idle({ program, devices, awaitsSync: true, warmMs: MINUTE_MS, measuredMs, ...within });
      say(`idle, ${devices} devices: ${describe(one)}`);
      const name = `idle, ${devices} devices`;
      return [...memoryFigures(name, one, privateMb), mostOfAll(name, one, limitMib)];
    }),
  );
  return runs.flatMap((run) => {
    if (run.status === 'rejected') throw run.reason;
    return run.value;
  });
}

function contained(
  place: BoundedPlace,
  { program, limitMib, measuredMs }: { program: string; limitMib: number; measuredMs: number },
): Pick<IdleOptions, 'contain'> {
  return {
    contain: (command, dataDir) => {
      // The program finds its libraries beside it.
      const readable = [...new Set([ROOT, dirname(dirname(program))])];
      const bounds = { memoryMib: limitMib, readable, writable: [dataDir], withinMs: measuredMs + HOUR_MS };
      return place.command(command, bounds);
    },
  };
}

function describe({ privateLooks, firstPrivateBytes, rssBytes, cpuSPerHour }: Idle): string {
  const tenth = Math.ceil(privateLooks.length / TENTHS);
  const most = Array.from({ length: Math.ceil(privateLooks.length / tenth) }, (_, at) =>
    mb(Math.max(...privateLooks.slice(at * tenth, (at + 1) * tenth))),
  );
  return (
    `${mb(Math.max(...privateLooks))} MB private at most, ${mb(median(privateLooks))} MB in the middle ` +
    `(${privateLooks.length} looks, the most of each tenth: ${most.join(', ')}), ${mb(firstPrivateBytes)} MB in the ` +
    `first sync, RSS ${mb(rssBytes)} MB, ${cpuSPerHour.toFixed(1)} s of processor time an hour`
  );
}

/** With the first sync, which a container has to hold as well. */
function mostOfAll(name: string, { privateBytes, firstPrivateBytes }: Idle, limitMib: number): Measured {
  return {
    figure: `${name}: the same with the first sync`,
    unit: 'MiB',
    wanted: limitMib,
    better: 'less',
    values: [Math.max(privateBytes, firstPrivateBytes) / MIB],
  };
}

const mb = (bytes: number): string => (bytes / 1e6).toFixed(1);

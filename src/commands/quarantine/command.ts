/**
 * `--quarantine` put together: the list over a connection of its own; retry and drop alone under the lock, or by the
 * daemon that holds it.
 */

import { realClock } from '../../app/real-clock.ts';
import { createSecretReader } from '../../app/secrets.ts';
import { settingsOf } from '../../app/settings.ts';
import type { ProcessPorts, Voice } from '../../app/terminal.ts';
import type { QuarantineCommand } from '../../cli/command.ts';
import type { StateConfig } from '../../config/config.ts';
import { UserError } from '../../core/faults.ts';
import { isNarrow, type QuarantineFilter } from '../../core/quarantine.ts';
import { filterArgs } from '../../core/state/job-args.ts';
import type { KnownDestination } from '../../core/state/quarantine.ts';
import { grouped, nearest } from '../../core/text.ts';
import type { DestinationOptions } from '../../delivery/destination.ts';
import { reachableOf } from '../../delivery/known-destinations.ts';
import { requireState } from '../../store/open/read-only.ts';
import { readQuarantine } from '../../store/quarantine-reader.ts';
import { doOrFollow } from '../shared/do-or-follow.ts';
import { readSpan } from '../shared/range.ts';
import { quarantineParts, type UpkeepRun, withState } from '../shared/upkeep.ts';
import { quarantineListText, quarantineSummaryText } from '../shared/upkeep-text.ts';
import { dropAdvice, listQuarantine } from './list.ts';
import { dropQuarantine, type QuarantineSummary, retryQuarantine } from './quarantine.ts';

/** Runs it and prints what it comes to. @returns the exit code. @throws UserError with the exit code and what to do. */
export async function runQuarantineCommand(
  { command, config, voice, secrets }: UpkeepRun<QuarantineCommand>,
  ports: ProcessPorts,
): Promise<number> {
  const print = (value: unknown, text: string): void =>
    ports.print(voice.scrub(command.json ? `${JSON.stringify(value)}\n` : text));
  const span = readSpan(command, realClock.nowMs());
  const filter = { destination: command.destination, devices: command.devices, reason: command.reason, ...span };
  requireState(config.dataDir);
  const destinations = settingsOf(config, createSecretReader({ readFile: ports.readFile, secrets })).destinations;
  const list = readQuarantine(config.dataDir, (quarantine) => {
    requireDestination(filter, { known: quarantine.destinations(), destinations });
    return listQuarantine(quarantine, filter, (known) => new Set(reachableOf(known, destinations).map(({ id }) => id)));
  });
  if (command.action === 'list') {
    print(list, quarantineListText(list));
    return 0;
  }
  if (command.action === 'drop' && !isNarrow(filter)) throw new UserError(dropAdvice(list), 2);
  const total = list.points + list.records;
  const summary = await act({ action: command.action, filter, config, voice, destinations, total }, ports);
  print(summary, quarantineSummaryText(summary));
  return summary.exit_code;
}

/** @throws UserError (exit 2) for a name that neither the configuration nor the state knows. */
function requireDestination(
  { destination }: QuarantineFilter,
  { known, destinations }: { known: readonly KnownDestination[]; destinations: readonly DestinationOptions[] },
): void {
  if (destination === null) return;
  const names = [...new Set([...destinations.map(({ sink }) => sink.name), ...known.map(({ name }) => name)])];
  if (names.includes(destination)) return;
  const meant = nearest(destination, names);
  const advice = names.length === 0 ? 'There is none.' : `There is ${names.join(', ')}.`;
  throw new UserError(
    `--destination: there is no destination of that name. ${meant === null ? advice : `Did you mean ${meant}?`}`,
    2,
  );
}

interface Act {
  readonly action: 'retry' | 'drop';
  readonly filter: QuarantineFilter;
  readonly config: StateConfig;
  readonly voice: Voice;
  readonly destinations: readonly DestinationOptions[];
  /** How many points and records are meant. */
  readonly total: number;
}

async function act(
  { action, filter, config, voice, destinations, total }: Act,
  ports: ProcessPorts,
): Promise<QuarantineSummary> {
  const show = (progress: unknown): void => {
    const { done } = { ...(progress as { readonly done?: unknown } | null) };
    if (typeof done !== 'number') return;
    voice.showWork(() => ({
      share: total === 0 ? null : Math.min(done / total, 0.999),
      words: `${grouped(done)} of ${grouped(total)} looked at`,
    }));
  };
  const alone = async (): Promise<QuarantineSummary> =>
    await withState({ config, voice }, async ({ context }) => {
      const work = action === 'retry' ? retryQuarantine : dropQuarantine;
      return await work(quarantineParts(context, destinations), { filter, tell: show }, ports.signal);
    }).finally(voice.endProgress);
  return await doOrFollow(
    {
      kind: `quarantine-${action}`,
      args: filterArgs(filter),
      askedBy: `--quarantine ${action}`,
      alone,
      read: (summary) => (isSummary(summary) ? summary : null),
      show,
    },
    { dataDir: config.dataDir, voice },
    ports,
  );
}

function isSummary(value: unknown): value is QuarantineSummary {
  if (typeof value !== 'object' || value === null) return false;
  const { destinations, records, exit_code } = value as Partial<Record<string, unknown>>;
  return (
    Array.isArray(destinations) && typeof records === 'object' && records !== null && typeof exit_code === 'number'
  );
}

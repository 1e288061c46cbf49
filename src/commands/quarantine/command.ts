/**
 * The command `--quarantine`: lists items over a separate connection; retries and drops them alone under the lock, or
 * through the daemon that holds it.
 */

import { realClock } from '../../app/real-clock.ts';
import { createSecretReader } from '../../app/secret-files.ts';
import { createSyncOptions, unknownDestination } from '../../app/settings.ts';
import { type ProcessPorts, reportOdd } from '../../app/terminal.ts';
import { withState } from '../../app/with-sync.ts';
import type { QuarantineCommand } from '../../cli/command.ts';
import { isRecord } from '../../core/json.ts';
import { isNarrow, type QuarantineFilter } from '../../core/quarantine.ts';
import { filterArgs } from '../../core/state/job-args.ts';
import type { KnownDestination } from '../../core/state/quarantine.ts';
import { counted, grouped, plainText, rateText } from '../../core/text.ts';
import { type DestinationOptions, findReachable } from '../../delivery/destination.ts';
import { requireState } from '../../store/open/read-only.ts';
import { readQuarantine } from '../../store/views/read-state.ts';
import { type CommandRun, chosenDevices, printAnswer } from '../shared/command.ts';
import { doOrFollow } from '../shared/do-or-follow.ts';
import { wrap } from '../shared/layout.ts';
import { readRange } from '../shared/options.ts';
import {
  type DestinationOutcome,
  dropQuarantine,
  type QuarantineSummary,
  quarantineParts,
  retryQuarantine,
} from './job.ts';
import { dropsAll, listQuarantine, quarantineListText } from './list.ts';

/**
 * Runs the command and prints the result.
 *
 * @returns the exit code.
 * @throws UserError with the exit code and the remedy.
 */
export async function runQuarantineCommand(run: CommandRun<QuarantineCommand>, ports: ProcessPorts): Promise<number> {
  const { command, config, secrets, terminal } = run;
  const { action, destination, reason } = command;
  const range = readRange(command, realClock.nowMs());
  requireState(config.dataDir);
  const filter = { destination, devices: chosenDevices(config.dataDir, command.devices, true), reason, ...range };
  const readSecret = createSecretReader({ readFile: ports.readFile, secrets, onUnusable: reportOdd(terminal) });
  const { destinations } = createSyncOptions(config, readSecret);
  const list = readQuarantine(config.dataDir, (quarantine) => {
    requireDestination(filter, { known: quarantine.destinations(), destinations });
    return listQuarantine(
      quarantine,
      filter,
      (known) => new Set(findReachable(known, destinations).map(({ id }) => id)),
    );
  });
  if (action === 'list') {
    printAnswer(run, ports, { object: list, text: () => quarantineListText(list) });
    return 0;
  }
  if (action === 'drop' && !isNarrow(filter)) throw dropsAll(list);
  const order: Order = { action, filter, destinations, total: list.points + list.records };
  const summary = await retryOrDrop(run, order, ports);
  printAnswer(run, ports, { object: summary, text: () => quarantineSummaryText(summary) });
  return summary.exit_code;
}

/**
 * Checks the name of a destination. @throws UserError (exit 2) for a name that is neither in the configuration nor in
 * the state.
 */
function requireDestination(
  { destination }: QuarantineFilter,
  { known, destinations }: { known: readonly KnownDestination[]; destinations: readonly DestinationOptions[] },
): void {
  if (destination === null) return;
  const names = [...new Set([...destinations.map(({ sink }) => sink.name), ...known.map(({ name }) => name)])];
  if (names.includes(destination)) return;
  throw unknownDestination(destination, names);
}

interface Order {
  readonly action: 'retry' | 'drop';
  readonly filter: QuarantineFilter;
  readonly destinations: readonly DestinationOptions[];
  /** How many points and records are selected. */
  readonly total: number;
}

async function retryOrDrop(
  run: CommandRun<QuarantineCommand>,
  { action, filter, destinations, total }: Order,
  ports: ProcessPorts,
): Promise<QuarantineSummary> {
  const { config, terminal } = run;
  const show = (progress: unknown): void => {
    const done = isRecord(progress) ? progress['done'] : null;
    if (typeof done !== 'number') return;
    terminal.showWork(() => ({
      share: total === 0 ? null : Math.min(done / total, 0.999),
      text: `${grouped(done)} of ${grouped(total)} done`,
      rate: { done, text: (perSecond) => `${rateText(perSecond)}/s` },
    }));
  };
  const work = action === 'retry' ? retryQuarantine : dropQuarantine;
  return await doOrFollow(
    {
      kind: `quarantine-${action}`,
      args: filterArgs(filter),
      requestedBy: `--quarantine ${action}`,
      alone: () =>
        withState(run, ({ context }) =>
          work(quarantineParts({ context, destinations }), { filter, report: show }, ports.signal),
        ).finally(terminal.endProgress),
      read: (summary) => (isSummary(summary) ? summary : null),
      show,
    },
    { dataDir: config.dataDir, terminal },
    ports,
  );
}

function isSummary(value: unknown): value is QuarantineSummary {
  if (!isRecord(value)) return false;
  const { destinations, records, exit_code } = value;
  return Array.isArray(destinations) && isRecord(records) && typeof exit_code === 'number';
}

/** The result of a retry or a drop. */
export function quarantineSummaryText(summary: QuarantineSummary): string {
  const { action, outcome, destinations, records } = summary;
  const lines = [...destinations.flatMap((each) => destinationLines(action, each)), ...recordLines(action, records)];
  if (lines.length === 0) lines.push('No entry in quarantine matches.');
  if (outcome === 'interrupted') lines.push('Interrupted. Run the command again for the rest.');
  return lines.map((line) => wrap(line, 0)).join('');
}

function destinationLines(
  action: QuarantineSummary['action'],
  { name, accepted, refused, beyond_retention, dropped, blocked_reason }: DestinationOutcome,
): string[] {
  if (action === 'drop') return [`${name}: ${counted(dropped, 'point')} dropped; --status lists them as missing`];
  const counts = [
    [accepted, 'accepted'],
    [refused, 'rejected again, kept with the new reason'],
    [beyond_retention, "older than the database's retention"],
  ] as const;
  return [
    ...counts
      .filter(([count]) => count > 0)
      .map(([count, message]) => `${name}: ${counted(count, 'point')} ${message}`),
    ...(blocked_reason === null ? [] : [`${name}: not sent, still in quarantine: ${plainText(blocked_reason, 400)}`]),
  ];
}

function recordLines(
  action: QuarantineSummary['action'],
  { done, left, reasons }: QuarantineSummary['records'],
): string[] {
  const why = reasons.map((reason) => plainText(reason, 100)).join('; ');
  return [
    ...(done === 0
      ? []
      : [`${counted(done, 'record')} from the API ${action === 'drop' ? 'dropped' : 'accepted now'}`]),
    ...(left === 0 ? [] : [`${counted(left, 'record')} from the API still in quarantine: ${why}`]),
  ];
}

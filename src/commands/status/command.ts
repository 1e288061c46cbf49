/**
 * `--status`: reports the sync state from the state file alone, without API, database or lock: with a running daemon,
 * without one, or from a copy.
 */
import { setFlagsFromString } from 'node:v8';
import { realClock } from '../../app/real-clock.ts';
import type { ProcessPorts, TerminalOutput } from '../../app/terminal.ts';
import type { StatusCommand } from '../../cli/command.ts';
import { findDeviceIds } from '../../core/device-names.ts';
import { UserError } from '../../core/faults.ts';
import type { Clock } from '../../core/ports.ts';
import { deviceReport } from '../../report/device-report.ts';
import { reportNow } from '../../report/report.ts';
import { noState } from '../../store/open/read-only.ts';
import { openToRead } from '../../store/views/read-state.ts';
import { type CommandAnswer, printAnswer } from '../shared/command.ts';
import { WIDTH, widthOf } from '../shared/layout.ts';
import { partsOfState, type StatusConfig } from '../shared/state-report.ts';
import { deviceText } from './device.ts';
import { statusText } from './text.ts';

/**
 * Prints the status.
 *
 * @returns the exit code.
 * @throws UserError with the exit code and what to do.
 */
export function runStatusCommand(
  {
    command,
    config,
    terminal,
  }: {
    readonly command: StatusCommand;
    readonly config: StatusConfig;
    readonly terminal: Pick<TerminalOutput, 'scrub'>;
  },
  ports: Pick<ProcessPorts, 'print' | 'stdout'>,
): number {
  limitHeapGrowth();
  printAnswer({ command, terminal }, ports, readStatus(command, config, realClock, widthOf(ports.stdout)));
  return 0;
}

/**
 * Limits the growth of the heap, without the limits of long-running commands (`main.ts`): by default V8 would take tens
 * of megabytes for short-lived objects of one report.
 */
function limitHeapGrowth(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
}

/**
 * The output of `--status`, as an object and as text.
 *
 * @throws UserError
 */
export function readStatus(
  { device }: Pick<StatusCommand, 'device'>,
  config: StatusConfig,
  clock: Clock,
  width = WIDTH,
): CommandAnswer {
  using state = openToRead(config.dataDir);
  if (state === null) throw noState(config.dataDir);
  const parts = partsOfState(state, config, clock);
  if (device === null) {
    const report = reportNow(parts);
    return { object: report, text: () => statusText(report, width) };
  }
  const devices = state.store.devices();
  if (devices.length === 0) {
    throw new UserError('--device: no device is listed yet', 'Start the daemon or run --once first.', 2);
  }
  const [id] = findDeviceIds(
    devices.map(({ record: { deviceId }, name }) => ({ deviceId, name })),
    [device],
  );
  const chosen = devices.find(({ record }) => record.deviceId === id);
  const report = chosen === undefined ? null : deviceReport(parts, chosen);
  if (report === null) throw noState(config.dataDir);
  return { object: report, text: () => deviceText(report, width) };
}

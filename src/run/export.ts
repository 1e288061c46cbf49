/**
 * `--export` put together: what was asked for, the archive beside whoever works with it, standard output, and what is told
 * of it on standard error.
 */
import type { ExportCommand } from '../cli/command.ts';
import { type ExportCounts, type ExportEnd, runExport } from '../commands/export.ts';
import type { StateConfig } from '../config.ts';
import { END_OF_TIME, type WalkPiece, type WalkSpan } from '../core/archive-walk.ts';
import { createFormatter } from '../core/export-format.ts';
import { UserError } from '../core/faults.ts';
import { nearest, plainText } from '../core/text.ts';
import { formatExact } from '../core/time.ts';
import { realClock } from '../real-clock.ts';
import { type ArchiveView, openArchiveView } from '../store/archive-view.ts';
import type { ProcessPorts, Voice } from '../voice.ts';
import { readSpan } from './span.ts';

interface Speech {
  readonly voice: Voice;
  readonly ports: ProcessPorts;
}

/** Exports. @returns the exit code. @throws UserError with the exit code and what to do. */
export async function runExportCommand(
  { command, config, voice }: { readonly command: ExportCommand; readonly config: StateConfig; readonly voice: Voice },
  ports: ProcessPorts,
): Promise<number> {
  const asked = readSpan(command, realClock.nowMs());
  const view = openArchiveView(config.dataDir);
  if (view === null) throw noState(config.dataDir);
  try {
    requireKnown(view, command.devices);
    const span: WalkSpan = {
      from: asked.from ?? 0n,
      to: asked.to ?? END_OF_TIME,
      devices: command.devices,
      kinds: command.format === 'lp' ? 'all' : 'telemetry',
    };
    const parts = {
      walker: view,
      span,
      formatter: createFormatter(command.format),
      write: ports.stdout.write,
      clock: realClock,
      onStep: drawing(view, span, { voice, ports }),
    };
    const end = await runExport(parts, ports.signal).finally(voice.endProgress);
    tellEnd(end, { view, span }, voice);
    return end.outcome === 'interrupted' ? 3 : 0;
  } finally {
    view.close();
  }
}

/** What a command on what is held says where nothing is. */
export function noState(dataDir: string): UserError {
  return new UserError(
    `${dataDir}: there is no state here yet. Run the daemon or --once first, or set data_dir to where they keep theirs.`,
    1,
  );
}

/** @throws UserError (exit 2) where a device was asked for of which nothing is known. */
export function requireKnown(view: Pick<ArchiveView, 'strangers' | 'deviceIds'>, deviceIds: readonly string[]): void {
  const [stranger] = view.strangers(deviceIds);
  if (stranger === undefined) return;
  const meant = nearest(stranger, view.deviceIds());
  const advice =
    meant === null ? 'It takes the id of a device as the API lists it.' : `Did you mean ${plainText(meant, 60)}?`;
  throw new UserError(`--device: nothing is held of a device with that id. ${advice}`, 2);
}

/** How often the line on the terminal is renewed. */
const DRAW_EVERY_MS = 200;

/** Shows how far it is, where that does not get between the lines of a terminal that shows the export itself. */
function drawing(view: ArchiveView, span: WalkSpan, { voice, ports }: Speech) {
  const total = span.devices.length > 0 ? new Set(span.devices).size : view.deviceCount();
  const beganMs = realClock.monoMs();
  let drawnMs = Number.NEGATIVE_INFINITY;
  let before: string | null = null;
  let passed = 0;
  return ({ lines }: ExportCounts, { deviceId }: WalkPiece): void => {
    if (deviceId !== before) passed += before === null ? 0 : 1;
    before = deviceId;
    const nowMs = realClock.monoMs();
    if (ports.stdout.isTTY || nowMs - drawnMs < DRAW_EVERY_MS) return;
    drawnMs = nowMs;
    const rate = Math.round(lines / Math.max((nowMs - beganMs) / 1000, 0.001));
    voice.hint(
      `${figure(lines)} lines written, ${figure(passed)} of ${figure(total)} devices, ${figure(rate)} lines/s`,
    );
  };
}

const TOLD = { event: 'export-told' } as const;

function tellEnd(
  { outcome, lines, devices }: ExportEnd,
  { view, span }: { readonly view: ArchiveView; readonly span: WalkSpan },
  { logger }: Voice,
): void {
  if (outcome === 'unread') return;
  if (outcome === 'interrupted') {
    logger.warn(`stopped before the end: what was written (${figure(lines)} lines) is not all`, TOLD);
    return;
  }
  const stretch = `from ${formatExact(span.from)}${span.to === END_OF_TIME ? '' : ` to ${formatExact(span.to)}`}`;
  if (lines === 0) logger.warn(`the archive holds nothing of what was asked for (${stretch})`, TOLD);
  else logger.info(`exported ${figure(lines)} lines of ${figure(devices)} devices`, TOLD);
  const cleared = view.cleared(span);
  if (cleared === null) return;
  logger.warn(
    `not in the archive any more: up to ${figure(cleared.points)} points of ${figure(cleared.devices)} devices, between ${formatExact(cleared.from)} and ${formatExact(cleared.to)} (archive.keep, archive.max_size). A database that received them has them still.`,
    TOLD,
  );
}

const figure = (value: number): string => value.toLocaleString('en-GB');

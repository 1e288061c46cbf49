/**
 * `--export` put together: what was asked for, the archive beside whoever works with it, standard output, and what is told
 * of it on standard error.
 */

import { realClock } from '../../app/real-clock.ts';
import type { ProcessPorts, Voice } from '../../app/terminal.ts';
import type { ExportCommand } from '../../cli/command.ts';
import type { StateConfig } from '../../config/config.ts';
import { UserError } from '../../core/faults.ts';
import { END_OF_TIME, type WalkPiece, type WalkSpan } from '../../core/state/archive.ts';
import { grouped, nearest, plainText } from '../../core/text.ts';
import { type EpochNs, minNs, msToNs } from '../../core/time.ts';
import { type ArchiveView, openArchiveView } from '../../store/archive-view.ts';
import { readSpan } from '../shared/range.ts';
import { exportExit, exportSummary, tellExport } from './end.ts';
import { type ExportCounts, runExport } from './export.ts';
import { createFormatter } from './format.ts';

/** Exports. @returns the exit code. @throws UserError with the exit code and what to do. */
export async function runExportCommand(
  { command, config, voice }: { readonly command: ExportCommand; readonly config: StateConfig; readonly voice: Voice },
  ports: ProcessPorts,
): Promise<number> {
  const asked = readSpan(command, realClock.nowMs());
  const view = openArchiveView(config.dataDir);
  if (view === null) throw noState(config.dataDir);
  const { devices, format } = command;
  const beganMs = realClock.monoMs();
  let bytes = 0;
  try {
    requireKnown(view, devices);
    const span: WalkSpan = {
      from: asked.from ?? 0n,
      to: asked.to ?? END_OF_TIME,
      devices,
      kinds: format === 'lp' ? 'all' : 'telemetry',
    };
    const parts = {
      walker: view,
      span,
      formatter: createFormatter(format),
      write: async (text: string): Promise<boolean> => {
        const isTaken = await ports.stdout.write(text);
        if (isTaken) bytes += Buffer.byteLength(text);
        return isTaken;
      },
      clock: realClock,
      // Between the lines of a terminal that shows the export itself it would only be in the way.
      onStep: ports.stdout.isTTY ? () => {} : createShow(view, span, voice),
    };
    const end = await runExport(parts, ports.signal).finally(voice.endProgress);
    const seconds = Math.round(realClock.monoMs() - beganMs) / 1000;
    const done = { format, end, span, bytes, seconds, cleared: view.cleared(span) };
    if (command.json) ports.stderr.write(`${voice.scrub(JSON.stringify(exportSummary(done)))}\n`);
    else tellExport(done, voice.logger);
    return exportExit(end);
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

/** Shows how far it is: by devices, and within one by time. */
function createShow(view: ArchiveView, span: WalkSpan, { showWork }: Voice) {
  const total = Math.max(1, span.devices.length > 0 ? new Set(span.devices).size : view.deviceCount());
  const beganMs = realClock.monoMs();
  const until = minNs(span.to, msToNs(realClock.nowMs()));
  let device: string | null = null;
  let since: EpochNs | null = null;
  let passed = -1;
  return ({ lines }: ExportCounts, { deviceId, to, lines: [first] }: WalkPiece): void => {
    if (deviceId !== device) {
      [device, since] = [deviceId, null];
      passed += 1;
    }
    since ??= first === undefined ? null : BigInt(first.slice(first.lastIndexOf(' ') + 1));
    showWork(() => {
      const within = since === null ? 0 : Number(minNs(to, until) - since) / Math.max(1, Number(until - since));
      const rate = Math.round(lines / Math.max((realClock.monoMs() - beganMs) / 1000, 0.001));
      return {
        share: Math.min(0.999, (Math.max(0, passed) + Math.min(1, Math.max(0, within))) / total),
        words: `${grouped(lines)} lines, ${grouped(Math.max(0, passed))}/${grouped(total)} devices, ${grouped(rate)}/s`,
      };
    });
  };
}

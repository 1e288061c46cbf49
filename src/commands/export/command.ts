/**
 * `--export`: reads the archive, while another process may use it, and writes the points to standard output. The result
 * goes to standard error, as text or, with `--json`, as one object in one line.
 *
 * Promises: every line that is in the archive during the whole export is written once, each part in the order of time
 * (`core/state/archive.ts`), whatever the daemon does at the same time. Memory does not depend on the size of the
 * export.
 */

import { realClock } from '../../app/real-clock.ts';
import type { ProcessPorts, TerminalOutput } from '../../app/terminal.ts';
import type { ExportCommand, ExportFormat } from '../../cli/command.ts';
import { beginTimeSlice, waitOrAbort } from '../../core/async.ts';
import type { ExitCode } from '../../core/faults.ts';
import { isTelemetryLine } from '../../core/lines/line-reader.ts';
import type { Clock } from '../../core/ports.ts';
import { scrubbedJson } from '../../core/secret.ts';
import type { ArchiveReader } from '../../core/state/archive.ts';
import { END_OF_TIME, type ReadPiece, type ReadRange } from '../../core/state/archive.ts';
import { counted, grouped } from '../../core/text.ts';
import { type EpochNs, formatExact, minNs, msToNs } from '../../core/time.ts';
import type { Logger } from '../../observe/log.ts';
import { type ArchiveView, type ClearedPoints, openArchiveView } from '../../store/archive/reader.ts';
import { noState } from '../../store/open/read-only.ts';
import { type CommandRun, chosenDevices } from '../shared/command.ts';
import { readRange } from '../shared/options.ts';
import { createFormatter, type ExportFormatter } from './format.ts';

/**
 * Runs the export.
 *
 * @returns the exit code.
 * @throws UserError with the exit code and the remedy.
 */
export async function runExportCommand(
  { command, config, terminal }: CommandRun<ExportCommand>,
  ports: ProcessPorts,
): Promise<number> {
  const given = readRange(command, realClock.nowMs());
  const view = openArchiveView(config.dataDir);
  if (view === null) throw noState(config.dataDir);
  const { format } = command;
  const beganMs = realClock.monoMs();
  let bytes = 0;
  try {
    const devices = chosenDevices(config.dataDir, command.devices, true);
    const range: ReadRange = {
      from: given.from ?? 0n,
      to: given.to ?? END_OF_TIME,
      devices,
      kinds: format === 'lp' ? 'all' : 'telemetry',
    };
    const parts = {
      archiveReader: view,
      range,
      formatter: createFormatter(format),
      write: async (text: string): Promise<boolean> => {
        const isTaken = await ports.stdout.write(text);
        if (isTaken) bytes += Buffer.byteLength(text);
        return isTaken;
      },
      clock: realClock,
      // On a terminal that shows the export itself, progress lines would be in the way.
      onStep: ports.stdout.isTTY ? () => {} : createShow(view, range, terminal),
    };
    const end = await runExport(parts, ports.signal).finally(terminal.endProgress);
    const seconds = Math.round(realClock.monoMs() - beganMs) / 1000;
    const done = { format, end, range, bytes, seconds, cleared: view.cleared(range) };
    if (command.json) ports.stderr.write(`${scrubbedJson(exportSummary(done), terminal.scrub)}\n`);
    else reportExport(done, terminal.logger);
    return exportExit(end);
  } finally {
    view.close();
  }
}

/** Shows the progress: by devices, and within a device by time. */
function createShow(view: ArchiveView, range: ReadRange, { showWork }: TerminalOutput) {
  const total = Math.max(1, range.devices.length > 0 ? new Set(range.devices).size : view.deviceCount());
  const beganMs = realClock.monoMs();
  const until = minNs(range.to, msToNs(realClock.nowMs()));
  let device: string | null = null;
  let since: EpochNs | null = null;
  let passed = -1;
  return ({ lines }: ExportCounts, { deviceId, to, lines: [first] }: ReadPiece): void => {
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
        text: `${grouped(lines)} lines, ${grouped(Math.max(0, passed))}/${grouped(total)} devices, ${grouped(rate)}/s`,
      };
    });
  };
}

/** How an export ended, and what it has written. */
interface ExportDone {
  readonly format: ExportFormat;
  readonly end: ExportEnd;
  readonly range: ReadRange;
  /** The size of the text that was written. */
  readonly bytes: number;
  readonly seconds: number;
  /** The points of the range that were cleared from the archive; `null` for none. */
  readonly cleared: ClearedPoints | null;
}

/** The exit code. A reader that closes the pipe is no failure. */
function exportExit({ outcome }: ExportEnd): ExitCode {
  return outcome === 'interrupted' ? 3 : 0;
}

/** The summary for `--export --json`. */
function exportSummary({ format, end, range, bytes, seconds, cleared }: ExportDone): object {
  const { outcome, lines, readings, devices } = end;
  return {
    outcome,
    exit_code: exportExit(end),
    complete: outcome === 'complete',
    format,
    readings,
    points: lines,
    devices,
    from: range.from === 0n ? null : formatExact(range.from),
    to: range.to === END_OF_TIME ? null : formatExact(range.to),
    bytes,
    seconds,
    not_in_archive:
      cleared === null ? null : { ...cleared, from: formatExact(cleared.from), to: formatExact(cleared.to) },
  };
}

/** Prints the result as a sentence. */
function reportExport({ end: { outcome, lines, devices }, range, cleared }: ExportDone, { write }: Logger): void {
  if (outcome === 'unread') return;
  const report = (isWell: boolean, message: string): void => write({ type: 'export-report', message, isWell });
  if (outcome === 'interrupted') {
    report(false, `Export stopped before its end: the output (${grouped(lines)} lines) is incomplete`);
    return;
  }
  const rangeText = `from ${formatExact(range.from)}${range.to === END_OF_TIME ? '' : ` to ${formatExact(range.to)}`}`;
  if (lines === 0) report(false, `The archive has no points of these devices in this range (${rangeText})`);
  else report(true, `Exported ${counted(lines, 'line')} of ${counted(devices, 'device')}`);
  if (cleared === null) return;
  report(
    false,
    `No longer in the archive: up to ${counted(cleared.points, 'point')} of ${counted(cleared.devices, 'device')}, between ${formatExact(cleared.from)} and ${formatExact(cleared.to)} (archive.retention, archive.max_size). The databases received them and keep them as long as their retention`,
  );
}

interface ExportParts {
  readonly archiveReader: ArchiveReader;
  readonly range: ReadRange;
  readonly formatter: ExportFormatter;
  /**
   * Writes a piece of the text.
   *
   * @returns whether the reader is still there.
   */
  readonly write: (text: string) => Promise<boolean>;
  readonly clock: Clock;
  /** Called after each step, with the counts so far. */
  readonly onStep: (counts: ExportCounts, piece: ReadPiece) => void;
}

/** The counts of what was written. */
interface ExportCounts {
  /** The number of points: every line is one. */
  readonly lines: number;
  /** Readings: instants of a device with at least one line. */
  readonly readings: number;
  /** Devices that have lines. */
  readonly devices: number;
}

interface ExportEnd extends ExportCounts {
  /** `unread`: the reader has closed the pipe. */
  readonly outcome: 'complete' | 'unread' | 'interrupted';
}

/** About how many characters are read from the archive in one step, and written at once. */
const STEP_BYTES = 256 * 1024;
const WRITE_LENGTH = 64 * 1024;

/** How long it continues without giving other work (signals, timers) a turn. */
const SLICE = { workMs: 50, pauseMs: 0 };

/** Writes everything. An abort is an outcome, not an error. */
export async function runExport(parts: ExportParts, signal: AbortSignal): Promise<ExportEnd> {
  const { archiveReader, range, formatter, clock, onStep } = parts;
  const counts = { lines: 0, readings: 0, devices: 0 };
  // An incomplete batch that was not written is not counted.
  let taken: ExportCounts = { ...counts };
  const readingsOf = createReadingCount();
  const output = createOutput(parts, signal);
  const slice = beginTimeSlice(clock, SLICE);
  let lastDevice: string | null = null;
  output.add(formatter.header);
  for (let position = archiveReader.begin(range); position !== null; ) {
    const piece = archiveReader.read(range, position, STEP_BYTES);
    counts.lines += piece.lines.length;
    counts.readings += readingsOf(piece);
    if (piece.lines.length > 0 && piece.deviceId !== lastDevice) {
      lastDevice = piece.deviceId;
      counts.devices += 1;
    }
    output.add(formatter.text(piece.lines));
    onStep(counts, piece);
    if (output.isFull()) {
      const ended = await output.flush();
      if (ended !== null) return { ...taken, outcome: ended };
      taken = { ...counts };
    }
    // Writing to a file finishes at once and gives no other work a turn, so Ctrl-C would have no effect.
    if (slice.isOver()) await slice.pause();
    if (signal.aborted) return { ...taken, outcome: 'interrupted' };
    position = piece.next;
  }
  const ended = await output.flush();
  return ended === null ? { ...counts, outcome: 'complete' } : { ...taken, outcome: ended };
}

/** Counts readings. Lines come in the order of time, so a reading begins when the instant changes. */
function createReadingCount(): (piece: ReadPiece) => number {
  let [device, stamp]: [string | null, string] = [null, ''];
  return ({ deviceId, lines }) => {
    if (deviceId !== device) [device, stamp] = [deviceId, ''];
    let readings = 0;
    for (const line of lines) {
      if (line.endsWith(stamp) && stamp !== '') continue;
      if (!isTelemetryLine(line)) continue;
      stamp = line.slice(line.lastIndexOf(' '));
      readings += 1;
    }
    // A copy, because a slice of a text keeps the whole text in memory.
    stamp = structuredClone(stamp);
    return readings;
  };
}

/** Collects small pieces, so that many devices with few lines do not cause one write each. */
function createOutput({ write }: Pick<ExportParts, 'write'>, signal: AbortSignal) {
  let waiting = '';
  return {
    add: (text: string): void => {
      waiting += text;
    },
    isFull: () => waiting.length >= WRITE_LENGTH,
    /** Writes the collected pieces. Returns how the export ends because of it; `null` if it continues. */
    flush: async (): Promise<'unread' | 'interrupted' | null> => {
      if (waiting === '') return signal.aborted ? 'interrupted' : null;
      // After an interruption, a reader that does not read is not waited for.
      const ended = await waitOrAbort(write(waiting), signal).catch((error: unknown) => {
        if (!signal.aborted) throw error;
        return 'interrupted' as const;
      });
      waiting = '';
      if (ended === 'interrupted') return ended;
      return ended ? null : 'unread';
    },
  };
}

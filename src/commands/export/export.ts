/**
 * Streams the archive for `--export`, piece by piece, as fast as it is read.
 *
 * Promises: every line that is in the archive from beginning to end of the export is written once, each part in the
 * order of time (`core/state/archive.ts`), whatever the daemon does meanwhile. Memory does not depend on the size of
 * the export.
 */

import { orAborted } from '../../core/async.ts';
import type { Clock } from '../../core/ports.ts';
import type { ArchiveReader, ReadPiece, ReadRange } from '../../core/state/archive.ts';
import type { ExportFormatter } from './format.ts';

interface ExportParts {
  readonly archiveReader: ArchiveReader;
  readonly range: ReadRange;
  readonly formatter: ExportFormatter;
  /**
   * Takes a piece of the text.
   *
   * @returns whether anybody reads on.
   */
  readonly write: (text: string) => Promise<boolean>;
  readonly clock: Clock;
  /** Called after every step. */
  readonly onStep: (counts: ExportCounts, piece: ReadPiece) => void;
}

/** What has been written. */
export interface ExportCounts {
  /** Points: every line is one. */
  readonly lines: number;
  /** Instants of devices that had any. */
  readonly readings: number;
  /** Devices with lines of their own among them. */
  readonly devices: number;
}

export interface ExportEnd extends ExportCounts {
  /** `unread`: the reader has gone away. */
  readonly outcome: 'complete' | 'unread' | 'interrupted';
}

/** About how much is read from the archive in one step, and written at once, in characters. */
const STEP_BYTES = 256 * 1024;
const WRITE_LENGTH = 64 * 1024;

/** How long it goes on without giving others (signals, timers) their turn. */
const TURN_MS = 50;

/** Writes it all. An abort is an outcome, no error. */
export async function runExport(parts: ExportParts, signal: AbortSignal): Promise<ExportEnd> {
  const { archiveReader, range, formatter, clock, onStep } = parts;
  const counts = { lines: 0, readings: 0, devices: 0 };
  // Of what is not complete nothing is counted that nobody has taken.
  let taken: ExportCounts = { ...counts };
  const readingsOf = createReadingCount();
  const output = createOutput(parts, signal);
  let turnMs = clock.monoMs();
  let lastDevice: string | null = null;
  output.add(formatter.header);
  for (let place = archiveReader.begin(range); place !== null; ) {
    const piece = archiveReader.read(range, place, STEP_BYTES);
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
    // Writing to a file is over at once, and gives nobody a turn: Ctrl-C would not be heard.
    if (clock.monoMs() - turnMs >= TURN_MS) {
      await clock.sleep(0);
      turnMs = clock.monoMs();
    }
    if (signal.aborted) return { ...taken, outcome: 'interrupted' };
    place = piece.next;
  }
  const ended = await output.flush();
  return ended === null ? { ...counts, outcome: 'complete' } : { ...taken, outcome: ended };
}

/** Lines come in the order of time: a reading begins where the instant is another one. */
function createReadingCount(): (piece: ReadPiece) => number {
  let [device, stamp]: [string | null, string] = [null, ''];
  return ({ deviceId, lines }) => {
    if (deviceId !== device) [device, stamp] = [deviceId, ''];
    let readings = 0;
    for (const line of lines) {
      if (line.endsWith(stamp) && stamp !== '') continue;
      if (!line.startsWith('telemetry,')) continue;
      stamp = line.slice(line.lastIndexOf(' '));
      readings += 1;
    }
    // A copy: a piece of a text keeps all of it in memory.
    stamp = structuredClone(stamp);
    return readings;
  };
}

/** Gathers small pieces, so that many devices with little each do not make a write each. */
function createOutput({ write }: Pick<ExportParts, 'write'>, signal: AbortSignal) {
  let waiting = '';
  return {
    add: (text: string): void => {
      waiting += text;
    },
    isFull: () => waiting.length >= WRITE_LENGTH,
    /** @returns how it ends with this; `null` where it goes on. */
    flush: async (): Promise<'unread' | 'interrupted' | null> => {
      if (waiting === '') return signal.aborted ? 'interrupted' : null;
      // After an interruption, a reader that does not read is not waited for.
      const ended = await orAborted(write(waiting), signal).catch((error: unknown) => {
        if (!signal.aborted) throw error;
        return 'interrupted' as const;
      });
      waiting = '';
      if (ended === 'interrupted') return ended;
      return ended ? null : 'unread';
    },
  };
}

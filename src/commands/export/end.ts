/**
 * What `--export` says at its end, on standard error as standard output carries the data: in words, or with `--json` as
 * one object in one line.
 */
import type { ExportFormat } from '../../cli/command.ts';
import type { ExitCode } from '../../core/faults.ts';
import { END_OF_TIME, type WalkSpan } from '../../core/state/archive.ts';
import { grouped } from '../../core/text.ts';
import { formatExact } from '../../core/time.ts';
import type { Logger } from '../../observe/log.ts';
import type { ClearedPoints } from '../../store/archive-view.ts';
import type { ExportEnd } from './export.ts';

/** How an export has ended, and what it was. */
export interface ExportDone {
  readonly format: ExportFormat;
  readonly end: ExportEnd;
  readonly span: WalkSpan;
  /** Of the text that was taken. */
  readonly bytes: number;
  readonly seconds: number;
  /** What of the stretch the archive keeps no more; `null` for nothing. */
  readonly cleared: ClearedPoints | null;
}

/** What the command ends with. A reader that closes the pipe is no failure. */
export function exportExit({ outcome }: ExportEnd): ExitCode {
  return outcome === 'interrupted' ? 3 : 0;
}

/** The object of `--json`. */
export function exportSummary({ format, end, span, bytes, seconds, cleared }: ExportDone): object {
  const { outcome, lines, readings, devices } = end;
  return {
    outcome,
    exit_code: exportExit(end),
    complete: outcome === 'complete',
    format,
    readings,
    points: lines,
    devices,
    from: span.from === 0n ? null : formatExact(span.from),
    to: span.to === END_OF_TIME ? null : formatExact(span.to),
    bytes,
    seconds,
    not_in_archive:
      cleared === null ? null : { ...cleared, from: formatExact(cleared.from), to: formatExact(cleared.to) },
  };
}

const TOLD = { event: 'export-told' } as const;

/** Says it in words. */
export function tellExport(
  { end: { outcome, lines, devices }, span, cleared }: ExportDone,
  logger: Pick<Logger, 'info' | 'warn'>,
): void {
  if (outcome === 'unread') return;
  if (outcome === 'interrupted') {
    logger.warn(`stopped before the end: what was written (${grouped(lines)} lines) is not all`, TOLD);
    return;
  }
  const stretch = `from ${formatExact(span.from)}${span.to === END_OF_TIME ? '' : ` to ${formatExact(span.to)}`}`;
  if (lines === 0) logger.warn(`the archive holds nothing of what was asked for (${stretch})`, TOLD);
  else logger.info(`exported ${grouped(lines)} lines of ${grouped(devices)} devices`, TOLD);
  if (cleared === null) return;
  logger.warn(
    `not in the archive any more: up to ${grouped(cleared.points)} points of ${grouped(cleared.devices)} devices, between ${formatExact(cleared.from)} and ${formatExact(cleared.to)} (archive.keep, archive.max_size). A database that received them has them still.`,
    TOLD,
  );
}

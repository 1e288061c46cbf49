/**
 * What of a device is no reading (hours that are held, its facts) in a stretch that a database lacked: it is sent again
 * with `--verify --repair` before the lack is taken back, as nothing compares it.
 */
import type { ArchiveWalker, WalkPlace } from '../../core/state/archive.ts';
import type { PointsText } from '../../core/state/job-args.ts';
import type { ReadTrouble } from '../../core/state/verify.ts';
import type { Resender } from './resend.ts';

const STEP_BYTES = 256 * 1024;

/** What came of it. */
export interface SentSides {
  /** The stretches of which nothing was refused: of the others nothing is claimed. */
  readonly found: readonly PointsText[];
  /** What was in the way; `null` for nothing. */
  readonly trouble: ReadTrouble | null;
}

/** Sends it again from the archive. An abort is an outcome, no error. */
export async function resendSides(
  parts: { readonly walker: ArchiveWalker; readonly resender: Resender },
  found: readonly PointsText[],
  signal: AbortSignal,
): Promise<SentSides> {
  const taken: PointsText[] = [];
  try {
    for (const stretch of found) {
      const before = parts.resender.refused().lines;
      const trouble = await resendOf(parts, stretch, signal);
      if (trouble !== null) return { found: taken, trouble };
      if (parts.resender.refused().lines === before) taken.push(stretch);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    return { found: taken, trouble: { kind: 'down', words: 'stopped before it was finished', hint: '' } };
  }
  return { found: taken, trouble: null };
}

async function resendOf(
  { walker, resender }: { readonly walker: ArchiveWalker; readonly resender: Resender },
  [deviceId, from, to]: PointsText,
  signal: AbortSignal,
): Promise<ReadTrouble | null> {
  const span = { from: BigInt(from), to: BigInt(to), devices: [deviceId], kinds: 'all' } as const;
  let place: WalkPlace | null = { deviceId, from: span.from };
  while (place !== null) {
    signal.throwIfAborted();
    const piece = walker.read(span, place, STEP_BYTES);
    const lines = piece.lines.filter((line) => !line.startsWith('telemetry,'));
    const trouble = lines.length === 0 ? null : await resender.send(lines, signal);
    if (trouble !== null) return trouble;
    place = piece.next;
  }
  return null;
}

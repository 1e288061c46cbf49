/**
 * What of a device is no reading (hours that are held, its facts) in a stretch that a database lacked: it is sent again
 * with `--verify --repair` before the lack is taken back, as nothing compares it.
 */
import type { ArchiveWalker, WalkPlace } from '../core/archive-walk.ts';
import type { PointsText } from '../core/mending.ts';
import type { ReadTrouble } from '../core/verify-ports.ts';
import type { Resender } from './verify-resend.ts';

const STEP_BYTES = 256 * 1024;

/** Sends it again from the archive. @returns what was in the way; `null` for nothing. */
export async function resendSides(
  { walker, resend }: { readonly walker: ArchiveWalker; readonly resend: Resender['send'] },
  found: readonly PointsText[],
  signal: AbortSignal,
): Promise<ReadTrouble | null> {
  for (const [deviceId, from, to] of found) {
    const span = { from: BigInt(from), to: BigInt(to), devices: [deviceId], kinds: 'all' } as const;
    let place: WalkPlace | null = { deviceId, from: span.from };
    while (place !== null) {
      signal.throwIfAborted();
      const piece = walker.read(span, place, STEP_BYTES);
      const lines = piece.lines.filter((line) => !line.startsWith('telemetry,'));
      const trouble = lines.length === 0 ? null : await resend(lines, signal);
      if (trouble !== null) return trouble;
      place = piece.next;
    }
  }
  return null;
}

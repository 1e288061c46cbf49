/**
 * The room for more, watched: asked before every page, looked at every few seconds, told once when pulling stops and
 * once when it goes on.
 */

import { judgeRoom, type NoRoom, type RoomAnswer, type RoomLimits, type StateFullError } from '../core/archive-room.ts';
import type { Observe } from '../core/events.ts';
import type { Clock, Disk } from '../core/ports.ts';
import type { ArchiveMaintenance } from '../core/state/archive.ts';
import { SECOND_MS } from '../core/time.ts';

/** How the room stands, for the status. */
interface RoomStatus {
  readonly usedBytes: number;
  readonly maxBytes: number | null;
  readonly diskFreeBytes: number | null;
  /** Why pulling has stopped; `null` while there is room. */
  readonly full: string | null;
}

export interface Room {
  /** Whether anything that would grow the archive may be asked for. Cheap. */
  answer(): RoomAnswer;
  /** Takes in that a write failed for lack of room: for a while there is none. */
  refused(error: StateFullError): void;
  status(): RoomStatus;
}

/** For how long a look counts. */
const LOOK_EVERY_MS = 2 * SECOND_MS;

interface RoomParts {
  readonly maintenance: Pick<ArchiveMaintenance, 'size'>;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly observe: Observe;
  readonly limits: RoomLimits;
}

/** Watches the room of a state. */
export function createRoom({ maintenance, disk, clock, observe, limits }: RoomParts): Room {
  let refusal: { atMs: number; message: string } | null = null;
  let none: NoRoom | null = null;
  let lookedAtMs = Number.NEGATIVE_INFINITY;
  let seen = { usedBytes: 0, diskFreeBytes: null as number | null };
  const look = (): void => {
    const nowMs = clock.monoMs();
    if (nowMs - lookedAtMs < LOOK_EVERY_MS) return;
    lookedAtMs = nowMs;
    const size = maintenance.size();
    const diskFreeBytes = disk.freeBytes();
    seen = { usedBytes: size.usedBytes, diskFreeBytes };
    const said = refusal === null ? null : { agoMs: nowMs - refusal.atMs, message: refusal.message };
    const before = none;
    none = judgeRoom(before, { ...size, directory: disk.directory, diskFreeBytes, refusal: said }, limits);
    if (none !== null && none.cause !== before?.cause) observe({ type: 'pulling-stopped', reason: none.reason });
    if (none === null && before !== null) observe({ type: 'pulling-resumed' });
  };
  return {
    answer: () => {
      look();
      return none === null ? { ok: true } : { ok: false, reason: none.reason };
    },
    refused: ({ message }) => {
      refusal = { atMs: clock.monoMs(), message };
      lookedAtMs = Number.NEGATIVE_INFINITY;
      look();
    },
    status: () => {
      look();
      return { ...seen, maxBytes: limits.maxBytes, full: none?.reason ?? null };
    },
  };
}

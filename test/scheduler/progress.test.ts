/** The watch over work that somebody waits for. */
import { describe, expect, test } from 'vitest';
import { ApiFault } from '../../src/core/faults.ts';
import { createProgressWatch, isWaiting } from '../../src/scheduler/progress.ts';
import { createStanding, noteFailed, noteWorked } from '../../src/scheduler/standing.ts';

function fault(kind: ApiFault['kind']): ApiFault {
  return new ApiFault(kind, 'no answer', { request: 'GET /devices' });
}

describe('work', () => {
  test('stands still for as long as no less is left of it than ever before, waits apart', () => {
    let nowMs = 0;
    const watch = createProgressWatch({ monoMs: () => nowMs });
    const idleAfter = (ms: number, left: number | bigint, waits = false): number => {
      nowMs += ms;
      return watch.idleMs({ left, waits });
    };
    expect(idleAfter(10, Number.POSITIVE_INFINITY)).toBe(10);
    expect(idleAfter(10, 100n)).toBe(0);
    expect(idleAfter(10, 100n)).toBe(10);
    expect(idleAfter(50, 120n, true), 'a wait').toBe(10);
    expect(idleAfter(10, 101n), 'less than before, but not than ever').toBe(20);
    expect(idleAfter(10, 99n)).toBe(0);
  });

  test('waits while it has something queued and nothing of it fails, or for quota', () => {
    const standing = createStanding();
    const room = { isOk: true, waitsForQuota: false };
    const parts = {
      context: { room: () => (room.isOk ? { ok: true } : { ok: false, reason: 'full' }) as never },
      standing,
      waitsForQuota: () => room.waitsForQuota,
    };
    const isQueued = { isQueued: true, lanes: ['backfill'] } as const;
    expect(isWaiting(parts, isQueued)).toBe(true);
    expect(isWaiting(parts, { ...isQueued, isQueued: false })).toBe(false);
    noteFailed(standing, { lane: 'backfill', fault: fault('throttled'), isService: true, atMs: 0 });
    expect(isWaiting(parts, isQueued), 'a wait that is asked for is no failure').toBe(true);
    noteFailed(standing, { lane: 'live', fault: fault('server-fault'), isService: false, atMs: 0 });
    expect(isWaiting(parts, isQueued), 'another lane').toBe(true);
    noteFailed(standing, { lane: 'backfill', fault: fault('server-fault'), isService: false, atMs: 0 });
    expect(isWaiting(parts, isQueued)).toBe(false);
    noteWorked(standing, 'backfill');
    noteFailed(standing, { lane: 'live', fault: fault('unreachable'), isService: true, atMs: 0 });
    expect(isWaiting(parts, isQueued), 'the service does not answer').toBe(false);
    room.waitsForQuota = true;
    expect(isWaiting(parts, isQueued)).toBe(true);
    room.waitsForQuota = false;
    noteWorked(standing, 'live');
    room.isOk = false;
    expect(isWaiting(parts, isQueued), 'no room').toBe(false);
  });
});

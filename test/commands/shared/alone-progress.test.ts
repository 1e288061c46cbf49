/** The watch over work that somebody waits for. */
import { describe, expect, test } from 'vitest';
import { createProgressWatch, isWaiting } from '../../../src/commands/shared/alone.ts';
import { ApiFault } from '../../../src/core/faults.ts';
import { createApiState, noteFailed, noteWorked } from '../../../src/scheduler/api-state.ts';

function fault(kind: ApiFault['kind']): ApiFault {
  return new ApiFault(kind, 'no answer', { request: 'GET /devices' });
}

describe('work', () => {
  test('is idle while no less is left than ever before, without waits', () => {
    let nowMs = 0;
    const watch = createProgressWatch({ monoMs: () => nowMs });
    const idleAfter = (ms: number, left: number | bigint, waits = false): number => {
      nowMs += ms;
      return watch.record({ left, waits });
    };
    expect(idleAfter(10, Number.POSITIVE_INFINITY)).toBe(10);
    expect(idleAfter(10, 100n)).toBe(0);
    expect(idleAfter(10, 100n)).toBe(10);
    expect(idleAfter(50, 120n, true), 'a wait').toBe(10);
    expect(idleAfter(10, 101n), 'less than before, but not than ever').toBe(20);
    expect(idleAfter(10, 99n)).toBe(0);
  });

  test('waits while it has requests queued and none of its lanes fails, or for quota', () => {
    const apiState = createApiState({ observe: () => {}, serverNowMs: () => 0, monoMs: () => 0 });
    const space = { isOk: true, waitsForQuota: false, isRejectedRepeatedly: false };
    const parts = {
      context: { space: () => (space.isOk ? { ok: true } : { ok: false, reason: 'full' }) as never },
      apiState,
      waitsForQuota: () => space.waitsForQuota,
      isRejectedRepeatedly: () => space.isRejectedRepeatedly,
    };
    const isQueued = { isQueued: true, lanes: ['backfill'] } as const;
    expect(isWaiting(parts, isQueued)).toBe(true);
    expect(isWaiting(parts, { ...isQueued, isQueued: false })).toBe(false);
    noteFailed(apiState, { lane: 'backfill', fault: fault('throttled'), isService: true });
    expect(isWaiting(parts, isQueued), 'a wait that is asked for is no failure').toBe(true);
    noteFailed(apiState, { lane: 'live', fault: fault('server-fault'), isService: false });
    expect(isWaiting(parts, isQueued), 'another lane').toBe(true);
    noteFailed(apiState, { lane: 'backfill', fault: fault('server-fault'), isService: false });
    expect(isWaiting(parts, isQueued)).toBe(false);
    noteWorked(apiState, 'backfill');
    noteFailed(apiState, { lane: 'live', fault: fault('unreachable'), isService: true });
    expect(isWaiting(parts, isQueued), 'the service does not answer').toBe(false);
    space.waitsForQuota = true;
    expect(isWaiting(parts, isQueued)).toBe(true);
    space.isRejectedRepeatedly = true;
    expect(isWaiting(parts, isQueued), 'every wait was kept, and the API refuses all the same').toBe(false);
    space.isRejectedRepeatedly = false;
    space.waitsForQuota = false;
    noteWorked(apiState, 'live');
    space.isOk = false;
    expect(isWaiting(parts, isQueued), 'no room').toBe(false);
  });
});

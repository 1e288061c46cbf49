/** The shared view of an API outage: reports, growing waits, and the turns of the streams. In virtual time. */
import { describe, expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { ApiFault, type ApiFaultKind } from '../../src/core/faults.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import {
  afterAttempt,
  afterFailure,
  createFailingDevices,
  createOutageWatch,
  isOfOneStream,
  outageAfterRequest,
  takeTurn,
  WELL,
} from '../../src/ingest/outage.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

/** A service that never answered, and the reports about it. */
function rig() {
  const reported: string[] = [];
  const waitsMs: number[] = [];
  const clock = { nowMs: () => 0, monoMs: () => 1_000_000, sleep: async () => {} };
  const observe = (event: AppEvent): void => {
    reported.push(event.type);
    if (event.type === 'api-outage') waitsMs.push(event.waitMs);
  };
  const outage = createOutageWatch({ clock, random: () => 0.5, observe });
  const fault = (kind: ApiFaultKind): ApiFault => new ApiFault(kind, 'it fails', { request: 'GET /devices' });
  const fails = (kind: ApiFaultKind): void => outage.note(fault(kind));
  const retries = (kind: ApiFaultKind): void => outage.noteRetried(fault(kind), 900);
  return { reported, waitsMs, fails, retries, answers: outage.noteAnswered, outage };
}

describe('a service in an outage', () => {
  test('is reported, and its end is', () => {
    const { reported, fails, answers } = rig();
    fails('server-fault');
    answers('server-fault');
    expect(reported).toEqual(['api-outage']);
    answers(null);
    expect(reported).toEqual(['api-outage', 'api-recovered']);
    answers(null);
    expect(reported).toHaveLength(2);
  });

  test('is not a rejection for the quota, however often', () => {
    const { reported, fails, answers } = rig();
    for (let time = 0; time < 5; time += 1) fails('throttled');
    answers(null);
    expect(reported).toEqual([]);
  });

  test('that is down behind a 429 is still reported', () => {
    const { reported, fails, answers } = rig();
    fails('throttled');
    fails('unreachable');
    answers(null);
    expect(reported).toEqual(['api-outage', 'api-recovered']);
  });

  test('is tried at growing intervals, up to 90 seconds, or as often as the server requests', () => {
    const daemon = rig();
    const oneOff = rig();
    oneOff.outage.limitWaits(MINUTE_MS);
    for (const { fails } of [daemon, oneOff]) for (let time = 0; time < 8; time += 1) fails('unreachable');
    expect(daemon.waitsMs.map((ms) => ms / SECOND_MS)).toEqual([7.5, 15, 30, 60, 67.5, 67.5, 67.5, 67.5]);
    expect(oneOff.waitsMs.map((ms) => ms / SECOND_MS)).toEqual([7.5, 15, 30, 45, 45, 45, 45, 45]);
  });
});

describe('a service that was never answered', () => {
  test('is reported at the first failed request, once, and so is its first answer', () => {
    const { reported, waitsMs, retries, answers, outage } = rig();
    retries('server-fault');
    expect([reported, outage.problem()]).toEqual([[], null]);
    for (let time = 0; time < 3; time += 1) retries('unreachable');
    expect([reported, waitsMs, outage.problem()]).toEqual([['api-outage'], [900], 'it fails']);
    answers(null);
    expect([reported, outage.problem()]).toEqual([['api-outage', 'api-recovered'], null]);
    // A request that fails later is a matter of its own.
    retries('unreachable');
    expect(reported).toHaveLength(2);
  });
});

describe('the turns of the streams', () => {
  const down = afterFailure(WELL, { kind: 'unreachable', message: 'no' }, { nowMs: 1000, waitMs: 500 });

  test('are free while the service is well, and come one at a time in an outage', () => {
    expect(takeTurn(WELL, 0)).toBe(WELL);
    expect(takeTurn(down, 1499)).toBeNull();
    const taken = takeTurn(down, 1500) ?? WELL;
    expect(takeTurn(taken, 1500)).toBeNull();
    expect(takeTurn(taken, 1500 + 5 * MINUTE_MS)).not.toBeNull();
  });

  test('one without a request leaves its turn to the next, one with a request does not', () => {
    const taken = takeTurn(down, 1500) ?? WELL;
    expect(takeTurn(afterAttempt(taken, 1600), 1600)).not.toBeNull();
    expect(takeTurn(afterAttempt(outageAfterRequest(taken, 'unreachable', 1550), 1600), 1600)).toBeNull();
    expect(afterAttempt(WELL, 1600)).toBe(WELL);
  });

  test('a failure is of one stream where another was answered lately, or where the service has understood it', () => {
    const answered = outageAfterRequest(down, 'not-found', 2000);
    expect([answered.failures, answered.problem]).toEqual([0, null]);
    const lately = (nowMs: number): boolean => isOfOneStream(answered, 'unreachable', nowMs);
    expect([lately(2000 + 89 * SECOND_MS), lately(2000 + 90 * SECOND_MS)]).toEqual([true, false]);
    expect(isOfOneStream(down, 'not-found', 2000)).toBe(true);
  });
});

test('a long wait for the service is checked rarely, and ends in time', async () => {
  const clock = createVirtualClock(0);
  const outage = createOutageWatch({ clock, random: () => 0.5, observe: () => {} });
  outage.note(new ApiFault('throttled', 'later', { request: 'GET /devices', waitMs: 12 * HOUR_MS }));
  let checks = 0;
  await outage.waitUntilOver(new AbortController().signal, () => {
    checks += 1;
  });
  expect(clock.monoMs()).toBeGreaterThanOrEqual(12 * HOUR_MS);
  expect(checks).toBeLessThan(1600);
});

describe('devices that failed while no request was answered', () => {
  const suspectsAt = (ids: readonly string[]) => {
    const clock = { ms: 0, monoMs: () => clock.ms };
    const suspects = createFailingDevices(clock);
    for (const id of ids) suspects.add(id);
    return { clock, suspects };
  };

  test('need not rest once anybody is answered, and that once alone until they are answered themselves', () => {
    const { suspects } = suspectsAt(['a', 'b']);
    expect(suspects.noteAnswered('c')).toEqual(['a', 'b']);
    expect(suspects.noteAnswered('c')).toEqual([]);
    suspects.noteAnswered('b');
    for (const id of ['a', 'b']) suspects.add(id);
    expect(suspects.noteAnswered(null)).toEqual(['b']);
  });

  test('are tried twice before that, at growing distances, unless they were excused already', () => {
    const { clock, suspects } = suspectsAt(['a']);
    const tries: number[] = [];
    for (; clock.ms < 2 * MINUTE_MS; clock.ms += SECOND_MS) if (suspects.takeRetries().length > 0) tries.push(clock.ms);
    expect(tries).toEqual([5 * SECOND_MS, 10 * SECOND_MS]);
    suspects.noteAnswered(null);
    suspects.add('a');
    clock.ms += MINUTE_MS;
    expect(suspects.takeRetries()).toEqual([]);
  });
});

/**
 * The windows that the service allows, as learnt from its answers, and for how long that is valid.
 */
import { describe, expect, test } from 'vitest';
import { ApiFault } from '../../src/core/faults.ts';
import { DAY_MS, DAY_NS, HOUR_MS, HOUR_NS, MINUTE_NS, msToNs, SECOND_NS } from '../../src/core/time.ts';
import { createLearntWindows, type FetchParts, fetchPage, peek, windowRules } from '../../src/ingest/fetch-page.ts';
import { type PageRequest, requestFor } from '../../src/ingest/page-request.ts';
import {
  learnFromRejection,
  showsAnyAge,
  visibleFrom,
  type WindowRules,
  windowLimits,
} from '../../src/ingest/window-limits.ts';

const NOW_MS = 1000 * DAY_MS;
const CLOCK = { nowMs: () => NOW_MS, latestPresentMs: () => NOW_MS + 2, passedMs: () => NOW_MS - 1 };
const NEVER = new AbortController().signal;

/** A service that rejects windows wider than `maxDays`, and otherwise serves no readings. */
function rig(clock: { passedMs: () => number | null } = CLOCK) {
  const service = { planDays: 30 as number | null, maxDays: null as number | null };
  const facts = new Map<string, string>();
  const store = {
    account: () => ({ plan: { historyMaxDays: service.planDays } }),
    fact: (key: string) => facts.get(key) ?? null,
    saveFact: (key: string, value: string) => void facts.set(key, value),
    devices: () => [],
  };
  const telemetry = () => {
    const { maxDays } = service;
    if (maxDays !== null) return Promise.reject(new ApiFault('range-too-large', 'too wide', { request: '', maxDays }));
    return Promise.resolve({ value: { deviceId: 'd', readings: [], rejected: [], nextCursor: null } });
  };
  const context = {
    store,
    serverClock: { ...CLOCK, passedMs: () => clock.passedMs() },
    api: { telemetry },
  } as unknown as FetchParts['context'];
  const windows = createLearntWindows(context);
  const request = (): PageRequest => {
    const to = msToNs(NOW_MS);
    const gap = { from: to - 100n * DAY_NS, to };
    return requestFor({ deviceId: 'd', gap, near: null, far: null, live: false }, windowLimits(windowRules(windows)));
  };
  const ask = async () => await fetchPage({ context, windows }, { request: request(), lane: 'live' }, NEVER);
  const spanDays = (): number => Number((windowLimits(windowRules(windows)).widthNs ?? 0n) / DAY_NS);
  return { service, facts, windows, ask, spanDays };
}

test.each(['', '[1]', '["30",20]', '{}'])('a rejected age that another version has stored as %j is ignored', (fact) => {
  const { facts, windows } = rig();
  facts.set('refused_beyond_days', JSON.stringify([30, 20, NOW_MS]));
  expect(windowRules(windows).rejectedBeyond).toEqual({ planDays: 30, days: 20 });
  facts.set('refused_beyond_days', fact);
  expect(windowRules(windows).rejectedBeyond).toBeNull();
});

describe('the width that a rejection has left', () => {
  test('holds while the plan stays', async () => {
    const { service, ask, spanDays } = rig();
    expect(spanDays()).toBe(29);
    service.maxDays = 7;
    expect(await ask()).toEqual({ kind: 'changed' });
    service.maxDays = null;
    await ask();
    expect(spanDays()).toBe(6);
  });

  test('is forgotten with the plan, also where that plan comes back', async () => {
    const { service, ask, spanDays } = rig();
    service.maxDays = 7;
    await ask();
    service.maxDays = null;
    service.planDays = 90;
    expect(spanDays()).toBe(89);
    await ask();
    service.planDays = 30;
    expect(spanDays()).toBe(29);
  });

  test('is forgotten once the server’s time is known, where it was not: its age may have been rejected', async () => {
    const clock = { passedMs: (): number | null => null };
    const { service, ask, spanDays } = rig(clock);
    service.maxDays = 7;
    await ask();
    service.maxDays = null;
    await ask();
    expect(spanDays()).toBe(6);
    clock.passedMs = () => NOW_MS - 1;
    await ask();
    expect(spanDays()).toBe(29);
  });
});

describe('while the server’s time is not sure', () => {
  const PLAN_DAYS = 3;
  const edge = msToNs(NOW_MS) - BigInt(PLAN_DAYS) * DAY_NS;
  const at = (ageNs: bigint) => [{ recordedAt: msToNs(NOW_MS) - ageNs, values: [] }];
  const rules = (now: Partial<Pick<WindowRules, 'nowNs' | 'latestNs' | 'passedNs'>>): WindowRules => ({
    learntWidth: null,
    rejectedBeyond: null,
    servedBeyondDays: null,
    leadNs: 0n,
    bothBounds: false,
    planDays: PLAN_DAYS,
    nowNs: msToNs(NOW_MS),
    latestNs: msToNs(NOW_MS),
    passedNs: msToNs(NOW_MS),
    ...now,
  });

  test('the rules have the bounds of the present', () => {
    const { windows } = rig();
    expect(windowRules(windows)).toMatchObject({ latestNs: msToNs(NOW_MS + 2), passedNs: msToNs(NOW_MS - 1) });
  });

  test('readings are surely shown only as far back as the latest time that may be the present allows', () => {
    expect(visibleFrom(rules({}))).toBe(edge + 5n * SECOND_NS);
    expect(visibleFrom(rules({ nowNs: msToNs(NOW_MS - HOUR_MS) }))).toBe(edge + 5n * SECOND_NS);
  });

  test('readings beyond the plan’s age show that it does not matter only by a time that has passed', () => {
    const old = at(BigInt(PLAN_DAYS) * DAY_NS + 2n * HOUR_NS);
    expect(showsAnyAge(rules({}), old)).toBe(true);
    expect(showsAnyAge(rules({ passedNs: msToNs(NOW_MS - 2 * HOUR_MS) }), old)).toBe(false);
    expect(showsAnyAge(rules({ passedNs: null }), old)).toBe(false);
  });
});

describe('a range that is rejected although it is as narrow as can be', () => {
  const nowNs = msToNs(NOW_MS);
  const unknown: WindowRules = {
    learntWidth: null,
    rejectedBeyond: null,
    servedBeyondDays: null,
    leadNs: 10n * SECOND_NS,
    bothBounds: false,
    planDays: null,
    nowNs,
    latestNs: nowNs,
    passedNs: nowNs,
  };
  const rejection = (rules: WindowRules, ageNs: bigint) => {
    const after = nowNs - ageNs;
    const fault = new ApiFault('range-too-large', '', { request: '' });
    return learnFromRejection(rules, fault, { after, before: after + HOUR_NS });
  };

  test('is too old where the plan is unknown: no plan is narrower', () => {
    const { rejection: why, learnt } = rejection(unknown, 3n * DAY_NS + 11n * MINUTE_NS);
    expect(why.kind).toBe('too-old');
    expect(learnt).toEqual({ rejectedBeyond: { planDays: null, days: 3 } });
    const after = rejection({ ...unknown, ...learnt }, 3n * DAY_NS + 1n);
    expect(after, 'a second rejection at this age: the delay of the request explains it').toMatchObject({
      learnt: { leadNs: 20n * SECOND_NS },
    });
  });

  test('is requested with an end where it had none, and the plan allows it: the clock of the service may be ahead', () => {
    const rejected = (ageNs: bigint, before: bigint | null) => {
      const fault = new ApiFault('range-too-large', '', { request: '' });
      return learnFromRejection({ ...unknown, planDays: 7 }, fault, { after: nowNs - ageNs, before }).learnt;
    };
    expect(rejected(2n * HOUR_NS, null)).toEqual({ bothBounds: true });
    expect(rejected(8n * DAY_NS, null)).toEqual({ learntWidth: { planDays: 7, widthNs: 4n * DAY_NS } });
    expect(rejected(2n * HOUR_NS, nowNs)).toEqual({ learntWidth: { planDays: 7, widthNs: HOUR_NS } });
  });

  test('is odd where it is younger than the rejected age by more than an hour', () => {
    const learnt = { rejectedBeyond: { planDays: null, days: 2 }, leadNs: HOUR_NS };
    const { rejection: why } = rejection({ ...unknown, ...learnt }, 2n * DAY_NS + HOUR_NS / 2n);
    expect(why.kind).toBe('odd');
  });

  test('is odd where it is of the last day, or the plan allows it', () => {
    expect(rejection(unknown, DAY_NS - 1n).rejection.kind).toBe('odd');
    expect(rejection({ ...unknown, planDays: 30 }, 3n * DAY_NS).rejection.kind).toBe('odd');
  });
});

describe('the newest page of a device', () => {
  /** A service without a known plan that rejects requests without bounds, and wide windows. */
  async function widthsAsked(mostDays: number): Promise<number[]> {
    const widths: number[] = [];
    const telemetry = ({ after, before }: { after: bigint | null; before: bigint | null }) => {
      if (after === null || before === null)
        return Promise.reject(new ApiFault('invalid-request', '', { request: '' }));
      widths.push(Number((before - after) / DAY_NS));
      if (before - after > BigInt(mostDays) * DAY_NS) {
        return Promise.reject(new ApiFault('range-too-large', 'too wide', { request: '' }));
      }
      return Promise.resolve({ value: { deviceId: 'another', readings: [], rejected: [], nextCursor: null } });
    };
    const store = { account: () => null, fact: () => null };
    const context = { store, serverClock: CLOCK, api: { telemetry } } as unknown as FetchParts['context'];
    await peek({ context, windows: createLearntWindows(context) }, 'd', NEVER);
    return widths;
  }

  test('is requested in narrower windows until the unknown plan allows one', async () => {
    expect(await widthsAsked(365)).toEqual([1000, 500, 250]);
  });
});

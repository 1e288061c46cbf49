/**
 * The program's own pace in virtual time: when the next request may go, by the real rules of `api/quota.ts`.
 */
import { createQuota, nextTurn, noteAnswer, noteSent, type Quota, setPlan } from '../../../src/api/quota.ts';
import { mix, unit } from '../../../src/sim/random.ts';
import type { Service, ServicePlan, Verdict } from './service.ts';

export const SHARE = 0.8;

export interface Pace {
  readonly quota: Quota;
  /** The earliest time from now on at which a request may go. */
  freeAtMs(nowMs: number): number;
  /** Sends one, at once. */
  send(nowMs: number): Verdict;
  sent(): number;
  refused(): number;
}

export function createRate(service: Service, plan: ServicePlan, seed: number): Pace {
  let draws = 0;
  let sent = 0;
  let refused = 0;
  const random = (): number => {
    draws += 1;
    return unit(mix(seed, draws));
  };
  const quota = createQuota({ share: SHARE, random });
  setPlan(quota, plan);
  return {
    quota,
    freeAtMs: (nowMs) => Math.max(nowMs, Math.ceil(nextTurn(quota).atMs)),
    send(nowMs) {
      const verdict = service.request(nowMs);
      sent += 1;
      if (verdict.status === 429) refused += 1;
      noteSent(quota, nowMs);
      noteAnswer(quota, { sentMs: nowMs, nowMs, ...verdict });
      return verdict;
    },
    sent: () => sent,
    refused: () => refused,
  };
}

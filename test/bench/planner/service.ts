/**
 * The service for the bench: a quota of the simulator's kinds, another client, and answers that report it.
 */
import { createSimQuota, shareSimQuota, type WindowState } from '../../../src/sim/quota.ts';
import { createSettings, type SimSettings } from '../../../src/sim/settings.ts';

export interface ServicePlan {
  readonly perMinute: number;
  readonly perDay: number;
}

export interface ServiceOptions {
  readonly plan: ServicePlan;
  readonly window: SimSettings['quota']['window'];
  readonly headers: SimSettings['quota']['headers'];
  /** The part of both limits that another client uses: the lesser of the two, evenly. */
  readonly others: number;
}

export interface Verdict {
  readonly status: 200 | 429;
  readonly limit: number;
  readonly remaining: number;
  readonly waitMs: number | null;
}

export interface Service {
  request(atMs: number): Verdict;
}

/** So far before the beginning of the run does the service's clock begin: windows are under way by then. */
const ORIGIN_MS = 1_000_000_000;

export function createService({ plan, window, headers, others }: ServiceOptions): Service {
  const perMinute = others * Math.min(plan.perMinute, plan.perDay / 1440);
  const settings = createSettings({
    quota: { window, headers, rejections: 'free', foreign: { perMinute, everyMs: 15_000 } },
    plan: { requestsPerMinute: plan.perMinute, requestsPerDay: plan.perDay },
  });
  const quota = shareSimQuota(createSimQuota(settings), settings);
  const reported = (minute: WindowState, day: WindowState): WindowState => {
    if (headers === 'minute') return minute;
    return headers === 'day' || day.left < minute.left ? day : minute;
  };
  return {
    request(atMs) {
      const before = quota.state(ORIGIN_MS + atMs);
      const isRefused = before.minute.left === 0 || before.day.left === 0;
      if (!isRefused) quota.spend(1, ORIGIN_MS + atMs);
      const { minute, day } = quota.state(ORIGIN_MS + atMs);
      const { limit, left } = reported(minute, day);
      if (!isRefused) return { status: 200, limit, remaining: left, waitMs: null };
      const waitMs = Math.ceil(Math.max(minute.waitMs, day.waitMs, 1) / 1000) * 1000;
      return { status: 429, limit, remaining: left, waitMs };
    },
  };
}

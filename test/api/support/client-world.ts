/** A client over a scripted transport, in virtual time, with all its events collected. */
import { type ApiClientOptions, createApiClient } from '../../../src/api/client.ts';
import { createRateLimiter } from '../../../src/api/rate-limiter.ts';
import type { AppEvent } from '../../../src/core/events.ts';
import { ApiFault } from '../../../src/core/faults.ts';
import type { HttpAnswer, HttpRequest, Purpose, Transport } from '../../../src/core/ports.ts';
import { createServerClock } from '../../../src/core/server-clock.ts';
import { createVirtualClock } from '../../support/virtual-clock.ts';
import { createMemoryLedger } from './memory-ledger.ts';
import { START_MS } from './paced-world.ts';

export const KEY = 'tm_canary_4711';
export const SIGNAL = new AbortController().signal;
export const PURPOSE: Purpose = { lane: 'live', stream: 'telemetry', deviceId: 'd' };

/** The result of one request: an answer, or an error with which the transport rejects. */
export type Step = Partial<Omit<HttpAnswer, 'body'>> & { readonly body?: unknown; readonly text?: string };

/** @param create makes the client: that of the program, or of a variant of it. */
export function createClientWorld(
  steps: readonly (Step | Error)[],
  options: Partial<ApiClientOptions> = {},
  create = createApiClient,
) {
  const clock = createVirtualClock(START_MS);
  const ledger = createMemoryLedger();
  const serverClock = createServerClock(clock);
  const events: AppEvent[] = [];
  const requests: (HttpRequest & { readonly atMs: number })[] = [];
  const observe = (event: AppEvent): void => {
    events.push(event);
  };
  const plan = { perMinute: 1e6, perDay: 1e9 };
  const limiter = createRateLimiter({
    ledger,
    plan: () => plan,
    share: 1,
    clock,
    serverClock,
    random: () => 0.5,
    observe,
  });
  const transport: Transport = async (request, signal) => {
    requests.push({ ...request, atMs: clock.monoMs() });
    const step = steps[Math.min(requests.length, steps.length) - 1] ?? {};
    await clock.sleep(40, signal);
    if (step instanceof Error) throw step;
    const { status = 200, headers = {}, body = { data: [] }, text } = step;
    const date = new Date(clock.nowMs()).toUTCString();
    return { status, headers: { date, ...headers }, body: new TextEncoder().encode(text ?? JSON.stringify(body)) };
  };
  const api = create({
    transport,
    baseUrl: 'https://api.example/external/v1',
    key: () => KEY,
    limiter,
    serverClock,
    clock,
    random: () => 0.5,
    observe,
    pageSize: () => 200,
    version: '1.2.3',
    ...options,
  });
  return { api, clock, ledger, serverClock, events, requests, limiter };
}

/** The fault that a call ends with. */
export async function faultOf(call: Promise<unknown>): Promise<ApiFault> {
  const error: unknown = await call.then(
    () => new Error('it was answered'),
    (reason: unknown) => reason,
  );
  if (error instanceof ApiFault) return error;
  throw error;
}

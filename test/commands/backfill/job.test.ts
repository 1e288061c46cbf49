/** How long a backfill beside the daemon waits for the account and the device list before it begins. */
import { expect, test } from 'vitest';
import { createBackfillWorker } from '../../../src/commands/backfill/job.ts';
import type { BackfillWorkParts } from '../../../src/commands/backfill/run.ts';
import { ApiFault, UserError } from '../../../src/core/faults.ts';
import { HOUR_MS, MINUTE_MS } from '../../../src/core/time.ts';
import { createApiState, noteFailed, noteRefused } from '../../../src/scheduler/api-state.ts';
import { createVirtualClock } from '../../support/virtual-clock.ts';
import { argsOf } from './support.ts';

function fault(kind: ApiFault['kind']): ApiFault {
  return new ApiFault(kind, 'no answer', { request: 'GET /account' });
}

/** A job beside a daemon that has read nothing yet. */
function beginJob({ lastMs = Number.NEGATIVE_INFINITY }: { readonly lastMs?: number } = {}) {
  const clock = createVirtualClock(0);
  const apiState = createApiState({ observe: () => {}, serverNowMs: clock.nowMs, monoMs: clock.monoMs });
  const quota = { isWaiting: false };
  const serverClock = { highestPassedMs: () => null, passedMs: () => null };
  const parts = {
    context: { clock, serverClock, room: () => ({ ok: true }) },
    planning: { lastMs },
    apiState,
    waitsForQuota: () => quota.isWaiting,
    isRefusedRepeatedly: () => false,
  } as unknown as BackfillWorkParts;
  const ended: { atMs: number | null; error: unknown } = { atMs: null, error: null };
  const { end } = createBackfillWorker(parts)(argsOf({ fromMs: 0 }), new AbortController().signal, () => {});
  void end.catch((error: unknown) => Object.assign(ended, { atMs: clock.monoMs(), error }));
  return { clock, apiState, quota, ended };
}

test('a job that waits for quota does not fail, however long that takes', async () => {
  const { clock, apiState, quota, ended } = beginJob();
  quota.isWaiting = true;
  noteFailed(apiState, { lane: 'inventory', fault: fault('throttled'), isService: true });
  await clock.sleep(HOUR_MS);
  expect(ended.error).toBeNull();
  quota.isWaiting = false;
  noteFailed(apiState, { lane: 'inventory', fault: fault('server-fault'), isService: true });
  await clock.sleep(11 * MINUTE_MS);
  expect(ended.error).toBeInstanceOf(UserError);
  expect(ended.error).toMatchObject({ exitCode: 3, message: expect.stringMatching(/device list for ten minutes/) });
});

test('a job fails after ten minutes in which the API has not answered', async () => {
  const { clock, apiState, ended } = beginJob();
  noteFailed(apiState, { lane: 'inventory', fault: fault('unreachable'), isService: true });
  await clock.sleep(HOUR_MS);
  expect(ended.error).toBeInstanceOf(UserError);
  expect(Math.round(Number(ended.atMs) / MINUTE_MS)).toBe(10);
});

test('a job fails after ten minutes where the lists were read but the time of the API is unknown', async () => {
  const { clock, ended } = beginJob({ lastMs: 0 });
  await clock.sleep(HOUR_MS);
  expect(ended.error).toMatchObject({ exitCode: 3 });
  expect(Math.round(Number(ended.atMs) / MINUTE_MS)).toBe(10);
});

test('a job fails at once where the key is refused', async () => {
  const { clock, apiState, ended } = beginJob();
  noteRefused(apiState, fault('unauthorized'), 'refused', MINUTE_MS);
  await clock.sleep(MINUTE_MS);
  expect(ended.error).toMatchObject({ exitCode: 77 });
});

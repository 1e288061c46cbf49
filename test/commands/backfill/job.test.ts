/**
 * How long a backfill beside the daemon waits for the account and the device list before it begins, and what its
 * command requests after the job of an equal one.
 */
import { expect, test } from 'vitest';
import { requestWholeRange } from '../../../src/commands/backfill/command.ts';
import { createBackfillWorker } from '../../../src/commands/backfill/job.ts';
import type { BackfillSummary } from '../../../src/commands/backfill/result.ts';
import type { BackfillWorkParts } from '../../../src/commands/backfill/run.ts';
import { ApiFault, UserError } from '../../../src/core/faults.ts';
import type { BackfillArgs } from '../../../src/core/state/job-args.ts';
import { DAY_MS, formatMs, HOUR_MS, MINUTE_MS, msToNs } from '../../../src/core/time.ts';
import { createApiState, noteFailed, noteRejected } from '../../../src/scheduler/api-state.ts';
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
    context: { clock, serverClock, space: () => ({ ok: true }) },
    planning: { lastMs },
    apiState,
    waitsForQuota: () => quota.isWaiting,
    isRejectedRepeatedly: () => false,
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

test('a job fails at once where the key is rejected', async () => {
  const { clock, apiState, ended } = beginJob();
  noteRejected(apiState, fault('unauthorized'), 'refused', MINUTE_MS);
  await clock.sleep(MINUTE_MS);
  expect(ended.error).toMatchObject({ exitCode: 77 });
});

/** A backfill command beside a daemon with an equal job: its requests, and the summary that it shows. */
async function askedBeside(args: BackfillArgs, toMs: number, last: Partial<BackfillSummary> = {}) {
  const asked: BackfillArgs[] = [];
  const old = { outcome: 'complete', exit_code: 0, requests: 9, to: formatMs(toMs) } as BackfillSummary;
  const ask: Parameters<typeof requestWholeRange>[0] = (wanted, onFound) => {
    asked.push(wanted);
    onFound?.();
    return Promise.resolve(asked.length === 1 ? old : { ...old, requests: 0, ...last });
  };
  const shown = await requestWholeRange(ask, args);
  return { asked, shown, old };
}

test('a command that has followed the job of an earlier one requests the ranges that were missing there', async () => {
  const args = argsOf({ fromMs: 0 });
  const covered = await askedBeside(args, 0);
  expect(covered.asked).toEqual([args, args]);
  expect(covered.shown, 'nothing was left').toBe(covered.old);
  expect((await askedBeside(args, 0, { requests: 2 })).shown).toMatchObject({ requests: 2 });
  expect((await askedBeside(args, 0, { exit_code: 3 })).shown).toMatchObject({ exit_code: 3 });
});

test('a recheck that has followed an earlier one reads no range twice, except newer ones', async () => {
  const [to, toMs] = [10 * DAY_MS, 9 * DAY_MS];
  const args = argsOf({ fromMs: 0, toMs: to, recheck: true, typed: '30d' });
  const rest = { ...args, from: String(msToNs(toMs)), typed: undefined };
  expect((await askedBeside(args, toMs)).asked).toEqual([args, rest]);
  expect((await askedBeside(args, toMs + HOUR_MS)).asked).toEqual([args]);
  expect((await askedBeside({ ...args, to: null }, toMs)).asked).toHaveLength(2);
});

test('a command that has its own job, or whose job was cancelled, requests nothing else', async () => {
  const summary = { outcome: 'complete', to: formatMs(0) } as BackfillSummary;
  let calls = 0;
  const own = (): Promise<BackfillSummary> => {
    calls += 1;
    return Promise.resolve(summary);
  };
  expect(await requestWholeRange(own, argsOf({ fromMs: 0 }))).toBe(summary);
  const cancelled = (_: BackfillArgs, onFound?: () => void): Promise<BackfillSummary> => {
    onFound?.();
    calls += 1;
    return Promise.resolve({ ...summary, outcome: 'interrupted' });
  };
  await requestWholeRange(cancelled, argsOf({ fromMs: 0 }));
  expect(calls).toBe(2);
});

/** A history that needs more requests than the budget of a day, and the remedy of `--check` followed to the letter. */
import { expect, test } from 'vitest';
import { noteQuota } from '../../src/commands/check/findings.ts';
import { createNotes } from '../../src/commands/check/report.ts';
import { DAY_MS } from '../../src/core/time.ts';
import { openStage, type Stage, until } from './support.ts';

const A_DAY = 60;

/** The line of `--check` for the requests that the state of a stage has booked. */
async function quotaOf(stage: Stage, env: Readonly<Record<string, string>>) {
  const { stdout } = await stage.run(['--status', '--json'], { env });
  const { budget, spent } = JSON.parse(stdout).allowance.day;
  expect(budget).toBe(A_DAY);
  // Some requests are booked and not sent when a run is killed.
  const left = { leftMinute: null, leftDay: null, spentMinute: 0, budgetLeftMinute: null };
  return noteQuota(createNotes('api'), { ...left, budgetLeftDay: Math.max(0, budget - spent), spentDay: spent });
}

test('a budget that the history uses up: a shorter sync.history leaves requests', async () => {
  const options = {
    historyMs: 20 * DAY_MS,
    settings: { plan: { requestsPerMinute: 1000, requestsPerDay: A_DAY } },
  };
  {
    await using stage = await openStage(options);
    const env = { TIDEMARK_SYNC_HISTORY: '20d' };
    const run = stage.start(['--once'], { env });
    await until('the budget is used up', () => stage.simulator.log.total >= A_DAY);
    run.child.kill('SIGKILL');
    await run.ended;
    expect(await quotaOf(stage, env)).toMatchObject({
      status: 'warn',
      remedy: expect.stringMatching(
        /^Nothing to do: requests resume .* take a larger plan or shorten sync\.history\.$/,
      ),
      facts: { left_day: 0 },
    });
  }
  await using stage = await openStage(options);
  const env = { TIDEMARK_SYNC_HISTORY: '6h' };
  const { code, stderr } = await stage.run(['--once'], { env });
  expect(code, stderr).toBe(0);
  const quota = await quotaOf(stage, env);
  expect(quota).toMatchObject({ status: 'ok', remedy: null });
  expect(quota.facts?.['left_day']).toBeGreaterThan(10);
});

/**
 * Jobs of `--verify`: what another version has written is refused, never trusted.
 */
import { expect, test } from 'vitest';
import { createRepairWorker, createSampleWorker } from '../../../src/commands/verify/job.ts';
import { readSampleVerdict } from '../../../src/commands/verify/sample.ts';
import { readRepairSummary } from '../../../src/core/state/job-args.ts';

const NEVER = new AbortController().signal;
const REPAIR = { read: 1, requests: 2, delivered: true, reason: null };
const COUNTS = { windows: 5, readings: 9, requests: 5, missing: 1, gone: 0, late_readings: 0 };
const DIFFERENCE = { device_id: 'a', from: 'F', to: 'T', missing: 1, gone: 0 };
const SAMPLE = { ...COUNTS, reason: null, differences: [DIFFERENCE] };

test.each([
  ['a repair', readRepairSummary, REPAIR],
  ['a sample', readSampleVerdict, SAMPLE],
] as const)('the summary of %s is read only with all its members', (_of, read, summary) => {
  expect(read(JSON.parse(JSON.stringify(summary)))).toEqual(summary);
  expect(read({ ...summary, reason: 'the archive is full' })).toMatchObject({ reason: 'the archive is full' });
  for (const name of Object.keys(summary)) expect(read({ ...summary, [name]: [5] }), name).toBeNull();
  for (const wrong of [null, [], 'text', { requests: 2 }]) expect(read(wrong)).toBeNull();
});

test('the differences of a sample are checked one by one', () => {
  for (const wrong of [null, { ...DIFFERENCE, device_id: 5 }, { ...DIFFERENCE, gone: '0' }]) {
    expect(readSampleVerdict({ ...SAMPLE, differences: [DIFFERENCE, wrong] })).toBeNull();
  }
});

test('arguments that are not understood fail with what to do, and with no internal error', async () => {
  const parts = { context: null, deliverers: [] } as never;
  for (const worker of [createRepairWorker(parts), createSampleWorker(parts, '/nowhere')]) {
    await expect(worker({ windows: 'all' }, NEVER, () => {}).end).rejects.toMatchObject({
      name: 'UserError',
      exitCode: 3,
      message: expect.stringContaining('Update the older of the two, restart the daemon, and run the command again.'),
    });
  }
});

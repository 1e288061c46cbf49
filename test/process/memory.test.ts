/**
 * The private memory of an idle daemon with 30 devices for a minute after its first sync: what `npm run bench -- --only
 * memory` measures for an hour, and with 2,000 devices as well. Here those would cost 40 s of processor time (28 s the
 * daemon, 12 s its API), a twentieth of what all tests take.
 */
import { expect, test } from 'vitest';
import { HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { idle } from '../bench/idle.ts';
import { SMALL_FLEET } from '../bench/memory.ts';
import { MAIN } from './support.ts';

/**
 * Measured six times at a load of 24 on two cores: 35.8 to 40.2 MB, and 52.1 to 56.0 MB without `--optimize-for-size`.
 * The target on a quiet machine is lower.
 */
const MOST_IDLE_MB = 48;

/** A third of the 1,800 readings of its fleet: polls come in runs, and a minute may have few. */
const LEAST_POLLS_AN_HOUR = 600;

test('a daemon with 30 devices fits into its container, and uses half of it while idle', async () => {
  const { devices, limitMib } = SMALL_FLEET;
  const of = { program: MAIN, devices, historyMs: HOUR_MS, awaitsSync: true, warmMs: 0, measuredMs: MINUTE_MS };
  const { privateBytes, firstPrivateBytes, pollsPerHour } = await idle(of);
  expect(pollsPerHour, 'it keeps up with its fleet').toBeGreaterThan(LEAST_POLLS_AN_HOUR);
  expect(firstPrivateBytes / 2 ** 20).toBeLessThan(limitMib);
  expect(privateBytes / 1e6).toBeLessThan(MOST_IDLE_MB);
});

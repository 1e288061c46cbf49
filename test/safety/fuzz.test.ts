/**
 * The fuzz: whole lives of the program drawn from a seed (`test/support/fuzz-draw.ts`), judged by the seed of the world
 * against a real InfluxDB. A fixed set runs with the suite; `FUZZ=n` in the environment runs n more, from the seed
 * `FUZZ_FROM` on (1000 where left out), and tells the seed of every case that fails:
 *
 *     FUZZ=2000 FUZZ_FROM=5000 npx vitest run test/safety/fuzz.test.ts --testTimeout=3600000
 */
import { describe, expect, test } from 'vitest';
import { runFuzzCase } from '../support/fuzz-run.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { openBench } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';

const bench = sharedBench(openBench);

/** Small ones, all different. Those left out are long lives, a minute together: `FUZZ=31 FUZZ_FROM=1` runs all. */
const FIXED = Array.from({ length: 31 }, (_, index) => index + 1).filter(
  (seed) => ![3, 10, 14, 16, 22, 26].includes(seed),
);

const { FUZZ = '0', FUZZ_FROM = '1000' } = process.env;

describe.runIf(influxdAvailable())('a life drawn by chance', () => {
  test.each(FIXED)('ends with what the seed says: case %i', async (seed) => {
    expect(await runFuzzCase(bench, seed)).toEqual([]);
  });

  if (FUZZ === '0') return;
  test('ends with what the seed says, many times over', async () => {
    const failed: string[] = [];
    for (let seed = Number(FUZZ_FROM); seed < Number(FUZZ_FROM) + Number(FUZZ); seed += 1) {
      const wrong = await runFuzzCase(bench, seed);
      if (wrong.length > 0) failed.push(`case ${seed}: ${wrong.join('; ')}`);
    }
    expect(failed).toEqual([]);
  });
});

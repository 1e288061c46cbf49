/**
 * Every broken variant of the program passes where nothing fails, and is caught by its scenarios, with a real InfluxDB.
 */
import { describe, expect, test } from 'vitest';
import { influxdAvailable } from '../support/influxd.ts';
import { openBench } from '../support/rig.ts';
import { SCENARIOS } from '../support/scenarios.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { MUTANTS } from './mutants.ts';
import { breed } from './variants.ts';

const bench = sharedBench(openBench);

describe.runIf(influxdAvailable()).each(MUTANTS)('a program with $name', (mutant) => {
  test('passes without faults, and is caught', async () => {
    const program = await breed(mutant);
    expect(await SCENARIOS.undisturbed(bench, program), 'it has to pass where nothing goes wrong').toEqual([]);
    for (const scenario of mutant.caughtBy) {
      expect(await SCENARIOS[scenario](bench, program), `${scenario} must find it`).not.toEqual([]);
    }
  });
});

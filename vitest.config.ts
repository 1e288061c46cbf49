import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { MixedSequence } from './test/support/mixed-sequence.ts';
import { testTiers } from './test/support/tiers.ts';

const { pure, real } = testTiers();

export default defineConfig({
  test: {
    // Against what hangs, never a judgement of speed: a machine that others use may take ten times as long.
    testTimeout: 900_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 300_000 } },
    // More than there are cores: half of the time is real processes that wait.
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: MixedSequence },
    // Grafana's library remarks on columns that a query was not answered.
    onConsoleLog: (text) => !text.startsWith('[FilterByValue]'),
    reporters: ['default', './test/support/summary-reporter.ts'],
    projects: [
      // `npm test`: store, pure functions and virtual time.
      {
        extends: true,
        test: {
          name: 'pure',
          include: [...pure],
          setupFiles: ['test/support/no-world.ts'],
          // They share nothing but modules that hold no state: a process for each would take longer than its tests.
          isolate: false,
        },
      },
      // Real databases, browsers and processes of the built program.
      { extends: true, test: { name: 'real', include: [...real], globalSetup: ['test/support/built-program.ts'] } },
    ],
  },
});

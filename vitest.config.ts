import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { MixedSequence } from './test/support/mixed-sequence.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Against what hangs, not what is slow: a machine that is shared may take thrice as long.
    testTimeout: 180_000,
    hookTimeout: 60_000,
    // More than there are cores: half of the time is real processes that wait.
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: MixedSequence },
    reporters: ['default', './test/support/summary-reporter.ts'],
  },
});

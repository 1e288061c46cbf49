import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Against what hangs, not what is slow: a machine that is shared may take thrice as long.
    testTimeout: 180_000,
    hookTimeout: 60_000,
    // One more than there are cores: half of the time is real processes that wait.
    maxWorkers: availableParallelism() + 1,
    reporters: ['default', './test/support/summary-reporter.ts'],
  },
});

import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Against what hangs, not what is slow: a machine that is shared may take thrice as long.
    testTimeout: 180_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    reporters: ['default', './test/support/summary-reporter.ts'],
  },
});

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
    maxWorkers: availableParallelism() + 5,
    sequence: { sequencer: MixedSequence },
    // For the databases that tests start, all of them written in Go: a fifth of what they compute is collecting
    // garbage.
    env: { GOGC: '400' },
    // Grafana's library remarks on columns that a query was not answered.
    onConsoleLog: (text) => !text.startsWith('[FilterByValue]'),
    reporters: ['default', './test/support/summary-reporter.ts'],
    // Files share nothing but modules that hold no state from one test to the next; a process for each would have to
    // load and warm up the whole program again.
    isolate: false,
    // The program and its tests are what Node runs as it stands. Vite would put a lookup in place of every imported
    // name.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    projects: [
      // `npm test`: store, pure functions and virtual time. They only compute, so a process more than there are cores
      // would do no more than load and warm up the program once more.
      {
        extends: true,
        test: {
          name: 'pure',
          include: [...pure],
          setupFiles: ['test/support/no-world.ts'],
          maxWorkers: availableParallelism(),
          sequence: { groupOrder: 1 },
        },
      },
      // Real databases, browsers and processes of the built program.
      {
        extends: true,
        test: {
          name: 'real',
          include: [...real],
          globalSetup: ['test/support/built-program.ts'],
          // After those of the other project: groups with different numbers of processes follow each other.
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});

/**
 * The last line of a test run, in plain form for people and for CI: `N passed, N failed`.
 *
 * Promises: the line stands alone; what could not even be loaded counts as failed; in CI a run that skipped something
 * or ran nothing is a failed run.
 */
import type { Reporter, TestModule } from 'vitest/node';

/** How many tests ended how. */
export interface Tally {
  passed: number;
  failed: number;
  skipped: number;
}

/** The line, without its newline. */
export function summaryLine({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

/** Why a run that looks well is not accepted in CI; `null` where it is. */
export function ciObjection({ passed, failed, skipped }: Tally): string | null {
  if (passed + failed === 0) return 'No test ran: in CI that is a failure.';
  if (skipped > 0) return `${skipped} skipped: in CI nothing may be skipped.`;
  return null;
}

/** Counts tests; a file or a hook that failed outside any test, and every stray error, counts as one failed. */
export function tallyOf(modules: readonly TestModule[], strayErrors: number): Tally {
  const tally: Tally = { passed: 0, failed: strayErrors, skipped: 0 };
  for (const module of modules) {
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state === 'passed') tally.passed += 1;
      else if (state === 'failed') tally.failed += 1;
      else tally.skipped += 1;
    }
    tally.failed += module.errors().length;
    for (const suite of module.children.allSuites()) tally.failed += suite.errors().length;
  }
  return tally;
}

// Vitest loads reporters by their default export.
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], strayErrors: readonly unknown[]): void {
    const tally = tallyOf(modules, strayErrors.length);
    const { CI } = process.env;
    const objection = CI ? ciObjection(tally) : null;
    if (objection !== null) {
      process.exitCode = 1;
      process.stdout.write(`\n${objection}\n`);
    }
    process.stdout.write(`\n${summaryLine(tally)}\n`);
  }
}

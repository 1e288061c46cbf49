/**
 * The dashboard of the daemon's own metrics against a real Prometheus that reads a real daemon: every query is answered,
 * and all that a daemon at work has to tell is told.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { start, until } from '../process/support.ts';
import { prometheusAvailable, startPrometheus } from '../support/prometheus.ts';
import { startVictoria, victoriaAvailable } from '../support/victoria.ts';
import { asksInflux, readBoards, shownPanels } from './support/boards.ts';

const PANELS = readBoards()
  .filter((board) => !asksInflux(board))
  .flatMap((board) => shownPanels(board));

/** What a demo in which all goes well has nothing to tell of. */
const QUIET = new Set(['Why not ready A', 'Faults in a minute A', 'Work that was asked for A', 'Databases B']);

/** What may be told or not, by how far the demo has come. */
const MAYBE = /^(?:Set aside or distrusted in a minute|Waits for allowance in a minute|Missing time|State and disk)/;

test.runIf(prometheusAvailable() && victoriaAvailable())(
  'every panel of the sync health shows a daemon at work',
  async () => {
    await using victoria = await startVictoria();
    const temporary = mkdtempSync(join(tmpdir(), 'tidemark-sync-health-'));
    const run = start(['--demo'], {
      cwd: temporary,
      env: { TMPDIR: temporary, TIDEMARK_INFLUX_URL: victoria.url, TIDEMARK_INFLUX_KIND: 'victoriametrics' },
    });
    try {
      await until('it tells where the page is', () => run.stdout().includes('\n') || run.child.exitCode !== null);
      const target = /^Status page: http:\/\/(\S+)\/\n/.exec(run.stdout())?.[1] ?? '';
      await using prometheus = await startPrometheus({ target, rules: {} });
      const ask = async (expr: string): Promise<ReadonlyMap<string, number>> =>
        await prometheus.query(expr.replaceAll('$__rate_interval', '10s').replaceAll('$instance', '.*'));
      await until('points are delivered', async () => {
        const delivered = await ask(
          'rate(tidemark_write_duration_seconds_count{instance=~"$instance"}[$__rate_interval]) > 0',
        );
        return delivered.size > 0;
      });
      const empty: string[] = [];
      for (const { title, targets = [] } of PANELS) {
        for (const { refId, expr = '' } of targets) {
          if ((await ask(expr)).size === 0 && !MAYBE.test(title)) empty.push(`${title} ${refId}`);
        }
      }
      expect(empty.filter((name) => !QUIET.has(name))).toEqual([]);
    } finally {
      run.child.kill('SIGKILL');
      await run.ended;
      rmSync(temporary, { recursive: true, force: true });
    }
  },
);

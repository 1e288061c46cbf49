/**
 * The dashboard of the daemon's own metrics: every query is understood by a real Prometheus, and names metrics and labels
 * that the daemon has.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { METRICS, PER_DEVICE } from '../../src/observe/metrics-table.ts';
import { prometheusAvailable, promtool } from '../support/prometheus.ts';
import { asksInflux, readBoards, shownPanels } from './support/boards.ts';

const QUERIES = readBoards()
  .filter((board) => !asksInflux(board))
  .flatMap((board) =>
    shownPanels(board).flatMap(({ title, targets = [] }) =>
      targets.map(({ refId, expr = '' }) => [`${title} ${refId}`, expr] as const),
    ),
  );

/** What scrapes add to the labels of every metric. */
const SCRAPED = ['instance', 'job', 'le'];

const KNOWN: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({ ...METRICS, ...PER_DEVICE }).flatMap(([name, { kind, labels }]) => {
    const own: readonly string[] = labels;
    return kind === 'histogram'
      ? ['_bucket', '_sum', '_count'].map((end) => [`${name}${end}`, own] as const)
      : [[name, own] as const];
  }),
);

test.each(QUERIES)('%s names what the daemon has', (_, expr) => {
  const names = [...expr.matchAll(/\btidemark_\w+/g)].map(([name]) => name);
  expect(names.length).toBeGreaterThan(0);
  expect(names.filter((name) => !KNOWN.has(name))).toEqual([]);
  const labels = new Set([...SCRAPED, ...names.flatMap((name) => KNOWN.get(name) ?? [])]);
  const used = [
    ...[...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(',')),
    ...[...expr.matchAll(/[{,]\s*(\w+)(?:=~|!~|!=|=)"/g)].map(([, label = '']) => label),
  ].map((label) => label.trim());
  expect(used.filter((label) => !labels.has(label))).toEqual([]);
});

/** As Grafana sends it: its own variables put in. */
function asked(expr: string): string {
  return expr.replaceAll('$__rate_interval', '1m0s').replaceAll('$instance', '.*');
}

describe.runIf(prometheusAvailable())('promtool', () => {
  test('understands every query', () => {
    const rules = QUERIES.map(([, expr], index) => ({ record: `r${index}`, expr: asked(expr) }));
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-promql-'));
    try {
      // Rules are the one place where every promtool looks at an expression; JSON is YAML.
      writeFileSync(join(folder, 'rules.yml'), JSON.stringify({ groups: [{ name: 'all', rules }] }));
      const { code, said } = promtool(['check', 'rules', 'rules.yml'], '', folder);
      expect(said).toContain(`${QUERIES.length} rules found`);
      expect(code).toBe(0);
      writeFileSync(
        join(folder, 'broken.yml'),
        JSON.stringify({ groups: [{ name: 'all', rules: [{ record: 'r', expr: 'sum by (' }] }] }),
      );
      expect(promtool(['check', 'rules', 'broken.yml'], '', folder).code).not.toBe(0);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

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
import { VICTORIA_QUERIES } from './support/promql-asked.ts';
import { replacePromql } from './support/promql-text.ts';
import type { Chosen } from './support/replacement.ts';

const QUERIES = readBoards()
  .filter((board) => !asksInflux(board))
  .flatMap((board) =>
    shownPanels(board).flatMap(({ title, targets = [] }) =>
      targets.map(({ refId, expr = '' }) => [`${title} ${refId}`, expr] as const),
    ),
  );

/** What scrapes add to the labels of every metric. */
const SCRAPED = ['instance', 'job', 'le'];

const KNOWN: ReadonlyMap<string, readonly string[]> = new Map([
  // What Prometheus says of its rules.
  ['ALERTS', ['alertname', 'alertstate', 'severity']] as const,
  ...Object.entries({ ...METRICS, ...PER_DEVICE }).flatMap(([name, { kind, labels }]) => {
    const own: readonly string[] = labels;
    return kind === 'histogram'
      ? ['_bucket', '_sum', '_count'].map((end) => [`${name}${end}`, own] as const)
      : [[name, own] as const];
  }),
]);

test.each(QUERIES)('%s names what the daemon has', (_, expr) => {
  const names = [...expr.matchAll(/\b(?:tidemark_\w+|ALERTS)\b/g)].map(([name]) => name);
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
  const any = { value: '$__all', options: [], allValue: '.*' };
  const choices = new Map<string, Chosen>(['instance', 'workspace', 'device', 'sensor'].map((name) => [name, any]));
  choices.set('target', { value: '900000', options: [] });
  const range = { fromMs: 0, toMs: 86_400_000 };
  return replacePromql(expr, { choices, range, stepMs: 60_000, plain: new Set() });
}

test.each(VICTORIA_QUERIES)('%s asks within bounds, and puts a choice in where Grafana escapes it', (_, expr) => {
  const spans = [...expr.matchAll(/\[([^\]]*)\]/g)].map(([, span = '']) => span);
  expect(spans.filter((span) => !/^(?:\$__interval|\$__range|17m|1h|3h|26h|3h:5m|26h:5m)$/.test(span))).toEqual([]);
  // Nothing between backticks is escaped but by the format of the choice.
  const rest = expr
    .replace(/=~`\$\{\w+:regex\}`/g, '')
    .replaceAll(', "unit", "", "sensor")', '')
    .replaceAll('@ $' + '{__to:date:seconds}', '')
    .replaceAll('$' + '{target:date:seconds}', '');
  expect(rest).not.toMatch(/\$\{|\$[a-z]|`|"/);
});

describe.runIf(prometheusAvailable())('promtool', () => {
  test('understands every query', () => {
    const all = [...QUERIES, ...VICTORIA_QUERIES];
    const rules = all.map(([, expr], index) => ({ record: `r${index}`, expr: asked(expr) }));
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-promql-'));
    try {
      // Rules are the one place where every promtool looks at an expression; JSON is YAML.
      writeFileSync(join(folder, 'rules.yml'), JSON.stringify({ groups: [{ name: 'all', rules }] }));
      const { code, said } = promtool(['check', 'rules', 'rules.yml'], '', folder);
      expect(said).toContain(`${all.length} rules found`);
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

  test('a lag is green, yellow or red by the target, none where nothing answers, and "initial sync" without one', () => {
    const queries = new Map(QUERIES);
    // After each minute: within the target, above it, far above it, no lag yet, no daemon.
    const expected = ['A', 'B', 'C', 'D'].flatMap((refId, at) =>
      [90, 200, 500, 0].map((value, minute) => ({
        expr: asked(queries.get(`Lag ${refId}`) ?? ''),
        eval_time: `${minute}m`,
        exp_samples: at === minute ? [{ labels: '{}', value }] : [],
      })),
    );
    const gone = ['A', 'B', 'C', 'D'].map((refId) => ({
      expr: asked(queries.get(`Lag ${refId}`) ?? ''),
      eval_time: '4m',
      exp_samples: [],
    }));
    const told = {
      rule_files: [],
      tests: [
        {
          interval: '1m',
          input_series: [
            { series: 'tidemark_freshness_seconds{instance="a", percentile="90"}', values: '90 200 500 stale stale' },
            { series: 'tidemark_freshness_target_seconds{instance="a"}', values: '100 100 100 100 stale' },
          ],
          promql_expr_test: [...expected, ...gone],
        },
      ],
    };
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-promql-'));
    try {
      writeFileSync(join(folder, 'told.yml'), JSON.stringify(told));
      const { code, said } = promtool(['test', 'rules', 'told.yml'], '', folder);
      expect(code, said).toBe(0);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test('counts a renamed device once, by its newest points, as VictoriaMetrics stores them', () => {
    const device = (id: string, name: string): string =>
      `device_online{device_id="${id}",device_name="${name}",model_id="m",workspace_id="w"}`;
    const queries = new Map(VICTORIA_QUERIES);
    const expected = (where: string, minute: number, values: readonly number[]): object => ({
      expr: asked(queries.get(`tidemark-vm-fleet: ${where} A`) ?? ''),
      eval_time: `${minute}m`,
      exp_samples: values.map((value) => ({ labels: '{}', value })),
    });
    const told = {
      rule_files: [],
      tests: [
        {
          interval: '1m',
          input_series: [
            { series: device('a', 'Old'), values: '1' },
            { series: device('a', 'New'), values: '_x12 0' },
            { series: device('b', 'Other'), values: '1 _x59 1' },
            // Tidemark runs.
            { series: 'coverage_gap_seconds{device_id="a",device_name="New",workspace_id="w"}', values: '0x180' },
          ],
          promql_expr_test: [
            expected('Online', 5, [2]),
            // Just after it was written, at a moment when no step of five minutes has seen it, and long after.
            ...[13, 90, 170].map((minute) => expected('Online', minute, [1])),
            ...[13, 90, 170].map((minute) => expected('Not online', minute, [1])),
          ],
        },
      ],
    };
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-promql-'));
    try {
      writeFileSync(join(folder, 'told.yml'), JSON.stringify(told));
      const { code, said } = promtool(['test', 'rules', 'told.yml'], '', folder);
      expect(code, said).toBe(0);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

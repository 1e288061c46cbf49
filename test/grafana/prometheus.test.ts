/**
 * The dashboard of the daemon's own metrics: every query is understood by a real Prometheus, and names metrics and
 * labels that the daemon has.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { METRICS, PER_DEVICE } from '../../src/observe/metrics-table.ts';
import { prometheusAvailable, promtool } from '../support/prometheus.ts';
import { asksInflux, readBoards, shownPanels } from './support/boards.ts';
import { VICTORIA_QUERIES, vmBoard } from './support/promql-asked.ts';
import { replacePromql } from './support/promql-text.ts';
import type { Chosen } from './support/replacement.ts';

const QUERIES = readBoards()
  .filter((board) => !asksInflux(board))
  .flatMap((board) =>
    shownPanels(board).flatMap(({ title, targets = [] }) =>
      targets.map(({ refId, expr = '' }) => [`${title} ${refId}`, expr] as const),
    ),
  );

/** The labels that scrapes add to every metric. */
const SCRAPED = ['instance', 'job', 'le'];

const KNOWN: ReadonlyMap<string, readonly string[]> = new Map([
  // The output of Prometheus about its rules.
  ['ALERTS', ['alertname', 'alertstate', 'severity']] as const,
  ...Object.entries({ ...METRICS, ...PER_DEVICE }).flatMap(([name, { kind, labels }]) => {
    const own: readonly string[] = labels;
    return kind === 'histogram'
      ? ['_bucket', '_sum', '_count'].map((end) => [`${name}${end}`, own] as const)
      : [[name, own] as const];
  }),
]);

test.each(QUERIES)('%s uses metrics that the daemon has', (_, expr) => {
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
function asked(expr: string, stepMs = 60_000): string {
  const any = { value: '$__all', options: [], allValue: '.*' };
  const choices = new Map<string, Chosen>(['instance', 'workspace', 'device', 'sensor'].map((name) => [name, any]));
  choices.set('target', { value: '900000', options: [] });
  const range = { fromMs: 0, toMs: 86_400_000 };
  return replacePromql(expr, { choices, range, stepMs, plain: new Set() });
}

test.each(VICTORIA_QUERIES)('%s has bounds, and inserts a choice where Grafana escapes it', (_, expr) => {
  const spans = [...expr.matchAll(/\[([^\]]*)\]/g)].map(([, span = '']) => span);
  expect(spans.filter((span) => !/^(?:\$__interval|\$__range|17m|1h|3h|26h|366d|3h:5m|26h:5m)$/.test(span))).toEqual(
    [],
  );
  // Nothing between backticks is escaped but by the format of the choice.
  const rest = expr
    .replace(/=~`\$\{\w+:regex\}`/g, '')
    .replaceAll(', "unit", "", "sensor")', '')
    .replace(/, "by", "\d", "", ""\)/g, '')
    .replaceAll('@ $' + '{__to:date:seconds}', '')
    .replaceAll('$' + '{target:date:seconds}', '');
  expect(rest).not.toMatch(/\$\{|\$[a-z]|`|"/);
});

/** Expects of promtool that queries are answered so over these samples, which are a minute apart. */
function expectTold(test: object): void {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-promql-'));
  try {
    writeFileSync(join(folder, 'told.yml'), JSON.stringify({ rule_files: [], tests: [{ interval: '1m', ...test }] }));
    const { code, said } = promtool(['test', 'rules', 'told.yml'], '', folder);
    expect(code, said).toBe(0);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

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
        expr: asked(queries.get(`Lag of the archive ${refId}`) ?? ''),
        eval_time: `${minute}m`,
        exp_samples: at === minute ? [{ labels: '{}', value }] : [],
      })),
    );
    const gone = ['A', 'B', 'C', 'D'].map((refId) => ({
      expr: asked(queries.get(`Lag of the archive ${refId}`) ?? ''),
      eval_time: '4m',
      exp_samples: [],
    }));
    expectTold({
      input_series: [
        { series: 'tidemark_freshness_seconds{instance="a", percentile="90"}', values: '90 200 500 stale stale' },
        { series: 'tidemark_freshness_target_seconds{instance="a"}', values: '100 100 100 100 stale' },
      ],
      promql_expr_test: [...expected, ...gone],
    });
  });

  test('VictoriaMetrics: "initial sync" while devices are reported and none has a watermark', () => {
    const exprOf = (title: string) =>
      VICTORIA_QUERIES.find(([where]) => where === `tidemark-vm-fleet: ${title}`)?.[1] ?? '';
    const device = (metric: string): string => `${metric}{device_id="a",device_name="A",workspace_id="w"}`;
    const shown = (title: string, minute: number, values: readonly number[]): object => ({
      expr: asked(exprOf(title)),
      eval_time: `${minute}m`,
      exp_samples: values.map((value) => ({ labels: '{}', value })),
    });
    // Reported from the beginning, covered from the tenth minute on, and nothing more after the twentieth.
    expectTold({
      input_series: [
        { series: device('coverage_gap_seconds'), values: '9x20' },
        { series: device('coverage_watermark_ms'), values: '_x10 0x10' },
      ],
      promql_expr_test: [
        ...['Lag E', 'Late B'].flatMap((title) => [shown(title, 5, [0]), shown(title, 15, []), shown(title, 50, [])]),
        // A watermark of 1970 is late.
        ...[shown('Late A', 5, []), shown('Late A', 15, [0]), shown('Late A', 19, [1]), shown('Late A', 50, [])],
      ],
    });
  });

  test('VictoriaMetrics: a device that was renamed has one mark, however wide the steps are', () => {
    const [{ target } = { target: { expr: '' } }] = vmBoard('device').annotations.list;
    const device = (name: string): string => `device_online{device_id="a",device_name="${name}",workspace_id="w"}`;
    const marks = (minute: number, values: readonly number[]): object => ({
      expr: `(${asked(target.expr ?? '', 300_000)}) * 1`,
      eval_time: `${minute}m`,
      exp_samples: values.map((value) => ({ labels: '{device_id="a", device_name="New"}', value })),
    });
    expectTold({
      input_series: [
        { series: device('Old'), values: '1x11' },
        { series: device('New'), values: '_x12 1x60' },
      ],
      promql_expr_test: [marks(10, []), marks(15, [1]), marks(20, []), marks(25, [])],
    });
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
    expectTold({
      input_series: [
        { series: device('a', 'Old'), values: '1' },
        { series: device('a', 'New'), values: '_x12 0' },
        { series: device('b', 'Other'), values: '1 _x59 1' },
        // Tidemark runs.
        { series: 'coverage_gap_seconds{device_id="a",device_name="New",workspace_id="w"}', values: '0x180' },
        { series: 'coverage_watermark_ms{device_id="a",device_name="New",workspace_id="w"}', values: '0+60000x180' },
      ],
      promql_expr_test: [
        expected('Online', 5, [2]),
        // Just after it was written, at a moment when no step of five minutes has seen it, and long after.
        ...[13, 90, 170].map((minute) => expected('Online', minute, [1])),
        ...[13, 90, 170].map((minute) => expected('Silent', minute, [1])),
      ],
    });
  });
});

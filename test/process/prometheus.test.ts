/**
 * A real Prometheus over a real daemon: what it scrapes is what happened, and an alert fires when the database goes down
 * and resolves when it is back. The rules are those of `config/prometheus`, with shorter times.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { METRICS } from '../../src/observe/metrics-table.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { type Prometheus, prometheusAvailable, promtool, startPrometheus } from '../support/prometheus.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { KEY, openBench, openStage, TOKEN, until } from './support.ts';

const RULES = 'tidemark-alerts.yml';

/** The rules with every time that an alert has to hold made short. */
function impatientRules(): string {
  return readFileSync(`config/prometheus/${RULES}`, 'utf8').replace(/^(\s+for:) \w+$/gm, '$1 1s');
}

describe.runIf(prometheusAvailable() && influxdAvailable())('Prometheus over a daemon', () => {
  const bench = sharedBench(openBench);

  test('scrapes what happened; the alert of a database that is down fires and resolves', async () => {
    await using stage = await openStage({ bench });
    const env = { TIDEMARK_LISTEN: '127.0.0.1:0', TIDEMARK_LOG_FORMAT: 'json', TIDEMARK_METRICS_PER_DEVICE: 'true' };
    const run = stage.start([], { env });
    const address = (): string => /"status_page":"http:\/\/([^/"]+)/.exec(run.stderr())?.[1] ?? '';
    await until('the page is served', () => address() !== '');
    await using prometheus = await startPrometheus({ target: address(), rules: { [RULES]: impatientRules() } });
    await until('it is ready', async () => (await sampleOf(prometheus, 'tidemark_ready')) === 1);

    const firing = async (): Promise<string[]> =>
      (await prometheus.alerts())
        .filter(({ state }) => state === 'firing')
        .map(({ labels }) => labels['alertname'] ?? '');
    expect(await firing()).not.toContain('TidemarkDestinationDown');
    expect(await sampleOf(prometheus, 'count(tidemark_device_gap_seconds)')).toBe(3);
    expect(await sampleOf(prometheus, 'sum(tidemark_devices)')).toBe(3);

    await bench.influxd.kill();
    await until('the alert fires', async () => (await firing()).includes('TidemarkDestinationDown'));
    expect(await sampleOf(prometheus, 'tidemark_healthy')).toBe(1);
    expect(await sampleOf(prometheus, 'tidemark_ready')).toBe(0);
    expect(await sampleOf(prometheus, 'tidemark_not_ready{code="destination_held"}')).toBe(1);
    await bench.influxd.restart();
    await until('it resolves', async () => !(await firing()).includes('TidemarkDestinationDown'));
    await until('it is ready again', async () => (await sampleOf(prometheus, 'tidemark_ready')) === 1);
    expect(await sampleOf(prometheus, 'tidemark_points_retried_total')).toBeGreaterThan(0);

    const text = await (await fetch(`http://${address()}/metrics`)).text();
    expect(promtool(['check', 'metrics'], text)).toEqual({ code: 0, said: '' });
    const served = new Set([...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name));
    expect(Object.keys(METRICS).filter((name) => !served.has(name))).toEqual([]);
    for (const secret of [KEY, TOKEN]) expect(text).not.toContain(secret);
    // What it says is held against what happened: requests by the simulator's count, points by the database's.
    const requests = [...text.matchAll(/^tidemark_api_requests_total\{.*\} (\d+)$/gm)];
    const sum = requests.reduce((total, [, count]) => total + Number(count), 0);
    expect(Math.abs(sum - stage.simulator.log.total)).toBeLessThan(5);
  });
});

async function sampleOf(prometheus: Prometheus, promql: string): Promise<number | undefined> {
  return [...(await prometheus.query(promql)).values()][0];
}

/**
 * `/metrics`: what events and figures become, by the table; judged by promtool, and with hostile names.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import type { Figures } from '../../src/core/figures.ts';
import { createScrub, Secret } from '../../src/core/secret.ts';
import { createMetrics, type Metrics, type MetricsOptions } from '../../src/observe/metrics.ts';
import { METRICS, PER_DEVICE } from '../../src/observe/metrics-table.ts';
import { prometheusAvailable, promtool } from '../support/prometheus.ts';

const HOSTILE = 'in"flux}\n\\{evil="1"} 5\u202e';
const KEY = 'tmk_secret-4242';

const DEVICE = { deviceId: 'd-1', name: 'Cellar', lagSeconds: 12, gapSeconds: 34 };

const FIGURES: Figures = {
  workspace: { id: 'ws-1', name: 'Cold stores "North"' },
  quota: {
    minute: { limit: 60, budget: 48, spent: 5, others: 7 },
    day: { limit: null, budget: null, spent: 77, others: null },
    waitingUntilMs: 1_700_000_000_500,
    historyWaitsUntilMs: 1_700_000_000_500,
  },
  streams: [{ name: 'alerts', state: 'off', reason: 'the key lacks the scope', last_read_at: null }],
  fleet: {
    states: { live: 3, 'catching-up': 2, silent: 1, unreachable: 0, excluded: 0 },
    outOfService: 1,
    polled: 6,
    complete: 3,
    listed: 6,
    present: 6,
    lastDayMissing: 2,
    lag: { p50: 1, p90: 2, p99: 3, worst: 4.5 },
    coveredShare: 0.5,
    gapSeconds: new Map([['pending', 3600]]),
    devices: [DEVICE],
    leftOut: 5,
  },
  fleetAgeSeconds: 0.1,
  lagTargetSeconds: 420,
  hintsWrong: 3,
  historyOpenSeconds: 99,
  jobs: [{ kind: 'once', share: 0.25, etaSeconds: 60 }],
  destinations: [
    {
      name: HOSTILE,
      blockedReason: 'no',
      pendingPoints: 12,
      pendingSeconds: 34,
      quarantined: 3,
      missing: [{ reason: 'skipped_destination', points: 8 }],
    },
  ],
  archive: { points: 1, bytes: 2, stateBytes: 3, maxBytes: null, diskFreeBytes: 5, isFull: false },
};

const EVENTS: readonly AppEvent[] = [
  {
    type: 'request-done',
    request: 'GET /devices',
    stream: 'devices',
    lane: 'inventory',
    status: 200,
    durationMs: 40,
    fault: null,
    bytes: { wire: 300, decoded: 2000 },
  },
  {
    type: 'request-done',
    request: 'GET /x',
    stream: 'telemetry',
    lane: 'live',
    status: 429,
    durationMs: 4,
    fault: 'throttled',
  },
  {
    type: 'request-done',
    request: 'GET /x',
    stream: 'telemetry',
    lane: 'live',
    status: null,
    durationMs: 4,
    fault: 'unreachable',
  },
  {
    type: 'page-committed',
    deviceId: 'd',
    lane: 'live',
    served: 200,
    readings: 150,
    newPoints: 450,
  },
  { type: 'readings-late', deviceId: 'd', count: 2, worstMs: 1, gracePeriodMs: 1 },
  { type: 'lines-delivered', destination: HOSTILE, lines: 450, durationMs: 20 },
  { type: 'lines-quarantined', destination: HOSTILE, lines: 3, message: KEY },
  { type: 'delivery-blocked', destination: HOSTILE, lines: 47, message: 'no', hint: '', needsPerson: false, waitMs: 1 },
  { type: 'gap-recorded', deviceId: 'd', reason: 'beyond_plan', from: '', to: '' },
  { type: 'quota-short', unmet: 'readings', message: '' },
  { type: 'stream-failed', stream: 'alerts', message: '' },
];

function open(options: Partial<MetricsOptions> = {}): Metrics {
  const metrics = createMetrics({
    figures: () => FIGURES,
    health: () => ({ healthy: true, reasons: [], codes: [] }),
    ready: () => ({ ready: false, reasons: ['x'], codes: ['destination_blocked'], names: ['influx'] }),
    loops: () => [{ loop: 'main', idleMs: 1500 }],
    clock: { nowMs: () => 1_700_000_000_000 },
    version: '9.9.9',
    perDevice: false,
    destinations: [HOSTILE],
    scrub: createScrub([new Secret(KEY)]),
    ...options,
  });
  for (const event of EVENTS) metrics.observe(event);
  return metrics;
}

/** The samples of a scrape, by name and labels. */
async function scrape(metrics: Metrics): Promise<ReadonlyMap<string, number>> {
  const lines = (await metrics.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

/** The names for which a scrape has a help text. */
async function named(metrics: Metrics): Promise<string[]> {
  return [...(await metrics.text()).matchAll(/^# HELP (\S+)/gm)].map(([, name = '']) => name);
}

describe('the served metrics', () => {
  test('is the table, no more and no less, in its words', async () => {
    expect((await named(open())).sort()).toEqual(Object.keys(METRICS).sort());
    expect((await named(open({ perDevice: true }))).sort()).toEqual(Object.keys({ ...METRICS, ...PER_DEVICE }).sort());
    const text = await open().text();
    for (const [name, { kind, help }] of Object.entries(METRICS)) {
      expect(text).toContain(`# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n`);
    }
  });

  test.runIf(prometheusAvailable())('is valid for promtool', async () => {
    const text = await open({ perDevice: true }).text();
    expect(promtool(['check', 'metrics'], text)).toEqual({ code: 0, said: '' });
    // It does judge: one that it dislikes is named.
    expect(promtool(['check', 'metrics'], '# TYPE things_total gauge\nthings_total 1\n').code).not.toBe(0);
  });

  test('has the lag of the event loop without the grain of its samples', async () => {
    const metrics = open();
    const lag = async (): Promise<number | undefined> => {
      await sleep(2500);
      const seen = await scrape(metrics);
      expect(seen.get('tidemark_nodejs_eventloop_lag_max_seconds')).toBeGreaterThanOrEqual(0);
      return seen.get('tidemark_nodejs_eventloop_lag_p99_seconds');
    };
    // A busy machine holds the loop up as well, but not all the time.
    await expect.poll(lag).toBeLessThan(0.2);
  });

  test('counts events', async () => {
    const seen = await scrape(open());
    const has = (name: string): number | undefined => seen.get(name);
    expect(has('tidemark_api_requests_total{stream="devices",lane="inventory",status="200"}')).toBe(1);
    expect(has('tidemark_api_requests_total{stream="telemetry",lane="live",status="429"}')).toBe(1);
    expect(has('tidemark_api_requests_total{stream="telemetry",lane="live",status="none"}')).toBe(1);
    expect(has('tidemark_api_request_duration_seconds_sum{stream="devices"}')).toBe(0.04);
    expect(has('tidemark_api_response_bytes_total{stream="devices",form="wire"}')).toBe(300);
    expect(has('tidemark_api_response_bytes_total{stream="devices",form="decoded"}')).toBe(2000);
    expect(has('tidemark_api_throttled_total')).toBe(1);
    expect(has('tidemark_api_faults_total{fault="unreachable"}')).toBe(1);
    expect(has('tidemark_stream_last_success_timestamp_seconds{stream="devices"}')).toBe(1_700_000_000);
    expect(has('tidemark_stream_last_success_timestamp_seconds{stream="telemetry"}')).toBeUndefined();
    expect(has('tidemark_readings_received_total{lane="live"}')).toBe(200);
    expect(has('tidemark_readings_new_total{lane="live"}')).toBe(150);
    expect(has('tidemark_points_archived_total{lane="live"}')).toBe(450);
    expect(has('tidemark_readings_late_total')).toBe(2);
    expect(has('tidemark_gaps_recorded_total{reason="beyond_plan"}')).toBe(1);
    expect(has('tidemark_gaps_recorded_total{reason="device_gone"}')).toBe(0);
    expect(has('tidemark_quota_short{of="readings"}')).toBe(1);
    expect(has('tidemark_stream_runs_total{stream="alerts",result="failed"}')).toBe(1);
  });

  test('sets gauges: unknown values have no series', async () => {
    const seen = await scrape(open());
    expect(seen.get('tidemark_quota_remaining_requests{window="minute"}')).toBe(48);
    expect(seen.get('tidemark_quota_used_requests{window="minute",by="others"}')).toBe(7);
    expect(seen.get('tidemark_quota_wait_until_timestamp_seconds')).toBe(1_700_000_000.5);
    expect(seen.get('tidemark_freshness_seconds{percentile="90"}')).toBe(2);
    expect(seen.get('tidemark_not_ready{code="destination_blocked"}')).toBe(1);
    expect(seen.get('tidemark_not_ready{code="key_refused"}')).toBe(0);
    expect(seen.get('tidemark_loop_idle_seconds{loop="main"}')).toBe(1.5);
    expect(seen.get('tidemark_stream_state{stream="alerts",state="off"}')).toBe(1);
    expect(seen.get('tidemark_job_progress_ratio{kind="once"}')).toBe(0.25);
    const unknown = [
      'tidemark_quota_limit_requests{window="day"}',
      'tidemark_quota_used_requests{window="day",by="others"}',
      'tidemark_state_limit_bytes',
    ];
    for (const name of unknown) expect(seen.has(name), name).toBe(false);
  });

  test('drops series that are gone, and continues counters that began anew', async () => {
    let figures: Figures = FIGURES;
    const metrics = open({ figures: () => figures, perDevice: true });
    expect((await scrape(metrics)).get('tidemark_hints_wrong_total')).toBe(3);
    figures = { ...FIGURES, jobs: [], hintsWrong: 2, fleet: null };
    const seen = await scrape(metrics);
    expect(seen.get('tidemark_hints_wrong_total')).toBe(5);
    expect(seen.get('tidemark_job_running{kind="once"}')).toBe(0);
    for (const name of [...seen.keys()]) {
      expect(name).not.toMatch(/job_progress|job_eta|freshness_seconds|freshness_worst|coverage_ratio/);
    }
  });

  test('names the workspace, once its id is known', async () => {
    const text = await open().text();
    expect(text).toContain('tidemark_workspace_info{workspace_id="ws-1",workspace_name="Cold stores \\"North\\""} 1\n');
    const unknown = await open({ figures: () => ({ ...FIGURES, workspace: null }) }).text();
    expect(unknown).not.toMatch(/^tidemark_workspace_info/m);
  });

  test('counts the CPU time of the process', async () => {
    const metrics = open();
    const seconds = async (): Promise<number> => (await scrape(metrics)).get('tidemark_process_cpu_seconds_total') ?? 0;
    const work = async (): Promise<void> => {
      const enough = process.cpuUsage().user + 30_000;
      while (process.cpuUsage().user < enough) await metrics.text();
    };
    await work();
    const first = await seconds();
    expect(first).toBeGreaterThan(0.02);
    await work();
    expect((await seconds()) - first).toBeGreaterThan(0.02);
  });

  test('begins the counters of known kinds of failures and waits at 0', async () => {
    const text = await open().text();
    for (const fault of ['server-fault', 'malformed']) expect(text).toContain(`faults_total{fault="${fault}"} 0\n`);
    for (const reason of ['rate', 'day']) expect(text).toContain(`quota_waits_total{reason="${reason}"} 0\n`);
  });

  test('begins the counters of each destination at 0', async () => {
    const seen = await scrape(open({ destinations: ['second'] }));
    for (const what of ['written', 'rejected', 'retried', 'beyond_retention']) {
      expect(seen.get(`tidemark_points_${what}_total{destination="second"}`)).toBe(0);
    }
  });

  test('has missing points of each reason from 0 on', async () => {
    const seen = await scrape(open());
    const rows = [...seen].filter(([series]) => series.startsWith('tidemark_missing_points{'));
    const points = Object.fromEntries(rows.map(([series, value]) => [/reason="(\w+)"/.exec(series)?.[1], value]));
    expect(points).toEqual({ beyond_retention: 0, skipped_destination: 8, cleared: 0, dropped: 0 });
  });
});

describe('names and secrets', () => {
  test('a hostile destination name is one label value and starts no line', async () => {
    const text = await open().text();
    const lines = text.split('\n').filter((line) => line.includes('evil'));
    expect(lines.length).toBeGreaterThan(5);
    for (const line of lines) {
      expect(line).toMatch(
        /^tidemark_\w+\{(?:le="[^"]+",)?destination="in\\"flux\} \\\\\{evil=\\"1\\"\} 5"[^\n]*\} [\d.]+$/,
      );
    }
    expect(text).not.toContain('\u202e');
  });

  test('a secret is nowhere, not even as the name of a device', async () => {
    const fleet = FIGURES.fleet === null ? null : { ...FIGURES.fleet, devices: [{ ...DEVICE, name: `x ${KEY}` }] };
    const text = await open({ figures: () => ({ ...FIGURES, fleet }), perDevice: true }).text();
    expect(text).toContain('tidemark_device_gap_seconds{device_id="d-1",device_name="x ');
    expect(text).not.toContain(KEY);
  });

  test.each(['tidemark:tidemark', 'telemetry', 'second', 'a:build_info', 'HELP', '1.7e9', '="'])(
    'the secret %s changes no name, no label of Tidemark and no figure',
    async (secret) => {
      const withSecret = await open({ scrub: createScrub([new Secret(secret)]) }).text();
      const without = await open({ scrub: (text) => text }).text();
      const steady = (text: string) => text.split('\n').filter((line) => !/^tidemark_(?:process|nodejs)_/.test(line));
      expect(steady(withSecret)).toEqual(steady(without));
    },
  );

  test('single devices are reported only if that is configured; long names are cut', async () => {
    const name = 'x'.repeat(10_000);
    const fleet = FIGURES.fleet === null ? null : { ...FIGURES.fleet, devices: [{ ...DEVICE, name }] };
    const figures = (): Figures => ({ ...FIGURES, fleet });
    expect(await open({ figures }).text()).not.toMatch(/device_id|device_name/);
    const text = await open({ figures, perDevice: true }).text();
    expect(text).toContain('tidemark_devices_left_out 5');
    expect(text).toContain('tidemark_devices_out_of_service 1');
    expect(Math.max(...text.split('\n').map(({ length }) => length))).toBeLessThan(400);
  });
});

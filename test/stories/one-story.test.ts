/**
 * Five stories in virtual time, each seen in every way: the dashboards through Grafana's library, the sentence of the
 * status page, readiness, `/metrics`, the alert rules in promtool, and the events of the log. All of them show the
 * same.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Sync } from '../../src/app/open-sync.ts';
import { statusText } from '../../src/commands/status/text.ts';
import type { AppEvent } from '../../src/core/events.ts';
import { healthOf } from '../../src/core/heartbeats.ts';
import type { ReadyReport } from '../../src/core/status.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { wrapWrites } from '../../src/delivery/destination.ts';
import { createMetrics, type Metrics } from '../../src/observe/metrics.ts';
import { reader } from '../grafana/support/story.ts';
import { liveAsDaemon } from '../support/daemon-rig.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { prometheusAvailable, promtool } from '../support/prometheus.ts';
import { destinationOf, NOW_MS, openBench, openRig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { createWorld, type DeviceSpec } from '../support/trait-world.ts';

const PLAN = { requestsPerMinute: 900, requestsPerDay: 200_000 };
const ADDONS = { north: 7, south: 3 };

/**
 * Two hubs with their add-ons.
 *
 * @param silentFromMs when the northern hub falls silent, and all below it.
 */
function devices(silentFromMs: number | null): DeviceSpec[] {
  return Object.entries(ADDONS).flatMap(([hub, count]) => {
    const silences = silentFromMs === null || hub === 'south' ? [] : [{ fromMs: silentFromMs, toMs: Infinity }];
    const common = { intervalMs: 5 * MINUTE_MS, silences };
    return [
      { ...common, deviceId: hub, name: `Hub ${hub}`, parentDeviceId: null },
      ...Array.from({ length: count }, (_, n) => ({ ...common, deviceId: `${hub}-${n}`, parentDeviceId: hub })),
    ];
  });
}

interface Story {
  readonly forMs: number;
  readonly silentFromMs?: number;
  /** From when on the database accepts nothing. */
  readonly blockedFromMs?: number;
  readonly plan?: typeof PLAN;
  readonly historyMs?: number;
}

/** The views of the daemon at a moment. */
interface Look {
  readonly nowMs: number;
  /** The sentence of the status page. */
  readonly summary: string;
  /** The output of `--status`. */
  readonly status: string;
  /** The lag of `/status.json` and of the page: of the archive and of each database, then of each device. */
  readonly lags: readonly (number | null)[];
  readonly deviceLags: readonly (number | null)[];
  /** Devices that the page lists as silent. */
  readonly silent: number;
  readonly ready: ReadyReport;
  readonly metrics: string;
}

interface Reported extends Look, Disposable {
  /** Somebody who reads the dashboards then. */
  readonly read: ReturnType<typeof reader>;
  readonly later: (minutes: number) => ReturnType<typeof reader>;
  readonly events: readonly AppEvent['type'][];
}

describe.runIf(influxdAvailable() && prometheusAvailable())('one story', () => {
  const bench = sharedBench(openBench);

  /** Plays it, and looks a minute before the end. */
  async function play(story: Story): Promise<Reported> {
    const { forMs, silentFromMs = null, blockedFromMs = Infinity, plan = PLAN, historyMs = 6 * HOUR_MS } = story;
    const world = (originMs: number) =>
      createWorld({ seed: 8, originMs, historyMs: 40 * DAY_MS, devices: devices(silentFromMs) });
    const rig = await openRig(bench, { world, historyMs, settings: { plan } });
    const to = destinationOf(bench, rig.database, rig.clock);
    const sink = wrapWrites(to.sink, async (write) =>
      rig.clock.nowMs() < blockedFromMs
        ? await write()
        : { kind: 'later', message: 'connection refused', waitMs: null },
    );
    let metrics: Metrics | null = null;
    const seen: Look[] = [];
    const life = await liveAsDaemon(rig, {
      forMs,
      changes: { destinations: [{ ...to, sink }] },
      beside: (sync) => {
        metrics = metricsOf(sync, rig.clock);
        sync.listen(metrics.observe);
        return [sync.fleet.run];
      },
      meanwhile: async (watch) => {
        await rig.clock.sleep(forMs - MINUTE_MS);
        const text = (await metrics?.text()) ?? '';
        const report = watch.report();
        const { summary, devices, freshness, destinations } = report;
        const { median_seconds, p95_seconds, max_seconds } = freshness;
        const lags = [median_seconds, p95_seconds, max_seconds, ...destinations.map((each) => each.lag_seconds)];
        const deviceLags = devices.map(({ lag_seconds }) => lag_seconds);
        const silent = devices.filter(({ state }) => state === 'silent').length;
        const state = {
          summary,
          status: statusText(report),
          lags,
          deviceLags,
          silent,
          ready: watch.ready(),
          metrics: text,
        };
        seen.push({ nowMs: rig.clock.nowMs(), ...state });
      },
    });
    expect(life.error).toBeNull();
    const [look] = seen;
    if (look === undefined) throw new Error('nobody looked');
    const place = { url: bench.influxd.url, database: rig.database };
    const later = (minutes: number) => reader({ place, toMs: look.nowMs + minutes * MINUTE_MS });
    const events = life.events.map(({ type }) => type);
    const dispose = (): void => rig[Symbol.dispose]();
    return { ...look, read: later(0), later, events, [Symbol.dispose]: dispose };
  }

  test('a quiet fleet is green and sends no alert; a stopped daemon turns red within 20 minutes', async () => {
    using reported = await play({ forMs: HOUR_MS });
    expect(reported.summary).toMatch(/^In sync: all 12 devices/);
    expect(reported.ready.ready).toBe(true);
    expect(reported.metrics).toMatch(/^tidemark_ready 1$/m);
    expect(reported.metrics).toMatch(/^tidemark_freshness_seconds\{percentile="90"\} \d/m);
    expect(alerts(reported.metrics, { nowMs: reported.nowMs })).toEqual([]);
    expect(reported.events).not.toContain('delivery-blocked');
    expect(reported.events).not.toContain('api-outage');
    for (const uid of ['fleet', 'start']) {
      const states = (await reported.read.numbers(uid, 'Devices by state')).join();
      expect(states).toMatch(/live: 12/);
      expect(states).not.toMatch(/silent|red/);
      expect(await reported.read.numbers(uid, 'Late')).toEqual(['Late: 0, green']);
      expect(await reported.read.numbers(uid, 'Silent')).toEqual(['Silent: 0, green']);
      expect((await reported.read.numbers(uid, 'Open alerts')).join()).toMatch(/^Open: \d+, (?:green|orange)$/);
      expect((await reported.read.numbers(uid, 'Lag')).join()).toMatch(/^median \(.*, green,p95 \(.*, green$/);
    }
    expect(await reported.read.table('start', 'Devices that need attention')).toEqual([]);

    // The daemon ends a minute after this look.
    const stopped = reported.later(21);
    expect(alerts('', { up: 0, nowMs: reported.nowMs })).toEqual(['TidemarkDown']);
    for (const title of ['Devices by state', 'Silent', 'Late', 'Open alerts', 'Lag']) {
      expect((await stopped.numbers('fleet', title)).join(), title).toMatch(/, red$/);
    }
    const rows = await stopped.table('start', 'Devices that need attention');
    expect(rows.map(({ Sync, Lag }) => `${Sync} ${/red$/.test(Lag ?? '')}`)).toEqual(
      Array.from({ length: 12 }, () => 'unknown, red true'),
    );
  });

  test('a database that accepts nothing: delivery is blocked, and its views are red', async () => {
    using reported = await play({ forMs: 80 * MINUTE_MS, blockedFromMs: NOW_MS + 45 * MINUTE_MS });
    expect(reported.summary).toMatch(/Delivery to the database is (?:held|blocked): connection refused/);
    expect(reported.ready.codes.join()).toMatch(/^destination_(?:held|blocked)$/);
    expect(reported.metrics).toMatch(/^tidemark_destination_up\{destination="influx"\} 0$/m);
    expect(alerts(reported.metrics, { nowMs: reported.nowMs })).toEqual(['TidemarkDestinationDown']);
    expect(reported.events).toContain('delivery-blocked');
    // The last points before minute 45 are delivered at once. No view reports that the daemon has stopped: it has not.
    expect((await reported.read.numbers('fleet', 'Lag')).join()).toMatch(
      /^no report from Tidemark; complete up to: 3[5-9] minutes ago, red$/,
    );
    expect((await reported.read.numbers('start', 'Devices by state')).join()).toMatch(/, red$/);
  });

  test('a hub that falls silent, with all below it: the copy is complete, the fleet is not', async () => {
    using reported = await play({ forMs: 2 * HOUR_MS, silentFromMs: NOW_MS + 30 * MINUTE_MS });
    // All readable ranges are complete; the list of the page has the silent devices.
    expect(reported.summary).toMatch(/^In sync: all 12 devices/);
    expect(reported.silent).toBe(8);
    expect(reported.ready.ready).toBe(true);
    expect(reported.metrics).toMatch(/^tidemark_devices\{state="silent"\} 8$/m);
    expect(alerts(reported.metrics, { nowMs: reported.nowMs })).toEqual(['TidemarkFleetSilent']);
    expect((await reported.read.numbers('fleet', 'Devices by state')).join()).toMatch(/silent: 8, orange/);
    for (const uid of ['fleet', 'start'])
      expect(await reported.read.numbers(uid, 'Silent')).toEqual(['Silent: 8, orange']);
    expect((await reported.read.numbers('fleet', 'Lag')).join()).toMatch(/^median \(.*, green,p95 \(.*, green$/);
    const [hub] = await reported.read.table('fleet', 'Hubs');
    expect(hub).toMatchObject({ Hub: 'Hub north', 'Hub online': 'Not online, red', 'Add-ons reporting': '0, text' });
    const attention = await reported.read.table('start', 'Devices that need attention');
    expect(attention.map(({ Id }) => String(Id).replace(/-.*/, ''))).toEqual(Array.from({ length: 8 }, () => 'north'));
  });

  test('an initial sync: blue, neither green nor red, and no alert is sent', async () => {
    const plan = { requestsPerMinute: 12, requestsPerDay: 20_000 };
    using reported = await play({ forMs: 2 * MINUTE_MS, plan, historyMs: 30 * DAY_MS });
    expect(reported.summary).toMatch(/^Initial sync: 0 of 12 devices complete/);
    // Nobody is up to date: no lag of 0, wherever one is shown.
    expect(reported.lags).toEqual([null, null, null, null]);
    expect(reported.deviceLags).toEqual(Array.from({ length: 12 }, () => null));
    expect(reported.status).toMatch(/^Lag +initial sync; poll interval 60 s$/m);
    expect(reported.metrics).not.toMatch(/^tidemark_freshness_(?:worst_)?seconds/m);
    expect(reported.ready.codes).toContain('last_day_missing');
    expect(reported.metrics).toMatch(/^tidemark_ready 0$/m);
    expect(alerts(reported.metrics, { nowMs: reported.nowMs })).toEqual([]);
    const lag = await reported.read.numbers('fleet', 'Lag');
    expect(lag).toEqual(['devices catching up: 12, blue']);
    expect(await reported.read.numbers('fleet', 'Late')).toEqual(['Late: initial sync, blue']);
    const rows = await reported.read.table('fleet', 'Devices');
    expect(rows.map(({ Lag }) => Lag)).toEqual(Array.from({ length: 12 }, () => 'initial sync, blue'));
    const { fields } = await reported.read.drawn('fleet', 'Lag over time');
    expect(fields.filter(({ title }) => title !== 'Time')).toEqual([]);
    expect(rows.map(({ Sync }) => Sync).join()).not.toMatch(/red/);
  });
});

function metricsOf(sync: Sync, clock: { nowMs(): number; monoMs(): number }): Metrics {
  const { measureFigures, ready, heartbeats, deliverers, fleet } = sync;
  const figures = () => {
    fleet.request();
    return measureFigures();
  };
  return createMetrics({
    ...{ figures, ready, clock, version: '0', perDevice: false, scrub: (text: string) => text },
    health: () => healthOf(heartbeats.loops()),
    loops: heartbeats.loops,
    destinations: deliverers.map(({ name }) => name),
  } as Parameters<typeof createMetrics>[0]);
}

/** The alerts that fire, except the watchdog, once the metrics have stayed so for half an hour: by the real rules. */
function alerts(metrics: string, { up = 1, nowMs }: { readonly up?: number; readonly nowMs: number }): string[] {
  const lines = metrics.split('\n').filter((line) => /^tidemark_/.test(line) && !/_bucket|_sum|_count/.test(line));
  const series = lines.map((line) => {
    const [, name = '', labels = '', text = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    const value = Number(text);
    // The clock of a test of rules begins at 0; what happened lately happens again and again.
    const isTime = name.endsWith('_timestamp_seconds') && value > 0;
    const values = isTime ? `${Math.round(value - nowMs / 1000)}+60x60` : `${value.toFixed(3)}x60`;
    const own = ['job="tidemark"', 'instance="a"', ...(labels === '' ? [] : [labels])];
    return { series: `${name}{${own.join(',')}}`, values };
  });
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-story-'));
  try {
    const test = {
      rule_files: [resolve('config/prometheus/tidemark-alerts.yml')],
      evaluation_interval: '1m',
      tests: [
        {
          interval: '1m',
          input_series: [{ series: 'up{job="tidemark",instance="a"}', values: `${up}x60` }, ...series],
          promql_expr_test: [
            {
              expr: 'count by (alertname) (ALERTS{alertstate="firing", alertname!="TidemarkWatchdog"}) or absent(nothing)',
              eval_time: '30m',
              exp_samples: [],
            },
          ],
        },
      ],
    };
    writeFileSync(join(directory, 'test.yml'), JSON.stringify(test));
    // Nothing is expected, so the error shows the actual value.
    const { said } = promtool(['test', 'rules', 'test.yml'], '', directory);
    if (!said.includes('got:')) throw new Error(said);
    return [...said.matchAll(/alertname="?\\?"?(Tidemark\w+)/g)].map(([, name = '']) => name).sort();
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

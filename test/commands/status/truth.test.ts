/**
 * The report of `--status` against the truth: the seed of the simulated workspace and a query of the database.
 */
import { describe, expect, test } from 'vitest';
import { saveRunsWith, saveSchedules } from '../../../src/app/settings.ts';
import { readCron } from '../../../src/config/cron.ts';
import type { Interval } from '../../../src/core/intervals.ts';
import type { Schedule, Sink } from '../../../src/core/ports.ts';
import type { StatusReport } from '../../../src/core/status.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, parseTimestamp } from '../../../src/core/time.ts';
import { tileSection } from '../../../src/page/overview.ts';
import { API_PROBLEM } from '../../../src/scheduler/api-state.ts';
import { liveAsDaemon, MEASURING_DEVICES, worldOf } from '../../support/daemon-rig.ts';
import type { FaultPlan } from '../../support/faulty-simulator.ts';
import { influxdAvailable } from '../../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig, type RigOptions } from '../../support/rig.ts';
import { sharedBench } from '../../support/shared-bench.ts';
import { configOf, deviceOf, reportOf, textOf, unwrapped } from './support.ts';

describe.runIf(influxdAvailable())('status', () => {
  const bench = sharedBench(openBench);

  const rigOf = async (options: Partial<RigOptions> = {}): Promise<Rig> =>
    await openRig(bench, { world: worldOf(MEASURING_DEVICES), historyMs: 2 * DAY_MS, ...options });

  /** The part of the seed that is not in the database has to lie in the reported gaps, and nowhere else. */
  async function expectTrue(rig: Rig, report: StatusReport, least: number): Promise<void> {
    const toNs = timeOf(report.generated_at);
    const fromNs = toNs - BigInt(2 * DAY_MS - 1000) * 1_000_000n;
    const { missingAt, invented, expected } = await rig.verdict(NOW_MS, { fromNs, toNs });
    const gaps = new Map(report.devices.map(({ device_id, gaps: all }) => [device_id, all.map(toInterval)]));
    const covered = new Map(report.devices.map(({ device_id, covered: all }) => [device_id, all.map(pairToInterval)]));
    const isIn = (covered: readonly Interval[] | undefined, at: bigint): boolean =>
      (covered ?? []).some(({ from, to }) => from <= at && at < to);
    const limit = toNs - BigInt(2 * MINUTE_MS + 1500) * 1_000_000n;
    const missingBefore = missingAt.filter(({ at }) => at < limit);
    expect(invented).toEqual([]);
    expect(missingAt.filter(({ deviceId, at }) => isIn(covered.get(deviceId), at)).slice(0, 3)).toEqual([]);
    expect(missingBefore.filter(({ deviceId, at }) => !isIn(gaps.get(deviceId), at)).slice(0, 3)).toEqual([]);
    expect(expected).toBeGreaterThan(least);
  }

  test('the schedules are those of the daemon that runs, whatever this configuration has', async () => {
    using rig = await rigOf();
    const config = configOf(rig);
    const often = readCron('*/5 * * * * *') as Schedule;
    const targetNow = () => reportOf(config, rig.clock).freshness.target_seconds;
    const sync = rig.open();
    expect(targetNow()).toBe(60);
    saveSchedules(sync.context.store, { ...config.sync.schedules, telemetry: often });
    expect(targetNow()).toBe(5);
    sync.context.store.saveFact('schedules', '{"telemetry":"of another version"}');
    expect(targetNow()).toBe(60);
    saveSchedules(sync.context.store, { ...config.sync.schedules, telemetry: often });
    sync.close();
    expect(targetNow()).toBe(60);
  });

  test('the databases and the filter are those of the daemon that runs, whatever this configuration has', async () => {
    using rig = await rigOf();
    await rig.once();
    const influx = { url: 'http://elsewhere:8086', bucket: 'other', org: '', kind: 'auto' };
    const sync = { ...configOf(rig).sync, leftOut: { ...configOf(rig).sync.leftOut, exclude: ['often'] } };
    const config = { ...configOf(rig), influx, sync } as unknown as ReturnType<typeof configOf>;
    const shown = () => {
      const { destinations, devices } = reportOf(config, rig.clock);
      const excluded = devices.filter(({ state }) => state === 'excluded').map(({ device_id }) => device_id);
      return [destinations.map(({ name, pending_points }) => [name, pending_points]), excluded];
    };
    const daemon = rig.open();
    const unsent = ['influx', expect.any(Number)];
    expect(shown()).toEqual([[unsent], ['often']]);
    const { spec } = daemon.context.settings.filter;
    saveRunsWith(daemon.context.store, spec, daemon.deliverers);
    const own = daemon.deliverers.map(({ name }) => [name, 0]);
    expect(shown()).toEqual([own, []]);
    // A demo without a database.
    saveRunsWith(daemon.context.store, spec, []);
    expect(shown()).toEqual([[], []]);
    expect(textOf(config, rig.clock)).toContain('Delivery    no database is configured');
    daemon.context.store.saveFact('runs_with', '{"destinations":"of another version"}');
    expect(shown()).toEqual([[unsent], ['often']]);
    saveRunsWith(daemon.context.store, spec, []);
    daemon.close();
    expect(shown()).toEqual([[unsent], ['often']]);
  });

  test('after a complete sync everything is covered, by the seed as by the report, in one screen', async () => {
    using rig = await rigOf();
    await rig.once();
    const config = configOf(rig);
    const report = reportOf(config, rig.clock);
    await expectTrue(rig, report, 8000);
    expect(report.totals).toMatchObject({ devices: 3, devices_complete: 3 });
    expect(report.totals.covered_share).toBe(1);
    const [one] = report.devices;
    expect(textOf(config, rig.clock, one?.device_id)).toMatch(/^Responses .*: HTTP 200, \d+ new readings?$/m);
    expect(unwrapped(textOf(config, rig.clock))).toMatch(/Archive [\d,]+ points of all measurements, /);
    expect(report.gaps).toEqual([]);
    expect(report.destinations).toMatchObject([
      {
        name: 'influx',
        pending_points: 0,
        quarantined: 0,
        delivered_points: null,
        oldest_pending_at: null,
        missing: [],
      },
    ]);
    expect(report.streams.map(({ name, state }) => `${name} ${state}`)).toEqual([
      'account on',
      'devices on',
      'telemetry on',
      'alerts on',
    ]);
    const { lanes, day } = report.allowance;
    expect(lanes.reduce((sum, lane) => sum + lane.day, 0)).toBe(rig.simulator.log.total);
    expect(day).toMatchObject({ spent: rig.simulator.log.total });
    const text = textOf(config, rig.clock);
    expect(unwrapped(text)).toMatch(
      /No daemon is running; the last request was at \S+Z\. Start it, or run --once\. All 3 devices are complete; the database has accepted every point\. Delivery/,
    );
    const started = rig.open();
    expect(textOf(config, rig.clock)).not.toContain('No daemon is running');
    started.close();
    expect(unwrapped(text)).toMatch(/Streams account last read .* ago, devices last read .* ago, /);
    expect(text).toContain('Gaps        none');
    expect(text).toContain('Delivery    every point delivered');
    expect(text.split('\n').length).toBeLessThanOrEqual(24);
  });

  test.each([
    ['key_refused', 'the API rejects the key. Create a new one'],
    ['api_unreachable', 'no connection'],
  ])('%s: no stream is on and no device up to date, although nothing is missing yet', async (code, problem) => {
    using rig = await rigOf();
    await rig.once();
    const config = configOf(rig);
    const daemon = rig.open();
    expect(textOf(config, rig.clock, 'often')).toMatch(/\nUp to date: live/);
    daemon.context.store.saveFact(API_PROBLEM, JSON.stringify({ code, text: problem }));
    const report = reportOf(config, rig.clock);
    expect(report.summary).toBe(`The API cannot be read: ${problem}`);
    expect(report.streams.map(({ state }) => state)).toEqual(['failing', 'failing', 'failing', 'failing']);
    expect(unwrapped(textOf(config, rig.clock))).toMatch(
      /Streams all failing \(the API (?:rejects the key|cannot be read)\) /,
    );
    const next = () => unwrapped(textOf(config, rig.clock)).match(/ Next .*/)?.[0];
    if (code === 'key_refused') expect(next()).toBe(' Next no poll until the key is accepted; no gaps to close ');
    else {
      expect(next()).toMatch(/ Next (?:[a-z, ]+ now; )?[a-z]+ \d\d:.* UTC; no gaps to close /);
      const retryAtMs = Date.parse('2099-01-01T10:20:30Z');
      daemon.context.store.saveFact(API_PROBLEM, JSON.stringify({ code, text: problem, retryAtMs }));
      expect(next()).toMatch(/ Next (?:[a-z]+ 10:20:30(?:, | UTC)){4}; no gaps to close /);
      daemon.context.store.saveFact(API_PROBLEM, JSON.stringify({ code, text: problem }));
    }
    const device = deviceOf(config, rig.clock, 'often');
    const nextPoll = / Next poll (.*?) Responses /.exec(unwrapped(textOf(config, rig.clock, 'often')))?.[1];
    if (code === 'key_refused') expect(nextPoll).toBe('no poll until the key is accepted');
    else expect(nextPoll).toMatch(/ UTC/);
    expect(device).toMatchObject({ fresh: true, polled: false, reasons: [`The API cannot be read: ${problem}.`] });
    expect(unwrapped(textOf(config, rig.clock, 'often'))).toContain(
      `Not polled now. The API cannot be read: ${problem}. `,
    );
    // The same lag as on the page, although the device list shows nothing newer.
    await rig.clock.sleep(90_000);
    expect(reportOf(config, rig.clock).freshness.median_seconds).toBe(0);
    const [, lag] =
      / Lag median (.*?), p95 .*; poll interval 60 s; last poll \1 ago /.exec(unwrapped(textOf(config, rig.clock))) ??
      [];
    expect(tileSection(reportOf(config, rig.clock)).html).toContain(`<b>${lag}</b><span>no telemetry read since`);
    daemon.close();
    // A key is replaced before a daemon is started.
    const [failed, stopped] = [`Polling failed at the last attempt: ${problem}`, 'Start it, or run --once.'];
    const text = unwrapped(textOf(config, rig.clock));
    if (code === 'key_refused') expect(text).toMatch(new RegExp(` ${failed}\\. No daemon is running; .* ${stopped} `));
    else expect(text).toContain(`${stopped} ${failed} `);
  });

  test('a key that --once has used in vain is reported with its remedy', async () => {
    using rig = await rigOf();
    const api = { url: 'http://simulator.test/external/v1', key: () => 'sim_another', share: 0.8, concurrency: 4 };
    await expect(rig.once({ api })).rejects.toThrow('rejects the key');
    const text = unwrapped(textOf(configOf(rig), rig.clock));
    expect(text).toMatch(/ Polling failed at the last attempt: the API rejects the key: .* create a new key /);
    expect(text).toMatch(/\. No daemon is running; the last request was at \S+\. Start it, or run --once\. /);
  });

  test('unavailable readings are reported with their reason, and nothing else is missing', async () => {
    const faults: FaultPlan = (_, { path }) => {
      if (path.includes('/often/telemetry')) return { kind: 'malformed' };
      return path.includes('/seldom/telemetry') ? { kind: 'server-error' } : null;
    };
    using rig = await rigOf();
    await rig.once();
    await rig.clock.sleep(3 * HOUR_MS);
    rig.simulator.faults = faults;
    await rig.once();
    const config = configOf(rig);
    const report = reportOf(config, rig.clock);
    await expectTrue(rig, report, 8000);
    const reasonsOf = (id: string) =>
      report.devices.find(({ device_id }) => device_id === id)?.gaps.map(({ reason }) => reason);
    // Time passed during the tries: the last minutes were not requested.
    expect(reasonsOf('often')).toEqual(['page_rejected', 'pending']);
    expect(reasonsOf('seldom')).toEqual(['unreachable', 'pending']);
    const text = unwrapped(textOf(config, rig.clock));
    expect(text).toContain('invalid responses: 1 device, ');
    expect(text).toContain('device unreachable: 1 device, ');
    expect(text).toMatch(/Devices with the largest gaps or lag .*often .*lag .*; 2 gaps, .*seldom .*lag .*; 2 gaps/);
    const often = deviceOf(config, rig.clock, 'often');
    expect(often.fresh).toBe(false);
    expect(often.failed_requests).toBeGreaterThan(0);
    expect(often.last_answers[0]).toMatchObject({ fault: 'malformed' });
    expect(often.reasons.join(' ')).toMatch(
      /No daemon is running.*last request for the device failed: the response could not be parsed/s,
    );
    expect(often.reasons.join(' ')).toMatch(/After failures \(invalid responses\) it is tried again at \d{4}-/);
    expect(often.next_due_at).toBe(often.named_gaps.at(-1)?.retry_at);
    expect(unwrapped(textOf(config, rig.clock, 'seldom'))).toContain('the API failed (5xx)');
  });

  test('a sync that was interrupted has stored exactly what it reports', async () => {
    using rig = await rigOf({ settings: { plan: { requestsPerMinute: 60, requestsPerDay: 100_000 } } });
    const stop = new AbortController();
    const running = rig.once({}, stop.signal);
    await rig.clock.sleep(20_000);
    stop.abort();
    await running;
    const config = configOf(rig);
    const partial = reportOf(config, rig.clock);
    expect(partial.gaps.map(({ reason }) => reason)).toEqual(['pending']);
    expect(partial.totals.covered_share).toBeLessThan(0.9);
    expect(unwrapped(textOf(config, rig.clock))).toMatch(
      /not read yet: 3 devices, .*; start the daemon or run --once /,
    );
    // The points in the archive are delivered, and no new ones are read.
    rig.simulator.faults = (_, { path }) => (path.includes('/telemetry') ? { kind: 'server-error' } : null);
    await rig.once();
    await expectTrue(rig, reportOf(config, rig.clock), 8000);
    rig.simulator.faults = null;
    await rig.once();
    expect(reportOf(config, rig.clock).gaps).toEqual([]);
  });

  test('beside a running daemon it reports the same as the daemon, and for a database that is down since when', async () => {
    const devices = [
      { deviceId: 'steady', intervalMs: 5 * MINUTE_MS },
      { deviceId: 'seldom', intervalMs: 17 * MINUTE_MS },
    ];
    using rig = await rigOf({ world: worldOf(devices) });
    await rig.once();
    const config = configOf(rig);
    const message = 'connect ECONNREFUSED';
    const down: Sink = { name: 'influx', write: () => Promise.resolve({ kind: 'later', message, waitMs: null }) };
    const look = (own: StatusReport) => ({
      own,
      report: reportOf(config, rig.clock),
      text: textOf(config, rig.clock),
      deviceText: textOf(config, rig.clock, 'steady'),
    });
    const seen: ReturnType<typeof look>[] = [];
    await liveAsDaemon(rig, {
      forMs: 3 * HOUR_MS + 20 * MINUTE_MS,
      changes: { destinations: [{ sink: down, identity: rig.database, batchLines: 5000 }] },
      meanwhile: async ({ report }) => {
        await rig.clock.sleep(3 * HOUR_MS);
        seen.push(look(report()));
      },
    });
    for (const { report, own, text, deviceText } of seen) {
      expect(Object.keys(report)).toEqual(Object.keys(own));
      for (const member of ['devices', 'process', 'gaps', 'totals', 'jobs'] as const) {
        expect(withoutLag(report[member]), member).toEqual(withoutLag(own[member]));
      }
      expect(report.process.running).toBe(true);
      // Facts that only the delivering process has.
      expect(Date.parse(own.destinations[0]?.next_attempt_at ?? '')).toBeGreaterThan(Date.parse(own.generated_at) - 1);
      const ownOnly = { delivered_points: null, next_attempt_at: null, blocked_since: null };
      const blockedMs = Date.parse(own.generated_at) - Date.parse(own.destinations[0]?.blocked_since ?? '');
      expect([blockedMs > 2.9 * HOUR_MS, blockedMs <= 3 * HOUR_MS]).toEqual([true, true]);
      expect(report.destinations).toEqual([{ ...own.destinations[0], ...ownOnly }]);
      expect(report.destinations[0]?.blocked_reason).toBe(message);
      expect(unwrapped(text)).toMatch(/Delivery [\d,]+ points wait, the oldest for (?:2\.9|3(?:\.0)?) h/);
      expect(unwrapped(text)).toMatch(
        /Lag in the archive: median .*; in influx: median (?:2\.9|3(?:\.\d)?) h; poll interval/,
      );
      expect(text).toContain(`blocked: ${message}`);
      expect(text).toContain('Tidemark is running: last request');
      expect(deviceText).toMatch(/^steady, as of .*\nUp to date: /);
      // The coverage and its bar end at one time.
      const [coveredTo, drawnTo] = [/ to (\S+ \S+) covered/, / to (\S+ \S+), [^,]+ per character/].map(
        (pattern) => pattern.exec(unwrapped(deviceText))?.[1],
      );
      expect([coveredTo, drawnTo]).toEqual([drawnTo, expect.stringMatching(/^\d/)]);
    }
    expect(seen).toHaveLength(1);
    // Without a delivering process, it reports that.
    const after = unwrapped(textOf(config, rig.clock));
    expect(after).toContain('No daemon is running; the last request was at ');
    expect(after).toContain(`blocked at the last attempt: ${message}`);
  });

  test('the target lag grows where the quota does not carry the schedules', async () => {
    using rig = await rigOf({ settings: { plan: { requestsPerMinute: 10, requestsPerDay: 400 } }, historyMs: HOUR_MS });
    const life = await liveAsDaemon(rig, { forMs: 3 * HOUR_MS });
    expect(life.events.some(({ type }) => type === 'quota-short')).toBe(true);
    const config = configOf(rig);
    const { freshness } = reportOf(config, rig.clock);
    expect(freshness).toMatchObject({
      target_seconds: 60,
      expected_seconds: life.lastReport.freshness.expected_seconds,
    });
    expect(freshness.expected_seconds).toBeGreaterThan(120);
    expect(unwrapped(textOf(config, rig.clock))).toMatch(
      /poll interval 60 s, but the quota allows one every \d+ (?:s|min) \(--plan/,
    );
  });
});

/** The server's clock is known to a second or so: who only looks goes by the local one. */
function withoutLag(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (key, inner) => {
    if (key === 'lag_seconds' || key === 'gaps' || key === 'covered_share') return undefined;
    return inner;
  });
}

function timeOf(text: string): bigint {
  const at = parseTimestamp(text);
  if (at === null) throw new Error(`no time: ${text}`);
  return at;
}

function toInterval({ from, to }: { from: string; to: string }): Interval {
  return { from: timeOf(from), to: timeOf(to) };
}

function pairToInterval([from, to]: readonly [string, string]): Interval {
  return { from: timeOf(from), to: timeOf(to) };
}

/**
 * `--backfill` without a daemon, on the virtual clock: what it fills, what it costs, when it ends and with what.
 */
import { describe, expect, test } from 'vitest';
import { type BackfillSummary, backfillEndText } from '../../../src/commands/backfill/result.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../src/core/time.ts';
import { worldOf } from '../../support/daemon-rig.ts';
import { always, falselyEmpty, onPath, upsideDown } from '../../support/faults.ts';
import { influxdAvailable } from '../../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig, type RigOptions } from '../../support/rig.ts';
import { sharedBench } from '../../support/shared-bench.ts';
import { unhurried } from '../../support/virtual-clock.ts';
import { backfillAlone, coverageOf, telemetryRequests } from './support.ts';

/** Its text without line breaks. */
const oneLine = (summary: BackfillSummary): string => backfillEndText(summary).replaceAll(/\s+/g, ' ');

const DEVICES = [
  { deviceId: 'often', intervalMs: MINUTE_MS, jitter: 0.5 },
  { deviceId: 'tied', intervalMs: 5 * MINUTE_MS, traits: ['ties' as const] },
  { deviceId: 'seldom', intervalMs: 17 * MINUTE_MS },
];

describe.runIf(influxdAvailable())('--backfill alone', () => {
  const bench = sharedBench(openBench);

  const world = worldOf(DEVICES, 40 * DAY_MS);

  const rigOf = async (options: Partial<RigOptions> = {}): Promise<Rig> =>
    await openRig(bench, { world, historyMs: 2 * DAY_MS, ...options });

  const expectThere = async (rig: Rig, fromMs: number, least: number): Promise<void> => {
    const verdict = await rig.verdict(NOW_MS, { fromNs: BigInt(fromMs) * 1_000_000n });
    expect(verdict.missing.slice(0, 5)).toEqual([]);
    expect(verdict.invented.slice(0, 5)).toEqual([]);
    expect(verdict.expected).toBeGreaterThan(least);
  };

  test('fills the span of all devices and delivers it, by requests of its own lane alone', async () => {
    using rig = await rigOf();
    const { summary, progress } = await backfillAlone(
      rig,
      { fromMs: NOW_MS - 15 * DAY_MS },
      { everyMs: 2 * SECOND_MS },
    );
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, devices: 3, devices_complete: 3, missing: [] });
    expect(summary.destinations).toMatchObject([{ pending_points: 0, quarantined: 0 }]);
    expect(backfillEndText(summary)).toMatch(/The database: every point is stored \([\d,]+ points delivered during/);
    const again = summary.destinations.map((destination) => ({ ...destination, delivered_points: 0 }));
    expect(backfillEndText({ ...summary, destinations: again })).toContain('The database: every point is stored.');
    // Gaps that the next polls close are summed up.
    const gap = (deviceId: string, from: string): BackfillSummary['missing'][number] => {
      return { device_id: deviceId, device_name: deviceId, from, to: summary.to, reason: 'pending' };
    };
    const [recent, old] = [70 * SECOND_MS, HOUR_MS].map((ms) => new Date(Date.parse(summary.to) - ms).toISOString());
    const newest = [gap('often', recent ?? ''), gap('tied', recent ?? '')];
    const sum =
      'Only the newest readings of 2 devices (at most 70 s) are not read yet: the next polls read them, or the same';
    expect(oneLine({ ...summary, missing: newest })).toContain(sum);
    expect(oneLine({ ...summary, missing: newest })).not.toMatch(/Remaining gaps|often/);
    const both = oneLine({ ...summary, missing: [gap('seldom', old ?? ''), ...newest] });
    expect(both).toContain(sum);
    expect(both).toMatch(/not read yet: 60 min on 1 device: .* By device, the longest first: seldom: 60 min from/);
    expect(both).not.toContain('often');
    expect(summary.readings).toBeGreaterThan(25_000);
    expect(summary.requests).toBe(telemetryRequests(rig));
    expect(rig.simulator.log.total).toBe(summary.requests + 2);
    await expectThere(rig, NOW_MS - 15 * DAY_MS, 25_000);
    const shares = progress.map(({ totals }) => totals.covered_share ?? -1);
    expect(shares.length).toBeGreaterThan(5);
    expect(shares).toEqual(shares.toSorted((a, b) => a - b));
    expect(
      progress.some(({ eta }) =>
        /^about [\d,]+ requests to go at \d+ a minute(?:, less if devices are younger than the range)?$/.test(
          eta?.basis ?? '',
        ),
      ),
    ).toBe(true);
    // Full pages: at most 1 in 50 more than there are readings for.
    expect(summary.requests).toBeLessThan((summary.readings / 196) * 1.02 + 3 * 4);
  });

  test('of some devices requests nothing about the others', async () => {
    using rig = await rigOf();
    const { summary } = await backfillAlone(rig, { fromMs: NOW_MS - 10 * DAY_MS, devices: ['seldom'] });
    expect(summary).toMatchObject({ outcome: 'complete', devices: 1 });
    expect(telemetryRequests(rig, 'seldom')).toBe(telemetryRequests(rig));
    expect(coverageOf(rig, 'seldom')).toHaveLength(1);
    expect(coverageOf(rig, 'often')).toEqual([]);
  });

  test('waits for the device list, because the stored one may be incomplete', async () => {
    let failures = 0;
    const devices = [
      { deviceId: 'old', intervalMs: 5 * MINUTE_MS },
      { deviceId: 'young', intervalMs: 5 * MINUTE_MS, appearsAtMs: NOW_MS + HOUR_MS },
    ];
    using rig = await rigOf({
      world: worldOf(devices, 5 * DAY_MS),
      faults: onPath(/^\/devices$/, () => {
        failures -= 1;
        return failures >= 0 ? { kind: 'server-error' } : null;
      }),
    });
    await backfillAlone(rig, { fromMs: NOW_MS - HOUR_MS });
    await rig.clock.sleep(2 * HOUR_MS);
    // More than a request is tried again for by itself.
    failures = 6;
    const ofOne = await backfillAlone(rig, { fromMs: NOW_MS - HOUR_MS, devices: ['young'] });
    expect(ofOne.summary).toMatchObject({ outcome: 'complete', exit_code: 0, devices: 1 });
    failures = 6;
    const ofAll = await backfillAlone(rig, { fromMs: NOW_MS - HOUR_MS });
    expect(ofAll.summary).toMatchObject({ outcome: 'complete', exit_code: 0, devices: 2 });
  });

  test('of a covered range requests only the account and the device list', async () => {
    using rig = await rigOf();
    const asked = { fromMs: NOW_MS - 5 * DAY_MS, toMs: NOW_MS - HOUR_MS };
    await backfillAlone(rig, asked);
    const before = rig.simulator.log.total;
    const { summary } = await backfillAlone(rig, asked);
    expect(rig.simulator.log.requests.slice(before).map(({ path }) => path)).toEqual(['/account', '/devices']);
    expect(summary).toMatchObject({ outcome: 'complete', requests: 0, readings: 0, devices_complete: 3 });
  });

  test('ends at its start minus the grace period, and reads nothing before or after its range', async () => {
    using rig = await rigOf();
    const startedMs = rig.clock.nowMs();
    await backfillAlone(rig, { fromMs: NOW_MS - 3 * DAY_MS });
    for (const { deviceId } of DEVICES) {
      const [[fromMs, toMs] = [0, 0], ...more] = coverageOf(rig, deviceId);
      expect(more).toEqual([]);
      expect(fromMs).toBe(NOW_MS - 3 * DAY_MS);
      expect(startedMs - toMs).toBeGreaterThanOrEqual(2 * MINUTE_MS);
      expect(startedMs - toMs).toBeLessThan(2 * MINUTE_MS + 5 * SECOND_MS);
    }
  });

  test('is breadth first: the last day of all, then the week, then the rest', async () => {
    using rig = await rigOf();
    await backfillAlone(rig, { fromMs: NOW_MS - 11 * DAY_MS });
    const bounds = rig.simulator.log.requests.flatMap(({ query, path }) => {
      const before = new URLSearchParams(query).get('before');
      return before === null || !path.endsWith('/telemetry') ? [] : [NOW_MS - Date.parse(before)];
    });
    const reaches = bounds.map((ageMs) => (ageMs < DAY_MS - MINUTE_MS ? 0 : ageMs < 7 * DAY_MS - MINUTE_MS ? 1 : 2));
    // Four are requested at once.
    const lastOf = (reach: 0 | 1 | 2): number => reaches.lastIndexOf(reach);
    expect(reaches.indexOf(1)).toBeGreaterThan(lastOf(0) - 4);
    expect(reaches.indexOf(2)).toBeGreaterThan(lastOf(1) - 4);
    expect(reaches.filter((reach) => reach === 2).length).toBeGreaterThan(20);
  });

  test('stopped anywhere and run again requests no page twice but those in flight', async () => {
    const asked = { fromMs: NOW_MS - 2.4 * DAY_MS, toMs: NOW_MS - HOUR_MS };
    const settings = { plan: { maxDevicesPerPage: 40 } };
    using whole = await rigOf({ settings });
    await backfillAlone(whole, asked);
    const needed = telemetryRequests(whole);
    using rig = await rigOf({ settings });
    let runs = 0;
    for (let afterMs = 3 * SECOND_MS; ; afterMs += 1500) {
      const stop = new AbortController();
      const timer = rig.clock.sleep(afterMs, stop.signal).then(
        () => stop.abort(new Error('Stopped')),
        () => {},
      );
      const { summary } = await backfillAlone(rig, asked, { signal: stop.signal }).finally(() => stop.abort());
      await timer;
      runs += 1;
      if (summary.outcome === 'complete') break;
      expect(summary).toMatchObject({ outcome: 'interrupted', exit_code: 3 });
      expect(oneLine(summary)).toMatch(
        /interrupted\. The progress is kept; run the command again\..* not read yet: .*: run the same command again to continue/,
      );
    }
    expect(runs).toBeGreaterThan(4);
    // Each stop costs at most the four that are under way.
    expect(telemetryRequests(rig)).toBeLessThanOrEqual(needed + 4 * runs);
    await expectThere2(rig, asked.fromMs, asked.toMs);
  });

  const expectThere2 = async (rig: Rig, fromMs: number, toMs: number): Promise<void> => {
    const verdict = await rig.verdict(NOW_MS, { fromNs: BigInt(fromMs) * 1_000_000n, toNs: BigInt(toMs) * 1_000_000n });
    expect([verdict.missing.slice(0, 5), verdict.invented.slice(0, 5)]).toEqual([[], []]);
  };

  test('waits for a database that is down, and ends with 3 after ten minutes without progress', async () => {
    using rig = await rigOf();
    bench.proxy.setFaults(() => ({ kind: 'answer', status: 503, body: '{"code":"unavailable","message":"busy"}' }));
    const startedMs = rig.clock.nowMs();
    try {
      const { summary } = await backfillAlone(rig, { fromMs: NOW_MS - 3 * DAY_MS });
      expect(summary).toMatchObject({ outcome: 'stalled', exit_code: 3, devices_complete: 3, missing: [] });
      expect(summary.destinations[0]?.pending_points).toBeGreaterThan(1000);
      expect(oneLine(summary)).toMatch(/points in the archive not delivered: .* Run the command again\./);
      expect(rig.clock.nowMs() - startedMs).toBeGreaterThanOrEqual(10 * MINUTE_MS);
      expect(rig.clock.nowMs() - startedMs).toBeLessThan(15 * MINUTE_MS);
    } finally {
      bench.proxy.setFaults(null);
    }
    const { summary } = await backfillAlone(rig, { fromMs: NOW_MS - 3 * DAY_MS, toMs: NOW_MS - HOUR_MS });
    expect(summary).toMatchObject({ outcome: 'complete', requests: 0 });
    expect(summary.destinations[0]?.pending_points).toBe(0);
  });

  test('ends with 3 where one device does not answer, names it first, and has all of the others', async () => {
    using rig = await rigOf();
    rig.simulator.faults = onPath(/seldom\/telemetry/, always({ kind: 'server-error', status: 500 }));
    const startedMs = rig.clock.nowMs();
    const { summary, progress } = await backfillAlone(rig, { fromMs: NOW_MS - 3 * DAY_MS }, { everyMs: MINUTE_MS });
    expect(summary).toMatchObject({ outcome: 'stalled', exit_code: 3, devices_complete: 2 });
    expect(progress.at(-1)).toMatchObject({ eta: null, waits: 'waiting for 1 unreachable device' });
    expect([...new Set(summary.missing.map(({ device_id }) => device_id))]).toEqual(['seldom']);
    expect(summary.missing.map(({ reason }) => reason)).toContain('unreachable');
    expect(rig.clock.nowMs() - startedMs).toBeLessThan(30 * MINUTE_MS);
    expect(oneLine(summary)).toMatch(/the requests for this device fail; run the command again later/);
    rig.simulator.faults = null;
    await rig.clock.sleep(30 * MINUTE_MS);
    expect((await backfillAlone(rig, { fromMs: NOW_MS - 3 * DAY_MS })).summary).toMatchObject({ outcome: 'complete' });
  });

  test.each([
    [
      'one device has invalid pages',
      /seldom\/telemetry/,
      upsideDown,
      /the API returned invalid pages for this range; run the command again later/,
    ],
    [
      'no device has readings',
      /telemetry/,
      falselyEmpty,
      /although its device list shows activity then; run the command again in half an hour/,
    ],
  ])('ends with 3 where %s for a while, and closes the gap when it is run again', async (_, path, fault, words) => {
    using rig = await rigOf();
    rig.simulator.faults = onPath(path, always(fault));
    const { summary } = await backfillAlone(rig, { fromMs: NOW_MS - DAY_MS });
    expect(summary.exit_code).toBe(3);
    expect(oneLine(summary)).toMatch(words);
    rig.simulator.faults = null;
    await rig.clock.sleep(30 * MINUTE_MS);
    expect((await backfillAlone(rig, { fromMs: NOW_MS - DAY_MS })).summary).toMatchObject({ outcome: 'complete' });
  });

  test('fails where nothing answers, or no time is known, and completes when it is run again after that', async () => {
    const appearsAtMs = NOW_MS + HOUR_MS;
    using rig = await rigOf({
      world: worldOf([{ deviceId: 'young', intervalMs: MINUTE_MS, appearsAtMs }], DAY_MS),
      settings: { time: { date: 'absent' } },
    });
    rig.simulator.faults = always({ kind: 'server-error' });
    await expect(backfillAlone(rig, { fromMs: NOW_MS - DAY_MS })).rejects.toMatchObject({
      exitCode: 3,
      message: expect.stringMatching(
        /Nothing could be read for ten minutes: .* Run the command again when the API answers/,
      ),
    });
    rig.simulator.faults = null;
    await expect(backfillAlone(rig, { fromMs: NOW_MS - DAY_MS })).rejects.toMatchObject({
      exitCode: 3,
      message: expect.stringMatching(/no range to read\. Run the command again when a device has reported\.$/),
    });
    await rig.clock.sleep(2 * HOUR_MS);
    expect((await backfillAlone(rig, { fromMs: NOW_MS - DAY_MS })).summary).toMatchObject({ outcome: 'complete' });
  });

  test('ends with 3 where the service goes away', async () => {
    using rig = await rigOf();
    let asked = 0;
    const { summary } = await backfillAlone(
      rig,
      { fromMs: NOW_MS - 6 * DAY_MS },
      {
        changes: {
          observe: ({ type }) => {
            if (type === 'request-done') asked += 1;
            if (asked === 10) rig.simulator.faults = always({ kind: 'server-error', status: 503 });
          },
        },
      },
    );
    expect(summary).toMatchObject({ outcome: 'stalled', exit_code: 3 });
    expect(oneLine(summary)).toMatch(
      /stopped after 10 minutes without progress\. The progress is kept; run the command again/,
    );
    expect(summary.missing.length).toBeGreaterThan(0);
    expect(rig.clock.nowMs() - NOW_MS).toBeLessThan(30 * MINUTE_MS);
    rig.simulator.faults = null;
    expect((await backfillAlone(rig, { fromMs: NOW_MS - 6 * DAY_MS })).summary.outcome).toBe('complete');
  });

  test('waits for the quota of a day, which counts as progress', async () => {
    const plan = { requestsPerMinute: 60, requestsPerDay: 100, historyMaxDays: 31, maxDevicesPerPage: 40 };
    using rig = await rigOf({ settings: { plan } });
    const changes = { clock: unhurried(rig.clock) };
    const { summary } = await backfillAlone(rig, { fromMs: NOW_MS - 2 * DAY_MS }, { changes });
    expect(summary.outcome).toBe('complete');
    expect(summary.requests).toBeGreaterThan(85);
    expect(rig.clock.nowMs() - NOW_MS).toBeGreaterThan(0.5 * DAY_MS);
    expect(rig.simulator.log.count(429)).toBe(0);
  });

  test('a key without the scope for telemetry is refused: 77', async () => {
    using rig = await rigOf({ settings: { key: { scopes: ['devices:read', 'account:read'] } } });
    await expect(backfillAlone(rig, { fromMs: NOW_MS - DAY_MS })).rejects.toMatchObject({
      exitCode: 77,
      message: expect.stringContaining('telemetry:read'),
    });
  });

  test('a device that is not there, or left out, is an error before any request about it', async () => {
    using rig = await rigOf({ filter: { exclude: ['tied'] } });
    await expect(backfillAlone(rig, { fromMs: NOW_MS - DAY_MS, devices: ['nobody'] })).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining('--device: the workspace has no device with that id or name. '),
    });
    await expect(backfillAlone(rig, { fromMs: NOW_MS - DAY_MS, devices: ['often', 'tied'] })).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(/^--device number 2: this device is excluded by sync\.include/),
    });
    expect(telemetryRequests(rig)).toBe(0);
  });
});

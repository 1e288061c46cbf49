/**
 * `--verify` against a real VictoriaMetrics: what it can hold is there, what was deleted is found and repaired.
 */
import { describe, expect, test } from 'vitest';
import { verifyText } from '../../../src/commands/verify/text.ts';
import type { PointSource, TakePoint } from '../../../src/core/state/verify.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/core/time.ts';
import type { World } from '../../../src/sim/world.ts';
import { influxdAvailable } from '../../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig } from '../../support/rig.ts';
import { sharedBench, sharedVictoria } from '../../support/shared-bench.ts';
import { createWorld } from '../../support/trait-world.ts';
import { startVictoria, victoriaAvailable } from '../../support/victoria.ts';
import { clearArchive, destinationAt, inState, type Place, verifyAt, victoriaPlace } from './support.ts';

const HISTORY_MS = 16 * HOUR_MS;

const bench = sharedBench(openBench);
const victoria = sharedVictoria();

function worldOf(precision: World['precision']): (nowMs: number) => World {
  return (originMs) =>
    createWorld({
      seed: 33,
      originMs,
      historyMs: 2 * HISTORY_MS,
      precision,
      devices: [
        { deviceId: 'tied', intervalMs: MINUTE_MS, traits: ['ties'] },
        { deviceId: 'od,d =d"e\\vice', intervalMs: MINUTE_MS, traits: ['hostile', 'oddValues', 'ties'] },
        { deviceId: 'plain', intervalMs: MINUTE_MS },
      ],
    });
}

async function filled(precision: World['precision']): Promise<{ rig: Rig; place: Place }> {
  const rig = await openRig(bench, { world: worldOf(precision), historyMs: HISTORY_MS });
  const place = victoriaPlace(victoria);
  const { summary } = await rig.once({ destinations: [destinationAt(rig, place)] });
  expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0 });
  await victoria.exported('{device_id="none"}');
  return { rig, place };
}

async function deleteSeries(selector: string): Promise<void> {
  await victoria.exported('{device_id="none"}');
  const query = new URLSearchParams({ 'match[]': selector });
  await (await fetch(`${victoria.url}/api/v1/admin/tsdb/delete_series?${query}`)).text();
}

const EQUAL = { outcome: 'equal', missing: 0, different: 0, extra: 0, unverifiable: 0, differences: [] };

describe.runIf(influxdAvailable() && victoriaAvailable())('a filled VictoriaMetrics', () => {
  test.each(['s', 'ms', 'ns'] as const)('is equal in what it can hold, of times in %s', async (precision) => {
    const { rig, place } = await filled(precision);
    using _ = rig;
    const { verdict } = await verifyAt(rig, place);
    expect(verdict).toMatchObject({ ...EQUAL, kind: 'victoriametrics', devices_compared: 3, unknown_devices: [] });
  });

  test('points older than its retention are known to be missing, also after a repair', async () => {
    const hours = Math.ceil((Date.now() - NOW_MS) / HOUR_MS) + 8;
    await using short = await startVictoria(`-retentionPeriod=${hours}h`);
    using rig = await openRig(bench, { world: worldOf('ms'), historyMs: HISTORY_MS });
    const place = victoriaPlace(short);
    await rig.once({ destinations: [destinationAt(rig, place)] });
    await short.exported('{device_id="none"}');
    const { verdict, hidden } = await verifyAt(rig, place, { sleeps: false });
    expect(verdict).toMatchObject({ ...EQUAL, hidden_before: expect.any(String) });
    expect(verdict.known_missing).toBeGreaterThan(1000);
    expect(hidden.reduce((sum, [, , , points]) => sum + points, 0)).toBe(verdict.known_missing);
    const repaired = await verifyAt(rig, place, { repair: true, sleeps: false });
    expect(repaired.verdict).toMatchObject({ ...EQUAL, repaired: 0, known_missing: verdict.known_missing });
    const report = { from: null, to: null, repair: true, destinations: [repaired.verdict], sample: null };
    expect(verifyText(report).replaceAll(/\s+/g, ' ')).toMatch(
      /VictoriaMetrics has dropped the points before \S+, .* --repair cannot add them\. Once it keeps points for longer, tidemark --replay --destination influx sends those that the archive still has\./,
    );
  });

  test('deleted series are found and repaired from the archive', async () => {
    const { rig, place } = await filled('ms');
    using _ = rig;
    const requests = rig.simulator.log.requests.length;
    const held = await victoria.exported('{__name__=~"telemetry_.*",device_id="tied"}');
    const points = held.reduce((sum, { values }) => sum + values.length, 0);
    await deleteSeries('{device_id="tied"}');
    const { verdict } = await verifyAt(rig, place, { sleeps: false });
    expect(verdict).toMatchObject({ outcome: 'different', missing: points, different: 0, extra: 0 });
    expect(new Set(verdict.differences.map(({ device_id }) => device_id))).toEqual(new Set(['tied']));
    const repaired = await verifyAt(rig, place, { repair: true });
    expect(repaired.verdict).toMatchObject({ ...EQUAL, repaired: points });
    expect(rig.simulator.log.requests.length).toBe(requests);
  });

  /**
   * As a database that shows its newest points late: those of the first hours show from the fourth query on (the sums,
   * and two days one by one, come first), and what is delivered after the third one does not show at all.
   */
  const showingLate = ({ clock }: Rig, deliver: () => Promise<unknown>) => {
    const filledMs = clock.nowMs();
    const shown = { queries: 0 };
    const wrap = (source: PointSource): PointSource => ({
      ...source,
      points: async (of, take, signal) => {
        shown.queries += 1;
        const fromMs = shown.queries < 4 ? NOW_MS - 11 * HOUR_MS : 0;
        const takeShown: TakePoint = (stamp, sensor, field) => {
          const ms = Number(BigInt(stamp) / 1_000_000n);
          if (ms >= fromMs && ms < filledMs) take(stamp, sensor, field);
        };
        const problem = await source.points(of, takeShown, signal);
        if (shown.queries === 3) await deliver();
        return problem;
      },
    });
    return { shown, wrap };
  };

  test.each([
    ['of old days that were just filled', 4 * DAY_MS],
    ['delivered during the comparison', HOUR_MS],
  ])('points that show late are no difference: %s', async (_name, laterMs) => {
    const { rig, place } = await filled('ms');
    using _ = rig;
    const deliver = () => rig.once({ destinations: [destinationAt(rig, place)] });
    const { shown, wrap } = showingLate(rig, deliver);
    await rig.clock.sleep(laterMs, new AbortController().signal);
    const { verdict } = await verifyAt(rig, place, { source: wrap, deviceIds: ['plain'], sleeps: false });
    expect(verdict).toMatchObject({ outcome: 'equal', missing: 0 });
    expect(verdict.pending > 50).toBe(laterMs === HOUR_MS);
    expect(shown.queries).toBe(5);
  });

  test('a sample beside the others is extra; days without their blocks are reported by count', async () => {
    const { rig, place } = await filled('ns');
    using _ = rig;
    clearArchive(rig);
    expect((await verifyAt(rig, place)).verdict).toMatchObject(EQUAL);
    const [series] = await victoria.exported('{__name__=~"telemetry_.*",device_id="plain"}');
    const { __name__: _name, ...labels } = series?.metric ?? {};
    const tags = ['device_id', 'sensor', 'device_name', 'workspace_id'].map((key) => `${key}=${labels[key]}`);
    const write = await fetch(`${victoria.url}/api/v2/write?precision=ms`, {
      method: 'POST',
      body: `telemetry,${tags.join(',')} value=5 ${NOW_MS - 5 * HOUR_MS - 7}`,
    });
    expect(write.status).toBe(204);
    await deleteSeries('{device_id="tied"}');
    const { verdict, sums } = await verifyAt(rig, place, { sleeps: false });
    expect(verdict.differences.filter(({ device_id }) => device_id === 'plain')).toMatchObject([
      { extra: 1, missing: 0 },
    ]);
    expect(verdict.missing).toBeGreaterThan(1000);
    expect(sums.cleared.every(({ deviceId }) => deviceId === 'tied')).toBe(true);
  });

  test('a value that is not the archived one is reported where the archive still has it', async () => {
    const { rig, place } = await filled('ms');
    using _ = rig;
    inState(rig, 'DELETE FROM time_offset');
    const before = (await verifyAt(rig, place, { deviceIds: ['plain'] })).verdict;
    expect(before).toMatchObject(EQUAL);
    const [series] = await victoria.exported('{__name__="telemetry_value",device_id="plain"}');
    const { __name__: _name, ...labels } = series?.metric ?? {};
    const tags = ['device_id', 'sensor', 'device_name', 'workspace_id'].map((key) => `${key}=${labels[key]}`);
    const at = series?.timestamps.at(-1) ?? 0;
    await fetch(`${victoria.url}/api/v2/write?precision=ms`, {
      method: 'POST',
      body: `telemetry,${tags.join(',')} value=1e6 ${at}`,
    });
    await victoria.exported('{device_id="none"}');
    const { verdict } = await verifyAt(rig, place, { deviceIds: ['plain'] });
    expect(verdict).toMatchObject({ outcome: 'different', missing: 0, different: 1, extra: 0 });
    // As the report advises where a repair alone does not help.
    await deleteSeries('{device_id="plain"}');
    await verifyAt(rig, place, { deviceIds: ['plain'], repair: true, sleeps: false });
    await victoria.exported('{device_id="none"}');
    expect((await verifyAt(rig, place, { deviceIds: ['plain'] })).verdict).toMatchObject(EQUAL);
  });
});

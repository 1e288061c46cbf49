/**
 * Reading page after page by cursor: exactly the readings of the simulated workspace, whatever the settings and the
 * shape of the data.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MINUTE_MS, MS_NS, SECOND_NS } from '../../src/core/time.ts';
import { createReadingText } from '../../src/sim/answers.ts';
import type { Precision } from '../../src/sim/instants.ts';
import type { SimSettings } from '../../src/sim/settings.ts';
import type { SimReading } from '../../src/sim/spec.ts';
import type { World } from '../../src/sim/world.ts';
import { createSimulator } from '../support/faulty-simulator.ts';
import { createWorld, type Trait } from '../support/trait-world.ts';
import { AMPLE, askInProcess, createManualClock, ORIGIN_MS, visibleReadings } from './support.ts';

const HISTORY_MS = 2 * MINUTE_MS;

/** A restless device: several readings a second, ties and bursts. */
function restlessWorld(precision: Precision, traits: readonly Trait[]): World {
  return createWorld({
    seed: `restless ${precision} ${traits.join()}`,
    originMs: ORIGIN_MS,
    historyMs: HISTORY_MS,
    precision,
    devices: [{ deviceId: 'd', intervalMs: 450, jitter: 0.9, traits, burst: { every: 40, size: 230 } }],
  });
}

const boundary = fc.record({
  /** Milliseconds back from now, or the time of a reading. */
  reading: fc.boolean(),
  back: fc.integer({ min: 0, max: HISTORY_MS }),
  shiftNs: fc.constantFrom(0n, 1n, -1n, 500_000n, MS_NS, SECOND_NS),
});

const setup = fc.record({
  precision: fc.constantFrom<Precision>('s', 'ms', 'us', 'ns'),
  traits: fc.subarray<Trait>(['ties', 'burst', 'hostile', 'oddValues', 'empty']),
  after: fc.constantFrom<'inclusive' | 'exclusive'>('inclusive', 'exclusive'),
  before: fc.constantFrom<'inclusive' | 'exclusive'>('inclusive', 'exclusive'),
  resolution: fc.constantFrom<'exact' | 'seconds'>('exact', 'seconds'),
  limit: fc.integer({ min: 20, max: 200 }),
  from: fc.option(boundary),
  to: fc.option(boundary),
});

/** The document's own words as a predicate: no arithmetic in common with the simulator. */
function isBetween(at: bigint, after: bigint | null, before: bigint | null, bounds: SimSettings['bounds']): boolean {
  const cut = (ns: bigint): bigint => (bounds.resolution === 'seconds' ? ns / SECOND_NS : ns);
  const isAfter = after === null || (bounds.after === 'inclusive' ? cut(at) >= cut(after) : cut(at) > cut(after));
  const isBefore = before === null || (bounds.before === 'inclusive' ? cut(at) <= cut(before) : cut(at) < cut(before));
  return isAfter && isBefore;
}

function textOf(ns: bigint): string {
  const iso = new Date(Number(ns / MS_NS)).toISOString().slice(0, 19);
  return `${iso}.${(ns % SECOND_NS).toString().padStart(9, '0')}Z`;
}

function instantOf(
  bound: { reading: boolean; back: number; shiftNs: bigint } | null,
  all: readonly SimReading[],
): bigint | null {
  if (bound === null) return null;
  const chosen = all[bound.back % all.length];
  return (bound.reading && chosen ? chosen.recordedAtNs : BigInt(ORIGIN_MS - bound.back) * MS_NS) + bound.shiftNs;
}

test('a scan returns exactly the readings between the bounds, each once, newest first', async () => {
  const check = fc.asyncProperty(setup, async ({ precision, traits, limit, from, to, ...rules }) => {
    const world = restlessWorld(precision, traits);
    const simulator = createSimulator({ world, clock: createManualClock(), settings: { plan: AMPLE, bounds: rules } });
    const all = [...world.readings('d', 0n, BigInt(ORIGIN_MS + 1) * MS_NS)].filter(
      (reading) => reading.visibleAtMs <= ORIGIN_MS,
    );
    const [after, before] = [instantOf(from, all), instantOf(to, all)];
    const expected = all
      .filter(({ recordedAtNs }) => isBetween(recordedAtNs, after, before, simulator.settings.bounds))
      .map(createReadingText())
      .reverse();
    const query = new URLSearchParams({ limit: String(limit) });
    if (after !== null) query.set('after', textOf(after));
    if (before !== null) query.set('before', textOf(before));
    expect(await walkTexts(askInProcess(simulator), query)).toEqual(expected);
  });
  await fc.assert(check, { numRuns: 200 });
});

/** The texts of all readings of all pages, without parsing what JSON.parse would change. */
async function walkTexts(ask: ReturnType<typeof askInProcess>, query: URLSearchParams): Promise<string[]> {
  const texts: string[] = [];
  for (;;) {
    const { text, json, status } = await ask(`/devices/d/telemetry?${query}`);
    expect(status).toBe(200);
    const records = text.slice(text.indexOf('[') + 1, text.lastIndexOf(']'));
    if (records !== '') texts.push(...records.split(/,(?=\{"recorded_at":)/));
    if (json.next_cursor === undefined) return texts;
    expect(json.data.length).toBe(Number(query.get('limit')));
    query.set('cursor', json.next_cursor);
  }
}

test('readings that become visible between two pages shift nothing', async () => {
  const check = fc.asyncProperty(fc.integer(), fc.integer({ min: 3, max: 60 }), async (seed, limit) => {
    const clock = createManualClock();
    const world = createWorld({
      seed,
      originMs: ORIGIN_MS,
      historyMs: HISTORY_MS,
      precision: 's',
      devices: [{ deviceId: 'd', intervalMs: 300, jitter: 0.9, traits: ['ties'] }],
    });
    const lateness = { share: 0.5, maxMs: MINUTE_MS };
    const simulator = createSimulator({ world, clock, settings: { plan: AMPLE, lateness } });
    const endNs = BigInt(ORIGIN_MS) * MS_NS + 1n;
    const atFirst = visibleReadings(simulator, 'd', 0n, endNs).map(createReadingText());
    const found: string[] = [];
    const query = new URLSearchParams({ limit: String(limit) });
    for (;;) {
      const { text, json } = await askInProcess(simulator)(`/devices/d/telemetry?${query}`);
      found.push(...text.slice(text.indexOf('[') + 1, text.lastIndexOf(']')).split(/,(?=\{"recorded_at":)/));
      if (json.next_cursor === undefined) break;
      query.set('cursor', json.next_cursor);
      clock.advance(5000);
    }
    const everything = [...world.readings('d', 0n, endNs)].map(createReadingText()).reverse();
    expect(isSubsequence(found, everything)).toBe(true);
    expect(isSubsequence(atFirst.reverse(), found)).toBe(true);
    expect(found.length).toBeGreaterThan(atFirst.length - 1);
  });
  await fc.assert(check, { numRuns: 30 });
});

function isSubsequence(part: readonly string[], whole: readonly string[]): boolean {
  let at = 0;
  for (const item of whole) if (item === part[at]) at += 1;
  return at === part.length;
}

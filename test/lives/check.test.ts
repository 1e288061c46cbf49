/** The parts of the lives' check that have rules of their own: the world of a story, and its misfortunes. */
import { describe, expect, test } from 'vitest';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import type { SimPage } from '../../src/sim/faults.ts';
import { createSettings } from '../../src/sim/settings.ts';
import { drawStory } from './draw.ts';
import { createFate } from './misfortunes.ts';
import type { DeviceLife, Misfortune, Story } from './story.ts';
import { worldOf } from './world.ts';

/** A story of one device that reports once a minute, and of nothing that goes wrong. */
function quietStory(device: Partial<DeviceLife> = {}, misfortunes: readonly Misfortune[] = []): Story {
  const story = drawStory(1);
  const calm: DeviceLife = { name: 'device', spec: { deviceId: 'd' }, buffers: [], stamps: 'receipt' };
  const { spec, ...rest } = { ...calm, ...device };
  const devices = [{ ...rest, spec: { intervalMs: MINUTE_MS, ...spec } }];
  return { ...story, api: {}, devices, misfortunes: [...misfortunes], world: { ...story.world, historyMs: HOUR_MS } };
}

describe('a device that hands in what it has measured while it was cut off', () => {
  const at = drawStory(1).startMs;
  const buffers = [{ fromMs: at, toMs: at + 2 * HOUR_MS }];
  const readingsOf = (spec: Partial<DeviceLife['spec']>, stamps: DeviceLife['stamps']): number => {
    const world = worldOf(quietStory({ spec: { deviceId: 'd', ...spec }, buffers, stamps }));
    return [...world.readings('d', 0n, 2n ** 63n)].filter(({ visibleAtMs }) => visibleAtMs < at + 2.5 * HOUR_MS).length;
  };
  const away = { vanishesAtMs: at + HOUR_MS, returnsAtMs: at + 3 * HOUR_MS };

  test('hands in nothing that would be stamped while it is away from the workspace', () => {
    expect(readingsOf(away, 'receipt')).toBe(60);
  });

  test('hands in what it has stamped itself, and all of it once it is back', () => {
    expect(readingsOf(away, 'device')).toBe(120);
    expect(readingsOf({ ...away, returnsAtMs: at + 1.5 * HOUR_MS }, 'receipt')).toBe(60 + 60 + 30 + 30);
  });
});

describe('a liar', () => {
  const startMs = drawStory(1).startMs;
  const during = { fromMs: startMs, toMs: startMs + HOUR_MS };
  const liar: Misfortune = { name: 'liar', ...during, what: { kind: 'lies', lie: 'empty', rate: 1, seed: 1 } };
  const cut: Misfortune = {
    name: 'cut',
    fromMs: startMs + 10 * SECOND_MS,
    toMs: startMs + 20 * SECOND_MS,
    what: { kind: 'answers', faults: ['truncated'], rate: 1, seed: 1 },
  };
  const page: SimPage = { kind: 'telemetry', deviceId: 'd', records: ['{}'], nextCursor: null };
  const request = { method: 'GET', path: '/devices/d/telemetry', query: new URLSearchParams(), atMs: startMs };

  /** How many records an answer has at that moment; `null` where another fault than a lie takes it. */
  function createAsk(...misfortunes: Misfortune[]): (afterMs: number, isServed?: boolean) => number | null {
    let nowMs = startMs;
    const settings = createSettings({});
    const fate = createFate(quietStory({}, misfortunes), { nowMs: () => nowMs }, { settings, knownSign: () => null });
    return (afterMs, isServed = true) => {
      nowMs = startMs + afterMs;
      const fault = fate.faults(1, request);
      if (fault !== null && fault.kind !== 'mangle') return null;
      return isServed ? (fault?.change(page) ?? page).records.length : 0;
    };
  }

  test('tells the truth after each lie', () => {
    const ask = createAsk(liar);
    expect([0, 1, 2, 3].map((second) => ask(second * SECOND_MS))).toEqual([0, 1, 0, 1]);
  });

  test('tells it in an answer that arrives: neither a cut nor a refused one counts', () => {
    for (const misfortunes of [
      [liar, cut],
      [cut, liar],
    ]) {
      const ask = createAsk(...misfortunes);
      expect([0, 11, 25, 26].map((second) => ask(second * SECOND_MS))).toEqual([0, null, 1, 0]);
    }
    const ask = createAsk(liar);
    expect([ask(0), ask(1000, false), ask(2000)]).toEqual([0, 0, 1]);
  });
});

/** The device queue: its states and events, compared with the table in its header, and which device is polled next. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import {
  advance,
  beginDevice,
  createDeviceQueue,
  type DeviceEvent,
  type DeviceQueue,
  dropDevice,
  endDeviceRest,
  nextIdleMs,
  nextReadyMs,
  noteDeviceAnswer,
  noteDeviceFailure,
  noteDeviceListed,
  noteDeviceStored,
  pickIdle,
  pickLive,
  type QueueState,
  type QuotaRules,
  ratesOf,
  readingsPerMs,
  readyCount,
  releaseDevice,
  setRules,
  setUnlisted,
} from '../../src/scheduler/device-queue.ts';
import { hasSlot } from '../../src/scheduler/heap.ts';
import { POLLS } from '../support/defaults.ts';
import { headerTable } from '../support/header-table.ts';

const RULES: QuotaRules = {
  telemetryMs: MINUTE_MS,
  polls: POLLS,
  pageSize: 200,
  gracePeriodMs: 0,
  fill: 0.97,
  slackMs: 0,
  isInTurn: false,
  staleMs: Number.POSITIVE_INFINITY,
};
const NOW = 100 * DAY_MS;
const RATE = { intervalMs: 10 * SECOND_MS, deviationMs: 0 };

/** The rows of the table in the header of the source: what each event makes of each state. */
function documented(): ReadonlyMap<DeviceEvent, ReadonlyMap<QueueState, QueueState | 'placed'>> {
  const [[, ...states] = [], ...rows] = headerTable('scheduler/device-queue.ts', 'event');
  return new Map(
    rows.map(([event, ...cells]) => [
      event as DeviceEvent,
      new Map(states.map((state, column) => [state as QueueState, cells[column] as QueueState | 'placed'])),
    ]),
  );
}

/** The states that an event may make of a state. */
function outcomes(event: DeviceEvent, before: QueueState): readonly (QueueState | 'placed' | undefined)[] {
  const next = TABLE.get(event)?.get(before);
  return next === 'placed' ? ['idle', 'waiting'] : [next];
}

const TABLE = documented();
const STATES = [...(TABLE.get('stored')?.keys() ?? [])];

/** The events that bring a device to a state, in order. */
const WAYS: Readonly<Record<QueueState, (queue: DeviceQueue) => void>> = {
  absent: () => undefined,
  idle: (queue) => noteDeviceListed(queue, { deviceId: 'd', seenMs: null, isActive: false }, NOW),
  waiting: (queue) => noteDeviceStored(queue, 'd', { newestMs: NOW, polledMs: NOW, rate: RATE }),
  ready: (queue) => {
    noteDeviceStored(queue, 'd', { newestMs: NOW - 5 * MINUTE_MS, polledMs: NOW - 5 * MINUTE_MS, rate: RATE });
    advance(queue, NOW);
  },
  full: (queue) => {
    noteDeviceStored(queue, 'd', { newestMs: NOW - 5 * HOUR_MS, polledMs: NOW - 5 * HOUR_MS, rate: RATE });
    advance(queue, NOW);
  },
  polling: (queue) => {
    WAYS.full(queue);
    beginDevice(queue, 'd');
  },
};

const EVENTS: Readonly<Record<DeviceEvent, (queue: DeviceQueue, deviceId: string, nowMs: number) => void>> = {
  stored: (queue, deviceId, nowMs) =>
    noteDeviceStored(queue, deviceId, { newestMs: nowMs, polledMs: nowMs, rate: RATE }),
  listed: (queue, deviceId, nowMs) => noteDeviceListed(queue, { deviceId, seenMs: nowMs, isActive: true }, nowMs),
  left: dropDevice,
  began: beginDevice,
  answered: (queue, deviceId, nowMs) =>
    noteDeviceAnswer(queue, deviceId, { newReadings: 1, instantsMs: [nowMs], liveGap: null }, nowMs),
  failed: noteDeviceFailure,
  released: releaseDevice,
  reordered: (queue) => setRules(queue, { ...RULES, pageSize: 100 }),
  due: (queue, _deviceId, nowMs) => advance(queue, nowMs),
  filled: (queue, _deviceId, nowMs) => advance(queue, nowMs),
};

function stateOf(queue: DeviceQueue, deviceId = 'd'): QueueState {
  return queue.devices.get(deviceId)?.state ?? 'absent';
}

function heapsOf({ heaps }: DeviceQueue, slot: number): string {
  const inThem = Object.entries(heaps).filter(([, heap]) => hasSlot(heap, slot));
  return inThem.map(([name]) => name).join(' ');
}

const PLACES: Readonly<Record<QueueState, string>> = {
  absent: '',
  idle: 'idle',
  waiting: 'waiting',
  ready: 'ready filling',
  full: 'full',
  polling: '',
};

/** Expects each device in the heaps of its state, and nothing else in any heap. */
function expectPlaced(queue: DeviceQueue): void {
  for (const { state, slot } of queue.devices.values()) {
    expect(state, 'a device that is absent is not kept').not.toBe('absent');
    expect(heapsOf(queue, slot)).toBe(PLACES[state]);
  }
  const counted = [...queue.devices.values()].flatMap(({ state }) => PLACES[state].split(' ').filter(Boolean));
  const sizes = Object.values(queue.heaps).reduce((sum, heap) => sum + heap.size, 0);
  expect(sizes, 'no slot without a device').toBe(counted.length);
}

describe('the states of a device', () => {
  test.each(STATES)('there is a way to %s', (state) => {
    const queue = createDeviceQueue(RULES);
    WAYS[state](queue);
    expect(stateOf(queue)).toBe(state);
    expectPlaced(queue);
  });

  const cells = [...TABLE].flatMap(([event, row]) => [...row].map(([state, next]) => ({ event, state, next })));

  test('the table has a cell for each event and each state', () => {
    expect([...TABLE.keys()].toSorted()).toEqual(Object.keys(EVENTS).toSorted());
    expect(cells).toHaveLength(Object.keys(EVENTS).length * Object.keys(WAYS).length);
  });

  test.each(cells)('$event of $state makes $next', ({ event, state }) => {
    const queue = createDeviceQueue(RULES);
    WAYS[state](queue);
    // A waiting device becomes ready before its page is full; of the others nothing moves by time.
    const afterMs = event === 'due' && state === 'waiting' ? 5 * MINUTE_MS : event === 'filled' ? 5 * HOUR_MS : 0;
    EVENTS[event](queue, 'd', NOW + afterMs);
    expect(event === 'filled' && state === 'waiting' ? ['full'] : outcomes(event, state)).toContain(stateOf(queue));
    expectPlaced(queue);
  });

  test('after any events each device is in one state of the table, with a slot of its own', () => {
    const step = fc.record({
      event: fc.constantFrom(...(Object.keys(EVENTS) as DeviceEvent[])),
      id: fc.nat(5),
      afterMs: fc.oneof(fc.nat(10 * SECOND_MS), fc.nat(2 * HOUR_MS), fc.nat(2 * DAY_MS)),
      isUnlisted: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const queue = createDeviceQueue(RULES);
        let nowMs = NOW;
        for (const { event, id, afterMs, isUnlisted } of steps) {
          const deviceId = `d${id}`;
          nowMs += afterMs;
          const before = stateOf(queue, deviceId);
          EVENTS[event](queue, deviceId, nowMs);
          if (event === 'reordered') setUnlisted(queue, isUnlisted);
          if (event !== 'due' && event !== 'filled')
            expect(outcomes(event, before)).toContain(stateOf(queue, deviceId));
          expectPlaced(queue);
          expect([...queue.devices.values()].every((device) => queue.bySlot[device.slot] === device)).toBe(true);
          expect(queue.bySlot.filter((device) => device !== undefined)).toHaveLength(queue.devices.size);
        }
      }),
    );
  });
});

describe('the view of the queue', () => {
  test('a live request goes to a full device, then to a ready one; an idle poll to an idle one', () => {
    const queue = createDeviceQueue(RULES);
    noteDeviceStored(queue, 'ready', { newestMs: NOW - 5 * MINUTE_MS, polledMs: NOW - 5 * MINUTE_MS, rate: RATE });
    noteDeviceStored(queue, 'full', { newestMs: NOW - 5 * HOUR_MS, polledMs: NOW - 5 * HOUR_MS, rate: RATE });
    noteDeviceStored(queue, 'idle', { newestMs: null, polledMs: NOW, rate: RATE });
    expect(pickLive(queue, NOW), 'nothing has been moved on').toBeNull();
    advance(queue, NOW);
    expect(pickLive(queue, NOW)).toMatchObject({ deviceId: 'full', lagMs: 5 * HOUR_MS - 10 * SECOND_MS });
    expect(readyCount(queue)).toBe(2);
    beginDevice(queue, 'full');
    expect(readyCount(queue)).toBe(1);
    expect(pickLive(queue, NOW)).toMatchObject({ deviceId: 'ready', untilMs: null });
    expect(pickIdle(queue, NOW)).toBeNull();
    expect(nextIdleMs(queue)).toBe(NOW + 6 * HOUR_MS);
    expect(pickIdle(queue, NOW + 6 * HOUR_MS)).toBe('idle');
    expect(nextReadyMs(queue)).toBe(Number.POSITIVE_INFINITY);
  });

  test('a device that has failed rests, until its rest is ended or over', () => {
    const queue = createDeviceQueue(RULES);
    noteDeviceStored(queue, 'a', { newestMs: NOW - HOUR_MS, polledMs: NOW - HOUR_MS, rate: RATE });
    expect([noteDeviceFailure(queue, 'a', NOW), noteDeviceFailure(queue, 'a', NOW)]).toEqual([
      NOW + MINUTE_MS,
      NOW + 2 * MINUTE_MS,
    ]);
    expect(nextReadyMs(queue)).toBe(NOW + 2 * MINUTE_MS);
    endDeviceRest(queue, 'a');
    expect(nextReadyMs(queue)).toBeLessThan(NOW);
    expect(noteDeviceFailure(queue, 'a', NOW), 'its failures are forgotten').toBe(NOW + MINUTE_MS);
  });

  test('rates are of the devices that speak, and their sum is kept up to date', () => {
    const queue = createDeviceQueue(RULES);
    for (const deviceId of ['a', 'b', 'c'])
      noteDeviceStored(queue, deviceId, { newestMs: NOW, polledMs: NOW, rate: RATE });
    noteDeviceListed(queue, { deviceId: 'unknown', seenMs: null, isActive: true }, NOW);
    expect(ratesOf(queue)).toEqual({ knownMs: [10_000, 10_000, 10_000], unknown: 1, quiet: 0 });
    expect(readingsPerMs(queue)).toBeCloseTo(3 / 10_000);
    dropDevice(queue, 'a');
    dropDevice(queue, 'b');
    noteDeviceAnswer(queue, 'c', { newReadings: 0, instantsMs: [], liveGap: null }, NOW + MINUTE_MS);
    expect(ratesOf(queue)).toEqual({ knownMs: [], unknown: 1, quiet: 1 });
    expect(readingsPerMs(queue)).toBeCloseTo(0);
  });
});

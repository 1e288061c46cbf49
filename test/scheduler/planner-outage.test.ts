/** The planner after failures, and with devices or streams that come and go. The workspace is simulated. */
import { describe, expect, test } from 'vitest';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { noteDeviceStored } from '../../src/scheduler/device-queue.ts';
import {
  noteDeviceLeft,
  noteDevicesListed,
  noteStreamRead,
  requestNow,
  takeDecision,
  turnOff,
} from '../../src/scheduler/planner.ts';
import { type Decision, purposeOf } from '../../src/scheduler/planner-types.ts';
import { countOf, createWorld, evenDevice, newestOf, SILENT } from './planner-world.ts';

describe('after a failure', () => {
  const pair = () => {
    const world = createWorld(['bad', 'good'].map((id) => evenDevice(id, { intervalMs: 10 * SECOND_MS })));
    for (const deviceId of ['bad', 'good']) world.storeUpTo(deviceId, 0);
    return world;
  };
  const fateOf = (fate: 'failed' | 'rejected') => (decision: Decision) =>
    'deviceId' in decision && decision.deviceId === 'bad' ? fate : 'answered';

  test('of one device, that device rests at doubling intervals, and the others are polled as before', () => {
    const world = pair();
    const made = world.run({ fromMs: 0, untilMs: 6 * HOUR_MS, fate: fateOf('failed') });
    const bad = newestOf(made).filter(({ deviceId }) => deviceId === 'bad');
    expect(bad.map(({ atMs }) => Math.round((atMs - (bad[0]?.atMs ?? 0)) / MINUTE_MS)).slice(0, 8)).toEqual([
      0, 1, 3, 7, 15, 31, 51, 71,
    ]);
    expect(countOf(made, 'good')).toBeGreaterThan(330);
    const mended = world.run({ fromMs: 6 * HOUR_MS, untilMs: 8 * HOUR_MS });
    expect(countOf(mended, 'bad'), 'and is soon as before once it answers').toBeGreaterThan(50);
  });

  test('for lack of quota, nothing changes', () => {
    const made = pair().run({ fromMs: 0, untilMs: 10 * MINUTE_MS, fate: fateOf('rejected'), everyMs: 10 * SECOND_MS });
    expect(countOf(made, 'bad'), 'it is tried again with the next turn').toBeGreaterThan(30);
  });

  // Live work is always due here: a stream that fails leaves it its turns.
  test.each([
    ['devices', 3],
    ['alerts', 1],
    ['live', 6],
  ])('of the complete service, more than one stream tries it: %s', (failing, tries) => {
    const made = pair().run({
      fromMs: 0,
      untilMs: 10 * MINUTE_MS,
      // As the daemon goes by it: where nobody is answered, one tries now and then.
      everyMs: 30 * SECOND_MS,
      fate: ({ kind, lane }) => (kind === failing || lane === failing ? 'rejected' : 'answered'),
    });
    const streams = made.map(({ decision }) => purposeOf(decision).stream);
    const failed = failing === 'live' ? 'telemetry' : failing;
    expect(streams.filter((stream) => stream === failed).length).toBeGreaterThanOrEqual(tries);
    const twice = streams.filter((stream, index) => stream === failed && streams[index + 1] === failed);
    expect(twice, 'another has its turn between two of them').toEqual([]);
  });

  test('of the listing that lasts, only devices that fell quiet lately are polled without it', () => {
    const world = createWorld([
      evenDevice('paused', { intervalMs: 10 * MINUTE_MS, seenAt: () => 0 }),
      ...Array.from({ length: 300 }, (_, index) => evenDevice(`old${index}`, SILENT)),
    ]);
    const rate = { intervalMs: 10 * MINUTE_MS, deviationMs: 0 };
    const nowMs = 10 * HOUR_MS;
    const hold = (deviceId: string, newestMs: number): void => {
      noteDeviceStored(world.planner.devices, deviceId, { newestMs, polledMs: nowMs, rate });
      noteDevicesListed(world.planner, [{ deviceId, seenMs: newestMs, isActive: true }], nowMs);
    };
    for (let index = 0; index < 300; index += 1) hold(`old${index}`, HOUR_MS);
    hold('paused', nowMs - HOUR_MS);
    const fate = ({ kind }: Decision) => (kind === 'devices' ? 'failed' : 'answered');
    const made = world.run({ fromMs: nowMs, untilMs: nowMs + 2 * HOUR_MS, fate });
    const asked = newestOf(made);
    expect(new Set(asked.map(({ deviceId }) => deviceId)), 'no burst of all').toEqual(new Set(['paused']));
    expect((asked[0]?.atMs ?? 0) - nowMs).toBeLessThan(25 * MINUTE_MS);
    expect(asked.length, 'and is gone on with by its rate').toBeGreaterThan(5);
    expect(newestOf(made, 'idle-poll')).toEqual([]);
  });

  test('of the listing, the alerts or the account, the stream rests, and a listing restarts', () => {
    const world = createWorld(Array.from({ length: 450 }, (_, index) => evenDevice(`d${index}`, SILENT)));
    let pages = 0;
    const made = world.run({
      fromMs: 0,
      untilMs: HOUR_MS,
      fate: ({ kind }) => {
        if (kind === 'devices') pages += 1;
        return kind === 'devices' && pages === 2 ? 'failed' : kind === 'alerts' ? 'failed' : 'answered';
      },
    });
    const alerts = made.filter(({ decision }) => decision.kind === 'alerts');
    expect(alerts.length).toBeGreaterThan(25);
    expect(alerts.length, 'two minutes at most between two tries').toBeLessThan(40);
    expect(made.filter(({ decision }) => decision.kind === 'account')).toHaveLength(1);
    expect(pages).toBeGreaterThan(12);
  });
});

describe('devices come and go', () => {
  test('a device that has left is never polled; one that is back is polled as before', () => {
    const world = createWorld([evenDevice('back', { intervalMs: MINUTE_MS })]);
    const tail = { newestMs: 0, polledMs: 0, rate: { intervalMs: MINUTE_MS, deviationMs: 0 } };
    for (const deviceId of ['left', 'back']) {
      noteDeviceStored(world.planner.devices, deviceId, tail);
      noteDeviceLeft(world.planner, deviceId);
    }
    world.storeUpTo('back', HOUR_MS);
    const made = world.run({ fromMs: HOUR_MS, untilMs: 9 * HOUR_MS });
    expect(countOf(made, 'back')).toBeGreaterThan(400);
    expect(made.some(({ decision }) => 'deviceId' in decision && decision.deviceId === 'left')).toBe(false);
  });

  test('a paused device is polled only after a hint or at its idle poll', () => {
    const world = createWorld([]);
    noteDeviceStored(world.planner.devices, 'paused', {
      newestMs: 0,
      polledMs: 0,
      rate: { intervalMs: MINUTE_MS, deviationMs: 0 },
    });
    noteDevicesListed(world.planner, [{ deviceId: 'paused', seenMs: 0, isActive: false }], 1);
    const quiet = world.run({ fromMs: 2, untilMs: 5 * HOUR_MS });
    expect(newestOf(quiet)).toEqual([]);
    noteDevicesListed(world.planner, [{ deviceId: 'paused', seenMs: HOUR_MS, isActive: false }], 5 * HOUR_MS);
    noteStreamRead(world.planner, 'alerts', 5 * HOUR_MS);
    noteStreamRead(world.planner, 'account', 5 * HOUR_MS);
    expect(takeDecision(world.planner, 5 * HOUR_MS)).toMatchObject({ kind: 'poll', lane: 'live', deviceId: 'paused' });
  });

  test('a stream that is off is tried again later, and the others continue', () => {
    const world = createWorld([evenDevice('a', { intervalMs: MINUTE_MS })]);
    turnOff(world.planner, 'telemetry', HOUR_MS);
    turnOff(world.planner, 'alerts', HOUR_MS);
    const kinds = new Set(world.run({ fromMs: 0, untilMs: HOUR_MS }).map(({ decision }) => decision.kind));
    expect([...kinds].toSorted()).toEqual(['account', 'devices']);
    const after = new Set(
      world.run({ fromMs: HOUR_MS, untilMs: HOUR_MS + MINUTE_MS }).map((made) => made.decision.kind),
    );
    expect(after.has('poll') && after.has('alerts')).toBe(true);
  });

  test('a requested stream is due now, once', () => {
    const world = createWorld([]);
    world.run({ fromMs: 0, untilMs: 10 * MINUTE_MS });
    requestNow(world.planner, 'account');
    const made = world.run({ fromMs: 10 * MINUTE_MS, untilMs: 20 * MINUTE_MS });
    expect(made.filter(({ decision }) => decision.kind === 'account')).toHaveLength(1);
  });

  test('a page scan that has begun is finished and does not count as a poll of the newest end', () => {
    const world = createWorld(['walked', 'other'].map((id) => evenDevice(id, { intervalMs: 10 * SECOND_MS })));
    // Ten hours are 18 pages of one; two are 3.6 of the other.
    world.storeUpTo('walked', 8 * HOUR_MS);
    world.storeUpTo('other', 8 * HOUR_MS);
    const made = newestOf(world.run({ fromMs: 10 * HOUR_MS, untilMs: 11 * HOUR_MS, everyMs: 20 * SECOND_MS }));
    const [first] = made;
    const walk = made.slice(0, 4);
    expect(new Set(walk.map(({ deviceId }) => deviceId)), 'one after the other').toEqual(new Set([first?.deviceId]));
    expect(walk.slice(0, 3).map(({ newReadings }) => newReadings)).toEqual([200, 200, 200]);
    for (const id of ['walked', 'other']) expect(countOf(made.slice(8), id)).toBeGreaterThan(50);
  });
});

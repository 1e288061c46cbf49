/**
 * Heartbeats of loops: a stuck loop, a resting one, and a process that was suspended for a while.
 */
import { describe, expect, test } from 'vitest';
import { beatingClock, createHeartbeats, healthOf, STUCK_AFTER_MS } from '../../src/core/heartbeats.ts';
import type { Clock } from '../../src/core/ports.ts';

function open() {
  const time = { ms: 1000 };
  const beats = createHeartbeats({ monoMs: () => time.ms });
  return { time, beats, isHealthy: () => healthOf(beats.loops()).healthy };
}

describe('a loop', () => {
  test('that turns in time is alive, and stands still a minute after it should have turned', () => {
    const { time, beats, isHealthy } = open();
    const pulse = beats.openPulse('delivery influx');
    pulse.beat(5000);
    time.ms += 5000 + STUCK_AFTER_MS - 1;
    expect(isHealthy()).toBe(true);
    time.ms += 1;
    expect(healthOf(beats.loops())).toEqual({
      healthy: false,
      reasons: ['the loop "delivery influx" has made no progress for 60 s'],
      codes: ['loop_stalled'],
    });
    pulse.beat();
    expect(isHealthy()).toBe(true);
  });

  test('that has not begun, or has ended in good order, is not watched', () => {
    const { time, beats, isHealthy } = open();
    const [never, ended] = [beats.openPulse('never'), beats.openPulse('ended')];
    ended.beat();
    ended.rest();
    never.sign();
    ended.sign();
    time.ms += 1e9;
    expect(isHealthy()).toBe(true);
  });

  test('is kept alive by running work, for its longest duration, and never shortened by it', () => {
    const { time, beats, isHealthy } = open();
    const pulse = beats.openPulse('requests');
    pulse.beat(15_000);
    pulse.sign(600_000);
    pulse.sign(1);
    time.ms += 600_000 + STUCK_AFTER_MS - 1;
    expect(isHealthy()).toBe(true);
    time.ms += 1;
    expect(isHealthy()).toBe(false);
  });

  test('gets its time anew when the process was suspended', () => {
    const { time, beats, isHealthy } = open();
    const pulse = beats.openPulse('main');
    pulse.beat();
    beats.tick();
    time.ms += 3_600_000;
    beats.tick();
    expect(isHealthy()).toBe(true);
    // Short of a pause, ticks forgive nothing.
    for (let tick = 0; tick < 70; tick += 1) {
      time.ms += 1000;
      beats.tick();
    }
    expect(isHealthy()).toBe(false);
  });
});

test('a loop that sleeps by a beating clock counts as alive, also when it is woken', async () => {
  const { time, beats } = open();
  const clock: Clock = {
    nowMs: () => 0,
    monoMs: () => time.ms,
    sleep: (ms) => {
      time.ms += ms;
      return ms > 5000 ? Promise.reject(new Error('woken')) : Promise.resolve();
    },
  };
  const beating = beatingClock(clock, beats.openPulse('jobs'));
  await beating.sleep(4000);
  expect(beats.loops()).toEqual([{ loop: 'jobs', idleMs: 0 }]);
  await expect(beating.sleep(9000)).rejects.toThrow('woken');
  time.ms += 7;
  expect(beats.loops()).toEqual([{ loop: 'jobs', idleMs: 7 }]);
});

test('a turn for others does not shorten the time of a request that is under way', async () => {
  const { time, beats } = open();
  const clock: Clock = { nowMs: () => 0, monoMs: () => time.ms, sleep: () => Promise.resolve() };
  const pulse = beats.openPulse('delivery');
  pulse.begin(100_000);
  await beatingClock(clock, pulse).sleep(0);
  time.ms += 100_000;
  expect(beats.loops()).toEqual([{ loop: 'delivery', idleMs: 0 }]);
});

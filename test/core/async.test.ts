/**
 * Turns: who may work at the same time, who waits, and who makes way.
 */
import { describe, expect, test } from 'vitest';
import { createTurns } from '../../src/core/async.ts';
import type { RequestLane } from '../../src/core/ports.ts';
import { NOTHING_SCANNED, type PageScanner, type ScanTask } from '../../src/ingest/page-scan.ts';
import { takingTurns } from '../../src/ingest/take-turns.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

const NEVER = new AbortController().signal;

describe('turns', () => {
  test('go one after the other under one name, side by side under others', async () => {
    const clock = createVirtualClock(0);
    const alone = createTurns();
    const log: string[] = [];
    const work = (name: string, label: string) =>
      alone(
        name,
        async () => {
          log.push(`${label} ${clock.monoMs()}`);
          await clock.sleep(100);
          return label;
        },
        NEVER,
      );
    expect(await Promise.all([work('a', 'one'), work('a', 'two'), work('b', 'other')])).toEqual([
      'one',
      'two',
      'other',
    ]);
    expect(log).toEqual(['one 0', 'other 0', 'two 100']);
  });

  test('go on after one that failed, and without one that gave up waiting', async () => {
    const clock = createVirtualClock(0);
    const alone = createTurns();
    const stop = new AbortController();
    const failing = alone(
      'a',
      async () => await clock.sleep(50).then(() => Promise.reject(new Error('bad luck'))),
      NEVER,
    );
    const waiting = alone('a', async () => 'never', stop.signal);
    const last = alone('a', async () => clock.monoMs(), NEVER);
    const outcomes = Promise.allSettled([failing, waiting, last]);
    await clock.sleep(10);
    stop.abort(new Error('given up'));
    expect(await outcomes).toMatchObject([
      { status: 'rejected', reason: { message: 'bad luck' } },
      { status: 'rejected', reason: { message: 'given up' } },
      { status: 'fulfilled', value: 50 },
    ]);
  });
});

describe('pulls', () => {
  /** A scanner that takes a page of 100 ms until its pages are read or it is to stop. */
  function rig(pages: number) {
    const clock = createVirtualClock(0);
    const log: string[] = [];
    const left = new Map<string, number>();
    const inner: PageScanner = {
      peek: async () => false,
      scan: async ({ deviceId, lane, isPaused }) => {
        const key = `${deviceId} ${lane}`;
        while ((left.get(key) ?? pages) > 0 && isPaused?.() !== true) {
          log.push(`${key} ${clock.monoMs()}`);
          await clock.sleep(100);
          left.set(key, (left.get(key) ?? pages) - 1);
        }
        return NOTHING_SCANNED;
      },
    };
    const scanner = takingTurns(inner);
    const pull = async (deviceId: string, lane: RequestLane, more: Partial<ScanTask> = {}): Promise<number> => {
      const range = { from: 0n, to: 100n };
      await scanner.scan({ deviceId, lane, range, limit: 100n, until: 'closed', ...more }, NEVER);
      return clock.monoMs();
    };
    return { clock, log, pull };
  }

  test('of one stretch wait for those that are as urgent or more', async () => {
    const { pull, log } = rig(2);
    expect(await Promise.all([pull('d', 'live'), pull('d', 'live'), pull('d', 'first-history')])).toEqual([
      200, 200, 400,
    ]);
    expect(log).toEqual(['d live 0', 'd live 100', 'd first-history 200', 'd first-history 300']);
  });

  test('that are less urgent make way after their page, and end all the same', async () => {
    const { clock, pull, log } = rig(3);
    const history = pull('d', 'first-history');
    await clock.sleep(150);
    // It does not wait for what is under way.
    expect(await pull('d', 'live')).toBe(450);
    await history;
    expect(log).toEqual([
      'd first-history 0',
      'd first-history 100',
      'd live 150',
      'd live 250',
      'd live 350',
      'd first-history 450',
    ]);
  });

  test('of other devices and other stretches go side by side', async () => {
    const { pull } = rig(2);
    const apart = { range: { from: 100n, to: 200n } };
    expect(await Promise.all([pull('d', 'live'), pull('e', 'live'), pull('d', 'backfill', apart)])).toEqual([
      200, 200, 200,
    ]);
  });

  test('that are paused by others too do not go on', async () => {
    const { clock, pull, log } = rig(5);
    const isOver = { isPaused: () => clock.monoMs() >= 200 };
    const history = pull('d', 'backfill', isOver);
    await clock.sleep(150);
    await Promise.all([pull('d', 'live'), history]);
    expect(log.filter((line) => line.includes('backfill'))).toHaveLength(2);
  });
});

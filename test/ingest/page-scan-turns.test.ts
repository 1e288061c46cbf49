/**
 * Page scans that take turns: who waits for whom, and who makes way.
 */
import { describe, expect, test } from 'vitest';
import type { RequestLane } from '../../src/core/ports.ts';
import { NOTHING_SCANNED, type ScanResult, type ScanTask } from '../../src/ingest/gap-scan.ts';
import { type PageScanner, withTurns } from '../../src/ingest/page-scan.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

const NEVER = new AbortController().signal;

describe('scans', () => {
  /** A scanner that reads pages of 100 ms until all are read or it has to stop. */
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
    const scanner = withTurns(inner);
    const scan = async (deviceId: string, lane: RequestLane, more: Partial<ScanTask> = {}): Promise<number> => {
      const range = { from: 0n, to: 100n };
      await scanner.scan({ deviceId, lane, range, limit: 100n, until: 'closed', ...more }, NEVER);
      return clock.monoMs();
    };
    return { clock, log, scan };
  }

  test('of one range wait for those that are as urgent or more', async () => {
    const { scan, log } = rig(2);
    expect(await Promise.all([scan('d', 'live'), scan('d', 'live'), scan('d', 'first-history')])).toEqual([
      200, 200, 400,
    ]);
    expect(log).toEqual(['d live 0', 'd live 100', 'd first-history 200', 'd first-history 300']);
  });

  test('that are less urgent make way after their page, and still end', async () => {
    const { clock, scan, log } = rig(3);
    const history = scan('d', 'first-history');
    await clock.sleep(150);
    // It does not wait for what is under way.
    expect(await scan('d', 'live')).toBe(450);
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

  test('of other devices and other ranges go side by side', async () => {
    const { scan } = rig(2);
    const apart = { range: { from: 100n, to: 200n } };
    expect(await Promise.all([scan('d', 'live'), scan('e', 'live'), scan('d', 'backfill', apart)])).toEqual([
      200, 200, 200,
    ]);
  });

  test('that are paused by others too do not continue', async () => {
    const { clock, scan, log } = rig(5);
    const isOver = { isPaused: () => clock.monoMs() >= 200 };
    const history = scan('d', 'backfill', isOver);
    await clock.sleep(150);
    await Promise.all([scan('d', 'live'), history]);
    expect(log.filter((line) => line.includes('backfill'))).toHaveLength(2);
  });

  test('that made way add up their results, and continue only with what is missing', async () => {
    const clock = createVirtualClock(0);
    const covers = { pages: 1, lastReadings: [], newReadings: 5, extendsCoverage: true, isUnderstood: true };
    const scanner = withTurns({
      peek: async () => false,
      scan: async () => {
        await clock.sleep(100);
        return covers;
      },
    });
    const task = { deviceId: 'd', range: { from: 0n, to: 100n }, limit: 100n } as const;
    const interrupted = async (until: ScanTask['until']): Promise<ScanResult> => {
      const history = scanner.scan({ ...task, lane: 'backfill', until }, NEVER);
      await clock.sleep(50);
      await scanner.scan({ ...task, lane: 'live', until: 'closed' }, NEVER);
      return await history;
    };
    expect(await interrupted('first coverage')).toMatchObject({ pages: 1, newReadings: 5, extendsCoverage: true });
    expect(await interrupted('closed')).toMatchObject({ pages: 2, newReadings: 10, extendsCoverage: true });
  });
});

/**
 * Interrupted commands: one that writes to a file still gets the signal, and a replay reports no points that it did not
 * send.
 */
import { describe, expect, test } from 'vitest';
import { realClock } from '../../src/app/real-clock.ts';
import { runExport } from '../../src/commands/export/command.ts';
import { createFormatter } from '../../src/commands/export/format.ts';
import type { Resender } from '../../src/commands/verify/compare-day.ts';
import { resendOthers } from '../../src/commands/verify/repair.ts';
import type { ArchiveReader } from '../../src/core/state/archive.ts';
import type { PointsText } from '../../src/core/state/job-args.ts';
import { patient } from '../support/patience.ts';

const SPAN = { from: 0n, to: 100n, devices: [], kinds: 'all' } as const;

test('--export into a file, which accepts every piece at once, stops within moments', async () => {
  const stop = new AbortController();
  const endMs = performance.now() + patient(5000);
  const line = `telemetry,device_id=d,sensor=s,workspace_id=w value=1 1\n`.repeat(2000).split('\n').slice(0, -1);
  const endless: ArchiveReader = {
    begin: () => ({ deviceId: 'd', from: 0n }),
    read: (_, { from }) => {
      const next = performance.now() < endMs ? { deviceId: 'd', from: from + 1n } : null;
      return { deviceId: 'd', from, to: from + 1n, lines: line, next };
    },
  };
  let text = '';
  const parts = {
    ...{ archiveReader: endless, range: SPAN, formatter: createFormatter('lp'), clock: realClock },
    write: (piece: string) => {
      text += piece;
      return Promise.resolve(true);
    },
    onStep: () => {},
  };
  setTimeout(() => stop.abort(new Error('stopped by SIGINT')), 20);
  const { outcome, lines } = await runExport(parts, stop.signal);
  expect(outcome).toBe('interrupted');
  expect(performance.now()).toBeLessThan(endMs);
  expect(lines).toBe(text.split('\n').length - 1);
});

test('--export counts nothing that its reader has not taken', async () => {
  const line = 'telemetry,device_id=d,sensor=s,workspace_id=w value=1 1';
  const archiveReader: ArchiveReader = {
    begin: () => ({ deviceId: 'd', from: 0n }),
    read: (_, { from }) => ({ deviceId: 'd', from, to: 100n, lines: [line], next: null }),
  };
  const parts = { archiveReader, range: SPAN, formatter: createFormatter('lp'), clock: realClock, onStep: () => {} };
  const { signal } = new AbortController();
  const gone = await runExport({ ...parts, write: () => Promise.resolve(false) }, signal);
  expect(gone).toEqual({ outcome: 'unread', lines: 0, readings: 0, devices: 0 });
  const there = await runExport({ ...parts, write: () => Promise.resolve(true) }, signal);
  expect(there).toEqual({ outcome: 'complete', lines: 1, readings: 1, devices: 1 });
});

describe('points other than readings, sent again before missing points are removed from the record', () => {
  const FOUND: PointsText[] = ['a', 'b', 'c'].map((id) => [id, '0', '100', 5]);
  const archiveReader: ArchiveReader = {
    begin: () => null,
    read: (_, { deviceId, from }) => ({
      ...{ deviceId, from, to: 100n, next: null },
      lines: [`telemetry,device_id=${deviceId} value=1 1`, `coverage_hour,device_id=${deviceId} readings=1i 1`],
    }),
  };
  const resenderBy = (take: (line: string) => 'accepted' | 'refused' | 'down'): Resender & { sent: string[] } => {
    const sent: string[] = [];
    let lines = 0;
    return {
      sent,
      rejections: () => ({ lines, tooOld: 0, message: lines === 0 ? null : 'too old' }),
      send: (all) => {
        sent.push(...all);
        const answers = all.map(take);
        lines += answers.filter((answer) => answer === 'refused').length;
        return Promise.resolve(answers.includes('down') ? { kind: 'down', message: 'down', hint: '' } : null);
      },
    };
  };
  const never = new AbortController().signal;

  test('a range of which the database rejects some points stays recorded as missing', async () => {
    const resender = resenderBy((line) => (line.includes('=b ') ? 'refused' : 'accepted'));
    const { found, problem } = await resendOthers({ archiveReader, resender }, FOUND, never);
    expect([found.map(([id]) => id), problem]).toEqual([['a', 'c'], null]);
    expect(resender.sent).toHaveLength(3);
    expect(resender.sent.every((line) => line.startsWith('coverage_hour,'))).toBe(true);
  });

  test('is an outcome where it is stopped or the database is down', async () => {
    const stop = new AbortController();
    const resender = resenderBy((line) => {
      if (line.includes('=b ')) stop.abort(new Error('stopped by SIGINT'));
      return 'accepted';
    });
    const stopped = await resendOthers({ archiveReader, resender }, FOUND, stop.signal);
    expect(stopped).toMatchObject({ problem: { message: 'interrupted' } });
    expect(stopped.found.map(([id]) => id)).toEqual(['a', 'b']);
    const down = resenderBy((line) => (line.includes('=b ') ? 'down' : 'accepted'));
    const { found, problem } = await resendOthers({ archiveReader, resender: down }, FOUND, never);
    expect([found.map(([id]) => id), problem?.message]).toEqual([['a'], 'down']);
  });
});

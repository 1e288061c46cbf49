/**
 * Progress: the line that renews itself, the log line a minute, and the words on both.
 */
import { describe, expect, test } from 'vitest';
import {
  createProgress,
  createTerminalLine,
  createWorkProgress,
  type ProgressFacts,
  progressParts,
} from '../../src/observe/progress.ts';

const FACTS: ProgressFacts = {
  devicesDone: 12,
  devicesTotal: 40,
  readings: 1_234_567,
  pointsDelivered: 1_200_000,
  pointsPending: 0,
  requests: 321,
  coveredShare: 0.437,
  wait: null,
};

/** A terminal that remembers what was written and shows what a person would see. */
function openTerminal(columns?: number) {
  let raw = '';
  const line = createTerminalLine({ write: (text) => (raw += text), ...(columns === undefined ? {} : { columns }) });
  const screen = (): string[] =>
    raw.split('\n').map((row) => row.slice(row.lastIndexOf('\r\u001b[K') + 1).replace('\u001b[K', ''));
  return { line, screen, raw: () => raw };
}

/** The words in their order, as a wide terminal shows them. */
function progressText(facts: ProgressFacts, remainingMs: number | null): string {
  const { head, rest } = progressParts(facts, remainingMs);
  return [...head, ...rest].join(', ');
}

describe('the words', () => {
  test('show the most important first', () => {
    expect(progressText(FACTS, 90_000)).toBe(
      '43 % covered, ETA 90 s, 1,234,567 new readings, 1,200,000 points delivered, 12/40 devices complete, 321 requests',
    );
  });

  test('have the ETA of the work itself and its basis in place of the measured ones', () => {
    const eta = { ms: 41_000, basis: 'about 495 requests at 718 a minute', hasRate: true };
    expect(progressText({ ...FACTS, eta, requestsPerMinute: 3 }, 90_000)).toMatch(
      /^43 % covered, ETA 41 s, about 495 requests at 718 a minute, 1,234,567 new readings, (?!.*requests a minute)/,
    );
  });

  test('show pending work, and a wait in place of an estimate', () => {
    expect(progressText({ ...FACTS, pointsPending: 5, wait: { ms: 61_000, ofAll: true } }, 90_000)).toBe(
      '43 % covered, quota used up, requests resume in 61 s, 1,234,567 new readings, 1,200,000 points delivered, 5 waiting, 12/40 devices complete, 321 requests',
    );
    // The live polls go on: nothing is used up.
    expect(progressText({ ...FACTS, wait: { ms: 27_000, ofAll: false } }, 90_000)).toMatch(
      /^43 % covered, history and backfill wait 27 s or more for their budget, 1,234,567 new readings/,
    );
  });

  test('show why telemetry is not polled in place of an estimate', () => {
    const unread = 'not polling: the API rejects the key';
    const facts = { ...FACTS, unread, waitsFor: 'reading the account', eta: { ms: 41_000, basis: '' } };
    expect(progressText({ ...facts, requestsPerMinute: 0, wait: { ms: 61_000, ofAll: true } }, 90_000)).toMatch(
      /^43 % covered, not polling: the API rejects the key, 1,234,567 new readings, (?!.*(ETA|a minute|quota))/,
    );
  });

  test('show points only where there are any', () => {
    expect(progressText({ ...FACTS, pointsDelivered: 0 }, null)).toMatch(/1,234,567 new readings, 12\/40 devices/);
    expect(progressText({ ...FACTS, pointsDelivered: 0, pointsPending: 5 }, null)).toMatch(
      /1,234,567 new readings, 5 points waiting, 12\/40 devices/,
    );
    const read = { ...FACTS, coveredShare: 1, devicesDone: 40, pointsDelivered: 0, pointsPending: 5 };
    expect(progressText(read, null)).toBe(
      '5 points waiting for the database, all 40 devices complete, 1,234,567 new readings so far',
    );
  });

  test('show 100 % only when it is true, and no percentage before the wanted range is known', () => {
    expect(progressText({ ...FACTS, coveredShare: 0.99999 }, null)).toMatch(/^99 %/);
    expect(progressText({ ...FACTS, coveredShare: 1 }, 0)).toMatch(/^100 % covered, (?!.*ETA)/);
    expect(progressText({ ...FACTS, coveredShare: null }, null)).toMatch(
      /^1,234,567 new readings, .*12\/40 devices complete/,
    );
  });
});

describe('on a terminal', () => {
  test('one line renews itself, at most five times a second', () => {
    const { line, screen, raw } = openTerminal(200);
    const progress = createProgress(line);
    for (let nowMs = 0; nowMs < 1000; nowMs += 10) progress.show({ ...FACTS, requests: nowMs }, nowMs);
    expect(screen()).toEqual([
      expect.stringMatching(/^\[######-{10}\] 43 % covered, .*12\/40 devices complete, 800 requests$/),
    ]);
    expect(raw().split('\r').length - 1).toBe(5);
  });

  test('has complete parts only, as many as fit into the terminal, 80 columns where the width is not known', () => {
    const whole = `[######----------] ${progressText(FACTS, null)}`;
    for (const columns of [...Array.from({ length: 141 }, (_, index) => index + 60), undefined]) {
      const { line, screen } = openTerminal(columns);
      createProgress(line).show(FACTS, 0);
      const [shown = ''] = screen();
      expect(shown.length).toBeLessThan(columns ?? 80);
      expect(whole === shown || whole.startsWith(`${shown}, `), shown).toBe(true);
    }
  });

  test('log lines stay intact above it', () => {
    const { line, screen } = openTerminal();
    line.write('first\n');
    line.draw('at 1');
    line.write('second\n');
    line.draw('at 2');
    expect(screen()).toEqual(['first', 'second', 'at 2']);
    line.clear();
    line.write('third\n');
    expect(screen()).toEqual(['first', 'second', 'third', '']);
  });

  test('the end removes the line', () => {
    const { line, screen } = openTerminal();
    const progress = createProgress(line);
    progress.show(FACTS, 0);
    progress.end();
    expect(screen()).toEqual(['']);
  });
});

describe('elsewhere', () => {
  test('the log gets a line a minute, the first after a minute', () => {
    const lines: string[] = [];
    const progress = createProgress((message) => lines.push(message));
    for (let nowMs = 5000; nowMs <= 185_000; nowMs += 1000) progress.show(FACTS, nowMs);
    progress.end();
    expect(lines).toHaveLength(3);
    expect(lines[0]).toMatch(/^progress: 43 % covered, 0 requests a minute, /);
  });

  test('a daemon in sync that has points to deliver now and then logs nothing', () => {
    const lines: string[] = [];
    const progress = createProgress((message) => lines.push(message));
    const synced = { ...FACTS, devicesDone: 40, coveredShare: 1 };
    for (let second = 0; second <= 600; second += 15)
      progress.show({ ...synced, pointsPending: second % 60 === 0 ? 30 : 0 }, second * 1000);
    expect(lines).toEqual([]);
    for (let second = 615; second <= 675; second += 15) progress.show({ ...synced, pointsPending: 30 }, second * 1000);
    expect(lines).toEqual([
      expect.stringMatching(/^progress: 30 points waiting for the database, all 40 devices complete, /),
    ]);
  });

  test('a backfill beside the sync has a line of its own', () => {
    const lines: string[] = [];
    const progress = createProgress((message) => lines.push(message));
    const synced = { ...FACTS, devicesDone: 40, coveredShare: 1 };
    const backfill = { ...FACTS, coveredShare: 0.65, requests: 718 };
    for (let nowMs = 0; nowMs <= 60_000; nowMs += 15_000) progress.show({ ...synced, backfill }, nowMs);
    expect(lines).toEqual([
      expect.stringMatching(/^backfill: 65 % covered, .* 12\/40 devices complete, 718 requests$/),
    ]);
    for (let nowMs = 60_000; nowMs <= 120_000; nowMs += 15_000) progress.show({ ...FACTS, backfill }, nowMs);
    expect(lines.slice(1).map((line) => line.slice(0, 22))).toEqual([
      'progress: 43 % covered',
      'backfill: 65 % covered',
    ]);
  });

  test('on a terminal the backfill has the line once the sync is complete', () => {
    const { line, screen } = openTerminal(200);
    const progress = createProgress(line);
    const backfill = { ...FACTS, coveredShare: 0.65 };
    progress.show({ ...FACTS, backfill }, 0);
    expect(screen()[0]).toMatch(/^\[######-{10}\] 43 % covered, /);
    progress.show({ ...FACTS, coveredShare: 1, backfill }, 1000);
    expect(screen()[0]).toMatch(/^\[##########-{6}\] backfill: 65 % covered, /);
  });
});

describe('the rate', () => {
  const shown = (facts: (second: number) => Partial<ProgressFacts>, seconds: number): string => {
    const { line, screen } = openTerminal(200);
    const progress = createProgress(line);
    for (let second = 0; second <= seconds; second += 1) progress.show({ ...FACTS, ...facts(second) }, second * 1000);
    return screen()[0] ?? '';
  };

  test('counts the requests of the last minute, from five seconds on', () => {
    expect(shown((second) => ({ requests: second * 2 }), 4)).not.toContain('a minute');
    expect(shown((second) => ({ requests: second * 2 }), 30)).toContain(' 120 requests a minute,');
    expect(shown((second) => ({ requests: second < 100 ? second * 2 : 200 }), 161)).toContain(' 0 requests a minute,');
  });

  test('no ETA is estimated where the work has one of its own that is not known yet', () => {
    const moving = (second: number) => ({ coveredShare: second / 100 });
    expect(shown(moving, 30)).toContain('ETA 70 s');
    expect(shown((second) => ({ ...moving(second), eta: null }), 30)).not.toContain('ETA');
    const eta = { ms: 41_000, basis: '' };
    expect(shown((second) => ({ ...moving(second), requests: second, eta }), 30)).toMatch(
      / ETA 41 s, 60 requests a minute,/,
    );
  });

  test('is not shown during a wait: it is that of the time before', () => {
    for (const wait of [{ waitsFor: 'waiting for 2 devices' }, { wait: { ms: 60_000, ofAll: false } }])
      expect(shown((second) => ({ requests: second, ...wait }), 30)).not.toContain('a minute');
  });

  test('is that of the work where it reports one', () => {
    expect(shown((second) => ({ requests: second, requestsPerMinute: 9.44 }), 30)).toContain(' 9.4 requests a minute,');
  });

  /** The line on a terminal of a width, for work that has an ETA and a rate. */
  const shownIn = (columns: number, facts: Partial<ProgressFacts>): string => {
    const { line, screen } = openTerminal(columns);
    createProgress(line).show({ ...FACTS, eta: { ms: 70_000, basis: '' }, requestsPerMinute: 60, ...facts }, 0);
    return screen()[0] ?? '';
  };
  const BASIS = 'about 12,495 requests to go at 1,718 a minute, less if devices are younger than the range';
  const LONG = { coveredShare: 0.999, requestsPerMinute: 12_345, eta: { ms: 7_100_000, basis: '' } };

  test('stands with the ETA on a terminal of any width from 60 columns on', () => {
    expect(shownIn(60, { coveredShare: 0.3 })).toBe('[####------------] 30 % covered, ETA 70 s, 60 req/min');
    expect(shownIn(80, { coveredShare: 0.3 })).toBe('[####------------] 30 % covered, ETA 70 s, 60 requests a minute');
    expect(shownIn(60, LONG)).toBe('[#######-] 99 % covered, ETA 119 min, 12,345 req/min');
    const backfill = { ...FACTS, ...LONG };
    expect(shownIn(60, { coveredShare: 1, backfill })).toBe('backfill: 99 % covered, ETA 119 min, 12,345 req/min');
    const basis = { ...LONG, eta: { ms: 7_100_000, basis: BASIS, hasRate: true } };
    for (const facts of [{}, LONG, { coveredShare: 1, backfill }, basis]) {
      for (let columns = 60; columns <= 200; columns += 1) {
        const shown = shownIn(columns, facts);
        expect(shown.length).toBeLessThan(columns);
        expect(shown, `${columns}`).toMatch(/ covered, ETA \S+ (s|min), .*\d (req\/min|requests a minute|a minute)\b/);
      }
    }
    expect(shownIn(200, basis)).toContain(`ETA 119 min, ${BASIS}, 1,234,567 new readings`);
  });

  test('follows the ETA with its basis, which a narrow terminal leaves out', () => {
    const eta = { ms: 70_000, basis: 'less if devices are younger than the range' };
    expect(shownIn(200, { eta })).toContain(
      ' ETA 70 s (less if devices are younger than the range), 60 requests a minute, ',
    );
    expect(shownIn(80, { eta })).toMatch(/^\[######-{10}\] 43 % covered, ETA 70 s, 60 req\/min, /);
  });

  test('makes room for why telemetry is not polled, and nothing is called complete then', () => {
    const unread = 'not polling: the API rejects the key';
    const synced = { coveredShare: 1, devicesDone: 40, readings: 0, pointsDelivered: 0, requests: 1, unread };
    expect(shownIn(60, synced)).toBe('[################] not polling: the API rejects the key');
    expect(shownIn(200, { ...synced, pointsPending: 5 })).toBe(
      '[################] not polling: the API rejects the key, 0 new readings, 5 points waiting, 1 request',
    );
    expect(shownIn(60, { coveredShare: 0.2, unread })).toBe('20 % covered, not polling: the API rejects the key');
    const backfill = { ...FACTS, coveredShare: 0.65, unread };
    expect(shownIn(200, { ...synced, backfill })).toMatch(
      /^\[#{10}-{6}\] backfill: 65 % covered, not polling: the API rejects the key, /,
    );
  });

  test('of a wait, its length is readable in 60 columns', () => {
    expect(shownIn(60, { wait: { ms: 3_500_000, ofAll: true } })).toBe(
      '[######----------] 43 % covered, quota used up for 59 min',
    );
    expect(shownIn(60, { wait: { ms: 3_500_000, ofAll: false } })).toBe(
      '[###-----] 43 % covered, history waits 59 min for budget',
    );
  });
});

describe('the estimate', () => {
  /** The line after work at an even pace, a share of 0.001 a second. */
  function shownAfter(shares: readonly number[]): string {
    const { line, screen } = openTerminal(200);
    const progress = createProgress(line);
    shares.forEach((coveredShare, second) => {
      progress.show({ ...FACTS, coveredShare }, second * 1000);
    });
    return screen()[0] ?? '';
  }

  test('follows an even rate', () => {
    expect(shownAfter(Array.from({ length: 101 }, (_, second) => second / 1000))).toContain('ETA 15 min');
  });

  test('goes by the last minute, not by a slow beginning', () => {
    const slow = Array.from({ length: 600 }, () => 0.1);
    const fast = Array.from({ length: 61 }, (_, second) => 0.1 + second / 100);
    expect(shownAfter([...slow, ...fast])).toMatch(/ETA 3[01] s/);
  });

  test('begins anew when the work grew', () => {
    expect(shownAfter([0.5, 0.6, 0.7, 0.8, 0.2, 0.25, 0.3, 0.35])).toMatch(/ETA 1[34] s/);
  });

  test('shows no estimate where none is known: at once, while nothing moves, and when the work grew', () => {
    expect(shownAfter([0])).not.toContain('ETA');
    expect(shownAfter([0.3, 0.3, 0.3, 0.3])).not.toContain('ETA');
    expect(shownAfter([0.5, 0.6, 0.7, 0.8, 0.2])).not.toContain('ETA');
  });
});

describe('work of any kind', () => {
  const at = (share: number | null) => () => ({ share, text: '12 of 40 looked at' });

  test('is a bar with its share, the time that is left and its words; without a share the words alone', () => {
    const { line, screen, raw } = openTerminal(80);
    const show = createWorkProgress(line);
    for (let nowMs = 0; nowMs <= 10_000; nowMs += 10) show(at(nowMs / 20_000), nowMs);
    expect(screen()[0]).toBe('[########--------] 50 %, ETA 10 s, 12 of 40 looked at');
    expect(raw().split('\r').length - 1, 'at most five times a second').toBe(51);
    show(at(null), 20_000);
    expect(screen()[0]).toBe('12 of 40 looked at');
  });

  test.each([60, 120, 200])('has its rate after the time that is left, in %i columns', (columns) => {
    const { line, screen } = openTerminal(columns);
    const show = createWorkProgress(line);
    for (let nowMs = 0; nowMs <= 10_000; nowMs += 200) {
      const rate = { done: nowMs * 2, text: (perSecond: number) => `${perSecond} points/s` };
      show(() => ({ share: nowMs / 20_000, text: '12 of 40 looked at', rate }), nowMs);
    }
    expect(screen()[0]).toMatch(/^\[#{8}-{8}\] 50 %, ETA 10 s, 2000 points\/s/);
    expect(screen()[0]?.includes(', 12 of 40 looked at')).toBe(columns > 60);
  });

  test('in a log is a line a minute, the first after a minute, each with the time that is left', () => {
    const lines: string[] = [];
    const show = createWorkProgress((message) => lines.push(message));
    for (let nowMs = 0; nowMs <= 185_000; nowMs += 1000) show(at(nowMs / 590_000), nowMs);
    expect(lines).toEqual([
      'progress: 10 %, ETA 9 min, 12 of 40 looked at',
      'progress: 20 %, ETA 8 min, 12 of 40 looked at',
      'progress: 30 %, ETA 7 min, 12 of 40 looked at',
    ]);
  });

  test('that waits for an unknown time names the wait in place of an estimate', () => {
    expect(progressText({ ...FACTS, waitsFor: 'waits for 2 devices that cannot be reached' }, 90_000)).toMatch(
      /covered, waits for 2 devices that cannot be reached, (?!.*ETA)/,
    );
  });
});

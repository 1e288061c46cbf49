/** The facts about one device, and when a request for it is worth sending. */
import { describe, expect, test } from 'vitest';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import {
  computeOutlook,
  idlePollDueMs,
  NEVER_MS,
  needsRate,
  nextReadingMs,
  noteFailure,
  noteListed,
  notePollAnswer,
  noteSilent,
  type OutlookFacts,
  type OutlookRules,
  stopAtMs,
  turnOrderMs,
  unknownDevice,
} from '../../src/scheduler/device-outlook.ts';
import { UNKNOWN_RATE } from '../../src/scheduler/report-rate.ts';
import { POLLS } from '../support/defaults.ts';

const NOW = 1_000_000_000_000;
const RULES: OutlookRules = {
  polls: POLLS,
  telemetryMs: MINUTE_MS,
  pageSize: 200,
  gracePeriodMs: 0,
  fill: 0.97,
  slackMs: 0,
  isInTurn: false,
  staleMs: Number.POSITIVE_INFINITY,
  isUnlisted: false,
};
const EVERY_TEN = { intervalMs: 10 * SECOND_MS, deviationMs: 0 };

/** A device that reported every ten seconds until it was polled just now. */
function reporting(changes: Partial<OutlookFacts> = {}): OutlookFacts {
  return { ...unknownDevice(), newestMs: NOW, polledMs: NOW, rate: EVERY_TEN, ...changes };
}

const EMPTY = { newReadings: 0, instantsMs: [], liveGap: null };

describe('the outlook', () => {
  test('of a device that was never polled: only a sign of life makes it due, at once, the newest sign first', () => {
    const never = unknownDevice();
    expect(computeOutlook(never, RULES)).toBeNull();
    noteListed(never, NOW - HOUR_MS, NOW);
    expect(computeOutlook(never, RULES)).toEqual({ oldestMs: -(NOW - HOUR_MS), dueMs: NEVER_MS, fullMs: Infinity });
  });

  test('of a device that was never polled and that the list does not show as seen: due once, unless it is offline', () => {
    const unseen = (changes: Partial<OutlookFacts>) => {
      const facts = Object.assign(unknownDevice(), changes);
      noteListed(facts, null, NOW);
      return computeOutlook(facts, RULES);
    };
    expect(unseen({}), 'after those with a sign of life').toEqual({ oldestMs: 0, dueMs: NEVER_MS, fullMs: Infinity });
    expect(unseen({ isOffline: true })).toBeNull();
    expect(unseen({ isActive: false })).toBeNull();
    expect(unseen({ polledMs: NOW })).toBeNull();
  });

  test('of a device that reports: due after the freshness, full when a page is', () => {
    expect(computeOutlook(reporting(), RULES)).toEqual({
      oldestMs: NOW + 10 * SECOND_MS,
      dueMs: NOW + MINUTE_MS,
      fullMs: NOW + 0.97 * 200 * 10 * SECOND_MS,
    });
  });

  test('a page counts as full earlier by the slack, but never before it is four fifths full', () => {
    const fullMs = (slackMs: number) => (computeOutlook(reporting(), { ...RULES, slackMs })?.fullMs ?? 0) - NOW;
    expect([fullMs(MINUTE_MS), fullMs(HOUR_MS)]).toEqual([1_940_000 - MINUTE_MS, 1_600_000]);
  });

  test('a rare reading is waited for until it is all but certain', () => {
    const rare = reporting({ rate: { intervalMs: HOUR_MS, deviationMs: 0 } });
    const dueMs = computeOutlook(rare, RULES)?.dueMs ?? 0;
    expect(dueMs).toBeGreaterThan(NOW + HOUR_MS);
    expect(dueMs).toBeLessThan(NOW + HOUR_MS + MINUTE_MS);
  });

  test('a device that is not active or is quiet by its listing has none', () => {
    expect(computeOutlook(reporting({ isActive: false }), RULES)).toBeNull();
    const quiet = reporting({ isQuiet: true });
    noteListed(quiet, NOW, NOW);
    expect(computeOutlook(quiet, RULES)).toBeNull();
  });

  test('a gap below newer readings comes before all predictions, after a rest', () => {
    const liveGap = { fromMs: NOW - HOUR_MS, toMs: NOW };
    const open = reporting({ liveGap, isQuiet: true, restMs: NOW + MINUTE_MS });
    expect(computeOutlook(open, RULES)).toEqual({
      oldestMs: NOW - HOUR_MS,
      dueMs: NOW + MINUTE_MS,
      fullMs: NOW + MINUTE_MS,
    });
  });

  test('a quiet device without a listing is due at doubling distances, up to its idle poll', () => {
    const due = (emptiesInARow: number) =>
      computeOutlook(reporting({ isQuiet: true, emptiesInARow }), RULES)?.dueMs ?? null;
    const [one = 0, two = 0] = [due(4), due(5)];
    expect((two ?? 0) - NOW).toBe(2 * ((one ?? 0) - NOW));
    expect(due(20)).toBeNull();
  });
});

describe('a device that the listing does not follow', () => {
  const started = (changes: Partial<OutlookFacts> = {}) =>
    reporting({ newestMs: NOW - MINUTE_MS, rate: UNKNOWN_RATE, ...changes });

  test('is polled at once after a start, as nothing else shows when its next reading is due', () => {
    expect(computeOutlook(started(), RULES)?.dueMs).toBe(NOW + RULES.telemetryMs);
    expect(computeOutlook(started({ newestMs: NOW - POLLS.idlePollMs }), RULES), 'silent for an idle poll').toBeNull();
    expect(computeOutlook(started({ isActive: false }), RULES), 'paused').toBeNull();
    const listed = started();
    noteListed(listed, NOW - MINUTE_MS, NOW);
    expect(computeOutlook(listed, RULES), 'the listing shows the next one').toBeNull();
  });

  test('is not quiet where the first page after a start has nothing new and shows the rate', () => {
    const facts = started();
    const instantsMs = [1, 11, 21].map((ago) => NOW - ago * MINUTE_MS);
    notePollAnswer(facts, { newReadings: 0, instantsMs, liveGap: null }, NOW);
    expect(facts).toMatchObject({ isQuiet: false, emptiesInARow: 0, rate: { intervalMs: 10 * MINUTE_MS } });
    const one = started();
    notePollAnswer(one, { newReadings: 0, instantsMs: [NOW - MINUTE_MS], liveGap: null }, NOW);
    expect(one, 'a page of one reading shows none').toMatchObject({ isQuiet: true, emptiesInARow: 1 });
  });

  test('has no overdue reading until its next poll is due, nor after one that found nothing', () => {
    expect(nextReadingMs(reporting(), POLLS)).toBe(NOW + 11 * SECOND_MS);
    expect(nextReadingMs(reporting({ isQuiet: true, emptiesInARow: 1 }), POLLS)).toBe(NOW + 11 * SECOND_MS);
    expect(nextReadingMs(reporting({ isQuiet: true, emptiesInARow: 2 }), POLLS)).toBeNull();
  });

  test('has its idle poll before its next reading where it reports seldom, and an empty one shows nothing', () => {
    const facts = reporting({ rate: { intervalMs: 24 * HOUR_MS, deviationMs: 0 } });
    for (const polledMs of [NOW, NOW + POLLS.idlePollMs]) {
      expect(facts.polledMs).toBe(polledMs);
      expect(computeOutlook(facts, RULES), 'left to the idle poll').toBeNull();
      expect(nextReadingMs(facts, POLLS)).toBe(polledMs + POLLS.idlePollMs);
      notePollAnswer(facts, EMPTY, polledMs + POLLS.idlePollMs);
      expect(facts).toMatchObject({ isQuiet: false, emptiesInARow: 0, rate: { intervalMs: 24 * HOUR_MS } });
    }
  });

  test('may have one at any time where nothing shows when it reports', () => {
    const others: Partial<OutlookFacts>[] = [
      { newestMs: NEVER_MS },
      { rate: UNKNOWN_RATE },
      { rate: { intervalMs: 10 * SECOND_MS, deviationMs: 2 * SECOND_MS } },
      { isActive: false },
      { failures: 1 },
      { liveGap: { fromMs: 0, toMs: 1 } },
    ];
    for (const changes of others) expect(nextReadingMs(reporting(changes), POLLS)).toBeNull();
    const listed = reporting();
    noteListed(listed, NOW, NOW);
    expect(nextReadingMs(listed, POLLS), 'the listing shows it').toBeNull();
  });
});

describe('signs of life in the listing', () => {
  test('wake a quiet device, and are proven by having moved', () => {
    const facts = reporting({ isQuiet: true });
    expect(noteListed(facts, NOW, NOW)).toBe(false);
    expect(noteListed(facts, NOW + HOUR_MS, NOW + HOUR_MS)).toBe(true);
    expect(facts).toMatchObject({ isQuiet: false, isBack: true, hint: { trust: 'confirmed' } });
    expect(noteListed(facts, NOW + 2 * HOUR_MS, NOW + 2 * HOUR_MS), 'it is awake already').toBe(false);
  });

  test('that differ by the cut to seconds are none', () => {
    const facts = reporting({ isQuiet: true });
    expect(noteListed(facts, NOW + SECOND_MS, NOW + HOUR_MS)).toBe(false);
  });

  test('that three times no reading follows are not trusted any more', () => {
    const facts = reporting();
    const dropped = [1, 2, 3].map((nth) => {
      noteListed(facts, NOW + nth * HOUR_MS, NOW + nth * HOUR_MS);
      return notePollAnswer(facts, EMPTY, NOW + nth * HOUR_MS);
    });
    expect(dropped).toEqual([false, false, true]);
    expect(facts.hint.trust).toBe('dropped');
  });

  test('are dropped at once where they denied a reading that was there', () => {
    const facts = reporting();
    noteListed(facts, NOW, NOW + HOUR_MS);
    const page = { newReadings: 1, instantsMs: [NOW + MINUTE_MS], liveGap: null };
    expect(notePollAnswer(facts, page, NOW + HOUR_MS)).toBe(true);
    expect(notePollAnswer(facts, page, NOW + HOUR_MS), 'that is reported once').toBe(false);
  });

  test('may lag a minute behind', () => {
    const facts = reporting();
    noteListed(facts, NOW, NOW + MINUTE_MS);
    expect(notePollAnswer(facts, { newReadings: 1, instantsMs: [NOW + 30_000], liveGap: null }, NOW + MINUTE_MS)).toBe(
      false,
    );
  });
});

describe('answers and failures', () => {
  test('a reading ends quiet and rest', () => {
    const facts = reporting({ isQuiet: true, emptiesInARow: 3, failures: 2, restMs: NOW + HOUR_MS });
    notePollAnswer(facts, { newReadings: 1, instantsMs: [NOW + MINUTE_MS], liveGap: null }, NOW + MINUTE_MS);
    expect(facts).toMatchObject({
      isQuiet: false,
      emptiesInARow: 0,
      failures: 0,
      restMs: NEVER_MS,
      newestMs: NOW + MINUTE_MS,
    });
  });

  test('a page further down shows nothing about the newest end', () => {
    const facts = reporting({ liveGap: { fromMs: NOW - HOUR_MS, toMs: NOW } });
    notePollAnswer(facts, { newReadings: 5, instantsMs: [NOW - MINUTE_MS], liveGap: null }, NOW + HOUR_MS);
    expect(facts).toMatchObject({ newestMs: NOW, isQuiet: false, liveGap: null });
  });

  test('a device that reports more often is polled sooner, although most of its page is of the time before', () => {
    const every = { intervalMs: 17 * MINUTE_MS, deviationMs: 0 };
    const facts = reporting({ newestMs: NOW - 17 * MINUTE_MS, rate: every });
    const newer = Array.from({ length: 17 }, (_, ago) => NOW - ago * MINUTE_MS);
    const older = Array.from({ length: 100 }, (_, ago) => NOW - (1 + ago) * 17 * MINUTE_MS);
    notePollAnswer(facts, { newReadings: 17, instantsMs: [...newer, ...older], liveGap: null }, NOW);
    expect((computeOutlook(facts, RULES)?.dueMs ?? 0) - NOW).toBeLessThan(every.intervalMs);
  });

  test('failures of its own rest it for a minute, then twice as long each time, for 20 minutes at most', () => {
    const facts = reporting();
    const rests = Array.from({ length: 8 }, () => {
      noteFailure(facts, NOW);
      return (facts.restMs - NOW) / MINUTE_MS;
    });
    expect(rests).toEqual([1, 2, 4, 8, 16, 20, 20, 20]);
  });

  test('a device of signs without readings has its idle poll alone until it brings one', () => {
    const facts = reporting();
    noteSilent(facts);
    noteListed(facts, NOW + HOUR_MS, NOW + HOUR_MS);
    expect(computeOutlook(facts, RULES)).toBeNull();
    notePollAnswer(facts, { newReadings: 1, instantsMs: [NOW + HOUR_MS], liveGap: null }, NOW + HOUR_MS);
    expect(computeOutlook(facts, RULES)).not.toBeNull();
  });
});

describe('where a request stops', () => {
  const later = (pages: number) => NOW + pages * 200 * 10 * SECOND_MS;
  const stopMs = NOW + 0.97 * 200 * 10 * SECOND_MS;
  test.each<[string, number, Partial<OutlookFacts>, number | null]>([
    ['not while it is all on one page', 0.97, {}, null],
    ['at a page where a little more is there', 1.2, {}, stopMs],
    ['not where that is so much that its newest should not wait', 2.5, {}, null],
    ['not where its rate does not say how much there is', 1.2, { isBack: true }, null],
    ['not where it is quiet', 1.2, { isQuiet: true }, null],
    ['not where a gap is open', 1.2, { liveGap: { fromMs: 0, toMs: NOW } }, null],
    ['not without a rate', 1.2, { rate: { intervalMs: null, deviationMs: 0 } }, null],
  ])('%s', (_what, pages, changes, expected) => {
    expect(stopAtMs(reporting(changes), RULES, later(pages))).toBe(expected);
    expect(stopAtMs(reporting(changes), { ...RULES, isInTurn: true }, later(pages))).toBeNull();
  });
});

describe('a page that repeats readings since the watermark', () => {
  const rules = { ...RULES, gracePeriodMs: 2 * MINUTE_MS };
  const later = NOW + 1.2 * 200 * 10 * SECOND_MS;

  test('reaches less far: it stops sooner, and counts as full sooner', () => {
    expect(stopAtMs(reporting(), rules, later)).toBe(NOW + 1_940_000 - 2 * MINUTE_MS);
    expect(computeOutlook(reporting(), rules)?.fullMs).toBe(NOW + 1_940_000 - 2 * MINUTE_MS);
  });

  test('has room for half a page of new readings, however many it repeats', () => {
    expect(stopAtMs(reporting(), { ...rules, gracePeriodMs: HOUR_MS }, later)).toBe(NOW + 970_000);
    expect(computeOutlook(reporting(), { ...rules, gracePeriodMs: HOUR_MS })?.fullMs).toBe(NOW + 970_000);
  });

  test('is full of new readings where only the newest are wanted', () => {
    expect(computeOutlook(reporting(), { ...rules, isInTurn: true })?.fullMs).toBe(NOW + 1_940_000);
  });
});

describe('the order of devices whose page is full', () => {
  test('is that of the overflow; in turn that of the last request; a short scan comes first', () => {
    const facts = reporting({ polledMs: NOW - HOUR_MS });
    expect(turnOrderMs(facts, RULES)).toBe(NOW + 200 * 10 * SECOND_MS);
    expect(turnOrderMs(facts, { ...RULES, isInTurn: true })).toBe(NOW - HOUR_MS);
    const scan = (pages: number) => ({ fromMs: NOW - pages * 200 * 10 * SECOND_MS, toMs: NOW });
    expect(turnOrderMs({ ...facts, liveGap: scan(10) }, RULES)).toBe(NEVER_MS);
    expect(turnOrderMs({ ...facts, liveGap: scan(11) }, RULES)).toBe(NOW - HOUR_MS);
  });
});

test('the idle poll is due when its interval has passed since the last request', () => {
  expect(idlePollDueMs(NOW, RULES.polls)).toBe(NOW + 6 * HOUR_MS);
});

describe('without a device list', () => {
  const rules = { ...RULES, isUnlisted: true };
  /** Until when a device waits that the list followed before. */
  const waitMs = (changes: Partial<OutlookFacts>): number | null => {
    const facts = reporting(changes);
    noteListed(facts, facts.newestMs, NOW);
    const dueMs = computeOutlook(Object.assign(facts, changes), rules)?.dueMs ?? null;
    return dueMs && dueMs - NOW;
  };

  test('a quiet device is due at its next reading, then at doubling distances, up to its idle poll', () => {
    expect(waitMs({ isQuiet: true })).toBe(MINUTE_MS);
    expect(waitMs({ isQuiet: true, emptiesInARow: 10 })).toBe(2 ** 9 * 11 * SECOND_MS);
    expect(waitMs({ isQuiet: true, emptiesInARow: 11 })).toBe(2 ** 10 * 11 * SECOND_MS);
    expect(waitMs({ isQuiet: true, emptiesInARow: 20 })).toBeNull();
    expect(waitMs({ isQuiet: true, newestMs: NOW - POLLS.idlePollMs }), 'silent for an idle poll').toBeNull();
    expect(waitMs({ isQuiet: true, isActive: false })).toBeNull();
  });

  test('a device of an unknown rate is due at once, and its page shows the rate', () => {
    const unknown = { rate: UNKNOWN_RATE, newestMs: NOW - HOUR_MS, polledMs: NOW - HOUR_MS / 2 };
    expect(waitMs(unknown)).toBe(MINUTE_MS - HOUR_MS / 2);
    expect(waitMs({ ...unknown, newestMs: NOW - 7 * HOUR_MS }), 'silent for an idle poll').toBeNull();
    const facts = reporting(unknown);
    noteListed(facts, facts.newestMs, NOW);
    expect([needsRate(facts, RULES), needsRate(facts, rules)]).toEqual([false, true]);
    expect(computeOutlook(facts, RULES), 'with a list, that shows its next reading').toBeNull();
  });
});

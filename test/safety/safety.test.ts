import { describe, expect, test } from 'vitest';
import { influxdAvailable } from '../support/influxd.ts';
import { openBench, REAL_PROGRAM } from '../support/rig.ts';
import { SCENARIOS, type ScenarioName } from '../support/scenarios.ts';
import { sharedBench } from '../support/shared-bench.ts';

const bench = sharedBench(openBench);

const STORIES: Record<ScenarioName, string> = {
  undisturbed: 'without a fault everything is there, once',
  killedAtAnyEffect: 'a kill at any effect loses nothing and doubles nothing',
  killedAgainAndAgain: 'kill after kill in one state still comes to the end',
  killedBetweenParts: 'a page that is committed in parts is covered by the last one alone',
  falseEmpties: 'answers that deny what was shown before prove nothing',
  laggingReplica: 'pages without the reading that they go on from prove nothing',
  oldestFirst: 'a page out of order proves nothing, also where it ends its range',
  behindTheList: 'a page that stops short of a sign of life proves nothing',
  lateReading: 'a reading that appears in covered time is delivered',
  renamed: 'an old reading keeps its name',
  firstAnswerEmpty: 'an empty answer alone proves nothing',
  lateInsideGracePeriod: 'the grace period is not covered',
  brokenDeliveries: 'a lost answer of the database costs nothing but a repetition',
  slowAnswers: 'an answer counts for the time of its request',
  dateJumps: 'a Date that jumps ahead is not believed',
  dateFallsBack: 'ranges covered by a clock that fell back are read again',
  firstDateWrong: 'a first Date that agrees with no other clock covers nothing',
  lockDeleted: 'a program whose lock file is gone writes no more',
  namedByAClockAhead: 'what was named by a clock that was ahead is tried at once',
  farFuture: 'a reading of a time that no clock has reached is not archived, and hides none',
  clockFallsForSeconds: 'a clock that falls back takes back the coverage of every device',
  cursorsThatSkip: 'no cursor is trusted where time can move on',
  emptyForHours: 'empty answers do not show that stored readings are gone',
  emptyFromTheFirst: 'ranges found empty before the first reading are read again',
  silentAtFirstContact: 'an empty answer about a time at which the device was seen proves nothing',
  silentWhileCovered: 'a silence is checked when it ends, wherever it is covered',
  emptyBesideOthers: 'an empty answer that others spoke for is asked for once more',
  emptyAboveHistory: 'what was believed to be empty is asked for again once the device shows a reading',
  returnsWithItsBuffer: 'late readings are followed down to the next stored one',
  emptyFurtherDown: 'an empty answer proves nothing while others were seen to be false',
  emptyBehindCursor: 'an empty page behind a cursor proves nothing unless its chain ends so twice',
  emptyOnceMore: 'what was shown meanwhile is not gone',
  recheckAfterKills: 'a recheck brings what was left out, however often it is killed',
  fullDisk: 'a database that accepts nothing rejects no line',
  quotaSpent: 'a wait that the API asks for is kept',
  linkedToNowhere: 'no state is made behind a link to a disk that is not mounted',
  restartedWithinAMinute: 'what was sent before a restart counts after it',
  generousHeaders: 'headers can only slow it down',
};

describe.runIf(influxdAvailable())('safety', () => {
  test.each(Object.keys(STORIES) as ScenarioName[])('%s', async (name) => {
    expect(await SCENARIOS[name](bench, REAL_PROGRAM), STORIES[name]).toEqual([]);
  });
});

/** The safety scenarios, each with the whole program, the faulty simulator and a real InfluxDB, in virtual time. */
import { describe, expect, test } from 'vitest';
import { influxdAvailable } from '../support/influxd.ts';
import { openBench, REAL_PROGRAM } from '../support/rig.ts';
import { SCENARIOS, type ScenarioName } from '../support/scenarios.ts';
import { sharedBench } from '../support/shared-bench.ts';

const bench = sharedBench(openBench);

const STORIES: Record<ScenarioName, string> = {
  undisturbed: 'a run without faults stores every reading once',
  killedAtAnyEffect: 'a kill at any effect loses no reading and doubles none',
  killedAgainAndAgain: 'a run that is killed at every effect still completes',
  killedBetweenParts: 'a page that is committed in parts is covered by its last part alone',
  committedInParts: 'a page of many values is committed in parts, with turns for other work',
  falseEmpties: 'an empty answer covers nothing where readings were seen before',
  laggingReplica: 'a page without its overlap reading covers nothing',
  endsAboveStored: 'a page that ends above the newest stored reading covers nothing',
  beginsBelowStored: 'a page that begins below the oldest stored reading covers nothing',
  belowGivenUp: 'a page below a gap that was given up covers nothing above its newest reading',
  beginsBelowForAnHour: 'readings that pages out of order hid for an hour are requested again',
  oldestFirst: 'a page out of order covers nothing, even at the end of its range',
  behindTheList: 'a page that ends before the last sign of life covers nothing',
  behindItsSign: 'several pages that end before the last sign of life cover nothing without a control',
  behindTheTime: 'a page that ends before the sign of life by which the time is known covers nothing',
  lateReading: 'a reading that appears in a covered range is delivered',
  lateInTheirHour: 'the newest count of an hour stands in every database',
  renamed: 'an old reading keeps the name that its device had',
  firstAnswerEmpty: 'a single empty answer covers nothing',
  lateInsideGracePeriod: 'the coverage ends before the grace period',
  brokenDeliveries: 'a lost answer of the database costs one repeated write',
  brokenBesidePrepared: 'a batch that is prepared while another one fails is sent in its turn',
  slowAnswers: 'an answer covers up to the time of its request',
  dateJumps: 'a Date that jumps ahead is ignored',
  dateJumpsToLocalClock: 'a Date that jumps to a wrong local clock is ignored while devices report by the right one',
  dateFallsBack: 'ranges that a clock covered before it fell back are read again',
  firstDateWrong: 'a first Date that agrees with no other clock covers nothing',
  lockDeleted: 'a program whose lock file is deleted stops writing',
  namedByAClockAhead: 'a gap that a clock ahead has named is retried at once',
  namedUnderALocalClockAhead: 'a gap is named also where the local clock is ahead',
  farFuture: 'a reading from the far future is not archived and hides no other',
  clockFallsForSeconds: 'a clock that falls back withdraws the coverage of every device',
  cursorsThatSkip: 'a scan uses no cursor where time can move on',
  cursorsInACircle: 'a chain of cursors without an end is given up',
  emptyForHours: 'empty answers do not prove that stored readings are gone',
  emptyFromTheFirst: 'ranges found empty before the first reading are read again',
  silentAtFirstContact: 'an empty answer about a time with a sign of life covers nothing',
  silentWhileCovered: 'a covered silence is read again when it ends',
  silentBelowWanted: 'a covered silence that ends below the wanted range is read again',
  emptyBesideOthers: 'an empty answer that a control supports is requested once more',
  emptyUnderSmallQuota: 'an empty answer that a control supports is requested once more, also with a small quota',
  emptyAboveHistory: 'a range accepted as empty is read again once the device has a reading',
  returnsWithItsBuffer: 'a scan follows late readings down to the next stored one',
  emptyFurtherDown: 'an empty answer covers nothing while other answers were seen to be false',
  emptyBelowSilence: 'an empty window of history that no stored reading supports is requested again',
  emptyNextToEach: 'empty windows next to each other do not make each other due for ever',
  emptyBehindCursor: 'an empty page behind a cursor covers nothing unless its chain ends so twice',
  emptyOnceMore: 'a reading that an answer has shown meanwhile is not gone',
  emptyAndNeverSeen: 'the first empty answers about a device that was never seen are requested again',
  rejectedForAWhile: 'an age that a smaller plan rejected is requested again by the next run',
  daysOfARejection: 'pages may lack what lies beyond the days that a rejection alone has named',
  endsCountedAhead: 'a range that a clock ahead counts as too wide is requested with its end',
  lateUnderAClockBehind: 'readings are as late as the newest one beside them shows',
  hubNeverSeen: 'a device that was never seen and never reports keeps nothing incomplete',
  hubBeginsUnseen: 'a device that begins to report unseen is missing until it is polled',
  hubWithoutReadings: 'a device that is seen and never reports is left to the idle poll, and keeps nothing incomplete',
  unlistedStaysReady: 'a healthy fleet without last-seen times is ready between its polls',
  unlistedStalls: 'a fleet without last-seen times is not ready while none of it can be read',
  unlistedComesBack: 'readings that an unseen device reports after a silence are missing until it is polled',
  listedByAClockAhead: 'a device list is as old as the time that has passed, not as new as a local clock that is ahead',
  recheckAfterKills: 'a recheck stores the readings left out, however often it is killed',
  allHistoryThroughAnOutage: 'all history is requested again after an outage that its job did not outlast',
  fullDisk: 'a database that accepts nothing rejects no line',
  refusedAlerts: 'a conflict in one measurement keeps no reading waiting',
  shortOutage: 'a short outage is held against no device',
  quotaSpent: 'a wait that the API asks for is kept',
  linkedToNowhere: 'no state is created behind a link to an unmounted disk',
  restartedWithinAMinute: 'requests sent before a restart count after it',
  generousHeaders: 'headers can lower the request rate but not raise it',
};

describe.runIf(influxdAvailable())('safety', () => {
  test.each(Object.entries(STORIES) as [ScenarioName, string][])('%s: %s', async (name) => {
    expect(await SCENARIOS[name](bench, REAL_PROGRAM)).toEqual([]);
  });
});

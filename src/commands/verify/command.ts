/**
 * `--verify`: opens the state without its lock and each database for reading, and with `--repair` for writing too. It
 * compares, repairs, and prints the result.
 */

import { realClock } from '../../app/real-clock.ts';
import { type Database, selectDatabases } from '../../app/settings.ts';
import type { ProcessPorts } from '../../app/terminal.ts';
import { UserError } from '../../core/faults.ts';
import { identityTag } from '../../core/lines/line-protocol.ts';
import type { VerifyState } from '../../core/state/verify.ts';
import { VERSION } from '../../core/status.ts';
import { counted, rateText } from '../../core/text.ts';
import { dayStart, formatExact } from '../../core/time.ts';
import { createPointSource } from '../../influx/point-source.ts';
import { requestRetention } from '../../influx/probe.ts';
import { createInfluxSink } from '../../influx/sink.ts';
import { wantedFrom } from '../../ingest/wanted-range.ts';
import type { WorkFacts } from '../../observe/progress.ts';
import { noState } from '../../store/open/read-only.ts';
import { openVerifyState } from '../../store/views/verify.ts';
import { chosenDevices, printAnswer } from '../shared/command.ts';
import { type RequestedRange, readRange } from '../shared/options.ts';
import { compareDestination, daysToCompare, type Progress, type VerifyRange } from './compare.ts';
import { createResender, fetchCost, repairDestination } from './repair.ts';
import { recordMissing, runSample, type VerifyRun } from './request.ts';
import {
  type DestinationVerdict,
  type SampleVerdict,
  sampleOutcome,
  sumTally,
  verdictUnread,
  verifyExit,
  verifyVerdict,
} from './result.ts';
import type { Hidden } from './retention.ts';
import { verifyText } from './text.ts';

/**
 * Compares and prints.
 *
 * @returns the exit code.
 * @throws UserError with the exit code and the remedy.
 */
export async function runVerifyCommand(run: VerifyRun, ports: ProcessPorts): Promise<number> {
  const { command, config, terminal } = run;
  const requested = readRange(command, realClock.nowMs());
  const ranges = command.sample === null ? 0 : readSample(command.sample);
  const databases = selectDatabases(config, command.destination);
  if (databases.length === 0 && ranges === 0) throw nothingToCompare();
  const state = openVerifyState(config.dataDir);
  if (state === null) throw noState(config.dataDir);
  try {
    const deviceIds =
      command.devices.length === 0 ? state.deviceIds() : chosenDevices(config.dataDir, command.devices, true);
    const days = daysToCompare(state, requested, realClock);
    const range = days === null ? null : { ...days, deviceIds, isAll: command.devices.length === 0 };
    const destinations: DestinationVerdict[] = [];
    for (const database of databases) destinations.push(await verify(run, { state, database, range }, ports));
    const sample =
      ranges === 0 || ports.signal.aborted ? null : await takeSample(run, { ranges, range: requested }, ports);
    terminal.endProgress();
    const result = {
      from: days === null ? null : formatExact(dayStart(days.fromDay)),
      to: days === null ? null : formatExact(dayStart(days.toDay)),
      repair: command.repair,
      destinations,
      sample,
    };
    const outcomes = destinations.map(({ outcome }) => outcome);
    const exitCode = verifyExit(sample === null ? outcomes : [...outcomes, sampleOutcome(sample)]);
    const object = { version: VERSION, ...result, exit_code: exitCode };
    printAnswer(run, ports, { object, text: () => verifyText(result) });
    return exitCode;
  } finally {
    terminal.endProgress();
    state.close();
  }
}

async function takeSample(
  run: VerifyRun,
  { ranges, range: { from, to } }: { readonly ranges: number; readonly range: RequestedRange },
  ports: ProcessPorts,
): Promise<SampleVerdict> {
  const { devices, repair } = run.command;
  const args = { windows: ranges, from: from?.toString() ?? null, to: to?.toString() ?? null, devices, repair };
  return await runSample(run, args, ports);
}

function readSample(text: string): number {
  const ranges = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (ranges >= 1 && ranges <= 1000) return ranges;
  throw new UserError('--sample: expected the number of ranges to read again, a whole number from 1 to 1000', null, 2);
}

interface Verified {
  readonly state: VerifyState;
  readonly database: Database;
  /** `null` if nothing is archived. */
  readonly range: VerifyRange | null;
}

/** Compares a database and repairs it if requested. */
async function verify(
  run: VerifyRun,
  { state, database: { options, candidates, batchLines }, range }: Verified,
  ports: ProcessPorts,
): Promise<DestinationVerdict> {
  const { name } = options;
  const destination = state.destination(name, candidates);
  if (range === null) return verdictUnread(name, null);
  if (destination === null || state.workspaceTag === null) {
    return verdictUnread(name, 'no point was sent to this database yet. Start the daemon or run --once');
  }
  const { kind } = destination;
  const source = createPointSource(options, kind, identityTag(state.workspaceTag));
  const sink = createInfluxSink(options, kind);
  const resender = run.command.repair
    ? createResender({ destination: { kind, sink }, state, clock: realClock, batchLines })
    : null;
  const historyFrom = wantedFrom(run.config.sync, realClock.nowMs());
  const comparison = {
    state,
    source,
    destination,
    clock: realClock,
    historyFrom,
    requestRetention: async (stop: AbortSignal) =>
      kind === 'victoriametrics' ? await requestRetention(options, stop) : null,
    resender,
  };
  const onProgress = (progress: Progress): void => run.terminal.showWork(() => comparisonWork(name, progress));
  const compared = await compareDestination(comparison, { range, onProgress }, ports.signal);
  if (resender !== null)
    return await repairDestination({ run, comparison, range, resender, onProgress }, compared, ports);
  await recordHidden(run, { name, destinationId: destination.id, hidden: compared.hidden }, ports);
  const toFetch = fetchCost(sumTally(compared.tally).cleared, state.plan, realClock.nowMs());
  return verifyVerdict(source, compared, { toFetch });
}

/** The progress of a database's comparison, for the terminal. */
export function comparisonWork(name: string, { share, devices, total, points }: Progress): WorkFacts {
  return {
    share,
    text: `${devices}/${total} devices of ${name}, ${counted(points, 'point')}`,
    rate: { done: points, text: (perSecond) => `${rateText(perSecond)} points/s` },
  };
}

/** Records the retention that the comparison shows. If that fails, the result of the comparison is still valid. */
async function recordHidden(
  run: VerifyRun,
  { name, destinationId, hidden }: { name: string; destinationId: number; hidden: Hidden },
  ports: ProcessPorts,
): Promise<void> {
  if (hidden.days.length === 0 && hidden.estimate === null) return;
  const args = {
    windows: [],
    destination: name,
    found: [],
    missed: [],
    hidden: hidden.days,
    estimate: hidden.estimate,
  };
  try {
    await recordMissing(run, args, { destinationId }, ports);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    const message = `the retention of the database could not be recorded in the state: ${error.message}`;
    run.terminal.logger.write({ type: 'repair-report', message, isWell: false, cost: null });
  }
}

function nothingToCompare(): UserError {
  return new UserError(
    'No database is configured, so there is nothing to compare',
    'set influx.url, and influx.bucket or influx.kind: victoriametrics (docs/configuration.md).',
    78,
    { joint: ':' },
  );
}

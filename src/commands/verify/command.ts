/**
 * `--verify` put together: the state without its lock, each database for reading, and with `--repair` for writing too.
 */

import { type Database, databasesOf } from '../../app/readable-databases.ts';
import { realClock } from '../../app/real-clock.ts';
import type { ProcessPorts } from '../../app/terminal.ts';
import { VERSION } from '../../app/version.ts';
import type { VerifyCommand } from '../../cli/command.ts';
import type { Config, StateConfig } from '../../config/config.ts';
import { UserError } from '../../core/faults.ts';
import { identityTag } from '../../core/lines/line-text.ts';
import type { VerifyState } from '../../core/state/verify.ts';
import { formatExact } from '../../core/time.ts';
import { createPointSource } from '../../influx/queries.ts';
import { createInfluxSink } from '../../influx/sink.ts';
import { openVerifyState } from '../../store/look/verify.ts';
import type { CommandRun } from '../shared/command.ts';
import { type AskedSpan, readSpan } from '../shared/options.ts';
import { runSample } from './api.ts';
import { noFindings } from './day.ts';
import { fetchCost } from './gone.ts';
import { repairRest } from './repair.ts';
import { type DestinationVerdict, dayStart, exitOf } from './report.ts';
import { createResender } from './resend.ts';
import type { SampleVerdict } from './sample-report.ts';
import { verifyText } from './text.ts';
import { daysOf, type Verified, type VerifySpan, verifyDestination } from './verify.ts';

/** With the API where it is configured and may be needed: then the configuration has its key. */
type VerifyRun = CommandRun<VerifyCommand, StateConfig | Config>;

function apiOf(config: StateConfig | Config): Config | null {
  return 'key' in config.api ? (config as Config) : null;
}

/** Compares and prints. @returns the exit code. @throws UserError with the exit code and what to do. */
export async function runVerifyCommand(run: VerifyRun, ports: ProcessPorts): Promise<number> {
  const { command, config, voice } = run;
  const asked = readSpan(command, realClock.nowMs());
  const windows = command.sample === null ? 0 : readSample(command.sample);
  const databases = databasesOf(config, command.destination);
  if (databases.length === 0 && windows === 0) throw nothingToCompare();
  const state = openVerifyState(config.dataDir);
  if (state === null) throw noState(config.dataDir);
  try {
    const deviceIds = devicesOf(state, command.devices);
    const days = daysOf(state, asked, realClock);
    const span = days === null ? null : { ...days, deviceIds, isAll: command.devices.length === 0 };
    const destinations: DestinationVerdict[] = [];
    for (const database of databases) destinations.push(await compare(run, { state, database, span }, ports));
    const sample = windows === 0 || ports.signal.aborted ? null : await takeSample(run, { windows, asked }, ports);
    voice.endProgress();
    return tell(run, { days, destinations, sample }, ports);
  } finally {
    voice.endProgress();
    state.close();
  }
}

interface Told {
  readonly days: Pick<VerifySpan, 'fromDay' | 'toDay'> | null;
  readonly destinations: readonly DestinationVerdict[];
  readonly sample: SampleVerdict | null;
}

function tell({ command, voice }: VerifyRun, { days, destinations, sample }: Told, ports: ProcessPorts): number {
  const told = {
    from: days === null ? null : formatExact(dayStart(days.fromDay)),
    to: days === null ? null : formatExact(dayStart(days.toDay)),
    repair: command.repair,
    destinations,
    sample,
  };
  const audit = sample === null ? [] : [outcomeOf(sample)];
  const exitCode = exitOf([...destinations.map(({ outcome }) => outcome), ...audit]);
  const object = { version: VERSION, ...told, exit_code: exitCode };
  ports.print(voice.scrub(command.json ? `${JSON.stringify(object)}\n` : verifyText(told)));
  return exitCode;
}

function outcomeOf({ missing, gone, reason }: SampleVerdict): DestinationVerdict['outcome'] {
  if (missing + gone > 0) return 'different';
  return reason === null ? 'equal' : 'unfinished';
}

async function takeSample(
  { command, config, voice, secrets }: VerifyRun,
  { windows, asked: { from, to } }: { readonly windows: number; readonly asked: AskedSpan },
  ports: ProcessPorts,
): Promise<SampleVerdict> {
  const args = {
    windows,
    from: from === null ? null : `${from}`,
    to: to === null ? null : `${to}`,
    devices: command.devices,
    repair: command.repair,
  };
  return await runSample({ config: apiOf(config), dataDir: config.dataDir, voice, secrets }, args, ports);
}

function readSample(text: string): number {
  const windows = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (windows >= 1 && windows <= 1000) return windows;
  throw new UserError('--sample: expected how many windows to read again, a whole number from 1 to 1000', 2);
}

interface Comparison {
  readonly state: VerifyState;
  readonly database: Database;
  /** `null` where nothing is kept. */
  readonly span: VerifySpan | null;
}

async function compare(run: VerifyRun, comparison: Comparison, ports: ProcessPorts): Promise<DestinationVerdict> {
  const { command, config, voice, secrets } = run;
  const { state, database, span } = comparison;
  const { options, candidates, batchLines } = database;
  const destination = state.destination(options.name, candidates);
  if (span === null) return unsent(options.name, 'equal');
  if (destination === null || state.workspaceTag === null) return unsent(options.name, 'unfinished');
  const { kind } = destination;
  const source = createPointSource(options, kind, identityTag(state.workspaceTag));
  const sink = createInfluxSink(options, kind);
  const resender = command.repair ? createResender({ sink, kind, findDisplaced: state.displacedTo, batchLines }) : null;
  const of = async (deviceIds: readonly string[], isAll: boolean): Promise<Verified> => {
    const devices = deviceIds.length;
    const onDevice = (done: number): void =>
      voice.showWork(() => ({ share: done / devices, words: `${done}/${devices} devices of ${options.name}` }));
    const parts = { state, source, destination, clock: realClock, resender, onDevice };
    return await verifyDestination(parts, { ...span, deviceIds, isAll }, ports.signal);
  };
  const first = await of(span.deviceIds, span.isAll);
  if (resender === null) {
    return { ...first.verdict, to_fetch: fetchCost(first.sums.gone, state.plan, realClock.nowMs()) };
  }
  const parts = {
    run: { config: apiOf(config), dataDir: config.dataDir, voice, secrets },
    ...{ state, destination, span },
    resender,
    compare: (deviceIds: readonly string[]) => of(deviceIds, false),
  };
  return await repairRest(parts, first, ports);
}

/** Of a destination that the state has never sent anything to. */
function unsent(name: string, outcome: DestinationVerdict['outcome']): DestinationVerdict {
  const { missing, different, extra, untold, pending, quarantined, lacking } = noFindings();
  const reason = outcome === 'equal' ? null : 'nothing was sent to it yet. Start the daemon, or run --once';
  return {
    ...{ name, kind: null, outcome, reason },
    ...{ devices_compared: 0, days_compared: 0, days_partly_covered: 0, points_kept: 0 },
    ...{ missing, different, extra, untold, pending, quarantined, lacking },
    ...{
      mended: 0,
      fetched: 0,
      refused_again: 0,
      refusal: null,
      to_fetch: null,
      unknown_devices: [],
      differences: [],
      differences_left_out: 0,
    },
  };
}

function devicesOf(state: VerifyState, asked: readonly string[]): readonly string[] {
  const all = state.deviceIds();
  if (asked.length === 0) return all;
  const known = new Set(all);
  asked.forEach((deviceId, index) => {
    if (known.has(deviceId)) return;
    const which = asked.length === 1 ? '--device' : `--device number ${index + 1}`;
    throw new UserError(`${which}: the state knows no device with that id.`, 2);
  });
  return [...new Set(asked)];
}

function nothingToCompare(): UserError {
  return new UserError(
    'No database is configured, so there is nothing to compare: set influx.url and influx.bucket (docs/configuration.md).',
    78,
  );
}

function noState(dataDir: string): UserError {
  return new UserError(
    `There is no state in ${dataDir} yet, so nothing to compare with: start the daemon or --once first, or set data_dir.`,
    1,
  );
}

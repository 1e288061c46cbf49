/**
 * `--plan` and `--backfill --dry-run`: requests the account and the device list, and prints the estimate. If another
 * process holds the state, the estimate is made from that state alone.
 *
 * Promises: it requests only the account and the device list. Each request passes the rate limiter and is booked. It
 * archives nothing, pins no workspace and delivers nothing. It stores only the figures of the plan, which the rate
 * limiter needs from the first page of the list on.
 */
import type { Sync } from '../../app/open-sync.ts';
import { realClock } from '../../app/real-clock.ts';
import type { ProcessPorts } from '../../app/terminal.ts';
import { withRequestsOnly } from '../../app/with-sync.ts';
import type { BackfillCommand, PlanCommand } from '../../cli/command.ts';
import type { Config } from '../../config/config.ts';
import { cron, InvalidText, share, wholeNumber } from '../../config/values.ts';
import { findDeviceIds } from '../../core/device-names.ts';
import { ApiFault, UserError } from '../../core/faults.ts';
import { createFilter } from '../../core/filter.ts';
import type { WhatIf, WhatIfText } from '../../core/fleet.ts';
import { deviceFacts, MEASURED_DAYS } from '../../core/fleet.ts';
import type { Clock, Schedule } from '../../core/ports.ts';
import { type Account, type DeviceRecord, NO_ALERTS } from '../../core/records.ts';
import { DAY_MS, DAY_NS, type EpochMs, maxNs, msToNs } from '../../core/time.ts';
import type { SyncContext } from '../../ingest/context.ts';
import { listDevices } from '../../ingest/devices.ts';
import { wantedFrom } from '../../ingest/wanted-range.ts';
import { leftOutDevice, UNLISTED } from '../../scheduler/backfill.ts';
import { StateInUseError } from '../../store/open/lock.ts';
import { readStateView, type StateView } from '../../store/views/read-state.ts';
import { type CommandRun, failureOf, fetchAccount, printAnswer } from '../shared/command.ts';
import {
  ALL,
  type RateOptions,
  type RequestedRange,
  readBackfillOptions,
  readRange,
  readRate,
} from '../shared/options.ts';
import { ALL_ASSUMED_DAYS, type CostPlan, costPlan, type PlanFacts, type PlanRange } from './cost.ts';
import { backfillText, planText } from './text.ts';

/**
 * Computes the plan and prints it.
 *
 * @returns the exit code.
 * @throws UserError with the exit code and the remedy.
 */
export async function runPlanCommand(run: CommandRun<PlanCommand, Config>, ports: ProcessPorts): Promise<number> {
  const plan = await computeCost(run, run.command, ports);
  printAnswer(run, ports, { object: plan, text: () => planText(plan) });
  return 0;
}

/**
 * Prints the cost of a backfill: `--backfill --dry-run`.
 *
 * @returns the exit code.
 * @throws UserError
 */
export async function runDryRun(run: CommandRun<BackfillCommand, Config>, ports: ProcessPorts): Promise<number> {
  readBackfillOptions(run.command, realClock.nowMs());
  const plan = await computeCost(run, { ...run.command, whatIf: [] }, ports);
  const { basis, backfill } = plan;
  printAnswer(run, ports, { object: { basis, backfill }, text: () => backfillText(plan) });
  return 0;
}

async function computeCost(
  { config, terminal }: CommandRun<unknown, Config>,
  command: PlanParts['command'],
  { signal }: ProcessPorts,
): Promise<CostPlan> {
  const open: PlanParts['open'] = async (work) => await withRequestsOnly({ config, terminal }, work);
  return await computePlan({ command, config, open, clock: realClock }, signal);
}

/** The input of {@link computePlan}. */
export interface PlanParts {
  readonly command: Pick<PlanCommand, 'from' | 'to' | 'devices' | 'whatIf' | 'finishBy' | 'maxShare'> & {
    /** Whether covered ranges are to be read again. */
    readonly recheck?: boolean;
  };
  readonly config: Pick<Config, 'dataDir'> & {
    readonly api: Pick<Config['api'], 'share'>;
    readonly sync: Pick<Config['sync'], 'history' | 'gracePeriodMs' | 'schedules' | 'polls' | 'leftOut'>;
  };
  /**
   * Opens the state for writing, for the duration of some work.
   *
   * @throws StateInUseError if another process uses it.
   */
  readonly open: <T>(work: (sync: Sync) => Promise<T>) => Promise<T>;
  readonly clock: Clock;
}

/**
 * Computes the plan.
 *
 * @throws UserError
 */
export async function computePlan(parts: PlanParts, signal: AbortSignal): Promise<CostPlan> {
  const { command, config, clock } = parts;
  // Mistakes are reported before any request. Ages count from the server's time.
  const { whatIf, rate } = readPlanOptions(command, clock.nowMs());
  const facts = await fetchFacts(parts, signal);
  const settings = {
    share: config.api.share,
    schedules: config.sync.schedules,
    polls: config.sync.polls,
    gracePeriodMs: config.sync.gracePeriodMs,
  };
  return costPlan({ facts, settings, whatIf, rate, range: resolvePlanRange(parts, facts) });
}

async function fetchFacts(parts: PlanParts, signal: AbortSignal): Promise<PlanFacts> {
  try {
    return await parts.open(async (sync) => await fetchedFacts(parts, sync, signal));
  } catch (error) {
    if (error instanceof StateInUseError) return factsOfState(parts);
    throw error;
  }
}

async function fetchedFacts({ config }: PlanParts, sync: Sync, signal: AbortSignal): Promise<PlanFacts> {
  const { account, records, atMs } = await fetchForPlan(sync.context, signal);
  const requestsSpent = sync.requestsDone();
  const state = readSpent(config.dataDir, atMs);
  const { spentDay, leftDay } = sync.context.quota();
  const perDay = account?.plan.requestsPerDay ?? null;
  const others = perDay === null || leftDay === null ? 0 : perDay - spentDay - leftDay;
  // A report checks every device, so it is made only if the account is unknown.
  const seen = account === null ? sync.report().allowance : null;
  return {
    source: 'api',
    asOfMs: atMs,
    nowMs: atMs,
    requestsSpent,
    account,
    seenPerMinute: seen?.minute.limit ?? null,
    seenPerDay: seen?.day.limit ?? null,
    othersPerDay: others > 0 ? others : null,
    openAlerts: state?.openAlerts ?? NO_ALERTS,
    spentDay: state?.sentMs.length ?? requestsSpent,
    sentMs: state?.sentMs ?? [],
    liveSentMs: [],
    devices: deviceFacts(records, state?.telemetry ?? new Map(), createFilter(config.sync.leftOut)),
  };
}

/** The facts that the process with the state has read, without another request. */
function factsOfState({ config, clock }: PlanParts): PlanFacts {
  const nowMs = clock.nowMs();
  const state = readSpent(config.dataDir, nowMs);
  const isListed = state !== null && (state.devices.length > 0 || state.account?.devices === 0);
  if (!isListed) {
    throw new UserError(
      `Another process uses the state in ${config.dataDir} and has not read the device list yet`,
      'Run the command again in a minute.',
      3,
    );
  }
  const { account, devices, telemetry, openAlerts, sentMs, liveSentMs } = state;
  const listedMs = devices.reduce((newest, device) => Math.max(newest, device.lastListedMs), 0);
  return {
    source: 'state',
    asOfMs: listedMs === 0 ? nowMs : listedMs,
    // The server's time corrects a local clock that lags.
    nowMs: Math.max(nowMs, listedMs),
    requestsSpent: 0,
    account,
    seenPerMinute: null,
    seenPerDay: null,
    othersPerDay: null,
    openAlerts,
    spentDay: sentMs.length,
    sentMs,
    liveSentMs,
    devices: deviceFacts(
      devices.map(({ record }) => record),
      telemetry,
      createFilter(config.sync.leftOut),
    ),
  };
}

function readSpent(dataDir: string, nowMs: EpochMs): StateView | null {
  return readStateView(dataDir, { day: Math.floor(nowMs / DAY_MS) - MEASURED_DAYS, requestsMs: nowMs - DAY_MS });
}

/** The requested range, and whether it belongs to existing devices. */
function resolvePlanRange({ command, config }: PlanParts, facts: PlanFacts): PlanRange {
  const options = readPlanOptions(command, facts.nowMs);
  const to = options.to ?? msToNs(facts.nowMs);
  const from = options.isAll
    ? maxNs(to - BigInt(ALL_ASSUMED_DAYS) * DAY_NS, 0n)
    : (options.from ?? wantedFrom(config.sync, facts.nowMs));
  if (from >= to)
    throw new UserError('--to: expected a time after the start of sync.history', 'give --from as well', 2, {
      joint: ';',
    });
  const chosen = findDeviceIds(facts.devices, command.devices, UNLISTED);
  const leftOut = new Set(facts.devices.filter(({ isLeftOut }) => isLeftOut).map(({ deviceId }) => deviceId));
  chosen.forEach((deviceId, index) => {
    if (leftOut.has(deviceId)) throw leftOutDevice(index, chosen.length);
  });
  const deviceIds = chosen.length === 0 ? null : new Set(chosen);
  return { from, to, isAll: options.isAll, isRecheck: command.recheck === true, deviceIds };
}

/** The account and the devices, as the API has returned them for a plan. */
interface FetchedForPlan {
  /** The account. If the key may not read it, the stored one; `null` if it was never read. */
  readonly account: Account | null;
  readonly records: readonly DeviceRecord[];
  /** The server's time of the listing. */
  readonly atMs: EpochMs;
}

/**
 * Requests the account and the device list.
 *
 * @throws UserError if a person has to act (77, another workspace: 1), or if it could not be done this time (3).
 */
export async function fetchForPlan(context: SyncContext, signal: AbortSignal): Promise<FetchedForPlan> {
  try {
    const account = await fetchAccount(context, signal);
    const { records, answeredAtMs } = await listDevices(context, signal);
    return { account, records: [...records.values()], atMs: answeredAtMs };
  } catch (error) {
    if (error instanceof UserError) throw error;
    if (signal.aborted) throw new UserError('Stopped before the plan was computed', 'Run --plan again.', 3);
    if (!(error instanceof ApiFault)) throw error;
    throw failureOf(error, 'The plan could not be computed', 'Run --plan again when the API answers.');
  }
}

/** No workspace and no plan has more devices. */
const MAX_DEVICES = 100_000;
const MAX_REQUESTS = 100_000_000;

/** `from`: `null` means as far back as `sync.history`; `to`: `null` means now. */
interface PlanOptions extends RequestedRange {
  readonly whatIf: WhatIf;
  /** Whether all data was requested. Then `from` has no meaning. */
  readonly isAll: boolean;
  readonly rate: RateOptions;
}

/**
 * Reads the option values.
 *
 * @throws UserError (exit 2) for the first mistake.
 */
function readPlanOptions(
  command: Pick<PlanCommand, 'whatIf' | 'from' | 'to' | 'finishBy' | 'maxShare'>,
  nowMs: EpochMs,
): PlanOptions {
  const isAll = command.from === ALL;
  const { from, to } = readRange(isAll ? { ...command, from: null } : command, nowMs);
  const rate = readRate(command, nowMs);
  return { whatIf: readAssumptions(command.whatIf), from, to, isAll, rate };
}

function readAssumptions(texts: readonly WhatIfText[]): WhatIf {
  let whatIf: WhatIf = {};
  const seen = new Set<string>();
  for (const text of texts) {
    if (seen.has(text.key)) throw new UserError(`--what-if ${text.key} was given twice`, 'Give it once.', 2);
    seen.add(text.key);
    whatIf = applyWhatIf(whatIf, text);
  }
  return whatIf;
}

function applyWhatIf(whatIf: WhatIf, text: WhatIfText): WhatIf {
  const { key } = text;
  switch (key) {
    case 'api.share':
      return { ...whatIf, share: parseWhatIf(text, share) };
    case 'devices':
      return { ...whatIf, devices: parseWhatIf(text, devices) };
    case 'requests_per_minute':
      return { ...whatIf, perMinute: parseWhatIf(text, wholeNumber(1, MAX_REQUESTS)) };
    case 'requests_per_day':
      return { ...whatIf, perDay: parseWhatIf(text, wholeNumber(1, MAX_REQUESTS)) };
    default: {
      const schedule: Schedule = parseWhatIf(text, cron);
      return { ...whatIf, schedules: { ...whatIf.schedules, [key.slice('sync.'.length)]: schedule } };
    }
  }
}

function devices(text: string): number | InvalidText {
  const value = wholeNumber(1, MAX_DEVICES)(text);
  if (!(value instanceof InvalidText)) return value;
  return new InvalidText(`${value.reason}: the number of devices (the poll interval of the list is sync.devices)`);
}

function parseWhatIf<T>({ key, value }: WhatIfText, parse: (text: string) => T | InvalidText): T {
  const read = parse(value);
  if (read instanceof InvalidText) throw new UserError(`--what-if ${key}: ${read.reason}`, null, 2);
  return read;
}

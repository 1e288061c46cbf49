/**
 * `--plan` put together: the account and the device list by the same client and gate as all else, or, where another
 * process works with the state, from that state; then the answer.
 */
import type { Sync } from '../../app/open-sync.ts';
import { realClock } from '../../app/real-clock.ts';
import type { ProcessPorts, Voice } from '../../app/terminal.ts';
import { withQuestions } from '../../app/with-sync.ts';
import type { PlanCommand } from '../../cli/command.ts';
import type { Config } from '../../config/config.ts';
import { UserError } from '../../core/faults.ts';
import { createFilter } from '../../core/filter.ts';
import { MEASURED_DAYS } from '../../core/fleet-rates.ts';
import type { Clock } from '../../core/ports.ts';
import { DAY_MS, DAY_NS, type EpochMs, maxNs, msToNs } from '../../core/time.ts';
import { wantedFrom } from '../../ingest/horizon.ts';
import { lookAtState, type StateLook } from '../../store/look/plan.ts';
import { HeldError } from '../../store/open/lock.ts';
import { type CostPlan, costPlan } from './cost.ts';
import { readPlanOptions } from './options.ts';
import { askForPlan, deviceFacts } from './plan.ts';
import type { PlanFacts, PlanSpan } from './premises.ts';
import { planText } from './text.ts';

/** Works the plan out and prints it. @returns the exit code. @throws UserError with the exit code and what to do. */
export async function runPlanCommand(
  parts: CostParts & { readonly command: PlanCommand },
  ports: ProcessPorts,
): Promise<number> {
  const plan = await costOf(parts, ports);
  ports.print(parts.voice.scrub(parts.command.json ? `${JSON.stringify(plan)}\n` : planText(plan)));
  return 0;
}

interface CostParts {
  readonly command: PlanParts['command'];
  readonly config: Config;
  readonly voice: Voice;
}

/** Works it out over HTTP. @throws UserError with the exit code and what to do. */
export async function costOf(
  { command, config, voice }: CostParts,
  ports: Pick<ProcessPorts, 'signal'>,
): Promise<CostPlan> {
  const open: PlanParts['open'] = async (work) => await withQuestions({ config, voice }, work);
  return await planOf({ command, config, open, clock: realClock }, ports.signal);
}

export interface PlanParts {
  readonly command: Pick<PlanCommand, 'from' | 'to' | 'devices' | 'whatIf' | 'finishBy' | 'maxShare'>;
  readonly config: Pick<Config, 'dataDir'> & {
    readonly api: Pick<Config['api'], 'share'>;
    readonly sync: Pick<Config['sync'], 'history' | 'schedules' | 'sweepMs' | 'leftOut'>;
  };
  /** Opens the state for writing, for the length of some work. @throws HeldError where another process has it. */
  readonly open: <T>(work: (sync: Sync) => Promise<T>) => Promise<T>;
  readonly clock: Clock;
}

/** Works the plan out. @throws UserError */
export async function planOf(parts: PlanParts, signal: AbortSignal): Promise<CostPlan> {
  const { command, config, clock } = parts;
  // Mistakes are told before anything is asked; what ages mean, the server's time tells.
  const { whatIf, pace } = readPlanOptions(command, clock.nowMs());
  const facts = await factsNow(parts, signal);
  const settings = { share: config.api.share, schedules: config.sync.schedules, sweepMs: config.sync.sweepMs };
  return costPlan({ facts, settings, whatIf, pace, span: spanOf(parts, facts) });
}

async function factsNow(parts: PlanParts, signal: AbortSignal): Promise<PlanFacts> {
  try {
    return await parts.open(async (sync) => await askedFacts(parts, sync, signal));
  } catch (error) {
    if (error instanceof HeldError) return factsOfState(parts);
    throw error;
  }
}

async function askedFacts({ config }: PlanParts, sync: Sync, signal: AbortSignal): Promise<PlanFacts> {
  let requestsAsked = 0;
  sync.listen(({ type }) => {
    if (type === 'request-done') requestsAsked += 1;
  });
  const { account, records, atMs } = await askForPlan(sync.context, signal);
  const state = look(config.dataDir, atMs);
  const { spentDay, leftDay } = sync.context.allowance();
  const perDay = account?.plan.requestsPerDay ?? null;
  const others = perDay === null || leftDay === null ? 0 : perDay - spentDay - leftDay;
  // A report looks at every device: only where nothing else tells.
  const seen = account === null ? sync.report().allowance : null;
  return {
    source: 'api',
    asOfMs: atMs,
    nowMs: atMs,
    requestsAsked,
    account,
    seenPerMinute: seen?.minute.limit ?? null,
    seenPerDay: seen?.day.limit ?? null,
    othersPerDay: others > 0 ? others : null,
    spentDay: state?.requests ?? requestsAsked,
    devices: deviceFacts(records, state?.telemetry ?? new Map(), createFilter(config.sync.leftOut)),
  };
}

/** What the process that works with the state has read: nothing is asked again. */
function factsOfState({ config, clock }: PlanParts): PlanFacts {
  const nowMs = clock.nowMs();
  const state = look(config.dataDir, nowMs);
  const isListed = state !== null && (state.devices.length > 0 || state.account?.devices === 0);
  if (!isListed) {
    throw new UserError(
      `Another process works with the state in ${config.dataDir} and has not listed the devices yet. Run it again in a minute.`,
      3,
    );
  }
  const { account, devices, telemetry, requests } = state;
  const listedMs = devices.reduce((newest, device) => Math.max(newest, device.lastListedMs), 0);
  return {
    source: 'state',
    asOfMs: listedMs === 0 ? nowMs : listedMs,
    // By the server's time; a local clock that lags is told by it.
    nowMs: Math.max(nowMs, listedMs),
    requestsAsked: 0,
    account,
    seenPerMinute: null,
    seenPerDay: null,
    othersPerDay: null,
    spentDay: requests,
    devices: deviceFacts(
      devices.map(({ record }) => record),
      telemetry,
      createFilter(config.sync.leftOut),
    ),
  };
}

function look(dataDir: string, nowMs: EpochMs): StateLook | null {
  return lookAtState(dataDir, { day: Math.floor(nowMs / DAY_MS) - MEASURED_DAYS, requestsMs: nowMs - DAY_MS });
}

/** What is told of where all there is was asked for. */
const EXAMPLE_NS = 365n * DAY_NS;

/** The stretch that is asked about, and whether it is one of devices that there are. */
function spanOf({ command, config }: PlanParts, facts: PlanFacts): PlanSpan {
  const options = readPlanOptions(command, facts.nowMs);
  const to = options.to ?? msToNs(facts.nowMs);
  const from = options.isAll ? maxNs(to - EXAMPLE_NS, 0n) : (options.from ?? wantedFrom(config.sync, facts.nowMs));
  if (from >= to)
    throw new UserError('--to: expected a time after the beginning of sync.history, or --from beside it', 2);
  const known = new Map(facts.devices.map(({ deviceId, isLeftOut }) => [deviceId, isLeftOut]));
  command.devices.forEach((deviceId, index) => {
    const which = command.devices.length === 1 ? '--device' : `--device number ${index + 1}`;
    const isLeftOut = known.get(deviceId);
    if (isLeftOut === undefined) throw new UserError(`${which}: the workspace lists no device with that id.`, 2);
    if (isLeftOut) {
      throw new UserError(`${which}: sync.include or sync.exclude leaves that device out: nothing of it is read.`, 2);
    }
  });
  return { from, to, isAll: options.isAll, deviceIds: command.devices.length === 0 ? null : new Set(command.devices) };
}

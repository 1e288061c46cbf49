/**
 * `--check`, the API: the findings of its answers (plan, workspace, clocks, quota, undocumented values) and of a failed
 * request. Each kind of fault has one line with a remedy.
 */

import type { Config } from '../../config/config.ts';
import {
  type ApiFault,
  type ApiFaultKind,
  KEY_REJECTED,
  KEYS_PAGE,
  NO_API_ACCESS,
  type RequestError,
  SCOPE_OF,
  type Scope,
} from '../../core/faults.ts';
import type { FleetRates } from '../../core/fleet.ts';
import type { Clock } from '../../core/ports.ts';
import type { Learnt, QuotaUse } from '../../core/quota.ts';
import { type Account, alertPollRequests, type DevicePage, type OpenAlerts, pageSizeOf } from '../../core/records.ts';
import type { ServerClock } from '../../core/server-clock.ts';
import { counted, duration, grouped, plainText } from '../../core/text.ts';
import { type EpochMs, SECOND_MS } from '../../core/time.ts';
import type { SyncSettings } from '../../ingest/context.ts';
import { assumedText, computeDemand, type DemandInput, type Shortfall, totalRequests } from '../../scheduler/demand.ts';
import { measurePeriods } from '../../scheduler/streams.ts';
import { historyText, planHistoryAdvice } from '../shared/command.ts';
import type { CheckLine, CheckNotes } from './report.ts';

/** The scopes that are used. Without the first two nothing can be synced. */
export const SCOPES = Object.values(SCOPE_OF);

/** Adds a line with the plan, its quota, its widest range and the counts of the account. */
export function notePlan(notes: CheckNotes, { plan, devices, openAlerts }: Account): CheckLine {
  const { requestsPerMinute, requestsPerDay, historyMaxDays, maxDevicesPerPage } = plan;
  const figureText = (figure: number | null): string => (figure === null ? 'an unknown number of' : grouped(figure));
  const name = plainText(plan.name ?? plan.planId ?? 'without a name', 60);
  const message = [
    `${name}: ${figureText(requestsPerMinute)} requests a minute, ${figureText(requestsPerDay)} a day`,
    historyMaxDays === null
      ? 'ranges of any length in a request'
      : `ranges of at most ${counted(historyMaxDays, 'day')} in a request`,
    ...(devices === null ? [] : [counted(devices, 'device')]),
    ...(openAlerts === null ? [] : [counted(openAlerts, 'open alert')]),
  ].join('; ');
  const facts = {
    plan_id: plan.planId,
    external_requests_per_minute: requestsPerMinute,
    external_requests_per_day: requestsPerDay,
    history_max_days: historyMaxDays,
    max_devices_per_page: maxDevicesPerPage,
    devices,
  };
  if (requestsPerMinute === null || requestsPerDay === null) {
    const remedy = 'Nothing to do: Tidemark derives a conservative limit from the responses.';
    return notes.warn('plan', { message, remedy, facts });
  }
  return notes.ok('plan', message, facts);
}

/** Adds a line about whether the configured history fits into the windows of the plan. */
export function noteHistory(
  notes: CheckNotes,
  { plan: { historyMaxDays: maxDays } }: Account,
  { settings, clock }: { readonly settings: Pick<SyncSettings, 'history'>; readonly clock: Clock },
): CheckLine {
  const nowMs = clock.nowMs();
  const advice = planHistoryAdvice(settings.history, { maxDays, nowMs });
  if (advice === null) return notes.ok('history', `${historyText(settings.history, nowMs)}: within the plan`);
  return notes.warn('history', { message: advice.what, remedy: advice.remedy });
}

/** The input of the estimate of the requests. */
interface ScheduleFacts {
  /** The facts in the line about the plan. */
  readonly plan: NonNullable<CheckLine['facts']>;
  /** The devices of the state; none before the first sync. */
  readonly fleet: FleetRates;
  /** How many devices the API listed, for a state without devices and an account that does not count them. */
  readonly listed: number;
  readonly openAlerts: OpenAlerts;
  readonly nowMs: EpochMs;
}

/**
 * Reports whether the plan is enough for the schedules, by the estimate of `--plan`: devices report at their measured
 * rate, or at the rate of the measured ones, or once a minute.
 */
export function noteSchedules(
  notes: CheckNotes,
  { plan, fleet, listed, openAlerts, nowMs }: ScheduleFacts,
  { sync: { schedules, polls }, api: { share } }: Pick<Config, 'sync' | 'api'>,
): void {
  const figureOf = (name: string): number | null => (typeof plan[name] === 'number' ? plan[name] : null);
  const pageSize = pageSizeOf({ maxDevicesPerPage: figureOf('max_devices_per_page') });
  const { assumed, ...devices } = assumedDevices(fleet, figureOf('devices') ?? listed);
  const input = {
    ...measurePeriods(schedules, nowMs),
    ...devices,
    polls,
    share,
    pageSize,
    perMinute: figureOf('external_requests_per_minute'),
    perDay: figureOf('external_requests_per_day'),
    alertRequests: alertPollRequests(openAlerts, pageSize),
    othersPerDay: 0,
  };
  const { needed, budget, fits, readingsFit } = computeDemand(input);
  if (fits) return;
  const total = Math.ceil(totalRequests(needed));
  const parts = SCHEDULE_KEYS.map(([lane, key]) => `${key} ${grouped(Math.ceil(needed[lane]))}`);
  const effect = readingsFit
    ? 'all intervals are lengthened until they fit'
    : 'it does not carry all readings, so gaps will remain (over_quota)';
  notes.warn('schedules', {
    message: `the schedules need ${grouped(total)} requests a day${assumedText(assumed)} (${parts.join(', ')}), but the budget (api.share of the quota) is ${grouped(budget)}: ${effect}`,
    remedy: 'Set a longer interval for the schedule with the most requests. tidemark --plan shows what fits.',
    facts: { requests_per_day: total, budget_per_day: budget },
  });
}

type DevicesOfDemand = Pick<DemandInput, 'intervalsMs' | 'quietDevices'> & Pick<Shortfall, 'assumed'>;

/** The devices of the demand, by their report rates. `count`: how many there are, if the state has none. */
function assumedDevices({ devices, assumedMs: intervalMs }: FleetRates, count: number): DevicesOfDemand {
  if (devices.length === 0) {
    const intervalsMs = Array.from({ length: count }, () => intervalMs);
    return { intervalsMs, quietDevices: 0, assumed: count === 0 ? null : { devices: count, intervalMs } };
  }
  const reporting = devices.filter(({ isQuiet }) => !isQuiet);
  const unmeasured = reporting.filter(({ isMeasured }) => !isMeasured).length;
  return {
    intervalsMs: reporting.map((device) => device.intervalMs),
    quietDevices: devices.length - reporting.length,
    assumed: unmeasured === 0 ? null : { devices: unmeasured, intervalMs },
  };
}

const SCHEDULE_KEYS = [
  ['live', 'sync.telemetry'],
  ['alerts', 'sync.alerts'],
  ['inventory', 'sync.devices'],
  ['account', 'sync.account'],
  ['idlePolls', 'sync.idle_poll'],
] as const;

/** Reports whether the key belongs to the workspace of the state. */
export function noteWorkspace(notes: CheckNotes, account: Account, pinned: string | null): CheckLine {
  const found = plainText(account.workspaceId, 80);
  const facts = { workspace_id: account.workspaceId };
  const name = account.name === null ? '' : ` (${plainText(account.name, 60)})`;
  if (pinned === null) return notes.ok('workspace', `${found}${name}; the state has no workspace yet`, facts);
  if (pinned === account.workspaceId) return notes.ok('workspace', `${found}${name}: the same as in the state`, facts);
  return notes.fail('workspace', {
    message: `the key belongs to the workspace ${found}${name}, but the state to ${plainText(pinned, 80)}: nothing would be synced`,
    remedy: 'Use a key for that workspace, or set another data_dir for this one.',
    facts,
  });
}

/** A smaller difference between clocks does not matter. */
const SKEW_REPORTED_MS = 10 * SECOND_MS;

/** Compares this machine's clock with the API's. */
export function noteClock(
  notes: CheckNotes,
  { serverClock }: { readonly serverClock: Pick<ServerClock, 'skewMs'> },
): CheckLine {
  const skewMs = serverClock.skewMs();
  if (skewMs === null) {
    return notes.skip('clock', 'the API sends no Date header: its time is taken from the newest readings', {
      skew_seconds: null,
    });
  }
  const seconds = Math.round(skewMs / SECOND_MS);
  const facts = { skew_seconds: seconds };
  const text = `${duration(Math.abs(seconds))} ${skewMs > 0 ? 'ahead of' : 'behind'}`;
  if (Math.abs(skewMs) <= SKEW_REPORTED_MS) {
    const close = Math.abs(seconds) <= 1 ? 'the same second' : text;
    return notes.ok('clock', `this machine's clock agrees with the API's clock (${close})`, facts);
  }
  return notes.warn('clock', {
    message: `this machine's clock is ${text} the API's clock. Coverage uses the API's clock; logs, schedules and certificates use this one`,
    remedy: 'Set the clock of this machine by NTP: timedatectl set-ntp true (in a container: on its host)',
    facts,
  });
}

/** The requests that the budget leaves, as `--status` shows them. */
export function noteQuota(
  notes: CheckNotes,
  { budgetLeftMinute: leftMinute, spentDay, budgetLeftDay: leftDay }: QuotaUse,
): CheckLine {
  const facts = { left_minute: leftMinute, left_day: leftDay, spent_day: spentDay };
  const leftText = (left: number | null, what: string): string =>
    left === null ? `unknown for the ${what}` : `${grouped(left)} for the ${what}`;
  const message = `requests left in the budget: ${leftText(leftMinute, 'minute')}, ${leftText(leftDay, 'day')}; own requests in 24 h: ${grouped(spentDay)}`;
  if (leftDay !== 0) return notes.ok('quota', message, facts);
  const remedy =
    'Nothing to do: requests resume as the requests of the last 24 hours expire. If it happens often, take a larger plan or shorten sync.history.';
  return notes.warn('quota', { message, remedy, facts });
}

const UNSEEN = 'unknown';

/** Reports observations about undocumented behaviour, made by this check or by the process that uses the state. */
export function noteLearnt(notes: CheckNotes, learnt: Learnt, page: DevicePage | null): void {
  const { waitHeaders, challengeHeaders, rateLimit, pageTaken, pageRejected } = learnt;
  const seen = (isSeen: boolean) => (isSeen ? notes.ok : notes.skip);
  const named = (names: readonly string[], status: number): string =>
    names.length === 0
      ? `${UNSEEN}: no response with ${status} was seen yet`
      : `${names.join(', ')} (sent with ${status})`;
  const facts = (names: readonly string[]) => ({ names: names.length === 0 ? null : names.join(', ') });
  seen(waitHeaders.length > 0)('wait header', named(waitHeaders, 429), facts(waitHeaders));
  seen(challengeHeaders.length > 0)('challenge header', named(challengeHeaders, 401), facts(challengeHeaders));
  noteRateLimit(notes, rateLimit);
  const rejected = pageRejected === null ? '' : `; limit=${pageRejected} was rejected once`;
  const taken = pageTaken === null ? UNSEEN : `limit=${pageTaken} is accepted`;
  const isCut = page !== null && page.nextCursor !== null && pageTaken !== null && page.devices.length < pageTaken;
  const cut = isCut ? `, but a page has only ${page.devices.length} records` : '';
  seen(pageTaken !== null)('page size', `${taken}${rejected}${cut}`, { accepted: pageTaken, refused: pageRejected });
}

const RATE_LIMIT = 'rate-limit headers';

function noteRateLimit(notes: CheckNotes, seen: Learnt['rateLimit']): CheckLine {
  if (seen === null) return notes.skip(RATE_LIMIT, UNSEEN, { seen: null });
  if (seen === 'all') return notes.ok(RATE_LIMIT, 'X-RateLimit-Limit and X-RateLimit-Remaining are present', { seen });
  // The owner of the workspace can do nothing about it.
  const found = seen === 'none' ? 'the responses have none' : 'not every response has both of them';
  const effect = 'the limits of the plan apply, and requests of other clients are detected only by a response with 429';
  return notes.ok(RATE_LIMIT, `${found}: ${effect}`, { seen });
}

type ReportFault = (notes: CheckNotes, scope: Scope, fault: ApiFault) => void;

/** The data that is not synced without a scope; `null`: nothing can be synced without it. */
const WITHOUT: Readonly<Record<Scope, string | null>> = {
  'devices:read': null,
  'telemetry:read': null,
  'alerts:read': 'alerts are not synced',
  'account:read': 'the plan is unknown, so Tidemark uses a conservative limit, and points have workspace_id=default',
};

const noteScopeMissing: ReportFault = (notes, scope) => {
  const without = WITHOUT[scope];
  const remedy = `Create a key ${KEYS_PAGE} that also has ${scope}, and write it into the file of api.key_file (or into api.key).`;
  if (without === null) {
    const message = `the key lacks this scope: ${scope === 'devices:read' ? 'nothing' : 'no reading'} can be synced`;
    notes.fail(scope, { message, remedy, exitCode: 77 });
  } else notes.warn(scope, { message: `the key lacks this scope: ${without}`, remedy });
};

/** The remedy of a fault as a sentence; `otherwise` if it has none. */
export function remedyOf(fault: RequestError, otherwise: string): string {
  const remedy = fault.remedyText();
  return remedy === null ? otherwise : `${remedy}.`;
}

const noteOddAnswer: ReportFault = (notes, scope, { what }) => {
  const remedy = `Run --check again. If the problem stays, check that api.url is right and that no proxy answers instead of the API (request for ${scope}).`;
  notes.fail('answer', { message: what, remedy });
};

const OTHER_REMEDY = 'If the sync works, ignore this: it uses other parameters. Otherwise please report this message.';

const noteRejected: ReportFault = (notes, scope, fault) => {
  const message = `granted, but the API rejected the request: ${fault.what}`;
  notes.warn(scope, { message, remedy: remedyOf(fault, OTHER_REMEDY) });
};

const FAULT_REPORTS: Readonly<Record<ApiFaultKind, ReportFault>> = {
  'scope-missing': noteScopeMissing,
  unauthorized: (notes) =>
    notes.fail('key', {
      message: KEY_REJECTED,
      remedy: `Check that the file of api.key_file has the complete key, alone on one line. If it has, create a new key ${KEYS_PAGE} and write it into that file.`,
      exitCode: 77,
    }),
  'no-api-access': (notes, _scope, { what }) =>
    notes.fail('access', {
      message: `${NO_API_ACCESS.what} (${what})`,
      remedy: `${NO_API_ACCESS.remedy}.`,
      exitCode: 77,
    }),
  'not-found': (notes, _scope, { what }) =>
    notes.fail('address', {
      message: what,
      remedy: 'Correct api.url: it is the base address of the API and ends in /external/v1.',
    }),
  unreachable: (notes, _scope, fault) =>
    notes.fail('answer', {
      message: fault.what,
      remedy: remedyOf(fault, 'Check the network, HTTPS_PROXY and api.ca_file, then run --check again.'),
    }),
  throttled: (notes, _scope, { what, facts: { waitMs } }) =>
    notes.fail('quota', {
      message: `${what}${waitMs === undefined ? '' : `; the next request is possible in ${duration(waitMs / 1000, 'up')}`}`,
      remedy:
        'Run --check again after that. If it happens often, lower api.share, or find out who else uses keys of the workspace.',
      facts: { wait_seconds: waitMs === undefined ? null : Math.ceil(waitMs / 1000) },
    }),
  'server-fault': noteOddAnswer,
  malformed: noteOddAnswer,
  'bad-cursor': noteRejected,
  'range-too-large': noteRejected,
  'invalid-request': noteRejected,
};

/** Adds a line for a fault of the API, with the next step for its kind. */
export function noteFault(notes: CheckNotes, scope: Scope, fault: ApiFault): void {
  FAULT_REPORTS[fault.kind](notes, scope, fault);
}

/**
 * `--check`, the API: the findings of its answers (plan, workspace, clocks, quota, undocumented values) and of a failed
 * request. Each kind of fault has one line with a remedy.
 */

import type { Config } from '../../config/config.ts';
import { type ApiFault, type ApiFaultKind, KEY_REFUSED } from '../../core/faults.ts';
import type { QuotaUse } from '../../core/lines/fact-lines.ts';
import type { Clock } from '../../core/ports.ts';
import type { Learnt } from '../../core/quota.ts';
import { type Account, type DevicePage, MAX_PAGE_SIZE } from '../../core/records.ts';
import type { ServerClock } from '../../core/server-clock.ts';
import { counted, duration, grouped, plainText } from '../../core/text.ts';
import { DAY_MS, type EpochMs, nsToMs, SECOND_MS } from '../../core/time.ts';
import type { SyncSettings } from '../../ingest/context.ts';
import { wantedFrom } from '../../ingest/wanted-range.ts';
import { demandOf, totalOf } from '../../scheduler/demand.ts';
import { meanPeriodMs } from '../../scheduler/estimate.ts';
import type { CheckLine, CheckNotes } from './report.ts';

/** What a key is for. The first two are what nothing can be synced without. */
export const SCOPES = ['devices:read', 'telemetry:read', 'alerts:read', 'account:read'] as const;

export type Scope = (typeof SCOPES)[number];

/** The plan and its limits. */
export function notePlan(notes: CheckNotes, { plan, devices, openAlerts }: Account): CheckLine {
  const { requestsPerMinute, requestsPerDay, historyMaxDays, maxDevicesPerPage } = plan;
  const figureWords = (figure: number | null): string => (figure === null ? 'an untold number of' : grouped(figure));
  const name = plainText(plan.name ?? plan.planId ?? 'without a name', 60);
  const message = [
    `${name}: ${figureWords(requestsPerMinute)} requests a minute, ${figureWords(requestsPerDay)} a day`,
    historyMaxDays === null ? 'windows of any width' : `windows of ${counted(historyMaxDays, 'day')} at most`,
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
    const remedy = 'Nothing: the allowance is guessed cautiously from the answers.';
    return notes.warn('plan', { message, remedy, facts });
  }
  return notes.ok('plan', message, facts);
}

/** Whether the history that is wanted fits into the windows of the plan. */
export function noteHistory(
  notes: CheckNotes,
  { plan: { historyMaxDays: maxDays } }: Account,
  { settings, clock }: { readonly settings: Pick<SyncSettings, 'history'>; readonly clock: Clock },
): CheckLine {
  const wantedMs = clock.nowMs() - nsToMs(wantedFrom(settings, clock.nowMs()));
  const wanted = `sync.history goes back ${duration(wantedMs / 1000)}`;
  if (maxDays === null || wantedMs <= maxDays * DAY_MS) return notes.ok('history', `${wanted}: within the plan`);
  return notes.warn('history', {
    message: `${wanted}, the windows of the plan span ${counted(maxDays, 'day')}: what is older comes only if the API serves it`,
    remedy: 'Nothing, or a larger plan; gaps that stay for this reason are named "beyond_plan".',
  });
}

/**
 * Whether the plan carries what the schedules of lists and idle polls ask for, whatever the devices report. What live
 * readings need besides depends on how often the devices report: `--plan` estimates it.
 */
export function noteSchedules(
  notes: CheckNotes,
  plan: NonNullable<CheckLine['facts']>,
  { sync: { schedules, polls }, api: { share } }: Pick<Config, 'sync' | 'api'>,
  nowMs: EpochMs,
): void {
  const figureOf = (name: string): number | null => (typeof plan[name] === 'number' ? plan[name] : null);
  const demand = demandOf({
    freshnessMs: meanPeriodMs(schedules.telemetry, nowMs),
    devicesMs: meanPeriodMs(schedules.devices, nowMs),
    alertsMs: meanPeriodMs(schedules.alerts, nowMs),
    accountMs: meanPeriodMs(schedules.account, nowMs),
    polls,
    share,
    intervalsMs: [],
    quietDevices: figureOf('devices') ?? 0,
    pageSize: figureOf('max_devices_per_page') ?? MAX_PAGE_SIZE,
    perMinute: figureOf('external_requests_per_minute'),
    perDay: figureOf('external_requests_per_day'),
    othersPerDay: 0,
  });
  const { live: _live, ...requests } = demand.needed;
  const total = Math.ceil(totalOf({ ...requests, live: 0 }));
  if (total <= demand.budget) return;
  const facts = { requests_per_day: total, budget_per_day: demand.budget };
  const parts = Object.entries(requests).map(([lane, count]) => `${SCHEDULE_KEYS[lane]} ${grouped(Math.ceil(count))}`);
  notes.warn('schedules', {
    message: `the schedules ask for ${grouped(total)} requests a day (${parts.join(', ')}), and api.share of the plan carries ${grouped(demand.budget)}: all intervals grow until they fit`,
    remedy: 'Set longer intervals for the largest of them. tidemark --plan shows what fits.',
    facts,
  });
}

const SCHEDULE_KEYS: Readonly<Record<string, string>> = {
  alerts: 'sync.alerts',
  inventory: 'sync.devices',
  account: 'sync.account',
  'idle-poll': 'sync.idle_poll',
};

/** Whether the key is of the workspace that the state belongs to. */
export function noteWorkspace(notes: CheckNotes, account: Account, pinned: string | null): CheckLine {
  const found = plainText(account.workspaceId, 80);
  const facts = { workspace_id: account.workspaceId };
  const name = account.name === null ? '' : ` (${plainText(account.name, 60)})`;
  if (pinned === null) return notes.ok('workspace', `${found}${name}; the state belongs to none yet`, facts);
  if (pinned === account.workspaceId) return notes.ok('workspace', `${found}${name}: that of the state`, facts);
  return notes.fail('workspace', {
    message: `the key is of the workspace ${found}${name}, the state belongs to ${plainText(pinned, 80)}: nothing would be synced`,
    remedy: 'Use a key of the right workspace, or give this workspace a data_dir of its own.',
    facts,
  });
}

/** Clocks that differ by less are as good as equal. */
const SKEW_REPORTED_MS = 10 * SECOND_MS;

/** What this machine's clock is ahead of the API's. */
export function noteClock(
  notes: CheckNotes,
  { serverClock }: { readonly serverClock: Pick<ServerClock, 'skewMs'> },
): CheckLine {
  const skewMs = serverClock.skewMs();
  if (skewMs === null) {
    return notes.skip('clock', "the API's answers carry no Date: its time is taken from the newest readings", {
      skew_seconds: null,
    });
  }
  const seconds = Math.round(skewMs / SECOND_MS);
  const facts = { skew_seconds: seconds };
  const words = `${duration(Math.abs(seconds))} ${skewMs > 0 ? 'ahead of' : 'behind'}`;
  if (Math.abs(skewMs) <= SKEW_REPORTED_MS) {
    const close = Math.abs(seconds) <= 1 ? 'to the second' : `it is ${words} that`;
    return notes.ok('clock', `this machine's clock agrees with the API's: ${close}`, facts);
  }
  return notes.warn('clock', {
    message: `this machine's clock is ${words} the API's. What is held goes by the API's; logs, schedules and certificates go by this one`,
    remedy: 'Set the clock of this machine (NTP): timedatectl set-ntp true',
    facts,
  });
}

/** The quota that is left. */
export function noteQuota(notes: CheckNotes, { leftMinute, spentDay, leftDay }: QuotaUse): CheckLine {
  const facts = { left_minute: leftMinute, left_day: leftDay, spent_day: spentDay };
  const of = (left: number | null, what: string): string =>
    left === null ? `of the ${what} not known` : `${grouped(left)} of the ${what}`;
  const message = `left: ${of(leftMinute, 'minute')}, ${of(leftDay, 'day')}; own requests in 24 h: ${grouped(spentDay)}`;
  if (leftDay !== 0) return notes.ok('allowance', message, facts);
  const remedy =
    'Nothing: it goes on when the day is over. A larger plan, or a shorter sync.history, if it happens often.';
  return notes.warn('allowance', { message, remedy, facts });
}

const UNSEEN = 'not seen yet';

/** What of the undocumented was seen, by this check or by the program that works with the state. */
export function noteLearnt(notes: CheckNotes, learnt: Learnt, page: DevicePage | null): void {
  const { waitHeaders, challengeHeaders, rateLimit, pageTaken, pageRefused } = learnt;
  const seen = (isSeen: boolean) => (isSeen ? notes.ok : notes.skip);
  const named = (names: readonly string[]): string => (names.length === 0 ? UNSEEN : names.join(', '));
  const facts = (names: readonly string[]) => ({ names: names.length === 0 ? null : names.join(', ') });
  seen(waitHeaders.length > 0)('wait header', `${named(waitHeaders)} (comes with 429)`, facts(waitHeaders));
  const challenge = `${named(challengeHeaders)} (comes with 401)`;
  seen(challengeHeaders.length > 0)('challenge header', challenge, facts(challengeHeaders));
  noteRateLimit(notes, rateLimit);
  const refused = pageRefused === null ? '' : `; limit=${pageRefused} was refused once`;
  const taken = pageTaken === null ? UNSEEN : `limit=${pageTaken} is accepted`;
  const isCut = page !== null && page.nextCursor !== null && pageTaken !== null && page.devices.length < pageTaken;
  const cut = isCut ? `; a page has ${page.devices.length} records all the same` : '';
  seen(pageTaken !== null)('page size', `${taken}${refused}${cut}`, { accepted: pageTaken, refused: pageRefused });
}

const RATE_LIMIT = 'rate-limit headers';

function noteRateLimit(notes: CheckNotes, seen: Learnt['rateLimit']): CheckLine {
  if (seen === null) return notes.skip(RATE_LIMIT, UNSEEN, { seen: null });
  if (seen === 'all') return notes.ok(RATE_LIMIT, 'X-RateLimit-Limit and X-RateLimit-Remaining are there', { seen });
  return notes.warn(RATE_LIMIT, {
    message: seen === 'none' ? 'the answers carry none' : 'not every answer carries both of them',
    remedy: 'Nothing: the allowance goes by the plan then, and what other clients spend shows itself by 429 only.',
    facts: { seen },
  });
}

const WHERE = 'in the dashboard (Settings, then API)';

type ReportFault = (notes: CheckNotes, scope: Scope, fault: ApiFault) => void;

/** What a workspace is synced without when the scope is missing; `null`: nothing can be synced then. */
const WITHOUT: Readonly<Record<Scope, string | null>> = {
  'devices:read': null,
  'telemetry:read': null,
  'alerts:read': 'alerts are not synced',
  'account:read': 'the plan is not known, the allowance is guessed cautiously, and points carry workspace_id=default',
};

const scopeMissing: ReportFault = (notes, scope) => {
  const without = WITHOUT[scope];
  const remedy = `Create a key ${WHERE} that has ${scope} as well, and give it as api.key.`;
  if (without === null) {
    const message = `the key lacks it: ${scope === 'devices:read' ? 'nothing' : 'no reading'} can be synced`;
    notes.fail(scope, { message, remedy, exitCode: 77 });
  } else notes.warn(scope, { message: `the key lacks it: ${without}`, remedy });
};

const odd: ReportFault = (notes, scope, { message }) => {
  const remedy = `Run it again; if it stays: look whether api.url is right and no proxy answers instead of the API (asked for ${scope}).`;
  notes.fail('answer', { message, remedy });
};

const refused: ReportFault = (notes, scope, { message }) => {
  const remedy = 'Nothing, if the sync runs: it asks in other ways too. Else report it with these words.';
  notes.warn(scope, { message: `granted, but the request was refused: ${message}`, remedy });
};

const FAULT_REPORTS: Readonly<Record<ApiFaultKind, ReportFault>> = {
  'scope-missing': scopeMissing,
  unauthorized: (notes) =>
    notes.fail('key', {
      message: KEY_REFUSED,
      remedy: `Create one ${WHERE} and put it into the file of api.key_file, alone on one line.`,
      exitCode: 77,
    }),
  'no-api-access': (notes, _scope, { message }) =>
    notes.fail('access', {
      message: `the plan of this workspace has no access to the API (${message})`,
      remedy: 'Take a plan that includes API access.',
      exitCode: 77,
    }),
  'not-found': (notes, _scope, { message }) =>
    notes.fail('address', {
      message,
      remedy: 'Correct api.url: the base address of the API, ending in /external/v1.',
    }),
  unreachable: (notes, _scope, { message }) =>
    notes.fail('answer', {
      message,
      remedy: 'Look after the network, HTTPS_PROXY and api.ca_file, then run it again.',
    }),
  throttled: (notes, _scope, { message, facts: { waitMs } }) =>
    notes.fail('allowance', {
      message: `${message}${waitMs === undefined ? '' : `; the next request may go in ${duration(waitMs / 1000, 'up')}`}`,
      remedy:
        'Run it again then. If it happens often, lower api.share, or see who else uses the keys of the workspace.',
      facts: { wait_seconds: waitMs === undefined ? null : Math.ceil(waitMs / 1000) },
    }),
  'server-fault': odd,
  malformed: odd,
  'bad-cursor': refused,
  'range-too-large': refused,
  'invalid-request': refused,
};

/** Tells of it. */
export function noteFault(notes: CheckNotes, scope: Scope, fault: ApiFault): void {
  FAULT_REPORTS[fault.kind](notes, scope, fault);
}

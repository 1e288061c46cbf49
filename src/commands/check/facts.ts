/**
 * What `--check` tells of the API once it has answered: the plan, the workspace, the clocks, the allowance, and what of
 * the undocumented has shown itself.
 */
import type { CheckLine, CheckNotes } from '../../core/check.ts';
import type { AllowanceUse } from '../../core/lines/fact-lines.ts';
import type { Clock } from '../../core/ports.ts';
import type { Learnt } from '../../core/quota.ts';
import type { Account, DevicePage } from '../../core/records.ts';
import type { ServerClock } from '../../core/server-clock.ts';
import { counted, grouped, plainText } from '../../core/text.ts';
import { DAY_MS, nsToMs, SECOND_MS } from '../../core/time.ts';
import type { SyncSettings } from '../../ingest/context.ts';
import { wantedFrom } from '../../ingest/horizon.ts';
import { lasting } from '../shared/layout.ts';
import { spanWords } from './words.ts';

/** The plan and its limits. */
export function notePlan(notes: CheckNotes, { plan, devices, openAlerts }: Account): CheckLine {
  const { requestsPerMinute, requestsPerDay, historyMaxDays, maxDevicesPerPage } = plan;
  const told = (figure: number | null): string => (figure === null ? 'an untold number of' : grouped(figure));
  const name = plainText(plan.name ?? plan.planId ?? 'without a name', 60);
  const message = [
    `${name}: ${told(requestsPerMinute)} requests a minute, ${told(requestsPerDay)} a day`,
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
  const wanted = `sync.history goes back ${spanWords(wantedMs)}`;
  if (maxDays === null || wantedMs <= maxDays * DAY_MS) return notes.ok('history', `${wanted}: within the plan`);
  return notes.warn('history', {
    message: `${wanted}, the windows of the plan span ${counted(maxDays, 'day')}: what is older comes only if the API serves it`,
    remedy: 'Nothing, or a larger plan; gaps that stay for this reason are named "beyond plan".',
  });
}

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
const SKEW_TOLD_MS = 10 * SECOND_MS;

/** What this machine's clock is ahead of the API's. */
export function noteClock(
  notes: CheckNotes,
  { serverClock }: { readonly serverClock: Pick<ServerClock, 'skewMs'> },
): CheckLine {
  const skewMs = serverClock.skewMs();
  if (skewMs === null) {
    return notes.ok('clock', "the API's answers carry no Date: its time is taken from the newest readings", {
      skew_seconds: null,
    });
  }
  const seconds = Math.round(skewMs / SECOND_MS);
  const facts = { skew_seconds: seconds };
  const words = `${lasting(Math.abs(seconds), 1)} ${skewMs > 0 ? 'ahead of' : 'behind'}`;
  if (Math.abs(skewMs) <= SKEW_TOLD_MS) {
    const close = Math.abs(seconds) <= 1 ? 'to the second' : `it is ${words} that`;
    return notes.ok('clock', `this machine's clock agrees with the API's: ${close}`, facts);
  }
  return notes.warn('clock', {
    message: `this machine's clock is ${words} the API's. What is held goes by the API's; logs, schedules and certificates go by this one`,
    remedy: 'Set the clock of this machine (NTP): timedatectl set-ntp true',
    facts,
  });
}

/** What is left of the allowance. */
export function noteAllowance(notes: CheckNotes, { leftMinute, spentDay, leftDay }: AllowanceUse): CheckLine {
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
  const named = (names: readonly string[]): string => (names.length === 0 ? UNSEEN : names.join(', '));
  const facts = (names: readonly string[]) => ({ names: names.length === 0 ? null : names.join(', ') });
  notes.ok('wait header', `${named(waitHeaders)} (comes with 429)`, facts(waitHeaders));
  notes.ok('challenge header', `${named(challengeHeaders)} (comes with 401)`, facts(challengeHeaders));
  noteRateLimit(notes, rateLimit);
  const refused = pageRefused === null ? '' : `; limit=${pageRefused} was refused once`;
  const taken = pageTaken === null ? UNSEEN : `limit=${pageTaken} is accepted`;
  const isCut = page !== null && page.nextCursor !== null && pageTaken !== null && page.devices.length < pageTaken;
  const cut = isCut ? `; a page has ${page.devices.length} records all the same` : '';
  notes.ok('page size', `${taken}${refused}${cut}`, { accepted: pageTaken, refused: pageRefused });
}

const NAME = 'rate-limit headers';

function noteRateLimit(notes: CheckNotes, seen: Learnt['rateLimit']): CheckLine {
  if (seen === null) return notes.ok(NAME, UNSEEN, { seen: null });
  if (seen === 'all') return notes.ok(NAME, 'X-RateLimit-Limit and X-RateLimit-Remaining are there', { seen });
  return notes.warn(NAME, {
    message: seen === 'none' ? 'the answers carry none' : 'not every answer carries both of them',
    remedy: 'Nothing: the allowance goes by the plan then, and what other clients spend shows itself by 429 only.',
    facts: { seen },
  });
}

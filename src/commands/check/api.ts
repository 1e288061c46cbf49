/**
 * `--check`, the API: whether the key is accepted and what it may read, tried with at most six requests, each through the
 * gate and booked like any other, and none of them twice.
 *
 * Promises: nothing that comes back is archived, delivered or pinned to the state; of the account only the figures of the
 * plan are kept, and only where none are known yet (the gate paces by them). What is wrong with one thing keeps no other
 * from being tried, unless the others would fail by the same.
 */
import { type ApiFindings, CHECK_REQUESTS, type CheckNotes, createNotes } from '../../core/check.ts';
import type { Observe } from '../../core/events.ts';
import type { ApiFault } from '../../core/faults.ts';
import type { Api, Clock, Purpose } from '../../core/ports.ts';
import type { Learnt } from '../../core/quota.ts';
import type { Account, DevicePage, DeviceRecord } from '../../core/records.ts';
import { counted } from '../../core/text.ts';
import { floorToSecond, HOUR_NS, msToNs } from '../../core/time.ts';
import type { SyncContext } from '../../ingest/context.ts';
import { type Asker, createAsker, type Waits } from './ask.ts';
import { noteBounds } from './bounds.ts';
import { noteAllowance, noteClock, noteHistory, noteLearnt, notePlan, noteWorkspace } from './facts.ts';
import { noteFault } from './faults.ts';

export interface CheckApiParts {
  readonly context: Pick<SyncContext, 'store' | 'serverClock' | 'allowance' | 'settings'> & { readonly clock: Clock };
  readonly askerOf: (requests: number) => { readonly api: Api; readonly spent: () => number };
  readonly learnt: () => Learnt;
  /** Lets somebody hear of every event. */
  readonly listen: (listener: Observe) => void;
  /** The workspace that the state belongs to, by its id in the API; `null` where it belongs to none yet. */
  readonly pinnedWorkspace: () => string | null;
  /** How long a request may take once it may go. */
  readonly timeoutMs: number;
}

/** What a key is for. The first two are what nothing can be synced without. */
export const SCOPES = ['devices:read', 'telemetry:read', 'alerts:read', 'account:read'] as const;

export type Scope = (typeof SCOPES)[number];

/** Prepares the check for one run or many: hears of waits from now on. */
export function createApiCheck(
  parts: CheckApiParts,
): (onAsk: (scope: Scope) => void, signal: AbortSignal) => Promise<ApiFindings> {
  const waits: Waits = { onWait: null };
  parts.listen((event) => {
    if (event.type === 'allowance-wait') waits.onWait?.(event.untilMs, event.reason);
  });
  return async (onAsk, signal) => await checkApi(parts, { onAsk, waits }, signal);
}

async function checkApi(
  parts: CheckApiParts,
  { onAsk, waits }: { onAsk: (scope: Scope) => void; waits: Waits },
  signal: AbortSignal,
): Promise<ApiFindings> {
  const { api, spent } = parts.askerOf(CHECK_REQUESTS);
  const notes = createNotes('api');
  const asker = createAsker({ ...parts, waits, onAsk, onFault: (scope, fault) => noteFault(notes, scope, fault) });
  const account = await askAccount(parts, { api, asker, notes }, signal);
  const page = await asker.ask(
    { scope: 'devices:read', put: async (stop) => await api.devices(null, of('devices'), stop) },
    signal,
  );
  if (page !== null) noteDevices(notes, page);
  await askTelemetry(parts, { api, asker, notes, device: deviceToAsk(page) }, signal);
  const alerts = await asker.ask(
    { scope: 'alerts:read', put: async (stop) => await api.alerts(null, of('alerts'), stop) },
    signal,
  );
  if (alerts !== null) {
    notes.ok('alerts:read', `granted: ${countOf(alerts.alerts.length, alerts.nextCursor !== null, 'alert')} listed`);
  }
  if (asker.hasAnswered()) noteKey(notes);
  if (asker.stoppedBy() !== null) skipRest(notes, `not asked: ${asker.stoppedBy()}`);
  if (account !== null) {
    notePlan(notes, account);
    noteHistory(notes, account, parts.context);
    noteWorkspace(notes, account, parts.pinnedWorkspace());
  }
  if (asker.hasAnswered()) {
    noteClock(notes, parts.context);
    if (!has(notes, 'allowance')) noteAllowance(notes, parts.context.allowance());
  }
  noteLearnt(notes, parts.learnt(), page);
  return { requests: spent(), checks: notes.lines };
}

interface Asking {
  readonly api: Api;
  readonly asker: Asker;
  readonly notes: CheckNotes;
}

function of(stream: Purpose['stream'], deviceId?: string): Purpose {
  return { lane: 'inventory', stream, ...(deviceId === undefined ? {} : { deviceId }) };
}

async function askAccount(
  { context: { store }, pinnedWorkspace }: CheckApiParts,
  { api, asker, notes }: Asking,
  signal: AbortSignal,
): Promise<Account | null> {
  const account = await asker.ask(
    { scope: 'account:read', put: async (stop) => await api.account(of('account'), stop) },
    signal,
  );
  if (account === null) return null;
  notes.ok('account:read', 'granted');
  const pinned = pinnedWorkspace();
  // Without the plan's figures the gate goes at a crawl; those of another workspace are none of this state's.
  if (store.account() === null && (pinned === null || pinned === account.workspaceId)) store.keepAccount(account, []);
  return account;
}

function noteDevices(notes: CheckNotes, { devices, nextCursor }: DevicePage): void {
  notes.ok('devices:read', `granted: ${countOf(devices.length, nextCursor !== null, 'device')} listed`);
}

/** An id that no workspace has: with the scope it is answered by 404. */
const NOBODY = 'tidemark-check';

async function askTelemetry(
  { context }: CheckApiParts,
  { api, asker, notes, device }: Asking & { readonly device: DeviceRecord | null },
  signal: AbortSignal,
): Promise<void> {
  const deviceId = device?.deviceId ?? NOBODY;
  const newest = device?.lastSeenAt ?? msToNs(context.serverClock.nowMs());
  const query = { deviceId, after: floorToSecond(newest - HOUR_NS), before: null, cursor: null };
  let isThere = true;
  const put = async (stop: AbortSignal) => await api.telemetry(query, of('telemetry', deviceId), stop);
  const isAnswer = ({ kind }: ApiFault): boolean => {
    if (kind === 'not-found') isThere = false;
    return kind === 'not-found';
  };
  const page = await asker.ask({ scope: 'telemetry:read', put, isAnswer }, signal);
  if (!isThere) {
    const who =
      device === null ? 'there is no device to try it on, and one that is not there' : 'the device that was tried';
    notes.ok('telemetry:read', `granted, it seems: ${who} is answered by 404, not by a refusal`);
  }
  if (page === null) {
    await noteBounds(notes, null, null);
    return;
  }
  notes.ok(
    'telemetry:read',
    `granted: ${countOf(page.readings.length, page.nextCursor !== null, 'reading')} of a device`,
  );
  await noteBounds(notes, page, async (bounds) => {
    const window = { deviceId, ...bounds, cursor: null };
    const again = async (stop: AbortSignal) => await api.telemetry(window, of('telemetry', deviceId), stop);
    return await asker.ask({ scope: null, put: again, isAnswer: () => true }, signal);
  });
}

/** The one that was seen last: it has something to show. */
function deviceToAsk(page: DevicePage | null): DeviceRecord | null {
  return (page?.devices ?? []).reduce<DeviceRecord | null>(
    (best, device) => (best === null || (device.lastSeenAt ?? 0n) > (best.lastSeenAt ?? 0n) ? device : best),
    null,
  );
}

function noteKey(notes: CheckNotes): void {
  if (has(notes, 'key') || has(notes, 'access')) return;
  notes.lines.unshift({ ...KEY_ACCEPTED });
}

const KEY_ACCEPTED = {
  area: 'api',
  destination: null,
  name: 'key',
  status: 'ok',
  message: 'accepted',
  remedy: null,
  exit_code: 0,
} as const;

function skipRest(notes: CheckNotes, why: string): void {
  for (const scope of SCOPES) if (!has(notes, scope)) notes.skip(scope, why);
}

function countOf(count: number, isMore: boolean, what: string): string {
  return `${isMore ? 'the first ' : ''}${counted(count, what)}`;
}

function has({ lines }: CheckNotes, name: string): boolean {
  return lines.some((line) => line.name === name);
}

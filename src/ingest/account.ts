/**
 * Reads the account: the workspace of the key, the limits of its plan, and one `workspace` point per reading.
 *
 * The workspace is pinned before the first point of any kind is made. If the key belongs to another workspace, the
 * program stops before it writes anything.
 */

import { StateFullError } from '../core/archive-room.ts';
import { ApiFault, findMissingScope } from '../core/faults.ts';
import { workspaceLine } from '../core/lines/fact-lines.ts';
import type { Account, Plan } from '../core/records.ts';
import { type EpochMs, isLater, MINUTE_MS } from '../core/time.ts';
import type { SyncContext } from './context.ts';

/** The tag if the key may not read the account and none is configured. */
const DEFAULT_TAG = 'default';

/** When the last `workspace` point was made, in server time. */
const LAST_POINT = 'workspace_point_ms';

/**
 * Reads the account and stores it. If the key does not have the scope `account:read`, that is reported once, and the
 * sync continues without the account.
 *
 * @returns whether the account may be read.
 * @throws ApiFault of any other kind; UserError for another workspace.
 */
export async function syncAccount(context: SyncContext, signal: AbortSignal): Promise<boolean> {
  const { api, store, settings } = context;
  try {
    const { value: account, answeredAtMs } = await api.account({ lane: 'inventory', stream: 'account' }, signal);
    const tag = settings.workspaceTag ?? store.workspaceTag() ?? account.workspaceId;
    store.pinWorkspace({ apiId: account.workspaceId, tag });
    context.noteWorkspaceKnown();
    const isChanged = reportPlanChange(context, store.account()?.plan ?? null, account.plan);
    store.saveAccount(account, []);
    if (isChanged) context.notePlanChanged();
    // After the plan is stored, because the remaining quota depends on it.
    store.append(recordWorkspacePoint(context, account, { workspaceTag: tag, atMs: answeredAtMs }), 'live');
    context.noteArchived();
    return true;
  } catch (error) {
    const scope = findMissingScope(error, 'account');
    if (scope === null) throw error;
    context.noteStreamOff('account', scope);
    store.pinWorkspace({ apiId: null, tag: settings.workspaceTag ?? store.workspaceTag() ?? DEFAULT_TAG });
    context.noteWorkspaceKnown();
    return false;
  }
}

/**
 * Makes the `workspace` point and stores its time. It makes none if there is a point with this time already (two at one
 * instant would be one), or if the server's time is unconfirmed.
 */
function recordWorkspacePoint(
  { store, quota, serverClock }: SyncContext,
  account: Account,
  about: { workspaceTag: string; atMs: EpochMs },
): string[] {
  const lastMs = Number(store.fact(LAST_POINT) ?? Number.NEGATIVE_INFINITY);
  if (!isLater(about.atMs, lastMs) || serverClock.unconfirmed() !== null) return [];
  store.saveFact(LAST_POINT, String(about.atMs));
  return [workspaceLine(account, quota(), about)];
}

/** When the account was last read, as the state stores it: server time in ms; `null` if it was never read. */
export function accountReadAt(store: Pick<SyncContext['store'], 'fact'>): string | null {
  return store.fact(LAST_POINT);
}

/** Returns whether the plan has changed, and reports it. */
function reportPlanChange({ observe }: SyncContext, before: Plan | null, after: Plan): boolean {
  if (before === null) return false;
  const [was, is] = [describePlan(before), describePlan(after)];
  if (was !== is) observe({ type: 'plan-changed', before: was, after: is });
  return was !== is;
}

/** After rejected requests, the account is read ahead of its schedule at most this often. */
const PLAN_CHECK_EVERY_MS = 5 * MINUTE_MS;

/**
 * Creates the check to make when a request was rejected as invalid: it reads the account, because the plan may have
 * changed. Requests that are rejected in the meantime wait for the same reading. A failure to read it changes nothing.
 *
 * @throws UserError for another workspace.
 */
export function createPlanCheck(context: SyncContext): (signal: AbortSignal) => Promise<void> {
  let beganMs = Number.NEGATIVE_INFINITY;
  let reading = Promise.resolve();
  const read = async (signal: AbortSignal): Promise<void> => {
    try {
      await syncAccount(context, signal);
    } catch (error) {
      if (!(error instanceof ApiFault || error instanceof StateFullError || signal.aborted)) throw error;
    }
  };
  return async (signal) => {
    const nowMs = context.clock.monoMs();
    if (nowMs - beganMs >= PLAN_CHECK_EVERY_MS) {
      beganMs = nowMs;
      reading = read(signal);
    }
    await reading;
  };
}

function describePlan(plan: Plan): string {
  const days =
    plan.historyMaxDays === null
      ? 'telemetry requests of any range'
      : `at most ${plan.historyMaxDays} days per telemetry request`;
  return `${plan.requestsPerMinute ?? '?'} requests a minute, ${plan.requestsPerDay ?? '?'} a day, ${days}, pages of ${plan.maxDevicesPerPage ?? '?'}`;
}

/**
 * `--plan`: what is known of a workspace before anything is spent: its account, its devices, what is held of them
 * (design 1.2, issue 4).
 *
 * Promises: the account and the device list are all that is asked for, each request through the gate and booked like any
 * other; nothing is archived, no workspace is pinned, nothing is delivered. What is kept is the plan's figures, by which
 * the gate goes from the first page of the list on.
 */
import { ApiFault, UserError } from '../../core/faults.ts';
import type { DeviceFilter } from '../../core/filter.ts';
import type { DeviceFacts } from '../../core/fleet-rates.ts';
import type { Account, DeviceRecord } from '../../core/records.ts';
import { type EpochMs, nsToMs } from '../../core/time.ts';
import type { SyncContext } from '../../ingest/context.ts';
import { listDevices } from '../../ingest/devices.ts';
import { endsSession } from '../../scheduler/dispatch.ts';
import { refusalOf } from '../shared/refusal.ts';
import type { PlanFacts } from './premises.ts';

/** What was asked for. */
export interface AskedForPlan {
  /** Where the key may not read it: as it was read before, `null` where it never was. */
  readonly account: Account | null;
  readonly records: readonly DeviceRecord[];
  /** The server's time of the listing. */
  readonly atMs: EpochMs;
}

/** What the state holds, beside what was asked for. */
export type HeldForPlan = ReadonlyMap<string, Pick<DeviceFacts, 'held' | 'newestMs' | 'days'>>;

/**
 * Asks for the account and the device list.
 *
 * @throws UserError where a person has to act (77, another workspace: 1), and where it could not be done this time (3).
 */
export async function askForPlan(context: SyncContext, signal: AbortSignal): Promise<AskedForPlan> {
  try {
    const account = await askForAccount(context, signal);
    const { records, answeredAtMs } = await listDevices(context, signal);
    return { account, records: [...records.values()], atMs: answeredAtMs };
  } catch (error) {
    if (error instanceof UserError) throw error;
    if (signal.aborted) throw new UserError('Stopped before the plan could be told. Run it again.', 3);
    if (!(error instanceof ApiFault)) throw error;
    if (endsSession(error)) throw refusalOf(error);
    throw new UserError(`The plan could not be told: ${error.message}. Run it again when the API answers.`, 3);
  }
}

/** Asks for the account, so that the plan's figures are known and no other workspace is behind the key. @throws ApiFault UserError */
export async function askForAccount(
  { api, store, observe }: SyncContext,
  signal: AbortSignal,
): Promise<Account | null> {
  try {
    const { value: account } = await api.account({ lane: 'inventory', stream: 'account' }, signal);
    const tag = store.workspaceTag();
    // A state that belongs to a workspace is told of no other; one that is new is not tied to any by a question.
    if (tag !== null) store.pinWorkspace({ apiId: account.workspaceId, tag });
    store.keepAccount(account, []);
    return account;
  } catch (error) {
    if (!(error instanceof ApiFault) || error.kind !== 'scope-missing') throw error;
    observe({ type: 'stream-off', stream: 'account', scope: error.facts.scope ?? 'account:read' });
    // As it was read when the key might, which the gate goes by as well.
    return store.account();
  }
}

/** Puts together what is known of the devices. */
export function deviceFacts(
  records: readonly DeviceRecord[],
  held: HeldForPlan,
  filter: DeviceFilter,
): PlanFacts['devices'] {
  return records.map((record) => ({
    deviceId: record.deviceId,
    lastSeenMs: record.lastSeenAt === null ? null : nsToMs(record.lastSeenAt),
    lifecycle: record.lifecycleStatus,
    isLeftOut: filter.excludes(record),
    ...(held.get(record.deviceId) ?? NOTHING_HELD),
  }));
}

const NOTHING_HELD = { held: [], newestMs: null, days: [] };

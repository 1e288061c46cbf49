/** The first request for the account, and the errors for a refused key, for one-off commands that send requests. */
import { ApiFault, refusalWords, scopeWords, UserError } from '../../core/faults.ts';
import type { Account } from '../../core/records.ts';
import type { SyncContext } from '../../ingest/context.ts';

/** Turns a fault that ends a session into the error of a one-off command (exit 77). */
export function refusalOf(fault: ApiFault): UserError {
  const words = refusalWords(fault, 'give it as api.key');
  const isOfThePlan = fault.kind === 'no-api-access';
  return new UserError(isOfThePlan ? `${words.slice(0, 1).toUpperCase()}${words.slice(1)}.` : `api.key: ${words}.`, 77);
}

/** The error text for a missing scope that every sync needs. */
export function missingScopeWords(scope: string): string {
  return `api.key: ${scopeWords(scope)}.`;
}

/**
 * Asks for the account, so that the plan's figures are known and no other workspace is behind the key.
 *
 * @throws ApiFault UserError
 */
export async function fetchAccount(
  { api, store, streamOff }: SyncContext,
  signal: AbortSignal,
): Promise<Account | null> {
  try {
    const { value: account } = await api.account({ lane: 'inventory', stream: 'account' }, signal);
    const tag = store.workspaceTag();
    // A pinned state refuses another workspace. A question alone does not pin a new state.
    if (tag !== null) store.pinWorkspace({ apiId: account.workspaceId, tag });
    store.saveAccount(account, []);
    return account;
  } catch (error) {
    if (!(error instanceof ApiFault) || error.kind !== 'scope-missing') throw error;
    streamOff('account', error.facts.scope ?? 'account:read');
    // The stored account, which the rate limiter uses as well.
    return store.account();
  }
}

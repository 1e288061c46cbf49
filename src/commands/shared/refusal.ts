/**
 * When a one-off gives up, and what it says where the API refuses the key.
 */
import { type ApiFault, UserError } from '../../core/faults.ts';
import { MINUTE_MS } from '../../core/time.ts';

/** After so long without progress it ends. */
export const STALLED_AFTER_MS = 10 * MINUTE_MS;

/** A fault that ends a session, as a one-off command tells it (exit 77). */
export function refusalOf({ kind, facts }: ApiFault): UserError {
  if (kind === 'unauthorized') {
    return new UserError(
      'api.key: the API refuses the key: it is unknown, revoked or expired. Create one in the dashboard (Settings, then API) and give it as api.key.',
      77,
    );
  }
  if (kind === 'no-api-access') {
    return new UserError('The plan of this workspace has no access to the API. A plan that includes it is needed.', 77);
  }
  return new UserError(lackedScopeWords(facts.scope ?? 'devices:read'), 77);
}

/** What is to be done about a scope without which nothing can be done. */
export function lackedScopeWords(scope: string): string {
  return `api.key: the key lacks the scope ${scope}, without which nothing can be synced. Create a key that has it.`;
}

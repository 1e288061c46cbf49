/**
 * Requests for pages: with which `limit` each is put.
 *
 * Promises: within a chain of cursors the limit stays what it was on the first page ("the other parameters must be kept
 * the same from page to page"); a first page that is refused is put once more with the documented default.
 */
import { ApiFault } from '../core/faults.ts';
import type { Reply } from '../core/ports.ts';
import type { Cursor } from '../core/records.ts';
import { createPageSize } from './page-size.ts';

/** Puts a request for a page. @param put sends it with a limit. @throws ApiFault */
export type AskForPage = <T>(
  about: { readonly list: string; readonly cursor: Cursor | null },
  put: (limit: number) => Promise<Reply<T>>,
) => Promise<Reply<T>>;

/** @param planned the largest page by the plan, as known now; `null` where it is not. */
export function createPaged(planned: () => number | null): AskForPage {
  const size = createPageSize(planned);
  /** The limit of the chain that each list is read by. */
  const chains = new Map<string, number>();

  return async ({ list, cursor }, put) => {
    for (;;) {
      const limit = cursor === null ? size.next() : (chains.get(list) ?? size.next());
      chains.set(list, limit);
      try {
        const reply = await put(limit);
        size.answered(limit);
        return reply;
      } catch (error) {
        if (cursor !== null || !isBadRequest(error) || !size.refused(limit)) throw error;
      }
    }
  };
}

function isBadRequest(error: unknown): boolean {
  return error instanceof ApiFault && error.kind === 'invalid-request' && error.facts.status === 400;
}

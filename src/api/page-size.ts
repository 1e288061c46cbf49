/**
 * How many records to request in a page: as many as the plan allows, and fewer if the service rejects that or if an
 * answer is too large to be read.
 */
import { ApiFault } from '../core/faults.ts';
import { type Cursor, pageSizeOf } from '../core/records.ts';
import { isSendableCursor } from './urls.ts';

/** The default page size of the API (its document, "Pagination"). */
const DEFAULT_SIZE = 50;

/**
 * Large pages are tried again after this many answers. The number doubles each time that the service rejects them
 * again.
 */
const ENLARGE_AFTER = 5;
const ENLARGE_AFTER_AT_MOST = 2000;

/** This many cursors are remembered with their limits: more than the chains that are read at once. */
const CHAINS_AT_MOST = 100;

/** A page to request: from which list, and where it continues. */
export interface PageKey {
  /** The list that the page belongs to, such as the readings of one device. */
  readonly list: string;
  readonly cursor: Cursor | null;
}

interface PageSize {
  /** Returns the `limit` for a page; `cursor` is `null` for the first one. */
  limitFor(cursor: Cursor | null): number;
  /** Records that a page of this `limit` has named a next one; `null`: it was the last page. */
  noteCursor(cursor: Cursor | null, limit: number): void;
  /** Records that a request with this `limit` was answered. */
  noteAnswered(limit: number): void;
  /**
   * Records that a request with this `limit` was rejected as a bad request.
   *
   * @returns whether to try a smaller page
   */
  noteRejected(page: Pick<PageKey, 'cursor'>, limit: number): boolean;
}

/** The page sizes of a client. */
export interface PageLimits {
  readonly pageSize: PageSize;
  /** Smaller limits for lists whose full pages are too large to read, by the name of the list. */
  readonly smaller: Map<string, number>;
}

/** The most lists for which a smaller limit is remembered. */
const MOST_SMALLER = 1000;

/** The `limit` for a page. A chain of cursors keeps the limit that it began with. */
export function limitOf({ pageSize, smaller }: PageLimits, { list, cursor }: PageKey): number {
  const usual = pageSize.limitFor(cursor);
  return cursor === null ? Math.min(usual, smaller.get(list) ?? usual) : usual;
}

/**
 * Decides after a failure with this `limit`.
 *
 * @returns whether to try a smaller page
 */
export function takeSmaller({ pageSize, smaller }: PageLimits, page: PageKey, limit: number, error: unknown): boolean {
  if (!isTooLarge(error)) return isBadRequest(error) && pageSize.noteRejected(page, limit);
  if (page.cursor !== null || limit <= 1) return false;
  if (smaller.size >= MOST_SMALLER) smaller.clear();
  smaller.set(page.list, Math.ceil(limit / 4));
  return true;
}

function isTooLarge(error: unknown): boolean {
  return error instanceof ApiFault && error.facts.isTooLarge === true;
}

/** Whether the service has rejected a request as a bad one. */
export function isBadRequest(error: unknown): boolean {
  return error instanceof ApiFault && error.kind === 'invalid-request' && error.facts.status === 400;
}

/**
 * Decides how many records to request in a page: as many as the plan allows, and fewer if the service rejects that.
 *
 * The plan publishes the largest page, but a key may not be allowed to read the plan, and the value may have shrunk
 * since. The document leaves open what happens to a larger `limit` ("refused or clamped"). So a rejected first page is
 * requested again with the documented default, and then with halves of it, because a plan may have smaller pages. If a
 * page of one record is rejected as well, the size is not the cause, and no more halves are tried until an answer
 * comes. Larger pages are tried again after a while. Within a chain of cursors the limit stays as it was on the first
 * page ("the other parameters must be kept the same from page to page").
 *
 * @param planned returns the largest page that the plan allows; `null` while it is unknown
 */
export function createPageSize(planned: () => number | null): PageSize {
  let small = DEFAULT_SIZE;
  let smallFor = 0;
  let enlargeAfter = ENLARGE_AFTER;
  let isSizeTheCause = true;
  /** The limits of the pages that have named a cursor, the newest last. */
  const chains = new Map<Cursor, number>();
  const largest = (): number => pageSizeOf({ maxDevicesPerPage: planned() });
  const first = (): number => (smallFor > 0 ? Math.min(small, largest()) : largest());
  return {
    limitFor: (cursor) => (cursor === null ? first() : (chains.get(cursor) ?? first())),
    noteCursor: (cursor, limit) => {
      if (cursor === null || !isSendableCursor(cursor)) return;
      chains.delete(cursor);
      chains.set(cursor, limit);
      for (const oldest of chains.keys()) if (chains.size > CHAINS_AT_MOST) chains.delete(oldest);
    },
    noteAnswered: (limit) => {
      isSizeTheCause = true;
      if (limit <= small && smallFor > 0) smallFor -= 1;
      else if (limit > small) [small, enlargeAfter] = [DEFAULT_SIZE, ENLARGE_AFTER];
    },
    noteRejected: ({ cursor }, limit) => {
      if (cursor !== null) return false;
      if (limit > small) {
        smallFor = enlargeAfter;
        enlargeAfter = Math.min(ENLARGE_AFTER_AT_MOST, enlargeAfter * 2);
        return true;
      }
      if (limit > 1 && isSizeTheCause) {
        small = Math.trunc(limit / 2);
        smallFor = Math.max(smallFor, 1);
        return true;
      }
      [small, smallFor, enlargeAfter, isSizeTheCause] = [DEFAULT_SIZE, 0, ENLARGE_AFTER, false];
      return false;
    },
  };
}

/**
 * How many records to ask for in a page: as many as the plan allows, and fewer where the service refuses that.
 *
 * The plan publishes the largest page, but a key may not be allowed to read it, and it may have shrunk since it was
 * read; what becomes of a larger `limit` is not documented ("refused or clamped"). So a first page that is refused is
 * asked for once more with the documented default. The limit may not have been at fault: larger pages are tried again
 * after a while. Within a chain of cursors the limit stays what it was on the first page ("the other parameters must be
 * kept the same from page to page").
 */
import type { Cursor } from '../core/records.ts';

/** The default of the API (document, "Pagination"), and the most that it accepts. */
const DEFAULT_SIZE = 50;
const MAX_SIZE = 200;

/** After so many answers the large pages are tried again; doubled each time that they are refused once more. */
const TRY_AGAIN_AFTER = 5;
const TRY_AGAIN_AT_MOST = 2000;

/** A page to be asked for: of which list, and whether it goes on from an earlier one. */
export interface PageAsked {
  /** One chain of cursors at a time is read by each name. */
  readonly list: string;
  readonly cursor: Cursor | null;
}

interface PageSize {
  /** The `limit` to ask with. */
  limitFor(page: PageAsked): number;
  /** Takes in that a request with this `limit` was answered. */
  answered(limit: number): void;
  /** Takes in that it was refused as a bad request. @returns whether a smaller page is worth a try. */
  refused(page: PageAsked, limit: number): boolean;
}

/** @param planned the largest page by the plan, as known now; `null` where it is not. */
export function createPageSize(planned: () => number | null): PageSize {
  let smallFor = 0;
  let patience = TRY_AGAIN_AFTER;
  /** The limit of the chain that each list is read by. */
  const chains = new Map<string, number>();
  const largest = (): number => Math.max(1, Math.min(MAX_SIZE, Math.trunc(planned() ?? MAX_SIZE) || 1));
  const first = (): number => (smallFor > 0 ? Math.min(DEFAULT_SIZE, largest()) : largest());
  return {
    limitFor: ({ list, cursor }) => {
      const limit = cursor === null ? first() : (chains.get(list) ?? first());
      chains.set(list, limit);
      return limit;
    },
    answered: (limit) => {
      if (limit > DEFAULT_SIZE) patience = TRY_AGAIN_AFTER;
      else if (smallFor > 0) smallFor -= 1;
    },
    refused: ({ cursor }, limit) => {
      if (cursor !== null) return false;
      if (limit <= DEFAULT_SIZE) {
        // Refused all the same: the size was not at fault.
        smallFor = 0;
        patience = TRY_AGAIN_AFTER;
        return false;
      }
      smallFor = patience;
      patience = Math.min(TRY_AGAIN_AT_MOST, patience * 2);
      return true;
    },
  };
}

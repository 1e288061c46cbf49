/**
 * How many records to ask for in a page: as many as the plan allows, and fewer where the service refuses that.
 *
 * The plan publishes the largest page, but a key may not be allowed to read it, and it may have shrunk since it was
 * read; what becomes of a larger `limit` is not documented ("refused or clamped"). So a request that is refused is put
 * again with the documented default. The limit may not have been at fault: larger pages are tried again after a while.
 */

/** The default of the API (document, "Pagination"), and the most that it accepts. */
const DEFAULT_SIZE = 50;
const MAX_SIZE = 200;

/** After so many answers the large pages are tried again; doubled each time that they are refused once more. */
const TRY_AGAIN_AFTER = 5;
const TRY_AGAIN_AT_MOST = 2000;

export interface PageSize {
  /** The `limit` of the next request. */
  next(): number;
  /** Takes in that a request with this `limit` was answered. */
  answered(limit: number): void;
  /** Takes in that one was refused as `invalid_request`. @returns whether a smaller page is worth a try. */
  refused(limit: number): boolean;
}

/** @param planned the largest page by the plan, as known now; `null` where it is not. */
export function createPageSize(planned: () => number | null): PageSize {
  let smallFor = 0;
  let patience = TRY_AGAIN_AFTER;
  const largest = (): number => Math.max(1, Math.min(MAX_SIZE, Math.trunc(planned() ?? MAX_SIZE) || 1));
  return {
    next: () => (smallFor > 0 ? Math.min(DEFAULT_SIZE, largest()) : largest()),
    answered: (limit) => {
      if (limit > DEFAULT_SIZE) patience = TRY_AGAIN_AFTER;
      else if (smallFor > 0) smallFor -= 1;
    },
    refused: (limit) => {
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

/**
 * The restatement audit of `--verify --sample`: windows that are held, read again from the API and compared.
 */

/** A window that is served differently from how it is held. */
export interface WindowDifference {
  readonly device_id: string;
  readonly from: string;
  readonly to: string;
  /** Points that are served and not held. */
  readonly missing: number;
  /** Points that are held and not served any more. */
  readonly gone: number;
}

export interface SampleVerdict {
  readonly windows: number;
  readonly readings: number;
  readonly requests: number;
  readonly missing: number;
  readonly gone: number;
  /** Readings that were taken in as late ones. */
  readonly taken_in: number;
  /** Why it could not be finished; `null` where it was. */
  readonly reason: string | null;
  readonly differences: readonly WindowDifference[];
}

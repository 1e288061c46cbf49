/**
 * What can be found out about a database by asking it (`--check`), without a point being written unless that is wanted.
 */
import type { DestinationKind } from './lines/dialect.ts';
import type { WriteAnswer } from './ports.ts';

/** What `influx/probe.ts` has found. */
export interface DestinationFacts {
  /** What it says that it is; `null` where no answer came. */
  readonly kind: DestinationKind | null;
  /** Its version in its own words; `null` where it tells none. */
  readonly version: string | null;
  /**
   * What it says to a write: of no points, or of one. `accepted`: the address, the token and the bucket are right. What is
   * refused for having no points is accepted here.
   */
  readonly write: WriteAnswer;
  /** Whether a point was written for that. */
  readonly isPoint: boolean;
  /** How long it keeps points, in ms (`Infinity`: for ever); `null` where it does not tell. */
  readonly retentionMs: number | null;
  /** What VictoriaMetrics drops as duplicates, in ms; 0: nothing; `null` where it does not tell, or is none. */
  readonly dedupMs: number | null;
}

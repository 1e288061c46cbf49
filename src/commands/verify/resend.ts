/**
 * Sending lines of the log once more, past every position: for `--verify --repair`.
 *
 * Promise: what is sent is what delivery would send, and nothing is recorded: a position never moves by it.
 */
import { type DestinationKind, type FindDisplaced, translate } from '../../core/lines/dialect.ts';
import type { Sink } from '../../core/ports.ts';
import type { ReadTrouble } from '../../core/state/verify.ts';
import { settleBatch } from '../../delivery/settle.ts';

export interface Resender {
  /** Sends lines of the log. @returns what was in the way; `null` for nothing. */
  send(lines: readonly string[], signal: AbortSignal): Promise<ReadTrouble | null>;
  /** What the destination has refused so far, and its last words. */
  refused(): { readonly lines: number; readonly words: string | null };
}

export interface ResendParts {
  readonly sink: Sink;
  readonly kind: DestinationKind;
  readonly findDisplaced: FindDisplaced;
  readonly batchLines: number;
}

/** Opens it for a destination. */
export function createResender({ sink, kind, findDisplaced, batchLines }: ResendParts): Resender {
  const refused = { lines: 0, words: null as string | null };
  return {
    refused: () => ({ ...refused }),
    send: async (lines, signal) => {
      const { lines: all } = translate(kind, lines, findDisplaced);
      let done = 0;
      while (done < all.length) {
        const batch = all.slice(done, done + batchLines);
        const settlement = await settleBatch(sink, batch, { witness: () => null }, signal);
        done += settlement.settled;
        refused.lines += settlement.refused.length;
        refused.words = settlement.refused.at(-1)?.words ?? refused.words;
        const { hold } = settlement;
        if (hold !== null) return { kind: 'down', words: hold.words, hint: hold.hint };
      }
      return null;
    },
  };
}

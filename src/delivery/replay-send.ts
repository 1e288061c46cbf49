/**
 * How a replay sends: at its pace, behind live delivery, batch after batch, until all of a load is settled.
 */
import type { Observe } from '../core/events.ts';
import type { Clock, Random } from '../core/ports.ts';
import { backoffMs } from '../core/retry.ts';
import type { Store } from '../core/state/state.ts';
import { MINUTE_MS, SECOND_MS } from '../core/time.ts';
import type { Sent } from './batch-sender.ts';
import type { Deliverer } from './deliver.ts';
import type { Hold } from './settle.ts';

export interface SendParts {
  readonly store: Pick<Store, 'replays'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: Observe;
  /** Lines in one request at most. */
  readonly batchLines: number;
  /** Lines a second at most; `null`: as many as the destination takes. */
  readonly maxRate: number | null;
  /** Whether somebody delivers beside it, who goes first. */
  readonly isBeside: boolean;
}

/** What became of the lines of a load. */
export interface LoadSent {
  readonly refused: Sent['refused'][number][];
  readonly lacks: Sent['lacks'][number][];
  /** By their place in the load. */
  readonly notAccepted: Set<number>;
  /** How many are older than the destination keeps. */
  beyond: number;
}

export interface LoadSender {
  /** Sends lines until all of them are settled. @returns `null` where nothing has moved for ten minutes. */
  all(lines: readonly string[], signal: AbortSignal): Promise<LoadSent | null>;
  /** Why nothing moves; `null` while it does. */
  held(): string | null;
}

const STALLED_AFTER_MS = 10 * MINUTE_MS;
const BACKOFF = { baseMs: SECOND_MS, maxMs: MINUTE_MS };

/** Live delivery goes first, but for one batch in so long: history that fills a new destination may take days. */
const LIVE_FIRST = { lookMs: 50, mostMs: SECOND_MS };

/** A sender to one destination. */
export function createLoadSender(
  target: Pick<Deliverer, 'name' | 'destinationId' | 'resend'>,
  parts: SendParts,
): LoadSender {
  const { clock, random, observe } = parts;
  const mayGo = createTurn(target, parts);
  const status = { failures: 0, held: null as string | null };
  let maxLines = parts.batchLines;

  /** Sends some lines and takes in what became of them. @returns how many are settled, and why no more. */
  const once = async (
    batch: readonly string[],
    { from, sent }: { from: number; sent: LoadSent },
    signal: AbortSignal,
  ): Promise<{ settled: number; hold: Hold | null }> => {
    const answer = await target.resend(batch, signal);
    if (!('settlement' in answer)) return { settled: 0, hold: answer };
    const { settlement, refused, lacks } = answer;
    for (const { index } of settlement.refused) sent.notAccepted.add(from + index);
    sent.refused.push(...refused);
    sent.lacks.push(...lacks);
    sent.beyond += settlement.refused.length - refused.length;
    if (settlement.tooLarge) maxLines = Math.max(1, Math.floor(batch.length / 2));
    return settlement;
  };

  const rest = async ({ words, hint, waitMs: askedMs }: Hold, lines: number, signal: AbortSignal): Promise<void> => {
    status.failures += 1;
    status.held = words;
    const waitMs = backoffMs({ failures: status.failures, policy: BACKOFF, random, askedMs: askedMs ?? 0 });
    observe({ type: 'destination-held', destination: target.name, lines, words, hint, waitMs });
    await clock.sleep(waitMs, signal);
  };

  const moves = (): void => {
    if (status.held !== null) observe({ type: 'destination-moving', destination: target.name });
    status.held = null;
    status.failures = 0;
  };

  return {
    all: async (lines, signal) => {
      const sent: LoadSent = { refused: [], lacks: [], notAccepted: new Set(), beyond: 0 };
      let movedMs = clock.monoMs();
      for (let from = 0; from < lines.length; ) {
        const batch = lines.slice(from, from + maxLines);
        await mayGo(batch.length, signal);
        const { settled, hold } = await once(batch, { from, sent }, signal);
        from += settled;
        if (settled > 0) movedMs = clock.monoMs();
        if (hold === null) moves();
        else if (clock.monoMs() - movedMs >= STALLED_AFTER_MS) return null;
        else await rest(hold, batch.length - settled, signal);
      }
      return sent;
    },
    held: () => status.held,
  };
}

/** Waits until so many lines may be sent: behind what is live, and no more a second than allowed. */
function createTurn(
  target: Pick<Deliverer, 'destinationId'>,
  { store, clock, maxRate, isBeside }: SendParts,
): (lines: number, signal: AbortSignal) => Promise<void> {
  let freeAtMs = clock.monoMs();
  const isLive = (): boolean => isBeside && store.replays.pendingLines(target.destinationId) > 0;
  return async (lines, signal) => {
    signal.throwIfAborted();
    const beganMs = clock.monoMs();
    while (isLive() && clock.monoMs() - beganMs < LIVE_FIRST.mostMs) await clock.sleep(LIVE_FIRST.lookMs, signal);
    if (maxRate === null) return;
    const waitMs = freeAtMs - clock.monoMs();
    if (waitMs > 0) await clock.sleep(waitMs, signal);
    freeAtMs = Math.max(freeAtMs, clock.monoMs()) + (lines / maxRate) * SECOND_MS;
  };
}

/**
 * Lines of the quarantine, sent to their destination once more, by the same settlement as any others.
 *
 * Promise: a line leaves the quarantine only once it is accepted, or known to be older than the destination keeps; one
 * that is refused stays with the new words; where the destination does not answer nothing changes.
 */

import { translate } from '../core/lines/dialect.ts';
import { kindOf } from '../core/lines/line-reader.ts';
import type { Clock } from '../core/ports.ts';
import { LOG_LANES, type LogBatch, type LogLane, type LogPosition, positionAfter } from '../core/state/log.ts';
import type { QuarantinedItem } from '../core/state/quarantine.ts';
import type { Store } from '../core/state/state.ts';
import { msToNs } from '../core/time.ts';
import { deviceOf } from './batch-sender.ts';
import { lacksBeyond, timeOf } from './beyond-retention.ts';
import type { Reachable } from './known-destinations.ts';
import { settleBatch } from './settle.ts';

/** What came of it at one destination. */
export interface LinesRetried {
  accepted: number;
  refused: number;
  beyond: number;
  /** Why the rest was not tried; `null` where all was. */
  held: string | null;
}

interface RetryParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly destination: Reachable;
  readonly witnesses: Witnesses;
}

/** Sends some lines again, and takes in what became of them. @throws the signal's reason. */
export async function retryLines(
  parts: RetryParts,
  items: readonly QuarantinedItem[],
  signal: AbortSignal,
): Promise<LinesRetried> {
  const sum: LinesRetried = { accepted: 0, refused: 0, beyond: 0, held: null };
  let left = items;
  while (left.length > 0 && sum.held === null) {
    const settled = await retrySome(parts, left, { sum, signal });
    left = left.slice(settled);
  }
  return sum;
}

async function retrySome(
  { store, clock, destination, witnesses }: RetryParts,
  items: readonly QuarantinedItem[],
  { sum, signal }: { sum: LinesRetried; signal: AbortSignal },
): Promise<number> {
  const { id, kind, sink } = destination;
  const lines = items.map(({ content }) => content);
  const sent = translate(kind, lines, store.displacedTo);
  const ages = { newestAccepted: witnesses.newest, now: () => msToNs(clock.nowMs()) };
  const settlement = await settleBatch(sink, sent.lines, { witness: witnesses.find, ages }, signal);
  const settled =
    settlement.settled === sent.lines.length ? lines.length : (sent.origins[settlement.settled] ?? lines.length);
  const refused = new Map(settlement.refused.map((each) => [sent.origins[each.index] ?? 0, each]));
  const outcome = { accepted: [] as number[], refused: [] as { id: number; words: string }[], beyond: [] as number[] };
  const old: string[] = [];
  items.slice(0, settled).forEach((item, index) => {
    const refusal = refused.get(index);
    if (refusal === undefined) outcome.accepted.push(item.id);
    else if (refusal.retention) {
      outcome.beyond.push(item.id);
      old.push(item.content);
    } else outcome.refused.push({ id: item.id, words: refusal.words });
  });
  const missing = lacksBeyond(old, (tag) => deviceOf(store, tag));
  store.quarantine.resolve({ destinationId: id, ...outcome, missing, atMs: clock.nowMs() });
  sum.accepted += outcome.accepted.length;
  sum.refused += outcome.refused.length;
  sum.beyond += outcome.beyond.length;
  const { hold } = settlement;
  if (hold !== null) sum.held = hold.hint === '' ? hold.words : `${hold.words}; ${hold.hint}`;
  return settled;
}

/** Lines that a destination has accepted: without one like it no line is called bad. */
export interface Witnesses {
  find(line: string): string | null;
  newest(): string | null;
}

/** How far back in the log they are looked for, and how many of each kind are tried. */
const BLOCKS_BACK = 256;
const LIMITS = { lines: 2000, bytes: 1024 * 1024 };
const BATCHES = 20;
const OF_A_KIND = 20;

/** Witnesses from what the destination has settled last, as it was sent them. Looked for when the first one is needed. */
export function createLogWitnesses(store: Store, { id, kind }: Reachable): Witnesses {
  let found: Map<string, string[]> | null = null;
  const all = (): Map<string, string[]> => {
    found ??= gather(store, { id, kind });
    return found;
  };
  return {
    find: (line) => all().get(kindOf(line))?.at(-1) ?? null,
    newest: () => {
      const latest = [...all().values()].flatMap((lines) => lines.slice(-1));
      return latest.toSorted((a, b) => (timeOf(a) < timeOf(b) ? -1 : 1)).at(-1) ?? null;
    },
  };
}

function gather(store: Store, { id, kind }: Pick<Reachable, 'id' | 'kind'>): Map<string, string[]> {
  const byKind = new Map<string, string[]>();
  for (const lane of LOG_LANES) {
    for (const line of settledLines(store, lane, store.position(id, lane))) {
      const [sent] = translate(kind, [line], store.displacedTo).lines;
      if (sent === undefined) continue;
      const key = kindOf(sent);
      const known = byKind.get(key) ?? [];
      // The refused ones stand among the settled.
      if (store.quarantine.holds(id, line)) continue;
      byKind.set(key, [...known.slice(-OF_A_KIND), sent]);
    }
  }
  return byKind;
}

function* settledLines(store: Store, lane: LogLane, place: LogPosition): Iterable<string> {
  let from: LogPosition = { block: Math.max(0, place.block - BLOCKS_BACK), line: 0 };
  for (let nth = 0; nth < BATCHES; nth += 1) {
    const batch = store.read(lane, from, LIMITS);
    const settled = settledOf(batch, place);
    yield* batch.lines.slice(0, settled);
    if (settled < batch.lines.length || settled === 0) return;
    from = positionAfter(batch, from, settled);
  }
}

/** How many lines of a batch lie before a place. */
function settledOf({ segments }: LogBatch, place: LogPosition): number {
  let settled = 0;
  for (const { block, line, lines } of segments) {
    if (block > place.block) break;
    settled += block < place.block ? lines : Math.max(0, Math.min(lines, place.line - line));
  }
  return settled;
}

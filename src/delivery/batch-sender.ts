/**
 * The sending of a batch of the log to a destination, in its own dialect: what became of each line, in terms of the log.
 *
 * Whoever sends keeps here what it has seen the destination accept: controls for the next refusal (`settle.ts`).
 */
import { translate } from '../core/lines/dialect.ts';
import { identityTag } from '../core/lines/line-protocol.ts';
import { kindOf } from '../core/lines/line-reader.ts';
import type { Clock } from '../core/ports.ts';
import type { MissingPoints } from '../core/state/log.ts';
import type { Store } from '../core/state/state.ts';
import { msToNs } from '../core/time.ts';
import { lacksBeyond, timeOf } from './beyond-retention.ts';
import type { Served } from './destination.ts';
import { type RefusedLine, type Settlement, settleBatch } from './settle.ts';

/** What became of a batch. */
export interface Sent {
  readonly settlement: Settlement;
  /** Of the settled: for quarantine, with the words of the destination. */
  readonly refused: readonly RefusedLine[];
  /** Of the settled: older than the destination keeps. */
  readonly lacks: readonly MissingPoints[];
}

export type BatchSender = (served: Served, lines: readonly string[], signal: AbortSignal) => Promise<Sent>;

/** A sender to one destination. */
export function createBatchSender({ store, clock }: { store: Store; clock: Clock }): BatchSender {
  const witnesses = createWitnesses();
  const ages = { newestAccepted: witnesses.newest, now: () => msToNs(clock.nowMs()) };

  /** Settles a batch in the destination's own dialect. @returns it in terms of the lines of the log. */
  const send = async ({ kind, sink }: Served, lines: readonly string[], signal: AbortSignal): Promise<Settlement> => {
    const sent = translate(kind, lines, store.displacedTo);
    const settlement = await settleBatch(sink, sent.lines, { witness: witnesses.find, ages }, signal);
    witnesses.remember(sent.lines, settlement);
    if (sent.lines === lines) return settlement;
    const refused = settlement.refused.map((each) => {
      const index = sent.origins[each.index] ?? 0;
      return { ...each, index, line: lines[index] ?? '' };
    });
    // Lines that are not for this destination are settled with those before them.
    return { ...settlement, refused, settled: sent.origins[settlement.settled] ?? lines.length };
  };

  return async (served, lines, signal) => {
    const settlement = await send(served, lines, signal);
    const beyond = settlement.refused.filter(({ retention }) => retention).map(({ line }) => line);
    return {
      settlement,
      refused: settlement.refused.filter(({ retention }) => !retention),
      lacks: beyond.length === 0 ? [] : lacksBeyond(beyond, (tag) => deviceOf(store, tag)),
    };
  };
}

/** The device of a `device_id` tag: its id, unless that cannot stand in a line as it is. */
export function deviceOf(store: Pick<Store, 'devices'>, tag: string): string {
  // What was altered carries a mark at its end.
  if (!/~[0-9a-f]{8}$/.test(tag)) return tag;
  return store.devices().find(({ record }) => identityTag(record.deviceId) === tag)?.record.deviceId ?? tag;
}

/** Lines that the destination has accepted: controls for the next refusal. */
interface Witnesses {
  /** The latest one like `line`. */
  find(line: string): string | null;
  /** The newest one by time. */
  newest(): string | null;
  remember(lines: readonly string[], settlement: Settlement): void;
}

/** How many of the last lines of a batch are looked at for witnesses. */
const WITNESSES_FROM = 50;

function createWitnesses(): Witnesses {
  const byKind = new Map<string, string>();
  let newest: string | null = null;
  return {
    find: (line) => byKind.get(kindOf(line)) ?? null,
    newest: () => newest,
    remember: (lines, { settled, refused }) => {
      const isRefused = new Set(refused.map(({ index }) => index));
      for (let index = settled - 1; index >= 0 && index >= settled - WITNESSES_FROM; index -= 1) {
        const line = lines[index];
        if (line === undefined || isRefused.has(index)) continue;
        byKind.set(kindOf(line), line);
        if (newest === null || timeOf(line) > timeOf(newest)) newest = line;
      }
    },
  };
}

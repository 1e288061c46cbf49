/**
 * `--quarantine retry` and `--quarantine drop`, alone or as jobs of the daemon: send quarantined items again, or drop
 * them.
 *
 * Both go through the quarantine once, oldest first, in small steps. They can be interrupted anywhere; the next run
 * continues with the remaining items.
 */

import { parseAlertPage, parseDevicePage, parseTelemetryPage } from '../../api/parse.ts';
import type { ExitCode } from '../../core/faults.ts';
import { isRecord } from '../../core/json.ts';
import type { Clock } from '../../core/ports.ts';
import { createMatcher, missingAfterDrop, type QuarantineFilter } from '../../core/quarantine.ts';
import type { JsonValue } from '../../core/records.ts';
import { filterOf } from '../../core/state/job-args.ts';
import { endWith } from '../../core/state/jobs.ts';
import type { QuarantinedItem } from '../../core/state/quarantine.ts';
import type { Store } from '../../core/state/state.ts';
import { type DestinationOptions, findReachable, type Reachable } from '../../delivery/destination.ts';
import { findDeviceId } from '../../delivery/send-batch.ts';
import type { SyncContext } from '../../ingest/context.ts';
import type { JobWork } from '../../scheduler/jobs.ts';
import {
  createLogControls,
  createRecordRetry,
  type LinesRetried,
  type Reparse,
  type Reparsed,
  type RetryRecord,
  retryLines,
} from './retry.ts';

/** The result for a destination, in points. */
export interface DestinationOutcome {
  readonly name: string;
  /** Retry: points that the destination has accepted. */
  readonly accepted: number;
  /** Retry: points that the destination rejected again. They stay, with the new message. */
  readonly refused: number;
  /** Retry: points older than the destination keeps. They now count as missing there. */
  readonly beyond_retention: number;
  /** Drop: points that were dropped. */
  readonly dropped: number;
  /** Retry: why the rest was not tried; `null` if all points were. */
  readonly blocked_reason: string | null;
}

/** The summary of a retry or a drop, as `--json` prints it. */
export interface QuarantineSummary {
  readonly action: 'retry' | 'drop';
  readonly outcome: 'complete' | 'interrupted';
  readonly exit_code: ExitCode;
  readonly destinations: readonly DestinationOutcome[];
  /** Records of the API: those that are stored now, or dropped; and those that stay. */
  readonly records: { readonly done: number; readonly left: number; readonly reasons: readonly string[] };
}

/** The progress of a retry or a drop, as the job stores it. */
interface QuarantineProgress {
  readonly done: number;
}

/** The input of {@link retryQuarantine} and {@link dropQuarantine}. */
export interface QuarantineParts {
  readonly store: Store;
  readonly clock: Clock;
  /** The configured databases that are destinations in the state. */
  readonly reachable: () => readonly Reachable[];
  /** Creates the function that tries a record of the API. Called for each run. */
  readonly records: () => RetryRecord;
}

type ReportProgress = (progress: QuarantineProgress) => void;

/** The sync whose state is changed. Its databases are the configured ones. */
interface WorkOf {
  readonly context: SyncContext;
  readonly destinations: readonly DestinationOptions[];
}

/** Collects the parts that the work needs, in a daemon or alone. */
export function quarantineParts({ context, destinations }: WorkOf): QuarantineParts {
  const { store, clock } = context;
  return {
    store,
    clock,
    reachable: () => findReachable(store.quarantine.destinations(), destinations),
    records: () => createRecordRetry(context, reparse),
  };
}

/** Creates the workers for `runJobs` that retry and drop quarantined items. */
export function createQuarantineWorkers(
  parts: QuarantineParts,
): Record<'quarantine-retry' | 'quarantine-drop', (args: unknown, signal: AbortSignal) => JobWork> {
  const worker = (work: typeof retryQuarantine) => (args: unknown, signal: AbortSignal) => {
    let progress: QuarantineProgress = { done: 0 };
    const report: ReportProgress = (now) => {
      progress = now;
    };
    const end = work(parts, { filter: filterOf(args), report }, signal).then((summary) =>
      endWith(summary, summary.exit_code, summary.outcome === 'interrupted'),
    );
    return { end, progress: () => progress };
  };
  return { 'quarantine-retry': worker(retryQuarantine), 'quarantine-drop': worker(dropQuarantine) };
}

interface Order {
  readonly filter: QuarantineFilter;
  readonly report: ReportProgress;
}

/**
 * Sends the selected lines to their destinations again.
 *
 * @returns the result, even after an interruption.
 */
export async function retryQuarantine(
  parts: QuarantineParts,
  order: Order,
  signal: AbortSignal,
): Promise<QuarantineSummary> {
  const { store, clock } = parts;
  const records = { done: 0, left: 0, reasons: new Set<string>() };
  const retryRecord = parts.records();
  const senders = new Map(
    parts.reachable().map((destination) => {
      const controls = createLogControls(store, destination);
      return [destination.id, { store, clock, destination, controls }];
    }),
  );
  const takeRecord = (item: QuarantinedItem): void => {
    const why = retryRecord(item);
    if (why === null) records.done += 1;
    else records.left += 1;
    if (why !== null && records.reasons.size < REASONS) records.reasons.add(why);
  };
  const { outcome, destinations } = await goThrough(
    parts,
    order,
    async (items, outcomeOf) => {
      for (const item of items) if (item.destinationId === null) takeRecord(item);
      for (const [id, own] of byDestination(items)) {
        const sum = outcomeOf(id);
        const sender = senders.get(id);
        if (sender === undefined) sum.blocked_reason = NOT_CONFIGURED;
        else if (sum.blocked_reason === null) addUp(sum, await retryLines(sender, own, signal));
      }
    },
    signal,
  );
  const left = records.left + destinations.reduce((sum, { refused }) => sum + refused, 0);
  const isBlocked = destinations.some(
    ({ blocked_reason }) => blocked_reason !== null && blocked_reason !== NOT_CONFIGURED,
  );
  const isLeft = left > 0 || destinations.some(({ blocked_reason }) => blocked_reason !== null);
  const exit_code = outcome === 'interrupted' || isBlocked ? 3 : isLeft ? 1 : 0;
  return {
    action: 'retry',
    outcome,
    exit_code,
    destinations,
    records: { ...records, reasons: [...records.reasons] },
  };
}

/**
 * Drops the selected items.
 *
 * @returns the result, even after an interruption.
 */
export async function dropQuarantine(
  parts: QuarantineParts,
  order: Order,
  signal: AbortSignal,
): Promise<QuarantineSummary> {
  const { store, clock } = parts;
  const ids = new Map<string, string>();
  const deviceBy = (tag: string): string => {
    const deviceId = ids.get(tag) ?? findDeviceId(store, tag);
    ids.set(tag, deviceId);
    return deviceId;
  };
  const records = { done: 0, left: 0, reasons: [] };
  const takePage: TakePage = (items, outcomeOf) => {
    const missing = items.flatMap(({ destinationId, content }) => {
      const points = destinationId === null ? null : missingAfterDrop(content, deviceBy);
      return points === null || destinationId === null ? [] : [{ destinationId, points }];
    });
    store.quarantine.drop({ ids: items.map(({ id }) => id), missing, atMs: clock.nowMs() });
    records.done += items.filter(({ destinationId }) => destinationId === null).length;
    for (const [id, own] of byDestination(items)) outcomeOf(id).dropped += own.length;
    return Promise.resolve();
  };
  const { outcome, destinations } = await goThrough(parts, order, takePage, signal);
  return { action: 'drop', outcome, exit_code: outcome === 'interrupted' ? 3 : 0, destinations, records };
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** The most reasons that are listed for records that stay. */
const REASONS = 10;

const NOT_CONFIGURED =
  'the database is no longer in the configuration: configure it again to send the points, or drop them (tidemark --quarantine drop)';

/**
 * Handles a page of the selected items.
 *
 * @param outcomeOf returns the sums of a destination, which grow.
 */
type TakePage = (
  items: readonly QuarantinedItem[],
  outcomeOf: (destinationId: number) => Mutable<DestinationOutcome>,
) => Promise<void>;

/** Reads the quarantine page by page, and reports the progress. */
async function goThrough(
  { store: { quarantine }, clock }: Pick<QuarantineParts, 'store' | 'clock'>,
  { filter, report }: Order,
  takePage: TakePage,
  signal: AbortSignal,
): Promise<Pick<QuarantineSummary, 'outcome' | 'destinations'>> {
  const known = quarantine.destinations();
  // All destinations that had the name at any time.
  const named = known.filter(({ name }) => name === filter.destination).map(({ id }) => id);
  const matches = createMatcher(filter, new Set(named));
  const outcomes = new Map<number, Mutable<DestinationOutcome>>();
  const outcomeOf = (id: number): Mutable<DestinationOutcome> => {
    const name = known.find((one) => one.id === id)?.name ?? '';
    const outcome = outcomes.get(id) ?? {
      name,
      accepted: 0,
      refused: 0,
      beyond_retention: 0,
      dropped: 0,
      blocked_reason: null,
    };
    outcomes.set(id, outcome);
    return outcome;
  };
  let [after, done] = [0, 0];
  try {
    for (;;) {
      signal.throwIfAborted();
      const page = quarantine.page(after);
      const last = page.at(-1);
      if (last === undefined) return { outcome: 'complete', destinations: [...outcomes.values()] };
      after = last.id;
      const items = page.filter(matches);
      if (items.length > 0) {
        await takePage(items, outcomeOf);
        done += items.length;
        report({ done });
      }
      // Other work gets its turn between two pages.
      await clock.sleep(0, signal);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    return { outcome: 'interrupted', destinations: [...outcomes.values()] };
  }
}

function byDestination(items: readonly QuarantinedItem[]): Map<number, QuarantinedItem[]> {
  const by = new Map<number, QuarantinedItem[]>();
  for (const item of items) {
    if (item.destinationId === null) continue;
    const own = by.get(item.destinationId);
    if (own === undefined) by.set(item.destinationId, [item]);
    else own.push(item);
  }
  return by;
}

function addUp(outcome: Mutable<DestinationOutcome>, { accepted, rejected, beyond, blocked }: LinesRetried): void {
  outcome.accepted += accepted;
  outcome.refused += rejected;
  outcome.beyond_retention += beyond;
  outcome.blocked_reason = blocked;
}

/** Parses a record of the quarantine with this version. */
const reparse: Reparse = (source, record): Reparsed => {
  const value = jsonOf(record);
  if (value === undefined)
    return unparsedRecord(
      'the record was too long to be stored completely; read its range again with --backfill --recheck',
    );
  const body = { data: [value] };
  if (source === 'devices' || source === 'alerts') {
    const { rejected } = (source === 'devices' ? parseDevicePage : parseAlertPage)(body, 'the quarantine');
    const [first] = rejected;
    return first === undefined ? { kind: 'listed' } : unparsedRecord(`still cannot be parsed: ${first.reason}`);
  }
  const page = parseTelemetryPage({ data: [withPairs(value)] }, 'the quarantine');
  const [reading] = page.readings;
  if (reading === undefined) return unparsedRecord(`still cannot be parsed: ${page.rejected[0]?.reason ?? ''}`);
  const pairs = pairsOf(value);
  return { kind: 'reading', reading: pairs === null ? reading : { ...reading, values: pairs } };
};

function unparsedRecord(why: string): Reparsed {
  return { kind: 'not-understood', why };
}

/** Not `parseJson`: a record may be `null`, and only a truncated one is `undefined`. */
function jsonOf(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The values of readings with rejected values are stored as pairs. */
function pairsOf(value: JsonValue): [string, JsonValue][] | null {
  const values = isRecord(value) ? value['values'] : null;
  return Array.isArray(values) && values.every(isPair) ? values : null;
}

function isPair(value: unknown): value is [string, JsonValue] {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === 'string';
}

function withPairs(value: JsonValue): JsonValue {
  return pairsOf(value) === null ? value : { ...(value as { readonly [key: string]: JsonValue }), values: {} };
}

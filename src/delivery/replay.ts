/**
 * A replay sends archived points to a destination again, without a request to the API.
 *
 * Promises: the rules of delivery hold (`resolve.ts`): every line is accepted, in quarantine with the destination's
 * message, or among the missing points. A destination that accepts nothing is retried. A replay may be interrupted
 * anywhere and continues from the last recorded step; it may then send a line twice, but skips none. Live delivery goes
 * first, and the replay sends no more lines per second than allowed. If the count of an hour is corrected while the
 * replay sends it, it is sent again.
 */
import { beginTimeSlice, pollUntil } from '../core/async.ts';
import { isHourLine } from '../core/lines/line-reader.ts';
import { STALLED_AFTER_MS } from '../core/retry.ts';
import { END_OF_TIME, type ReadPiece, type ReadRange, type ScanPosition } from '../core/state/archive.ts';
import type { ReplayArgs } from '../core/state/job-args.ts';
import { canResume, NO_COUNTS, type ReplayReport, type ReplayState } from '../core/state/replay.ts';
import type { Store } from '../core/state/state.ts';
import { type EpochNs, formatExact, SECOND_MS } from '../core/time.ts';
import { BATCH_LENGTH, type Deliverer, type DelivererParts } from './deliver.ts';
import type { Blocked } from './destination.ts';
import { type BatchSize, createBatchSize, createDeliveryBackoff, type DeliveryBackoff } from './flow-control.ts';
import type { Sent } from './send-batch.ts';

/** The ports and the rate limit of a replay. */
export interface ReplayParts extends DelivererParts {
  /** The most lines in one request. */
  readonly batchLines: number;
  /** The most lines per second; `null` for no limit. */
  readonly maxRate: number | null;
  /** Whether a live delivery runs at the same time. Then it goes before the replay. */
  readonly isBeside: boolean;
  /** How many characters to read from the archive in one step, approximately. */
  readonly stepBytes: number;
}

type Target = Pick<Deliverer, 'name' | 'destinationId' | 'resend'>;

/** Sends archived lines to one destination again, from the position where an earlier run was interrupted. */
export interface Replay {
  /** Sends all points. It ends early if no progress is made for ten minutes. An abort is a result, not an error. */
  run(signal: AbortSignal): Promise<void>;
  report(): ReplayReport;
}

/** How often the position is recorded if nothing else is. */
const SAVE_EVERY_MS = SECOND_MS;

/** How long one search for lines to send may take before other work gets its turn. */
const SLICE = { workMs: 12, pauseMs: 1 };

/** Up to this many refused lines are kept in memory. Beyond that, each accepted line is looked up in the quarantine. */
const MAX_REMEMBERED_LINES = 10_000;

/** Opens a replay to one destination. An interrupted replay with the same arguments is continued. */
export function openReplay(target: Target, args: ReplayArgs, parts: ReplayParts): Replay {
  const { store, clock, observe } = parts;
  const { replays } = store;
  const before = replays.unfinished(target.destinationId);
  const nowMs = clock.nowMs();
  const resumed = before !== null && canResume(before, args, nowMs) ? before : null;
  const scope = resumed?.args ?? args;
  const range: ReadRange = { from: BigInt(scope.from), to: BigInt(scope.to), devices: scope.devices, kinds: 'all' };
  const job: Job = {
    target,
    range,
    state: resumed ?? {
      args,
      position: { deviceId: null, from: range.from },
      counts: NO_COUNTS,
      tooOldTo: null,
      begunMs: nowMs,
    },
    sender: createSender(target, parts),
    devicesDone: resumed === null ? 0 : countPassedDevices(store, resumed),
    outcome: 'running',
  };
  const to = range.to === END_OF_TIME ? null : formatExact(range.to);
  return {
    run: async (signal) => {
      const resumedAfter = resumed === null ? null : resumed.counts.lines;
      observe({ type: 'replay-started', destination: target.name, resumedAfter, from: formatExact(range.from), to });
      replays.save(target.destinationId, job.state);
      try {
        job.outcome = await sendAll(job, parts, signal);
      } catch (error) {
        if (!signal.aborted) throw error;
        job.outcome = 'interrupted';
      }
      if (job.outcome === 'complete') replays.forget(target.destinationId);
      else replays.save(target.destinationId, job.state);
      observe({ type: 'replay-ended', destination: target.name, outcome: job.outcome, lines: job.state.counts.lines });
    },
    report: () => ({
      ...job.state.counts,
      name: target.name,
      outcome: job.outcome,
      resumed: resumed !== null,
      from: formatExact(range.from),
      to,
      devices_done: job.devicesDone,
      devices: range.devices.length > 0 ? new Set(range.devices).size : store.devices().length,
      blocked_reason: job.sender.backoff.blockedReason(),
    }),
  };
}

/** About how many devices precede the position where it continues. */
function countPassedDevices({ devices }: Store, { position, args }: ReplayState): number {
  const { deviceId } = position;
  if (deviceId === null) return 0;
  const ids = args.devices.length > 0 ? args.devices : devices().map(({ record }) => record.deviceId);
  return ids.filter((id) => id < deviceId).length;
}

/** The replay to one destination with its progress. */
interface Job {
  readonly target: Target;
  readonly range: ReadRange;
  readonly sender: Sender;
  state: ReplayState;
  devicesDone: number;
  outcome: ReplayReport['outcome'];
}

async function sendAll(job: Job, parts: ReplayParts, signal: AbortSignal): Promise<'complete' | 'stalled'> {
  const { store, clock } = parts;
  const quarantined = store.replays.quarantined(job.target.destinationId, MAX_REMEMBERED_LINES);
  let savedMs = clock.monoMs();
  for (let position: ScanPosition | null = job.state.position; position !== null; ) {
    const load = await gather(job, position, { parts, signal });
    const sent = await sendLoad(job.sender, load.lines, signal);
    if (sent === null) return 'stalled';
    if (!(await sendCorrected(job, load.hours, { parts, signal }))) return 'stalled';
    record(job, { load, sent, quarantined }, parts);
    position = load.next;
    if (position !== null) job.state = { ...job.state, position };
    if (clock.monoMs() - savedMs >= SAVE_EVERY_MS) {
      store.replays.save(job.target.destinationId, job.state);
      savedMs = clock.monoMs();
    }
  }
  return 'complete';
}

/** The lines that are sent together: consecutive pieces of one part, until they fill a batch. */
interface Load {
  readonly pieces: readonly ReadPiece[];
  readonly lines: readonly string[];
  /** The pieces that contain counts of hours. */
  readonly hours: readonly HoursRead[];
  readonly next: ScanPosition | null;
}

/** A piece with counts of hours, and the revision of its device just before it was read. */
interface HoursRead {
  readonly piece: ReadPiece;
  readonly deviceId: string;
  readonly revision: number;
}

/** Reads the next piece of a range of the archive. */
function readPiece(
  { replays, telemetry }: Store,
  range: ReadRange,
  { at, bytes }: { readonly at: ScanPosition; readonly bytes: number },
): { readonly piece: ReadPiece; readonly hours: readonly HoursRead[] } {
  const { deviceId } = at;
  const revision = deviceId === null ? 0 : telemetry(deviceId).revision;
  const piece = replays.archiveReader.read(range, at, bytes);
  const hasHours = deviceId !== null && piece.lines.some(isHourLine);
  return { piece, hours: hasHours ? [{ piece, deviceId, revision }] : [] };
}

/** Larger than any piece that was read before. */
const WHOLE_PIECE = 8 * BATCH_LENGTH;

/**
 * Sends the counts of hours that were corrected since they were read. Otherwise the delivery may have sent the
 * corrected counts before the old ones of this load.
 *
 * @returns whether the destination has accepted something within ten minutes.
 */
async function sendCorrected(
  job: Job,
  hours: readonly HoursRead[],
  { parts, signal }: { parts: ReplayParts; signal: AbortSignal },
): Promise<boolean> {
  const { store } = parts;
  for (let read = hours; ; ) {
    const changed = read.filter(({ deviceId, revision }) => store.telemetry(deviceId).revision !== revision);
    const again = changed.map(({ piece: { from, to, lines: before }, deviceId }) => {
      const now = readPiece(store, { ...job.range, from, to }, { at: { deviceId, from }, bytes: WHOLE_PIECE });
      return { ...now, corrected: now.piece.lines.filter((line) => isHourLine(line) && !before.includes(line)) };
    });
    const lines = again.flatMap(({ corrected }) => corrected);
    if (lines.length === 0) return true;
    if ((await sendLoad(job.sender, lines, signal)) === null) return false;
    read = again.flatMap((each) => each.hours);
  }
}

async function gather(
  job: Job,
  from: ScanPosition,
  { parts, signal }: { parts: ReplayParts; signal: AbortSignal },
): Promise<Load> {
  const { store, clock, stepBytes } = parts;
  const pieces: ReadPiece[] = [];
  const hours: HoursRead[] = [];
  const lines: string[] = [];
  let length = 0;
  const slice = beginTimeSlice(clock, SLICE);
  let next: ScanPosition | null = from;
  while (next !== null && lines.length < parts.batchLines && length < BATCH_LENGTH) {
    const bytes = Math.min(stepBytes, BATCH_LENGTH - length);
    const { piece, ...read }: ReturnType<typeof readPiece> = readPiece(store, job.range, { at: next, bytes });
    hours.push(...read.hours);
    if (piece.deviceId !== null && piece.next?.deviceId !== piece.deviceId) job.devicesDone += 1;
    if (piece.lines.length > 0) pieces.push(piece);
    for (const line of piece.lines) {
      lines.push(line);
      length += line.length + 1;
    }
    next = piece.next;
    if (slice.isOver()) await slice.pause(signal);
  }
  return { pieces, lines, hours, next };
}

/** Records the result of a load. */
function record(
  job: Job,
  { load, sent, quarantined }: { load: Load; sent: LoadSent; quarantined: ReadonlySet<string> | null },
  { store, clock }: ReplayParts,
): void {
  const { destinationId } = job.target;
  const accepted = load.lines.filter(
    (line, index) => (quarantined === null || quarantined.has(line)) && !sent.notAccepted.has(index),
  );
  const isMissingAny = store.missingSums(destinationId).length > 0;
  const sentRanges = isMissingAny ? sentWhole(load, sent, job.range) : [];
  const { rejected, missing } = sent;
  const tooOldTo = latest([job.state.tooOldTo, ...missing.map(({ toNs }) => toNs)]);
  const changes =
    rejected.length + missing.length + accepted.length + sentRanges.length === 0
      ? { added: 0, released: 0 }
      : store.replays.resolve({
          destinationId,
          rejected,
          missing,
          accepted,
          sent: sentRanges,
          tooOldTo,
          atMs: clock.nowMs(),
        });
  const { counts } = job.state;
  job.state = {
    ...job.state,
    tooOldTo,
    counts: {
      lines: counts.lines + load.lines.length,
      accepted: counts.accepted + load.lines.length - rejected.length - sent.beyond,
      refused: counts.refused + changes.added,
      known: counts.known + rejected.length - changes.added,
      beyond: counts.beyond + sent.beyond,
      released: counts.released + changes.released,
    },
  };
}

function latest(times: readonly (EpochNs | null)[]): EpochNs | null {
  return times.reduce((last, at) => (last === null || (at !== null && at > last) ? at : last), null);
}

/** The ranges of a load in which every line was accepted. */
function sentWhole({ pieces }: Load, { notAccepted }: LoadSent, { devices }: ReadRange) {
  let from = 0;
  return pieces.flatMap((piece) => {
    const to = from + piece.lines.length;
    const isWhole = ![...notAccepted].some((index) => index >= from && index < to);
    from = to;
    // Some lines belong to several devices. If the replay names devices, only some of those lines were sent.
    if (!isWhole || (piece.deviceId === null && devices.length > 0)) return [];
    return [{ deviceId: piece.deviceId ?? '', from: piece.from, to: piece.to, lines: piece.lines.length }];
  });
}

/** Sends at the allowed rate, after live delivery, batch by batch, until all lines of a load are resolved. */
interface Sender extends Pick<ReplayParts, 'store' | 'clock' | 'maxRate' | 'isBeside'> {
  readonly target: Target;
  readonly backoff: DeliveryBackoff;
  readonly batchSize: BatchSize;
  /** When the rate allows the next batch, by the monotonic clock. */
  freeAtMs: number;
}

/**
 * Live delivery goes first: the replay checks it every `checkMs`, but sends a batch after `mostMs` at the latest,
 * because filling a new destination with history may take days.
 */
const LIVE_FIRST = { checkMs: 50, mostMs: SECOND_MS };

function createSender(target: Target, { store, clock, batchLines, maxRate, isBeside, ...parts }: ReplayParts): Sender {
  const backoff = createDeliveryBackoff(target.name, { ...parts, clock });
  return {
    target,
    store,
    clock,
    maxRate,
    isBeside,
    backoff,
    batchSize: createBatchSize(batchLines),
    freeAtMs: clock.monoMs(),
  };
}

/** The result of one load of lines. */
interface LoadSent {
  readonly rejected: Sent['rejected'][number][];
  readonly missing: Sent['missing'][number][];
  /** The indexes of the lines that were not accepted. */
  readonly notAccepted: Set<number>;
  /** How many lines are older than the destination keeps. */
  beyond: number;
}

/**
 * Sends lines until all of them are resolved.
 *
 * @returns the result; `null` if no progress was made for ten minutes
 */
async function sendLoad(sender: Sender, lines: readonly string[], signal: AbortSignal): Promise<LoadSent | null> {
  const { clock, backoff } = sender;
  const sent: LoadSent = { rejected: [], missing: [], notAccepted: new Set(), beyond: 0 };
  let movedMs = clock.monoMs();
  for (let from = 0; from < lines.length; ) {
    const batch = lines.slice(from, from + sender.batchSize.lines());
    await waitUntilTurn(sender, batch.length, signal);
    const { resolved, blocked } = await sendSome(sender, batch, { from, sent, signal });
    from += resolved;
    if (resolved > 0) movedMs = clock.monoMs();
    if (blocked === null) backoff.noteMoved();
    else if (clock.monoMs() - movedMs >= STALLED_AFTER_MS) return null;
    else await clock.sleep(backoff.noteBlocked(blocked, batch.length - resolved), signal);
  }
  return sent;
}

/**
 * Sends a batch and adds its result.
 *
 * @returns how many lines are resolved, and why not more
 */
async function sendSome(
  sender: Sender,
  batch: readonly string[],
  { from, sent, signal }: { from: number; sent: LoadSent; signal: AbortSignal },
): Promise<{ resolved: number; blocked: Blocked | null }> {
  const answer = await sender.target.resend(batch, signal);
  if (!('resolution' in answer)) return { resolved: 0, blocked: answer };
  const { resolution, rejected, missing } = answer;
  for (const { index } of resolution.rejected) sent.notAccepted.add(from + index);
  sent.rejected.push(...rejected);
  sent.missing.push(...missing);
  sent.beyond += resolution.rejected.length - rejected.length;
  const { tooLarge, resolved } = resolution;
  sender.batchSize.noteSent({ lines: batch.length, tooLarge, isWhole: resolved === batch.length });
  return resolution;
}

/** Waits until the lines may be sent: after live delivery, and within the allowed rate. */
async function waitUntilTurn(sender: Sender, lines: number, signal: AbortSignal): Promise<void> {
  const { store, clock, maxRate, isBeside, target } = sender;
  signal.throwIfAborted();
  const beganMs = clock.monoMs();
  const check = (): true | null => {
    if (!isBeside || clock.monoMs() - beganMs >= LIVE_FIRST.mostMs) return true;
    return store.replays.pendingLines(target.destinationId) > 0 ? null : true;
  };
  await pollUntil(clock, check, { everyMs: LIVE_FIRST.checkMs }, signal);
  if (maxRate === null) return;
  const waitMs = sender.freeAtMs - clock.monoMs();
  if (waitMs > 0) await clock.sleep(waitMs, signal);
  sender.freeAtMs = Math.max(sender.freeAtMs, clock.monoMs()) + (lines / maxRate) * SECOND_MS;
}

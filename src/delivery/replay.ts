/**
 * A replay (design 1.2): sends archived points to a destination once more, without asking the API.
 *
 * Promises: the rules of delivery hold (`settle.ts`): every line is accepted, in quarantine with the destination's words,
 * or in its lack-set; one that is held is waited for. It may be broken off anywhere, and goes on from the last step that
 * was recorded: a line may be sent twice then, none is left out. Live delivery goes first, and no more lines a second are
 * sent than allowed.
 */
import { END_OF_TIME, type WalkPiece, type WalkPlace, type WalkSpan } from '../core/state/archive.ts';
import type { ReplayArgs } from '../core/state/job-args.ts';
import { isSameReplay, NO_COUNTS, type ReplayReport, type ReplayState } from '../core/state/replay.ts';
import type { Store } from '../core/state/state.ts';
import { type EpochNs, formatExact, SECOND_MS } from '../core/time.ts';
import type { Deliverer } from './deliver.ts';
import { createLoadSender, type LoadSender, type LoadSent, type SendParts } from './replay-send.ts';

export interface ReplayParts extends SendParts {
  readonly store: Store;
  /** About how many characters are read from the archive in one step. */
  readonly stepBytes: number;
}

type Target = Pick<Deliverer, 'name' | 'destinationId' | 'resend'>;

export interface Replay {
  /** Sends it all, or ends when nothing has moved for ten minutes. An abort is an outcome, no error. */
  run(signal: AbortSignal): Promise<void>;
  report(): ReplayReport;
}

/** A batch's size in characters, as in `deliver.ts`. */
const BATCH_LENGTH = 512 * 1024;

/** How often the place is recorded where nothing else is. */
const KEEP_EVERY_MS = SECOND_MS;

/** How long one look for something to send may take before others have their turn. */
const TURN_MS = 12;

/** Up to so many refused lines are kept in mind; with more, each accepted line is looked for in the quarantine. */
const QUARANTINE_IN_MIND = 10_000;

/** Opens a replay to one destination: going on with what was broken off, where that is what is asked for. */
export function openReplay(target: Target, args: ReplayArgs, parts: ReplayParts): Replay {
  const { store, clock, observe } = parts;
  const { replays } = store;
  const before = replays.unfinished(target.destinationId);
  const nowMs = clock.nowMs();
  const resumed = before !== null && isSameReplay(before, args, nowMs) ? before : null;
  const asked = resumed?.args ?? args;
  const span: WalkSpan = { from: BigInt(asked.from), to: BigInt(asked.to), devices: asked.devices, kinds: 'all' };
  const job: Job = {
    target,
    span,
    state: resumed ?? {
      args,
      place: { deviceId: null, from: span.from },
      counts: NO_COUNTS,
      tooOldTo: null,
      begunMs: nowMs,
    },
    send: createLoadSender(target, parts),
    devicesDone: resumed === null ? 0 : passed(store, resumed),
    outcome: 'running',
  };
  const to = span.to === END_OF_TIME ? null : formatExact(span.to);
  return {
    run: async (signal) => {
      const resumedAfter = resumed === null ? null : resumed.counts.lines;
      observe({ type: 'replay-begun', destination: target.name, resumedAfter, from: formatExact(span.from), to });
      replays.keep(target.destinationId, job.state);
      try {
        job.outcome = await sendAll(job, parts, signal);
      } catch (error) {
        if (!signal.aborted) throw error;
        job.outcome = 'interrupted';
      }
      if (job.outcome === 'complete') replays.forget(target.destinationId);
      else replays.keep(target.destinationId, job.state);
      observe({ type: 'replay-ended', destination: target.name, outcome: job.outcome, lines: job.state.counts.lines });
    },
    report: () => ({
      ...job.state.counts,
      name: target.name,
      outcome: job.outcome,
      resumed: resumed !== null,
      from: formatExact(span.from),
      to,
      devices_done: job.devicesDone,
      devices: span.devices.length > 0 ? new Set(span.devices).size : store.devices().length,
      held: job.send.held(),
    }),
  };
}

/** About how many devices lie before the place where it goes on. */
function passed({ devices }: Store, { place, args }: ReplayState): number {
  const { deviceId } = place;
  if (deviceId === null) return 0;
  const ids = args.devices.length > 0 ? args.devices : devices().map(({ record }) => record.deviceId);
  return ids.filter((id) => id < deviceId).length;
}

/** A replay under way. */
interface Job {
  readonly target: Target;
  readonly span: WalkSpan;
  readonly send: LoadSender;
  state: ReplayState;
  devicesDone: number;
  outcome: ReplayReport['outcome'];
}

async function sendAll(job: Job, parts: ReplayParts, signal: AbortSignal): Promise<'complete' | 'stalled'> {
  const { store, clock } = parts;
  const inMind = store.replays.quarantined(job.target.destinationId, QUARANTINE_IN_MIND);
  let keptMs = clock.monoMs();
  for (let place: WalkPlace | null = job.state.place; place !== null; ) {
    const load = await gather(job, place, { parts, signal });
    const sent = await job.send.all(load.lines, signal);
    if (sent === null) return 'stalled';
    record(job, { load, sent, inMind }, parts);
    place = load.next;
    if (place !== null) job.state = { ...job.state, place };
    if (clock.monoMs() - keptMs >= KEEP_EVERY_MS) {
      store.replays.keep(job.target.destinationId, job.state);
      keptMs = clock.monoMs();
    }
  }
  return 'complete';
}

/** What is sent at once: pieces of one part after the other, until they make a batch. */
interface Load {
  readonly pieces: readonly WalkPiece[];
  readonly lines: readonly string[];
  readonly next: WalkPlace | null;
}

async function gather(
  job: Job,
  from: WalkPlace,
  { parts, signal }: { parts: ReplayParts; signal: AbortSignal },
): Promise<Load> {
  const { store, clock, stepBytes } = parts;
  const pieces: WalkPiece[] = [];
  const lines: string[] = [];
  let length = 0;
  let turnMs = clock.monoMs();
  let next: WalkPlace | null = from;
  while (next !== null && lines.length < parts.batchLines && length < BATCH_LENGTH) {
    const piece: WalkPiece = store.replays.walker.read(job.span, next, Math.min(stepBytes, BATCH_LENGTH - length));
    if (piece.deviceId !== null && piece.next?.deviceId !== piece.deviceId) job.devicesDone += 1;
    if (piece.lines.length > 0) pieces.push(piece);
    for (const line of piece.lines) {
      lines.push(line);
      length += line.length + 1;
    }
    next = piece.next;
    if (clock.monoMs() - turnMs < TURN_MS) continue;
    await clock.sleep(1, signal);
    turnMs = clock.monoMs();
  }
  return { pieces, lines, next };
}

/** Records what became of a load. */
function record(
  job: Job,
  { load, sent, inMind }: { load: Load; sent: LoadSent; inMind: ReadonlySet<string> | null },
  { store, clock }: ReplayParts,
): void {
  const { destinationId } = job.target;
  const accepted = load.lines.filter(
    (line, index) => (inMind === null || inMind.has(line)) && !sent.notAccepted.has(index),
  );
  const hasLacks = store.missingSums(destinationId).length > 0;
  const stretches = hasLacks ? sentWhole(load, sent, job.span) : [];
  const { refused, lacks: missing } = sent;
  const tooOldTo = latest([job.state.tooOldTo, ...missing.map(({ toNs }) => toNs)]);
  const changes =
    refused.length + missing.length + accepted.length + stretches.length === 0
      ? { added: 0, released: 0 }
      : store.replays.resolve({
          destinationId,
          refused,
          missing,
          accepted,
          sent: stretches,
          tooOldTo,
          atMs: clock.nowMs(),
        });
  const { counts } = job.state;
  job.state = {
    ...job.state,
    tooOldTo,
    counts: {
      lines: counts.lines + load.lines.length,
      accepted: counts.accepted + load.lines.length - refused.length - sent.beyond,
      refused: counts.refused + changes.added,
      known: counts.known + refused.length - changes.added,
      beyond: counts.beyond + sent.beyond,
      released: counts.released + changes.released,
    },
  };
}

function latest(times: readonly (EpochNs | null)[]): EpochNs | null {
  return times.reduce((last, at) => (last === null || (at !== null && at > last) ? at : last), null);
}

/** The stretches of a load of which every line was accepted. */
function sentWhole({ pieces }: Load, { notAccepted }: LoadSent, { devices }: WalkSpan) {
  let from = 0;
  return pieces.flatMap((piece) => {
    const to = from + piece.lines.length;
    const isWhole = ![...notAccepted].some((index) => index >= from && index < to);
    from = to;
    // Of lines that are of several devices only some were sent where devices were named.
    if (!isWhole || (piece.deviceId === null && devices.length > 0)) return [];
    return [{ deviceId: piece.deviceId ?? '', from: piece.from, to: piece.to, lines: piece.lines.length }];
  });
}

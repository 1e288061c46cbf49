/**
 * The progress of long work: a line that redraws itself on a terminal, or one log line per minute elsewhere.
 *
 * Log lines that are written at the same time stay intact, because both go through one `TerminalLine`. Redraws are rare
 * enough to cost nothing. Nothing here reads a clock: the caller passes the time.
 */
import type { ProgressReport } from '../core/status.ts';
import { counted, duration, grouped, percent, rateText } from '../core/text.ts';
import { MINUTE_MS, SECOND_MS } from '../core/time.ts';

/** The progress of a piece of work. The counts cover this work only, since its start. */
export interface ProgressFacts {
  readonly devicesDone: number;
  readonly devicesTotal: number;
  readonly readings: number;
  readonly pointsDelivered: number;
  /** Archived points that are still to be delivered. */
  readonly pointsPending: number;
  readonly requests: number;
  /** Requests per minute, if the work reports them; otherwise they are counted here. */
  readonly requestsPerMinute?: number | null;
  /** The covered share of the wanted ranges, 0 to 1; `null` while no range is wanted. */
  readonly coveredShare: number | null;
  /**
   * The remaining time and its basis; `null` while it is not known. Absent: it is estimated from the progress so far.
   */
  readonly eta?: (Omit<NonNullable<ProgressReport['eta']>, 'seconds'> & { readonly ms: number }) | null;
  /** The cause for which all remaining work waits, if the duration is unknown. */
  readonly waitsFor?: string | null;
  /** Why telemetry is not read now; `null` if it is. */
  readonly unread?: string | null;
  /**
   * How long requests wait for quota: all requests (`ofAll`), or at least those of history and backfill; `null` while
   * they may be sent.
   */
  readonly wait: { readonly ms: number; readonly ofAll: boolean } | null;
  /** The progress of a backfill that runs at the same time; `null`: none runs. */
  readonly backfill?: ProgressFacts | null;
}

/** The bottom line of a terminal, and the text that scrolls above it. */
interface TerminalLine {
  /** Writes lasting text above the progress line: lines of the log. */
  write(text: string): void;
  /**
   * Redraws the line.
   *
   * @param heads the part that must be readable, in ever shorter forms: the first one that fits is drawn.
   * @param rest the parts that follow if they fit.
   */
  draw(heads: string | readonly string[], rest?: readonly string[]): void;
  /** Removes the line from the terminal. */
  clear(): void;
  readonly isTTY: true;
}

/** Moves to the start of the line and erases everything to the right. */
const ERASE = '\r\u001b[K';

/**
 * Creates the bottom line.
 *
 * @param stream a terminal; `columns` as Node reports it.
 */
export function createTerminalLine(stream: { write(text: string): unknown; readonly columns?: number }): TerminalLine {
  let drawn = '';
  return {
    isTTY: true,
    write: (text) => {
      stream.write(drawn === '' ? text : `${ERASE}${text}${drawn}`);
    },
    draw: (heads, rest = []) => {
      // A terminal of unknown size has 0 columns.
      drawn = fitted([heads].flat(), rest, (stream.columns || 80) - 1);
      stream.write(`${ERASE}${drawn}`);
    },
    clear: () => {
      if (drawn !== '') stream.write(ERASE);
      drawn = '';
    },
  };
}

/** The first head that fits, followed by as many parts as fit. If no head fits, the last one is cut. */
function fitted(heads: readonly string[], rest: readonly string[], columns: number): string {
  const head = heads.find((each) => each.length <= columns);
  if (head === undefined) return cutText(heads.at(-1) ?? '', columns);
  let text = head;
  for (const part of rest) {
    if (text.length + 2 + part.length > columns) break;
    text += `, ${part}`;
  }
  return text;
}

/** The parts at the beginning of a text that fit. If the first one is too long by itself, it is cut. */
function cutText(text: string, columns: number): string {
  const end = text.lastIndexOf(', ', columns);
  return end <= 0 ? text.slice(0, columns) : text.slice(0, end);
}

/** The display of a sync's progress. */
interface ProgressDisplay {
  /**
   * Shows the facts if a line is due.
   *
   * @param nowMs a clock that never jumps, of any origin.
   */
  show(facts: ProgressFacts, nowMs: number): void;
  /** Removes the line when the work has ended. */
  end(): void;
}

/** The line about one piece of work; without parts no line is due. */
interface ShownLine {
  readonly share: number | null;
  readonly name: string;
  readonly parts: ProgressParts | null;
}

/** The line about the work, and the line about a backfill that runs at the same time. */
type WorkLines = readonly [work: ShownLine, beside?: ShownLine];

const REDRAW_MS = 200;
const LOG_MS = MINUTE_MS;

/**
 * Opens a progress report.
 *
 * @param target a terminal's line, or a function that logs one.
 */
export function createProgress(target: TerminalLine | ((message: string) => void)): ProgressDisplay {
  const isLog = typeof target === 'function';
  const work = createProgressLine(isLog);
  let backfill = createProgressLine(isLog);
  const updateLines = (facts: ProgressFacts, nowMs: number): WorkLines => {
    const own = { share: facts.coveredShare, name: 'progress', parts: work(facts, nowMs) };
    const beside = facts.backfill ?? null;
    if (beside === null) {
      backfill = createProgressLine(isLog);
      return [own];
    }
    return [own, { share: beside.coveredShare, name: 'backfill', parts: backfill(beside, nowMs) }];
  };
  return {
    show: (facts, nowMs) => showLines(target, updateLines(facts, nowMs)),
    end: () => {
      if (!isLog) target.clear();
    },
  };
}

/**
 * Writes the lines that are due. A log gets all of them; a terminal has one line, which shows the second once the first
 * work is done.
 */
function showLines(target: TerminalLine | ((message: string) => void), [work, beside]: WorkLines): void {
  if (typeof target === 'function') {
    for (const line of [work, beside]) if (line?.parts) target(`${line.name}: ${textOf(line.parts)}`);
  } else if (beside !== undefined && work.share === 1) drawLine(target, beside, `${beside.name}: `);
  else drawLine(target, work, '');
}

/** Draws a line. On a narrow terminal the bar and the words become shorter before the rate and the ETA are dropped. */
function drawLine(target: TerminalLine, { share, parts }: ShownLine, name: string): void {
  if (parts === null) return;
  const [long, short] = [parts.head, parts.shortHead].map((head) => `${name}${head.join(', ')}`);
  const heads = [
    `${progressBar(share)} ${long}`,
    `${progressBar(share)} ${short}`,
    `${progressBar(share, 8)} ${short}`,
  ];
  target.draw([...heads, `${short}`], parts.rest);
}

/**
 * The parts about one piece of work, when they are due: on a terminal at once and often, in a log after each minute in
 * which the work was never done. A daemon in sync has points to deliver from time to time, which is no progress to log.
 *
 * @returns a function to call often; its result is `null` while nothing is due.
 */
function createProgressLine(isLog: boolean): (facts: ProgressFacts, nowMs: number) => ProgressParts | null {
  const estimate = createEstimate();
  const rate = createRate(20 * SECOND_MS);
  const everyMs = isLog ? LOG_MS : REDRAW_MS;
  let dueMs: number | null = isLog ? null : Number.NEGATIVE_INFINITY;
  return (given, nowMs) => {
    const remainingMs = estimate(given.coveredShare, nowMs);
    const requestsPerMinute = given.requestsPerMinute ?? rate(given.requests, nowMs);
    const facts = { ...given, requestsPerMinute };
    if (dueMs === null || (isLog && isDone(facts))) dueMs = nowMs + everyMs;
    if (nowMs < dueMs) return null;
    dueMs = nowMs + everyMs;
    return progressParts(facts, facts.eta === undefined ? remainingMs : null);
  };
}

/** The progress of work with its own text. */
export interface WorkFacts {
  /** 0 to 1; `null` while it is not known. */
  readonly share: number | null;
  /** The text, with the most important part first, because a narrow terminal cuts the end. */
  readonly text: string;
  /** The count since the beginning, and the text for a rate, in counts per second. */
  readonly rate?: { readonly done: number; readonly text: (perSecond: number) => string };
}

/** How often the share is sampled for a log, so that its line after a minute has an estimate. */
const LOG_SAMPLE_MS = 5000;

/**
 * Opens the progress of work with a share and a text: a bar on a terminal, a line per minute in a log.
 *
 * @param target a terminal's line, or a function that logs one.
 * @returns a function to call often. It calls its argument for the facts when a line is due.
 */
export function createWorkProgress(
  target: TerminalLine | ((message: string) => void),
): (progress: () => WorkFacts, nowMs: number) => void {
  const estimate = createEstimate();
  const rateOf = createRate(2 * SECOND_MS);
  const everyMs = typeof target === 'function' ? LOG_SAMPLE_MS : REDRAW_MS;
  let checkMs = Number.NEGATIVE_INFINITY;
  let logMs: number | null = null;
  return (progress, nowMs) => {
    logMs ??= nowMs + LOG_MS;
    if (nowMs < checkMs) return;
    checkMs = nowMs + everyMs;
    const facts = progress();
    const { share, rate } = facts;
    const perMinute = rate === undefined ? null : rateOf(rate.done, nowMs);
    const line = workText(facts, estimate(share, nowMs), perMinute);
    if (typeof target !== 'function') target.draw(share === null ? line : `${progressBar(share)} ${line}`);
    else if (nowMs >= logMs) {
      logMs = nowMs + LOG_MS;
      target(`progress: ${line}`);
    }
  };
}

/** The progress in words: the share, the remaining time, the rate, and the text. */
function workText({ share, text, rate }: WorkFacts, remainingMs: number | null, perMinute: number | null): string {
  const eta = remainingMs === null || share === 1 ? [] : [`ETA ${duration(remainingMs / SECOND_MS, 'up')}`];
  const speed = rate === undefined || perMinute === null ? [] : [rate.text((perMinute * SECOND_MS) / MINUTE_MS)];
  return [...(share === null ? [] : [percent(share, 0)]), ...eta, ...speed, text].join(', ');
}

function isDone({ devicesDone, devicesTotal, pointsPending }: ProgressFacts): boolean {
  return devicesTotal > 0 && devicesDone === devicesTotal && pointsPending === 0;
}

/** The period that the estimate uses: long enough to even out pauses, short enough to follow changes. */
const ESTIMATE_OVER_MS = MINUTE_MS;

interface Sample {
  readonly atMs: number;
  readonly share: number;
}

const GROWTH = 0.005;

/** Returns a function from the share to the remaining time, in ms; `null` while unknown. */
function createEstimate(): (share: number | null, nowMs: number) => number | null {
  let samples: Sample[] = [];
  return (share, nowMs) => {
    if (share === null) return null;
    const newest = samples.at(-1);
    // Work that has grown (a new device) starts a new estimate. Time that passes makes it grow a little all the time.
    if (newest !== undefined && share < newest.share - GROWTH) samples = [];
    if (newest === undefined || nowMs - newest.atMs >= SECOND_MS) samples.push({ atMs: nowMs, share });
    samples = samples.filter(({ atMs }, index) => nowMs - atMs <= ESTIMATE_OVER_MS || index === samples.length - 1);
    const oldest = samples[0];
    if (oldest === undefined || share <= oldest.share || nowMs - oldest.atMs < 2 * SECOND_MS) return null;
    return ((1 - share) * (nowMs - oldest.atMs)) / (share - oldest.share);
  };
}

/**
 * Returns a function from a count to its recent growth per minute; `null` while unknown.
 *
 * @param fromMs the shortest time from which a rate is computed
 */
function createRate(fromMs: number): (done: number, nowMs: number) => number | null {
  let samples: { readonly atMs: number; readonly done: number }[] = [];
  return (done, nowMs) => {
    const newest = samples.at(-1);
    if (newest !== undefined && done < newest.done) samples = [];
    if (newest === undefined || nowMs - newest.atMs >= SECOND_MS) samples.push({ atMs: nowMs, done });
    samples = samples.filter(({ atMs }) => nowMs - atMs <= ESTIMATE_OVER_MS);
    const oldest = samples[0];
    if (oldest === undefined || nowMs - oldest.atMs < fromMs) return null;
    return ((done - oldest.done) * MINUTE_MS) / (nowMs - oldest.atMs);
  };
}

const BAR_WIDTH = 16;

function progressBar(share: number | null, width = BAR_WIDTH): string {
  const full = Math.floor((share ?? 0) * width);
  return `[${'#'.repeat(full)}${'-'.repeat(width - full)}]`;
}

/** A progress line in its parts, the most important first. */
interface ProgressParts {
  /** The covered time, the remaining work, and its rate. */
  readonly head: readonly string[];
  /** The head in a shorter form, for a narrow terminal. */
  readonly shortHead: readonly string[];
  /** The results so far, shown if they fit. */
  readonly rest: readonly string[];
}

function textOf({ head, rest }: ProgressParts): string {
  return [...head, ...rest].join(', ');
}

/** Divides the progress into the parts of a line. */
export function progressParts(facts: ProgressFacts, remainingMs: number | null): ProgressParts {
  const { coveredShare, devicesDone, devicesTotal, pointsDelivered, pointsPending, unread = null } = facts;
  // Newer readings are unknown while telemetry is not read, so nothing is called complete.
  const isHidden = coveredShare === 1 && unread !== null;
  if (coveredShare === 1 && devicesDone === devicesTotal && pointsPending > 0 && !isHidden) return deliveryParts(facts);
  const covered = coveredShare === null || isHidden ? [] : [`${percent(coveredShare, 0)} covered`];
  const { long, short } = remainingWork(facts, remainingMs);
  const head = [...covered, ...long];
  const rest = [
    counted(facts.readings, 'new reading'),
    ...(pointsDelivered > 0 ? [`${counted(pointsDelivered, 'point')} delivered`] : []),
    ...(pointsPending > 0
      ? [pointsDelivered > 0 ? `${grouped(pointsPending)} waiting` : `${counted(pointsPending, 'point')} waiting`]
      : []),
    ...(isHidden ? [] : [`${devicesDone}/${devicesTotal} devices complete`]),
    counted(facts.requests, 'request'),
  ];
  if (head.length > 0) return { head, shortHead: [...covered, ...short], rest };
  return { head: rest.slice(0, 1), shortHead: rest.slice(0, 1), rest: rest.slice(1) };
}

/** The progress where everything is read, and points wait for the database alone. */
function deliveryParts({ devicesTotal, readings, pointsDelivered, pointsPending }: ProgressFacts): ProgressParts {
  const head = [`${counted(pointsPending, 'point')} waiting for the database`];
  const delivered = pointsDelivered > 0 ? ` and ${counted(pointsDelivered, 'delivered point')}` : '';
  const sums = `${counted(readings, 'new reading')}${delivered} so far`;
  return { head, shortHead: head, rest: [`all ${devicesTotal} devices complete`, sums] };
}

/** The remaining work in long and in short words. */
interface RemainingWork {
  readonly long: readonly string[];
  readonly short: readonly string[];
}

/** The cause of a wait, or the expected end of the work and its rate. A rate from before the wait would mislead. */
function remainingWork(facts: ProgressFacts, remainingMs: number | null): RemainingWork {
  const { wait, eta, requestsPerMinute } = facts;
  const cause = facts.unread ?? facts.waitsFor ?? null;
  if (cause !== null) return { long: [cause], short: [cause] };
  if (wait !== null) return waitTexts(wait);
  const rate = requestsPerMinute == null ? '' : rateText(requestsPerMinute);
  const [long, short] = rate === '' ? [[], []] : [[`${rate} requests a minute`], [`${rate} req/min`]];
  const leftMs = eta?.ms ?? remainingMs;
  if (facts.coveredShare === 1 || leftMs === null) return { long, short };
  const left = `ETA ${duration(leftMs / SECOND_MS, 'up')}`;
  const basis = eta?.basis ?? '';
  if (eta?.hasRate === true) return { long: [left, basis], short: [left, ...short] };
  return { long: [`${left}${basis === '' ? '' : ` (${basis})`}`, ...long], short: [left, ...short] };
}

function waitTexts({ ms, ofAll }: NonNullable<ProgressFacts['wait']>): RemainingWork {
  const inTime = duration(ms / SECOND_MS, 'up');
  return ofAll
    ? { long: [`quota used up, requests resume in ${inTime}`], short: [`quota used up for ${inTime}`] }
    : {
        long: [`history and backfill wait ${inTime} or more for their budget`],
        short: [`history waits ${inTime} for budget`],
      };
}

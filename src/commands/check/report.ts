/**
 * The lines of `--check` and the result that they add up to. Pure.
 *
 * - `ok`: correct, or a fact worth knowing.
 * - `warn`: it works, but an operator should look into it.
 * - `fail`: it does not work, or not as promised. The remedy is the next step.
 * - `skip`: it was not checked; the message gives the reason.
 */

import type { ExitCode, UserError } from '../../core/faults.ts';
import { isRecord } from '../../core/json.ts';
import { capitalized } from '../../core/text.ts';

const AREAS = ['configuration', 'state', 'api', 'destination', 'page', 'dashboards'] as const;

/** The subject of a line, in the order of the output. */
type CheckArea = (typeof AREAS)[number];

const STATUSES = ['ok', 'skip', 'warn', 'fail'] as const;

export type CheckStatus = (typeof STATUSES)[number];

/** The exit code of a failure: 1 in general, 77 for the key, 78 for the configuration. */
type CheckExit = Extract<ExitCode, 1 | 77 | 78>;

const EXITS: readonly number[] = [1, 77, 78] satisfies CheckExit[];

/** One finding of the check, as a line of the text and an object of the JSON. */
export interface CheckLine {
  readonly area: CheckArea;
  /** The destination in the configuration; `null` in other areas. */
  readonly destination: string | null;
  /** The name of the check, in a word or two: the same in every run. */
  readonly name: string;
  readonly status: CheckStatus;
  readonly message: string;
  /** The next step; `null` if there is none. */
  readonly remedy: string | null;
  /** The exit code that it causes; 0 unless it failed. */
  readonly exit_code: CheckExit | 0;
  /** Figures behind the message, by name, for programs. */
  readonly facts?: Readonly<Record<string, CheckFact>>;
}

type CheckFact = string | number | boolean | null;

/** The answer of `--check --json`. */
export interface CheckReport {
  readonly version: string;
  readonly ok: boolean;
  readonly exit_code: CheckExit | 0;
  /** Requests that the check has used, whichever process has sent them. */
  readonly requests: number;
  readonly checks: readonly CheckLine[];
}

/** The findings about the API, and the requests that they have cost. */
export interface ApiFindings {
  readonly requests: number;
  readonly checks: readonly CheckLine[];
}

/** The most requests that a check may use, whatever the answers are. */
export const CHECK_REQUESTS = 6;

/** Collects the lines of one area: each call adds one and returns it. */
export interface CheckNotes {
  readonly lines: CheckLine[];
  ok(name: string, message: string, facts?: CheckLine['facts']): CheckLine;
  warn(name: string, finding: Finding): CheckLine;
  fail(name: string, finding: Finding & { readonly exitCode?: CheckExit }): CheckLine;
  skip(name: string, message: string, facts?: CheckLine['facts']): CheckLine;
}

interface Finding {
  readonly message: string;
  readonly remedy: string;
  readonly facts?: CheckLine['facts'];
}

/**
 * Begins the lines of an area.
 *
 * @param destination the destination that they concern.
 */
export function createNotes(area: CheckArea, destination: string | null = null): CheckNotes {
  const lines: CheckLine[] = [];
  const add = (line: Omit<CheckLine, 'area' | 'destination' | 'facts'>, facts: CheckLine['facts']): CheckLine => {
    const added = { area, destination, ...line, ...(facts === undefined ? {} : { facts }) };
    lines.push(added);
    return added;
  };
  return {
    lines,
    ok: (name, message, facts) => add({ name, status: 'ok', message, remedy: null, exit_code: 0 }, facts),
    warn: (name, { message, remedy, facts }) => add({ name, status: 'warn', message, remedy, exit_code: 0 }, facts),
    fail: (name, { message, remedy, facts, exitCode = 1 }) =>
      add({ name, status: 'fail', message, remedy, exit_code: exitCode }, facts),
    skip: (name, message, facts) => add({ name, status: 'skip', message, remedy: null, exit_code: 0 }, facts),
  };
}

/** The worst first: nothing starts with a wrong configuration, and nothing is read without a key. */
const WORST_FIRST = [78, 77, 1] as const;

/** The checks, in addition to the configuration, whose failure makes a daemon exit at its start. */
const NEEDED_TO_START: Partial<Readonly<Record<CheckArea, readonly string[]>>> = {
  state: ['directory', 'file', 'in use'],
  api: ['workspace'],
  page: ['listen'],
};

function endsStart({ area, name, exit_code: exitCode }: CheckLine): boolean {
  return exitCode === 78 || NEEDED_TO_START[area]?.includes(name) === true;
}

/** The exit code for these lines. */
export function checkExit(checks: readonly CheckLine[]): CheckExit | 0 {
  return WORST_FIRST.find((code) => checks.some((line) => line.exit_code === code)) ?? 0;
}

/**
 * Makes the report of these lines.
 *
 * @param isForStart whether only failures that make a daemon exit at its start decide the exit code
 */
export function checkReport(
  version: string,
  requests: number,
  checks: readonly CheckLine[],
  isForStart = false,
): CheckReport {
  const deciding = isForStart ? checks.filter(endsStart) : checks;
  const exitCode = checkExit(deciding);
  const ok = checks.every((line) => line.exit_code === 0);
  return { version, ok, exit_code: exitCode, requests, checks: inOrder(checks) };
}

/** The lines by area and destination, each group in its original order. */
function inOrder(checks: readonly CheckLine[]): CheckLine[] {
  const places = [...new Set(checks.map(({ destination }) => destination))];
  const rank = ({ area, destination }: CheckLine): number =>
    AREAS.indexOf(area) * (places.length + 1) + places.indexOf(destination);
  return [...checks].sort((a, b) => rank(a) - rank(b));
}

/**
 * Observations about undocumented behaviour and other details for developers: shown with `--verbose`, or if they are a
 * problem.
 */
const INTERNAL: ReadonlySet<string> = new Set([
  'bounds',
  'wait header',
  'challenge header',
  'rate-limit headers',
  'page size',
  'name',
  'connection',
  'integrity',
]);

/** Whether a line is shown without `--verbose`. */
export function isShown({ name, status }: CheckLine): boolean {
  return status === 'warn' || status === 'fail' || !INTERNAL.has(name);
}

/** Adds a line about a request that was not sent. */
export function noteNotTried(notes: CheckNotes, name: string, why: string): CheckLine {
  return notes.skip(name, `not tried: ${why}`, { not_tried: why });
}

function whyNotTried({ facts }: CheckLine): string | null {
  const why = facts?.['not_tried'];
  return typeof why === 'string' ? why : null;
}

/** The line about all requests together. */
export const REQUESTS = 'requests';

/**
 * The lines to show without `--verbose`. Requests that were not sent for one reason share one line; they have none if
 * another line about the requests has the reason.
 */
export function shownLines(checks: readonly CheckLine[]): CheckLine[] {
  const left = checks.filter((check) => whyNotTried(check) !== null);
  const [first] = left;
  if (first === undefined || left.length === 1) return checks.filter(isShown);
  const hasReason = checks.some(({ area, name }) => area === 'api' && name === REQUESTS);
  const names = left.map(({ name }) => name).join(', ');
  const line = { ...first, name: REQUESTS, message: `not tried: ${names} (${whyNotTried(first)})` };
  return checks.flatMap((check) => {
    if (whyNotTried(check) === null) return isShown(check) ? [check] : [];
    return check === first && !hasReason ? [line] : [];
  });
}

/**
 * Reads the findings of a daemon, possibly of another version.
 *
 * @returns `null` if they cannot be understood.
 */
export function readApiFindings(value: unknown): ApiFindings | null {
  if (!isRecord(value)) return null;
  const { requests, checks } = value;
  if (typeof requests !== 'number' || !Array.isArray(checks) || !checks.every(isLine)) return null;
  return { requests, checks };
}

function isLine(value: unknown): value is CheckLine {
  if (!isRecord(value)) return false;
  const { area, destination, name, status, message, remedy, exit_code: exitCode } = value;
  return (
    AREAS.some((known) => known === area) &&
    STATUSES.some((known) => known === status) &&
    typeof name === 'string' &&
    typeof message === 'string' &&
    (destination === null || typeof destination === 'string') &&
    (remedy === null || typeof remedy === 'string') &&
    (exitCode === 0 || EXITS.some((known) => known === exitCode))
  );
}

/** Converts an error to the message and the remedy of a check. */
export function errorText({ what, remedy }: UserError): { readonly message: string; readonly remedy: string } {
  return { message: what, remedy: capitalized(remedy ?? 'See docs/troubleshooting.md.') };
}

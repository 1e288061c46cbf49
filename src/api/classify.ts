/**
 * Decides what an answer means: its body, or a fault of one kind (API document, "Errors"). It also reads the quota and
 * the time from the headers (API document, "Limits").
 *
 * Promises: status and code decide and never the words of a message, with the one exception that the document makes (a
 * message that begins with `cursor`). The server's message is shortened, made plain and freed of the key before it
 * becomes part of a fault. Any bytes lead to a body or a fault. The document does not name the header of a requested
 * wait, so it is found by its name's pattern; an unreadable header counts as missing.
 */
import { ApiFault, type ApiFaultFacts, type ApiFaultKind, type ApiRemedy, FAULT_TEXTS } from '../core/faults.ts';
import { isRecord, member } from '../core/json.ts';
import type { HttpAnswer } from '../core/ports.ts';
import { createScrub, Secret } from '../core/secret.ts';
import { grouped, plainText } from '../core/text.ts';
import {
  DAY_MS,
  type EpochMs,
  HOUR_MS,
  MAX_MS,
  MINUTE_MS,
  parseHttpDate,
  parseHttpWait,
  SECOND_MS,
} from '../core/time.ts';

/** The facts about the request that its answer depends on. */
export interface RequestContext {
  /** `GET /devices/x/telemetry`: for faults, without secrets. */
  readonly request: string;
  readonly hasCursor: boolean;
  /** The server's time, for waits that are dates. */
  readonly nowMs: EpochMs;
  /** The key, which must not appear in any message even if the server repeats it. */
  readonly secret: string;
}

/** The body of an answer (unchecked JSON), or the fault that the answer means. */
export type Classified =
  | { readonly kind: 'ok'; readonly body: unknown }
  | { readonly kind: 'fault'; readonly fault: ApiFault };

/** The usable members of an error object. */
interface ErrorText {
  readonly code: string | null;
  readonly message: string | null;
  readonly scope: string | null;
  readonly maxDays: number | null;
}

/** Decides what an answer means. */
export function classifyAnswer(answer: HttpAnswer, context: RequestContext): Classified {
  if (isHtml(answer)) {
    return fault('server-fault', answer, context, { ...IS_PAGE, error: null });
  }
  const hasTooMany = countValues(answer.body) > MAX_VALUES;
  if (hasTooMany && answer.status === 200) {
    const message = `the response has more than ${grouped(MAX_VALUES)} values`;
    return { kind: 'fault', fault: malformed(context.request, message, { isTooLarge: true }) };
  }
  // An error object has a few members. A larger body is no error object.
  const body = hasTooMany ? undefined : parseBody(answer.body);
  if (answer.status === 200) {
    if (body !== undefined) return { kind: 'ok', body };
    return { kind: 'fault', fault: malformed(context.request, 'the response is not JSON') };
  }
  const error = readError(body, context.secret);
  const kind = faultKind(answer.status, error, context.hasCursor);
  const isRedirect = answer.status >= 300 && answer.status < 400;
  const meaning = isRedirect ? IS_REDIRECT : meaningOf(kind, context, error);
  return fault(kind, answer, context, { ...meaning, error });
}

/** The meaning of an answer, and what to do about it. */
interface Meaning {
  readonly what: string;
  readonly remedy?: ApiRemedy;
}

const IS_PAGE: Meaning = {
  what: 'the response is an HTML page, not the API',
  remedy: (api) => `Check that ${api.url} is right and that no proxy or login page answers`,
};
const IS_REDIRECT: Meaning = { what: 'the response is a redirect', remedy: (api) => `Check ${api.url}` };
const IS_NO_ERROR: Meaning = {
  what: 'the response does not look like one of the API',
  remedy: (api) => `Check that ${api.url} is right and that no proxy answers`,
};
const NO_ENDPOINT: Meaning = { what: 'the server has no such endpoint', remedy: (api) => `Check ${api.url}` };
const PLAN_REMEDY = "Check that the workspace's plan includes API access";

const STATUS_KINDS: ReadonlyMap<number, ApiFaultKind> = new Map([
  [401, 'unauthorized'],
  [403, 'no-api-access'],
  [404, 'not-found'],
  // Not from the API: gateways request a retry with this status.
  [408, 'server-fault'],
  [425, 'server-fault'],
  [429, 'throttled'],
]);

function faultKind(status: number, error: ErrorText, hasCursor: boolean): ApiFaultKind {
  if (status === 400) return kindOfBadRequest(error, hasCursor);
  if (status === 403 && error.code === 'insufficient_scope') return 'scope-missing';
  const known = STATUS_KINDS.get(status);
  if (known !== undefined) return known;
  return status > 400 && status < 500 ? 'invalid-request' : 'server-fault';
}

/**
 * Classifies a 400. If the request had a cursor, the cursor counts as the cause, unless the code is the documented one
 * and its message does not begin with `cursor`: the other parameters are those of the previous page, which was
 * answered, and the code for an expired cursor may be undocumented.
 */
function kindOfBadRequest({ code, message, maxDays }: ErrorText, hasCursor: boolean): ApiFaultKind {
  if (code === 'range_too_large' || maxDays !== null) return 'range-too-large';
  if (!hasCursor) return 'invalid-request';
  const isAboutCursor = message?.trimStart().toLowerCase().startsWith('cursor') ?? false;
  return code === 'invalid_request' && !isAboutCursor ? 'invalid-request' : 'bad-cursor';
}

/**
 * The meaning of a fault. A missing endpoint, or a rejection without the error object of the API, points to a wrong
 * address and not to the workspace.
 */
function meaningOf(kind: ApiFaultKind, { request }: RequestContext, { code, message }: ErrorText): Meaning {
  if (kind === 'invalid-request' && code === null && message === null) return IS_NO_ERROR;
  const isEndpoint = /^GET \/[a-z]+$/.test(request);
  if (kind === 'not-found' && isEndpoint) return NO_ENDPOINT;
  return { what: FAULT_TEXTS[kind].beforeMessage, remedy: kind === 'no-api-access' ? PLAN_REMEDY : null };
}

function fault(
  kind: ApiFaultKind,
  { status, headers }: HttpAnswer,
  context: RequestContext,
  { what, remedy, error }: Meaning & { readonly error: ErrorText | null },
): Classified {
  const waitMs = requestedWait(status, headers, context.nowMs);
  const facts: ApiFaultFacts = {
    request: context.request,
    status,
    ...(waitMs === null ? {} : { waitMs }),
    ...(error?.code == null ? {} : { code: error.code }),
    ...(error?.scope == null || kind !== 'scope-missing' ? {} : { scope: error.scope }),
    ...(error?.maxDays == null || kind !== 'range-too-large' ? {} : { maxDays: error.maxDays }),
  };
  const code = error?.code == null ? '' : ` ${error.code}`;
  const serverText = error?.message == null ? '' : `; message of the server: ${error.message}`;
  const whole = `${context.request}: ${what} (${status}${code})${serverText}`;
  return { kind: 'fault', fault: new ApiFault(kind, whole, facts, remedy) };
}

/** The fault for a body that is not as documented. */
export function malformed(request: string, message: string, more: Partial<ApiFaultFacts> = {}): ApiFault {
  return new ApiFault('malformed', `${request}: ${message}`, { request, status: 200, ...more });
}

/** The wait that an answer requests: a 429 always requests one, a fault of the service only if it has the header. */
function requestedWait(status: number, headers: HttpAnswer['headers'], nowMs: EpochMs): number | null {
  if (status === 429) return readThrottleWait(headers, nowMs);
  return status >= 500 ? readRetryAfter(headers, nowMs) : null;
}

function isHtml({ status, headers, body }: HttpAnswer): boolean {
  // A 429 counts from any sender, and the API itself sends no redirect.
  if (status === 429) return false;
  if (/^\s*(text\/html|application\/xhtml)/i.test(headers['content-type'] ?? '')) return true;
  return /^\s*<(!doctype|html|head|body)\b/i.test(new TextDecoder('latin1').decode(body.subarray(0, 100)));
}

/**
 * The most values of an answer: a page of 200 readings of 150 sensors. Each value takes memory, and time of the turn in
 * which the page is committed.
 */
const MAX_VALUES = 30_000;

const QUOTE = 34;
const BACKSLASH = 92;
/** The bytes after which a value begins. */
const COMMA = 44;
const BRACKET = 91;
const BRACE = 123;

/**
 * Counts the values of a JSON text without parsing it, as far as `MAX_VALUES`: each begins after a comma or an opening
 * bracket. Nothing is counted in a text that is too short to hold more.
 */
function countValues(body: Uint8Array): number {
  if (body.length < 2 * MAX_VALUES) return 0;
  let values = 1;
  for (let at = 0; at < body.length && values <= MAX_VALUES; at += 1) {
    const byte = body[at];
    if (byte === QUOTE) at = endOfText(body, at);
    else if (byte === COMMA || byte === BRACKET || byte === BRACE) values += 1;
  }
  return values;
}

/** Returns the position of the quote that ends the text beginning at `from`. */
function endOfText(body: Uint8Array, from: number): number {
  let at = from + 1;
  while (at < body.length && body[at] !== QUOTE) at += body[at] === BACKSLASH ? 2 : 1;
  return at;
}

/**
 * Parses the JSON of a body; `undefined` if it is not JSON. UTF-8 is read strictly, because replacement characters
 * could make two names equal.
 */
function parseBody(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return undefined;
  }
}

function readError(body: unknown, secret: string): ErrorText {
  const error = isRecord(body) ? member(body, 'error') : undefined;
  const part = (name: string): string | null => {
    const value = isRecord(error) ? member(error, name) : undefined;
    return typeof value === 'string' && value !== '' ? plainText(hideKey(value, secret), 200) : null;
  };
  const maxDays = isRecord(error) ? member(error, 'max_days') : undefined;
  return {
    code: part('code'),
    message: part('message'),
    scope: part('required_scope'),
    maxDays: typeof maxDays === 'number' && Number.isFinite(maxDays) && maxDays > 0 ? maxDays : null,
  };
}

/** Removes the key in each form, because the state stores parts of the answer. */
function hideKey(text: string, secret: string): string {
  return secret === '' ? text : createScrub([new Secret(secret)], { isAnswer: true })(text);
}

type Headers = HttpAnswer['headers'];

/** The wait after a 429 that names no time. */
const DEFAULT_WAIT_MS = MINUTE_MS;
const MIN_WAIT_MS = SECOND_MS;
/** A day's quota returns within a day; the extra hour is for clocks and rounding. */
const MAX_WAIT_MS = 25 * HOUR_MS;

const EPOCH_SECONDS = /^\d{10}$/;

/** The `Date` of an answer; `null` if it is missing or unreadable, or a time that cannot be stored (2262 and later). */
export function readDate(headers: Headers): EpochMs | null {
  const dateMs = parseHttpDate(headers['date']);
  return dateMs !== null && dateMs >= 0 && dateMs < MAX_MS ? dateMs : null;
}

/** `X-RateLimit-Limit` and `-Remaining` of one of the windows; `null` if missing. */
export function readRateLimit(headers: Headers): { limit: number | null; remaining: number | null } {
  return { limit: readCount(headers['x-ratelimit-limit']), remaining: readCount(headers['x-ratelimit-remaining']) };
}

function readCount(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,12}$/.test(text.trim()) ? Number(text) : null;
}

/**
 * The wait in `Retry-After`, in milliseconds, from 1 s to 25 h; `null` if it is missing or unreadable.
 *
 * @param nowMs the server's time, for a wait that is a date
 */
function readRetryAfter(headers: Headers, nowMs: EpochMs): number | null {
  const text = headers['retry-after'];
  return text === undefined ? null : readWait(text.trim(), nowMs);
}

/**
 * The wait that a 429 requests: `Retry-After` first, then the longest wait in a header whose name contains "retry" or
 * "reset", otherwise a minute.
 *
 * @param nowMs the server's time, for a wait that is a date or seconds since 1970
 */
function readThrottleWait(headers: Headers, nowMs: EpochMs): number {
  const context = readRetryAfter(headers, nowMs);
  if (context !== null) return context;
  const waits = Object.entries(headers)
    .filter(([name]) => WAIT_HEADER.test(name))
    .flatMap(([, text]) => readWait(text.trim(), nowMs) ?? []);
  return waits.length === 0 ? DEFAULT_WAIT_MS : Math.max(...waits);
}

/** The name of a header that may hold a wait. */
export const WAIT_HEADER = /retry|reset/i;

function readWait(text: string, nowMs: EpochMs): number | null {
  const waitMs = parseHttpWait(text);
  if (waitMs !== null) return clampWait(Math.ceil(waitMs / SECOND_MS) * SECOND_MS);
  const untilMs = EPOCH_SECONDS.test(text) ? Number(text) * SECOND_MS : parseHttpDate(text);
  // A time counts only if it is near the server's time; any other number means something else.
  if (untilMs === null || Math.abs(untilMs - nowMs) > 2 * DAY_MS) return null;
  return clampWait(untilMs - nowMs);
}

function clampWait(waitMs: number): number {
  return Math.min(MAX_WAIT_MS, Math.max(MIN_WAIT_MS, waitMs));
}

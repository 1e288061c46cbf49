/**
 * Decides what a database's answer to a write means: a total function from status, headers and body to a `WriteAnswer`.
 *
 * Only 204 counts as written. Lines count as rejected only if an InfluxDB itself names the data as the cause. Any
 * answer that the function does not know keeps the lines. Servers differ (InfluxDB 1.8, 2, 3, the clouds,
 * VictoriaMetrics, proxies in between); the patterns below cover all their known answers.
 */
import { type ConnectionProblem, connectionProblem } from '../core/faults.ts';
import { isRecord, parseJson } from '../core/json.ts';
import type { DestinationKind } from '../core/lines/dialect.ts';
import type { WriteAnswer } from '../core/ports.ts';
import { createScrub, Secret } from '../core/secret.ts';
import { plainText, serverAnswerText, withoutIds } from '../core/text.ts';
import { HOUR_MS, parseHttpDate, parseHttpWait } from '../core/time.ts';

/** An HTTP answer as far as it was read: the body may be truncated. */
export interface ServerAnswer {
  readonly status: number;
  /** The headers, by lower-case name. */
  readonly headers: {
    readonly [name: string]: string | readonly string[] | undefined;
    readonly date?: string | undefined;
  };
  readonly body: string;
}

/** Removes secrets from a text: the page of a proxy may contain the request. */
export type Conceal = (text: string) => string;

/** The longest wait that is accepted from a server, because it may be ready sooner than it expects. */
const MAX_WAIT_MS = HOUR_MS;

/**
 * Words with which an InfluxDB reports that lines are at fault (1.8: `services/httpd`, 2: `http/points`, 3:
 * `write_buffer`).
 */
const QUOTES_DATA =
  /unable to parse|partial write|line protocol|field type conflict|column type|points? rejected|dropped \d+ points|retention policy|invalid field name|invalid tag key|max key length|max-series-per-database|max-values-per-tag|exceed number of columns/i;

/**
 * Words with which an InfluxDB reports, with the same status, that the server is at fault and would reject any line.
 */
const DESCRIBES_SERVER =
  /no space left|disk quota|read-only file ?system|input\/output error|i\/o error|too many open files|cannot allocate|permission denied|object store|engine is closed|shard (?:is )?(?:closed|disabled)|cache-max-memory-size|timeout|timed out|unavailable|shutting down|\b(?:wal|persister|catalog|compactor|query engine)\b/i;

const NAMES_RETENTION = /(?:beyond|outside|older than)[^.]{0,40}retention|retention (?:policy|period) dropped/i;

/** Points too far in the future, which newer versions report with the same words. */
const NAMES_FUTURE = /retention policy upper bound/i;

/** Words that can only mean a field or column of another type. InfluxDB 3 has no other words for it at this path. */
const NAMES_CONFLICT = /field type conflict|invalid column type|column type|parsing for line protocol failed/i;

/** The complete answer of InfluxDB 3 about a rejected line, at the path of version 2. */
const NAMES_NO_REASON = /parsing for line protocol failed/i;

/** The number of dropped points: `dropped=3` (1.8), `dropped 3 points outside retention policy` (2). */
const DROPPED = /dropped=(\d{1,9})\b|dropped (\d{1,9}) points outside/;

/**
 * The beginning of quoted lines and series. The rest is data and not the server's words: a device may be called "wal".
 */
const QUOTED_DATA = /(?:'| - oldest point )[\s\S]*$/;

/** The names of a database's settings in messages: by default the keys of its section. */
export type SettingNames = Readonly<Record<(typeof SETTINGS)[number], string>> & {
  /** The next step after a correction of the token; by default, the message says that no restart is needed. */
  readonly next?: string;
};
const SETTINGS = ['url', 'kind', 'org', 'bucket', 'token', 'token_file', 'ca_file', 'timeout'] as const;

/** The names of the settings: the keys of the section of a destination. */
export function settingNames(destination: string): SettingNames {
  const keys = SETTINGS.map((key) => [key, `${sectionOf(destination)}.${key}`]);
  return Object.fromEntries(keys) as Record<(typeof SETTINGS)[number], string>;
}

/** A text with the names of settings. */
type Hint = (influx: SettingNames) => string;

const URL_HINT: Hint = (influx) =>
  `${influx.url}: the server there is not a database (a login page, a proxy or another program?); ${influx.url} must be the base URL of the database, such as http://host:8086`;

const KIND_HINT: Hint = (influx) =>
  `${influx.kind}: the server is an InfluxDB (1.8 or later is needed), not a VictoriaMetrics; set ${influx.kind} to influxdb (or remove it) and set ${influx.bucket}`;

const RETRY_STATUS = new Set([408, 425, 429]);

/**
 * Reads an answer to `POST /api/v2/write`.
 *
 * @param conceal removes the token from the quoted parts of the answer
 * @param kind the dialect in which the lines were written
 * @param settings the names of the destination's settings, for the hints
 */
export function readAnswer(
  answer: ServerAnswer,
  conceal: Conceal,
  kind: DestinationKind = 'influxdb',
  settings = settingNames('influx'),
): WriteAnswer {
  const { status } = answer;
  const server = readBody(answer.body);
  const shown = plainText(conceal(server.text), 180);
  const message = serverAnswerText(status, shown);
  if (status === 204) return { kind: 'accepted' };
  const tooOld = readTooOld(answer);
  if (tooOld !== null) return tooOld;
  if (kind === 'victoriametrics' && isInfluxDb(answer, server))
    return { kind: 'blocked', message, hint: KIND_HINT(settings) };
  // Older clouds of InfluxDB answered 201 if they accepted only some of the lines.
  if (status === 400 || status === 422 || (status === 201 && server.influxdb))
    return readRejection(status, server, { message, shown, settings });
  if (status >= 200 && status < 400) return { kind: 'blocked', message, hint: URL_HINT(settings) };
  if (status === 413) return { kind: 'too-large', message };
  if (RETRY_STATUS.has(status) || status < 200 || status >= 500) {
    return { kind: 'later', message, waitMs: readWaitMs(answer.headers), status };
  }
  return { kind: 'blocked', message, hint: hintFor(status, server, kind)(settings) };
}

/**
 * Whether the answer comes from an InfluxDB although VictoriaMetrics is configured: every InfluxDB since 1.4 names its
 * build.
 */
function isInfluxDb({ status, headers }: ServerAnswer, message: ServerMessage): boolean {
  if (![400, 404, 422].includes(status)) return false;
  return headers['x-influxdb-build'] !== undefined || (message.influxdb && message.text === 'database is required');
}

/**
 * Reads a 400 or 422. It may mean lines at fault, a server at fault, or a proxy that did not understand the request.
 */
function readRejection(
  status: number,
  server: ServerMessage,
  { message, shown, settings }: { readonly message: string; readonly shown: string; readonly settings: SettingNames },
): WriteAnswer {
  const ownMessage = server.text.replace(QUOTED_DATA, '').replaceAll(/"[^"]*"/g, '');
  if (server.influxdb && QUOTES_DATA.test(ownMessage) && !DESCRIBES_SERVER.test(ownMessage)) {
    const retention = NAMES_RETENTION.test(ownMessage) && !NAMES_FUTURE.test(server.text);
    const conflict = NAMES_CONFLICT.test(ownMessage);
    const dropped = retention || conflict ? DROPPED.exec(ownMessage) : null;
    const count = dropped === null ? {} : { dropped: Number(dropped[1] ?? dropped[2]) };
    const isUnexplained = NAMES_NO_REASON.test(shown);
    return {
      kind: 'rejected',
      message,
      retention,
      ...count,
      ...(conflict && { conflict }),
      ...(isUnexplained && { isUnexplained }),
    };
  }
  if (status === 201) return { kind: 'blocked', message, hint: URL_HINT(settings) };
  const hint = requestHint(server, ownMessage);
  if (hint !== undefined) return { kind: 'blocked', message, hint: hint(settings) };
  return { kind: 'later', message, waitMs: null, status, unknown: { status, message: withoutIds(shown) } };
}

const ORG_HINT: Hint = (influx) =>
  `${influx.org}: InfluxDB 2 needs the name of the organization that owns the bucket; set or correct ${influx.org}`;

/** An InfluxDB 3 has reached its limit of databases. */
export const FULL_HINT: Hint = (influx) =>
  `${influx.bucket}: this InfluxDB has no database of this name and has reached its limit of databases; correct ${influx.bucket}, or delete one there that nobody needs any more`;

/** The advice for a name that the server does not allow. */
export const NAME_HINT: Hint = (influx) =>
  `${influx.bucket}: this InfluxDB does not allow this name; correct ${influx.bucket}`;

/** Messages of an InfluxDB about the complete request. */
const REQUEST_HINTS: readonly (readonly [RegExp, Hint])[] = [
  [/provide either orgid or org\b|organization (?:name|id)\b/i, ORG_HINT],
  [/exceed limit of \d+ databases/i, FULL_HINT],
  [/namespace name|database name .*invalid/i, NAME_HINT],
];

/** The words of VictoriaMetrics for a path that it does not have, or of a cluster for one without a tenant. */
const NO_PATH = /^(?:unsupported path requested|auth error: cannot parse accountID)\b/;

/** The advice for an address with a path that VictoriaMetrics does not have. */
const PATH_HINT: Hint = (influx) =>
  `${influx.url}: VictoriaMetrics has no such path; the address is http://host:8428, of a cluster http://vminsert:8480/insert/0/influx`;

/** The advice for a message about the complete request that only a change of the configuration can fix. */
function requestHint({ text, influxdb }: ServerMessage, ownMessage: string): Hint | undefined {
  if (!influxdb) return NO_PATH.test(text) ? PATH_HINT : undefined;
  return REQUEST_HINTS.find(([pattern]) => pattern.test(ownMessage))?.[1];
}

/**
 * Reads the answer of an InfluxDB that is too old: it has no path for this request, and names its version.
 *
 * @returns `null` for any other answer
 */
export function readTooOld({
  status,
  headers,
}: ServerAnswer): Extract<WriteAnswer, { readonly kind: 'blocked' }> | null {
  const version = /^v?(1\.[0-7]\.[\w.~-]{1,30})$/.exec(first(headers['x-influxdb-version']) ?? '')?.[1];
  if (status !== 404 || version === undefined) return null;
  const hint = 'Tidemark needs InfluxDB 1.8 or later: upgrade it';
  return { kind: 'blocked', message: serverAnswerText(status, `InfluxDB ${version} is too old`), hint };
}

function hintFor(status: number, message: ServerMessage, kind: DestinationKind): Hint {
  switch (status) {
    case 401:
      return (influx) =>
        `${influx.token}: missing, or not accepted (user:password for InfluxDB 1.8 and VictoriaMetrics${kind === 'victoriametrics' ? '' : `; see also ${influx.org}`}); if another server answers at this address, correct ${influx.url}. ${influx.next ?? `A new token in the file of ${influx.token_file} needs no restart`}`;
    case 403:
      return (influx) =>
        `${influx.token}: it has no write permission for ${influx.bucket}; give it that permission, or write another token into the file of ${influx.token_file}`;
    case 404:
      if (message.influxdb && /^organization\b/i.test(message.text)) return ORG_HINT;
      return message.influxdb
        ? (influx) =>
            `${influx.bucket}: no such bucket or database; create it, or correct ${influx.bucket} and ${influx.org}`
        : (influx) =>
            `${influx.url}: the server has no /api/v2/write; ${influx.url} must be the base URL of InfluxDB 1.8 or later, or of VictoriaMetrics`;
    default:
      return URL_HINT;
  }
}

/** The message in the body of a rejection. */
interface ServerMessage {
  readonly text: string;
  /** Whether the body has the shape of an InfluxDB error: `error`, or `code` and `message`. */
  readonly influxdb: boolean;
}

/** How VictoriaMetrics begins a message: with the request, whose port differs each time. */
const REQUEST = /^remoteAddr: "[^;]*; requestURI: \S*; /;

function readBody(body: string): ServerMessage {
  const text = body.trim();
  if (!text.startsWith('{')) return { text: withoutMarkup(text).replace(REQUEST, ''), influxdb: false };
  const json = parseJson(text);
  if (json !== null) return readError(json) ?? { text, influxdb: false };
  // A body that was too long to read completely: InfluxDB 1 quotes every line that it could not parse.
  const begun = /^\{\s*(?:"code"\s*:\s*"[^"]*"\s*,\s*)?"(?:error|message)"\s*:\s*"/.exec(text);
  return begun === null ? { text, influxdb: false } : { text: text.slice(begun[0].length), influxdb: true };
}

function readError(json: unknown): ServerMessage | null {
  const { error, code, message, data } = { ...(json as Readonly<Record<string, unknown>>) };
  if (typeof error === 'string') return { text: error + firstReason(data), influxdb: true };
  if (typeof code === 'string' && typeof message === 'string') return { text: message, influxdb: true };
  return null;
}

/** InfluxDB 3 lists the reasons next to the error: `data: [{error_message, line_number, original_line}]`. */
function firstReason(data: unknown): string {
  const first: unknown = Array.isArray(data) ? data[0] : data;
  const message = isRecord(first) ? first['error_message'] : null;
  return typeof message === 'string' ? `: ${message}` : '';
}

/** The title of a page, or its text, which shows a person which server answered. */
function withoutMarkup(text: string): string {
  const head = text.slice(0, 4096);
  if (!head.startsWith('<')) return head;
  return /<title[^>]{0,200}>([^<]{1,200})/i.exec(head)?.[1]?.trim() ?? head.replace(/<[^<>]*>/g, ' ').trim();
}

/**
 * Reads `Retry-After`: whole or decimal seconds, or a date. A date is compared with the `Date` of the same answer, so
 * that no two clocks are compared.
 *
 * @returns milliseconds, at most an hour; `null` if it is missing or unusable
 */
function readWaitMs(headers: ServerAnswer['headers']): number | null {
  const retryAfter = first(headers['retry-after']) ?? '';
  const [untilMs, sentMs] = [parseHttpDate(retryAfter), parseHttpDate(first(headers.date))];
  const ms = parseHttpWait(retryAfter) ?? (untilMs === null || sentMs === null ? 0 : untilMs - sentMs);
  return ms > 0 ? Math.min(Math.ceil(ms), MAX_WAIT_MS) : null;
}

function first(value: string | readonly string[] | undefined): string | undefined {
  return (typeof value === 'string' ? value : value?.[0])?.trim();
}

/** Why no answer came, and the next step if there is one. */
type Failure = (influx: SettingNames) => readonly [what: string, step?: string];

/** Why a request got no answer. The message of the error is not shown: it may quote the request and its token. */
const FAILURES: Readonly<Record<ConnectionProblem | 'no-tunnel', Failure>> = {
  refused: (influx) => [
    'the database refuses the connection',
    `check that it is running and that ${influx.url} is right`,
  ],
  closed: () => ['the connection was closed before a response came'],
  'no-name': (influx) => [
    `the host of ${influx.url} was not found`,
    `check ${influx.url} and the name servers of this machine`,
  ],
  'no-resolver': (influx) => [`the host name of ${influx.url} could not be resolved`],
  'no-answer': (influx) => [`the host of ${influx.url} does not answer`],
  'no-route': (influx) => [`the host of ${influx.url} cannot be reached`],
  'no-network': (influx) => [`the network of ${influx.url} cannot be reached`],
  'no-tunnel': () => [
    'the proxy (HTTPS_PROXY) does not connect to the database',
    'if the database should be reached directly, add its host to NO_PROXY',
  ],
  'no-tls': (influx) => [
    `${influx.url}: the server does not speak TLS`,
    `if that is intended, write ${influx.url} with http://`,
  ],
  'self-signed': (influx) => [
    'the certificate of the database is self-signed',
    `to trust it, write it into the file of ${influx.ca_file} (PEM)`,
  ],
  'unknown-authority': (influx) => [
    'the certificate of the database was issued by an unknown authority',
    `to trust that authority, write its certificate into the file of ${influx.ca_file} (PEM)`,
  ],
  'wrong-name': (influx) => [`the certificate of the database is for another host than ${influx.url}`],
  expired: () => ['the certificate of the database has expired', 'renew it, or check the clock of this machine'],
  'not-yet-valid': () => ['the certificate of the database is not valid yet', 'check the clock of this machine'],
};

/** The reason why no answer came, in words, and the next step, which is empty if none is known. */
export function describeFailure(
  error: unknown,
  settings: SettingNames,
): { readonly message: string; readonly hint: string } {
  const code = isRecord(error) && 'code' in error ? String(error['code']) : '';
  const unknown = `the request failed${code === '' ? '' : ` (${plainText(code, 60)})`}`;
  const problem = code === 'ERR_PROXY_TUNNEL' ? 'no-tunnel' : connectionProblem(code);
  const [message, hint = ''] = problem === null ? [unknown] : FAILURES[problem](settings);
  return { message, hint };
}

/**
 * Hides the token, and the password of `user:password`, in every message and in each form, because messages are stored.
 */
export function concealing(secret: string): Conceal {
  return createScrub([new Secret(secret)], { isAnswer: true });
}

/** The section of the configuration that describes a destination: `influx`, or `destinations.b`. */
export function sectionOf(name: string): string {
  return name === 'influx' ? name : `destinations.${name}`;
}

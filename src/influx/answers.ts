/**
 * What a database's answer to a write means: one total function from status, headers and body to a `WriteAnswer`.
 *
 * It promises that only 204 counts as written, that lines are called refused only where an InfluxDB itself speaks of
 * the data, and that everything that it does not know keeps the lines. Servers differ (1.8, 2, 3, the clouds,
 * VictoriaMetrics, proxies in between): the rows below are what all of them are known to say.
 */
import { isRecord } from '../core/json.ts';
import type { DestinationKind } from '../core/lines/dialect.ts';
import type { WriteAnswer } from '../core/ports.ts';
import { SECRET_MARK } from '../core/secret.ts';
import { plainText } from '../core/text.ts';

/** An HTTP answer as far as it was read: a body may have been cut. */
export interface ServerAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: {
    readonly [name: string]: string | readonly string[] | undefined;
    readonly date?: string | undefined;
  };
  readonly body: string;
}

/** Takes secrets out of a text: a proxy's page may show the request that it got. */
export type Conceal = (text: string) => string;

/** The longest wait that a server is believed: it may come back sooner than it thought, and is only asked once. */
const MAX_WAIT_MS = 3_600_000;

/** Words by which an InfluxDB says that lines are at fault (1.8: `services/httpd`, 2: `http/points`, 3: `write_buffer`). */
const SPEAKS_OF_DATA =
  /unable to parse|partial write|line protocol|field type conflict|column type|points? rejected|dropped \d+ points|retention policy|invalid field name|invalid tag key|max key length|max-series-per-database|max-values-per-tag|exceed number of columns/i;

/** Words by which it says, with the same status, that it is itself at fault: then every line would be refused. */
const SPEAKS_OF_ITSELF =
  /no space left|disk quota|read-only file ?system|input\/output error|i\/o error|too many open files|cannot allocate|permission denied|object store|engine is closed|shard (?:is )?(?:closed|disabled)|cache-max-memory-size|timeout|timed out|unavailable|shutting down|\b(?:wal|persister|catalog|compactor|query engine)\b/i;

const NAMES_RETENTION = /(?:beyond|outside|older than)[^.]{0,40}retention|retention (?:policy|period) dropped/i;

/** Points that lie too far ahead, which newer ones call by the same words. */
const NAMES_FUTURE = /retention policy upper bound/i;

/** How many: `dropped=3` (1.8), `dropped 3 points outside retention policy` (2). */
const DROPPED = /dropped=(\d{1,9})\b|dropped (\d{1,9}) points outside/;

/** Where quoted lines and series begin: from there on it is data, not the server's words (a device may be called "wal"). */
const QUOTED_DATA = /(?:'| - oldest point )[\s\S]*$/;

const URL_HINT =
  'influx.url: what answers there is not the write API of a database (a log-in page, a proxy, another program?); it must be the base URL, such as http://host:8086';

const KIND_HINT =
  'influx.kind: it is victoriametrics, but an InfluxDB answers there; set influx.kind to influxdb (or leave it out) and name its influx.bucket';

const LATER_STATUS = new Set([408, 425, 429]);

/**
 * Reads an answer to `POST /api/v2/write`.
 *
 * @param conceal takes the token out of what is quoted from the answer.
 * @param kind what the database was written to as.
 */
export function readAnswer(answer: ServerAnswer, conceal: Conceal, kind: DestinationKind = 'influxdb'): WriteAnswer {
  const { status } = answer;
  const said = readBody(answer.body);
  const words = `HTTP ${status}${said.text === '' ? '' : `: ${plainText(conceal(said.text), 180)}`}`;
  if (status === 204) return { kind: 'accepted' };
  if (kind === 'victoriametrics' && isInfluxDb(answer, said)) return { kind: 'held', words, hint: KIND_HINT };
  // Older clouds of InfluxDB answered 201 where they took a part only.
  if (status === 400 || status === 422 || (status === 201 && said.influxdb)) return readRefusal(status, said, words);
  if (status >= 200 && status < 400) return { kind: 'held', words, hint: URL_HINT };
  if (status === 413) return { kind: 'too-large', words };
  if (LATER_STATUS.has(status) || status < 200 || status >= 500) {
    return { kind: 'later', words, waitMs: readWaitMs(answer.headers) };
  }
  return { kind: 'held', words, hint: hintFor(status, said) };
}

/** Whether an InfluxDB misses what a VictoriaMetrics is not told: every one since 1.4 names its build. */
function isInfluxDb({ status, headers }: ServerAnswer, said: Said): boolean {
  if (![400, 404, 422].includes(status)) return false;
  return headers['x-influxdb-build'] !== undefined || (said.influxdb && said.text === 'database is required');
}

/** 400 and 422 mean anything: lines at fault, a server at fault, a proxy that understood nothing. */
function readRefusal(status: number, said: Said, words: string): WriteAnswer {
  const ownWords = said.text.replace(QUOTED_DATA, '').replaceAll(/"[^"]*"/g, '');
  if (said.influxdb && SPEAKS_OF_DATA.test(ownWords) && !SPEAKS_OF_ITSELF.test(ownWords)) {
    const retention = NAMES_RETENTION.test(ownWords) && !NAMES_FUTURE.test(said.text);
    const dropped = retention ? DROPPED.exec(ownWords) : null;
    const count = dropped === null ? {} : { dropped: Number(dropped[1] ?? dropped[2]) };
    return { kind: 'refused', words, retention, ...count };
  }
  return status === 201 ? { kind: 'held', words, hint: URL_HINT } : { kind: 'later', words, waitMs: null };
}

function hintFor(status: number, said: Said): string {
  switch (status) {
    case 401:
      return 'influx.token: the database does not accept it; for InfluxDB 1.8 and VictoriaMetrics it is user:password (see also influx.org). A new one in influx.token_file is taken by itself';
    case 403:
      return 'influx.token: it may not write to influx.bucket; give it write permission for that bucket, or put another one into influx.token_file';
    case 404:
      return said.influxdb
        ? 'influx.bucket: no such bucket or database; create it, or correct influx.bucket and influx.org'
        : 'influx.url: nothing takes writes at /api/v2/write there; it must be the base URL of InfluxDB 1.8 or later';
    default:
      return URL_HINT;
  }
}

/** What a body says. */
interface Said {
  readonly text: string;
  /** Whether it has the shape in which InfluxDB tells errors: `error`, or `code` and `message`. */
  readonly influxdb: boolean;
}

function readBody(body: string): Said {
  const text = body.trim();
  if (!text.startsWith('{')) return { text: withoutMarkup(text), influxdb: false };
  try {
    return readError(JSON.parse(text)) ?? { text, influxdb: false };
  } catch {
    // One that was too long to be read whole: InfluxDB 1 quotes every line that it could not parse.
    const begun = /^\{\s*(?:"code"\s*:\s*"[^"]*"\s*,\s*)?"(?:error|message)"\s*:\s*"/.exec(text);
    return begun === null ? { text, influxdb: false } : { text: text.slice(begun[0].length), influxdb: true };
  }
}

function readError(json: unknown): Said | null {
  const { error, code, message, data } = { ...(json as Readonly<Record<string, unknown>>) };
  if (typeof error === 'string') return { text: error + firstReason(data), influxdb: true };
  if (typeof code === 'string' && typeof message === 'string') return { text: message, influxdb: true };
  return null;
}

/** InfluxDB 3 puts the reasons beside the error: `data: [{error_message, line_number, original_line}]`. */
function firstReason(data: unknown): string {
  const first: unknown = Array.isArray(data) ? data[0] : data;
  if (typeof first !== 'object' || first === null || !('error_message' in first)) return '';
  return typeof first.error_message === 'string' ? `: ${first.error_message}` : '';
}

/** The title of a page, or its text: enough to tell a person who answered. */
function withoutMarkup(text: string): string {
  const head = text.slice(0, 4096);
  if (!head.startsWith('<')) return head;
  return /<title[^>]{0,200}>([^<]{1,200})/i.exec(head)?.[1]?.trim() ?? head.replace(/<[^<>]*>/g, ' ').trim();
}

/**
 * `Retry-After`: whole or decimal seconds, or a date, which is read against the answer's own `Date` so that no clock
 * is compared with another.
 *
 * @returns milliseconds, an hour at most; `null` where nothing usable was asked.
 */
function readWaitMs(headers: ServerAnswer['headers']): number | null {
  const asked = first(headers['retry-after']);
  if (asked === undefined) return null;
  const ms = /^\d{1,9}(?:\.\d{1,9})?$/.test(asked)
    ? Number(asked) * 1000
    : Date.parse(asked) - Date.parse(first(headers.date) ?? '');
  return ms > 0 ? Math.min(Math.ceil(ms), MAX_WAIT_MS) : null;
}

function first(value: string | readonly string[] | undefined): string | undefined {
  return (typeof value === 'string' ? value : value?.[0])?.trim();
}

/** Why a request got no answer, by the code of the error: its message may quote the request, and with it a token. */
const FAILURES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the database refuses the connection: is it running, and is influx.url right?',
  ECONNRESET: 'the connection was cut before an answer came',
  EPIPE: 'the connection was cut before an answer came',
  ENOTFOUND: 'the host of influx.url is not known',
  EAI_AGAIN: 'the host of influx.url cannot be looked up just now',
  ETIMEDOUT: 'the host of influx.url does not answer',
  EHOSTUNREACH: 'the host of influx.url cannot be reached',
  ENETUNREACH: 'the network of influx.url cannot be reached',
  ERR_PROXY_TUNNEL:
    'the proxy (HTTPS_PROXY) opens no way to the database; where it is not meant for it, name its host in NO_PROXY',
  EPROTO: 'influx.url: what answers there does not speak TLS; http instead of https?',
  ERR_SSL_WRONG_VERSION_NUMBER: 'influx.url: what answers there does not speak TLS; http instead of https?',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate of the database is not trusted: set influx.ca_file',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate of the database is not trusted: set influx.ca_file',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'the certificate of the database is not trusted: set influx.ca_file',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'the certificate of the database is not trusted: set influx.ca_file',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate of the database is for another host than that of influx.url',
  CERT_HAS_EXPIRED: 'the certificate of the database has expired',
};

/** Why no answer came. */
export function failureWords(error: unknown): string {
  const code = isRecord(error) && 'code' in error ? String(error['code']) : '';
  return FAILURES[code] ?? `the request failed${code === '' ? '' : ` (${plainText(code, 60)})`}`;
}

/** The token, and of `user:password` the password, never reach a message, whoever quotes them. */
export function concealing(secret: string): Conceal {
  const password = secret.slice(secret.indexOf(':') + 1);
  const hidden = [secret, password].filter((text) => text.length >= 4);
  return (text) => hidden.reduce((left, part) => left.replaceAll(part, SECRET_MARK), text);
}

/** A text of ours with the keys of the section that configures this destination: `influx.url`, `destinations.b.url`. */
export function inSectionOf(name: string, text: string): string {
  return name === 'influx' ? text : text.replace(/\binflux\.(?=[a-z])/g, `destinations.${name}.`);
}

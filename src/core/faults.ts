/** The kinds of faults, and their texts. The kind decides what the program does, never the text of a message. */

import { plainText } from './text.ts';

/** The text for the fault `unauthorized`, without a full stop. */
export const KEY_REJECTED = 'the API rejects the key: it is unknown, revoked or expired';

/** Where keys are created, after "create a key". */
export const KEYS_PAGE = "in the vendor's web application (Settings, then API)";

/** The advice for the fault `no-api-access`, both without a full stop. */
export const NO_API_ACCESS: Advice = {
  what: 'the plan of this workspace has no API access',
  remedy: 'Switch to a plan that includes API access',
};

/** The scope of the key that each stream needs. */
export const SCOPE_OF = {
  devices: 'devices:read',
  telemetry: 'telemetry:read',
  alerts: 'alerts:read',
  account: 'account:read',
} as const;
export type Scope = (typeof SCOPE_OF)[keyof typeof SCOPE_OF];

interface FaultTexts {
  /** The text if no message of the server follows. */
  readonly alone: string;
  /** The text before the status and the message of the server. */
  readonly beforeMessage: string;
}

/**
 * - `unreachable`: no answer (refused, reset, timed out, TLS, name look-up).
 * - `throttled`: 429; `waitMs` is the wait that the server requested.
 * - `unauthorized`: 401: the key is missing, unknown, revoked or expired.
 * - `scope-missing`: 403 with `insufficient_scope`; `scope` names it.
 * - `no-api-access`: any other 403: the plan grants no API access.
 * - `not-found`: 404.
 * - `bad-cursor`: 400 because of the cursor of the request.
 * - `range-too-large`: 400 `range_too_large`; `maxDays` if the message contains it.
 * - `invalid-request`: any other rejection of what was requested.
 * - `server-fault`: 5xx, or an answer that cannot be the API's (a redirect, an HTML page).
 * - `malformed`: a 200 whose body is no JSON or not the promised shape, or too large.
 */
export const FAULT_TEXTS = {
  unreachable: { alone: 'the API could not be reached', beforeMessage: 'the API did not answer' },
  throttled: { alone: 'the quota is used up (429)', beforeMessage: 'the quota is used up' },
  unauthorized: { alone: 'the API rejects the key (401)', beforeMessage: KEY_REJECTED },
  'scope-missing': { alone: 'the key lacks the required scope (403)', beforeMessage: 'the key lacks a scope' },
  'no-api-access': { alone: 'the plan has no API access (403)', beforeMessage: 'the API denies access' },
  'not-found': { alone: 'not found (404)', beforeMessage: 'no such resource in the workspace of this key' },
  'bad-cursor': { alone: 'the API rejected the cursor (400)', beforeMessage: 'the API rejected the cursor' },
  'range-too-large': {
    alone: 'the requested range is longer than the plan allows (400)',
    beforeMessage: 'the requested range is longer than the plan allows',
  },
  'invalid-request': { alone: 'the API rejected the request (400)', beforeMessage: 'the API rejected the request' },
  'server-fault': { alone: 'the API failed (5xx)', beforeMessage: 'the server failed' },
  malformed: {
    alone: 'the response could not be parsed',
    beforeMessage: 'the response does not follow the API description',
  },
} as const satisfies Readonly<Record<string, FaultTexts>>;

/** The kind of a failed request; it decides whether the request is sent again (`retry.ts`). */
export type ApiFaultKind = keyof typeof FAULT_TEXTS;

/** Why no complete answer arrived: the kinds that a person can act on. */
export type TransportFailure = 'refused' | 'reset' | 'timeout' | 'name' | 'tls' | 'too-large' | 'other';

/** The names of the settings of the API in messages. */
interface ApiSettingNames {
  readonly url: string;
}

const API_KEYS: ApiSettingNames = { url: 'api.url' };

/** The next step after a fault, without a full stop; `null` if there is none. Most steps name no setting. */
export type ApiRemedy = string | ((api: ApiSettingNames) => string) | null;

/** A failed request. The message contains the problem and, if there is one, the remedy. */
export abstract class RequestError extends Error {
  /** The problem, and where it is, without a full stop. */
  readonly what: string;
  readonly remedy: ApiRemedy;

  constructor(what: string, remedy: ApiRemedy) {
    super(withRemedy(what, remedyText(remedy, API_KEYS)));
    this.what = what;
    this.remedy = remedy;
  }

  /** The remedy as a text. */
  remedyText(api: ApiSettingNames = API_KEYS): string | null {
    return remedyText(this.remedy, api);
  }
}

function remedyText(remedy: ApiRemedy, api: ApiSettingNames): string | null {
  return typeof remedy === 'function' ? remedy(api) : remedy;
}

/** The problem and the next step as one text. A problem that quotes a server may end with a full stop of its own. */
export function withRemedy(what: string, remedy: string | null, joint: '.' | ':' | ';' = '.'): string {
  return remedy === null ? what : `${what.replace(/\.$/, '')}${joint} ${remedy}`;
}

/** A request without a complete answer. */
export class TransportError extends RequestError {
  override readonly name = 'TransportError';
  readonly failure: TransportFailure;

  constructor(failure: TransportFailure, what: string, remedy: ApiRemedy = null) {
    super(what, remedy);
    this.failure = failure;
  }
}

/** The facts of a failed request. */
export interface ApiFaultFacts {
  /** The request, without secrets: `GET /devices/x/telemetry`. */
  readonly request: string;
  readonly status?: number;
  readonly code?: string;
  /** The wait that the server requested, in milliseconds. */
  readonly waitMs?: number;
  /** The scope that the key does not have. */
  readonly scope?: string;
  /** The widest window that the plan allows, in days. */
  readonly maxDays?: number;
  /** Whether the answer exceeds the size limit: a smaller page may be readable. */
  readonly isTooLarge?: boolean;
  /** How long the request was retried after its first fault, in milliseconds. */
  readonly retriedMs?: number;
}

/** A request to the API that failed. */
export class ApiFault extends RequestError {
  override readonly name = 'ApiFault';
  readonly kind: ApiFaultKind;
  readonly facts: ApiFaultFacts;

  constructor(kind: ApiFaultKind, what: string, facts: ApiFaultFacts, remedy: ApiRemedy = null) {
    super(what, remedy);
    this.kind = kind;
    this.facts = facts;
  }
}

/** Whether a fault needs a person: the key, its plan, or the scope for the device list. */
export function endsSession({ kind }: ApiFault): boolean {
  return kind === 'unauthorized' || kind === 'no-api-access' || kind === 'scope-missing';
}

/** The scope that the key needs for a stream; `null` if the error has another cause. */
export function findMissingScope(error: unknown, stream: keyof typeof SCOPE_OF): string | null {
  if (!(error instanceof ApiFault) || error.kind !== 'scope-missing') return null;
  return error.facts.scope ?? SCOPE_OF[stream];
}

/** An error that a person has to fix: what is wrong, where, and what to do, with an exit code for scripts. */
export class UserError extends Error {
  override readonly name = 'UserError';
  readonly exitCode: ExitCode;
  /** The problem, and where it is. */
  readonly what: string;
  /** The next step; `null` if `what` states what was expected, or if there is none. */
  readonly remedy: string | null;
  /**
   * Which work the error ends in a daemon: `job` ends only the job in which it occurs; `process` ends the daemon,
   * because its other work would fail too.
   */
  readonly ends: 'job' | 'process';

  /** Creates the error. `joint` stands between the problem, which then has no full stop, and the remedy. */
  constructor(
    what: string,
    remedy: string | null,
    exitCode: ExitCode,
    { ends = 'job', joint }: { readonly ends?: UserError['ends']; readonly joint?: '.' | ':' | ';' } = {},
  ) {
    super(withRemedy(what, remedy, joint));
    this.exitCode = exitCode;
    this.what = what;
    this.remedy = remedy;
    this.ends = ends;
  }
}

/** The problem, without a full stop, and the next step, in sentences. */
export interface Advice {
  readonly what: string;
  readonly remedy: string;
}

/** The error text for a proxy variable. It does not quote the URL, which may hold a password. */
export function proxyNotUrl(): UserError {
  return new UserError('HTTPS_PROXY or HTTP_PROXY: not a URL', 'Set it as http://host:port, or unset it.', 78);
}

/** The exit codes of the program. */
const EXIT_CODES = [0, 1, 2, 3, 77, 78] as const;
export type ExitCode = (typeof EXIT_CODES)[number];

/** Whether a stored value is an exit code that a command can have. */
export function isExitCode(code: unknown): code is ExitCode {
  return EXIT_CODES.some((each) => each === code);
}

/**
 * The system's or the database's code for the error, such as `ENOSPC`.
 *
 * @param none the result if there is no code.
 */
export function codeOf(error: unknown, none = 'unknown error'): string {
  return error instanceof Error && 'code' in error ? String(error.code) : none;
}

const NO_SUCH_FILE: Advice = { what: 'this file does not exist:', remedy: 'create it, or correct the path' };
const FILE_DENIED: Advice = {
  what: 'this user may not read the file:',
  remedy: 'let this user read it and enter its directory: change owner, group or mode',
};
const FILE_PROBLEMS: ReadonlyMap<string, Advice> = new Map([
  ['ENOENT', NO_SUCH_FILE],
  ['ENOTDIR', NO_SUCH_FILE],
  ['ENAMETOOLONG', NO_SUCH_FILE],
  ['ELOOP', { what: 'a link in the path leads back to itself:', remedy: 'correct the link, or give another path' }],
  ['EISDIR', { what: 'expected a file, but this is a directory:', remedy: 'give the path of a file' }],
  ['EACCES', FILE_DENIED],
  ['EPERM', FILE_DENIED],
]);

/** Why a file could not be read, as words that precede its path, and the remedy as a phrase. */
export function readFailure(error: unknown): Advice {
  const code = codeOf(error);
  const other = { what: `the file cannot be read (${code}):`, remedy: 'check the path and its file system' };
  return FILE_PROBLEMS.get(code) ?? other;
}

/** Why there is no connection to a server, with the codes of Node and OpenSSL for it. */
const CONNECTION_CODES = {
  refused: ['ECONNREFUSED'],
  'no-route': ['EHOSTUNREACH', 'EHOSTDOWN'],
  'no-network': ['ENETUNREACH', 'ENETDOWN'],
  closed: ['ECONNRESET', 'ECONNABORTED', 'EPIPE'],
  'no-answer': ['ETIMEDOUT'],
  'no-name': ['ENOTFOUND'],
  'no-resolver': ['EAI_AGAIN', 'EAI_FAIL'],
  'no-tls': ['EPROTO', 'ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG'],
  'self-signed': ['DEPTH_ZERO_SELF_SIGNED_CERT'],
  'unknown-authority': [
    'SELF_SIGNED_CERT_IN_CHAIN',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'UNABLE_TO_GET_ISSUER_CERT',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  ],
  'wrong-name': ['ERR_TLS_CERT_ALTNAME_INVALID', 'HOSTNAME_MISMATCH'],
  expired: ['CERT_HAS_EXPIRED'],
  'not-yet-valid': ['CERT_NOT_YET_VALID'],
} as const;
export type ConnectionProblem = keyof typeof CONNECTION_CODES;

const CONNECTION_PROBLEMS: ReadonlyMap<string, ConnectionProblem> = new Map(
  (Object.keys(CONNECTION_CODES) as ConnectionProblem[]).flatMap((problem) =>
    CONNECTION_CODES[problem].map((code) => [code, problem] as const),
  ),
);

/** The problem of a connection that the code of an error names; `null` for a code that names none. */
export function connectionProblem(code: string): ConnectionProblem | null {
  return CONNECTION_PROBLEMS.get(code) ?? null;
}

/** The allowed number of requests is used up. */
export class RequestsSpentError extends Error {
  override readonly name = 'RequestsSpentError';
}

/** Returns the message for an error that only a bug can cause, and how to report it. */
export function internalErrorText(detail: string): string {
  return `internal error: ${detail.replace(/\.$/, '')}. This is a bug; please report it with --check --bundle.`;
}

/** How to replace a key while the daemon runs. */
const REPLACE_KEY =
  'write it into the file of api.key_file, which needs no restart (if you set api.key instead, restart Tidemark)';

/** The facts of a rejected key. */
type Rejection = Pick<ApiFault, 'kind'> & { readonly facts: Pick<ApiFaultFacts, 'scope'> };

/** The advice on a rejected key as one text for a daemon, without a full stop. */
export function rejectionText(fault: Rejection): string {
  const { what, remedy } = rejectionAdvice(fault);
  return withRemedy(what, remedy);
}

/**
 * Why the key was rejected, and what to do about it; neither has a full stop.
 *
 * @param useKey how to use a new key; by default as for a daemon.
 */
export function rejectionAdvice({ kind, facts }: Rejection, useKey = REPLACE_KEY): Advice {
  if (kind === 'unauthorized') {
    const remedy = `Check that the key is complete; if it is, create a new key ${KEYS_PAGE} and ${useKey}`;
    return { what: KEY_REJECTED, remedy };
  }
  return kind === 'no-api-access' ? NO_API_ACCESS : scopeAdvice(facts.scope ?? SCOPE_OF.devices);
}

/** The advice on a missing scope that every sync needs; neither part has a full stop. */
export function scopeAdvice(scope: string): Advice {
  return { what: `the key lacks the scope ${scope}, which every sync needs`, remedy: 'Create a key that has it' };
}

/**
 * The text for a fault of the API.
 *
 * @param fault as a process, possibly of another version, has stored it.
 */
export function faultText(fault: string): string {
  return Object.hasOwn(FAULT_TEXTS, fault) ? FAULT_TEXTS[fault as ApiFaultKind].alone : plainText(fault, 60);
}

/**
 * The HTTP server: the status page, the same as JSON, the metrics, and the two health checks.
 *
 * Promises: GET and HEAD only. A response is made from the reports alone and never from an error's text. Slow, large
 * and endless requests are cut off. No page can be framed, no report is cached, only the program's own script runs, and
 * the page of another site cannot read the reports (`isServedName`). Whatever clients do, the sync continues and
 * /healthz and /metrics answer: a connection has one request in progress (`connections.ts`), pages are made one after
 * another with pauses between them (`answers.ts`), and all connections together may send at most 50 requests per second
 * after their first ones.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Advice, UserError } from '../core/faults.ts';
import { type Clock, type Served, servedJson } from '../core/ports.ts';
import type { Secret } from '../core/secret.ts';
import type { HealthReport, ReadyReport, StatusReport } from '../core/status.ts';
import { addressText } from '../core/text.ts';
import { type Answer, type AnswerMaker, createAnswerMaker, encodeAnswer } from './answers.ts';
import { Connection, connectionsToDrop, createSteps, type NextStep, readersToDrop } from './connections.ts';

/** The resources that a page may use: only those of this server, and no script or style inside the markup. */
export const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/** The address, the password and the content of the HTTP server. */
export interface StatusServerOptions {
  /** Where to listen; port 0 means any free port. IPv6 without brackets. */
  readonly listen: { readonly host: string; readonly port: number };
  /** Public host names of the page, in upper or lower case (`listen_names`). */
  readonly names: readonly string[];
  /** Returns the password of pages and JSON (`listen_password_file`); `null`: none. */
  readonly password: () => Secret | null;
  readonly clock: Pick<Clock, 'monoMs' | 'sleep'>;
  readonly status: () => StatusReport;
  /** Returns the pages and their files; `null` for any other address. */
  readonly page: (path: string, params: URLSearchParams) => Promise<Served | null>;
  readonly health: () => HealthReport;
  readonly ready: () => Promise<ReadyReport>;
  readonly metrics: { readonly text: () => Promise<string>; readonly contentType: string };
  /** Called with the error if a response could not be made. The client does not get the error's text. */
  readonly onError: (message: string) => void;
}

/** A server that listens. */
export interface StatusServer {
  /** The address for people: `http://127.0.0.1:9464/`. */
  readonly url: string;
  /** Closes the server at once, including open connections. */
  close(): Promise<void>;
}

const LIMITS = {
  maxHeaderSize: 8 * 1024,
  headersTimeout: 5000,
  requestTimeout: 10_000,
  keepAliveTimeout: 5000,
  connectionsCheckingInterval: 1000,
};

/** How many connections are kept, and how many are accepted for a moment before the slow ones are dropped. */
const MAX_CONNECTIONS = 100;
const MAX_SOCKETS = 500;
const TRIM_AFTER_MS = 1000;

/** How many bytes of all responses together, not counting the largest one, may wait for slow clients. */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024;

/** How long a connection rests after a response, per open connection: 50 requests per second over all. */
const REST_MS = 20;

/** A connection without traffic is closed after this time, for example if its client does not read the response. */
const SILENT_MS = 10_000;

/**
 * Starts to serve.
 *
 * @throws UserError (exit 1) with a remedy, if the address cannot be opened.
 */
export async function serveStatus(options: StatusServerOptions): Promise<StatusServer> {
  const server = createServer(LIMITS);
  const serving: Serving = {
    options,
    connections: new Set(),
    nextStep: createSteps(),
    makePage: createAnswerMaker(options.clock),
    makeMetrics: createAnswerMaker(options.clock),
    isTrimDue: false,
  };
  takeConnections(server, serving);
  server.on('request', (request, response) => void serve(serving, request, response));
  server.maxConnections = MAX_SOCKETS;
  server.timeout = SILENT_MS;
  // A client that waits for a slow response is not silent: its time starts again after the response.
  server.on('timeout', (socket) => {
    if (!(socket instanceof Connection && socket.phase === 'answer')) socket.destroy();
  });
  server.on('clientError', endInvalid);
  await listen(server, options.listen);
  server.on('error', (error: NodeJS.ErrnoException) => options.onError(error.code ?? 'unknown error'));
  return {
    url: servedUrl(server, options.listen.host),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const connection of serving.connections) connection.destroy();
        server.closeAllConnections();
      }),
  };
}

/**
 * Rejects a request that is not valid HTTP, without messages of the parser, and closes its connection. A connection
 * whose time is over is closed without a response: a browser may have opened it in advance, and would take the response
 * for the one to its next request.
 */
export function endInvalid({ code }: NodeJS.ErrnoException, socket: Duplex): void {
  if (socket.writable && code !== 'ERR_HTTP_REQUEST_TIMEOUT') {
    socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
  } else socket.destroy();
}

/** A server with its connections and its responses in progress. */
interface Serving {
  readonly options: StatusServerOptions;
  readonly connections: Set<Connection>;
  readonly nextStep: NextStep;
  readonly makePage: AnswerMaker;
  /** A separate maker, so that a scrape does not wait for pages. */
  readonly makeMetrics: AnswerMaker;
  /** Whether connections are about to be counted. */
  isTrimDue: boolean;
}

/** Puts a `Connection` before the parser of every socket. */
function takeConnections(server: Server, serving: Serving): void {
  const parse = server.listeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket) => {
    const connection = new Connection(socket, serving.nextStep);
    serving.connections.add(connection);
    connection.on('close', () => serving.connections.delete(connection));
    for (const listener of parse) listener.call(server, connection);
    void trim(serving);
  });
}

/**
 * Drops excess connections. It waits a moment, so that a new client can send a request, and a client that returns each
 * time costs little. It acts at once if there would soon be no connection left for others.
 */
async function trim(serving: Serving): Promise<void> {
  const { connections, options } = serving;
  if (connections.size <= MAX_CONNECTIONS || serving.isTrimDue) return;
  serving.isTrimDue = true;
  await options.clock.sleep(connections.size < MAX_SOCKETS / 2 ? TRIM_AFTER_MS : 0);
  serving.isTrimDue = false;
  for (const connection of connectionsToDrop([...connections], MAX_CONNECTIONS)) connection.destroy();
}

/** The names of the setting in messages: `short` at the beginning, `inAdvice` in a remedy. */
interface ListenNames {
  readonly short: string;
  readonly inAdvice: string;
}

const LISTEN_KEY: ListenNames = { short: 'listen', inAdvice: 'listen (TIDEMARK_LISTEN)' };

/**
 * Checks that an address is free, without keeping it open.
 *
 * @throws ListenError (exit 1) if it is not
 */
export async function requireFree(address: StatusServerOptions['listen'], names = LISTEN_KEY): Promise<void> {
  const server = createServer();
  await listen(server, address, names);
  await new Promise((resolve) => server.close(resolve));
}

function listen(server: Server, { host, port }: StatusServerOptions['listen'], names = LISTEN_KEY): Promise<void> {
  return new Promise((resolve, reject) => {
    const refuse = ({ code }: NodeJS.ErrnoException): void => {
      reject(new ListenError(listenProblem(code, addressText(host, port), names), names));
    };
    server.once('error', refuse);
    server.listen({ host, port }, () => {
      server.off('error', refuse);
      resolve();
    });
  });
}

/** The address of `listen` cannot be opened. `problem` is the advice without the name of the setting before it. */
export class ListenError extends UserError {
  readonly problem: Advice;

  constructor(problem: Advice, { short }: ListenNames) {
    super(`${short}: ${problem.what}`, problem.remedy, 1);
    this.problem = problem;
  }
}

function listenProblem(code: string | undefined, address: string, { inAdvice: setting }: ListenNames): Advice {
  const other = `set ${setting} to another`;
  switch (code) {
    case 'EADDRINUSE':
      return {
        what: `${address} is in use by another program or another Tidemark`,
        // The process at the address may be a Tidemark of this or of another workspace.
        remedy: `Set ${setting} to another port; with port 0 Tidemark takes a free port. Or stop that program. If it is a Tidemark daemon, do not stop it: if its page shows this workspace, you need no second daemon.`,
      };
    case 'EACCES':
      return { what: `${address} may not be used by this user`, remedy: `Use a port above 1023: ${other} port.` };
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return {
        what: `${address} is not an address of this machine`,
        remedy: `Use 127.0.0.1 or 0.0.0.0, or ${other} address of this machine.`,
      };
    default:
      return {
        what: `${address} cannot be listened on (${code ?? 'unknown error'})`,
        remedy: `Check the address, or ${other}.`,
      };
  }
}

/** The URL to open in a browser. "Every address" cannot be opened, so this machine replaces it. */
function servedUrl(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo;
  return `http://${addressText(host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host, port)}/`;
}

/** Answers a request. The next request of the connection follows once the client has the response. */
async function serve(serving: Serving, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { connections, options } = serving;
  const connection = request.socket;
  if (!(connection instanceof Connection)) return;
  connection.begin();
  response.on('close', () => {
    connection.noteSent();
    void options.clock.sleep(REST_MS * connections.size).then(() => connection.acceptNext());
  });
  const answer = await answerSafely(serving, request, () => connection.destroyed);
  connection.noteAnswered(answer.body);
  for (const slow of readersToDrop([...connections], MAX_UNREAD_BYTES)) slow.destroy();
  if (!connection.destroyed) send(request, response, answer);
}

async function answerSafely(serving: Serving, request: IncomingMessage, isGone: () => boolean): Promise<Answer> {
  const { options, makePage, makeMetrics } = serving;
  try {
    const url = request.url ?? '';
    const unqueued = await (findRejection(request, options) ?? healthAt(url, options));
    if (unqueued !== null) return encodeAnswer(unqueued);
    // The files of the page cost nothing. A page without its style would be of no use while the server is busy.
    if (url.startsWith('/assets/')) return encodeAnswer(await answerTo(url, options));
    const make = splitAt(url, '?')[0] === '/metrics' ? makeMetrics : makePage;
    const client = { key: sharedKey(url), isGone };
    return (await make(client, async () => await answerTo(url, options))) ?? encodeAnswer(BUSY);
  } catch (error) {
    options.onError(error instanceof Error ? error.message : 'unknown error');
    return encodeAnswer(
      servedJson(500, { error: 'Internal error while answering this request. The log has the reason.' }),
    );
  }
}

const NOTHING_HERE =
  'Not found. Available: /, /device, /alerts, /events, /status.json, /devices.json, /device.json, /alerts.json, /events.json, /metrics, /healthz and /readyz.';

const BUSY = servedJson(503, { error: 'Too many requests at the moment. Try again in a second.' });

const OF_DEVICES = ['search', 'state', 'sort', 'reversed', 'page'];
const OF_DEVICE = ['id', 'range'];

/** The parameters that a response depends on, by path. Others are ignored. */
export const PARAMETERS: ReadonlyMap<string, readonly string[]> = new Map([
  ['/', OF_DEVICES],
  ['/devices.json', OF_DEVICES],
  ['/device', OF_DEVICE],
  ['/device.json', OF_DEVICE],
  ['/events', ['level']],
  ['/alerts', []],
  ['/alerts.json', []],
  ['/events.json', []],
  ['/status.json', []],
  ['/metrics', []],
]);

/** The key of a response that is the same for all clients and is therefore made once a second; `null` for others. */
function sharedKey(url: string): string | null {
  const [path, query] = splitAt(url, '?');
  const given = new URLSearchParams(query);
  return PARAMETERS.get(path)?.some((name) => given.has(name)) === false ? path : null;
}

/**
 * Served under any host name, for a Prometheus on this machine: figures without names, unless `metrics.per_device` is
 * set.
 */
const BY_ANY_NAME: ReadonlySet<string> = new Set(['/healthz', '/metrics']);

/** Why a request is rejected; `null` if it is not. */
function findRejection(request: IncomingMessage, options: StatusServerOptions): Served | Promise<Served> | null {
  const { method, url = '', headers, headersDistinct } = request;
  if (method !== 'GET' && method !== 'HEAD') return servedJson(405, { error: 'Only GET and HEAD are allowed.' });
  if ((headersDistinct['host']?.length ?? 0) > 1)
    return servedJson(400, { error: 'The request has two Host headers.' });
  const { host } = options.listen;
  if (!BY_ANY_NAME.has(url) && !isServedName(headers.host, [host, ...options.names])) {
    return servedJson(421, { error: NOT_BY_THAT_NAME });
  }
  const password = url === '/healthz' ? null : options.password();
  if (password === null || isPassword(headers.authorization, password)) return null;
  // The probe of an orchestrator has no password, so it gets the status without reasons.
  if (url === '/readyz') return readyAnswer(options, ({ ready }) => ({ ready }));
  return servedJson(401, { error: 'A password is required: the one in listen_password_file, with any user name.' });
}

const NOT_BY_THAT_NAME =
  'This host name is not allowed: add it to listen_names (TIDEMARK_LISTEN_NAMES), or use an IP address or localhost.';

/** Splits a text at the first occurrence of a sign. */
function splitAt(text: string, sign: string): readonly [string, string] {
  const index = text.indexOf(sign);
  return index < 0 ? [text, ''] : [text.slice(0, index), text.slice(index + 1)];
}

/** The two health checks, which cost almost nothing and never wait for a page; `null` for all other paths. */
function healthAt(url: string, { health, ready }: StatusServerOptions): Served | Promise<Served> | null {
  const [path] = splitAt(url, '?');
  if (path === '/healthz') {
    const report = health();
    return servedJson(report.healthy ? 200 : 503, report);
  }
  return path === '/readyz' ? readyAnswer({ ready }, (report) => report) : null;
}

/**
 * Answers the readiness check.
 *
 * @param shown the part of the report that the client gets
 */
async function readyAnswer(
  { ready }: Pick<StatusServerOptions, 'ready'>,
  shown: (report: ReadyReport) => object,
): Promise<Served> {
  const report = await ready();
  return servedJson(report.ready ? 200 : 503, shown(report));
}

async function answerTo(url: string, { status, page, metrics }: StatusServerOptions): Promise<Served> {
  const [path, query] = splitAt(url, '?');
  switch (path) {
    case '/status.json':
      return servedJson(200, status());
    case '/metrics':
      return { status: 200, type: metrics.contentType, body: await metrics.text() };
    default:
      return (await page(path, new URLSearchParams(query))) ?? servedJson(404, { error: NOTHING_HERE });
  }
}

function send(request: IncomingMessage, response: ServerResponse, { status, type, body, etag }: Answer): void {
  const isKnown = etag !== undefined && request.headers['if-none-match'] === etag;
  const hasBody = request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined;
  response.writeHead(isKnown ? 304 : status, {
    'Content-Type': type,
    ...(isKnown ? {} : { 'Content-Length': body.length }),
    // A resource with a tag is the program's own: it may be cached, and is revalidated each time.
    ...(etag === undefined ? { 'Cache-Control': 'no-store' } : { 'Cache-Control': 'no-cache', ETag: etag }),
    'Content-Security-Policy': PAGE_POLICY,
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'Referrer-Policy': 'no-referrer',
    ...(status === 401 ? { 'WWW-Authenticate': 'Basic realm="Tidemark", charset="UTF-8"' } : {}),
    ...(status === 405 ? { Allow: 'GET, HEAD' } : {}),
    // The body of a request is not read. The connection is closed instead.
    ...(hasBody ? { Connection: 'close' } : {}),
  });
  response.end(isKnown || request.method === 'HEAD' ? undefined : body);
}

/** Whether the header has the password, with any user name. A wrong password takes the same time. */
function isPassword(authorization: string | undefined, password: Secret): boolean {
  const [, encodedPair = ''] = /^Basic +([\w+/=-]+)$/i.exec(authorization ?? '') ?? [];
  const [, given] = splitAt(Buffer.from(encodedPair, 'base64').toString(), ':');
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(password.reveal()));
}

/** Endings of host names that no outsider can own (RFC 6761, RFC 6762, ICANN's `internal`). */
const NEVER_PUBLIC = new Set(['localhost', 'local', 'internal']);

/**
 * Whether a request with this host name is answered.
 *
 * A web page may resolve its own name to our address (DNS rebinding). A browser that shows the page would then let its
 * script read our responses as if they came from the page's own site. So a name that an outsider may own is answered
 * only if it is configured. Addresses, names of one word and names of local networks are always answered.
 *
 * @param host the `Host` of a request.
 * @param names the configured names.
 */
export function isServedName(host: string | undefined, names: readonly string[]): boolean {
  // Browsers always send one.
  if (host === undefined) return true;
  if (/^\[[\da-f:.]+\](?::\d+)?$/i.test(host)) return true;
  const [, name] = /^([^:@/\\[\]\s]+)(?::\d*)?$/.exec(host) ?? [];
  if (name === undefined) return false;
  const plain = name.toLowerCase().replace(/\.$/, '');
  if (!plain.includes('.') || isIP(plain) !== 0) return true;
  return NEVER_PUBLIC.has(plain.split('.').at(-1) ?? '') || names.some((each) => each.toLowerCase() === plain);
}

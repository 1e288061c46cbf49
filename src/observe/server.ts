/**
 * What is served over HTTP: the status page, the same as JSON, the metrics, and the two
 * health checks.
 *
 * Promises: GET and HEAD only; an answer is made from the reports alone and never from an error's text; slow, large and
 * endless requests are cut off; nothing is framed, nothing of the reports is cached, only the program's own script runs,
 * and the page of another site reads nothing of the reports (`isForeignHost`).
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import { hostname } from 'node:os';
import { UserError } from '../core/faults.ts';
import { type Served, servedJson } from '../core/ports.ts';
import type { HealthReport, ReadyReport, StatusReport } from '../core/status.ts';

/** What a page may use: what this server serves, and nothing else at all; no script or style inside of the markup. */
export const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/** What is served, and where. */
export interface StatusServerOptions {
  /** Where to listen; port 0 takes a free one. IPv6 without brackets. */
  readonly listen: { readonly host: string; readonly port: number };
  readonly status: () => StatusReport;
  /** The pages, and what belongs to them; `null` for an address that is none of theirs. */
  readonly page: (path: string, params: URLSearchParams) => Promise<Served | null>;
  readonly health: () => HealthReport;
  readonly ready: () => ReadyReport;
  /** What a scrape gets. */
  readonly metrics: { readonly text: () => Promise<string>; readonly contentType: string };
  /** Called with an error in making an answer; the client does not get its text. */
  readonly onError: (message: string) => void;
}

/** A server that runs. */
export interface StatusServer {
  /** Where people find it: `http://127.0.0.1:9464/`. */
  readonly url: string;
  /** Ends at once, open connections included. */
  close(): Promise<void>;
}

const LIMITS = {
  maxHeaderSize: 8 * 1024,
  headersTimeout: 5000,
  requestTimeout: 10_000,
  keepAliveTimeout: 5000,
  connectionsCheckingInterval: 1000,
};

const MAX_CONNECTIONS = 100;

/** A connection without traffic ends after so long: that of a client which does not read its answer, say. */
const SILENT_MS = 10_000;

/**
 * Starts to serve.
 *
 * @throws UserError (exit 1) where nothing can listen there, with what to do.
 */
export async function serveStatus(options: StatusServerOptions): Promise<StatusServer> {
  const answering = new WeakSet<object>();
  const own = { ...options.listen, address: '', names: [options.listen.host, hostname()] };
  const server = createServer(LIMITS, (request, response) => {
    answering.add(request.socket);
    void answerSafely(request, options, own).then((made) => {
      answering.delete(request.socket);
      send(request, response, made);
    });
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.timeout = SILENT_MS;
  // What takes long to make is no silence of the one who waits for it: it is counted again from the answer on.
  server.on('timeout', (socket) => {
    if (!answering.has(socket)) socket.destroy();
  });
  // What is no HTTP gets its refusal, and the connection ends: no words of the parser.
  server.on('clientError', (_error, socket) => {
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
    else socket.destroy();
  });
  await listen(server, options.listen);
  Object.assign(own, server.address() as AddressInfo);
  server.on('error', (error: NodeJS.ErrnoException) => options.onError(error.code ?? 'unknown error'));
  return {
    url: urlOf(server, options.listen.host),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listen(server: Server, { host, port }: StatusServerOptions['listen']): Promise<void> {
  return new Promise((resolve, reject) => {
    const refuse = (error: NodeJS.ErrnoException): void => {
      reject(new UserError(listenTrouble(error, host, port), 1));
    };
    server.once('error', refuse);
    server.listen({ host, port }, () => {
      server.off('error', refuse);
      resolve();
    });
  });
}

const REMEDY = 'set listen (TIDEMARK_LISTEN) to another';

function listenTrouble({ code }: NodeJS.ErrnoException, host: string, port: number): string {
  const place = `listen: ${host.includes(':') ? `[${host}]` : host}:${port}`;
  switch (code) {
    case 'EADDRINUSE':
      return `${place} is in use by another program. Stop that one, or ${REMEDY} port; port 0 takes a free one.`;
    case 'EACCES':
      return `${place} may not be used by this user. Take a port above 1023: ${REMEDY} port.`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `${place} is no address of this machine. Use 127.0.0.1 or 0.0.0.0, or ${REMEDY} of its own.`;
    default:
      return `${place} cannot be listened on (${code ?? 'unknown error'}). Check the address, or ${REMEDY}.`;
  }
}

/** The address to open. "Every address" is no place to go to, so that becomes this machine. */
function urlOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo;
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}/`;
}

async function answerSafely(request: IncomingMessage, options: StatusServerOptions, own: OwnPlace): Promise<Served> {
  try {
    const tellsNames = !FOR_MACHINES.has(request.url ?? '');
    if (tellsNames && isForeignHost(request.headers.host, own)) return servedJson(421, { error: NOT_BY_THAT_NAME });
    return await answer(request, options);
  } catch (error) {
    options.onError(error instanceof Error ? error.message : 'unknown error');
    return servedJson(500, { error: 'The answer could not be made. The log says why.' });
  }
}

const NOTHING_HERE =
  'There is nothing here. Served: /, /device, /alerts, /events, /status.json, /devices.json, /device.json, /alerts.json, /events.json, /metrics, /healthz and /readyz.';

/** They may ask by any name, as a Prometheus on this machine does: what they get is figures, unless `metrics.per_device`. */
const FOR_MACHINES: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

const NOT_BY_THAT_NAME =
  'Tidemark listens on this machine alone, and does not answer to a public name with its own port: another site could have its name lead here. Use 127.0.0.1 or localhost, or give a proxy or a tunnel another port.';

/** What stands before and after the first of a sign. */
function splitAt(text: string, sign: string): readonly [string, string] {
  const index = text.indexOf(sign);
  return index < 0 ? [text, ''] : [text.slice(0, index), text.slice(index + 1)];
}

async function answer(
  { method, url }: IncomingMessage,
  { status, page, health, ready, metrics }: StatusServerOptions,
): Promise<Served> {
  if (method !== 'GET' && method !== 'HEAD') return servedJson(405, { error: 'Only GET and HEAD are served here.' });
  const [path, query] = splitAt(url ?? '', '?');
  switch (path) {
    case '/status.json':
      return servedJson(200, status());
    case '/healthz': {
      const report = health();
      return servedJson(report.healthy ? 200 : 503, report);
    }
    case '/readyz': {
      const report = ready();
      return servedJson(report.ready ? 200 : 503, report);
    }
    case '/metrics':
      return { status: 200, type: metrics.contentType, body: await metrics.text() };
    default:
      return (await page(path, new URLSearchParams(query))) ?? servedJson(404, { error: NOTHING_HERE });
  }
}

function send(request: IncomingMessage, response: ServerResponse, { status, type, body, etag }: Served): void {
  const isKnown = etag !== undefined && request.headers['if-none-match'] === etag;
  const hasBody = request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined;
  response.writeHead(isKnown ? 304 : status, {
    'Content-Type': type,
    ...(isKnown ? {} : { 'Content-Length': Buffer.byteLength(body) }),
    // What has a tag is the program's own: it may be kept, and is asked for again each time.
    ...(etag === undefined ? { 'Cache-Control': 'no-store' } : { 'Cache-Control': 'no-cache', ETag: etag }),
    'Content-Security-Policy': PAGE_POLICY,
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'Referrer-Policy': 'no-referrer',
    ...(status === 405 ? { Allow: 'GET, HEAD' } : {}),
    // What somebody sends along is not read; the connection ends instead.
    ...(hasBody ? { Connection: 'close' } : {}),
  });
  response.end(isKnown || request.method === 'HEAD' ? undefined : body);
}

/** Where a server listens, as the system tells it, and what it is called. */
interface OwnPlace {
  readonly address: string;
  readonly port: number;
  /** Names that are its own: that of the machine, that of `listen`. */
  readonly names: readonly string[];
}

/** Ends of names that nobody outside can have (RFC 6761, RFC 6762, ICANN's `internal`; `localdomain` by old custom). */
const NEVER_PUBLIC = new Set(['localhost', 'localdomain', 'local', 'internal']);

const HTTP_PORT = 80;

/**
 * Whether a request comes from another site through a browser of this machine.
 *
 * Who listens on this machine alone is still reached by every page that is open in a browser here: a site may have its
 * own name lead to 127.0.0.1 (DNS rebinding), and then its script reads what is served as if it were its own. A script
 * reads only what has its own name and port, so both stand in `Host`. Refused is no more than that: a public name with
 * this server's own port. A proxy has a port of its own or asks by address; who is reachable from elsewhere is asked by
 * names that nobody here knows, and answers to all.
 *
 * @param host the `Host` of a request. @returns whether it is a name that somebody outside may hold.
 */
export function isForeignHost(host: string | undefined, own: OwnPlace): boolean {
  if (!isLoopback(own.address)) return false;
  const [, name = '', port] = /^([^:[\]]+)(?::(\d+))?$/.exec(host ?? '') ?? [];
  const plain = name.toLowerCase().replace(/\.$/, '');
  // Names of one word come from this machine or its network alone.
  if (!plain.includes('.') || isIP(plain) !== 0) return false;
  if (Number(port ?? HTTP_PORT) !== own.port) return false;
  return !NEVER_PUBLIC.has(plain.split('.').at(-1) ?? '') && !own.names.some((each) => each.toLowerCase() === plain);
}

function isLoopback(address: string): boolean {
  return address === '::1' || /^(?:::ffff:)?127\./.test(address);
}

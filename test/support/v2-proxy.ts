/**
 * A stand-in for InfluxDB 2: `/api/v2/write` in front of a real InfluxDB 1.6, with faults on demand.
 *
 * It checks the token, turns bucket and precision into what version 1 calls them, passes the body on as it came
 * (compressed or not) and turns the answer into version 2's. So what a test sees stored was stored by a real database.
 */
import { Agent, createServer, type IncomingMessage, request as openRequest, type ServerResponse } from 'node:http';
import { gunzipSync } from 'node:zlib';
import type { ServerAnswer } from '../../src/influx/answers.ts';
import { createConnection, type DatabaseCall, type Send } from '../../src/influx/connection.ts';
import { openPost, type Posted } from './plain-post.ts';

/** The fault of one write. */
export type Fault =
  /** Answered without a request to the database. */
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
    }
  /** The connection is cut before anything was written. */
  | { readonly kind: 'cut' }
  /** Everything is written, then the connection is cut: the client cannot know. */
  | { readonly kind: 'apply-and-cut' }
  /** Nothing is written and no answer ever comes. */
  | { readonly kind: 'hang' };

/** The usual ones. */
export const FAULTS = {
  unavailable: { kind: 'answer', status: 503, body: '{"code":"unavailable","message":"overloaded"}' },
  unauthorized: { kind: 'answer', status: 401, body: '{"code":"unauthorized","message":"unauthorized access"}' },
  bucketMissing: { kind: 'answer', status: 404, body: '{"code":"not found","message":"bucket \\"b\\" not found"}' },
  badGateway: { kind: 'answer', status: 502, headers: { 'content-type': 'text/html' }, body: '<h1>Bad Gateway</h1>' },
  loginPage: { kind: 'answer', status: 200, headers: { 'content-type': 'text/html' }, body: '<h1>Please log in</h1>' },
  diskFull: {
    kind: 'answer',
    status: 422,
    body: '{"code":"unprocessable entity","message":"partial write: engine: points rejected dropped=1"}',
  },
  cut: { kind: 'cut' },
  applyAndCut: { kind: 'apply-and-cut' },
  hang: { kind: 'hang' },
} as const satisfies Readonly<Record<string, Fault>>;

/** 429 with a wait in seconds. */
export function throttled(seconds: number): Fault {
  return {
    kind: 'answer',
    status: 429,
    headers: { 'retry-after': String(seconds) },
    body: '{"code":"too many requests","message":"limit"}',
  };
}

/** A write as the proxy saw it. */
export interface SeenWrite {
  /** From 0 on. */
  readonly nth: number;
  readonly lines: readonly string[];
  readonly headers: IncomingMessage['headers'];
  readonly query: URLSearchParams;
}

/** The answer of the database behind the proxy to a write, in the format of version 1. */
export interface UpstreamAnswer {
  readonly status: number;
  readonly message: string;
}

export interface V2ProxyOptions {
  /** Base URL of the InfluxDB behind it, or the function that receives the lines instead. */
  readonly upstream: string | ((bucket: string, lines: readonly string[]) => UpstreamAnswer);
  /** The only token that is let in. */
  readonly token: string;
  /** Decides, write by write, what goes wrong; `null` for nothing. Can be replaced: {@link V2Proxy.setFaults}. */
  readonly faults?: (write: SeenWrite) => Fault | null;
  /** Bodies above this many bytes, unpacked, are answered with 413. */
  readonly maxBytes?: number;
}

export interface V2Proxy extends AsyncDisposable {
  /** For `influx.url`. */
  readonly url: string;
  /**
   * Opens a connection for a sink that sends each write straight to the database, in the words of version 1, as long as
   * nothing is to go wrong: thousands of small writes take the half of the time. All else comes through the proxy.
   */
  connect(token: string): Send;
  /** Every write that had the right token, in order. */
  readonly writes: readonly SeenWrite[];
  /** The fault from now on; `null` for none. */
  setFaults(faults: ((write: SeenWrite) => Fault | null) | null): void;
  /** Connections to it are refused until `resume`, as those to a database that does not run. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  close(): Promise<void>;
}

/** Listens on a free port of loopback. Databases of the upstream are its buckets; `db/rp` names a retention policy. */
export async function startV2Proxy(options: V2ProxyOptions): Promise<V2Proxy> {
  const writes: SeenWrite[] = [];
  let faults = options.faults ?? null;
  const server = createServer((request, response) => {
    const found = (write: Omit<SeenWrite, 'nth'>): Fault | null => {
      const seen = Object.assign(write, { nth: writes.length });
      writes.push(seen);
      return faults?.(seen) ?? null;
    };
    answer(request, response, { ...options, found }).catch(() => response.destroy());
  });
  const listen = async (at: number): Promise<void> =>
    await new Promise((resolve) => server.listen(at, '127.0.0.1', resolve));
  await listen(0);
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    writes,
    connect: (token) => {
      const through = createConnection({ url, token });
      const straight = connectStraight(options);
      return async (call, signal) =>
        (faults === null && server.listening ? await straight(call, signal) : null) ?? (await through(call, signal));
    },
    setFaults: (next) => {
      faults = next;
    },
    pause: close,
    resume: async () => await listen(port),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/**
 * @returns what sends a write past the proxy; it answers nothing where the proxy has to do more than to pass it on, and
 *   where no answer came: to write the same again does no harm.
 */
function connectStraight({ upstream, maxBytes }: V2ProxyOptions) {
  const post = typeof upstream === 'string' && maxBytes === undefined ? openPost(upstream) : null;
  return async (call: DatabaseCall, signal: AbortSignal): Promise<ServerAnswer | null> => {
    const { pathname, searchParams } = new URL(call.path, 'http://proxy');
    const path = pathname === WRITE_PATH ? version1Path(searchParams) : null;
    if (post === null || path === null) return null;
    try {
      const { status, headers, body } = await post(path, await postedOf(call.body), signal);
      const [status2, body2] = asVersion2(status, messageOf(body));
      return { status: status2, headers, body: body2 };
    } catch {
      return null;
    }
  };
}

async function postedOf(body: DatabaseCall['body']): Promise<Posted> {
  const isPacked = typeof body !== 'string' && 'gzip' in body;
  return { body: isPacked ? await body.gzip : body, isPacked };
}

interface Site extends V2ProxyOptions {
  readonly found: (write: Omit<SeenWrite, 'nth'>) => Fault | null;
}

async function answer(request: IncomingMessage, response: ServerResponse, site: Site): Promise<void> {
  const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://proxy');
  const body = await bodyOf(request);
  if (pathname === '/health') return reply(response, 200, '{"name":"influxdb","status":"pass"}');
  if (pathname === '/ping') return reply(response, 204, '');
  if (request.headers.authorization !== `Token ${site.token}`) return replyFault(response, FAULTS.unauthorized);
  if (pathname === '/query') return await passQuery(request, response, { upstream: String(site.upstream), body });
  if (pathname !== WRITE_PATH || request.method !== 'POST') return reply(response, 404, '404 page not found');
  const isPacked = request.headers['content-encoding'] === 'gzip';
  const write: Omit<SeenWrite, 'nth'> = {
    // Most writes are only passed on: the lines of a write are unpacked on demand.
    get lines() {
      return linesOf(body, isPacked);
    },
    headers: request.headers,
    query,
  };
  const fault = site.found(write);
  if (fault !== null && fault.kind !== 'apply-and-cut') return replyFault(response, fault);
  if (site.maxBytes !== undefined && unpacked(body, isPacked).length > site.maxBytes) {
    return reply(response, 413, '{"code":"request too large","message":"points batch is too large"}');
  }
  const { status, message } = await writeTo(site, write, { query, body, isPacked });
  if (fault !== null) response.destroy();
  else reply(response, ...asVersion2(status, message));
}

/** Everything that comes; by its events, which cost a small body less than a loop over the stream does. */
async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  message.on('data', (chunk: Buffer) => chunks.push(chunk));
  message.on('end', () => resolve(Buffer.concat(chunks)));
  message.on('error', reject);
  return await promise;
}

function unpacked(body: Buffer, isPacked: boolean): Buffer {
  return isPacked ? gunzipSync(body) : body;
}

function linesOf(body: Buffer, isPacked: boolean): readonly string[] {
  const text = unpacked(body, isPacked).toString('utf8');
  return text.split('\n').filter((line) => line !== '');
}

async function writeTo({ upstream }: Site, write: Pick<SeenWrite, 'lines'>, packed: Packed): Promise<UpstreamAnswer> {
  if (typeof upstream === 'string') return await passWrite(upstream, packed);
  return upstream(packed.query.get('bucket') ?? '', write.lines);
}

function reply(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' });
  response.end(status === 204 ? undefined : body);
}

function replyFault(response: ServerResponse, fault: Fault): void {
  switch (fault.kind) {
    case 'answer':
      response.writeHead(fault.status, { 'content-type': 'application/json; charset=utf-8', ...fault.headers });
      response.end(fault.body);
      return;
    case 'cut':
    case 'apply-and-cut':
      response.destroy();
      return;
    case 'hang':
      return;
  }
}

interface Packed {
  readonly query: URLSearchParams;
  readonly body: Buffer;
  readonly isPacked: boolean;
}

/** Version 1 accepts any precision silently, so only its own names may reach it. */
const PRECISIONS: Readonly<Record<string, string>> = { ns: 'n', us: 'u', ms: 'ms', s: 's' };

const WRITE_PATH = '/api/v2/write';

/** The write endpoint of version 1; `null` for a precision that there is not. */
function version1Path(query: URLSearchParams): string | null {
  const [db = '', rp = ''] = (query.get('bucket') ?? '').split('/');
  const precision = PRECISIONS[query.get('precision') ?? 'ns'];
  if (precision === undefined) return null;
  return `/write?${new URLSearchParams({ db, precision, ...(rp === '' ? {} : { rp }) })}`;
}

/** The content of an answer of version 1. */
function messageOf(body: string): string {
  return body === '' ? '' : String((JSON.parse(body) as { error?: unknown }).error);
}

async function passWrite(upstream: string, { query, body, isPacked }: Packed): Promise<UpstreamAnswer> {
  const path = version1Path(query);
  if (path === null) return { status: 400, message: 'invalid precision' };
  const headers: Record<string, string> = isPacked ? { 'content-encoding': 'gzip' } : {};
  try {
    const { status, text } = await send(`${upstream}${path}`, { method: 'POST', headers, body });
    return { status, message: messageOf(text) };
  } catch {
    return { status: 503, message: 'the database does not answer' };
  }
}

/** Version 1's answer in the format of version 2, which reports a partial write with 422. */
export function asVersion2(status: number, message: string): [number, string] {
  if (status === 204) return [204, ''];
  const isPartial = status === 400 && message.startsWith('partial write: ') && !message.includes('unable to parse');
  if (isPartial) return [422, error('unprocessable entity', `failure writing points to database: ${message}`)];
  const codes: Readonly<Record<number, string>> = {
    400: 'invalid',
    404: 'not found',
    413: 'request too large',
    503: 'unavailable',
  };
  return [status, error(codes[status] ?? 'internal error', message)];
}

function error(code: string, message: string): string {
  return JSON.stringify({ code, message });
}

/** InfluxQL is the same in all versions: it passes as it is, for what reads back through the same URL. */
async function passQuery(
  request: IncomingMessage,
  response: ServerResponse,
  { upstream, body }: { readonly upstream: string; readonly body: Buffer },
): Promise<void> {
  const method = request.method ?? 'GET';
  const headers = { 'content-type': request.headers['content-type'] ?? 'application/x-www-form-urlencoded' };
  const asked = await send(`${upstream}${request.url ?? ''}`, { method, headers, body }).catch(() => null);
  if (asked === null) reply(response, 503, error('unavailable', 'the database does not answer'));
  else reply(response, asked.status, asked.text);
}

interface Sent {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Connections to the database stay open: thousands of small writes follow each other. */
const agent = new Agent({ keepAlive: true });

/** Queries the database. Rejects where it does not answer; a connection that it has closed meanwhile is opened anew. */
async function send(url: string, sent: Sent): Promise<{ readonly status: number; readonly text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const { method, headers, body } = sent;
  const length = method === 'GET' ? {} : { 'content-length': body.length };
  const request = openRequest(url, { method, agent, headers: { ...headers, ...length } }, resolve);
  request.on('error', reject).end(method === 'GET' ? undefined : body);
  try {
    const answer = await promise;
    return { status: answer.statusCode ?? 0, text: (await bodyOf(answer)).toString('utf8') };
  } catch (error) {
    if (request.reusedSocket && (error as NodeJS.ErrnoException).code === 'ECONNRESET') return await send(url, sent);
    throw error;
  }
}

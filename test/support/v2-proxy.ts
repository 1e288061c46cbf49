/**
 * A stand-in for InfluxDB 2: `/api/v2/write` in front of a real InfluxDB 1.6, with faults on demand.
 *
 * It checks the token, turns bucket and precision into what version 1 calls them, passes the body on as it came
 * (compressed or not) and turns the answer into version 2's. So what a test sees stored was stored by a real database.
 */
import { Agent, createServer, type IncomingMessage, request as openRequest, type ServerResponse } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';

/** What happens to one write instead of what should. */
export type Fault =
  /** Answered without asking the database. */
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

/** What the database behind the proxy says to a write, in the words of version 1. */
export interface UpstreamAnswer {
  readonly status: number;
  readonly message: string;
}

export interface V2ProxyOptions {
  /** Base URL of the InfluxDB behind it, or what takes the lines in its place. */
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
  /** Every write that had the right token, in order. */
  readonly writes: readonly SeenWrite[];
  /** What goes wrong from now on; `null` for nothing. */
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
      const seen = { nth: writes.length, ...write };
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
  return {
    url: `http://127.0.0.1:${port}`,
    writes,
    setFaults: (next) => {
      faults = next;
    },
    pause: close,
    resume: async () => await listen(port),
    close,
    [Symbol.asyncDispose]: close,
  };
}

interface Site extends V2ProxyOptions {
  readonly found: (write: Omit<SeenWrite, 'nth'>) => Fault | null;
}

async function answer(request: IncomingMessage, response: ServerResponse, site: Site): Promise<void> {
  const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://proxy');
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  if (pathname === '/health') return reply(response, 200, '{"name":"influxdb","status":"pass"}');
  if (pathname === '/ping') return reply(response, 204, '');
  if (request.headers.authorization !== `Token ${site.token}`) return replyFault(response, FAULTS.unauthorized);
  if (pathname === '/query') return await passQuery(request, response, { upstream: String(site.upstream), body });
  if (pathname !== '/api/v2/write' || request.method !== 'POST') return reply(response, 404, '404 page not found');
  const isPacked = request.headers['content-encoding'] === 'gzip';
  const text = (isPacked ? gunzipSync(body) : body).toString('utf8');
  const lines = text.split('\n').filter((line) => line !== '');
  const fault = site.found({ lines, headers: request.headers, query });
  if (fault !== null && fault.kind !== 'apply-and-cut') return replyFault(response, fault);
  if (Buffer.byteLength(text) > (site.maxBytes ?? Number.POSITIVE_INFINITY)) {
    return reply(response, 413, '{"code":"request too large","message":"points batch is too large"}');
  }
  const { status, message } = await writeTo(site, lines, { query, body, isPacked });
  if (fault !== null) response.destroy();
  else reply(response, ...asVersion2(status, message));
}

async function writeTo({ upstream }: Site, lines: readonly string[], packed: Packed): Promise<UpstreamAnswer> {
  if (typeof upstream === 'string') return await passWrite(upstream, packed);
  return upstream(packed.query.get('bucket') ?? '', lines);
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

/** Version 1 takes any precision without a word, so only its own names may reach it. */
const PRECISIONS: Readonly<Record<string, string>> = { ns: 'n', us: 'u', ms: 'ms', s: 's' };

async function passWrite(upstream: string, { query, body, isPacked }: Packed): Promise<UpstreamAnswer> {
  const [db = '', rp = ''] = (query.get('bucket') ?? '').split('/');
  const precision = PRECISIONS[query.get('precision') ?? 'ns'];
  if (precision === undefined) return { status: 400, message: 'invalid precision' };
  const target = `${upstream}/write?${new URLSearchParams({ db, precision, ...(rp === '' ? {} : { rp }) })}`;
  const headers: Record<string, string> = isPacked ? { 'content-encoding': 'gzip' } : {};
  try {
    const { status, text } = await send(target, { method: 'POST', headers, body });
    return { status, message: text === '' ? '' : String((JSON.parse(text) as { error?: unknown }).error) };
  } catch {
    return { status: 503, message: 'the database does not answer' };
  }
}

/** Version 1's answer in the words of version 2, which tells what it took a part of by 422. */
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

/** Asks the database. Rejects where it does not answer; a connection that it has closed meanwhile is opened anew. */
async function send(url: string, sent: Sent): Promise<{ readonly status: number; readonly text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const { method, headers, body } = sent;
  const length = method === 'GET' ? {} : { 'content-length': body.length };
  const request = openRequest(url, { method, agent, headers: { ...headers, ...length } }, resolve);
  request.on('error', reject).end(method === 'GET' ? undefined : body);
  try {
    const answer = await promise;
    return { status: answer.statusCode ?? 0, text: await textOf(answer) };
  } catch (error) {
    if (request.reusedSocket && (error as NodeJS.ErrnoException).code === 'ECONNRESET') return await send(url, sent);
    throw error;
  }
}

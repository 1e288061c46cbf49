/**
 * A server on loopback that misbehaves to order: what each request gets is a script on its raw socket.
 *
 * The scripts of `answers` are used up in order; the last one stays. Also a client of such a server.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { createHttpTransport, type HttpTransportOptions } from '../../../src/api/transport.ts';
import { TransportError } from '../../../src/core/faults.ts';
import type { HttpAnswer } from '../../../src/core/ports.ts';

/** The key that every request carries, and no error may show. */
export const KEY = 'tm_canary_4711';

export const NEVER = new AbortController().signal;

/** The handling of one request: its head as text, and the socket. */
export type Script = (socket: Socket, head: string) => void;

export interface OddServer extends AsyncDisposable {
  readonly url: string;
  /** The heads of all requests so far. */
  readonly heads: readonly string[];
  /** How many connections were made. */
  connections(): number;
}

export async function startOddServer(...answers: readonly Script[]): Promise<OddServer> {
  const heads: string[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    let text = '';
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
        const head = text.slice(0, end);
        text = text.slice(end + 4);
        const script = answers[Math.min(heads.length, answers.length - 1)];
        heads.push(head);
        script?.(socket, head);
      }
    });
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    heads,
    connections: () => connections,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Starts listening on a free port of loopback. */
export async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the server has no port');
  return address.port;
}

/** A complete answer. */
export function answer(
  body: string | Uint8Array,
  { status = 200, headers = {} as Record<string, string> } = {},
): Script {
  return (socket) => {
    const bytes = Buffer.from(body);
    socket.write(
      head(status, { 'content-type': 'application/json', 'content-length': String(bytes.length), ...headers }),
    );
    socket.write(bytes);
  };
}

/** The head of an answer, for scripts that go on by themselves. */
export function head(status: number, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Whatever\r\n${lines.join('')}\r\n`;
}

/** Sends one request over a transport of its own. */
export async function ask(
  url: string,
  options: Partial<HttpTransportOptions> = {},
  signal = NEVER,
): Promise<HttpAnswer> {
  const { transport, close } = createHttpTransport({ timeoutMs: 60_000, ...options });
  try {
    return await transport({ method: 'GET', url, headers: { authorization: `Bearer ${KEY}` } }, signal);
  } finally {
    await close();
  }
}

/** The failure of a request, which must not show the key. */
export async function failure(asked: Promise<unknown>): Promise<TransportError> {
  const error = await asked.then(
    () => new Error('it was answered'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof TransportError)) throw error;
  if (`${error.message} ${error.stack}`.includes(KEY)) throw new Error('the failure shows the key');
  return error;
}

export function textOf({ body }: HttpAnswer): string {
  return Buffer.from(body).toString();
}

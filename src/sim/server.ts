/** Serves the simulator over HTTP. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { linkAbort } from '../core/async.ts';
import { addressText } from '../core/text.ts';
import { MINUTE_MS } from '../core/time.ts';
import { BASE_PATH, exchange, type Pause, type Simulator } from './simulator.ts';

interface ServeOptions {
  /** 0, the default, takes a free port. */
  readonly port?: number;
  /** Default: `127.0.0.1`. */
  readonly host?: string;
}

/** A simulator that listens for HTTP requests. */
export interface SimServer {
  /** The base URL of the API; it ends in `/external/v1`. */
  readonly url: string;
  /** Ends all connections, answered or not. */
  close(): Promise<void>;
}

/** Longer than any client keeps an idle connection, so that no request meets a closing one by chance. */
const KEEP_ALIVE_MS = 2 * MINUTE_MS;

/** Serves a simulator. Rejects if the port cannot be opened. */
export async function serveSimulator(simulator: Simulator, options: ServeOptions = {}): Promise<SimServer> {
  const closing = new AbortController();
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
    answer(simulator, { request, response, closing: closing.signal }).catch((error: unknown) => {
      // The client has gone, or the server is closing. Any other error is a bug, and the client should see it.
      response.destroy(error instanceof Error ? error : undefined);
    });
  });
  server.listen(options.port ?? 0, options.host ?? '127.0.0.1');
  await once(server, 'listening');
  const { address, port } = server.address() as AddressInfo;
  return {
    url: `http://${addressText(address, port)}${BASE_PATH}`,
    async close() {
      closing.abort();
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

interface OpenRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly closing: AbortSignal;
}

async function answer(simulator: Simulator, { request, response, closing }: OpenRequest): Promise<void> {
  const link = linkAbort(closing);
  const { signal } = link;
  response.once('close', () => {
    link.release();
    link.abort(new Error('the client is gone'));
  });
  // No endpoint has a request body. One that is sent anyway is read and dropped.
  request.resume();
  const { method = '', url = '', headers } = request;
  const call = { method, target: url, headers: { authorization: headers.authorization } };
  const pause: Pause = (ms) => simulator.clock.sleep(ms, signal);
  const { answer: ready, send } = await exchange(simulator, call, pause);
  response.sendDate = false;
  if (send !== undefined) {
    await send(response, ready, pause);
    return;
  }
  const { status, headers: answered, body } = ready;
  response.writeHead(status, { ...answered, 'Content-Length': String(body.byteLength) });
  response.end(body);
}

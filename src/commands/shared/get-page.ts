/**
 * Requests a page from the HTTP server of a daemon on this machine.
 */
import { createRequire } from 'node:module';
import type { Listen } from '../../config/listen.ts';
import type { Secret } from '../../core/secret.ts';

// As in `influx/connection.ts`: an import would load a second HTTP client.
const { get }: typeof import('node:http') = createRequire(import.meta.url)('node:http');

/** The host to connect to. "Every address" cannot be connected to, so this machine replaces it. */
function connectableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

/**
 * Gets a page, with the password if one is given. Rejects if no page comes in time, or one with more than this many
 * characters.
 */
export function getPage(
  { host, port }: Listen,
  path: string,
  most: { readonly withinMs: number; readonly bytes: number },
  password: Secret | null = null,
): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(most.withinMs);
    const auth = password === null ? {} : { auth: `tidemark:${password.reveal()}` };
    const request = get({ host: connectableHost(host), port, path, agent: false, signal, ...auth }, (answer) => {
      let body = '';
      answer.setEncoding('utf8');
      answer.on('data', (piece: string) => {
        body += piece;
        if (body.length > most.bytes) request.destroy(new Error('the response is too large'));
      });
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body }));
      answer.on('error', reject);
    });
    request.on('error', reject);
  });
}

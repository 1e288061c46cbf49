/**
 * The database of a story behind the program's own client: in place of a connection it receives each request, answers
 * like InfluxDB 2, and applies the faults of the story. What the wire adds is tried by the stories of real processes.
 */
import { gunzipSync } from 'node:zlib';
import type { ServerAnswer } from '../../src/influx/answers.ts';
import type { DatabaseCall, Send } from '../../src/influx/connection.ts';
import { asVersion2, FAULTS, type Fault, type UpstreamAnswer } from '../support/v2-proxy.ts';

/** A database of a story. */
interface DatabaseParts {
  /** The only token that is let in. */
  readonly token: string;
  /** The fault of the next write; `null` for none. */
  readonly fault: () => Fault | null;
  readonly write: (bucket: string, body: string) => UpstreamAnswer;
}

/** Opens connections to it. */
export function openDatabase(parts: DatabaseParts): (token: string) => Send {
  return (token) => async (call, signal) => {
    const text = await textOf(call.body);
    signal.throwIfAborted();
    return token === parts.token ? answer(parts, call.path, text) : answerOf(FAULTS.unauthorized);
  };
}

async function textOf(body: DatabaseCall['body']): Promise<string> {
  return typeof body === 'string' || !('gzip' in body) ? String(body) : gunzipSync(await body.gzip).toString();
}

/** @throws Error where no answer comes. */
function answer({ fault, write }: DatabaseParts, path: string, text: string): ServerAnswer {
  const { pathname, searchParams } = new URL(path, 'http://database.test');
  if (pathname !== '/api/v2/write') return { status: 404, headers: {}, body: '404 page not found' };
  const now = fault();
  if (now?.kind === 'answer') return answerOf(now);
  if (now?.kind === 'cut' || now?.kind === 'hang') throw hungUp();
  const { status, message } = write(searchParams.get('bucket') ?? '', text);
  if (now?.kind === 'apply-and-cut') throw hungUp();
  const [code, body] = asVersion2(status, message);
  return { status: code, headers: JSON_HEADERS, body };
}

const JSON_HEADERS = { 'content-type': 'application/json; charset=utf-8' };

function answerOf({ status, headers, body = '' }: Extract<Fault, { kind: 'answer' }>): ServerAnswer {
  return { status, headers: { ...JSON_HEADERS, ...headers }, body };
}

/** The error of Node for a connection that was cut. */
function hungUp(): Error {
  return Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
}

/**
 * Reads from a database: one GET request, whose answer is handled line by line as it arrives and never kept completely.
 *
 * It uses the same agents, proxies, certificates and tokens as writing (`connection.ts`). The client's transport is not
 * used because it collects the complete answer. The deadline applies to silence: an answer may take long as long as
 * data keeps arriving.
 */
import type { IncomingMessage, RequestOptions } from 'node:http';
import { StringDecoder } from 'node:string_decoder';
import { type JsonRecord, parseJson } from '../core/json.ts';
import type { DestinationKind } from '../core/lines/dialect.ts';
import type { ReadProblem } from '../core/state/verify.ts';
import { plainText, serverAnswerText, withStep } from '../core/text.ts';
import { type Conceal, concealing, describeFailure, type SettingNames, settingNames } from './answers.ts';
import { basicAuthorization, clientUrl, openAgent, requestFunctionFor } from './connection.ts';
import type { InfluxSinkOptions } from './sink.ts';

/** The longest line of an answer, because answers are requested in pieces. */
const MAX_LINE_CHARS = 32 * 1024 * 1024;

/** How much of an error message is read. */
const MAX_MESSAGE_BYTES = 64 * 1024;

/**
 * Handles a line of an answer.
 *
 * @returns the problem that ends the reading; `null` to continue
 */
type TakeLine = (line: string) => ReadProblem | null;

/**
 * Sends a request and passes on the answer line by line.
 *
 * @returns the problem that ended the reading; `null` for none
 * @throws the signal's reason when that aborts
 */
export type ReadLines = (path: string, take: TakeLine, signal: AbortSignal) => Promise<ReadProblem | null>;

interface ReaderOptions extends InfluxSinkOptions {
  readonly kind: DestinationKind;
  readonly basic?: boolean;
}

/**
 * Creates the function that reads.
 *
 * @param options with `basic`, as for VictoriaMetrics, `user:password` is sent by HTTP basic authentication
 * @throws UserError (exit code 78) if a proxy variable is not a URL
 */
export function createReader(options: ReaderOptions): ReadLines {
  const { kind, basic = kind === 'victoriametrics', timeoutMs, ca, proxies } = options;
  const influx = settingNames(options.name);
  const base = clientUrl(options.url);
  const agent = openAgent(base, { ca, proxies });
  const token = options.token?.reveal() ?? '';
  const conceal = concealing(token);
  const authorization = (basic ? basicAuthorization(token) : null) ?? `Token ${token}`;
  const headers = { accept: 'application/json', ...(token === '' ? {} : { authorization }) };
  const begin = requestFunctionFor(base);
  return async (path, take, signal) => {
    signal.throwIfAborted();
    try {
      const answer = await answerTo(begin, `${base}${path}`, { agent, headers, signal, timeoutMs });
      if (answer.statusCode !== 200)
        return await readProblem(answer, { conceal, hintFor: (status) => HINTS[kind](status, influx) });
      return await handOn(answer, take);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof Silence) return { kind: 'down', message: `no answer within ${influx.timeout}`, hint: '' };
      const { message, hint } = describeFailure(error, influx);
      return { kind: 'down', message: withStep(message, hint), hint: '' };
    }
  };
}

class Silence extends Error {}

interface GetOptions extends Pick<RequestOptions, 'agent' | 'headers' | 'signal'> {
  readonly timeoutMs: number;
}

async function answerTo(
  begin: ReturnType<typeof requestFunctionFor>,
  url: string,
  { timeoutMs, ...options }: GetOptions,
): Promise<IncomingMessage> {
  return await new Promise((resolve, reject) => {
    // The timeout limits the silence of the socket, before and during the answer.
    const request = begin(url, { ...options, timeout: timeoutMs, method: 'GET' }, (answer) => {
      // The answer is destroyed first: its reader would otherwise get only the error of a closed connection.
      request.prependListener('timeout', () => answer.destroy(new Silence()));
      resolve(answer);
    });
    request.on('error', reject);
    request.on('timeout', () => request.destroy(new Silence()));
    request.end();
  });
}

async function handOn(answer: IncomingMessage, take: TakeLine): Promise<ReadProblem | null> {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  for await (const chunk of answer) {
    const lines = decoder.write(chunk as Buffer).split('\n');
    // Only the new part is searched. Otherwise an answer without line breaks would be searched again with every chunk.
    lines[0] = rest + (lines[0] ?? '');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const problem = line === '' ? null : take(line);
      // Leaving the loop closes the connection.
      if (problem !== null) return problem;
    }
    if (rest.length > MAX_LINE_CHARS) return TOO_LONG;
  }
  rest += decoder.end();
  return rest.trim() === '' ? null : take(rest);
}

const TOO_LONG: ReadProblem = {
  kind: 'rejected',
  message: 'the response is not chunked as requested, and too long to be read at once',
  hint: 'check the proxy between Tidemark and the database: it must not buffer responses',
};

/** The message of the server, and the remedy. */
async function readProblem(
  answer: IncomingMessage,
  { conceal, hintFor }: { readonly conceal: Conceal; readonly hintFor: (status: number) => string },
): Promise<ReadProblem> {
  let body = '';
  for await (const chunk of answer) {
    body += (chunk as Buffer).toString('utf8');
    if (body.length > MAX_MESSAGE_BYTES) break;
  }
  const status = answer.statusCode ?? 0;
  const text = messageIn(body);
  const message = serverAnswerText(status, plainText(conceal(text), 180));
  if (FILE_LIMIT.test(text)) {
    return { kind: 'rejected', message, hint: FILE_LIMIT_HINT, isTooWide: true };
  }
  if (status >= 500 || status === 429 || status === 408) return { kind: 'down', message, hint: '' };
  return { kind: 'rejected', message, hint: hintFor(status) };
}

/** InfluxDB 3 Core plans no query that would read more than 432 files, and answers 500. */
const FILE_LIMIT = /exceed file limit/i;

const FILE_LIMIT_HINT =
  'start InfluxDB 3 with a larger --query-file-limit, or request a shorter range (--from, --to): the query reads too many files';

function messageIn(body: string): string {
  const { error, message } = { ...(parseJson(body) as JsonRecord | null) };
  return typeof error === 'string' ? error : typeof message === 'string' ? message : body;
}

/** The rights that reading needs in addition to those for writing. */
export const mayRead = (influx: SettingNames): string =>
  `${influx.token} needs read permission for ${influx.bucket} as well: give the token that permission (InfluxDB 2 and 3), or GRANT READ (or ALL) on the database to its user (1.8)`;

function influxHint(status: number, influx: SettingNames): string {
  if (status === 401 || status === 403) return mayRead(influx);
  if (status === 404) {
    return `${influx.url}, ${influx.bucket}: the server answers no queries for that bucket. ${mayRead(influx)}; some versions of InfluxDB 2 (an early 2.x, InfluxDB Cloud) also need a DBRP mapping for the bucket: create one as docs/databases.md shows`;
  }
  return `${influx.url}: the server does not accept queries. ${mayRead(influx)}`;
}

function victoriaHint(status: number, influx: SettingNames): string {
  return status === 401 || status === 403
    ? `${influx.token}: the server does not let this user read`
    : `${influx.url}: the server does not answer the export of VictoriaMetrics at this address; it is http://host:8428, of a cluster that of a proxy to vminsert and vmselect (docs/schema.md)`;
}

const HINTS: Readonly<Record<DestinationKind, (status: number, influx: SettingNames) => string>> = {
  influxdb: influxHint,
  victoriametrics: victoriaHint,
};

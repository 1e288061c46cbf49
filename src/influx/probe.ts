/**
 * Asks a database what it is and whether it would take points: by a write without a point, with the token that is
 * configured, unless a point is wanted. What else it tells (version, retention, deduplication) it may refuse: then it is
 * not known, and no fault.
 */

import type { DestinationKind } from '../core/lines/dialect.ts';
import type { DestinationFacts, WriteAnswer } from '../core/ports.ts';
import type { ServerAnswer } from './answers.ts';
import { createUnknownServer, readMarks } from './kind.ts';
import { createTalk, type InfluxSinkOptions, type Talk, writePath } from './sink.ts';
import { readBucketRetention, readFlags, readRetentionPolicies } from './told.ts';

export interface ProbeOptions extends InfluxSinkOptions {
  /** As configured. */
  readonly kind: 'auto' | DestinationKind;
  /** A point to be written, as a line for each kind; `null`: none. */
  readonly point: Readonly<Record<DestinationKind, string>> | null;
}

/** Asks. Throws only the signal's reason, when that aborts, and as `createInfluxSink` does. */
export async function probeDestination(options: ProbeOptions, signal: AbortSignal): Promise<DestinationFacts> {
  const asked = options.kind === 'auto' ? await createUnknownServer(options).ask(signal) : null;
  if (asked !== null && asked.kind !== 'known') return { ...NOTHING, write: asked };
  const configured = asked?.kind === 'known' ? asked.server : options.kind === 'auto' ? 'influxdb' : options.kind;
  const talk = createTalk(options, configured);
  const line = options.point?.[configured] ?? null;
  const call = {
    method: 'POST',
    path: writePath(options, configured),
    body: line === null ? '' : `${line}\n`,
  } as const;
  const answer = await talk.ask(call, signal);
  if ('kind' in answer) return { ...NOTHING, write: answer };
  const isPoint = line !== null;
  const write = isPoint ? talk.read(answer, signal) : readEmpty(answer, talk, signal);
  const marked = readMarks(answer);
  // A page of something else is no database for not saying so.
  const unmarked = write.kind === 'accepted' ? configured : null;
  const kind = marked?.kind === 'known' ? marked.server : unmarked;
  if (kind === null) return { ...NOTHING, write, isPoint };
  const told = await (kind === 'victoriametrics' ? askVictoria(talk, signal) : askInflux(talk, options, signal));
  return { kind, write, isPoint, ...told, version: told.version ?? versionIn(answer) };
}

type Told = Pick<DestinationFacts, 'version' | 'retentionMs' | 'dedupMs'>;

const NOTHING = { kind: null, version: null, isPoint: false, retentionMs: null, dedupMs: null } as const;

/** InfluxDB 2 looks at the token and the bucket first, and then finds that nothing was sent: all is well then. */
function readEmpty(answer: ServerAnswer, talk: Talk, signal: AbortSignal): WriteAnswer {
  const { status, body } = answer;
  if (status === 400 && /"message"\s*:\s*"[^"]*writing requires points/.test(body)) return { kind: 'accepted' };
  return talk.read(answer, signal);
}

function versionIn({ headers }: ServerAnswer): string | null {
  const told = headers['x-influxdb-version'];
  return typeof told === 'string' && /^[\w.+~-]{1,40}$/.test(told) ? told : null;
}

async function askVictoria(talk: Talk, signal: AbortSignal): Promise<Told> {
  const metrics = await body(talk, '/metrics', signal);
  const flags = await body(talk, '/flags', signal);
  return readFlags({ metrics, flags });
}

async function askInflux(talk: Talk, { org, bucket }: InfluxSinkOptions, signal: AbortSignal): Promise<Told> {
  const name = new URLSearchParams({ name: bucket, ...(org === '' ? {} : { org }) });
  const ofBucket = readBucketRetention(await body(talk, `/api/v2/buckets?${name}`, signal), bucket);
  if (ofBucket !== null) return { version: null, retentionMs: ofBucket, dedupMs: null };
  const [db = '', policy = ''] = bucket.split('/');
  const q = `SHOW RETENTION POLICIES ON "${db.replaceAll(/["\\]/g, '\\$&')}"`;
  const policies = await body(talk, `/query?${new URLSearchParams({ db, q })}`, signal);
  return { version: null, retentionMs: readRetentionPolicies(policies, policy), dedupMs: null };
}

/** What is told at a path; `null` where nothing is. */
async function body(talk: Talk, path: string, signal: AbortSignal): Promise<string | null> {
  const answer = await talk.ask({ method: 'GET', path, body: '' }, signal);
  return 'status' in answer && answer.status === 200 ? answer.body : null;
}

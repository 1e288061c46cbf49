/**
 * What kind of database answers at an address: an InfluxDB of any version, or VictoriaMetrics, which speaks the same
 * write protocol but keeps other things.
 *
 * It is asked the way it will be written to, by a write without a point, with the token that is configured and no other
 * right. Every InfluxDB since 1.4 names its build in each answer; VictoriaMetrics names its host, or claims to be
 * InfluxDB 1.8.0 without a build, which no real one does (seen on InfluxDB 1.6.7 and VictoriaMetrics 1.79.5).
 */
import type { KindAnswer, UnknownServer } from '../core/ports.ts';
import type { ServerAnswer } from './answers.ts';
import { createInfluxSink, createTalk, type InfluxSinkOptions, type Talk, writePath } from './sink.ts';

/** A database of the kind `auto`. @throws TypeError as `createInfluxSink` does. */
export function createUnknownServer(options: InfluxSinkOptions): UnknownServer {
  const talk = createTalk(options, 'influxdb');
  const path = writePath(options, 'influxdb');
  return {
    ask: async (signal) => {
      signal.throwIfAborted();
      const answer = await talk.ask({ method: 'POST', path, body: '' }, signal);
      if ('kind' in answer) return answer;
      const marked = readMarks(answer);
      if (marked !== null) return marked;
      const said = talk.read(answer, signal);
      // What stands in the way of every write stands in the way of this one.
      if (said.kind === 'held' && answer.status !== 405) return said;
      if (said.kind === 'later' && answer.status !== 400 && answer.status !== 422) return said;
      return await askForBuild(talk, signal);
    },
    sinkFor: (kind) => createInfluxSink(options, kind),
  };
}

/** @returns `null` where the headers tell nothing. */
export function readMarks({ headers }: ServerAnswer): KindAnswer | null {
  if (headers['x-influxdb-build'] !== undefined) return { kind: 'known', server: 'influxdb' };
  const isVictoria = headers['x-server-hostname'] !== undefined || headers['x-influxdb-version'] === '1.8.0';
  return isVictoria ? { kind: 'known', server: 'victoriametrics' } : null;
}

/**
 * For what takes writes and names nothing, as behind a proxy that takes headers out: VictoriaMetrics answers as
 * Prometheus does, which no InfluxDB knows. Anything else is taken for an InfluxDB.
 */
async function askForBuild(talk: Talk, signal: AbortSignal): Promise<KindAnswer> {
  const answer = await talk.ask({ method: 'GET', path: '/api/v1/status/buildinfo', body: '' }, signal);
  if ('kind' in answer) return answer;
  const marked = readMarks(answer);
  if (marked !== null) return marked;
  const said = talk.read(answer, signal);
  if (said.kind === 'later' && answer.status !== 400) return said;
  const isPrometheus = answer.status === 200 && /^\s*\{\s*"status"\s*:\s*"success"/.test(answer.body);
  return { kind: 'known', server: isPrometheus ? 'victoriametrics' : 'influxdb' };
}

/**
 * Answers as they stand on the wire: status, headers, body.
 *
 * Every one carries `X-RateLimit-Limit` and `X-RateLimit-Remaining` (API document, "Endpoints"), except a page in HTML,
 * which is not the service's.
 */
import type { EpochMs } from '../core/time.ts';
import type { AllowanceState, WindowState } from './allowance.ts';
import type { SimPage } from './faults.ts';
import type { Seed } from './random.ts';
import { dress, type Member, objectText } from './records.ts';
import type { Refusal } from './refusal.ts';
import type { SimSettings } from './settings.ts';

export interface SimAnswer {
  readonly status: number;
  /** With the names as they are usually written. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** A page as JSON text. */
export function pageText({ kind, deviceId, records, nextCursor }: SimPage, seed: Seed, settings: SimSettings): string {
  if (kind === 'device' || kind === 'alert' || kind === 'account') return records[0] ?? '{}';
  const members: Member[] = [['data', `[${records.join(',')}]`]];
  if (deviceId !== null) members.unshift(['device_id', JSON.stringify(deviceId)]);
  if (nextCursor !== null) members.push(['next_cursor', JSON.stringify(nextCursor)]);
  const required = ['data', 'next_cursor'];
  return objectText(dress(members, `page ${kind} ${deviceId}`, { seed, surprises: settings.surprises, required }));
}

/** The body of a refusal: a single member `error`, with additive members of its code. */
export function refusalText(refusal: Refusal, seed: Seed, settings: SimSettings): string {
  const members: Member[] = [
    ['code', JSON.stringify(refusal.code)],
    ['message', JSON.stringify(refusal.message)],
  ];
  if (refusal.requiredScope !== null) members.push(['required_scope', JSON.stringify(refusal.requiredScope)]);
  const { historyMaxDays } = settings.plan;
  if (settings.codes.withMaxDays.includes(refusal.code) && historyMaxDays !== null) {
    members.push(['max_days', String(historyMaxDays)]);
  }
  const required = members.map(([name]) => name);
  const dressed = dress(members, `error ${refusal.code}`, { seed, surprises: settings.surprises, required });
  return objectText([['error', objectText(dressed)]]);
}

/** An answer in JSON. */
export function jsonAnswer(status: number, body: string, headers: Readonly<Record<string, string>>): SimAnswer {
  return { status, headers: { 'Content-Type': 'application/json', ...headers }, body: Buffer.from(body) };
}

/** A page from something in front of the service. */
export function htmlAnswer(status: number): SimAnswer {
  const body = `<html>\r\n<head><title>${status} Bad Gateway</title></head>\r\n<body><h1>Bad Gateway</h1></body>\r\n</html>\r\n`;
  return { status, headers: { 'Content-Type': 'text/html' }, body: Buffer.from(body) };
}

/** `X-RateLimit-*` of the window that the settings name ("Limits" 1 and 2). */
export function allowanceHeaders({ minute, day }: AllowanceState, settings: SimSettings): Record<string, string> {
  const shown: Record<SimSettings['allowance']['headers'], WindowState> = {
    minute,
    day,
    tightest: day.left < minute.left ? day : minute,
  };
  const { limit, left } = shown[settings.allowance.headers];
  return { 'X-RateLimit-Limit': String(limit), 'X-RateLimit-Remaining': String(left) };
}

/** The headers that belong to a refusal: the challenge of 401, the wait of 429, the methods of 405. */
export function refusalHeaders(status: number, waitMs: number, { headerNames }: SimSettings): Record<string, string> {
  if (status === 401) return { [headerNames.challenge]: 'Bearer' };
  if (status === 429) return { [headerNames.wait]: String(Math.max(1, Math.ceil(waitMs / 1000))) };
  return status === 405 ? { Allow: 'GET' } : {};
}

/** The answer with the server's time of sending, or without one. */
export function dateAnswer(answer: SimAnswer, serverNowMs: EpochMs, { time }: SimSettings): SimAnswer {
  if (time.date === 'absent') return answer;
  return { ...answer, headers: { ...answer.headers, Date: new Date(serverNowMs + time.dateSkewMs).toUTCString() } };
}

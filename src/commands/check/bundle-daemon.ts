/**
 * What a running daemon tells of itself for a support bundle: its health, and its metrics, which know how long requests
 * and writes take, and what happened last. Asked over its own status page, on this machine.
 */
import { get } from 'node:http';
import type { Listen } from '../../config/listen.ts';
import type { RecentEvent } from '../../core/page-facts.ts';

/** What was answered; or why nothing was. */
export interface DaemonTold {
  readonly health: unknown;
  readonly ready: unknown;
  /** What happened last, the newest first, in the log's words: without what it tells beside them, which has names in it. */
  readonly events: readonly EventTold[];
  /** Lines of `/metrics`: those of Tidemark, none of a device. */
  readonly metrics: readonly string[];
}

type EventTold = Pick<RecentEvent, 'at' | 'level' | 'event' | 'message'>;

/** A page that does not come within this does not come. */
const WITHIN_MS = 5000;
const MOST_BYTES = 4 * 1024 * 1024;

/** Asks the daemon. @returns `null` where none answers there, or it is none. */
export async function askDaemon({ host, port }: Listen): Promise<DaemonTold | null> {
  if (port === 0) return null;
  const there = { host: reachable(host), port };
  try {
    const health = parsed(await page(there, '/healthz'));
    if (typeof health !== 'object' || health === null || !('healthy' in health)) return null;
    const ready = parsed(await page(there, '/readyz'));
    const metrics = (await page(there, '/metrics'))
      .split('\n')
      .filter((line) => /^(?:tidemark|process|nodejs)_/.test(line) && !line.includes('device_id='));
    return { health, ready, events: eventsOf(parsed(await page(there, '/events.json'))), metrics };
  } catch {
    return null;
  }
}

function eventsOf(served: unknown): EventTold[] {
  const list: unknown[] = Array.isArray(served) ? served : [];
  return list.filter(isEvent).map(({ at, level, event, message }) => ({ at, level, event, message }));
}

function isEvent(each: unknown): each is EventTold {
  return typeof each === 'object' && each !== null && 'event' in each && 'message' in each;
}

/** "Every address" is no place to go to: of these, this machine is one. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function page(there: { readonly host: string; readonly port: number }, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get({ ...there, path, agent: false, signal: AbortSignal.timeout(WITHIN_MS) }, (answer) => {
      let body = '';
      answer.setEncoding('utf8');
      answer.on('data', (piece: string) => {
        body += piece;
        if (body.length > MOST_BYTES) request.destroy(new Error('too long'));
      });
      answer.on('end', () => resolve(body));
      answer.on('error', reject);
    });
    request.on('error', reject);
  });
}

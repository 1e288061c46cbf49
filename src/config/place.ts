/**
 * `host:port`, read by itself: `--health` needs nothing else of the configuration, and is to be quick.
 */
import { isIPv6 } from 'node:net';
import type { Listen } from './values.ts';

/** IPv6 stands in brackets. @returns `null` for what is none. */
export function readPlace(text: string): Listen | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port > 65_535) return null;
  return match?.[1] !== undefined && !isIPv6(host) ? null : { host, port };
}

/**
 * `host:port`, in a file of its own: `--health` needs nothing else of the configuration, and is to be quick.
 */
import { isIPv6 } from 'node:net';

/** Where to listen. Port 0 takes a free one. */
export interface Listen {
  /** A name or an address; IPv6 without its brackets. */
  readonly host: string;
  readonly port: number;
}

/** Reads `host:port`, IPv6 in brackets. @returns `null` for anything else. */
export function parseListen(text: string): Listen | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port > 65_535) return null;
  return match?.[1] !== undefined && !isIPv6(host) ? null : { host, port };
}

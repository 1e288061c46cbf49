/**
 * Parses `host:port`. It has its own file because `--health` needs nothing else of the configuration and must be fast.
 */

/** The address to listen at. Port 0 means any free port. */
export interface Listen {
  /** A name or an address; IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
}

/**
 * Parses `host:port`, with IPv6 in brackets.
 *
 * @returns the address; `null` for anything else
 */
export function parseListen(text: string): Listen | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port > 65_535) return null;
  return match?.[1] !== undefined && !URL.canParse(`http://[${host}]`) ? null : { host, port };
}

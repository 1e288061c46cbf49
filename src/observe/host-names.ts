/**
 * Whether a request comes from another site through a browser of this machine.
 *
 * Who listens on this machine alone is still reached by every page that is open in a browser here: a site may have its own
 * name lead to 127.0.0.1 (DNS rebinding), and then its script reads what is served as if it were its own. A script reads
 * only what has its own name and port, so both stand in `Host`. Refused is no more than that: a public name with this
 * server's own port. A proxy has a port of its own or asks by address; who is reachable from elsewhere is asked by names
 * that nobody here knows, and answers to all.
 */
import { isIP } from 'node:net';

/** Where a server listens, as the system tells it, and what it is called. */
export interface OwnPlace {
  readonly address: string;
  readonly port: number;
  /** Names that are its own: that of the machine, that of `listen`. */
  readonly names: readonly string[];
}

/** Ends of names that nobody outside can have (RFC 6761, RFC 6762, ICANN's `internal`; `localdomain` by old custom). */
const NEVER_PUBLIC = new Set(['localhost', 'localdomain', 'local', 'internal']);

const HTTP_PORT = 80;

/** @param host the `Host` of a request. @returns whether it is a name that somebody outside may hold. */
export function isForeignHost(host: string | undefined, own: OwnPlace): boolean {
  if (!isLoopback(own.address)) return false;
  const [, name = '', port] = /^([^:[\]]+)(?::(\d+))?$/.exec(host ?? '') ?? [];
  const plain = name.toLowerCase().replace(/\.$/, '');
  // Names of one word come from this machine or its network alone.
  if (!plain.includes('.') || isIP(plain) !== 0) return false;
  if (Number(port ?? HTTP_PORT) !== own.port) return false;
  return !NEVER_PUBLIC.has(plain.split('.').at(-1) ?? '') && !own.names.some((each) => each.toLowerCase() === plain);
}

function isLoopback(address: string): boolean {
  return address === '::1' || /^(?:::ffff:)?127\./.test(address);
}

/**
 * Words for a request to a database that failed: our own, because what a server or a library says may quote the request,
 * and with it a token.
 */
import { SECRET_MARK } from '../core/secret.ts';
import { plainText } from '../core/text.ts';
import type { Conceal } from './answers.ts';

/** Why a request got no answer, by the code of the error: its message may quote anything. */
const FAILURES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the database refuses the connection: is it running, and is influx.url right?',
  ECONNRESET: 'the connection was cut before an answer came',
  EPIPE: 'the connection was cut before an answer came',
  ENOTFOUND: 'the host of influx.url is not known',
  EAI_AGAIN: 'the host of influx.url cannot be looked up just now',
  ETIMEDOUT: 'the host of influx.url does not answer',
  EHOSTUNREACH: 'the host of influx.url cannot be reached',
  ENETUNREACH: 'the network of influx.url cannot be reached',
  ERR_PROXY_TUNNEL:
    'the proxy (HTTPS_PROXY) opens no way to the database; where it is not meant for it, name its host in NO_PROXY',
  EPROTO: 'influx.url: what answers there does not speak TLS; http instead of https?',
  ERR_SSL_WRONG_VERSION_NUMBER: 'influx.url: what answers there does not speak TLS; http instead of https?',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate of the database is not trusted: set influx.ca_file',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate of the database is not trusted: set influx.ca_file',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'the certificate of the database is not trusted: set influx.ca_file',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'the certificate of the database is not trusted: set influx.ca_file',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate of the database is for another host than that of influx.url',
  CERT_HAS_EXPIRED: 'the certificate of the database has expired',
};

/** Why no answer came. */
export function failureWords(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
  return FAILURES[code] ?? `the request failed${code === '' ? '' : ` (${plainText(code, 60)})`}`;
}

/** The token, and of `user:password` the password, never reach a message, whoever quotes them. */
export function concealing(secret: string): Conceal {
  const password = secret.slice(secret.indexOf(':') + 1);
  const hidden = [secret, password].filter((text) => text.length >= 4);
  return (text) => hidden.reduce((left, part) => left.replaceAll(part, SECRET_MARK), text);
}

/** A text of ours with the keys of the section that configures this destination: `influx.url`, `destinations.b.url`. */
export function inSectionOf(name: string, text: string): string {
  return name === 'influx' ? text : text.replace(/\binflux\.(?=[a-z])/g, `destinations.${name}.`);
}

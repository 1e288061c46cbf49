/**
 * `--check`, the configuration: the mistakes of one that cannot be used; of one that can, what is set up carelessly.
 */

import type { Config, StateConfig } from '../../config/config.ts';
import { type CheckLine, type CheckNotes, createNotes } from '../../core/check.ts';
import { modeOf } from '../../store/look/place.ts';
import { keyOf } from './destination.ts';

export interface ConfigFacts {
  /** The file that was read; `null` where there is none. */
  readonly file: string | null;
  /** Mistakes, a line each; empty where it can be used. */
  readonly mistakes: readonly string[];
  /** As far as it can be used: with the API or without it. */
  readonly config: Config | StateConfig | null;
  /** The variables of the environment that hold a secret. */
  readonly secretVariables: readonly string[];
}

/** All lines on the configuration. */
export function configLines(facts: ConfigFacts): CheckLine[] {
  const { file, mistakes, config } = facts;
  const notes = createNotes('configuration');
  for (const mistake of mistakes) noteMistake(notes, mistake);
  const where = file === null ? 'no file: the environment alone' : file;
  if (mistakes.length === 0) notes.ok('values', `${where}; every value can be used`);
  if (config === null) return notes.lines;
  const places = placesOf(config);
  for (const place of places) noteSecret(notes, place, facts);
  for (const place of places) noteAddress(notes, place);
  const proxies = Object.keys(config.proxies).filter((name) => !/^no_proxy$/i.test(name));
  if (proxies.length > 0) notes.ok('proxy', `${proxies.join(', ')}: requests go that way, but to hosts in NO_PROXY`);
  return notes.lines;
}

/** `api.url (config.yaml, line 3): expected …` */
function noteMistake(notes: CheckNotes, mistake: string): void {
  const parts = /^([\w.-]{1,60}?)(?: \(([^)]*)\))?: (.*)$/s.exec(mistake);
  const [, name = 'file', place, words = mistake] = parts ?? [];
  notes.fail(name, {
    message: place === undefined ? words : `${words} (${place})`,
    remedy: 'Correct it; docs/configuration.md tells of every key.',
    exitCode: 78,
  });
}

/** Something with an address and a secret. */
interface SecretPlace {
  readonly urlKey: string;
  readonly url: string;
  readonly secretKey: string;
  readonly hasSecret: boolean;
  readonly file: string | null;
}

function placesOf(config: Config | StateConfig): SecretPlace[] {
  const { api } = config;
  const databases = [...(config.influx === null ? [] : [{ name: 'influx', ...config.influx }]), ...config.destinations];
  return [
    ...('key' in api
      ? [{ urlKey: 'api.url', url: api.url, secretKey: 'api.key', hasSecret: true, file: api.keyFile }]
      : []),
    ...databases.map(({ name, url, token, tokenFile }) => ({
      urlKey: keyOf(name, 'url'),
      url,
      secretKey: keyOf(name, 'token'),
      hasSecret: token !== null,
      file: tokenFile,
    })),
  ];
}

/** Where an orchestrator puts secrets, with permissions that are its own affair. */
const MOUNTED = /^\/(?:var\/)?run\/secrets\//;

function noteSecret(notes: CheckNotes, place: SecretPlace, { file, secretVariables }: ConfigFacts): void {
  if (!place.hasSecret) return;
  const variable = `TIDEMARK_${place.secretKey.toUpperCase().replaceAll('.', '_')}`;
  const isInline = place.file === null && !secretVariables.includes(variable);
  const path = place.file ?? (isInline ? file : null);
  if (path === null || MOUNTED.test(path)) return;
  const name = place.file === null ? place.secretKey : `${place.secretKey}_file`;
  const mode = modeOf(path);
  if (mode === null || (mode & 0o004) === 0) {
    notes.ok(name, `${path}: not every user can read it`);
    return;
  }
  notes.warn(name, {
    message: `${path}: every user of this machine can read it (0${mode.toString(8)})`,
    remedy: `chmod 600 ${/^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`}`,
  });
}

const LOOPBACK = /^(?:localhost|.*\.localhost|127(?:\.\d+){3}|\[::1\])$/;

function noteAddress(notes: CheckNotes, { urlKey, url, secretKey, hasSecret }: SecretPlace): void {
  const { protocol, hostname } = new URL(url);
  if (!hasSecret || protocol !== 'http:' || LOOPBACK.test(hostname)) return;
  notes.warn(urlKey, {
    message: `http:// to another host: whoever sees the traffic reads ${secretKey}`,
    remedy: `Set ${urlKey} to an address that begins with https://, if there is one.`,
  });
}

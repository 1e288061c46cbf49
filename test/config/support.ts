/** Loads a configuration from a file system and an environment that a test makes up. */
import { expect } from 'vitest';
import type { Config, Loaded } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { UserError } from '../../src/core/faults.ts';

export const NOW_MS = Date.UTC(2026, 10, 21);
export const PEM = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';

interface Given {
  readonly yaml?: string;
  readonly file?: string | null;
  readonly environment?: Record<string, string>;
  readonly files?: Record<string, string>;
}

/** A file system of the named files; `denied` may not be read and `folder` is none. */
export function reader({ yaml, files = {} }: Given): (path: string) => string {
  const all = new Map(Object.entries({ ...files, ...(yaml === undefined ? {} : { 'config/tidemark.yaml': yaml }) }));
  return (path) => {
    const text = all.get(path);
    if (text !== undefined) return text;
    const code = path === 'denied' ? 'EACCES' : path === 'folder' ? 'EISDIR' : 'ENOENT';
    throw Object.assign(new Error(`${code}: ${path}`), { code });
  };
}

export function load(given: Given): Loaded<Config> {
  const { file = null, environment = {} } = given;
  return loadConfig({ file, environment, readFile: reader(given), nowMs: NOW_MS });
}

/** Loads with a usable API in the environment, so that each test has only the keys that it is about. */
export function loadWithApi(given: Given): Loaded<Config> {
  return load({ ...given, environment: { ...API, ...given.environment } });
}

export const API = { TIDEMARK_API_URL: 'https://api.test/external/v1', TIDEMARK_API_KEY: 'key-4242' };

/** The lines of the refusal, less its head. */
export function mistakesOf(run: () => unknown): string[] {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(UserError);
    expect((error as UserError).exitCode).toBe(78);
    const [head, ...lines] = (error as UserError).message.split('\n');
    expect(head).toBe('The configuration is invalid:');
    return lines.map((line) => line.trim());
  }
  throw new Error('accepted');
}

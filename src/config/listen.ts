/**
 * Where the status page is served, read from the configuration by itself: a health check must not fail by a key that
 * somebody has just got wrong, and which the running program does not know of.
 */

import { UserError } from '../core/faults.ts';
import { type ConfigInput, readConfigFile } from './config.ts';
import { beginReading, mistakesOf, readValue } from './reader.ts';
import { configKeys, knownVariables } from './schema.ts';
import { readEnvironment } from './sources.ts';
import type { Listen } from './values.ts';

/** Reads `listen` and nothing else. @throws UserError (exit 78) where the file cannot be read, or `listen` in it. */
export function loadListen(input: ConfigInput): Listen {
  const keys = configKeys(input.nowMs);
  const file = readConfigFile(input);
  const { given } = readEnvironment(input.environment, knownVariables(keys));
  const own = new Map([...file.given, ...given].filter(([path]) => path === 'listen'));
  const reading = beginReading({ keys, readFile: input.readFile, given: own, mistakes: [] });
  const listen = readValue(reading, 'listen');
  const mistakes = file.whole ? mistakesOf(reading) : file.mistakes;
  if (mistakes.length > 0) throw new UserError(['The configuration is not usable:', ...mistakes].join('\n  '), 78);
  return listen;
}

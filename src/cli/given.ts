/**
 * What was given on the command line, by flag, and the words of mistakes.
 */
import { UserError } from '../core/faults.ts';
import { nearest } from '../core/text.ts';
import { LOG_LEVELS, type LogLevel } from './command.ts';

/** By flag, in order: several values of flags that may be repeated. Without a value it is an empty text. */
export type Given = ReadonlyMap<string, readonly string[]>;

/** The value of a flag that is given once. */
export function single(given: Given, flag: string): string | null {
  return given.get(flag)?.[0] ?? null;
}

/** One of several words. @throws UserError (exit 2) for any other, which is not repeated: it may be a key. */
export function oneOf<T extends string>(flag: string, text: string, words: readonly T[]): T {
  const found = words.find((known) => known === text);
  if (found !== undefined) return found;
  const meant = nearest(text, words);
  throw mistake(`${dashed(flag)} takes ${listed(words, 'or')}${meant === null ? '.' : `. Did you mean ${meant}?`}`);
}

export function logLevel(given: Given): LogLevel | null {
  const text = single(given, 'log-level');
  return text === null ? null : oneOf('log-level', text, LOG_LEVELS);
}

/** A mistake of the command line. */
export function mistake(message: string): UserError {
  return new UserError(message, 2);
}

export function dashed(flag: string): string {
  return `--${flag}`;
}

export function listed(words: readonly string[], last: 'and' | 'or'): string {
  if (words.length <= 1) return words.join('');
  return `${words.slice(0, -1).join(', ')} ${last} ${words.at(-1)}`;
}

/**
 * Asks questions on a terminal, or reads the lines of a pipe. What is typed for a secret is not echoed.
 */
import { StringDecoder } from 'node:string_decoder';
import type { InputStream } from '../../app/terminal.ts';
import { UserError } from '../../core/faults.ts';

export interface Prompter extends Disposable {
  /** Whether a person can be asked. */
  readonly isTerminal: boolean;
  /**
   * Asks for a line.
   *
   * @returns it without the blanks around it
   * @throws UserError (exit 3) if the input ends, or the person breaks off
   */
  ask(question: string, options?: { readonly isSecret?: boolean }): Promise<string>;
  /**
   * The next line of a pipe, without a question.
   *
   * @throws UserError (exit 2) if there is none
   */
  line(what: string): Promise<string>;
}

const INTERRUPT = '\u0003';
const END = '\u0004';
const ERASE = new Set(['\u007f', '\b']);
const ENDS = new Set(['\r', '\n', INTERRUPT, END]);

/**
 * Opens it.
 *
 * @param write shows a question.
 * @param signal aborts every question
 */
export function createPrompter(
  input: InputStream | undefined,
  write: (text: string) => void,
  signal: AbortSignal,
): Prompter {
  const isTerminal = input?.isTTY === true;
  const reader = createLineReader(input, signal);
  return {
    isTerminal,
    ask: async (question, { isSecret = false } = {}) => {
      write(question);
      input?.setRawMode?.(isSecret);
      try {
        const line = await reader();
        if (line === null)
          throw new UserError('The input ended before every question was answered. Nothing was written.', 3);
        return line.trim();
      } finally {
        input?.setRawMode?.(false);
        if (isSecret) write('\n');
      }
    },
    line: async (what) => {
      const line = await reader();
      if (line === null || line.trim() === '')
        throw new UserError(`${what}: expected the secret as a line of standard input.`, 2);
      return line.trim();
    },
    [Symbol.dispose]: () => void input?.destroy(),
  };
}

/**
 * Reads line after line.
 *
 * @returns `null` at the end of the input, and when the person breaks off
 */
function createLineReader(input: InputStream | undefined, signal: AbortSignal): () => Promise<string | null> {
  const decoder = new StringDecoder('utf8');
  let text = '';
  let hasEnded = input === undefined;
  let wake = (): void => {};
  const end = (): void => {
    hasEnded = true;
    wake();
  };
  input?.on('data', (chunk: Buffer | string) => {
    text += typeof chunk === 'string' ? chunk : decoder.write(chunk);
    wake();
  });
  input?.on('end', end);
  input?.on('error', end);
  signal.addEventListener('abort', end, { once: true });
  return async () => {
    for (;;) {
      const taken = takeLine(text, hasEnded);
      if (taken !== null) {
        text = taken.rest;
        return signal.aborted ? null : taken.line;
      }
      if (hasEnded || text.length > MAX_LINE) return null;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
}

/**
 * Takes the first line of the typed text.
 *
 * @returns `null` if there is no whole line yet; a line of `null` if the person breaks off
 */
function takeLine(text: string, hasEnded: boolean): { readonly line: string | null; readonly rest: string } | null {
  const end = text.split('').findIndex((letter) => ENDS.has(letter));
  if (end === -1) return hasEnded && text !== '' ? { line: erased(text), rest: '' } : null;
  if (text[end] === INTERRUPT || text[end] === END) return { line: null, rest: '' };
  const rest = text.slice(text.startsWith('\r\n', end) ? end + 2 : end + 1);
  return { line: erased(text.slice(0, end)), rest };
}

/** Without the letters that were taken back. */
function erased(typed: string): string {
  let line = '';
  for (const letter of typed) line = ERASE.has(letter) ? line.slice(0, -1) : line + letter;
  return line;
}

/** No one types more. */
const MAX_LINE = 10_000;

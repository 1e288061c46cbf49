/** A person or a pipe that answers the prompts of `init`. */
import { EventEmitter } from 'node:events';

/** A terminal, or a pipe, that answers each prompt at once, and echoes it as terminals do. */
export function inputOf(answers: readonly string[], isTTY: boolean, echo: (text: string) => void) {
  const input = new EventEmitter() as EventEmitter & Record<string, unknown>;
  const left = [...answers];
  const raw: boolean[] = [];
  const next = (): void => {
    const answer = left.shift();
    if (answer !== undefined && raw.at(-1) !== true) echo(answer);
    setImmediate(() => {
      if (answer === undefined) input.emit('end');
      else input.emit('data', Buffer.from(`${answer}\r`));
    });
  };
  return {
    next,
    raw,
    stream: Object.assign(input, { isTTY, setRawMode: (isRaw: boolean) => raw.push(isRaw), destroy: () => {} }),
  };
}

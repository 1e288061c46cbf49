/** Runs a command on a real terminal (of `script`), and answers its prompts. */
import { spawn } from 'node:child_process';
import { until } from '../process/support.ts';

/** The prompts, in order, and their answers. */
export type Dialogue = readonly (readonly [question: string, answer: string])[];

const SCRIPT = '/usr/bin/script';

export interface Talk {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The command line that runs `script`, such as nsenter; empty: none. */
  readonly prefix?: readonly string[];
}

/** Runs a command by the shell, and answers it. */
export async function talk(
  command: string,
  dialogue: Dialogue,
  { cwd, env, prefix = [] }: Talk,
): Promise<{ readonly code: number | null; readonly screen: string }> {
  const [program = '', ...args] = [...prefix, SCRIPT, '-qec', command, '/dev/null'];
  const child = spawn(program, args, { cwd, env: { TERM: 'xterm', ...env }, stdio: ['pipe', 'pipe', 'inherit'] });
  let screen = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text;
  });
  const ended = new Promise<number | null>((resolve) => void child.once('close', resolve));
  try {
    for (const [question, answer] of dialogue) {
      await until(`it asks: ${question}`, () => screen.includes(question) || child.exitCode !== null);
      child.stdin.write(`${answer}\r`);
    }
    return { code: await ended, screen };
  } finally {
    child.kill('SIGKILL');
  }
}

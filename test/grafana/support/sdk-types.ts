/**
 * Values against the types of Grafana's foundation SDK: each is written as a literal of its type into a module that
 * only the compiler reads, so that a member too many, one too few, a wrong word and a wrong type are found.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import * as units from '@grafana/grafana-foundation-sdk/units';

const SDK = '@grafana/grafana-foundation-sdk';

/** A value, and the type that it has to have: `statetimeline.Options` is `Options` of that module of the SDK. */
export interface Claim {
  readonly type: string;
  readonly value: unknown;
}

/** The type errors of each value, in the compiler's words; an empty list for each valid one. */
export function typeFaults(claims: readonly Claim[]): string[][] {
  const modules = [...new Set(claims.map(({ type }) => type.slice(0, type.indexOf('.'))))];
  const head = [
    `import type { Plain } from ${JSON.stringify(resolve('grafana/source/model.ts'))};`,
    ...modules.map((name) => `import type * as ${name} from '${SDK}/${name}';`),
  ];
  const lines = claims.map(
    ({ type, value }, n) => `export const c${n}: Plain<${type}> = ${JSON.stringify(value, known)};`,
  );
  const found = compile([...head, ...lines].join('\n'));
  const stray = [...found.keys()].find((line) => line < head.length);
  if (stray !== undefined) throw new Error(found.get(stray)?.join('\n'));
  return claims.map((_, n) => found.get(head.length + n) ?? []);
}

/** Leaves out queries, which the SDK does not describe: other tests run them. */
function known(member: string, value: unknown): unknown {
  return ['target', 'targets', 'model'].includes(member) ? undefined : value;
}

/** Every unit of Grafana. */
export function knownUnits(): ReadonlySet<string> {
  return new Set<string>(Object.values(units).filter((unit) => typeof unit === 'string'));
}

/** The errors of a module, by the line on which they stand, from 0. */
function compile(source: string): Map<number, string[]> {
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-types-'));
  try {
    // From here the module finds the SDK.
    symlinkSync(resolve('node_modules'), join(directory, 'node_modules'));
    writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
    writeFileSync(join(directory, 'values.ts'), source);
    const config = {
      extends: resolve('tsconfig.json'),
      compilerOptions: { rootDir: '/', typeRoots: [resolve('node_modules/@types')] },
      include: [],
      files: ['values.ts'],
    };
    writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify(config));
    const tsc = resolve('node_modules/.bin/tsc');
    const { stdout, stderr } = spawnSync(tsc, ['-p', directory, '--pretty', 'false'], {
      cwd: directory,
      encoding: 'utf8',
    });
    return errorsByLine(`${stdout}${stderr}`);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function errorsByLine(output: string): Map<number, string[]> {
  const found = new Map<number, string[]>();
  let line = 0;
  for (const text of output.split('\n').filter((one) => one !== '')) {
    const [, at, words = text] = /^values\.ts\((\d+),\d+\): error (.*)$/.exec(text) ?? [];
    // An error outside of the module (a broken configuration) counts for its first line; indented lines continue an
    // error.
    if (at !== undefined) line = Number(at) - 1;
    else if (!text.startsWith(' ')) line = 0;
    found.set(line, [...(found.get(line) ?? []), words]);
  }
  return found;
}

/**
 * Which tests need the environment: a database, a browser, a process of their own, a port. It follows from what a file
 * of tests uses, itself or by the helpers that it imports, so that a new file is in its place without a list.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');

/** Modules that only tests with the environment import: programs, ports and the parts of the source that open one. */
const OUTSIDE = [
  /^node:(?:child_process|cluster|dgram|http|http2|https|net|tls|worker_threads)$/,
  /^playwright-core$/,
  /\/src\/(?:api|influx)\/transport\.ts$/,
  /\/src\/sim\/(?:server|serve)\.ts$/,
  /\/src\/observe\/server\.ts$/,
];

const IMPORT =
  /(?:^|\n)\s*(?:import|export)\s(?!type\b)(?:[^'"`;]*?\sfrom\s+)?['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/g;

export interface Tiers {
  /** Store, pure functions and virtual time: no server, no process. */
  readonly pure: readonly string[];
  /** All others. */
  readonly real: readonly string[];
}

/** The files of tests by what they need, as paths from the root of the project. */
export function testTiers(): Tiers {
  const files = globSync('test/**/*.test.ts', { cwd: ROOT }).sort();
  const known = new Map<string, boolean>();
  const real = files.filter((file) => needsWorld(join(ROOT, file), known));
  return { pure: files.filter((file) => !real.includes(file)), real };
}

/** The imports of a module for its values: relative ones as paths from the root, `/src/…` and `/test/…`. */
export function importsOf(text: string, file: string): string[] {
  return [...text.matchAll(IMPORT)].map(([, named, called]) => {
    const name = named ?? called ?? '';
    return name.startsWith('.') ? `/${relative(ROOT, join(dirname(file), name))}` : name;
  });
}

function needsWorld(file: string, known: Map<string, boolean>): boolean {
  const before = known.get(file);
  if (before !== undefined) return before;
  known.set(file, false);
  const imports = importsOf(readFileSync(file, 'utf8'), file);
  const needs = imports.some(
    (name) =>
      OUTSIDE.some((pattern) => pattern.test(name)) ||
      (name.startsWith('/test/') && needsWorld(join(ROOT, name), known)),
  );
  known.set(file, needs);
  return needs;
}

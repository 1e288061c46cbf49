/**
 * The programs that parse the deployment files in production: kustomize, helm, kubeconform, Compose's own
 * loader, actionlint. `tools.sh` installs them; the versions are in `tools.txt`.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const PLACE = process.env['TIDEMARK_DEPLOY_TOOLS'] ?? join(homedir(), '.cache', 'tidemark-deploy-tools');

const TOOLS = new Map(
  readFileSync(join(import.meta.dirname, 'tools.txt'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.split(' '))
    .map(([name = '', version]) => [name, join(PLACE, `${name}-${version}`)]),
);

const LONGEST_BUILD_MS = 900_000;

/** Whether they are all there. Where one is missing: an error in CI; elsewhere `false`, with a word on how to get it. */
export function toolsAvailable(): boolean {
  const latestMs = performance.now() + LONGEST_BUILD_MS;
  while (isMissing() && isBeingBuilt() && performance.now() < latestMs)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 250);
  const missing = [...TOOLS].filter(([, path]) => !existsSync(path)).map(([name]) => name);
  if (missing.length === 0) return true;
  const words = `${missing.join(', ')}: not installed (test/deploy/tools.sh installs them)`;
  if (process.env['CI']) throw new Error(words);
  process.stderr.write(`Left out, what reads the deployment files: ${words}\n`);
  return false;
}

function isMissing(): boolean {
  return [...TOOLS.values()].some((path) => !existsSync(path));
}

/** Whether `tools.sh` is at work: CI runs it beside the other tests. */
function isBeingBuilt(): boolean {
  try {
    return process.kill(Number(readFileSync(join(PLACE, 'building'), 'utf8')), 0);
  } catch {
    return false;
  }
}

/** Where one of them is. */
export const toolPath = (name: string): string => TOOLS.get(name) ?? name;

export interface ToolRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs one of them to its end. */
export function runTool(
  name: string,
  args: readonly string[],
  { input = '', cwd, env = {} }: { input?: string; cwd?: string; env?: Readonly<Record<string, string>> } = {},
): ToolRun {
  const { PATH } = process.env;
  const { status, stdout, stderr } = spawnSync(toolPath(name), args, {
    input,
    cwd,
    env: { PATH, HOME: homedir(), ...env },
    encoding: 'utf8',
  });
  return { code: status, stdout, stderr };
}

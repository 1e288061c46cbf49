/** A separate root with programs of this machine, in which documented commands find their paths. */
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Copies programs into a root, with the libraries that they need; `/bin/sh` is one of them. */
export function addPrograms(root: string, names: readonly string[]): void {
  const programs = [...names.map((name) => `/usr/bin/${name}`), '/bin/sh'];
  const libraries = execFileSync('ldd', programs, { encoding: 'utf8' }).matchAll(/(\/\S+\.so\S*) \(/g);
  for (const path of new Set([...programs, ...[...libraries].map(([, path = '']) => path)])) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    copyFileSync(path, join(root, path));
  }
}

export interface Inside {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

/** Runs a script in a root, as root. */
export function runInside(
  root: string,
  script: string,
  { env = {}, input = '' }: Inside = {},
): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
  const { status, stdout, stderr } = spawnSync('chroot', [root, '/bin/sh', '-ec', script], {
    env: { PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/', ...env },
    input,
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

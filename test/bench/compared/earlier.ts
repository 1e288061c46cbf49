/**
 * The bundle of an earlier version, built from the repository's history into a temporary folder.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The version that others are compared with while there is no tag. */
const FIRST_MEASURED = '0d2c70a';

const root = join(import.meta.dirname, '..', '..', '..');

export interface Earlier extends Disposable {
  readonly version: string;
  /** The file of its program. */
  readonly program: string;
}

/** Builds the newest tag, or the first version that was measured. Libraries are those of this checkout. */
export function buildEarlier(): Earlier {
  const version = git(['tag', '--sort=-creatordate']).split('\n')[0] || FIRST_MEASURED;
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-earlier-'));
  execFileSync('tar', ['-x', '-C', folder], { input: gitBytes(['archive', version]) });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const build = readdirSync(join(folder, 'config')).includes('build.mjs') ? 'config/build.mjs' : 'build.mjs';
  execFileSync(process.execPath, [build], { cwd: folder, stdio: 'inherit' });
  return {
    version,
    program: join(folder, 'dist', 'main.js'),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

const gitBytes = (args: readonly string[]): Buffer =>
  execFileSync('git', args, { cwd: root, maxBuffer: 256 * 1024 * 1024 });

const git = (args: readonly string[]): string => gitBytes(args).toString('utf8');

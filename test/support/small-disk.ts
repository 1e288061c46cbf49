/**
 * A disk of its own, so small that it is soon full.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface SmallDisk extends Disposable {
  readonly path: string;
  /** Where a state would be on it. */
  readonly file: string;
}

/**
 * Makes it.
 *
 * @param size in the format of `mount`, such as `4m`
 * @returns `null` where none can be mounted here.
 */
export function smallDisk(size: string): SmallDisk | null {
  const path = mkdtempSync(join(tmpdir(), 'tidemark-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path], { stdio: 'ignore' });
  } catch {
    rmSync(path, { recursive: true });
    return null;
  }
  return {
    path,
    file: join(path, 'tidemark.db'),
    [Symbol.dispose]: () => {
      execFileSync('umount', [path]);
      rmSync(path, { recursive: true });
    },
  };
}

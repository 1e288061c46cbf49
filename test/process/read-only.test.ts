/**
 * A state on a file system that is mounted read-only: the remedy of the message followed to the letter, with real
 * mounts in a mount namespace of the program's own.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { MAIN, openStage } from './support.ts';

/** Root needs only its own mounts, another user also a user namespace, which not every machine allows. */
const isRoot = process.getuid?.() === 0;
const NAMESPACE = isRoot ? ['--mount'] : ['--mount', '--map-root-user'];

function canMount(): boolean {
  // For root, and in CI, it has to be possible: the test then fails where it is not.
  if (isRoot || (process.env['CI'] ?? '') !== '') return true;
  if (spawnSync('unshare', [...NAMESPACE, 'true']).status === 0) return true;
  process.stderr.write('no mount namespace can be made here: a read-only file system is not tried\n');
  return false;
}

/** Each run prints the exit code behind its messages. */
const SCRIPT = `
mount --bind "$TIDEMARK_DATA_DIR" "$TIDEMARK_DATA_DIR"
mount -o remount,ro,bind "$TIDEMARK_DATA_DIR"
run() { code=0; "$NODE" "$MAIN" --once || code=$?; echo "ended with $code"; }
run
(TIDEMARK_DATA_DIR="$ANOTHER_DIRECTORY" run)
mount -o remount,rw,bind "$TIDEMARK_DATA_DIR"
run
`;

test.runIf(canMount())('mounted for writing, or another data_dir: the next run succeeds', async () => {
  await using stage = await openStage();
  expect((await stage.run(['--once'])).code).toBe(0);
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const child = spawn('unshare', [...NAMESPACE, '/bin/sh', '-ec', `exec 2>&1\n${SCRIPT}`], {
    cwd: stage.directory,
    env: {
      ...{ PATH, NODE_COMPILE_CACHE, NODE: process.execPath, MAIN },
      ...stage.env,
      ANOTHER_DIRECTORY: join(stage.directory, 'another'),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 300_000,
  });
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
  });
  expect((await once(child, 'close'))[0], printed).toBe(0);
  const [readOnly = '', other = '', writable = ''] = printed.split(/(?<=^ended with \d+\n)/m);
  expect(readOnly).toMatch(/the file system is mounted read-only/);
  expect(readOnly.replaceAll(/\s+/g, ' ')).toContain(
    'Mount it for writing (if it was before, check the disk first: the system may have found errors on it), or set data_dir to another directory.',
  );
  expect(readOnly).toMatch(/^ended with 1$/m);
  for (const followed of [other, writable]) {
    expect(followed).toMatch(/^ended with 0$/m);
    expect(followed).not.toContain('read-only');
  }
});

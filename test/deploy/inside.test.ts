/**
 * The parts of documented commands that run inside a container: the words behind `sh -c` or `--`, unchanged, in a root
 * with the volumes of the container.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addPrograms, runInside } from '../support/own-root.ts';
import { INSIDE as COMMANDS, commandsBy, TRIED } from '../support/tried-commands.ts';

/** The commands that start a shell or another program than Tidemark in a container or pod, each with that script. */
const INSIDE = Object.keys(TRIED).flatMap((command): [string, string][] => {
  if (!/docker|kubectl/.test(command)) return [];
  const [, script] = /\bsh (?:tidemark )?-c '([^']+)'/.exec(command) ?? [];
  const [, program] = / -- (cp .*)$| tidemark (rm .*)$/.exec(command)?.filter((each) => each !== undefined) ?? [];
  const inner = script ?? program;
  return inner === undefined ? [] : [[command, inner]];
});

describe.runIf(process.getuid?.() === 0)('a script in a container', () => {
  let root: string;
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'tidemark-inside-'));
    addPrograms(root, ['cat', 'chmod', 'chown', 'cp', 'date', 'head', 'ls', 'mkdir', 'mv', 'rm']);
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  test('exists for each way to change the volume', () => {
    expect(INSIDE).toHaveLength(7);
  });

  test.each(INSIDE)('%s', (command, script) => {
    const [data, backups] = [join(root, 'data'), join(root, 'backups')];
    for (const folder of [data, backups]) {
      rmSync(folder, { recursive: true, force: true });
      mkdirSync(folder);
    }
    const before = ['tidemark.db', 'tidemark.db-wal', 'tidemark.db.version-4', 'tidemark.lock'];
    for (const name of before) writeFileSync(join(data, name), name);
    writeFileSync(join(data, 'copy.db'), '');
    writeFileSync(join(backups, '2026-11-22T0315.db'), 'the backup');
    const { status, stdout, stderr } = runInside(root, script, { input: 'the copy' });
    expect([status, stderr]).toEqual([0, '']);
    const now = (): string => readFileSync(join(data, 'tidemark.db'), 'utf8');
    const moved = readdirSync(data).filter((name) => /^before-\d+$|^newer$/.test(name));
    if (script.includes('mkdir')) {
      expect(moved).toHaveLength(1);
      expect(readdirSync(join(data, moved[0] ?? ''))).toEqual(before);
    } else expect(moved).toEqual([]);
    if (script.includes('cat >')) {
      expect([now(), statSync(join(data, 'tidemark.db')).mode & 0o777]).toEqual(['the copy', 0o600]);
      if (script.includes('chown')) expect(statSync(join(data, 'tidemark.db')).uid).toBe(1000);
    }
    if (script.includes('cp -p')) expect(now()).toBe('tidemark.db.version-4');
    if (script.startsWith('cp /backups')) expect(now()).toBe('the backup');
    if (script.startsWith('cat "$(ls')) expect(stdout).toBe('the backup');
    if (script.startsWith('rm ')) expect(readdirSync(data)).not.toContain('copy.db');
    expect(command).toMatch(/docker|kubectl/);
  });

  test.each(commandsBy(COMMANDS))('%s', (command) => {
    rmSync(join(root, 'data'), { recursive: true, force: true });
    mkdirSync(join(root, 'data'));
    expect(runInside(root, command)).toMatchObject({ status: 0, stderr: '' });
    expect(statSync(join(root, 'data')).uid).toBe(1000);
  });
});

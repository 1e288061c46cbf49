/**
 * The parts of documented commands that run inside a container: the words behind `sh -c` or `--`, unchanged, in a root
 * with the volumes of the container.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { documentedCommands } from '../support/documented-commands.ts';
import { addPrograms, runInside } from '../support/own-root.ts';
import { shell } from '../support/run-command.ts';
import { INSIDE as COMMANDS, COMPOSE_SCRIPT, commandsBy, TRIED } from '../support/tried-commands.ts';

/** The commands that start a shell or another program than Tidemark in a container or pod, each with that script. */
const INSIDE = Object.keys(TRIED).flatMap((command): [string, string][] => {
  if (!/docker|kubectl/.test(command)) return [];
  const [, script] = /\bsh (?:tidemark )?-c '([^']+)'/.exec(command) ?? [];
  const [, program] = / -- (cp .*)$/.exec(command) ?? [];
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

  const BEFORE = ['tidemark.db', 'tidemark.db-wal', 'tidemark.db.version-4', 'tidemark.lock'];
  /** A directory into which an earlier command has moved the state. */
  const MOVED = 'before-1795318500';

  /** Makes both volumes; for a command that reads the moved state, as the command before it leaves them. */
  const prepare = (script: string): void => {
    const [data, backups] = [join(root, 'data'), join(root, 'backups')];
    for (const folder of [data, backups]) {
      rmSync(folder, { recursive: true, force: true });
      mkdirSync(folder);
    }
    const place = script.includes('/before-*/') ? join(data, MOVED) : data;
    mkdirSync(place, { recursive: true });
    for (const name of BEFORE) writeFileSync(join(place, name), name);
    writeFileSync(join(backups, '2026-11-22T0315.db'), 'the backup');
  };

  /** The effect of each script, by a word in it. */
  const expectState = (script: string): void => {
    const data = join(root, 'data');
    const now = (): string => readFileSync(join(data, 'tidemark.db'), 'utf8');
    if (script.includes('cat >')) {
      expect([now(), statSync(join(data, 'tidemark.db')).mode & 0o777]).toEqual(['the copy', 0o600]);
      if (script.includes('chown')) expect(statSync(join(data, 'tidemark.db')).uid).toBe(1000);
    }
    if (script.includes('cp -p')) expect(now()).toBe('tidemark.db.version-4');
    if (script.startsWith('cp /backups')) expect(now()).toBe('the backup');
  };

  test.each(INSIDE)('%s', (command, script) => {
    prepare(script);
    const data = join(root, 'data');
    const { status, stdout, stderr } = runInside(root, script, { input: 'the copy' });
    expect([status, stderr]).toEqual([0, '']);
    const moved = readdirSync(data).filter((name) => /^before-\d+$|^newer$/.test(name) && name !== MOVED);
    expect(moved).toHaveLength(script.includes('mkdir') ? 1 : 0);
    for (const folder of moved) expect(readdirSync(join(data, folder))).toEqual(BEFORE);
    expectState(script);
    if (script.startsWith('cat "$(ls')) expect(stdout).toBe('the backup');
    expect(command).toMatch(/docker|kubectl/);
  });

  test.each(commandsBy(COMMANDS))('%s', (command) => {
    rmSync(join(root, 'data'), { recursive: true, force: true });
    mkdirSync(join(root, 'data'));
    expect(runInside(root, command)).toMatchObject({ status: 0, stderr: '' });
    expect(statSync(join(root, 'data')).uid).toBe(1000);
  });
});

/** Takes the place of docker: the folder SERVICE is the volume of a service. The backup of `tidemark-full` fails. */
const DOCKER = `#!/bin/sh
shift
case "$1 $3 $4" in
'ps  ') printf '%s\\n' grafana tidemark tidemark-full tidemark-office ;;
"exec $3 tidemark") test "$3" != tidemark-full && echo "$3" > "$3$6" ;;
"exec $3 rm") rm "$5" "$3$6" ;;
"cp "*) cp "$(echo "$2" | tr -d :)" "$3" ;;
esac
`;

test('the script for backups with Compose copies every workspace, and deletes old copies after a new one', async () => {
  const cwd = mkdtempSync(join(tmpdir(), 'tidemark-backups-'));
  try {
    const names = ['tidemark', 'tidemark-full', 'tidemark-office'];
    for (const name of names) {
      mkdirSync(join(cwd, name, 'data'), { recursive: true });
      mkdirSync(join(cwd, 'backups', name), { recursive: true });
      for (const days of [1, 9]) {
        const file = join(cwd, 'backups', name, `${days} days ago.db`);
        writeFileSync(file, '');
        utimesSync(file, Date.now() / 1000, Date.now() / 1000 - days * 86_400);
      }
    }
    writeFileSync(join(cwd, 'docker'), DOCKER, { mode: 0o755 });
    const [key] = commandsBy(COMPOSE_SCRIPT);
    const script = documentedCommands().find((each) => each.key === key)?.text ?? '';
    const day = new Date().toISOString().slice(0, 10);
    const env = { PATH: `${cwd}:${process.env['PATH']}` };
    expect(await shell(script, { cwd, env })).toMatchObject({ code: 0, stderr: '' });
    const now = new Date().toISOString().slice(0, 10);
    const copies = names.map((name) => readdirSync(join(cwd, 'backups', name)).map((each) => each.replace(now, day)));
    const kept = ['1 days ago.db', `${day}.db`];
    expect(copies.map((each) => each.toSorted())).toEqual([kept, ['1 days ago.db', '9 days ago.db'], kept]);
    expect(names.filter((name) => existsSync(join(cwd, name, 'data', 'copy.db')))).toEqual([]);
    expect(readFileSync(join(cwd, 'backups/tidemark-office', `${now}.db`), 'utf8')).toBe('tidemark-office\n');
  } finally {
    rmSync(cwd, { recursive: true });
  }
});

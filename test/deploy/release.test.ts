/**
 * The release: its steps run here as the workflow runs them, actions and images stand in one file, and what would be
 * wrong with them is noticed.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { billOf } from '../../config/image/sbom.mjs';
import { faults, namedIn, namingFiles, resolvedPins, withPins } from '../../config/release/pins.mjs';
import { openRegistry } from '../../config/release/registry.mjs';
import { licenceFaults, NOT_REHEARSED, namesOf, notesOf } from '../../config/release/release.mjs';
import { toolPath, toolsAvailable } from './tools.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const SHA = 'a'.repeat(40);
const DIGEST = `sha256:${'b'.repeat(64)}`;

/** A copy of what the scripts read and write. */
let copy: string;
beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), 'tidemark-release-'));
  for (const name of [
    '.github',
    'config',
    'src',
    'Dockerfile',
    'compose.yaml',
    'compose.demo.yaml',
    'compose.demo-victoriametrics.yaml',
    'CHANGELOG.md',
    'package.json',
    'package-lock.json',
  ]) {
    cpSync(join(ROOT, name), join(copy, name), { recursive: true, verbatimSymlinks: true });
  }
  for (const name of ['dashboards', 'dashboards-victoriametrics'])
    cpSync(join(ROOT, 'grafana', name), join(copy, 'grafana', name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
});
afterAll(() => rmSync(copy, { recursive: true, force: true }));

const script = (name: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  spawnSync(process.execPath, [join('config', 'release', name), ...args], {
    cwd: copy,
    env: { PATH: '/usr/bin:/bin', ...env },
    encoding: 'utf8',
  });
const file = (name: string): string => readFileSync(join(copy, name), 'utf8');

describe.runIf(toolsAvailable())('`npm run rehearse`', () => {
  /** The programs beside helm: Git, and those that a test adds. */
  let path: string;
  beforeAll(() => {
    path = join(copy, 'path');
    mkdirSync(path);
    symlinkSync('/usr/bin/git', join(path, 'git'));
    const who = ['-c', 'user.name=a', '-c', 'user.email=a@b'];
    for (const args of [
      ['init', '-q'],
      [...who, 'commit', '-q', '--allow-empty', '-m', 'One'],
    ])
      expect(spawnSync('git', args, { cwd: copy }).status).toBe(0);
  });
  const runStep = (name: string, builder = 'buildah') =>
    script('release.mjs', [name], { HELM: toolPath('helm'), BUILDAH: builder, PATH: path });
  const rehearse = (builder?: string) => runStep('rehearse', builder);

  test('makes chart, notes and bill of materials, publishes on this machine, and lists the omitted steps', () => {
    const { status, stdout } = rehearse();
    const steps = ['version', 'licences', 'program', 'chart', 'notes', 'sbom', 'names', 'pins', 'publish'];
    expect([status, stdout.match(/^ok \w+/gm)]).toEqual([0, steps.map((name) => `ok ${name}`)]);
    const { version } = JSON.parse(file('package.json'));
    expect(file('release/notes.md').length).toBeGreaterThan(100);
    expect(readFileSync(join(copy, 'release', `tidemark-${version}.tgz`)).length).toBeGreaterThan(10_000);
    expect(JSON.parse(file('release/sbom.cdx.json'))).toMatchObject({ bomFormat: 'CycloneDX' });
    expect(stdout).toMatch(/^ok publish: oci:\/\/127\.0\.0\.1:\d+\//m);
    expect(stdout).toContain('not rehearsed: the step image, because buildah is not installed\n');
    for (const { what, because } of NOT_REHEARSED)
      expect(stdout).toContain(`not rehearsed: ${what}, because ${because}\n`);
  });

  test('leaves out the image where its base cannot be had, and fails where the build fails', () => {
    // In place of Buildah, with its words.
    const failing = join(copy, 'failing-builder');
    const fails = (words: string): void =>
      writeFileSync(failing, `#!/bin/sh\necho '${words}' >&2\nexit 125\n`, { mode: 0o755 });
    fails('Error: initializing source docker://node:24: pinging container registry registry-1.docker.io');
    expect(runStep('image', failing)).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('because its base image node:24 is not here and cannot be pulled'),
    });
    fails('Error: building at STEP "RUN npm ci": exit status 1');
    expect(rehearse(failing)).toMatchObject({ status: 1, stdout: expect.stringContaining('NOT image: ') });
  });

  test('has every step of the workflow that publishes, or names it as left out', () => {
    const { steps } = parse(file('.github/workflows/release.yml')).jobs.publish as {
      steps: readonly { readonly uses?: string; readonly run?: string }[];
    };
    const leftOut = NOT_REHEARSED.flatMap((each) => each.in);
    const has = (text: string) => leftOut.some((part) => text.includes(part));
    const open = steps.flatMap(({ uses, run = '' }) => {
      if (uses !== undefined) return uses.startsWith('actions/checkout') || has(uses) ? [] : [uses];
      // Its commands; what prepares or ends one of them needs no rehearsal.
      const commands = run.split('\n').filter((line) => /^\s*(?:npm|cosign|gh|helm|docker)\b|\|/.test(line));
      return commands.filter((line) => !/npm (?:ci|run release -- |run pins -- check)/.test(line) && !has(line));
    });
    expect(open).toEqual([]);
    const text = file('.github/workflows/release.yml');
    expect(leftOut.filter((part) => !text.includes(part))).toEqual([]);
    expect(text).toContain('npm run release -- version licences program chart notes sbom names\n');
  });

  test('nothing is built, signed or published before everything is known by its digest', () => {
    const { steps } = parse(file('.github/workflows/release.yml')).jobs.publish;
    expect(file('.github/workflows/release.yml')).not.toContain('continue-on-error');
    const texts = steps.map(({ uses = '', run = '' }: { uses?: string; run?: string }) => uses + run);
    expect(texts.findIndex((text: string) => text.includes('pins -- check --resolved'))).toBe(2);
    expect(texts.slice(0, 2)).toEqual([expect.stringContaining('actions/checkout@'), 'npm ci']);
  });

  test('a tag of another version, and a file with one, are named', () => {
    const tagged = script('release.mjs', ['version'], { GITHUB_REF_TYPE: 'tag', GITHUB_REF_NAME: 'v9.9.9' });
    expect([tagged.status, tagged.stdout]).toEqual([1, expect.stringContaining('the tag does not speak of')]);
    const before = file('Dockerfile');
    writeFileSync(join(copy, 'Dockerfile'), before.replace('ARG VERSION=', 'ARG VERSION=9'));
    const { status, stdout } = script('release.mjs', ['version']);
    writeFileSync(join(copy, 'Dockerfile'), before);
    expect([status, stdout]).toEqual([1, expect.stringContaining('Dockerfile does not speak of')]);
  });
});

describe('actions and images', () => {
  const pins = () => JSON.parse(file('config/release/pins.json'));
  const texts = (): [string, string][] => namingFiles().map((name: string) => [name, file(name)]);

  test('stand in one file, and every file with one matches it', () => {
    expect(faults(texts(), pins(), { resolved: false })).toEqual([]);
    const named = texts().flatMap(([, text]) => namedIn(text));
    // Every line that names one is understood, so that none escapes.
    const lines = texts().flatMap(([, text]) =>
      text
        .split('\n')
        .filter((line) => /^\s*-? ?uses: (?!\.\/)|^\s*(?:image|container): [^$]|^ARG \w+_IMAGE=/.test(line)),
    );
    expect(named).toHaveLength(lines.length);
    expect(named.length).toBeGreaterThan(12);
  });

  test('without a digest are refused for a release, and an unresolved digest does not count', () => {
    const open = { actions: { 'a/b@v1': '' }, images: { 'c:1.0': 'sha256:short' } };
    const found = faults([['f', '    uses: a/b@v1\n  image: c:1.0\n  image: other:2\n']], open, {
      resolved: true,
    }).join('\n');
    expect(found).toMatch(/a\/b@v1 is not resolved/);
    expect(found).toMatch(/c:1\.0: "sha256:short" is no digest/);
    expect(found).toMatch(/other:2 is not in/);
    expect(found).toMatch(/c:1\.0 has another digest/);
    expect(faults([], { actions: { 'a/b@v1': SHA }, images: {} }, { resolved: false }).join()).toMatch(
      /nothing names a\/b@v1/,
    );
  });

  test('are written with their digests, and the tag stays readable', () => {
    const known = { actions: { 'a/b/c@v1': SHA }, images: { 'd/e:1.0': DIGEST } };
    const text = '      - uses: a/b/c@v1\n    image: d/e:1.0\nARG X_IMAGE=d/e:1.0\n';
    const written = withPins(text, known);
    expect(written).toBe(
      `      - uses: a/b/c@${SHA} # v1\n    image: d/e:1.0@${DIGEST}\nARG X_IMAGE=d/e:1.0@${DIGEST}\n`,
    );
    expect(withPins(written, known)).toBe(written);
    expect(faults([['f', written]], known, { resolved: true })).toEqual([]);
    expect(withPins(written, { actions: {}, images: {} })).toBe(text);
  });

  test('are resolved by git and docker, and not at all where one returns no digest', () => {
    const before = pins();
    const asked: string[] = [];
    const answering = (image: string) => (program: string, args: string[]) => {
      asked.push([program, ...args].join(' '));
      return program === 'git' ? `${'c'.repeat(40)}\t${args[2]}\n${SHA}\t${args[2]}^{}\n` : image;
    };
    const resolved = resolvedPins(before, answering(`${DIGEST}\n`));
    expect(Object.keys(resolved.actions)).toEqual(Object.keys(before.actions));
    expect(Object.keys(resolved.images)).toEqual(Object.keys(before.images));
    expect(new Set(Object.values(resolved.actions))).toEqual(new Set([SHA]));
    expect(new Set(Object.values(resolved.images))).toEqual(new Set([DIGEST]));
    expect(asked).toHaveLength(Object.keys({ ...before.actions, ...before.images }).length);
    expect(asked).toContain('git ls-remote https://github.com/actions/checkout refs/tags/v5 refs/tags/v5^{}');
    expect(() => resolvedPins(before, answering('unauthorized'))).toThrow('"unauthorized" is no digest');

    // And they are written into the files, where the check accepts them.
    const open = { ...before, actions: Object.fromEntries(Object.keys(before.actions).map((name) => [name, ''])) };
    writeFileSync(join(copy, 'config/release/pins.json'), JSON.stringify(open));
    const refused = script('pins.mjs', ['check', '--resolved']);
    expect([refused.status, refused.stdout + refused.stderr]).toEqual([1, expect.stringContaining('is not resolved')]);
    writeFileSync(join(copy, 'config/release/pins.json'), JSON.stringify(resolved));
    expect(script('pins.mjs', ['write']).status).toBe(0);
    expect(file('.github/workflows/release.yml')).toContain(`uses: actions/checkout@${SHA} # v5\n`);
    expect(script('pins.mjs', ['check', '--resolved']).status).toBe(0);
  });
});

test('changed digests are proposed by a token that may change workflows, else the job shows how to do it', () => {
  const [, job] = Object.entries(parse(readFileSync(join(ROOT, '.github/workflows/pins.yml'), 'utf8')).jobs)[0] ?? [];
  const { steps } = job as { steps: readonly { name?: string; env?: Record<string, string>; run?: string }[] };
  const propose = steps.find(({ name }) => name === 'Propose what has changed');
  expect(propose?.env).toEqual({ GH_TOKEN: '\u0024{{ secrets.PINS_TOKEN }}' });
  const place = mkdtempSync(join(tmpdir(), 'tidemark-pins-'));
  try {
    const env = { PATH: '/usr/bin:/bin', HOME: place, GIT_CONFIG_GLOBAL: join(place, 'gitconfig') };
    const sh = (text: string, token = '') =>
      spawnSync('bash', ['-e', '-c', text], { cwd: place, env: { ...env, GH_TOKEN: token }, encoding: 'utf8' });
    const prepared = sh(`
      git init -q --bare origin && git clone -q origin work 2>&1 && cd work
      echo 1 >pins.json && git add . && git -c user.name=a -c user.email=a@b commit -qm One && git push -q origin HEAD`);
    expect([prepared.status, prepared.stderr]).toEqual([0, '']);
    // No GitHub can be asked: the call of its client is printed.
    const script = propose?.run?.replaceAll(/\bgh (?=auth |pr )/g, 'echo gh ') ?? '';
    expect(script).toContain('echo gh pr create');
    const proposed = (token: string) => sh(`cd work\n${script}`, token);
    expect(proposed('')).toMatchObject({ status: 0, stdout: '' });
    sh('echo 2 >work/pins.json');
    expect(proposed('')).toMatchObject({ status: 1, stdout: expect.stringContaining('npm run pins -- resolve') });
    expect(proposed('t')).toMatchObject({ status: 0, stdout: expect.stringContaining('gh pr create --head pins') });
    expect(sh('git -C origin show pins:pins.json').stdout).toBe('2\n');
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
});

test('the names of the image: a candidate is not the latest', () => {
  const of = (version: string) =>
    namesOf({
      version,
      repository: 'Some/Tidemark',
      commit: { time: '2026-01-01T00:00:00+00:00', seconds: '1767225600' },
    });
  expect(of('1.2.0')).toMatchObject({
    IMAGE: 'ghcr.io/some/tidemark',
    TAGS: 'ghcr.io/some/tidemark:1.2.0\nghcr.io/some/tidemark:latest',
  });
  expect(of('1.2.0-rc.1').TAGS).toBe('ghcr.io/some/tidemark:1.2.0-rc.1');
});

test('the registry of a rehearsal accepts only content that matches its digest', async () => {
  const registry = await openRegistry();
  try {
    const { headers } = await fetch(`http://${registry.host}/v2/a/b/blobs/uploads/`, { method: 'POST' });
    const put = async (body: string, digest: string) =>
      (await fetch(`http://${registry.host}${headers.get('location')}?digest=${digest}`, { method: 'PUT', body }))
        .status;
    expect(await put('x', DIGEST)).toBe(400);
    const right = `sha256:${createHash('sha256').update('x').digest('hex')}`;
    expect(await put('x', right)).toBe(201);
    const blob = await fetch(`http://${registry.host}/v2/a/b/blobs/${right}`);
    expect([blob.status, await blob.text()]).toEqual([200, 'x']);
  } finally {
    registry.close();
  }
});

describe('the bill of materials', () => {
  interface Entry {
    readonly version: string;
    readonly license: string;
    readonly integrity: string;
    readonly dependencies?: Readonly<Record<string, string>>;
  }
  const lock: { packages: Record<string, Entry> } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  const bill = billOf(lock);

  test('names the program with its version', () => {
    const { name, version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    expect(bill.metadata.component).toMatchObject({ name, version, purl: `pkg:npm/${name}@${version}` });
    expect([bill.bomFormat, bill.specVersion]).toEqual(['CycloneDX', '1.5']);
  });

  test('has packages that `npm sbom --omit dev` leaves out', () => {
    const args = ['sbom', '--omit', 'dev', '--package-lock-only', '--sbom-format', 'cyclonedx'];
    const { status, stdout } = spawnSync('npm', args, { cwd: ROOT, encoding: 'utf8' });
    expect(status).toBe(0);
    const names = (text: string): string[] => JSON.parse(text).components.map(({ name }: { name: string }) => name);
    const theirs = names(stdout);
    expect(names(JSON.stringify(bill)).filter((name) => !theirs.includes(name))).toEqual(
      expect.arrayContaining(['uplot', 'yaml']),
    );
  });

  test('has every production dependency, those of dependencies too, with version, licence and hash, and no other', () => {
    // By what needs what, not by the marks of the lockfile.
    const wanted = new Map<string, Entry>();
    const take = (dependencies: Entry['dependencies'] = {}): void => {
      for (const name of Object.keys(dependencies)) {
        const entry = lock.packages[`node_modules/${name}`];
        if (entry === undefined) throw new Error(`${name} is not at the top`);
        if (wanted.has(name)) continue;
        wanted.set(name, entry);
        take(entry.dependencies);
      }
    };
    take(lock.packages['']?.dependencies);
    const found = bill.components.map(({ name, version, licenses, hashes }) => ({ name, version, licenses, hashes }));
    const expected = [...wanted].map(([name, { version, license, integrity }]) => ({
      name,
      version,
      licenses: [{ license: { id: license } }],
      hashes: [{ alg: 'SHA-512', content: Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex') }],
    }));
    const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
    expect(found.sort(byName)).toEqual(expected.sort(byName));
    expect(found.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['yaml', 'uplot', 'undici', 'better-sqlite3']),
    );
  });

  test('lists dependencies: each package is needed by a listed one', () => {
    const needed = new Set(bill.dependencies.flatMap(({ dependsOn }) => dependsOn));
    expect([...needed].sort()).toEqual(bill.components.map((each) => each['bom-ref']).sort());
  });

  test('finds a package inside the one that needs it, and leaves out development and optional ones', () => {
    const entry = { version: '1.0.0', license: '(MIT OR ISC)', integrity: 'sha512-AAAA' };
    const nested = billOf({
      name: 'p',
      version: '1.0.0',
      packages: {
        '': { license: 'MIT', dependencies: { a: '1' } },
        'node_modules/a': { ...entry, dependencies: { '@s/b': '2' } },
        'node_modules/@s/b': { ...entry, dev: true },
        'node_modules/a/node_modules/@s/b': { ...entry, version: '2.0.0' },
        'node_modules/c': { ...entry, devOptional: true },
      },
    });
    expect(nested.dependencies).toEqual([
      { ref: 'pkg:npm/p@1.0.0', dependsOn: ['pkg:npm/a@1.0.0'] },
      { ref: 'pkg:npm/a@1.0.0', dependsOn: ['pkg:npm/%40s/b@2.0.0'] },
      { ref: 'pkg:npm/%40s/b@2.0.0', dependsOn: [] },
    ]);
    expect(nested.components[0]?.licenses).toEqual([{ expression: '(MIT OR ISC)' }]);
  });
});

test('a licence that may not be passed on, or without its words, is named', () => {
  const packages = {
    '': {},
    'node_modules/good': { license: 'MIT' },
    'node_modules/bare': { license: 'ISC' },
    'node_modules/copyleft': { license: 'AGPL-3.0-only' },
    'node_modules/none': {},
    'node_modules/tool': { license: 'GPL-3.0', dev: true },
  };
  expect(licenceFaults(packages, (path: string) => path !== 'node_modules/bare')).toEqual([
    'node_modules/bare: has no file with the words of its licence (ISC)',
    'node_modules/copyleft: AGPL-3.0-only is not among those that may be passed on',
    'node_modules/none: no licence is not among those that may be passed on',
  ]);
});

test('the notes of a release are its part of the changelog', () => {
  const changelog = '# Changelog\n\n## 1.1.0, 2027-01-02\n\n- new\n\n## 1.0.0-rc.1\n\n- first\n';
  expect(notesOf(changelog, '1.1.0')).toBe('- new\n');
  expect(notesOf(changelog, '1.0.0-rc.1')).toBe('- first\n');
  expect(notesOf(changelog, '1.0.0')).toBeNull();
});

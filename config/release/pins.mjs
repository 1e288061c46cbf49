/**
 * The actions and images that the project uses, each with tag and digest, in one file: pins.json.
 *
 *   node config/release/pins.mjs check [--resolved]    the workflows, the Dockerfile and the compose files match
 *                                                      pins.json; with --resolved, by digests only (for a release)
 *   node config/release/pins.mjs resolve               looks up where each tag points now (git, docker buildx), writes the
 *                                                      digests into pins.json and into the files
 *   node config/release/pins.mjs write                 writes the pins of pins.json into the files
 *
 * A digest always comes from `resolve`. Before that it is empty, and only the tag is used.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const PINS = 'config/release/pins.json';

/** Each place where an action or an image is named: `before`, the name with its tag, perhaps a digest, perhaps the tag as a comment. */
const ACTION = /^(\s*-? ?uses: )([\w./-]+)@(\S+?)(?: # (\S+))?$/gm;
const IMAGE = /^(ARG \w+_IMAGE=|\s*image: |\s*container: )(?!\$)([^\s@]+:[^\s@]+?)(?:@(sha256:[0-9a-f]{64}))?$/gm;

const DIGESTS = { actions: /^[0-9a-f]{40}$/, images: /^sha256:[0-9a-f]{64}$/ };

/** The files that name actions or images. */
export function namingFiles() {
  const workflows = readdirSync('.github/workflows').map((name) => join('.github/workflows', name));
  const compose = readdirSync('config/compose').map((name) => join('config/compose', name));
  const roots = readdirSync('.').filter((name) => /^compose.*\.yaml$/.test(name));
  return [...workflows, 'Dockerfile', ...roots, ...compose];
}

/** What a text names: `[{ kind, name, digest }]`, the name with its tag; the digest is empty where there is none. */
export function namedIn(text) {
  const actions = [...text.matchAll(ACTION)].map(([, , action, ref, tag]) =>
    tag === undefined
      ? { kind: 'actions', name: `${action}@${ref}`, digest: '' }
      : { kind: 'actions', name: `${action}@${tag}`, digest: ref },
  );
  const images = [...text.matchAll(IMAGE)].map(([, , name, digest]) => ({
    kind: 'images',
    name,
    digest: digest ?? '',
  }));
  return [...actions, ...images];
}

/** Returns the text with each name as pinned. */
export function withPins(text, pins) {
  return text
    .replaceAll(ACTION, (_, before, action, ref, tag) => {
      const name = `${action}@${tag ?? ref}`;
      const digest = pins.actions[name];
      return digest ? `${before}${action}@${digest} # ${tag ?? ref}` : `${before}${name}`;
    })
    .replaceAll(IMAGE, (_, before, name) => `${before}${name}${pins.images[name] ? `@${pins.images[name]}` : ''}`);
}

/** What is wrong, one sentence each. */
export function faults(files, pins, { resolved }) {
  const named = files.flatMap(([file, text]) => namedIn(text).map((each) => ({ ...each, file })));
  const found = named.flatMap(({ kind, name, digest, file }) => {
    if (!(name in pins[kind])) return [`${file}: ${name} is not in ${PINS}: add it there, with an empty digest`];
    return digest === pins[kind][name]
      ? []
      : [`${file}: ${name} has another digest than in ${PINS}: run pins.mjs write`];
  });
  for (const kind of ['actions', 'images']) {
    for (const [name, digest] of Object.entries(pins[kind])) {
      if (!named.some((each) => each.kind === kind && each.name === name))
        found.push(`${PINS}: nothing names ${name}: remove it`);
      if (digest !== '' && !DIGESTS[kind].test(digest)) found.push(`${PINS}: ${name}: "${digest}" is no digest`);
      if (resolved && digest === '') found.push(`${PINS}: ${name} is not resolved: run pins.mjs resolve`);
    }
  }
  return found;
}

/**
 * Looks up where each tag points now.
 *
 * @param run runs a program with its arguments and returns what it printed.
 * @throws if a tag has no digest
 */
export function resolvedPins(pins, run) {
  const all = (kind) => Object.fromEntries(Object.keys(pins[kind]).map((name) => [name, resolve(kind, name, run)]));
  return { actions: all('actions'), images: all('images') };
}

/** Looks up the commit of an action's tag at its host, and the digest of an image's tag at its registry. */
function resolve(kind, name, run) {
  if (kind === 'images') {
    const answer = run('docker', ['buildx', 'imagetools', 'inspect', name, '--format', '{{.Manifest.Digest}}']);
    return required(answer.trim(), kind, name);
  }
  const [action, tag] = name.split('@');
  const repository = action.split('/').slice(0, 2).join('/');
  const lines = run('git', [
    'ls-remote',
    `https://github.com/${repository}`,
    `refs/tags/${tag}`,
    `refs/tags/${tag}^{}`,
  ]);
  // A tag with words of its own is an object; what it stands for has "^{}" behind its name.
  const rows = lines
    .trim()
    .split('\n')
    .map((line) => line.split('\t'));
  const [commit = ''] = rows.find(([, ref]) => ref?.endsWith('^{}')) ?? rows[0] ?? [];
  return required(commit, kind, name);
}

function required(digest, kind, name) {
  if (!DIGESTS[kind].test(digest)) throw new Error(`${name}: "${digest}" is no digest; nothing was written`);
  return digest;
}

const run = (program, args) => execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
const readPins = () => JSON.parse(readFileSync(PINS, 'utf8'));

function write(pins) {
  for (const file of namingFiles()) writeFileSync(file, withPins(readFileSync(file, 'utf8'), pins));
}

if (import.meta.main) {
  const [command, option] = process.argv.slice(2);
  if (command === 'check') {
    const files = namingFiles().map((file) => [file, readFileSync(file, 'utf8')]);
    const found = faults(files, readPins(), { resolved: option === '--resolved' });
    for (const each of found) process.stderr.write(`${each}\n`);
    process.exitCode = found.length === 0 ? 0 : 1;
  } else if (command === 'resolve') {
    const resolved = resolvedPins(readPins(), run);
    writeFileSync(PINS, `${JSON.stringify(resolved, null, 2)}\n`);
    write(resolved);
  } else if (command === 'write') {
    write(readPins());
  } else {
    process.stderr.write('usage: pins.mjs check [--resolved] | resolve | write\n');
    process.exitCode = 2;
  }
}

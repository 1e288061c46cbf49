/**
 * What a release is made of, step by step. The release workflow runs these steps; `npm run rehearse` runs on this machine
 * what can be run here, publishes to a registry of its own on this machine, and lists the rest with the reasons.
 *
 *   node config/release/release.mjs STEP...      or `rehearse`
 *
 * What is made lies in `release/` afterwards. Where the tag of a release is known (GITHUB_REF_NAME), it has to be of this
 * version.
 */
import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { shippedOf, writeBill } from '../image/sbom.mjs';
import { openRegistry } from './registry.mjs';

const OUT = 'release';

/** Licences that the owner may pass on with the program as the image does: by their words beside it. */
const ALLOWED = new Set(['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', '0BSD']);

const read = (path) => readFileSync(path, 'utf8');
const json = (path) => JSON.parse(read(path));
const run = (program, args, options = {}) => execFileSync(program, args, { encoding: 'utf8', ...options });
/** The same beside the registry of the rehearsal, which answers meanwhile. */
const runBeside = promisify(execFile);
const version = () => json('package.json').version;

/** The part of the changelog about a version, without its heading; null where there is none. */
export function notesOf(changelog, wanted) {
  const part = changelog.split(/^## /m).find((each) => each.split(/[\s,]/)[0] === wanted);
  return part === undefined ? null : `${part.slice(part.indexOf('\n')).trim()}\n`;
}

/** Returns the shipped packages without a licence that allows redistribution, or without its text. */
export function licenceFaults(packages, hasText) {
  return shippedOf({ packages }).flatMap(([path, { license }]) => {
    if (!ALLOWED.has(license)) return [`${path}: ${license ?? 'no licence'} is not among those that may be passed on`];
    return hasText(path) ? [] : [`${path}: has no file with the words of its licence (${license})`];
  });
}

/** Where the version stands beside package.json. */
function versionFaults() {
  const wanted = version();
  const chart = read('config/helm/tidemark/Chart.yaml');
  const tag = process.env.GITHUB_REF_TYPE === 'tag' ? process.env.GITHUB_REF_NAME : `v${wanted}`;
  const places = [
    ['the tag', tag === `v${wanted}`],
    ['package-lock.json', json('package-lock.json').version === wanted],
    ['src/core/status.ts', read('src/core/status.ts').includes(`VERSION = '${wanted}'`)],
    ['Dockerfile', read('Dockerfile').includes(`ARG VERSION=${wanted}\n`)],
    [
      'config/kubernetes/base/kustomization.yaml',
      read('config/kubernetes/base/kustomization.yaml').includes(`newTag: ${wanted}\n`),
    ],
    [
      'config/helm/tidemark/Chart.yaml',
      chart.includes(`\nversion: ${wanted}\n`) && chart.includes(`\nappVersion: ${wanted}\n`),
    ],
    ['CHANGELOG.md', notesOf(read('CHANGELOG.md'), wanted) !== null],
  ];
  return places
    .filter(([, right]) => !right)
    .map(([place]) => `${place} does not speak of ${wanted}, the version of package.json`);
}

/** A folder's files and their bytes in one digest. */
function digestOf(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const hash = createHash('sha256');
  for (const path of files.map((entry) => join(entry.parentPath, entry.name)).sort()) {
    hash
      .update(`${path.slice(folder.length)}\0`)
      .update(readFileSync(path))
      .update('\0');
  }
  return hash.digest('hex');
}

/** Builds the program twice and compares the results: a release must be reproducible. */
function buildTwice() {
  const place = mkdtempSync(join(tmpdir(), 'tidemark-release-'));
  try {
    const digests = ['a', 'b'].map((name) => {
      run(process.execPath, ['config/build.mjs', join(place, name)], { stdio: ['ignore', 'ignore', 'inherit'] });
      return digestOf(join(place, name));
    });
    if (digests[0] !== digests[1]) throw new Error('two builds of the program differ');
    return digests[0];
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

/** Helm: `HELM`, what test/deploy/tools.sh has built, or that of the path. */
function helm() {
  const [, at] = /^helm (\S+)/m.exec(existsSync(TOOLS) ? read(TOOLS) : '') ?? [];
  const built = join(homedir(), '.cache', 'tidemark-deploy-tools', `helm-${at}`);
  return process.env.HELM ?? (existsSync(built) ? built : 'helm');
}

const TOOLS = 'test/deploy/tools.txt';
const chartFile = () => join(OUT, `tidemark-${version()}.tgz`);

/** The chart as one file. Helm follows the links to dashboards and rules, with a message for each. */
function packChart() {
  run(helm(), ['package', 'config/helm/tidemark', '--destination', OUT], { stdio: ['ignore', 'ignore', 'pipe'] });
  if (!existsSync(chartFile())) throw new Error(`helm made no ${chartFile()}`);
  return chartFile();
}

/** @param place a registry and a folder in it */
async function pushChart(place, flags = []) {
  await runBeside(helm(), ['push', chartFile(), `oci://${place}/charts`, ...flags]);
  return `oci://${place}/charts/tidemark:${version()}`;
}

/** The name of the image and its labels of origin. */
export function namesOf({ version, repository, commit: { time, seconds } }) {
  const image = `ghcr.io/${repository.toLowerCase()}`;
  // What is not a release yet is nobody's latest.
  const tags = [version, ...(version.includes('-') ? [] : ['latest'])].map((tag) => `${image}:${tag}`);
  return { VERSION: version, IMAGE: image, CREATED: time, SOURCE_DATE_EPOCH: seconds, TAGS: tags.join('\n') };
}

function names() {
  const [time = '', seconds = ''] = run('git', ['log', '-1', '--format=%cI %ct']).trim().split(' ');
  const repository = process.env.GITHUB_REPOSITORY ?? 'rehearsal/tidemark';
  return namesOf({ version: version(), repository, commit: { time, seconds } });
}

/** Something that this machine cannot do: no failure of a rehearsal. */
class NotHere extends Error {}

/** Buildah: `BUILDAH`, or that of the path. */
const buildah = async (...args) => await runBeside(process.env.BUILDAH ?? 'buildah', args, { maxBuffer: 2 ** 26 });

/** The name of the image in the store of this machine. */
const LOCAL = 'localhost/tidemark-rehearsal';

/** Builds the image of this machine's architecture by the Dockerfile, as an OCI layout. */
async function buildImage() {
  rmSync(join(OUT, 'image'), { recursive: true, force: true });
  const { VERSION, CREATED, SOURCE_DATE_EPOCH } = names();
  const revision = run('git', ['rev-parse', 'HEAD']).trim();
  const args = [`VERSION=${VERSION}`, `REVISION=${revision}`, `CREATED=${CREATED}`].flatMap((arg) => [
    '--build-arg',
    arg,
  ]);
  const how = ['--isolation=chroot', '--network=host', '--format=docker', `--timestamp=${SOURCE_DATE_EPOCH}`];
  try {
    await buildah('bud', ...how, ...args, '-t', LOCAL, '.');
  } catch (error) {
    if (error.code === 'ENOENT') throw new NotHere('buildah is not installed');
    const missing = /initializing source docker:\/\/(\S+?):? /.exec(error.stderr)?.[1];
    if (missing === undefined) throw error;
    throw new NotHere(`its base image ${missing} is not here and cannot be pulled`);
  }
  await buildah('push', LOCAL, `oci:${join(OUT, 'image')}:${VERSION}`);
  return join(OUT, 'image');
}

async function pushImageHere(name) {
  const idOf = async (image) => (await buildah('images', '-q', '--no-trunc', image)).stdout.trim();
  await buildah('push', '--tls-verify=false', LOCAL, `docker://${name}`);
  await buildah('pull', '--policy=always', '--tls-verify=false', `docker://${name}`);
  if ((await idOf(name)) !== (await idOf(LOCAL)))
    throw new Error('the image that was pulled is not the one that was pushed');
  await buildah('rmi', name, LOCAL);
  return name;
}

/** Pushes to a registry on this machine what the workflow pushes, and pulls it again. */
async function publishHere() {
  const registry = await openRegistry();
  const place = mkdtempSync(join(tmpdir(), 'tidemark-release-'));
  try {
    const pushed = [await pushChart(`${registry.host}/rehearsal`, ['--plain-http'])];
    const from = `oci://${registry.host}/rehearsal/charts/tidemark`;
    await runBeside(helm(), ['pull', from, '--version', version(), '--plain-http', '--destination', place]);
    if (!readFileSync(join(place, `tidemark-${version()}.tgz`)).equals(readFileSync(chartFile())))
      throw new Error('the chart that was pulled is not the one that was pushed');
    if (existsSync(join(OUT, 'image')))
      pushed.push(await pushImageHere(`${registry.host}/rehearsal/tidemark:${version()}`));
    return pushed.join(', ');
  } finally {
    rmSync(place, { recursive: true, force: true });
    registry.close();
  }
}

/** What a rehearsal leaves out: `in` the release workflow, a part of the step. */
export const NOT_REHEARSED = [
  {
    what: 'the image for both architectures in one index, with its own bill of materials',
    in: ['docker/setup-buildx-action', 'docker/build-push-action'],
    because: 'it needs BuildKit; `npm run test:image` tests the image for amd64',
  },
  {
    what: 'the logins at ghcr.io',
    in: ['docker/login-action', 'helm registry login'],
    because: 'GitHub gives their token to the workflow alone',
  },
  {
    what: 'the signature of the image',
    in: ['sigstore/cosign-installer', 'cosign sign'],
    because: 'cosign signs with the identity that GitHub gives to the workflow',
  },
  {
    what: 'the provenance of the image',
    in: ['actions/attest-build-provenance'],
    because: 'GitHub attests what its own machine has built',
  },
  {
    what: 'the release with its notes, chart and bill of materials',
    in: ['gh release create'],
    because: 'it is made on GitHub, with the token of the workflow',
  },
];

function orThrow(found) {
  if (found.length > 0) throw new Error(found.join('\n'));
}

const STEPS = {
  version: () => {
    orThrow(versionFaults());
    return version();
  },
  licences: () => {
    const { packages } = json('package-lock.json');
    const hasText = (path) =>
      existsSync(path) && readdirSync(path).some((name) => /^(?:licen[cs]e|copying)/i.test(name));
    orThrow(licenceFaults(packages, hasText));
    return 'all may be passed on';
  },
  program: buildTwice,
  chart: () => packChart(),
  notes: () => {
    const file = join(OUT, 'notes.md');
    writeFileSync(file, notesOf(read('CHANGELOG.md'), version()) ?? '');
    return file;
  },
  sbom: () => {
    const file = join(OUT, 'sbom.cdx.json');
    writeBill(file);
    return file;
  },
  // For the steps of the workflow that follow.
  names: () => {
    const found = names();
    const { GITHUB_ENV: file } = process.env;
    const lines = Object.entries(found).map(([name, value]) => `${name}<<END\n${value}\nEND\n`);
    if (file !== undefined) appendFileSync(file, lines.join(''));
    return found.TAGS.split('\n').join(', ');
  },
  push: () => pushChart(names().IMAGE.replace(/\/[^/]+$/, '')),
  // A rehearsal needs no digests; the workflow runs `pins.mjs check --resolved` itself.
  pins: () => {
    run(process.execPath, ['config/release/pins.mjs', 'check']);
    const pins = json('config/release/pins.json');
    const open = [...Object.entries(pins.actions), ...Object.entries(pins.images)].filter(
      ([, digest]) => digest === '',
    );
    return open.length === 0 ? 'all resolved' : `${open.length} not resolved: a release would fail (pins.mjs resolve)`;
  },
  image: buildImage,
  publish: publishHere,
};

/** In their order; the last two are only of a rehearsal. */
const REHEARSED = ['version', 'licences', 'program', 'chart', 'notes', 'sbom', 'names', 'pins', 'image', 'publish'];

if (import.meta.main) {
  const asked = process.argv.slice(2);
  const isRehearsal = asked[0] === 'rehearse';
  const steps = isRehearsal ? REHEARSED : asked;
  if (steps.length === 0 || steps.some((name) => !(name in STEPS))) {
    process.stderr.write(`usage: release.mjs rehearse | ${Object.keys(STEPS).join(' | ')}\n`);
    process.exit(2);
  }
  mkdirSync(OUT, { recursive: true });
  const left = [];
  for (const name of steps) {
    try {
      process.stdout.write(`ok ${name}: ${await STEPS[name]()}\n`);
    } catch (error) {
      if (error instanceof NotHere) left.push({ what: `the step ${name}`, because: error.message });
      else {
        process.stdout.write(`NOT ${name}: ${error.message}\n`);
        process.exitCode = 1;
      }
    }
  }
  for (const { what, because } of isRehearsal ? [...left, ...NOT_REHEARSED] : left)
    process.stdout.write(`not rehearsed: ${what}, because ${because}\n`);
}

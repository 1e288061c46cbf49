/**
 * What a release is made of, step by step. The release workflow runs these steps; `npm run rehearse` runs them all on
 * this machine and publishes nothing.
 *
 *   node config/release/release.mjs STEP...      version, licences, program, chart, notes; or `rehearse`: all of them, and `pins`
 *
 * What is made lies in `release/` afterwards. Where the tag of a release is known (GITHUB_REF_NAME), it has to be of
 * this version.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const OUT = 'release';

/** Licences that the owner may pass on with the program as the image does: by their words beside it. */
const ALLOWED = new Set(['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', '0BSD']);

const read = (path) => readFileSync(path, 'utf8');
const json = (path) => JSON.parse(read(path));
const run = (program, args, options = {}) => execFileSync(program, args, { encoding: 'utf8', ...options });
const version = () => json('package.json').version;

/** The part of the changelog about a version, without its heading; null where there is none. */
export function notesOf(changelog, wanted) {
  const part = changelog.split(/^## /m).find((each) => each.split(/[\s,]/)[0] === wanted);
  return part === undefined ? null : `${part.slice(part.indexOf('\n')).trim()}\n`;
}

/** What of the packages that are shipped has no licence that may be passed on, or lacks its words. */
export function licenceFaults(packages, hasText) {
  return Object.entries(packages)
    .filter(([path, { dev, optional }]) => path !== '' && dev !== true && optional !== true)
    .flatMap(([path, { license }]) => {
      if (!ALLOWED.has(license))
        return [`${path}: ${license ?? 'no licence'} is not among those that may be passed on`];
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
    ['src/cli/help.ts', read('src/cli/help.ts').includes(`VERSION = '${wanted}'`)],
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

/** Builds the program twice: it is the same, or nobody can tell what was released. */
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

/** The chart as one file. Helm follows the links to dashboards and rules and says so, once for each. */
function packChart(helm = process.env.HELM ?? 'helm') {
  run(helm, ['package', 'config/helm/tidemark', '--destination', OUT], { stdio: ['ignore', 'ignore', 'pipe'] });
  const file = join(OUT, `tidemark-${version()}.tgz`);
  if (!existsSync(file)) throw new Error(`helm made no ${file}`);
  return file;
}

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
  // A rehearsal needs no digests; the workflow runs `pins.mjs check --resolved` itself.
  pins: () => {
    run(process.execPath, ['config/release/pins.mjs', 'check']);
    const pins = json('config/release/pins.json');
    const open = [...Object.entries(pins.actions), ...Object.entries(pins.images)].filter(
      ([, digest]) => digest === '',
    );
    return open.length === 0 ? 'all resolved' : `${open.length} not resolved: a release would fail (pins.mjs resolve)`;
  },
};

if (import.meta.main) {
  const asked = process.argv.slice(2);
  const steps = asked[0] === 'rehearse' ? Object.keys(STEPS) : asked;
  if (steps.length === 0 || steps.some((name) => !(name in STEPS))) {
    process.stderr.write(`usage: release.mjs rehearse | ${Object.keys(STEPS).join(' | ')}\n`);
    process.exit(2);
  }
  mkdirSync(OUT, { recursive: true });
  for (const name of steps) {
    try {
      process.stdout.write(`ok ${name}: ${STEPS[name]()}\n`);
    } catch (error) {
      process.stdout.write(`NOT ${name}: ${error.message}\n`);
      process.exitCode = 1;
    }
  }
}

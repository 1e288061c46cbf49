/**
 * `npm run test:image`: builds the image by the Dockerfile and runs it, without a Docker engine (buildah, podman, runc
 * and debootstrap from Debian; root). The base images are stand-ins, unless the real ones are in the store already.
 *
 * The store is kept in `TIDEMARK_IMAGE_STORE`, or in a temporary directory: about 2 GB.
 */
import { existsSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openBench, openStage, ROOT } from '../process/support.ts';
import { BASE, makeBases } from './base.ts';
import { imageChecks } from './checks.ts';
import { openEngine } from './engine.ts';
import { IMAGE } from './life.ts';

const TOOLS = ['/usr/bin/buildah', '/usr/bin/podman', '/usr/sbin/runc', '/usr/sbin/debootstrap', '/usr/bin/influxd'];

const missing = TOOLS.filter((tool) => !existsSync(tool));
if (missing.length > 0) {
  process.stderr.write(`missing: ${missing.join(', ')} (apt-get install buildah podman runc debootstrap influxdb)\n`);
  process.exit(1);
}

// By its tag: a stand-in has no digest of the real one.
const nodeImage = /^ARG NODE_IMAGE=([^\s@]+)/m.exec(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'))?.[1];
if (nodeImage === undefined) throw new Error('the Dockerfile names no NODE_IMAGE');
const engine = openEngine(process.env['TIDEMARK_IMAGE_STORE'] ?? join(tmpdir(), 'tidemark-image-store'));
const counts = { passed: 0, failed: 0 };

await check('the images that it begins with are there', () => makeBases(engine, nodeImage));
await check('the Dockerfile builds', async () => await build(IMAGE));
await check('a second build has the same layers and the same configuration', async () => {
  await build(`${IMAGE}-again`);
  // Not the digest of all: in this format buildah notes the container in which it has worked.
  const format = '--format={{json .RootFS.Layers}} {{json .Config}} {{json .History}}';
  const found = await engine.podman(['image', 'inspect', format, IMAGE, `${IMAGE}-again`]);
  const [first, second] = found.stdout.trim().split('\n');
  if (first === undefined || first !== second) throw new Error(`${first}\n${second}\n${found.stderr}`);
});
await using bench = await openBench();
await using stage = await openStage({ bench });
for (const { name, run } of imageChecks(engine, stage, [BASE, nodeImage])) await check(name, run);
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed\n`);
process.exitCode = counts.failed === 0 ? 0 : 1;

/** Builds the image, with the same time for all files and for the image itself, as the release does. */
async function build(name: string): Promise<void> {
  const how = [
    '--isolation=chroot',
    '--network=host',
    '--pull-never',
    '--format=docker',
    '--no-cache',
    '--timestamp=0',
  ];
  const bases = ['--build-arg', `NODE_IMAGE=${nodeImage}`, '--build-arg', `BASE_IMAGE=${BASE}`];
  await engine.build(['bud', ...how, ...bases, '-t', name, ROOT]);
}

async function check(name: string, work: () => Promise<unknown>): Promise<void> {
  const beganMs = performance.now();
  try {
    await work();
    counts.passed += 1;
    process.stdout.write(`ok ${name} (${((performance.now() - beganMs) / 1000).toFixed(1)} s)\n`);
  } catch (error) {
    counts.failed += 1;
    process.stdout.write(`NOT ${name}\n${error instanceof Error ? error.message : String(error)}\n`);
  }
}

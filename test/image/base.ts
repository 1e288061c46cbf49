/**
 * Stand-ins for the two images that the Dockerfile begins with, where no registry of images can be reached: a small
 * Debian made by debootstrap, and the same with Node, npm and the user of Node's own image. They show that the steps of
 * the Dockerfile work, and not that the real images do.
 */
import { cpSync, existsSync, mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Engine, run } from './engine.ts';

export const BASE = 'docker.io/library/debian:bookworm-slim';

const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const BUILD = ['bud', '--isolation=chroot', '--network=host', '--format=docker', '--pull-never'];

/**
 * Makes what is not there yet.
 *
 * @param nodeImage the name that the Dockerfile gives to Node's image.
 */
export async function makeBases(engine: Engine, nodeImage: string): Promise<void> {
  if (!(await has(engine, BASE))) await makeDebian(engine);
  if (!(await has(engine, nodeImage))) await makeNode(engine, nodeImage);
}

async function has(engine: Engine, image: string): Promise<boolean> {
  return (await engine.podman(['image', 'exists', image])).code === 0;
}

async function makeDebian(engine: Engine): Promise<void> {
  const root = join(engine.directory, 'debian');
  if (!existsSync(join(root, 'etc'))) {
    const made = await run('debootstrap', ['--variant=minbase', '--include=ca-certificates', 'bookworm', root]);
    if (made.code !== 0) throw new Error(`debootstrap: ${made.stdout.slice(-1000)}${made.stderr.slice(-1000)}`);
  }
  for (const path of ['var/cache/apt', 'var/lib/apt/lists']) rmSync(join(root, path), { recursive: true, force: true });
  await bud(engine, { name: BASE, lines: ['FROM scratch', 'ADD debian /'] });
}

async function makeNode(engine: Engine, name: string): Promise<void> {
  const bin = join(engine.directory, 'node', 'usr', 'local', 'bin');
  const modules = join(engine.directory, 'node', 'usr', 'local', 'lib', 'node_modules');
  mkdirSync(bin, { recursive: true });
  cpSync(process.execPath, join(bin, 'node'));
  cpSync(join(dirname(dirname(process.execPath)), 'LICENSE'), join(bin, '..', 'LICENSE'));
  const npm = realpathSync((await run('which', ['npm'])).stdout.trim());
  cpSync(dirname(dirname(npm)), join(modules, 'npm'), { recursive: true });
  for (const tool of ['npm', 'npx']) {
    rmSync(join(bin, tool), { force: true });
    symlinkSync(`../lib/node_modules/npm/bin/${tool}-cli.js`, join(bin, tool));
  }
  const registry = (await run('npm', ['config', 'get', 'registry'])).stdout.trim();
  mkdirSync(join(engine.directory, 'node', 'etc', 'ssl', 'certs'), { recursive: true });
  cpSync(CERTIFICATES, join(engine.directory, 'node', CERTIFICATES));
  const lines = [
    `FROM ${BASE}`,
    'ADD node /',
    'RUN groupadd -g 1000 node && useradd -u 1000 -g node -m node',
    `ENV NODE_EXTRA_CA_CERTS=${CERTIFICATES} NPM_CONFIG_REGISTRY=${registry}`,
  ];
  await bud(engine, { name, lines });
}

async function bud(engine: Engine, { name, lines }: { name: string; lines: readonly string[] }): Promise<void> {
  const file = join(engine.directory, 'Base.Dockerfile');
  writeFileSync(file, `${lines.join('\n')}\n`);
  await engine.build([...BUILD, '-t', name, '-f', file, engine.directory]);
}

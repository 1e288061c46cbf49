/**
 * The files around the program in a deployment: the Dockerfile, the examples, the manifests and the unit contain
 * nothing that the program does not understand. (The image itself is built and run by `npm run test:image`.)
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { validate } from 'dockerfile-utils';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { knownVariables } from '../../src/config/schema.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const KUBERNETES = join(ROOT, 'config', 'kubernetes');
const KNOWN = new Set(knownVariables().keys());

const read = (...path: string[]): string => readFileSync(join(ROOT, ...path), 'utf8');

/** The variables of ours that a text sets or names. */
function variablesIn(text: string): string[] {
  return [...text.matchAll(/\bTIDEMARK_[A-Z_]+\b/g)].map(([name]) => name).filter((name) => !name.endsWith('_'));
}

interface Manifest {
  readonly kind: string;
  // The manifests are read as what they are: trees of a foreign kind.
  // biome-ignore lint/suspicious/noExplicitAny: see above
  readonly [member: string]: any;
}

function manifest(name: string): Manifest {
  return parse(readFileSync(join(KUBERNETES, 'base', name), 'utf8'));
}

describe('the Dockerfile', () => {
  test('has nothing that a linter dislikes', () => {
    expect(validate(read('Dockerfile'))).toEqual([]);
    expect(validate('FROM a\nRUNN b\n'), 'a bad one is noticed').not.toEqual([]);
  });

  test('runs as a user without rights, with the checks of the program itself', () => {
    const text = read('Dockerfile');
    expect(text).toMatch(/^USER 1000:1000$/m);
    expect(text).toMatch(/^HEALTHCHECK .* CMD \["tidemark", "--health"\]$/m);
    expect(text).toMatch(/^ENTRYPOINT \["tidemark"\]$/m);
    // The last stage runs nothing, so that no platform is emulated.
    expect(text.slice(text.lastIndexOf('\nFROM '))).not.toMatch(/^RUN /m);
  });

  test('gets the platform from the builder: a default would apply to every platform', () => {
    const own = [...read('Dockerfile').matchAll(/^ARG ((?:TARGET|BUILD)\w+)(.*)$/gm)].map(([, name, rest]) => [
      name,
      rest,
    ]);
    expect(own).toEqual([['TARGETARCH', '']]);
    expect(read('Dockerfile')).toMatch(/assemble\.mjs \/out "\$\{TARGETARCH:-amd64\}"/);
  });

  test('copies nothing that .dockerignore keeps from the builder, and nothing that is not there', () => {
    const copied = [...read('Dockerfile').matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, names = '']) =>
      names.split(' '),
    );
    const passed = read('.dockerignore')
      .split('\n')
      .filter((line) => line.startsWith('!'))
      .map((line) => line.slice(1));
    expect(copied.length).toBeGreaterThan(5);
    expect(copied.filter((name) => !existsSync(join(ROOT, name)))).toEqual([]);
    expect(copied.toSorted()).toEqual(passed.toSorted());
  });

  test('stands on images that are pinned by version', () => {
    const images = [...read('Dockerfile').matchAll(/^ARG \w+_IMAGE=(\S+)$/gm)].map(([, image]) => image);
    expect(images).toHaveLength(2);
    expect(images[0]).toMatch(/:\d+\.\d+\.\d+-/);
  });
});

describe('every variable that is named is one of the configuration', () => {
  const files = [
    'Dockerfile',
    join('config', 'tidemark.env.example'),
    join('config', 'systemd', 'tidemark@.service'),
    ...['docker.md', 'kubernetes.md', 'systemd.md'].map((name) => join('docs', name)),
    join('config', 'helm', 'tidemark', 'values.yaml'),
    ...readdirSync(KUBERNETES, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.yaml'))
      .map((name) => join('config', 'kubernetes', name)),
  ];
  test.each(files)('%s', (file) => {
    expect(variablesIn(read(file)).filter((name) => !KNOWN.has(name))).toEqual([]);
  });

  test('the example for Docker has no quotes, which Docker would pass on', () => {
    const lines = read('config', 'tidemark.env.example')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    expect(lines.length).toBeGreaterThan(4);
    for (const line of lines) expect(line).toMatch(/^TIDEMARK_[A-Z_]+=[^'" ]+$/);
  });
});

describe('the manifests of Kubernetes', () => {
  test('run one pod of a workspace, under the restricted profile', () => {
    const { spec } = manifest('statefulset.yaml');
    const { spec: pod } = spec.template;
    const [container] = pod.containers;
    expect(spec.replicas).toBe(1);
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect(container.livenessProbe.httpGet.path).toBe('/healthz');
    expect(container.readinessProbe.httpGet.path).toBe('/readyz');
  });

  test('leave the page reachable while it is not ready, and select their own pods', () => {
    const labels = manifest('statefulset.yaml')['spec'].template.metadata.labels;
    const service = manifest('service.yaml');
    expect(service['spec'].publishNotReadyAddresses).toBe(true);
    expect(labels).toMatchObject(service['spec'].selector);
    expect(labels).toMatchObject(manifest('networkpolicy.yaml')['spec'].podSelector.matchLabels);
  });

  test('list every workspace that has a directory, and only those', () => {
    const folder = join(KUBERNETES, 'workspaces');
    const { resources } = parse(readFileSync(join(folder, 'kustomization.yaml'), 'utf8'));
    const directories = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(resources.filter((name: string) => !name.endsWith('.yaml')).sort()).toEqual(
      directories.map(({ name }) => name).sort(),
    );
    for (const { name } of directories) {
      const { namePrefix } = parse(readFileSync(join(folder, name, 'kustomization.yaml'), 'utf8'));
      expect(namePrefix).toBe(`${name}-`);
    }
  });

  test('every file of them is YAML', () => {
    const files = readdirSync(KUBERNETES, { recursive: true, encoding: 'utf8' }).filter((name) => /\.yaml$/.test(name));
    expect(files.length).toBeGreaterThan(6);
    for (const file of files) {
      for (const document of parseAllDocuments(readFileSync(join(KUBERNETES, file), 'utf8'))) {
        expect([file, document.errors]).toEqual([file, []]);
      }
    }
  });
});

describe('the release', () => {
  test('names the version of the package', () => {
    const { version } = JSON.parse(read('package.json'));
    expect(read('Dockerfile')).toContain(`ARG VERSION=${version}`);
    expect(read('config', 'kubernetes', 'base', 'kustomization.yaml')).toContain(`newTag: ${version}`);
    const chart = parse(read('config', 'helm', 'tidemark', 'Chart.yaml'));
    expect([chart.version, chart.appVersion]).toEqual([version, version]);
    expect(read('src', 'core/status.ts')).toContain(`'${version}'`);
  });
});

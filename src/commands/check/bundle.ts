/**
 * `--check --bundle FILE`: what an owner attaches to a question. One JSON object that a person can read through before it
 * is sent: nothing secret, no reading, no position, and no name of a device or the workspace.
 *
 * Promises: each part is there, or says why it is not: a broken configuration or state is what it is written for; beside a
 * daemon nothing is disturbed; everything is searched once more for secrets, names and addresses before it is written.
 */
import { existsSync } from 'node:fs';
import { availableParallelism, freemem, homedir, release, totalmem, type } from 'node:os';
import { realClock, realRandom } from '../../app/real-clock.ts';
import type { ProcessPorts, RuntimeFacts } from '../../app/terminal.ts';
import { VERSION } from '../../app/version.ts';
import type { ConfigTold } from '../../config/describe.ts';
import type { CheckReport } from '../../core/check.ts';
import { UserError } from '../../core/faults.ts';
import { Secret } from '../../core/secret.ts';
import type { DeviceStatus, StatusReport } from '../../core/status.ts';
import { plainText } from '../../core/text.ts';
import { createScrub } from '../../observe/scrub.ts';
import { reportNow } from '../../report/report.ts';
import { filesOf, lookForBundle, type Unavailable } from '../../store/look/bundle.ts';
import { openToRead } from '../../store/look/read-state.ts';
import { writeBundle } from '../../store/open/new-file.ts';
import { partsOfState } from '../shared/state-report.ts';
import { askDaemon } from './bundle-daemon.ts';
import type { CheckParts } from './command.ts';
import { createPseudonyms, type Pseudonyms, withoutPeople, withoutQuotedAnswers, withoutQuotes } from './pseudonyms.ts';

export interface BundleParts extends CheckParts {
  /** What the check itself has found. */
  readonly check: CheckReport | Unavailable;
}

const ABOUT =
  'A support bundle of Tidemark. Devices are named d1, d2, ... and the workspace "workspace", the same in all of it; there is no key, token, password, reading, sensor or position in it. Look through it before you send it: addresses of servers, names of buckets and paths are there.';

/** Gathers it all and writes it. @throws UserError (exit 1) where it cannot be written. */
export async function writeSupportBundle(file: string, parts: BundleParts, ports: ProcessPorts): Promise<void> {
  const { read, voice } = parts;
  const { told } = read;
  const look = read.state === null ? null : lookForBundle(read.state.dataDir);
  const named = look?.named ?? { devices: [], workspace: [] };
  // Where the state cannot be read, what the configuration says is all that is known.
  const own = read.state?.workspaceId ?? null;
  const names = createPseudonyms({ ...named, workspace: own === null ? named.workspace : [...named.workspace, own] });
  const daemon = read.state === null ? null : await askDaemon(read.state.listen);
  const bundle = {
    about: ABOUT,
    made_at: new Date(realClock.nowMs()).toISOString(),
    versions: versions(ports),
    configuration: { ...configuration(told), mistakes: read.mistakes },
    check: parts.check,
    status: read.state === null ? NO_CONFIG : status(read.state, names),
    state: stateOf(parts, look, names),
    daemon: daemon ?? { unavailable: 'no daemon answers at listen' },
  };
  const clean = cleaner(told, names, voice.scrub);
  writeBundle(file, readable(mapTexts(bundle, clean)), realRandom);
  voice.logger.say({ type: 'bundle-written', file });
}

const NO_CONFIG = { unavailable: 'the configuration cannot be used, so it is not known where the state is' };

function versions({ runtime }: ProcessPorts) {
  return {
    tidemark: VERSION,
    ...runtimeTold(runtime?.() ?? null),
    os: `${type()} ${release()}`,
    container: ['/.dockerenv', '/run/.containerenv', '/var/run/secrets/kubernetes.io'].some((path) => existsSync(path)),
    processors: availableParallelism(),
    memory_bytes: totalmem(),
    memory_free_bytes: freemem(),
  };
}

function runtimeTold(facts: RuntimeFacts | null) {
  if (facts === null) return {};
  const { node, libraries, architecture, memoryLimitBytes } = facts;
  // Where nothing limits it, some systems tell the largest number that there is.
  const limit = memoryLimitBytes === null || memoryLimitBytes >= totalmem() ? null : memoryLimitBytes;
  return { node, libraries, architecture, memory_limit_bytes: limit };
}

function configuration({ file, keys, proxies }: ConfigTold) {
  const values = keys.map(({ key, source, value }) => [key, `${value ?? '-'}   (${source})`]);
  return { file, values: Object.fromEntries(values), proxies_set: proxies };
}

/** More devices than that are told of as counts only. */
const MOST_DEVICES = 100;

type State = NonNullable<CheckParts['read']['state']>;

function status(config: State, names: Pseudonyms): unknown {
  try {
    using state = openToRead(config.dataDir);
    if (state === null) return { unavailable: 'there is no state yet' };
    const { devices, ...report } = reportNow(partsOfState(state, config, realClock));
    return { ...report, workspace_id: report.workspace_id === null ? null : 'workspace', ...devicesOf(devices, names) };
  } catch (error) {
    return { unavailable: error instanceof UserError ? error.message : plainText(String(error), 200) };
  }
}

function devicesOf(devices: StatusReport['devices'], names: Pseudonyms) {
  const byState: Record<string, number> = {};
  for (const { state } of devices) byState[state] = (byState[state] ?? 0) + 1;
  const worst = [...devices].sort((a, b) => badness(b) - badness(a)).slice(0, MOST_DEVICES);
  return { devices_by_state: byState, devices_worst: worst.map((device) => deviceTold(device, names)) };
}

function badness({ lag_seconds, gaps }: DeviceStatus): number {
  return (lag_seconds ?? Number.MAX_SAFE_INTEGER) + gaps.length;
}

/** How many gaps of a device are told one by one. */
const MOST_GAPS = 5;

function deviceTold({ device_id, state, lag_seconds, covered, gaps }: DeviceStatus, names: Pseudonyms) {
  const [first, last] = [covered.at(0), covered.at(-1)];
  const held = first === undefined || last === undefined ? null : { from: first[0], to: last[1] };
  return {
    device: names.device(device_id),
    state,
    lag_seconds,
    held: held === null ? null : { ...held, stretches: covered.length },
    gaps: gaps.length,
    last_gaps: gaps.slice(-MOST_GAPS),
  };
}

function stateOf({ read }: BundleParts, look: ReturnType<typeof lookForBundle>, names: Pseudonyms): unknown {
  if (read.state === null) return NO_CONFIG;
  const files = filesOf(read.state.dataDir);
  if (look === null) return { unavailable: 'there is no state yet', files };
  const { named, quarantine, requests, requestsByHour, requestsByKind, destinations, gaps, jobs, ...rest } = look;
  return {
    files,
    devices_known: named.devices.length,
    ...rest,
    destinations: eachRow(destinations, (row) => row),
    gaps: eachRow(gaps, (row) => row),
    jobs: eachRow(jobs, (row) => row),
    requests_by_hour: eachRow(requestsByHour, ({ hour, ...row }) => ({ hour_ms: Number(hour) * 3_600_000, ...row })),
    requests_by_kind: eachRow(requestsByKind, (row) => row),
    // What was refused is quoted there: lines, with names and values.
    quarantine: eachRow(quarantine, (row) => ({
      ...row,
      reason: plainText(withoutQuotes(String(row['reason'])), 160),
    })),
    requests: eachRow(requests, ({ device_id, ...row }) =>
      device_id === null ? row : { ...row, device: names.device(String(device_id)) },
    ),
  };
}

type Row = Readonly<Record<string, string | number | null>>;

function eachRow(rows: readonly Row[] | Unavailable, change: (row: Row) => Row): readonly Row[] | Unavailable {
  return 'unavailable' in rows ? rows : rows.map((row) => withTimes(change(row)));
}

/** What is smaller is no time of our days, but how long something takes. */
const FIRST_TIME_MS = 1e12;

/** Times as people read them: `at_ms` becomes `at`. */
function withTimes(row: Row): Row {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => {
      const isTime = name.endsWith('_ms') && typeof value === 'number' && value >= FIRST_TIME_MS && value < 8.64e15;
      return isTime ? [name.slice(0, -'_ms'.length), new Date(value).toISOString()] : [name, value];
    }),
  );
}

/** JSON for people: what is short stands in one line. */
function readable(value: unknown): string {
  const text = JSON.stringify(value, null, 1).replace(/[[{]\n[^[\]{}]*\n\s*[\]}]/g, (part) => {
    const line = part.replace(/\n\s*/g, ' ');
    return line.length <= LINE_WIDTH ? line : part;
  });
  return `${text}\n`;
}

const LINE_WIDTH = 160;

/** The last net, for every text: secrets, names, people, this user's home. */
function cleaner(told: ConfigTold, names: Pseudonyms, scrub: (text: string) => string): (text: string) => string {
  const hide = createScrub(told.hidden.map((text) => new Secret(text)));
  const home = homedir();
  return (text) => {
    const clean = withoutPeople(names.text(withoutQuotedAnswers(hide(scrub(text)))));
    return home.length > 1 ? clean.replaceAll(home, '~') : clean;
  };
}

/** The same value with each text in it changed, names of members as they are. */
function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (typeof value === 'bigint') return Number(value);
  if (Array.isArray(value)) return value.map((each) => mapTexts(each, change));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, mapTexts(each, change)]));
}

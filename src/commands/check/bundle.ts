/**
 * `--check --bundle FILE`: writes a support bundle, one JSON object that its owner can read before sending it. It
 * contains no secret, no reading, no location, and no name of a device or of the workspace.
 *
 * Promises: every part is present or states why it is missing, because a bundle is needed most when the configuration
 * or the state is broken. It does not disturb a running daemon. Before it is written, the complete text is searched
 * again for secrets, names and addresses.
 */

import { existsSync } from 'node:fs';
import { availableParallelism, freemem, homedir, release, totalmem, type } from 'node:os';
import { realClock, realRandom } from '../../app/real-clock.ts';
import type { ProcessPorts, RuntimeFacts } from '../../app/terminal.ts';
import type { Config } from '../../config/config.ts';
import { mistakeText } from '../../config/sources.ts';
import { UserError } from '../../core/faults.ts';
import { isRecord, parseJson } from '../../core/json.ts';
import type { RecentEvent } from '../../core/page-facts.ts';
import { createScrub, Secret } from '../../core/secret.ts';
import { type DeviceStatus, type StatusReport, VERSION } from '../../core/status.ts';
import { changeServerAnswer, plainText } from '../../core/text.ts';
import { formatMs, HOUR_MS } from '../../core/time.ts';
import { reportNow } from '../../report/report.ts';
import { writeBundle } from '../../store/open/new-file.ts';
import { listFiles, readForBundle, type Unavailable } from '../../store/views/bundle.ts';
import { openToRead } from '../../store/views/read-state.ts';
import { getPage } from '../shared/get-page.ts';
import { partsOfState } from '../shared/state-report.ts';
import type { CheckParts, DescribedConfig } from './config.ts';
import type { CheckReport } from './report.ts';

/** The input of a support bundle. */
export interface BundleParts extends CheckParts {
  readonly check: CheckReport | Unavailable;
}

const ABOUT =
  'A support bundle of Tidemark. Devices are called d1, d2, ... and the workspace "workspace" throughout. It contains no key, token, password, reading, sensor or position. Read it before you send it: it contains addresses of servers, names of buckets and paths.';

/**
 * Collects all parts and writes them.
 *
 * @throws UserError (exit 1) if the file cannot be written.
 */
export async function writeSupportBundle(file: string, parts: BundleParts, ports: ProcessPorts): Promise<void> {
  const { read, terminal } = parts;
  const { described } = read;
  const stateFacts = read.state === null ? null : readForBundle(read.state.dataDir);
  const named = stateFacts?.named ?? { devices: [], workspace: [] };
  // If the state cannot be read, only the configuration is known.
  const own = read.state?.workspaceId ?? null;
  const names = createPseudonyms({ ...named, workspace: own === null ? named.workspace : [...named.workspace, own] });
  const daemon = read.state === null ? null : await fetchDaemonReport(read.state);
  const bundle = {
    about: ABOUT,
    created_at: formatMs(realClock.nowMs()),
    versions: versions(ports),
    configuration: { ...configuration(described), mistakes: read.mistakes.map(mistakeText) },
    check: parts.check,
    status: read.state === null ? NO_CONFIG : status(read.state, names),
    state: bundledState(parts, stateFacts, names),
    daemon: daemon ?? { unavailable: 'no daemon answers at the address in listen' },
  };
  const clean = createCleaner(described, names, terminal.scrub);
  writeBundle(file, jsonText(mapTexts(bundle, clean)), { random: realRandom, dataDir: read.state?.dataDir ?? null });
  terminal.logger.write({ type: 'bundle-written', file });
}

const NO_CONFIG = { unavailable: 'the configuration is invalid, so data_dir is unknown' };

function versions({ runtime }: ProcessPorts) {
  return {
    tidemark: VERSION,
    ...runtimeReport(runtime?.() ?? null),
    os: `${type()} ${release()}`,
    container: ['/.dockerenv', '/run/.containerenv', '/var/run/secrets/kubernetes.io'].some((path) => existsSync(path)),
    processors: availableParallelism(),
    memory_bytes: totalmem(),
    memory_free_bytes: freemem(),
  };
}

function runtimeReport(facts: RuntimeFacts | null) {
  if (facts === null) return {};
  const { node, libraries, architecture, memoryLimitBytes } = facts;
  // Without a limit, some systems report the largest possible number.
  const limit = memoryLimitBytes === null || memoryLimitBytes >= totalmem() ? null : memoryLimitBytes;
  return { node, libraries, architecture, memory_limit_bytes: limit };
}

function configuration({ file, keys, proxies }: DescribedConfig) {
  const values = keys.map(({ key, source, value }) => [key, `${value ?? '-'}   (${source})`]);
  return { file, values: Object.fromEntries(values), proxies_set: proxies };
}

/** Beyond this number, devices appear as counts only. */
const MOST_BUNDLED_DEVICES = 100;

type State = NonNullable<CheckParts['read']['state']>;

function status(config: State, names: Pseudonyms): unknown {
  try {
    using state = openToRead(config.dataDir);
    if (state === null) return { unavailable: 'there is no state yet' };
    const { devices, ...report } = reportNow(partsOfState(state, config, realClock));
    return {
      ...report,
      workspace_id: report.workspace_id === null ? null : 'workspace',
      ...pseudonymousDevices(devices, names),
    };
  } catch (error) {
    return { unavailable: error instanceof UserError ? error.message : plainText(String(error), 200) };
  }
}

function pseudonymousDevices(devices: StatusReport['devices'], names: Pseudonyms) {
  const byState: Record<string, number> = {};
  for (const { state } of devices) byState[state] = (byState[state] ?? 0) + 1;
  const worst = [...devices].sort((a, b) => devicePriority(b) - devicePriority(a)).slice(0, MOST_BUNDLED_DEVICES);
  return { devices_by_state: byState, devices_worst: worst.map((device) => deviceReport(device, names)) };
}

function devicePriority({ lag_seconds, gaps }: DeviceStatus): number {
  return (lag_seconds ?? Number.MAX_SAFE_INTEGER) + gaps.length;
}

/** The most gaps of a device that are listed. */
const MOST_GAPS = 5;

function deviceReport({ device_id, state, lag_seconds, covered, gaps }: DeviceStatus, names: Pseudonyms) {
  const [first, last] = [covered.at(0), covered.at(-1)];
  const range = first === undefined || last === undefined ? null : { from: first[0], to: last[1] };
  return {
    device: names.device(device_id),
    state,
    lag_seconds,
    covered: range === null ? null : { ...range, ranges: covered.length },
    gaps: gaps.length,
    last_gaps: gaps.slice(-MOST_GAPS),
  };
}

function bundledState({ read }: BundleParts, stateFacts: ReturnType<typeof readForBundle>, names: Pseudonyms): unknown {
  if (read.state === null) return NO_CONFIG;
  const files = listFiles(read.state.dataDir);
  if (stateFacts === null) return { unavailable: 'there is no state yet', files };
  const { named, quarantine, requests, requestsByHour, requestsByKind, destinations, gaps, jobs, ...rest } = stateFacts;
  return {
    files,
    devices_known: named.devices.length,
    ...rest,
    destinations: eachRow(destinations, (row) => row),
    gaps: eachRow(gaps, (row) => row),
    jobs: eachRow(jobs, (row) => row),
    requests_by_hour: eachRow(requestsByHour, ({ hour, ...row }) => ({ hour_ms: Number(hour) * HOUR_MS, ...row })),
    requests_by_kind: eachRow(requestsByKind, (row) => row),
    // The reason of a quarantined line quotes lines, with names and values.
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

/** Smaller numbers are durations and not current times. */
const FIRST_TIME_MS = 1e12;

/** Times as people read them: `at_ms` becomes `at`. */
function withTimes(row: Row): Row {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => {
      const isTime = name.endsWith('_ms') && typeof value === 'number' && value >= FIRST_TIME_MS && value < 8.64e15;
      return isTime ? [name.slice(0, -'_ms'.length), formatMs(value)] : [name, value];
    }),
  );
}

/** JSON for people: short values are on one line. */
function jsonText(value: unknown): string {
  const text = JSON.stringify(value, null, 1).replace(/[[{]\n[^[\]{}]*\n\s*[\]}]/g, (part) => {
    const line = part.replace(/\n\s*/g, ' ');
    return line.length <= LINE_WIDTH ? line : part;
  });
  return `${text}\n`;
}

const LINE_WIDTH = 160;

/** The last protection, for every text: removes secrets, names, people, and this user's home directory. */
function createCleaner(
  described: DescribedConfig,
  names: Pseudonyms,
  scrub: (text: string) => string,
): (text: string) => string {
  const hide = createScrub(described.hidden.map((text) => new Secret(text)));
  const home = homedir();
  return (text) => {
    // The lines that a server quotes contain device names in another spelling.
    const clean = withoutPeople(names.text(changeServerAnswer(hide(scrub(text)), withoutQuotes)));
    return home.length > 1 ? clean.replaceAll(home, '~') : clean;
  };
}

/** Returns the same value with each text in it changed; member names stay as they are. */
function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (typeof value === 'bigint') return Number(value);
  if (Array.isArray(value)) return value.map((each) => mapTexts(each, change));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, mapTexts(each, change)]));
}

/** The responses of the daemon, or why there are none. */
interface DaemonReport {
  readonly health: unknown;
  readonly ready: unknown;
  /**
   * The latest events, newest first, with the message of the log. Other fields of the log lines are left out because
   * they contain names.
   */
  readonly events: readonly ReportedEvent[];
  /** Lines of `/metrics`: those of Tidemark, without those of single devices. */
  readonly metrics: readonly string[];
}

type ReportedEvent = Pick<RecentEvent, 'at' | 'level' | 'event' | 'message'>;

/** A page that does not arrive within these limits counts as missing. */
const MOST = { withinMs: 5000, bytes: 4 * 1024 * 1024 };

/**
 * Requests the report from the daemon.
 *
 * @returns `null` if no program answers there, or it is not a daemon.
 */
async function fetchDaemonReport({
  listen,
  statusPage,
}: Pick<Config, 'listen' | 'statusPage'>): Promise<DaemonReport | null> {
  if (listen.port === 0) return null;
  const page = async (path: string): Promise<string> => (await getPage(listen, path, MOST, statusPage.password)).body;
  try {
    const health = parseJson(await page('/healthz'));
    if (!isRecord(health) || !('healthy' in health)) return null;
    const ready = parseJson(await page('/readyz'));
    const metrics = (await page('/metrics'))
      .split('\n')
      .filter((line) => /^(?:tidemark|process|nodejs)_/.test(line) && !line.includes('device_id='));
    return { health, ready, events: eventsOf(parseJson(await page('/events.json'))), metrics };
  } catch {
    return null;
  }
}

function eventsOf(served: unknown): ReportedEvent[] {
  const list: unknown[] = Array.isArray(served) ? served : [];
  return list.filter(isEvent).map(({ at, level, event, message }) => ({ at, level, event, message }));
}

function isEvent(each: unknown): each is ReportedEvent {
  return isRecord(each) && 'event' in each && 'message' in each;
}

/**
 * Neutral names for devices: d1, d2, … in the order of their ids, the same everywhere in a bundle. The readers of a
 * bundle must not see the names that a customer uses.
 */
interface Pseudonyms {
  /** The neutral name of a device by its id; `d?` if the id is not known. */
  device(deviceId: string): string;
  /** A text for people without ids or names of devices or the workspace, email addresses, or quoted values. */
  text(text: string): string;
}

interface NamedThings {
  readonly devices: readonly { readonly id: string; readonly names: readonly string[] }[];
  /** The ids and names of the workspace. */
  readonly workspace: readonly string[];
}

/** Shorter names would be found in every second word. */
const SHORTEST = 3;

/**
 * Creates neutral names.
 *
 * @param things everything that has a name.
 */
export function createPseudonyms({ devices, workspace }: NamedThings): Pseudonyms {
  const ids = new Map(
    devices
      .map(({ id }) => id)
      .sort()
      .map((id, index) => [id, `d${index + 1}`]),
  );
  const names = [
    ...workspace.map((name) => [name, 'workspace'] as const),
    ...devices.flatMap(({ id, names: own }) => [id, ...own].map((name) => [name, ids.get(id) ?? 'd?'] as const)),
  ]
    .filter(([name]) => name.length >= SHORTEST)
    // Longest first: if one name begins with another, its end must not remain.
    .sort(([a], [b]) => b.length - a.length);
  return {
    device: (deviceId) => ids.get(deviceId) ?? 'd?',
    text: (text) => {
      const folded = text.toLowerCase();
      const found = names.filter(([name]) => folded.includes(name.toLowerCase()));
      return found.reduce((clean, [name, shown]) => clean.replaceAll(anyCase(name), shown), text);
    },
  };
}

function anyCase(name: string): RegExp {
  return new RegExp(name.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&'), 'gi');
}

/** The message of a server without its quotes: lines, tags and values that it received. */
export function withoutQuotes(text: string): string {
  return text
    .replace(/"(?:[^"\\]|\\.)*"?/g, '"…"')
    .replace(/'(?:[^'\\]|\\.)*'(?!\w)/g, "'…'")
    .replace(/=(?:\\.|[^\s,])+/g, '=…');
}

/** Removes email addresses, and users and passwords in URLs. */
export function withoutPeople(text: string): string {
  return text
    .replace(/\/\/[^\s/@"']+@/g, '//[user]@')
    .replace(/[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})*/g, '[e-mail]');
}

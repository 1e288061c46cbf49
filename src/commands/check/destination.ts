/** `--check`, the destinations: queries each one and reports the findings (`core/ports.ts`), each with a remedy. */

import { realClock } from '../../app/real-clock.ts';
import { configuredDatabases, selectDatabases } from '../../app/settings.ts';
import type { TerminalOutput } from '../../app/terminal.ts';
import type { Config, StateConfig } from '../../config/config.ts';
import { UserError } from '../../core/faults.ts';
import { DESTINATION_NAMES, type DestinationKind } from '../../core/lines/dialect.ts';
import type { DestinationFacts, WriteAnswer } from '../../core/ports.ts';
import type { Secret } from '../../core/secret.ts';
import type { DestinationCandidate, VerifyState } from '../../core/state/verify.ts';
import { capitalized, counted, duration, plainText, sentence } from '../../core/text.ts';
import { type EpochNs, formatExact, maxNs, msToNs, nsToMs } from '../../core/time.ts';
import { DEDUP_FLAG, dedupAdvice, missingAdvice, retentionAdvice } from '../../influx/facts.ts';
import { probeDestination } from '../../influx/probe.ts';
import { wantedFrom } from '../../ingest/wanted-range.ts';
import { openVerifyState } from '../../store/views/verify.ts';
import { type CheckLine, type CheckNotes, createNotes, errorText } from './report.ts';

/** A destination as the configuration names it. */
interface CheckedDestination {
  readonly name: string;
  readonly kind: 'auto' | DestinationKind;
  readonly bucket: string;
  readonly token: Secret | null;
  /** How far back the first sync goes, in ms. */
  readonly historyMs: number;
  /**
   * The points that the destination accepted and does not show because of their age, as recorded by `--verify`; `null`
   * for none.
   */
  readonly hidden: HiddenPoints | null;
}

interface HiddenPoints {
  readonly points: number;
  /** The newest of these points is before this time. */
  readonly toNs: EpochNs;
}

const NO_DESTINATION: CheckLine = {
  area: 'destination',
  destination: null,
  name: 'none',
  status: 'ok',
  message: 'no database is configured: readings are stored only in the archive, up to archive.max_size',
  remedy: null,
  exit_code: 0,
};

/**
 * Probes every database of the configuration.
 *
 * @returns all lines about them.
 */
export async function checkDestinations(
  { writeProbe, terminal }: { readonly writeProbe: boolean; readonly terminal: Pick<TerminalOutput, 'hint'> },
  config: Config | StateConfig,
  signal: AbortSignal,
): Promise<CheckLine[]> {
  const databases = configuredDatabases(config);
  const nowMs = realClock.nowMs();
  const historyFrom = wantedFrom(config.sync, nowMs);
  const historyMs = nowMs - nsToMs(historyFrom);
  const lines: CheckLine[] = [];
  const states = selectDatabases(config, null);
  for (const database of databases) {
    terminal.hint(`checking the database ${database.name} …`);
    const candidates = states.find(({ options }) => options.name === database.name)?.candidates ?? [];
    const hidden = hiddenPoints(config, { name: database.name, candidates, from: historyFrom });
    const to: CheckedDestination = { ...database, historyMs, hidden };
    const point = writeProbe ? probePoint(config.workspaceId, nowMs) : null;
    const options = { ...database, ca: database.ca ?? undefined, proxies: config.proxies, point };
    lines.push(...(await checkDestination(to, options, signal)));
  }
  return databases.length === 0 ? [NO_DESTINATION] : lines;
}

/**
 * Reads the points beyond a retention from the state, as far back as the history goes; `null` for none, or if no state
 * can be read.
 */
function hiddenPoints(
  { dataDir }: Pick<StateConfig, 'dataDir'>,
  {
    name,
    candidates,
    from,
  }: { readonly name: string; readonly candidates: readonly DestinationCandidate[]; readonly from: EpochNs },
): HiddenPoints | null {
  let state: VerifyState | null = null;
  try {
    state = openVerifyState(dataDir);
    const id = state?.destination(name, candidates)?.id;
    if (state === null || id === undefined) return null;
    const range = { from, to: LAST_NS };
    const { missing } = state;
    const found = state.deviceIds().flatMap((deviceId) => missing(id, deviceId, range));
    const hidden = found.filter(({ reason }) => reason === 'beyond_retention');
    const points = hidden.reduce((sum, each) => sum + each.points, 0);
    return points === 0 ? null : { points, toNs: hidden.reduce((latest, { toNs }) => maxNs(latest, toNs), 0n) };
  } catch (error) {
    // The lines about the state explain why it cannot be read.
    if (!(error instanceof UserError)) throw error;
    return null;
  } finally {
    state?.close();
  }
}

/** Later than every time that a database stores. */
const LAST_NS = 2n ** 63n - 1n;

async function checkDestination(
  to: CheckedDestination,
  options: Parameters<typeof probeDestination>[0],
  signal: AbortSignal,
): Promise<readonly CheckLine[]> {
  try {
    return destinationLines(to, await probeDestination(options, signal));
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    const exitCode = error.exitCode === 78 ? 78 : 1;
    const notes = createNotes('destination', to.name);
    return [notes.fail('requests', { ...errorText(error), exitCode })];
  }
}

/** A point of a separate measurement, which none of our dashboards reads. */
function probePoint(workspace: string | null, nowMs: number): Readonly<Record<DestinationKind, string>> {
  const tag = workspace !== null && /^[\w.-]+$/.test(workspace) ? `,workspace_id=${workspace}` : '';
  const line = `tidemark_probe${tag} value=1`;
  return { influxdb: `${line} ${msToNs(nowMs)}`, victoriametrics: `${line} ${Math.floor(nowMs)}` };
}

/** Judges the answers of one destination: its kind, its write access and its retention. */
function destinationLines(to: CheckedDestination, facts: DestinationFacts): CheckLine[] {
  const notes = createNotes('destination', to.name);
  noteKind(notes, to, facts);
  noteWrite(notes, to, facts);
  // A server that rejects the address or the token reports nothing.
  const isSilent = facts.write.kind === 'blocked' && facts.dedupMs === null;
  if (facts.kind === 'victoriametrics' && !isSilent) noteDedup(notes, facts.dedupMs);
  if (facts.kind === 'influxdb') noteBucketId(notes, to);
  if (facts.write.kind === 'accepted' && !facts.isMissing) {
    noteRetention(notes, to, facts);
    const access = createNotes('dashboards', to.name);
    noteQueries(access, to, facts);
    return [...notes.lines, ...access.lines];
  }
  return notes.lines;
}

function noteKind(notes: CheckNotes, { name, kind: configured }: CheckedDestination, facts: DestinationFacts): void {
  const { kind, version } = facts;
  if (kind === null) return;
  const key = configKey(name, 'kind');
  // VictoriaMetrics identifies itself as an InfluxDB in the version header.
  const own = kind === 'victoriametrics' && version === '1.8.0' ? null : version;
  const found = `${DESTINATION_NAMES[kind]}${own === null ? ' (it reports no version)' : ` ${own}`}`;
  const database = { kind, version: own };
  if (isTooOld(kind, own) && facts.write.kind !== 'accepted') {
    const message = `${found} answers; Tidemark needs InfluxDB 1.8 or later`;
    notes.fail('kind', { message, remedy: 'Upgrade it to InfluxDB 1.8 or later.', facts: database });
  } else if (configured !== 'auto' && configured !== kind) {
    const message = `${found} answers, but ${key} is ${configured}`;
    notes.fail('kind', { message, remedy: `Set ${key} to ${kind}, or leave it out.`, facts: database });
  } else notes.ok('kind', found, database);
}

/** InfluxDB before 1.8 has no `/api/v2/write`. If a proxy provides it, writes are accepted. */
function isTooOld(kind: DestinationKind, version: string | null): boolean {
  return kind === 'influxdb' && version !== null && /^v?1\.[0-7]\b/.test(version);
}

function noteWrite(
  notes: CheckNotes,
  to: CheckedDestination,
  { kind, version, write, isPoint, isMissing }: DestinationFacts,
): void {
  if (isMissing) {
    noteMissing(notes, to, write);
    return;
  }
  const what = isPoint ? 'a point (measurement tidemark_probe)' : 'an empty write request';
  switch (write.kind) {
    case 'accepted':
      notes.ok('reachable', 'the database answers');
      notes.ok('write', `the database accepts ${what}: ${provenText(kind, to.token !== null)}`, {
        probe_written: isPoint,
      });
      return;
    case 'blocked':
      notes.ok('reachable', 'the database answers');
      notes.fail('write', {
        message: plainText(write.message, 300),
        remedy:
          kind !== null && isTooOld(kind, version) ? 'Upgrade it to InfluxDB 1.8 or later.' : sentence(write.hint),
      });
      return;
    case 'later':
      noteLater(notes, to, { ...write, isPoint });
      return;
    case 'rejected':
    case 'too-large':
      notes.ok('reachable', 'the database answers');
      notes.fail('write', {
        message: `the database rejects ${what}: ${plainText(write.message, 300)}`,
        remedy: 'Check the log of the database for a limit, or for a field type conflict in that measurement.',
      });
      return;
  }
}

/** The settings that an accepted write confirms. */
function provenText(kind: DestinationFacts['kind'], hasToken: boolean): string {
  const hasBucket = kind !== 'victoriametrics';
  // Without authentication, VictoriaMetrics accepts any token.
  if (hasToken)
    return hasBucket ? 'address, token and bucket are right' : 'the address is right, and the token is accepted';
  return hasBucket
    ? 'address and bucket are right (no token is configured)'
    : 'the address is right (no token is configured)';
}

/** Reports a database that InfluxDB 3 would create, or cannot create. */
function noteMissing(notes: CheckNotes, { name, bucket }: CheckedDestination, write: WriteAnswer): void {
  notes.ok('reachable', 'the database answers');
  const { what, remedy } = missingAdvice(bucket, configKey(name, 'bucket'));
  if (write.kind === 'blocked') notes.fail('bucket', { message: write.message, remedy: sentence(write.hint) });
  else notes.warn('bucket', { message: what, remedy });
}

function noteLater(
  notes: CheckNotes,
  { name }: CheckedDestination,
  { message: reason, hint = '', status, isPoint }: WriteAnswer & { kind: 'later'; isPoint: boolean },
): void {
  const message = plainText(reason, 300);
  if (status === undefined) {
    const remedy =
      hint === ''
        ? `Check that the database is running and that ${configKey(name, 'url')}, the network and ${configKey(name, 'ca_file')} are right.`
        : sentence(capitalized(hint));
    notes.fail('reachable', { message, remedy });
    return;
  }
  notes.ok('reachable', 'the database answers');
  const isUnclear = status === 400 || status === 422;
  if (isUnclear && !isPoint) {
    const remedy =
      'Run --check --write-probe: it writes a real point, which shows whether the database accepts points.';
    notes.warn('write', {
      message: `an empty write request does not show whether the database accepts points: ${message}`,
      remedy,
    });
    return;
  }
  notes.fail('write', {
    message: isUnclear ? `the database rejects a point (measurement tidemark_probe): ${message}` : message,
    remedy: isUnclear
      ? `Check that ${configKey(name, 'url')} is the base address of the database, and check its log.`
      : 'The database is overloaded or has a problem: check its log and run --check again.',
  });
}

/** Reports a bucket id: InfluxDB 2 accepts writes to it, but finds no such database when it is queried. */
function noteBucketId(notes: CheckNotes, { name, bucket }: CheckedDestination): void {
  if (!/^[\da-f]{16}$/.test(bucket)) return;
  notes.warn('bucket', {
    message: `${configKey(name, 'bucket')} looks like the id of a bucket: points can be written to it, but not queried`,
    remedy: `Set ${configKey(name, 'bucket')} to the name of the bucket; otherwise --verify, --repair and the dashboards find nothing.`,
  });
}

function noteDedup(notes: CheckNotes, dedupMs: number | null): void {
  const facts = { dedup_ms: dedupMs };
  const advice = dedupAdvice(dedupMs);
  if (advice === null) {
    notes.ok('deduplication', `${DEDUP_FLAG} is set`, facts);
    return;
  }
  const finding = { message: advice.what, remedy: advice.remedy, facts };
  if (dedupMs === null) notes.warn('deduplication', finding);
  else notes.fail('deduplication', finding);
}

function noteRetention(
  notes: CheckNotes,
  { historyMs, hidden }: CheckedDestination,
  { kind, retentionMs }: DestinationFacts,
): void {
  if (retentionMs === null && hidden !== null) {
    const until = formatExact(hidden.toNs).slice(0, 16);
    notes.warn('retention', {
      message: `the database accepted ${counted(hidden.points, 'point')} older than ${until}Z, but does not return them: its retention, which it does not report, seems shorter`,
      remedy: 'Use a database with a longer retention, or shorten sync.history.',
      facts: { retention_seconds: null, unlimited: false },
    });
    return;
  }
  if (retentionMs === null) {
    notes.skip('retention', 'the database does not report its retention', { retention_seconds: null, unlimited: null });
    return;
  }
  const isForEver = retentionMs === Number.POSITIVE_INFINITY;
  const facts = { retention_seconds: isForEver ? null : Math.round(retentionMs / 1000), unlimited: isForEver };
  const advice = retentionAdvice({ kind, retentionMs }, historyMs);
  if (advice !== null) notes.warn('retention', { message: advice.what, remedy: advice.remedy, facts });
  else
    notes.ok(
      'retention',
      `the database keeps points ${isForEver ? 'forever' : `for ${duration(retentionMs / 1000)}`}`,
      facts,
    );
}

/** Reports whether the dashboards and `--verify` get answers. */
function noteQueries(notes: CheckNotes, { name }: CheckedDestination, { kind, isQueried }: DestinationFacts): void {
  const language = kind === 'victoriametrics' ? 'PromQL' : 'InfluxQL';
  if (isQueried === null)
    notes.skip(
      'queries',
      `unknown: the answer to a query in ${language} is not conclusive. --verify compares the points themselves`,
    );
  else if (isQueried) notes.ok('queries', `the database answers ${language}: dashboards and --verify can read it`);
  else {
    notes.warn('queries', {
      message: `the database rejects queries in ${language} with this token: --verify, and dashboards with this token, cannot read it`,
      remedy: `Give ${configKey(name, 'token')} read permission for the bucket. InfluxDB 2 may also need a DBRP mapping for the bucket (docs/databases.md).`,
    });
  }
}

/** A key of the section that configures a destination. */
export function configKey(name: string, key: string): string {
  return name === 'influx' ? `influx.${key}` : `destinations.${name}.${key}`;
}

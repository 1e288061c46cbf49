/**
 * The API checks of `--check`, alone or as a job of the daemon, which uses its own key, rate limiter and state. They
 * find out whether the key is accepted and what it may read, with at most six requests, one after another. Each request
 * passes the rate limiter and is booked, none is sent twice, and the check ends early once further requests cannot show
 * anything new.
 *
 * Promises: nothing is archived, delivered or pinned to the state. Only the limits of the plan are stored, and only if
 * none are known yet, because the rate limiter needs them. A problem with one request does not keep others from being
 * tried, unless they would fail for the same reason.
 */

import type { Sync } from '../../app/open-sync.ts';
import { linkAbort, pollUntil } from '../../core/async.ts';
import { ApiFault, type ApiFaultKind, RequestsSpentError, type Scope } from '../../core/faults.ts';
import type { Api, Clock, Purpose, Reply } from '../../core/ports.ts';
import { type LongWaits, WAIT_TEXTS, type WaitReason } from '../../core/quota.ts';
import type { Account, DevicePage, DeviceRecord, TelemetryPage } from '../../core/records.ts';
import { endWith, type JobEnd } from '../../core/state/jobs.ts';
import { counted } from '../../core/text.ts';
import { type EpochNs, floorToSecond, HOUR_NS, MINUTE_MS, msToNs, SECOND_MS, SECOND_NS } from '../../core/time.ts';
import type { SyncContext } from '../../ingest/context.ts';
import type { JobWork } from '../../scheduler/jobs.ts';
import {
  noteClock,
  noteFault,
  noteHistory,
  noteLearnt,
  notePlan,
  noteQuota,
  noteWorkspace,
  SCOPES,
} from './findings.ts';
import {
  type ApiFindings,
  CHECK_REQUESTS,
  type CheckLine,
  type CheckNotes,
  checkExit,
  createNotes,
  noteNotTried,
} from './report.ts';

interface CheckApiParts extends Pick<Sync, 'limitedApi' | 'learnt' | 'waits'> {
  readonly context: Pick<SyncContext, 'store' | 'serverClock' | 'quota' | 'settings'> & { readonly clock: Clock };
  /** The workspace that the state belongs to, by its id in the API; `null` if it belongs to none yet. */
  readonly knownWorkspace: () => string | null;
  /** How long a request may take after it was sent. */
  readonly timeoutMs: number;
}

const CANCELLED: JobEnd = { state: 'cancelled', exitCode: 1, summary: null, message: 'the check was cancelled' };

/** How long to wait until the daemon uses the current key of its file: it reads the file every ten seconds. */
const NEW_KEY_MS = 15 * SECOND_MS;

/** The worker for `runJobs`. Its summary is the findings about the API. */
export function createCheckWorker(
  parts: CheckApiParts & {
    /** Whether the file of the key contains another key than the one in use. */
    readonly hasOtherKey: () => boolean;
  },
): (args: unknown, signal: AbortSignal) => JobWork {
  return (_args, signal) => {
    let current: string | null = null;
    const onRequest = (scope: string): void => {
      current = scope;
    };
    const end = checkWithNewKey(parts, onRequest, signal).then(
      (summary) => endWith(summary, checkExit(summary.checks)),
      (error: unknown): JobEnd => {
        if (signal.aborted) return CANCELLED;
        throw error;
      },
    );
    return { end, progress: () => ({ asking: current }) };
  };
}

/** Sends the requests of the check once the daemon uses the key in its file: the previous key may be revoked. */
async function checkWithNewKey(
  parts: Parameters<typeof createCheckWorker>[0],
  onRequest: (scope: Scope) => void,
  signal: AbortSignal,
): Promise<ApiFindings> {
  const { clock } = parts.context;
  const untilMs = clock.monoMs() + NEW_KEY_MS;
  const isReady = (): true | null => (!parts.hasOtherKey() || clock.monoMs() >= untilMs ? true : null);
  await pollUntil(clock, isReady, { everyMs: SECOND_MS / 2 }, signal);
  return await checkApi(parts, onRequest, signal);
}

/**
 * Sends the requests of the check.
 *
 * @param onRequest called before each request.
 */
export async function checkApi(
  parts: CheckApiParts,
  onRequest: (scope: Scope) => void,
  signal: AbortSignal,
): Promise<ApiFindings> {
  const { api, spent } = parts.limitedApi(CHECK_REQUESTS);
  const notes = createNotes('api');
  const prober = createProber({ ...parts, onRequest, onFault: (scope, fault) => noteFault(notes, scope, fault) });
  const account = await requestAccount(parts, { api, prober, notes }, signal);
  const page = await prober.probe(
    { scope: 'devices:read', put: async (stop) => await api.devices(null, purposeFor('devices'), stop) },
    signal,
  );
  if (page !== null) noteDevices(notes, page);
  await requestTelemetry(parts, { api, prober, notes, device: deviceToCheck(page) }, signal);
  const alerts = await prober.probe(
    { scope: 'alerts:read', put: async (stop) => await api.alerts(null, purposeFor('alerts'), stop) },
    signal,
  );
  if (alerts !== null) {
    notes.ok('alerts:read', `granted: ${countText(alerts.alerts.length, alerts.nextCursor !== null, 'alert')} listed`);
  }
  if (prober.hasAnswered()) noteKey(notes);
  const why = prober.stoppedBy();
  if (why !== null) for (const scope of SCOPES) if (!hasLine(notes, scope)) noteNotTried(notes, scope, why);
  if (account !== null) {
    notePlan(notes, account);
    noteHistory(notes, account, parts.context);
    noteWorkspace(notes, account, parts.knownWorkspace());
  }
  if (prober.hasAnswered()) {
    noteClock(notes, parts.context);
    if (!hasLine(notes, 'quota')) noteQuota(notes, parts.context.quota());
  }
  noteLearnt(notes, parts.learnt(), page);
  return { requests: spent(), checks: notes.lines };
}

interface ProbeParts {
  readonly api: Api;
  readonly prober: Prober;
  readonly notes: CheckNotes;
}

function purposeFor(stream: Purpose['stream'], deviceId?: string): Purpose {
  return { lane: 'inventory', stream, ...(deviceId === undefined ? {} : { deviceId }) };
}

async function requestAccount(
  { context: { store }, knownWorkspace }: CheckApiParts,
  { api, prober, notes }: ProbeParts,
  signal: AbortSignal,
): Promise<Account | null> {
  const account = await prober.probe(
    { scope: 'account:read', put: async (stop) => await api.account(purposeFor('account'), stop) },
    signal,
  );
  if (account === null) return null;
  notes.ok('account:read', 'granted');
  const pinned = knownWorkspace();
  // Without the plan's limits the rate limiter is very slow. The limits of another workspace do not belong in this
  // state.
  if (store.account() === null && (pinned === null || pinned === account.workspaceId)) store.saveAccount(account, []);
  return account;
}

function noteDevices(notes: CheckNotes, { devices, nextCursor }: DevicePage): void {
  const message = `granted: ${countText(devices.length, nextCursor !== null, 'device')} listed`;
  notes.ok('devices:read', message, { devices: devices.length });
}

/** The id of a device that no workspace has. With the scope, the answer is 404. */
const UNKNOWN_DEVICE = 'tidemark-check';

async function requestTelemetry(
  { context }: CheckApiParts,
  { api, prober, notes, device }: ProbeParts & { readonly device: DeviceRecord | null },
  signal: AbortSignal,
): Promise<void> {
  const deviceId = device?.deviceId ?? UNKNOWN_DEVICE;
  const newest = device?.lastSeenAt ?? msToNs(context.serverClock.nowMs());
  const query = { deviceId, after: floorToSecond(newest - HOUR_NS), before: null, cursor: null };
  let isThere = true;
  const put = async (stop: AbortSignal) => await api.telemetry(query, purposeFor('telemetry', deviceId), stop);
  const takeFault = ({ kind }: ApiFault): boolean => {
    if (kind === 'not-found') isThere = false;
    return kind === 'not-found';
  };
  const page = await prober.probe({ scope: 'telemetry:read', put, takeFault }, signal);
  if (!isThere) {
    const who = device === null ? 'there is no device, and a request for an unknown one' : 'the request for a device';
    notes.skip('telemetry:read', `unknown: ${who} returned 404, which does not show whether the key has this scope`);
  }
  if (page === null) {
    await noteBounds(notes, null, null);
    return;
  }
  notes.ok(
    'telemetry:read',
    `granted: ${countText(page.readings.length, page.nextCursor !== null, 'reading')} of one device`,
  );
  await noteBounds(notes, page, async (bounds) => {
    const window = { deviceId, ...bounds, cursor: null };
    const again = async (stop: AbortSignal) => await api.telemetry(window, purposeFor('telemetry', deviceId), stop);
    return await prober.probe({ scope: null, put: again, takeFault: () => true }, signal);
  });
}

/** The device that was seen last, because it probably has readings. */
function deviceToCheck(page: DevicePage | null): DeviceRecord | null {
  return (page?.devices ?? []).reduce<DeviceRecord | null>(
    (best, device) => (best === null || (device.lastSeenAt ?? 0n) > (best.lastSeenAt ?? 0n) ? device : best),
    null,
  );
}

function noteKey(notes: CheckNotes): void {
  if (hasLine(notes, 'key') || hasLine(notes, 'access')) return;
  const accepted = { status: 'ok', message: 'accepted', remedy: null, exit_code: 0 } as const;
  notes.lines.unshift({ area: 'api', destination: null, name: 'key', ...accepted });
}

function countText(count: number, isMore: boolean, what: string): string {
  return `${isMore ? 'the first ' : ''}${counted(count, what)}`;
}

function hasLine({ lines }: CheckNotes, name: string): boolean {
  return lines.some((line) => line.name === name);
}

/** How long the check waits for quota. It is short because a person waits for the result. */
const PATIENCE_MS = 1.5 * MINUTE_MS;

/** The longest wait after a 429 that the check accepts. */
const SHORT_WAIT_MS = 15 * SECOND_MS;

interface ProberParts {
  readonly context: { readonly clock: Clock; readonly serverClock: { nowMs(): number } };
  readonly timeoutMs: number;
  readonly waits: LongWaits;
  readonly onRequest: (scope: Scope) => void;
  /** Called with each fault that is to be reported. */
  readonly onFault: (scope: Scope, fault: ApiFault) => void;
}

/** One request of the check, with the scope that it tests. */
interface ProbeSpec<T> {
  /** The scope that it tests; `null` for an additional request, whose faults are not reported. */
  readonly scope: Scope | null;
  readonly put: (signal: AbortSignal) => Promise<Reply<T>>;
  /** Takes a fault that answers the question, and returns whether it does. Then it is not reported. */
  readonly takeFault?: (fault: ApiFault) => boolean;
}

interface Prober {
  /**
   * Sends a request.
   *
   * @returns `null` if there was no result. Throws the signal's reason when that aborts, and errors that are no fault
   * of the API.
   */
  probe<T>(spec: ProbeSpec<T>, signal: AbortSignal): Promise<T | null>;
  /** Why no more requests are sent, in words; `null` while requests are sent. */
  stoppedBy(): string | null;
  /** Whether the API has accepted the key: it answered, or rejected a request only for a missing scope. */
  hasAnswered(): boolean;
}

/** Faults after which all other requests would fail as well. */
const STOPPING: Readonly<Partial<Record<ApiFaultKind, string>>> = {
  unauthorized: 'the API rejects the key',
  'no-api-access': 'the API denies access',
  unreachable: 'the API does not answer',
  throttled: 'the quota is used up',
  'not-found': 'there is no such endpoint',
};

/** Faults that may pass. The second one ends the check. */
const DOUBTFUL: readonly ApiFaultKind[] = ['server-fault', 'malformed'];

/** Faults that occur only with an accepted key. */
const LETS_IN: readonly ApiFaultKind[] = ['scope-missing', 'invalid-request', 'range-too-large'];

/** Creates a prober. It sends no more requests once a fault shows that these would fail too. */
function createProber(parts: ProberParts): Prober {
  let stopped: string | null = null;
  let doubtful = 0;
  let hasAnswered = false;
  const countFault = (fault: ApiFault): void => {
    if (DOUBTFUL.includes(fault.kind)) doubtful += 1;
    stopped ??= STOPPING[fault.kind] ?? (doubtful > 1 ? 'the API returned errors twice' : null);
  };
  /**
   * Records why there was no result.
   *
   * @throws errors that are no fault of the API.
   */
  const noteFailed = (error: unknown, scope: Scope | null, takeFault: (fault: ApiFault) => boolean): void => {
    if (error instanceof RequestsSpentError) {
      stopped ??= 'the limit of requests for a check is reached';
      return;
    }
    if (!(error instanceof ApiFault)) throw error;
    const isReply = takeFault(error);
    if (isReply || LETS_IN.includes(error.kind)) hasAnswered = true;
    if (isReply) return;
    countFault(error);
    if (scope !== null) parts.onFault(scope, error);
  };
  return {
    stoppedBy: () => stopped,
    hasAnswered: () => hasAnswered,
    probe: async ({ scope, put, takeFault = () => false }, signal) => {
      if (stopped !== null) return null;
      if (scope !== null) parts.onRequest(scope);
      try {
        const { value } = await withPatience(parts, async (stop) => await afterShortWait(put, stop), signal);
        hasAnswered = true;
        return value;
      } catch (error) {
        signal.throwIfAborted();
        noteFailed(error, scope, takeFault);
        return null;
      }
    },
  };
}

/** Sends the request again if the API requested a short wait; the rate limiter waits. */
async function afterShortWait<T>(
  put: (signal: AbortSignal) => Promise<Reply<T>>,
  signal: AbortSignal,
): Promise<Reply<T>> {
  try {
    return await put(signal);
  } catch (error) {
    const isShort =
      error instanceof ApiFault && error.kind === 'throttled' && (error.facts.waitMs ?? 0) <= SHORT_WAIT_MS;
    if (!isShort) throw error;
    return await put(signal);
  }
}

/**
 * Gives up if the rate limiter would delay the request for too long.
 *
 * @throws ApiFault `throttled` then.
 */
async function withPatience<T>(
  { context: { clock, serverClock }, timeoutMs, waits }: ProberParts,
  work: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const link = linkAbort(signal);
  const over = new AbortController();
  let gaveUp: ApiFault | null = null;
  const giveUp = (waitMs: number, reason: WaitReason): void => {
    const facts = { request: 'the next request', ...(waitMs > 0 ? { waitMs } : {}) };
    gaveUp = new ApiFault('throttled', WAIT_TEXTS[reason === 'rate' ? 'minute' : reason], facts);
    link.abort(gaveUp);
  };
  waits.onWait = (untilMs, reason) => {
    const waitMs = untilMs - serverClock.nowMs();
    if (waitMs > PATIENCE_MS) giveUp(waitMs, reason);
  };
  clock.sleep(PATIENCE_MS + timeoutMs, over.signal).then(
    () => giveUp(0, 'rate'),
    () => {},
  );
  try {
    return await work(link.signal);
  } catch (error) {
    throw gaveUp === null || signal.aborted ? error : gaveUp;
  } finally {
    over.abort();
    waits.onWait = null;
    link.release();
  }
}

interface Bounds {
  readonly after: EpochNs;
  readonly before: EpochNs | null;
}

const BOUNDS = 'bounds';

/**
 * Tests whether the API includes the bounds of a window in its range, with readings at whole seconds, because only such
 * times can be requested exactly.
 *
 * @param page readings of a device; `null` if none came.
 * @param probe requests a window of the device; `null` if no answer came.
 */
async function noteBounds(
  notes: CheckNotes,
  page: TelemetryPage | null,
  probe: ((bounds: Bounds) => Promise<TelemetryPage | null>) | null,
): Promise<CheckLine> {
  const whole = (page?.readings ?? []).flatMap(({ recordedAt: at }) => (at % SECOND_NS === 0n ? [at] : []));
  const [newest, next] = [...new Set(whole)];
  if (probe === null || newest === undefined) {
    return notes.skip(
      BOUNDS,
      'whether the request parameters "after" and "before" are inclusive: unknown (no reading lies on a whole second)',
      UNSEEN,
    );
  }
  const before = next === undefined ? null : newest;
  const after = next ?? newest;
  const answer = await probe({ after, before });
  if (answer === null)
    return notes.skip(BOUNDS, 'whether the request parameters "after" and "before" are inclusive: unknown', UNSEEN);
  const hasReadingAt = (at: EpochNs): boolean => answer.readings.some(({ recordedAt }) => recordedAt === at);
  const facts = {
    after_inclusive: hasReadingAt(after),
    before_inclusive: before === null ? null : hasReadingAt(before),
  };
  const ofBefore = facts.before_inclusive === null ? '"before" is unknown' : text('before', facts.before_inclusive);
  return notes.ok(BOUNDS, `${text('after', facts.after_inclusive)}, ${ofBefore}`, facts);
}

const UNSEEN = { after_inclusive: null, before_inclusive: null };

function text(bound: string, isInclusive: boolean): string {
  return `"${bound}" is ${isInclusive ? 'inclusive' : 'exclusive'}`;
}

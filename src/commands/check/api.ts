/**
 * The API part of `--check`: tests the connection to the API, then its requests, which this process or the daemon that
 * holds the state sends.
 */

import { CONNECT_WITHIN_MS, probeConnection, proxyVariable, type Reached, type ReachStep } from '../../api/reach.ts';
import { realClock } from '../../app/real-clock.ts';
import type { TerminalOutput } from '../../app/terminal.ts';
import { withRequestsOnly } from '../../app/with-sync.ts';
import type { Config } from '../../config/config.ts';
import { linkAbort } from '../../core/async.ts';
import { UserError } from '../../core/faults.ts';
import { createFilter } from '../../core/filter.ts';
import { isRecord } from '../../core/json.ts';
import { duration } from '../../core/text.ts';
import { DAY_MS, MINUTE_MS } from '../../core/time.ts';
import { StateInUseError } from '../../store/open/lock.ts';
import { readOpenAlerts } from '../../store/views/read-state.ts';
import { doOrFollow } from '../shared/do-or-follow.ts';
import { ratesOfState } from '../shared/state-report.ts';
import { noteSchedules, remedyOf, SCOPES } from './findings.ts';
import { checkApi } from './job.ts';
import {
  type ApiFindings,
  type CheckNotes,
  createNotes,
  errorText,
  noteNotTried,
  REQUESTS,
  readApiFindings,
} from './report.ts';

interface ApiPart {
  readonly config: Config;
  readonly terminal: TerminalOutput;
  /** Why requests cannot be booked, so that none is sent. */
  readonly bookingRefusal: string | null;
}

/**
 * Checks the API from its address to its answers. Throws only the signal's reason, when that aborts, and internal
 * errors.
 */
export async function checkWholeApi(
  { config, terminal, bookingRefusal }: ApiPart,
  signal: AbortSignal,
): Promise<ApiFindings> {
  const notes = createNotes('api');
  terminal.hint(`resolving ${new URL(config.api.url).host} …`);
  if (!(await checkConnection(notes, config, signal))) return noteAllNotTried(notes, 'the API cannot be reached');
  if (bookingRefusal !== null) {
    return noteAllNotTried(notes, `each request must first be recorded in the state, and ${bookingRefusal}`);
  }
  try {
    const found = await fetchFindings({ config, terminal }, signal);
    const factsOf = (check: string) => found.checks.find(({ name }) => name === check)?.facts;
    const plan = factsOf('plan');
    const schedules = createNotes('api');
    if (plan !== undefined) {
      const nowMs = realClock.nowMs();
      const fleet = ratesOfState(config.dataDir, createFilter(config.sync.leftOut))(nowMs);
      const listed = Number(factsOf('devices:read')?.['devices'] ?? 0);
      noteSchedules(schedules, { plan, fleet, listed, openAlerts: readOpenAlerts(config.dataDir), nowMs }, config);
    }
    return { requests: found.requests, checks: [...notes.lines, ...found.checks, ...schedules.lines] };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof UserError)) throw error;
    if (error instanceof StateInUseError) {
      notes.skip(REQUESTS, TAKES_NO_JOBS);
      return noteAllNotTried(notes, 'another process uses the state');
    }
    const exitCode = error.exitCode === 77 || error.exitCode === 78 ? error.exitCode : 1;
    notes.fail(REQUESTS, { ...errorText(error), exitCode });
    return noteAllNotTried(notes, 'the check of the API failed');
  }
}

/** Reports every scope as not tried. */
function noteAllNotTried(notes: CheckNotes, why: string): ApiFindings {
  for (const scope of SCOPES) noteNotTried(notes, scope, why);
  return { requests: 0, checks: notes.lines };
}

/** A certificate that expires sooner is reported. */
const ENDING_MS = 14 * DAY_MS;

/**
 * Connects to the API and reports each step.
 *
 * @returns whether all steps succeeded; `true` with a proxy, because then no step is tried.
 */
async function checkConnection(notes: CheckNotes, { api, proxies }: Config, signal: AbortSignal): Promise<boolean> {
  const proxy = proxyVariable(api.url, proxies);
  if (proxy !== null) {
    notes.skip('way', `not checked: requests go through the proxy in ${proxy}, unless NO_PROXY names the host`);
    return true;
  }
  const timeoutMs = Math.min(CONNECT_WITHIN_MS, api.timeoutMs);
  const reached = await probeConnection({ url: api.url, ca: api.ca, timeoutMs }, signal);
  return noteReached(notes, reached);
}

const TLS_REMEDY =
  'Set api.ca_file (PEM) for a certificate authority of your own, check that the certificate names the host in api.url, and check the clock of this machine. For a server without TLS, use http://.';

/**
 * Reports each step.
 *
 * @returns whether all steps succeeded.
 */
function noteReached(notes: CheckNotes, { host, port, name, connection, tls }: Reached): boolean {
  const steps = [
    noteStep(notes, name, {
      name: 'name',
      text: (addresses) => `${host} is ${addresses.slice(0, 3).join(', ')}`,
      remedy: 'Correct the host in api.url, or check the name servers of this machine (/etc/resolv.conf).',
    }),
    noteStep(notes, connection, {
      name: 'connection',
      text: (address) => `${address === '' ? host : address} accepts connections on port ${port}`,
      remedy: `Check that api.url is right (${host}, port ${port}), that the server is up, and that no firewall blocks the connection.`,
    }),
    noteStep(notes, tls?.ok === true && isEnding(tls.found.endsMs) ? null : tls, {
      name: 'TLS',
      text: ({ protocol, endsMs, isTrusted }) =>
        `${protocol}; the certificate is ${isTrusted ? 'trusted' : 'not trusted, but certificates are not checked'}${endsMs === null ? '' : `; it expires in ${duration((endsMs - realClock.nowMs()) / 1000)}`}`,
      remedy: tls?.ok === false ? remedyOf(tls.why, TLS_REMEDY) : TLS_REMEDY,
    }),
  ];
  if (tls?.ok === true && isEnding(tls.found.endsMs)) {
    const message = `the certificate of the API expires in ${duration(Math.max(0, (tls.found.endsMs ?? 0) - realClock.nowMs()) / 1000)}`;
    notes.warn('TLS', { message, remedy: 'Ask the operator of the API to renew it.' });
  }
  return steps.every((isMade) => isMade);
}

function isEnding(endsMs: number | null): boolean {
  return endsMs !== null && endsMs - realClock.nowMs() < ENDING_MS;
}

interface StepText<T> {
  readonly name: string;
  readonly text: (found: T) => string;
  readonly remedy: string;
}

function noteStep<T>(notes: CheckNotes, step: ReachStep<T> | null, { name, text, remedy }: StepText<T>): boolean {
  if (step === null) return true;
  if (step.ok) notes.ok(name, text(step.found));
  else notes.fail(name, { message: step.why.what, remedy });
  return step.ok;
}

/** The daemon may be busy with other work. This is the longest total time to wait for it. */
const FOLLOW_MS = 3 * MINUTE_MS;

const NOT_CHECKED = 'The daemon did not check the API';

function otherVersionError(): UserError {
  return new UserError(
    'The daemon checked the API, but it runs another version of Tidemark, so its result cannot be shown',
    'Update the older of the two, restart the daemon, and run --check again.',
    1,
  );
}

async function fetchFindings(part: Omit<ApiPart, 'bookingRefusal'>, signal: AbortSignal): Promise<ApiFindings> {
  const { config, terminal } = part;
  const timeout = AbortSignal.timeout(FOLLOW_MS);
  const link = linkAbort(signal, timeout);
  const show = (progress: unknown): void => {
    const scope = isRecord(progress) ? progress['asking'] : null;
    if (typeof scope === 'string') terminal.hint(`the daemon sends requests to the API: ${scope} …`);
  };
  try {
    return await doOrFollow(
      {
        kind: 'check',
        args: {},
        requestedBy: '--check',
        alone: () => checkAlone(part, signal),
        read: (result) => nameKeyOfDaemon(readApiFindings(result)),
        failed: ({ message }) =>
          message === null ? otherVersionError() : new UserError(`${NOT_CHECKED}: ${message}`, null, 1),
        show,
      },
      { dataDir: config.dataDir, terminal },
      { signal: link.signal },
    );
  } catch (error) {
    signal.throwIfAborted();
    if (timeout.aborted)
      throw new UserError(
        'The daemon is busy with another job',
        'Run --check again when that job has ended (--status shows it).',
        1,
      );
    throw error;
  } finally {
    link.release();
  }
}

/** Adds that the daemon sent the requests, so that its key was tested. */
function nameKeyOfDaemon(findings: ApiFindings | null): ApiFindings | null {
  if (findings === null) return null;
  const message = "accepted: the daemon's key (the key of this command was not tested)";
  const checks = findings.checks.map((line) =>
    line.name === 'key' && line.status === 'ok' ? { ...line, message } : line,
  );
  return { ...findings, checks };
}

/** The daemon takes no jobs. The requests were not the problem and may well succeed. */
const TAKES_NO_JOBS =
  'not sent: another process uses the state and accepts no jobs: the demo, a one-off command, or a daemon of another version. Run --check again when it has ended';

async function checkAlone(
  { config, terminal }: Omit<ApiPart, 'bookingRefusal'>,
  signal: AbortSignal,
): Promise<ApiFindings> {
  return await withRequestsOnly({ config, terminal }, async (sync) => {
    const parts = { ...sync, timeoutMs: config.api.timeoutMs };
    return await checkApi(parts, (scope) => terminal.hint(`checking the API: ${scope} …`), signal);
  });
}

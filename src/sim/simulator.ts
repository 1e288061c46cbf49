/**
 * The simulated API: serves a world as described in the API document.
 *
 * Order of checks, where the document leaves it open: the key (401), the plan's API access (403), the quota (429), the
 * endpoint (404), the method (405), the scope (403), the resource (404), the parameters (400). A 401 belongs to no
 * workspace and never uses quota, and neither does a 429; whether other refusals use it is a setting.
 *
 * A plan can give each request a fault. A fault of the answer is applied here, one of the wire by the transport or the
 * server.
 *
 * `server.ts` serves it over sockets.
 */
import type { Clock } from '../core/ports.ts';
import { type EpochMs, nsToMs } from '../core/time.ts';
import {
  dateAnswer,
  htmlAnswer,
  jsonAnswer,
  pageText,
  quotaHeaders,
  Refusal,
  refusalHeaders,
  refusalJson,
  type SimAnswer,
  type SimPage,
} from './answers.ts';
import { answerEndpoint, matchEndpoint } from './endpoints.ts';
import { createSimQuota, type SimQuotaState, shareSimQuota } from './quota.ts';
import { chance, mix, mixText, unit, whole } from './random.ts';
import { createSettings, type SettingsOverrides, type SimSettings } from './settings.ts';
import type { SimReading } from './spec.ts';
import type { World } from './world.ts';

/**
 * Faults that change the answer; it arrives complete, with a correct `Content-Length`. A request that the API refuses
 * stays refused, except where `html` answers before the API does.
 */
export type AnswerFault =
  /** A fault of the service: JSON, code by the settings, 500 by default. It costs quota. */
  | { readonly kind: 'server-error'; readonly status?: number; readonly waitSeconds?: number }
  /** A page in HTML from something in front of the service, 502 by default. It costs no quota. */
  | { readonly kind: 'html'; readonly status?: number }
  /** 200 with the first part of the body, half of it by default. */
  | { readonly kind: 'truncated'; readonly keep?: number }
  /** 200 with a body that is no JSON, or with exactly this one. */
  | { readonly kind: 'malformed'; readonly body?: string }
  /** 200 with a body of no bytes. */
  | { readonly kind: 'empty' }
  /** 200 with a page that was changed. */
  | { readonly kind: 'mangle'; readonly change: (page: SimPage) => SimPage };

/** Faults of the wire. The service has counted the request in all of them. */
type WireFault =
  | { readonly kind: 'reset'; readonly when: 'before-headers' | 'after-headers' | 'in-body' }
  /** The answer as of its arrival leaves this much later; with `body`, its headers leave at once. */
  | { readonly kind: 'slow'; readonly delayMs: number; readonly part?: 'headers' | 'body' }
  /** No answer, and the connection stays open. */
  | { readonly kind: 'hang' };

/** Everything that can go wrong with a request. */
export type Fault = AnswerFault | WireFault;

/** The facts by which a plan can decide. */
interface FaultRequest {
  readonly method: string;
  /** Below the base URL, without the query: `/devices/x/telemetry`. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** The server's time. */
  readonly atMs: EpochMs;
}

/** Decides what goes wrong with a request; the first request has the number 1. */
export type FaultPlan = (requestNumber: number, request: FaultRequest) => Fault | null;

/** Whether the wire fails and not the answer. */
function isWireFault(fault: Fault): fault is WireFault {
  return fault.kind === 'reset' || fault.kind === 'slow' || fault.kind === 'hang';
}

/** A request as the server reads it. */
interface SimRequest {
  readonly method: string;
  /** Path and query, from the root: `/external/v1/devices?limit=200`. */
  readonly target: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** An answer, and how the wire is to fail with it. */
interface SimExchange {
  readonly answer: SimAnswer;
  readonly wire: WireFault | null;
}

/** The input of {@link createSimulator}. */
export interface SimulatorOptions {
  readonly world: World;
  readonly clock: Clock;
  readonly settings?: SettingsOverrides;
  readonly faults?: FaultPlan;
}

/** A running API. World, settings, faults and what is visible may be changed at any time. */
export interface Simulator {
  world: World;
  readonly settings: SimSettings;
  faults: FaultPlan | null;
  readonly clock: Clock;
  readonly log: RequestLog;
  /** The time on the server's clock. */
  serverNowMs(): EpochMs;
  /** The time by which readings are made and served: the server's, but for `jumpMs`. */
  worldNowMs(): EpochMs;
  /** Answers one request, at once. */
  handle(request: SimRequest): SimExchange;
  /** The answer with the `Date` of this moment. */
  date(answer: SimAnswer): SimAnswer;
  /** Adds the use of the quota by other clients. */
  spend(count: number): void;
  quota(): SimQuotaState;
  /** Whether the API serves the reading, now or at a time of the server. */
  isVisible(deviceId: string, reading: SimReading, atMs?: EpochMs): boolean;
}

/** The path that every endpoint is below. */
export const BASE_PATH = '/external/v1';

/** Makes an API of a world. */
export function createSimulator(options: SimulatorOptions): Simulator {
  const { clock } = options;
  const settings = createSettings(options.settings);
  const quota = shareSimQuota(createSimQuota(settings), settings);
  // Quota windows use a clock that does not jump, started at the server's time.
  const steadyOriginMs = clock.nowMs() + settings.time.offsetMs - clock.monoMs();
  const steadyMs = (): number => steadyOriginMs + clock.monoMs();
  const simulator: Simulator = {
    world: options.world,
    settings,
    faults: options.faults ?? null,
    clock,
    log: createRequestLog(),
    serverNowMs: () => clock.nowMs() + settings.time.offsetMs + settings.time.jumpMs,
    worldNowMs: () => clock.nowMs() + settings.time.offsetMs,
    handle: (request) => handle({ simulator, quota: () => quota.state(steadyMs()), spend }, request),
    date: (answer) => dateAnswer(answer, simulator.serverNowMs(), settings),
    spend,
    quota: () => quota.state(steadyMs()),
    isVisible: (deviceId, reading, atMs = simulator.worldNowMs()) =>
      visibleFromMs(reading, deviceId, simulator) <= atMs,
  };
  return simulator;

  function spend(count: number): void {
    quota.spend(count, steadyMs());
  }
}

interface Service {
  readonly simulator: Simulator;
  readonly quota: () => SimQuotaState;
  readonly spend: (count: number) => void;
}

/** A parsed request. */
interface Parsed {
  readonly method: string;
  /** Below the base URL; `null` where the request is outside of it. */
  readonly path: string | null;
  readonly query: URLSearchParams;
  readonly authorization: string;
}

function handle(service: Service, request: SimRequest): SimExchange {
  const { simulator } = service;
  const parsed = parse(request);
  const atMs = simulator.serverNowMs();
  const path = parsed.path ?? request.target;
  const number = simulator.log.total + 1;
  const fault = simulator.faults?.(number, { method: parsed.method, path, query: parsed.query, atMs }) ?? null;
  const answer = simulator.date(
    fault === null || isWireFault(fault) ? serve(service, parsed, null) : serve(service, parsed, fault),
  );
  const wire = fault !== null && isWireFault(fault) ? fault : null;
  const status = isSilent(wire) ? null : answer.status;
  simulator.log.add({
    number,
    atMs,
    method: parsed.method,
    path,
    query: parsed.query.toString(),
    status,
    fault: fault?.kind ?? null,
  });
  return { answer, wire };
}

function isSilent(wire: Fault | null): boolean {
  return wire?.kind === 'hang' || (wire?.kind === 'reset' && wire.when === 'before-headers');
}

function parse({ method, target, headers }: SimRequest): Parsed {
  const split = target.indexOf('?');
  const whole = split < 0 ? target : target.slice(0, split);
  const path = whole.startsWith(`${BASE_PATH}/`) ? whole.slice(BASE_PATH.length) : null;
  const query = new URLSearchParams(split < 0 ? '' : target.slice(split + 1));
  const { authorization = '' } = headers;
  return { method, path, query, authorization };
}

function serve(service: Service, parsed: Parsed, fault: AnswerFault | null): SimAnswer {
  if (fault?.kind === 'html') return htmlAnswer(fault.status ?? 502);
  const { simulator } = service;
  const { settings, world } = simulator;
  try {
    const page = decide(service, parsed);
    service.spend(1);
    if (fault?.kind === 'server-error') return serverError(service, fault);
    const changed = fault?.kind === 'mangle' ? fault.change(page) : page;
    const body = corrupt(pageText(changed, world.seed, settings), fault);
    return jsonAnswer(200, body, quotaHeaders(service.quota(), settings));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return refuse(service, error);
  }
}

/** The checks, in the order given in the header of this file. */
function decide({ simulator, quota }: Service, { method, path, query, authorization }: Parsed): SimPage {
  const { settings, world } = simulator;
  const { codes, key, plan } = settings;
  const nowMs = simulator.serverNowMs();
  const expired = key.expiresAtMs !== null && nowMs >= key.expiresAtMs;
  if (authorization !== `Bearer ${key.secret}` || key.revoked || expired) {
    throw new Refusal(401, codes.unauthorized, 'The API key is missing, unknown, revoked or expired.');
  }
  if (!plan.apiAccess) throw new Refusal(403, codes.noApiAccess, 'The plan grants no external API access.');
  const { minute, day } = quota();
  if (minute.left < 1 || day.left < 1) throw new Refusal(429, codes.quotaSpent, 'The allowance is spent.');
  const endpoint = path === null ? null : matchEndpoint(path);
  if (endpoint === null) throw new Refusal(404, codes.notFound, 'No such endpoint.');
  if (method !== 'GET') throw new Refusal(405, codes.methodNotAllowed, 'That method is not allowed on this endpoint.');
  if (!key.scopes.includes(endpoint.scope)) {
    throw new Refusal(403, 'insufficient_scope', `The key lacks the scope ${endpoint.scope}.`, endpoint.scope);
  }
  const worldMs = simulator.worldNowMs();
  const isVisible = (deviceId: string, reading: SimReading): boolean => simulator.isVisible(deviceId, reading, worldMs);
  return answerEndpoint(endpoint, { world, settings, nowMs: worldMs, clockMs: nowMs, query, isVisible });
}

function refuse(service: Service, refusal: Refusal): SimAnswer {
  const { settings, world } = service.simulator;
  const { status } = refusal;
  if (settings.quota.refusals === 'counted' && status !== 401 && status !== 429) service.spend(1);
  const state = service.quota();
  const waitMs = Math.max(state.minute.waitMs, state.day.waitMs);
  return jsonAnswer(status, refusalJson(refusal, world.seed, settings), {
    ...quotaHeaders(state, settings),
    ...refusalHeaders(status, waitMs, settings),
  });
}

function serverError(
  service: Service,
  { status = 500, waitSeconds }: AnswerFault & { kind: 'server-error' },
): SimAnswer {
  const { settings, world } = service.simulator;
  const refusal = new Refusal(status, settings.codes.internal, 'A fault on our side.');
  return jsonAnswer(status, refusalJson(refusal, world.seed, settings), {
    ...quotaHeaders(service.quota(), settings),
    ...(waitSeconds === undefined ? {} : { [settings.headerNames.wait]: String(waitSeconds) }),
  });
}

function corrupt(body: string, fault: AnswerFault | null): string {
  switch (fault?.kind) {
    case 'truncated':
      return body.slice(0, Math.min(body.length - 1, Math.floor(body.length * (fault.keep ?? 0.5))));
    case 'malformed':
      return fault.body ?? `${body.slice(0, -1)},}`;
    case 'empty':
      return '';
    default:
      return body;
  }
}

/** Lets time pass; rejects where no one waits for the answer any more. */
type Pause = (ms: number) => Promise<void>;

/**
 * Passes a request to the simulator and returns its answer: half of the latency before, half after. A slow answer has
 * the content at the arrival of the request and the date of its departure.
 */
export async function exchange(simulator: Simulator, request: SimRequest, pause: Pause): Promise<SimExchange> {
  const { settings, world, log } = simulator;
  const { min, max } = settings.time.latencyMs;
  const latencyMs = max > 0 ? whole(mix(world.seed, log.total), min, max) : 0;
  if (latencyMs > 0) await pause(latencyMs / 2);
  const { answer, wire } = simulator.handle(request);
  const slow = wire?.kind === 'slow' && wire.part !== 'body';
  if (slow) await pause(wire.delayMs);
  const leaving = slow ? simulator.date(answer) : answer;
  if (latencyMs > 0) await pause(latencyMs / 2);
  return { answer: leaving, wire };
}

/** A request that was made of the simulator. */
interface LoggedRequest {
  /** The first request has the number 1. */
  readonly number: number;
  /** The server's time. */
  readonly atMs: EpochMs;
  readonly method: string;
  /** Below the base URL. */
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
  /** `null` where no answer left the server. */
  readonly status: number | null;
  readonly fault: Fault['kind'] | null;
}

/** The requests that the simulator received: the newest one by one, all of them as numbers. */
interface RequestLog {
  /** All requests so far. */
  readonly total: number;
  /** The newest requests, oldest first; at least the last 10,000. */
  readonly requests: readonly LoggedRequest[];
  /** How many were answered with a status; `null` for those without an answer. */
  count(status: number | null): number;
  add(request: LoggedRequest): void;
}

const MAX_LOGGED = 10_000;

function createRequestLog(): RequestLog {
  const requests: LoggedRequest[] = [];
  const counts = new Map<number | null, number>();
  let total = 0;
  return {
    get total() {
      return total;
    },
    requests,
    count: (status) => counts.get(status) ?? 0,
    add(request) {
      total += 1;
      counts.set(request.status, (counts.get(request.status) ?? 0) + 1);
      if (requests.push(request) > 2 * MAX_LOGGED) requests.splice(0, MAX_LOGGED);
    },
  };
}

/**
 * The server's time from which on the reading is served; always the same for the same reading and settings. Lateness
 * counts from the time of the reading: one that was handed in later than that is not late once more.
 */
function visibleFromMs(
  reading: SimReading,
  deviceId: string,
  { world, settings }: { readonly world: World; readonly settings: SimSettings },
): EpochMs {
  const { share, maxMs, devices } = settings.lateness;
  const { visibleAtMs, recordedAtNs, position } = reading;
  if (share === 0 || maxMs === 0 || (devices !== null && !devices.includes(deviceId))) return visibleAtMs;
  const own = mix(mixText(world.seed, `late ${deviceId}`), position);
  return chance(own, share)
    ? Math.max(visibleAtMs, nsToMs(recordedAtNs) + Math.ceil(unit(mix(own, 1)) * maxMs))
    : visibleAtMs;
}

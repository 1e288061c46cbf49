/**
 * The simulated API: serves a world as described in the API document.
 *
 * The order of checks, which the document leaves open: the key (401), the plan's API access (403), the quota (429), the
 * endpoint (404), the method (405), the scope (403), the resource (404), the parameters (400). A 401 belongs to no
 * workspace and never uses quota, and neither does a 429; a setting defines whether other rejected requests use it.
 *
 * One function, `intercept`, may stand between the service and its client: it can change a page, replace an answer or
 * send it differently.
 *
 * `server.ts` serves it over sockets.
 */
import type { ServerResponse } from 'node:http';
import type { Clock } from '../core/ports.ts';
import { type EpochMs, nsToMs } from '../core/time.ts';
import {
  dateAnswer,
  jsonAnswer,
  pageText,
  quotaHeaders,
  Rejection,
  rejectionHeaders,
  rejectionJson,
  type SimAnswer,
  type SimPage,
} from './answers.ts';
import { answerEndpoint, matchEndpoint } from './endpoints.ts';
import { createSimQuota, type SimQuotaState, shareSimQuota } from './quota.ts';
import { chance, mix, mixText, unit, whole } from './random.ts';
import { createSettings, type SettingsOverrides, type SimSettings } from './settings.ts';
import type { SimReading } from './spec.ts';
import type { World } from './world.ts';

/** A request as the server receives it. */
interface SimRequest {
  readonly method: string;
  /** Path and query, from the root: `/external/v1/devices?limit=200`. */
  readonly target: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** Waits; rejects if no client waits for the answer any more. */
export type Pause = (ms: number) => Promise<void>;

/** Sends an answer over a socket. */
export type Send = (response: ServerResponse, answer: SimAnswer, pause: Pause) => Promise<void>;

/** An answer, and how it is sent. */
export interface SimExchange {
  readonly answer: SimAnswer;
  /** The answer is sent this much later, with the date of its departure. */
  readonly holdMs?: number;
  /** Sends the answer, unless it is sent complete and at once. */
  readonly send?: Send;
}

/** The facts of a request that `intercept` can use. */
export interface SimCall {
  readonly method: string;
  /** The path below the base URL, without the query: `/devices/x/telemetry`. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** By the simulated server's clock, which may differ from the machine's. */
  readonly atMs: EpochMs;
}

/** Answers the request like the service. `change` can change the page of the answer. */
export type Serve = (change?: (page: SimPage) => SimPage) => SimAnswer;

/** The input of {@link createSimulator}. */
export interface SimulatorOptions {
  readonly world: World;
  readonly clock: Clock;
  readonly settings?: SettingsOverrides;
  /** Answers each request instead of the service; `serve` returns the service's answer. */
  readonly intercept?: (call: SimCall, serve: Serve) => SimExchange;
}

/** A running API. World and settings may be changed at any time. */
export interface Simulator {
  world: World;
  readonly settings: SimSettings;
  readonly clock: Clock;
  /** How many requests the simulator has answered. */
  readonly handled: number;
  /** The time on the server's clock. */
  serverNowMs(): EpochMs;
  /** The time by which readings are made and served: the server's time without `jumpMs`. */
  worldNowMs(): EpochMs;
  /** Answers one request, at once. */
  handle(request: SimRequest): SimExchange;
  /** Adds the current `Date` to an answer. */
  date(answer: SimAnswer): SimAnswer;
  /** Uses quota, for a request or as another client. */
  spend(count: number): void;
  quota(): SimQuotaState;
  /** Whether the API serves the reading, now or at a time of the server. */
  isVisible(deviceId: string, reading: SimReading, atMs?: EpochMs): boolean;
}

/** The path prefix of every endpoint. */
export const BASE_PATH = '/external/v1';

/** Creates the simulated API of a world; it serves requests and does not listen on a port. */
export function createSimulator(options: SimulatorOptions): Simulator {
  const { clock } = options;
  const settings = createSettings(options.settings);
  const quota = shareSimQuota(createSimQuota(settings), settings);
  // Quota windows use a clock that does not jump, started at the server's time.
  const steadyOriginMs = clock.nowMs() + settings.time.offsetMs - clock.monoMs();
  const steadyMs = (): number => steadyOriginMs + clock.monoMs();
  let handled = 0;
  const simulator: Simulator = {
    world: options.world,
    settings,
    clock,
    get handled() {
      return handled;
    },
    serverNowMs: () => clock.nowMs() + settings.time.offsetMs + settings.time.jumpMs,
    worldNowMs: () => clock.nowMs() + settings.time.offsetMs,
    handle(request) {
      const exchanged = handle(simulator, request, options.intercept);
      handled += 1;
      return exchanged;
    },
    date: (answer) => dateAnswer(answer, simulator.serverNowMs(), settings),
    spend: (count) => quota.spend(count, steadyMs()),
    quota: () => quota.state(steadyMs()),
    isVisible: (deviceId, reading, atMs = simulator.worldNowMs()) =>
      visibleFromMs(reading, deviceId, simulator) <= atMs,
  };
  return simulator;
}

/** The parts of a request, before its key and its path are checked. */
interface Parsed {
  readonly method: string;
  /** The path below the base URL; `null` if the request is outside it. */
  readonly path: string | null;
  readonly query: URLSearchParams;
  readonly authorization: string;
}

function handle(
  simulator: Simulator,
  request: SimRequest,
  intercept: SimulatorOptions['intercept'] = (_, serve) => ({ answer: serve() }),
): SimExchange {
  const parsed = parse(request);
  const { method, path, query } = parsed;
  const call: SimCall = { method, path: path ?? request.target, query, atMs: simulator.serverNowMs() };
  const exchanged = intercept(call, (change) => serveRequest(simulator, parsed, change));
  return { ...exchanged, answer: simulator.date(exchanged.answer) };
}

function parse({ method, target, headers }: SimRequest): Parsed {
  const split = target.indexOf('?');
  const whole = split < 0 ? target : target.slice(0, split);
  const path = whole.startsWith(`${BASE_PATH}/`) ? whole.slice(BASE_PATH.length) : null;
  const query = new URLSearchParams(split < 0 ? '' : target.slice(split + 1));
  const { authorization = '' } = headers;
  return { method, path, query, authorization };
}

function serveRequest(simulator: Simulator, parsed: Parsed, change: Parameters<Serve>[0] = (page) => page): SimAnswer {
  const { settings, world } = simulator;
  try {
    const page = decide(simulator, parsed);
    simulator.spend(1);
    return jsonAnswer(200, pageText(change(page), world.seed, settings), quotaHeaders(simulator.quota(), settings));
  } catch (error) {
    if (!(error instanceof Rejection)) throw error;
    return reject(simulator, error);
  }
}

/** The checks, in the order given in the header of this file. */
function decide(simulator: Simulator, { method, path, query, authorization }: Parsed): SimPage {
  const { settings, world } = simulator;
  const { codes, key, plan } = settings;
  const nowMs = simulator.serverNowMs();
  const expired = key.expiresAtMs !== null && nowMs >= key.expiresAtMs;
  if (authorization !== `Bearer ${key.secret}` || key.revoked || expired) {
    throw new Rejection(401, codes.unauthorized, 'The API key is missing, unknown, revoked or expired.');
  }
  if (!plan.apiAccess) throw new Rejection(403, codes.noApiAccess, 'The plan grants no external API access.');
  const { minute, day } = simulator.quota();
  if (minute.left < 1 || day.left < 1) throw new Rejection(429, codes.quotaSpent, 'The quota is used up.');
  const endpoint = path === null ? null : matchEndpoint(path);
  if (endpoint === null) throw new Rejection(404, codes.notFound, 'No such endpoint.');
  if (method !== 'GET')
    throw new Rejection(405, codes.methodNotAllowed, 'That method is not allowed on this endpoint.');
  if (!key.scopes.includes(endpoint.scope)) {
    throw new Rejection(403, 'insufficient_scope', `The key lacks the scope ${endpoint.scope}.`, endpoint.scope);
  }
  const worldMs = simulator.worldNowMs();
  const isVisible = (deviceId: string, reading: SimReading): boolean => simulator.isVisible(deviceId, reading, worldMs);
  return answerEndpoint(endpoint, { world, settings, nowMs: worldMs, clockMs: nowMs, query, isVisible });
}

function reject(simulator: Simulator, rejection: Rejection): SimAnswer {
  const { settings, world } = simulator;
  const { status } = rejection;
  if (settings.quota.rejections === 'counted' && status !== 401 && status !== 429) simulator.spend(1);
  const state = simulator.quota();
  const waitMs = Math.max(state.minute.waitMs, state.day.waitMs);
  return jsonAnswer(status, rejectionJson(rejection, world.seed, settings), {
    ...quotaHeaders(state, settings),
    ...rejectionHeaders(status, waitMs, settings),
  });
}

/**
 * Passes a request to the simulator and returns its answer, with half of the latency before and half after. A delayed
 * answer has the content at the arrival of the request and the date of its departure.
 */
export async function exchange(simulator: Simulator, request: SimRequest, pause: Pause): Promise<SimExchange> {
  const { settings, world, handled } = simulator;
  const { min, max } = settings.time.latencyMs;
  const latencyMs = max > 0 ? whole(mix(world.seed, handled), min, max) : 0;
  if (latencyMs > 0) await pause(latencyMs / 2);
  const exchanged = simulator.handle(request);
  const { answer, holdMs } = exchanged;
  if (holdMs !== undefined) await pause(holdMs);
  const leaving = holdMs === undefined ? answer : simulator.date(answer);
  if (latencyMs > 0) await pause(latencyMs / 2);
  return { ...exchanged, answer: leaving };
}

/**
 * The server's time from which the reading is served. It is always the same for the same reading and settings. Lateness
 * counts from the time of the reading, so a reading that the device delivered later than that is not delayed again.
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

/**
 * The simulated API with faults, and with a log of its requests.
 *
 * A plan can give each request a fault. A fault of the answer changes what the service answers; a fault of the wire is
 * carried out by the server, whose sockets really fail, or by the transport without sockets.
 */
import type { ServerResponse } from 'node:http';
import type { EpochMs } from '../../src/core/time.ts';
import {
  jsonAnswer,
  quotaHeaders,
  Rejection,
  rejectionJson,
  type SimAnswer,
  type SimPage,
} from '../../src/sim/answers.ts';
import {
  createSimulator as createService,
  type Send,
  type Serve,
  type Simulator as Service,
  type SimulatorOptions as ServiceOptions,
  type SimCall,
  type SimExchange,
} from '../../src/sim/simulator.ts';

/**
 * Faults that change the answer; it arrives complete, with a correct `Content-Length`. A request that the API rejects
 * stays rejected, except where `html` answers before the API does.
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

/** Whether the wire fails and not the answer. */
function isWireFault(fault: Fault): fault is WireFault {
  return fault.kind === 'reset' || fault.kind === 'slow' || fault.kind === 'hang';
}

/** Decides what goes wrong with a request; the first request has the number 1. */
export type FaultPlan = (requestNumber: number, request: SimCall) => Fault | null;

/** The input of {@link createSimulator}. */
export interface SimulatorOptions extends Omit<ServiceOptions, 'intercept'> {
  readonly faults?: FaultPlan;
}

/** A running API whose faults may be changed at any time. */
export interface Simulator extends Service {
  faults: FaultPlan | null;
  readonly log: RequestLog;
}

/** Makes an API of a world. */
export function createSimulator({ faults, ...options }: SimulatorOptions): Simulator {
  const log = createRequestLog();
  const service = createService({ ...options, intercept });
  const simulator: Simulator = Object.assign(service, { faults: faults ?? null, log });
  return simulator;

  function intercept(call: SimCall, serve: Serve): SimExchange {
    const number = log.total + 1;
    const fault = simulator.faults?.(number, call) ?? null;
    const wire = fault !== null && isWireFault(fault) ? fault : null;
    const answer = fault === null || isWireFault(fault) ? serve() : answerWith(fault, simulator, serve);
    const { method, path, query, atMs } = call;
    const status = isSilent(wire) ? null : answer.status;
    log.add({ number, atMs, method, path, query: query.toString(), status, fault: fault?.kind ?? null });
    return wire === null ? { answer } : exchangeWith(wire, answer);
  }
}

function isSilent(wire: WireFault | null): boolean {
  return wire?.kind === 'hang' || (wire?.kind === 'reset' && wire.when === 'before-headers');
}

function answerWith(fault: AnswerFault, simulator: Simulator, serve: Serve): SimAnswer {
  if (fault.kind === 'html') return htmlAnswer(fault.status ?? 502);
  const answer = fault.kind === 'mangle' ? serve(fault.change) : serve();
  // A rejection stays as it is.
  if (answer.status !== 200) return answer;
  if (fault.kind === 'server-error') return serverError(simulator, fault);
  return { ...answer, body: Buffer.from(corrupt(Buffer.from(answer.body).toString(), fault)) };
}

/** A page from something in front of the service. */
function htmlAnswer(status: number): SimAnswer {
  const body = `<html>\r\n<head><title>${status} Bad Gateway</title></head>\r\n<body><h1>Bad Gateway</h1></body>\r\n</html>\r\n`;
  return { status, headers: { 'Content-Type': 'text/html' }, body: Buffer.from(body) };
}

function serverError(
  { settings, world, quota }: Simulator,
  { status = 500, waitSeconds }: AnswerFault & { kind: 'server-error' },
): SimAnswer {
  const rejection = new Rejection(status, settings.codes.internal, 'A fault on our side.');
  return jsonAnswer(status, rejectionJson(rejection, world.seed, settings), {
    ...quotaHeaders(quota(), settings),
    ...(waitSeconds === undefined ? {} : { [settings.headerNames.wait]: String(waitSeconds) }),
  });
}

function corrupt(body: string, fault: AnswerFault): string {
  switch (fault.kind) {
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

/** The fault that each way of sending carries out, for a transport that has no socket. */
const wireOfSend = new WeakMap<Send, WireFault>();

/** The fault of the wire that remains for the sender of the answer; `null` where the answer is sent whole and at once. */
export function wireOf({ send }: SimExchange): WireFault | null {
  return (send && wireOfSend.get(send)) ?? null;
}

function exchangeWith(wire: WireFault, answer: SimAnswer): SimExchange {
  if (wire.kind === 'slow' && wire.part !== 'body') return { answer, holdMs: wire.delayMs };
  const send: Send = async (response, ready, pause) => {
    if (wire.kind === 'hang') {
      await pause(Infinity);
    } else if (wire.kind === 'reset') {
      await reset(response, ready, wire.when);
    } else {
      writeHead(response, ready);
      response.flushHeaders();
      await pause(wire.delayMs);
      response.end(ready.body);
    }
  };
  wireOfSend.set(send, wire);
  return { answer, send };
}

function writeHead(response: ServerResponse, { status, headers, body }: SimAnswer): void {
  response.writeHead(status, { ...headers, 'Content-Length': String(body.byteLength) });
}

/** Resets the connection (RST), after as much of the answer as is requested has gone to the client. */
async function reset(
  response: ServerResponse,
  ready: SimAnswer,
  when: 'before-headers' | 'after-headers' | 'in-body',
): Promise<void> {
  if (when !== 'before-headers') {
    writeHead(response, ready);
    response.flushHeaders();
    if (when === 'in-body') response.write(ready.body.subarray(0, Math.floor(ready.body.byteLength / 2)));
    await flushed(response);
  }
  response.socket?.resetAndDestroy();
}

/** Resolves when the kernel has all that was written, and the client had a turn to read it. */
async function flushed({ socket }: ServerResponse): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
  // An empty write adds nothing and is called back behind all others, also when the connection has gone.
  await new Promise((resolve) => socket?.write('', resolve) ?? resolve(undefined));
  await new Promise((resolve) => setImmediate(resolve));
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

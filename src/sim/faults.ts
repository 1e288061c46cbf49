/**
 * The faults that the simulator can inject between a request and its answer.
 *
 * A plan decides for every request. The simulator applies the fault to its answer; a fault of the connection is applied
 * by the transport or the server.
 */
import type { EpochMs } from '../core/time.ts';

/** A successful page, before it is written: what a `mangle` fault may change at will. */
export interface SimPage {
  readonly kind: 'devices' | 'device' | 'telemetry' | 'alerts' | 'alert' | 'account';
  /** The device that a telemetry page names. */
  readonly deviceId: string | null;
  /** The records as JSON text, in the order served; exactly one for a single resource. */
  readonly records: readonly string[];
  readonly nextCursor: string | null;
}

/**
 * Faults that change the answer; it arrives whole, with a `Content-Length` that is true. A request that the API refuses
 * stays refused, except where `html` answers before the API does.
 */
export type AnswerFault =
  /** A fault of the service: JSON, code by the settings, 500 by default. It costs quota. */
  | { readonly kind: 'server-error'; readonly status?: number; readonly waitSeconds?: number }
  /** A page in HTML from something in front of the service, 502 unless told otherwise. It costs no quota. */
  | { readonly kind: 'html'; readonly status?: number }
  /** 200 with the first part of the body, half of it unless told otherwise. */
  | { readonly kind: 'truncated'; readonly keep?: number }
  /** 200 with a body that is no JSON, or with exactly this one. */
  | { readonly kind: 'malformed'; readonly body?: string }
  /** 200 with a body of no bytes. */
  | { readonly kind: 'empty' }
  /** 200 with a page that was changed. */
  | { readonly kind: 'mangle'; readonly change: (page: SimPage) => SimPage };

/** Faults of the wire. The service has counted the request in all of them. */
export type WireFault =
  | { readonly kind: 'reset'; readonly when: 'before-headers' | 'after-headers' | 'in-body' }
  /** The answer as of its arrival leaves this much later; with `body`, its headers leave at once. */
  | { readonly kind: 'slow'; readonly delayMs: number; readonly part?: 'headers' | 'body' }
  /** No answer, and the connection stays open. */
  | { readonly kind: 'hang' };

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
export function isWireFault(fault: Fault): fault is WireFault {
  return fault.kind === 'reset' || fault.kind === 'slow' || fault.kind === 'hang';
}

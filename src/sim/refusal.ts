/**
 * Refusals: an answer that is no success, on its way from wherever it is decided to where it is written.
 */
import type { SimSettings } from './settings.ts';

/** A request that the API refuses (API document, "Errors"). */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly status: number;
  readonly code: string;
  readonly requiredScope: string | null;

  constructor(status: number, code: string, message: string, requiredScope: string | null = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.requiredScope = requiredScope;
  }
}

/** 400. The message begins with the name of the parameter at fault (for cursors: Pagination 3). */
export function invalidRequest(parameter: string, complaint: string): Refusal {
  return new Refusal(400, 'invalid_request', `${parameter} ${complaint}`);
}

/** 404. The same for what never was and for what another workspace has. */
export function notFound(settings: SimSettings): Refusal {
  return new Refusal(404, settings.codes.notFound, 'No such resource.');
}

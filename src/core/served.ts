/**
 * What is served to an address: between whoever makes a page and whoever sends it.
 */

export interface Served {
  readonly status: number;
  /** Its media type, as the header has it. */
  readonly type: string;
  readonly body: string;
  /** What a browser may ask by whether it has changed; without one nothing of it is kept. */
  readonly etag?: string;
}

/** A value as JSON, in one line. */
export function servedJson(status: number, value: unknown): Served {
  return { status, type: 'application/json; charset=utf-8', body: `${JSON.stringify(value)}\n` };
}

/**
 * What is served to an address: between whoever makes a page and whoever sends it. A type only.
 */

export interface Served {
  readonly status: number;
  /** Its media type, as the header has it. */
  readonly type: string;
  readonly body: string;
  /** What a browser may ask by whether it has changed; without one nothing of it is kept. */
  readonly etag?: string;
}

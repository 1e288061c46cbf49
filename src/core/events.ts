/**
 * Everything worth telling, as facts. Logic reports these and neither logs nor counts; `observe/` decides who hears
 * what. No event carries a secret, a header or a body.
 */
import type { ApiFaultKind } from './faults.ts';
import type { RequestLane, Stream } from './ports.ts';
import type { EpochMs } from './time.ts';

export type AppEvent =
  // Requests
  | {
      readonly type: 'request-done';
      readonly request: string;
      readonly lane: RequestLane;
      readonly status: number | null;
      readonly durationMs: number;
      readonly fault: ApiFaultKind | null;
    }
  | {
      readonly type: 'request-retried';
      readonly request: string;
      readonly fault: ApiFaultKind;
      readonly attempt: number;
      readonly waitMs: number;
      readonly message: string;
    }
  /** Emitted when a wait of more than a few seconds begins. A normal state, never an error. */
  | { readonly type: 'allowance-wait'; readonly untilMs: EpochMs; readonly reason: 'pace' | 'minute' | 'day' | 'asked' }
  | { readonly type: 'plan-changed'; readonly before: string; readonly after: string }
  // Records
  | { readonly type: 'records-rejected'; readonly stream: Stream; readonly count: number; readonly reason: string }
  | { readonly type: 'values-dropped'; readonly deviceId: string; readonly count: number; readonly reason: string }
  | {
      readonly type: 'page-landed';
      readonly deviceId: string;
      readonly lane: RequestLane;
      readonly readings: number;
      readonly newPoints: number;
      /** Whether more is held in full than before. */
      readonly proven: boolean;
    }
  | { readonly type: 'page-distrusted'; readonly deviceId: string; readonly reason: string; readonly attempt: number }
  | { readonly type: 'restatement'; readonly deviceId: string; readonly at: string }
  | {
      readonly type: 'gap-named';
      readonly deviceId: string;
      readonly reason: string;
      readonly from: string;
      readonly to: string;
    }
  | { readonly type: 'stream-off'; readonly stream: Stream; readonly scope: string }
  /** One stream could not be read this time; the others go on. */
  | { readonly type: 'stream-failed'; readonly stream: Stream; readonly message: string }
  | { readonly type: 'device-appeared'; readonly deviceId: string; readonly name: string }
  | { readonly type: 'device-renamed'; readonly deviceId: string; readonly before: string; readonly after: string }
  | { readonly type: 'device-gone'; readonly deviceId: string }
  | { readonly type: 'device-returned'; readonly deviceId: string }
  // Delivery
  | { readonly type: 'destination-new'; readonly destination: string }
  | {
      readonly type: 'lines-delivered';
      readonly destination: string;
      readonly lines: number;
      readonly durationMs: number;
    }
  | { readonly type: 'lines-quarantined'; readonly destination: string; readonly lines: number; readonly words: string }
  | {
      readonly type: 'destination-held';
      readonly destination: string;
      readonly words: string;
      readonly hint: string;
      readonly waitMs: number;
    }
  | { readonly type: 'destination-moving'; readonly destination: string }
  // Running
  | { readonly type: 'pass-started'; readonly devices: number }
  | { readonly type: 'pass-failed'; readonly message: string; readonly waitMs: number }
  | { readonly type: 'stopping'; readonly reason: string };

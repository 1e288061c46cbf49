/**
 * The settings of the simulator: everything that the API document leaves open, and the workspace's plan and key.
 *
 * A simulator keeps its settings as plain objects. A test may change them at any time (a smaller plan, a revoked key, a
 * wrong clock), and the next request uses them.
 */
import type { EpochMs } from '../core/time.ts';

/** The scopes of version 1 (API document, "Authentication"). Any other name grants nothing. */
const API_SCOPES = ['devices:read', 'telemetry:read', 'alerts:read', 'account:read'] as const;

export type ApiScope = (typeof API_SCOPES)[number];

/** Which of the two bounds a telemetry request carries. */
export type BoundShape = 'none' | 'after' | 'before' | 'both';

/** The choices of this simulator for everything that the API document leaves open. */
export interface SimSettings {
  /** The telemetry window (API document: "Telemetry window", "Format of after and before: not shown"). */
  bounds: {
    after: 'inclusive' | 'exclusive';
    before: 'inclusive' | 'exclusive';
    /** `seconds` compares bounds and times without their fractions. */
    resolution: 'exact' | 'seconds';
    /** Any RFC 3339, only with `Z`, or only with `Z` and without a fraction. */
    formats: 'any' | 'utc' | 'utc-seconds';
    /** The answer if `after` is later than `before`. */
    reversed: 'empty' | 'rejected';
    /** Combinations of bounds that are rejected with `invalid_request`. */
    rejectedShapes: BoundShape[];
    /** Readings older than `historyMaxDays`: served, never served, or a request that includes them is rejected. */
    age: 'unlimited' | 'empty' | 'rejected';
  };
  paging: {
    /** `limit` outside 1 to 200 ("not shown"). */
    limitOutside: 'rejected' | 'clamped';
    /** Whether parameters that differ from those of the first page make a cursor invalid (docs/api.md, Pagination). */
    cursorParameters: 'checked' | 'ignored';
    /**
     * How a cursor treats readings with one instant on both sides of a page's end: correctly, or it skips or repeats
     * some. `loops`: it repeats them even if they fill the page, so that such a chain never ends.
     */
    cursorDuplicates: 'exact' | 'skips' | 'repeats' | 'loops';
    /** How long a cursor is valid; `null`: forever. */
    cursorLifeMs: number | null;
    /** `base64` has `+`, `/` and `=`, which survive a query only if it is encoded. */
    cursorAlphabet: 'base64' | 'base64url';
    /** Signs the cursors. They stay valid after a restart with the same secret. */
    cursorSecret: string;
    /** Query parameters that the endpoint does not know ("not shown"). */
    unknownParameters: 'ignored' | 'rejected';
  };
  quota: {
    /**
     * `fixed`: whole minutes and UTC days; `first-request`: begins with the first request after the last one ended;
     * `sliding`: the last 60 s and 24 h; `bucket`: refilled evenly.
     */
    window: 'fixed' | 'first-request' | 'sliding' | 'bucket';
    /** The window that `X-RateLimit-*` report; `tightest` is the one with fewer requests left. */
    headers: 'minute' | 'day' | 'tightest';
    /** `free`: rejected requests cost no quota; `counted`: all rejected requests except 401 and 429 cost quota. */
    rejections: 'free' | 'counted';
    /**
     * The requests of other clients of the workspace: this many per minute, spent at once every `everyMs`. Small
     * intervals make a steady load.
     */
    foreign: { perMinute: number; everyMs: number };
  };
  /** Names of headers that the API document leaves open. */
  headerNames: { wait: string; challenge: string };
  time: {
    /** How far the server's clock is ahead of true time. Readings are made by that clock. */
    offsetMs: number;
    /** How far it is ahead beyond that while readings keep the old time: the clock has jumped, or falls back. */
    jumpMs: number;
    /** How far the `Date` header alone is ahead of the server's clock. */
    dateSkewMs: number;
    date: 'sent' | 'absent';
    /** The duration of every answer, a random value between the two. */
    latencyMs: { min: number; max: number };
  };
  /** Readings that become visible late: how many, how late at most, and for which devices. */
  lateness: { share: number; maxMs: number; devices: string[] | null };
  /** Shares of records, 0 to 1, selected by the seed, so that they are always the same. */
  surprises: {
    /** Objects with members that no document describes, including error objects. */
    unknownMembers: number;
    /** Fields that are null or absent, if the API document allows that. */
    missingFields: number;
  };
  codes: {
    unauthorized: string;
    noApiAccess: string;
    notFound: string;
    methodNotAllowed: string;
    quotaSpent: string;
    internal: string;
    /** The codes that come with `max_days`. */
    withMaxDays: string[];
  };
  plan: {
    planId: string;
    name: string;
    apiAccess: boolean;
    maxApiKeys: number;
    requestsPerMinute: number;
    requestsPerDay: number;
    historyMaxDays: number | null;
    maxDevicesPerPage: number;
  };
  key: {
    /** The complete key, as in the `Authorization` header. */
    secret: string;
    /** Names outside the API's set grant nothing. */
    scopes: string[];
    expiresAtMs: EpochMs | null;
    revoked: boolean;
  };
}

/** Settings in which only some members of some sections are given. */
export type SettingsOverrides = { readonly [Section in keyof SimSettings]?: Partial<SimSettings[Section]> };

/** The key that a simulator accepts by default. */
export const DEFAULT_KEY = 'sim_0123456789abcdef0123456789abcdef';

const DEFAULTS: SimSettings = {
  bounds: {
    after: 'inclusive',
    before: 'exclusive',
    resolution: 'exact',
    formats: 'any',
    reversed: 'empty',
    rejectedShapes: [],
    age: 'unlimited',
  },
  paging: {
    limitOutside: 'rejected',
    cursorParameters: 'checked',
    cursorDuplicates: 'exact',
    cursorLifeMs: null,
    cursorAlphabet: 'base64',
    cursorSecret: 'simulated',
    unknownParameters: 'ignored',
  },
  quota: { window: 'fixed', headers: 'minute', rejections: 'free', foreign: { perMinute: 0, everyMs: 1000 } },
  headerNames: { wait: 'Retry-After', challenge: 'WWW-Authenticate' },
  time: { offsetMs: 0, jumpMs: 0, dateSkewMs: 0, date: 'sent', latencyMs: { min: 0, max: 0 } },
  lateness: { share: 0, maxMs: 0, devices: null },
  surprises: { unknownMembers: 0, missingFields: 0 },
  codes: {
    unauthorized: 'unauthorized',
    noApiAccess: 'api_access_required',
    notFound: 'not_found',
    methodNotAllowed: 'method_not_allowed',
    quotaSpent: 'rate_limited',
    internal: 'internal_error',
    withMaxDays: ['range_too_large'],
  },
  plan: {
    planId: 'business',
    name: 'Business',
    apiAccess: true,
    maxApiKeys: 5,
    requestsPerMinute: 120,
    requestsPerDay: 20_000,
    historyMaxDays: 365,
    maxDevicesPerPage: 200,
  },
  key: { secret: DEFAULT_KEY, scopes: [...API_SCOPES], expiresAtMs: null, revoked: false },
};

/** Settings for one simulator: the defaults, which follow the plainest reading of the document, with overrides. */
export function createSettings(overrides: SettingsOverrides = {}): SimSettings {
  const defaults = structuredClone(DEFAULTS);
  const merged = <Section extends keyof SimSettings>(section: Section): SimSettings[Section] => ({
    ...defaults[section],
    ...overrides[section],
  });
  return {
    bounds: merged('bounds'),
    paging: merged('paging'),
    quota: merged('quota'),
    headerNames: merged('headerNames'),
    time: merged('time'),
    lateness: merged('lateness'),
    surprises: merged('surprises'),
    codes: merged('codes'),
    plan: merged('plan'),
    key: merged('key'),
  };
}

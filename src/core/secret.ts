/**
 * A key or a token that cannot be shown by accident: printing, joining, logging or serialising it yields `[secret]`.
 * Only the code that sends it calls `reveal`.
 *
 * The last safeguard: a search of all output for every secret, in each form that it may have in a text (as it is,
 * inside JSON, in a URL, in base64). Pure.
 */

/** The replacement for a secret. */
export const SECRET_MARK = '[secret]';

/**
 * The parts of a secret that are searched for. A short one, which may equal a word by chance, counts only as a
 * credential. So does a word of Tidemark's own output: without it the output would have no names.
 *
 * @param isAnswer whether the text comes from a server: no word in it is Tidemark's own
 */
export function formsOfSecret(secret: string, isAnswer = false): readonly string[] {
  const whole = partsOf(secret).filter((part) => part.length >= SHORTEST_SEARCHED && (isAnswer || !isOwnWord(part)));
  return whole.length > 0 ? whole : [`Token ${secret}`, `Bearer ${secret}`, `Basic ${inBase64(secret)}`];
}

/** InfluxDB 1.8 takes `user:password` as a token: the password alone is a secret too. */
function partsOf(secret: string): readonly string[] {
  return [...new Set([secret, secret.slice(secret.indexOf(':') + 1)])];
}

/** Whether a secret, or its password, is a word that Tidemark itself writes: `second`, `telemetry`, `tidemark`. */
export function equalsOwnWord(secret: string): boolean {
  return partsOf(secret).some(isOwnWord);
}

function isOwnWord(text: string): boolean {
  return text.length >= SHORTEST_SEARCHED && /^[a-z\d]+$/i.test(text) && OWN_WORDS.includes(text.toLowerCase());
}

/** Whether a text is a name of Tidemark's words: `lag_seconds`. */
function isOwnName(text: string): boolean {
  const words = text.split('_');
  return words.some(isOwnWord) && words.every((word) => word.length < SHORTEST_SEARCHED || isOwnWord(word));
}

/** Shorter texts are no secret by themselves. */
const SHORTEST_SEARCHED = 4;

export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The secret itself, for the header that needs it and for the search that removes it from texts. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return SECRET_MARK;
  }

  toJSON(): string {
    return SECRET_MARK;
  }

  /** The text that Node's `console` and `util.inspect` show. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return SECRET_MARK;
  }
}

/** Gives a text back without secrets. */
export type Scrub = (text: string) => string;

/**
 * Builds the search for all secrets; a secret that is added to the list later is included from then on.
 *
 * @param isAnswer whether the texts come from a server: there a secret that is a word of Tidemark is removed too
 */
export function createScrub(secrets: readonly Secret[], { isAnswer = false } = {}): Scrub {
  let known = { secrets: 0, forms: [] as readonly string[] };
  return (text) => {
    if (known.secrets !== secrets.length) known = { secrets: secrets.length, forms: allForms(secrets, isAnswer) };
    return known.forms.reduce((clean, form) => clean.replaceAll(form, SECRET_MARK), text);
  };
}

/**
 * Returns a copy of plain data without secrets in its texts. Numbers and the names of Tidemark's members stay, so it
 * has the same shape.
 */
export function scrubbed<T>(data: T, scrub: Scrub): T {
  return JSON.parse(scrubbedJson(data, scrub));
}

/** The same as JSON. */
export function scrubbedJson(data: unknown, scrub: Scrub): string {
  return JSON.stringify(data, (_name, value: unknown) => {
    if (typeof value === 'string') return scrub(value);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    const names = Object.keys(value);
    const clean = names.map((name) => scrubName(name, scrub));
    if (names.every((name, at) => name === clean[at])) return value;
    return Object.fromEntries(Object.values(value).map((each, at) => [clean[at], each]));
  });
}

/** Removes secrets from the name of a member, unless it is one of Tidemark's. */
export function scrubName(name: string, scrub: Scrub): string {
  return isOwnName(name) ? name : scrub(name);
}

/** Removes queries and user names from the URLs of a text: a server's message may quote the request. */
export function withoutQueries(text: string): string {
  return text.replace(
    /(https?:\/\/)(?:[^\s/"'<>@]*@)?([^\s"'<>?#]*)([?#][^\s"'<>]*)?/gi,
    (_all, scheme, place, query) => (query === undefined ? `${scheme}${place}` : `${scheme}${place}…`),
  );
}

/** Longest first, so that no secret that begins like another leaves its rest behind. */
function allForms(secrets: readonly Secret[], isAnswer: boolean): string[] {
  return [...new Set(secrets.flatMap((secret) => formsOf(secret.reveal(), isAnswer)))].sort(
    (a, b) => b.length - a.length,
  );
}

function formsOf(secret: string, isAnswer: boolean): string[] {
  const forms = formsOfSecret(secret, isAnswer).flatMap((part) => [
    part,
    JSON.stringify(part).slice(1, -1),
    encodeURIComponent(part),
  ]);
  // No word looks like base64.
  return [...forms, ...formsOfSecret(secret, true).map(inBase64)];
}

function inBase64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

/**
 * The words of names and codes in the output: metrics, labels, members of JSON, events, settings. A test compares them
 * with the sources.
 */
const OWN_WORDS = `
abort above absent accepted accepts access accounting acknowledged action active added addition addon address after
again agent ahead alerts alike allowance alone among answered answers apart appeared append application architecture
archived area args aside asked asking assumed assumes assumptions attempts auto awaited awake backfilled backlog
backup base64 basic basis batch before began begin begun behind below beside best beyond bigint bisect blocked blocks
board body booked bookings boolean both bounds broken buckets budgets buffer build bundle busy bytes cached cancelled
candidates catching cause cells chain changed changes charge checks chunks cleared clock closed codes columns command
commitment committed compared comparison completed compose concealers concurrency condition configuration configured
confirmation conflict connections contact content context controls copied cost counted counter counts coverage covers
created credit current cursor daemon damaged databases days debug decision decoded deduplication default deflate
deleted delivered deliverers delivers delivery demand demo described description descriptors destinations details
devices differences different differing digest directory disk docs does done doublings doubts dropped duration earlier
earliest empties empty encoding ended ends energy engine enough entries environment equal error estimated etag
eventloop events examination example except excluded excludes exclusive exit expected export extent external extra
factor facts failed failing failsafe failures fallback false families faults fetched fields figures files filling
filter findings fire firmware first fits flags fleet flush folder followed follower foreign forever forgetting
forgotten formatter found freelist frequency freshness from full function gaps gathered gauge generated given goals
going gone grace grafana granted groups guarded gzip halve hash have headers healthy heaps heartbeats help hidden
highest hints histogram histories history holder home hooks hostname hours humidity identify identity idle include
inclusive incomplete indexes influxdb info initial input inside insufficient integrity internal interrupted interval
invalid inventory items iterate jobs journal keep keys kinds kubernetes kustomization labels lanes large last lateness
later latest latin1 latitude learnt ledger left length level libraries lifecycle light limiter limits lines links
listed listen listing lists loads localhost location logged logger longitude looked loops lost lowest made maintenance
major malformed many markers matches matching meaning measured measurement median memory mend message method
milliseconds minor minute mismatch missed missing mistakes model month more names nanosecond ndjson nearest needed
never newer newest next nodejs none nosniff notes nothing notify null number object observed offline offsets oldest
online only optional options origins others outages outcome overdue overlaps override overview overwrite owners pages
parent parse partial particles partly parts passed password patch paths patience pattern paused pauses peaks
percentile period permissions phase pieces plain planned planner planning points policy polled polling polls ports
positional positions power prefix presence present pressure pretty previous print prober problem process progress
prometheus prompter protocol proxies proxy pulse purpose quantity quarantined queries query question queued quiet
quota random ranges ratelimit rates readers readings ready reasons received recency recent recheck recorded records
recovered redirects referrer refusals refused rejected released remaining remedies remedy removed renamed reopened
reordered repaired repeatable repeats replaced replays reply report requested requests required rereading rereads
resender reset resident resolution resolved response restatements rested resting results resumed retention retired
retried retries retry returned reversed revisions rewrite room rows rule running runs runtime same samples save scale
scanner scarce schedules scope scrub search secrets sections seen segments self sensors seqs series server service
settings settle sha256 shape shared shelved shortfall shown signal silence silent since single sink size skew skipped
sleep slot slowdown smaller snapshot some sort sound source span spare spec speed spending spent stale stalled started
startup states stats status stderr stdin stdout step stopped stopping stored streams string submit subsec success
summary sums suppressed sweep synchronous systemd tables tags tally target task telemetry temperature terminal
terminator texts threshold throttled tidemark timeout timestamps today todo tokens topic totals transfer transport
true trusted typed unauthorized unavailable unclear unconfirmed understood unfinished unit unknown unreachable
unreadable untested until unverifiable unverified unwritable updated usage user utf8 vacuum values variable verbose
verify version victoriametrics voltage waiters waiting waits wanted warnings watch watermark weekday what whole width
windows wire withdrawn workers workspaces worst written wrong yaml
`;

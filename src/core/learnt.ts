/**
 * What the API's answers have shown of what its document leaves open (design 2.6): for people, who may ask what is known.
 * Nothing in the program goes by it.
 */

/** What shows itself only now and then, and is worth remembering. */
export interface RareSights {
  /** Headers of a 429 that speak of a wait, by name. */
  readonly waitHeaders: readonly string[];
  /** Headers of a 401 that challenge, by name. */
  readonly challengeHeaders: readonly string[];
}

export interface Learnt extends RareSights {
  /** Whether answers carry `X-RateLimit-Limit` and `-Remaining`; `null`: no answer yet. */
  readonly rateLimit: 'all' | 'some' | 'none' | null;
  /** The largest `limit` that was answered with 200, and the smallest that was refused with 400. */
  readonly pageTaken: number | null;
  readonly pageRefused: number | null;
}

/** More names than this tell nothing more. */
const MOST_NAMES = 5;

/** Adds names; those that are known already stay where they are. */
export function withNames(known: readonly string[], names: readonly string[]): readonly string[] {
  return [...new Set([...known, ...names.filter(isName)])].slice(0, MOST_NAMES);
}

/** Reads what was remembered. What cannot be read is as good as nothing. */
export function readRareSights(text: string | null): RareSights {
  let value: unknown = null;
  try {
    value = text === null ? null : JSON.parse(text);
  } catch {
    // Learnt anew.
  }
  const { waitHeaders, challengeHeaders } = { ...(value as Readonly<Record<string, unknown>> | null) };
  return { waitHeaders: names(waitHeaders), challengeHeaders: names(challengeHeaders) };
}

function names(value: unknown): readonly string[] {
  return Array.isArray(value)
    ? withNames(
        [],
        value.filter((name) => typeof name === 'string'),
      )
    : [];
}

/** What a header can be called. */
function isName(name: string): boolean {
  return /^[a-z0-9-]{1,60}$/i.test(name);
}

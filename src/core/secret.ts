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
 * The parts of a secret that are searched for. A short secret, which may equal a word by chance, counts only as a
 * credential. So does a plain word such as `second`: masking it in Tidemark's own sentences and codes would break them,
 * and would reveal the secret to readers who know the sentence.
 *
 * @param isAnswer whether the text comes from a server: then it contains no words of Tidemark
 */
export function formsOfSecret(secret: string, isAnswer = false): readonly string[] {
  const whole = secretAndPassword(secret).filter(
    (part) => part.length >= SHORTEST_SEARCHED && (isAnswer || !PLAIN_WORD.test(part)),
  );
  return whole.length > 0 ? whole : [`Token ${secret}`, `Bearer ${secret}`, `Basic ${inBase64(secret)}`];
}

/** InfluxDB 1.8 takes `user:password` as a token, so the password alone is a secret too. */
function secretAndPassword(secret: string): readonly string[] {
  return [...new Set([secret, secret.slice(secret.indexOf(':') + 1)])];
}

/** Whether a secret, or its password, is a plain word that names and sentences contain: `second`, `Tidemark`. */
export function isGuessable(secret: string): boolean {
  return secretAndPassword(secret).some((part) => PLAIN_WORD.test(part));
}

/** Only letters, in the case of a word, and no longer than the longest word in Tidemark's names. */
const PLAIN_WORD = /^(?:[a-z]{4,15}|[A-Z][a-z]{3,14}|[A-Z]{4,15})$/;

/** Whether a text has the form of Tidemark's names: `lag_seconds`. */
function isOwnName(text: string): boolean {
  const words = text.split('_');
  const isPlain = (word: string): boolean => PLAIN_WORD.test(word);
  return words.some(isPlain) && words.every((word) => word.length < SHORTEST_SEARCHED || isPlain(word));
}

/** Shorter texts are no secret by themselves. */
const SHORTEST_SEARCHED = 4;

/** A text that shows itself only to a caller of `reveal`. */
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

/** Returns a text without secrets. */
export type Scrub = (text: string) => string;

/**
 * Creates the search for all secrets. It also finds secrets that are added to the list later.
 *
 * @param isAnswer whether the texts come from a server: there the search also removes a secret that is a word of
 * Tidemark
 */
export function createScrub(secrets: readonly Secret[], { isAnswer = false } = {}): Scrub {
  let known = { secrets: 0, forms: [] as readonly string[] };
  return (text) => {
    if (known.secrets !== secrets.length) known = { secrets: secrets.length, forms: allForms(secrets, isAnswer) };
    return known.forms.reduce((clean, form) => clean.replaceAll(form, SECRET_MARK), text);
  };
}

/**
 * Returns a copy of plain data without secrets in its texts. Numbers and Tidemark's member names stay, so the copy has
 * the same shape.
 */
export function scrubbed<T>(data: T, scrub: Scrub): T {
  return JSON.parse(scrubbedJson(data, scrub));
}

/** Returns plain data as JSON text without secrets in its texts and names. */
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

/** Longest first: if one secret begins with another, its end must not remain in the text. */
function allForms(secrets: readonly Secret[], isAnswer: boolean): string[] {
  return [...new Set(secrets.flatMap((secret) => writtenForms(secret.reveal(), isAnswer)))].sort(
    (a, b) => b.length - a.length,
  );
}

function writtenForms(secret: string, isAnswer: boolean): string[] {
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

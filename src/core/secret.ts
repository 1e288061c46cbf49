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
 * The forms in which a secret can be part of a text. A short one, which may equal a word by chance, counts only as a
 * credential.
 */
export function formsOfSecret(secret: string): readonly string[] {
  // InfluxDB 1.8 takes `user:password` as a token: the password alone is a secret too.
  const whole = [secret, secret.slice(secret.indexOf(':') + 1)].filter((part) => part.length >= SHORTEST_SEARCHED);
  return whole.length > 0 ? whole : [`Token ${secret}`, `Bearer ${secret}`, `Basic ${inBase64(secret)}`];
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

/** Builds the search for all secrets; a secret that is added to the list later is included from then on. */
export function createScrub(secrets: readonly Secret[]): Scrub {
  let known = { secrets: 0, forms: [] as readonly string[] };
  return (text) => {
    if (known.secrets !== secrets.length) known = { secrets: secrets.length, forms: allForms(secrets) };
    return known.forms.reduce((clean, form) => clean.replaceAll(form, SECRET_MARK), text);
  };
}

/** Removes queries and user names from the URLs of a text: a server's message may quote the request. */
export function withoutQueries(text: string): string {
  return text.replace(
    /(https?:\/\/)(?:[^\s/"'<>@]*@)?([^\s"'<>?#]*)([?#][^\s"'<>]*)?/gi,
    (_all, scheme, place, query) => (query === undefined ? `${scheme}${place}` : `${scheme}${place}…`),
  );
}

/** Longest first, so that no secret that begins like another leaves its rest behind. */
function allForms(secrets: readonly Secret[]): string[] {
  return [...new Set(secrets.flatMap((secret) => formsOf(secret.reveal())))].sort((a, b) => b.length - a.length);
}

function formsOf(secret: string): string[] {
  return formsOfSecret(secret).flatMap((part) => [
    part,
    JSON.stringify(part).slice(1, -1),
    encodeURIComponent(part),
    inBase64(part),
  ]);
}

function inBase64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

/**
 * A key or a token that cannot be shown by accident: printing, joining, logging or serialising it yields `[secret]`.
 * Only the code that sends it calls `reveal`.
 */

/** What stands where a secret stood. */
export const SECRET_MARK = '[secret]';

/**
 * The forms in which a secret can stand in a text. A short one, which a word may equal by chance, only as a credential.
 */
export function formsOfSecret(secret: string): readonly string[] {
  // InfluxDB 1.8 takes `user:password` as a token: the password alone is a secret too.
  const whole = [secret, secret.slice(secret.indexOf(':') + 1)].filter((part) => part.length >= SHORTEST_SEARCHED);
  return whole.length > 0 ? whole : ['Token', 'Bearer'].map((scheme) => `${scheme} ${secret}`);
}

/** Shorter texts are no secret by themselves. */
const SHORTEST_SEARCHED = 4;

export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The secret itself, for the header that carries it and for the search that keeps it out of the logs. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return SECRET_MARK;
  }

  toJSON(): string {
    return SECRET_MARK;
  }

  /** What Node's `console` and `util.inspect` show. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return SECRET_MARK;
  }
}

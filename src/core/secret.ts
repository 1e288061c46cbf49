/**
 * A key or a token that cannot be shown by accident: printing, joining, logging or serialising it yields `[secret]`.
 * Only the code that sends it calls `reveal`.
 */

/** What stands where a secret stood. */
export const SECRET_MARK = '[secret]';

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

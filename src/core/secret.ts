/**
 * A key or a token, held so that it cannot be shown by accident: whatever prints, joins, logs or serialises it gets
 * `[secret]`. Only what sends it calls `reveal`.
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

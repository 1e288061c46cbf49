/** Checks on JSON that another process, another version or someone else has written. */

/** An object with unknown members. */
export type JsonRecord = Readonly<Record<string, unknown>>;

/** Parses JSON that may be anything: `null` for a text that is none, and for no text. */
export function parseJson(text: string | null): unknown {
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Whether it is an object with members: neither `null` nor a list. */
export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a value is a list of records that each have these members as strings. */
export function areRecords(value: unknown, strings: readonly string[]): value is readonly JsonRecord[] {
  return (
    Array.isArray(value) &&
    value.every((each) => isRecord(each) && strings.every((name) => typeof each[name] === 'string'))
  );
}

/** An own member of a parsed object, with any name; `undefined` if there is none. */
export function member(holder: object, name: string): unknown {
  return Object.hasOwn(holder, name) ? (holder as JsonRecord)[name] : undefined;
}

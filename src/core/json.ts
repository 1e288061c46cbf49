/** Checks on JSON that another process, another version or someone else has written. */

/** An object with unknown members. */
export type JsonRecord = Readonly<Record<string, unknown>>;

/** Parses any text as JSON; `null` if it is not JSON, or if there is no text. */
export function parseJson(text: string | null): unknown {
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Whether a value is an object with members: neither `null` nor a list. */
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

/** A check of a parsed value. */
type Check<T> = (value: unknown) => value is T;

/** A check for each member of a record, or for each place of a list. */
type Checks<T> = { readonly [Name in keyof T]-?: Check<T[Name]> };

export const isText: Check<string> = (value) => typeof value === 'string';
export const isNumber: Check<number> = (value): value is number => Number.isFinite(value);
export const isBoolean: Check<boolean> = (value) => typeof value === 'boolean';
export const isTexts: Check<readonly string[]> = (value) => Array.isArray(value) && value.every(isText);

/** The check of a value that may also be `null`. */
export function orNull<T>(check: Check<T>): Check<T | null> {
  return (value) => value === null || check(value);
}

/** The check of a value that may also be missing. */
export function orNone<T>(check: Check<T>): Check<T | undefined> {
  return (value) => value === undefined || check(value);
}

/** The check of a record, or of a list with fixed places, by its members. Further members are allowed. */
export function shapeOf<T extends object>(checks: Checks<T>): Check<T> {
  const members = Object.entries<Check<unknown>>(checks);
  return (value): value is T =>
    typeof value === 'object' &&
    value !== null &&
    Array.isArray(value) === Array.isArray(checks) &&
    members.every(([name, check]) => check(member(value, name)));
}

/** Parses JSON that this or another version of the program has stored: `null` if it has another shape. */
export function parseAs<T>(text: string | null, check: Check<T>): T | null {
  const value = parseJson(text);
  return check(value) ? value : null;
}

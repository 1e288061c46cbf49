/**
 * Line protocol read by the book: written from InfluxDB's documentation (v2 reference, "Line protocol"; limits and
 * reserved names of 1.8, 2 and 3), not from our encoder. Where versions differ the strictest one applies, so that all
 * of them accept the same lines in the same sense.
 */

export interface ReferenceLine {
  readonly measurement: string;
  readonly tags: ReadonlyMap<string, string>;
  readonly fields: ReadonlyMap<string, number | boolean | string>;
  readonly at: bigint;
}

/** "Reserved": 1.x and 2.x refuse or drop these as names; 3 reserves `time`. */
const RESERVED = new Set(['time', '_field', '_measurement', '__chunk_order']);

/**
 * Parses one line.
 *
 * @throws Error with the reason where any server might refuse or misread it.
 */
export function parseReferenceLine(line: string): ReferenceLine {
  if (line.startsWith('#')) throw new Error('a comment');
  if (/[\p{Cc}\u2028\u2029]/u.test(line)) throw new Error('a control character');
  if (!line.isWellFormed()) throw new Error('a lone surrogate');
  const [series, fieldSet, time, ...more] = splitOutsideQuotes(line);
  if (series === undefined || fieldSet === undefined || time === undefined || more.length > 0) {
    throw new Error('not three parts');
  }
  if (Buffer.byteLength(series) > 65_535) throw new Error('series key too long');
  if (!/^-?\d{1,19}$/.test(time) || BigInt.asIntN(64, BigInt(time)) !== BigInt(time)) throw new Error('bad time');
  const [measurement = '', ...tagTexts] = splitAt(series, ',');
  const tags = pairs(tagTexts, (value) => withoutEscapes(value, ', ='));
  const fields = pairs(splitFields(fieldSet), parseFieldValue);
  for (const key of fields.keys()) if (tags.has(key)) throw new Error(`${key} is a tag and a field`);
  return { measurement: name(withoutEscapes(measurement, ', ')), tags, fields, at: BigInt(time) };
}

/** Cuts at spaces that are neither escaped nor inside a quoted field value. */
function splitOutsideQuotes(line: string): string[] {
  const parts: string[] = [];
  let from = 0;
  let quoted = false;
  for (let index = 0; index < line.length; index += 1) {
    const letter = line[index];
    if (letter === '\\') index += 1;
    // Quotes have a meaning in the second part alone, the fields.
    else if (letter === '"') quoted = quoted !== (parts.length === 1);
    else if (letter === ' ' && !quoted) {
      parts.push(line.slice(from, index));
      from = index + 1;
    }
  }
  if (quoted) throw new Error('unbalanced quotes');
  return [...parts, line.slice(from)];
}

/** Cuts at a separator that no backslash escapes. */
function splitAt(text: string, separator: string): string[] {
  if (!text.includes('\\')) return text.split(separator);
  const parts: string[] = [];
  let from = 0;
  for (let index = 0; index < text.length; index += 1) {
    if (text[index] === '\\') index += 1;
    else if (text[index] === separator) {
      parts.push(text.slice(from, index));
      from = index + 1;
    }
  }
  return [...parts, text.slice(from)];
}

/** Cuts a field set at commas outside quotes. */
function splitFields(text: string): string[] {
  if (!text.includes('"')) return splitAt(text, ',');
  const parts: string[] = [];
  let from = 0;
  let quoted = false;
  for (let index = 0; index < text.length; index += 1) {
    const letter = text[index];
    if (letter === '\\') index += 1;
    else if (letter === '"') quoted = !quoted;
    else if (letter === ',' && !quoted) {
      parts.push(text.slice(from, index));
      from = index + 1;
    }
  }
  return [...parts, text.slice(from)];
}

function pairs<T>(texts: readonly string[], readValue: (text: string) => T): Map<string, T> {
  const found = new Map<string, T>();
  for (const text of texts) {
    const [key = '', value, ...more] = splitAtFirstEquals(text);
    if (value === undefined || more.length > 0 || value === '') throw new Error(`no value: ${text}`);
    const known = name(withoutEscapes(key, ', ='));
    if (found.has(known)) throw new Error(`twice: ${known}`);
    found.set(known, readValue(value));
  }
  return found;
}

function splitAtFirstEquals(text: string): string[] {
  const [key = '', ...rest] = splitAt(text, '=');
  const value = text.slice(key.length + 1);
  // In a tag every further equals sign has to be escaped; in a quoted string it need not be.
  return rest.length > 1 && !value.startsWith('"') ? [key, ...rest] : [key, value];
}

/** Drops the backslash before what may be escaped. Before anything else servers disagree, so nothing else may follow. */
function withoutEscapes(text: string, escapable: string): string {
  if (!text.includes('\\') && ![...escapable].some((letter) => text.includes(letter))) return text;
  let plain = '';
  for (let index = 0; index < text.length; index += 1) {
    const letter = text[index] ?? '';
    if (letter !== '\\') {
      if (escapable.includes(letter)) throw new Error('a separator that is not escaped');
      plain += letter;
      continue;
    }
    const next = text[index + 1] ?? '';
    if (next === '' || !escapable.includes(next)) throw new Error('a backslash that means different things');
    plain += next;
    index += 1;
  }
  return plain;
}

function name(text: string): string {
  if (text === '' || text.startsWith('_') || RESERVED.has(text)) throw new Error(`a bad name: ${text}`);
  return text;
}

/** Float (no `i` or `u`: this program writes floats only), boolean, or string. */
function parseFieldValue(text: string): number | boolean | string {
  if (text.startsWith('"')) return parseString(text);
  if (text === 'true' || text === 'false') return text === 'true';
  if (!/^-?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(text)) throw new Error(`not a value: ${text}`);
  if (!Number.isFinite(Number(text))) throw new Error('a number that is not finite');
  return Number(text);
}

function parseString(text: string): string {
  const inner = /^"((?:[^"\\]|\\["\\])*)"$/.exec(text)?.[1];
  if (inner === undefined) throw new Error(`not a string: ${text}`);
  if (Buffer.byteLength(inner) > 65_536) throw new Error('a string that is too long');
  return inner.replace(/\\(["\\])/g, '$1');
}

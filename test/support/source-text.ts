/**
 * TypeScript with its comments, and optionally its strings, blanked out: enough to search code without a compiler.
 * Offsets and lines stay where they were.
 */

/** The tokens after which a `/` divides; after anything else it begins a regular expression. */
const ENDS_VALUE = /[\w$)\]}]$/;
const KEYWORD_BEFORE_REGEX = /(?:^|[^\w$.])(?:return|typeof|case|in|of|void|delete|throw|await)$/;

interface Token {
  readonly end: number;
  readonly kind: 'comment' | 'string' | 'template' | 'regex';
}

interface Options {
  readonly keepStrings: boolean;
}

/** The results for the files that are searched: each rule about the sources looks at all of them. */
const blanked = { keeping: new Map<string, string>(), dropping: new Map<string, string>() };

/** Blanks out comments, and also strings, templates' texts and regular expressions unless `keepStrings`. */
export function blank(text: string, options: Options): string {
  const known = options.keepStrings ? blanked.keeping : blanked.dropping;
  const result = known.get(text) ?? blankAnew(text, options);
  known.set(text, result);
  return result;
}

function blankAnew(text: string, { keepStrings }: Options): string {
  let out = '';
  let at = 0;
  while (at < text.length) {
    const token = tokenAt(text, at, out);
    if (token === null) {
      out += text[at];
      at += 1;
      continue;
    }
    const piece = text.slice(at, token.end);
    if (token.kind === 'template') out += blankTemplate(piece, keepStrings);
    else out += token.kind !== 'comment' && keepStrings ? piece : spaces(piece);
    at = token.end;
  }
  return out;
}

function spaces(piece: string): string {
  return piece.replace(/[^\n]/g, ' ');
}

function tokenAt(text: string, at: number, before: string): Token | null {
  const two = text.slice(at, at + 2);
  if (two === '//') return { kind: 'comment', end: lineEnd(text, at) };
  if (two === '/*') return { kind: 'comment', end: after(text, '*/', at + 2) };
  const sign = text[at];
  if (sign === "'" || sign === '"') return { kind: 'string', end: closing(text, at, sign) };
  if (sign === '`') return { kind: 'template', end: templateEnd(text, at) };
  if (sign === '/' && beginsRegex(before)) return { kind: 'regex', end: regexEnd(text, at) };
  return null;
}

function lineEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at);
  return end === -1 ? text.length : end;
}

function after(text: string, mark: string, at: number): number {
  const end = text.indexOf(mark, at);
  return end === -1 ? text.length : end + mark.length;
}

function closing(text: string, at: number, quote: string): number {
  for (let index = at + 1; index < text.length; index += 1) {
    if (text[index] === '\\') index += 1;
    else if (text[index] === quote) return index + 1;
  }
  return text.length;
}

function beginsRegex(before: string): boolean {
  const code = before.trimEnd();
  return !ENDS_VALUE.test(code) || KEYWORD_BEFORE_REGEX.test(code);
}

function regexEnd(text: string, at: number): number {
  let inClass = false;
  for (let index = at + 1; index < text.length; index += 1) {
    const sign = text[index];
    if (sign === '\\') index += 1;
    else if (sign === '[') inClass = true;
    else if (sign === ']') inClass = false;
    else if (sign === '/' && !inClass) return index + 1;
    else if (sign === '\n') return index;
  }
  return text.length;
}

function templateEnd(text: string, at: number): number {
  for (let index = at + 1; index < text.length; index += 1) {
    if (text[index] === '\\') index += 1;
    else if (text[index] === '`') return index + 1;
    else if (text.startsWith('${', index)) index = holeEnd(text, index) - 1;
  }
  return text.length;
}

/** Where the `${…}` ends that begins at `at`, whatever strings and templates are inside. */
function holeEnd(text: string, at: number): number {
  let depth = 0;
  for (let index = at + 1; index < text.length; index += 1) {
    const token = tokenAt(text, index, text.slice(at, index));
    if (token !== null) index = token.end - 1;
    else if (text[index] === '{') depth += 1;
    else if (text[index] === '}') depth -= 1;
    if (depth === 0) return index + 1;
  }
  return text.length;
}

/** A template's texts are strings, but what stands in its gaps is code. */
function blankTemplate(piece: string, keepStrings: boolean): string {
  let out = '';
  let at = 0;
  while (at < piece.length) {
    if (piece[at] === '\\') {
      out += keepStrings ? piece.slice(at, at + 2) : spaces(piece.slice(at, at + 2));
      at += 2;
    } else if (piece.startsWith('${', at)) {
      const end = holeEnd(piece, at);
      out += `  ${blankAnew(piece.slice(at + 2, end - 1), { keepStrings })} `;
      at = end;
    } else {
      out += keepStrings || piece[at] === '\n' ? piece[at] : ' ';
      at += 1;
    }
  }
  return out;
}

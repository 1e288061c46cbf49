/** The titles of tests as their sources have them, and the texts that `.each` puts into titles. */
import { blank } from './source-text.ts';

/** A title of a test or of a group of tests, in quotation marks of any kind. */
const TITLES = /\b(?:test|describe)(?:\.\w+)*(?:\([^'"`]*\))?\(\s*(['"`])(?<title>(?:\\.|(?!\1).)*)\1/g;

/** A call of `.each`, up to the opening parenthesis of its rows. */
const EACH = /\b(?:test|describe)(?:\.\w+)*(?:\((?:[^()]|\([^()]*\))*\))?\.each(?:<[^(]*?>)?\(/g;

/** The title in the call that follows the rows. */
const FOLLOWING_TITLE = /^\s*\(\s*(['"`])(?<title>(?:\\.|(?!\1)[\s\S])*)\1/;

/** A text that stands alone. */
const LITERAL = /^\s*(['"`])(?<text>(?:\\.|(?!\1)[\s\S])*)\1\s*(?:as const)?\s*$/;

interface Range {
  readonly from: number;
  readonly to: number;
}

/** A source, and the same with comments and strings blanked out. */
interface Source {
  readonly text: string;
  readonly code: string;
}

/** Every title that is written in a call. */
export function titlesOf(text: string): string[] {
  return [...text.matchAll(TITLES)].map(({ groups }) => groups?.['title'] ?? '');
}

/**
 * Every text that `.each` puts into a title: of each row, the elements for its `%s`, and the properties of its `$name`.
 * Rows that are a constant of the file, or made of one, are read there.
 */
export function caseTitlesOf(text: string): string[] {
  const source = { text, code: blank(text, { keepStrings: false }) };
  return [...source.code.matchAll(EACH)].flatMap((call) => {
    const rows = rangeFrom(source.code, call.index + call[0].length - 1);
    const title = FOLLOWING_TITLE.exec(text.slice(rows.to + 1))?.groups?.['title'] ?? '';
    const places = [...title.matchAll(/%[sjopdif]/g)].length;
    const names = [...title.matchAll(/\$(\w+)/g)].map(([, name = '']) => name);
    const given = [rows, ...constantsIn(source, rows)];
    return given.flatMap((range) => [...elementTexts(source, range, places), ...propertyTexts(source, range, names)]);
  });
}

/** From a bracket to the one that closes it. */
function rangeFrom(code: string, from: number): Range {
  let depth = 0;
  for (let at = from; at < code.length; at += 1) {
    if ('([{'.includes(code[at] ?? '')) depth += 1;
    if (')]}'.includes(code[at] ?? '')) depth -= 1;
    if (depth === 0) return { from, to: at };
  }
  return { from, to: code.length };
}

/** The values of the constants that the rows name. */
function constantsIn({ code }: Source, { from, to }: Range): Range[] {
  const names = new Set(code.slice(from, to).match(/(?<![.\w])[A-Z][A-Z_\d]*\b/g));
  return [...names].flatMap((name) => {
    const declared = new RegExp(`\\bconst ${name}\\b[^=]*=\\s*(?=[[{])`).exec(code);
    return declared === null ? [] : [rangeFrom(code, declared.index + declared[0].length)];
  });
}

/** The elements between two brackets. */
function elementsIn(code: string, { from, to }: Range): Range[] {
  const elements: Range[] = [];
  let begin = from + 1;
  for (let at = begin; at < to; at += 1) {
    if ('([{'.includes(code[at] ?? '')) at = rangeFrom(code, at).to;
    else if (code[at] === ',') {
      elements.push({ from: begin, to: at });
      begin = at + 1;
    }
  }
  return [...elements, { from: begin, to }];
}

/** The first texts of each row, as many as the title has places. */
function elementTexts({ text, code }: Source, range: Range, places: number): string[] {
  if (places === 0) return [];
  const literal = ({ from, to }: Range): string[] => {
    const found = LITERAL.exec(text.slice(from, to))?.groups?.['text'];
    return found === undefined ? [] : [found];
  };
  const rows = [...code.slice(range.from, range.to).matchAll(/\[/g)].map(({ index }) => range.from + index);
  const inRows = rows.flatMap((from) => elementsIn(code, rangeFrom(code, from)).slice(0, places).flatMap(literal));
  const keys = elementsIn(code, range).flatMap(({ from, to }) => {
    const colon = code.slice(from, to).indexOf(':');
    return code[range.from] === '{' && colon !== -1 ? literal({ from, to: from + colon }) : [];
  });
  // A list of texts is a row for each of them.
  const list = rows[0] === undefined ? [] : elementsIn(code, rangeFrom(code, rows[0])).flatMap(literal);
  return [...new Set([...inRows, ...keys, ...list])];
}

function propertyTexts({ text }: Source, { from, to }: Range, names: readonly string[]): string[] {
  return names.flatMap((name) =>
    [...text.slice(from, to).matchAll(new RegExp(`\\b${name}:\\s*(['"\`])((?:\\\\.|(?!\\1)[\\s\\S])*)\\1`, 'g'))].map(
      ([, , value = '']) => value,
    ),
  );
}

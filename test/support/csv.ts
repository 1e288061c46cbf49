/**
 * RFC 4180 read by the book, for judging what is written: rows end in CRLF, quotes are doubled inside quoted cells.
 */

/**
 * The rows of a csv text.
 *
 * @throws Error where it is none.
 */
export function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let at = 0;
  while (at < text.length) {
    const row: string[] = [];
    for (;;) {
      const [cell, end] = text[at] === '"' ? quoted(text, at + 1) : bare(text, at);
      row.push(cell);
      at = end;
      if (text[at] !== ',') break;
      at += 1;
    }
    if (text.slice(at, at + 2) !== '\r\n') throw new Error(`row ${rows.length}: no CRLF at ${at}`);
    at += 2;
    rows.push(row);
  }
  return rows;
}

function bare(text: string, from: number): [string, number] {
  let end = from;
  while (end < text.length && !',\r\n'.includes(text[end] ?? '')) {
    if (text[end] === '"') throw new Error(`a quote in a bare cell at ${end}`);
    end += 1;
  }
  return [text.slice(from, end), end];
}

function quoted(text: string, from: number): [string, number] {
  let cell = '';
  for (let at = from; ; at += 1) {
    if (at >= text.length) throw new Error('a quoted cell without an end');
    if (text[at] !== '"') cell += text[at];
    else if (text[at + 1] === '"') {
      cell += '"';
      at += 1;
    } else return [cell, at + 1];
  }
}

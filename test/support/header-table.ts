/** Reads the tables in the headers of the sources, so that tests can compare them with the code. */
import { readFileSync } from 'node:fs';

/**
 * The rows of the tables in the header of a source, from the one whose first cell is given to the end of the header,
 * without the line below the titles.
 *
 * @param file below `src`
 * @throws Error if the header has no such table
 */
export function headerTable(file: string, firstCell: string): readonly (readonly string[])[] {
  const source = readFileSync(new URL(`../../src/${file}`, import.meta.url), 'utf8');
  const rows = source
    .slice(0, source.indexOf('*/'))
    .split('\n')
    .flatMap((line) => (line.startsWith(' * |') ? [line.split('|').slice(1, -1)] : []))
    .map((cells) => cells.map((cell) => cell.trim()));
  const from = rows.findIndex(([first]) => first === firstCell);
  if (from === -1) throw new Error(`${file}: no table with ${firstCell} in its header`);
  return rows.slice(from).filter(([first]) => !/^-+$/.test(first ?? ''));
}

/**
 * Draws the coverage bar of the page as an image that needs no colour to be understood: full height is covered, half
 * height is covered and empty, an empty frame is a gap. Its text alternative shows the same.
 */
import { counted } from '../core/text.ts';
import { type Html, html, literal, NOTHING } from './html.ts';

/** A run of cells that are alike. */
interface Run {
  readonly cell: string;
  readonly start: number;
  readonly length: number;
}

const HEIGHT = 10;

function runsOf(cells: string): Run[] {
  return [...cells.matchAll(/(.)\1*/gs)].map(([run, cell = ' '], index, all) => ({
    cell,
    start: all[index]?.index ?? 0,
    length: run.length,
  }));
}

function shape({ cell, start, length }: Run): Html {
  switch (cell) {
    case '#':
      return html`<rect class="covered" x="${start}" width="${length}" height="${HEIGHT}"/>`;
    case '-':
      return html`<rect class="empty" x="${start}" y="6" width="${length}" height="4"/>`;
    case '.':
      return html`<rect class="gap" x="${start}" width="${length}" height="${HEIGHT}"/><rect class="void" x="${start}" y="1.2" width="${length}" height="7.6"/>`;
    default:
      return NOTHING;
  }
}

/** A bar and what to call it. */
interface Bar {
  readonly cells: string;
  /** The unit of a cell: a day. */
  readonly one: string;
  readonly many: string;
  /** The subject of the bar. */
  readonly label: string;
}

/** The text alternative of a bar. */
export function barText({ cells, one, many }: Omit<Bar, 'label'>): string {
  const count = (sign: string): number => cells.split(sign).length - 1;
  const parts = [
    [count('#'), 'covered'],
    [count('-'), 'covered, no reading'],
    [count('.'), 'not fully covered'],
  ] as const;
  const texts = parts
    .filter(([cellsOfIt]) => cellsOfIt > 0)
    .map(([found, text]) => `${counted(found, one, many)} ${text}`);
  return texts.length === 0 ? 'outside the synced range' : texts.join(', ');
}

/** The bar as an image with a description. */
export function coverageBar(bar: Bar): Html {
  const { cells, label } = bar;
  return html`<svg class="bar" viewBox="0 0 ${Math.max(1, cells.length)} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}: ${barText(bar)}">${runsOf(cells).map(shape)}</svg>`;
}

const SAMPLES = [
  ['#', 'covered'],
  ['-', 'covered, no reading'],
  ['.', 'not fully covered'],
] as const;

/** Explains the bars. */
export function legend(): Html {
  const items = SAMPLES.map(
    ([cell, text]) =>
      html`<li><svg class="bar" viewBox="0 0 1 ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true">${runsOf(cell).map(shape)}</svg> ${text}</li>`,
  );
  return html`<ul class="legend" aria-label="What the coverage bars mean">${items}${literal('<li class="soft">empty: outside the synced range</li>')}</ul>`;
}

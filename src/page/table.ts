/**
 * Tables that may be wider than the screen: they scroll by themselves, by keyboard too.
 */
import { type Html, html, NOTHING } from './html.ts';

export interface TableParts {
  /** What it is, for those who hear it. */
  readonly label: string;
  /** What stands over it. */
  readonly caption?: string;
  readonly heads: readonly string[];
  /** Heads of the columns that hold numbers. */
  readonly numbers?: readonly string[];
  readonly rows: readonly Html[];
}

export function table({ label, caption, heads, numbers = [], rows }: TableParts): Html {
  const cells = heads.map(
    (head) => html`<th scope="col"${numbers.includes(head) && html` class="number"`}>${head}</th>`,
  );
  const title = caption === undefined ? NOTHING : html`<caption>${caption}</caption>`;
  return wide(label, html`<table>${title}<thead><tr>${cells}</tr></thead><tbody>${rows}</tbody></table>`);
}

/** What scrolls sideways where it has no room. */
export function wide(label: string, content: Html): Html {
  return html`<div class="wide" tabindex="0" role="region" aria-label="${label}">${content}</div>`;
}

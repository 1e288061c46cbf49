/**
 * Markup with values in it.
 *
 * Promise: whatever a device, a sensor, a destination or a server calls itself is shown as text and stays text: no markup,
 * no control or direction characters, no more of it than a page can bear.
 */
import { plainText } from '../core/text.ts';

/** A piece of HTML that is safe as it stands. */
export interface Html {
  readonly html: string;
}

/** What stands in markup: text (escaped and cut), a number, or markup. `null` and `false` stand for nothing. */
export type Value = string | number | null | false | Html | readonly Html[];

const ENTITIES: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&#39;'],
]);

/** Fills values into markup: everything that is not `Html` itself is text, and is escaped. Attributes go in double quotes. */
export function html(markup: TemplateStringsArray, ...values: readonly Value[]): Html {
  return { html: markup.map((piece, index) => piece + render(values[index] ?? '')).join('') };
}

function render(value: Value): string {
  if (value === null || value === false) return '';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return escaped(plainText(value));
  return 'html' in value ? value.html : value.map(render).join('');
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => ENTITIES.get(sign) ?? '');
}

/** Text of another length than the 200 characters that are the rule: sentences, or names in narrow columns. */
export function text(value: string, maxLength: number): Html {
  return { html: escaped(plainText(value, maxLength)) };
}

/** Markup that is written in the program. */
export function literal(markup: string): Html {
  return { html: markup };
}

/** A name that may be written in any direction and be of any length: its direction ends with it. */
export function name(value: string, maxLength = 60): Html {
  return html`<bdi>${text(value, maxLength)}</bdi>`;
}

/**
 * A link's target on this server.
 *
 * @param query left out where `null` or empty.
 */
export function target(path: string, query: Readonly<Record<string, string | number | null>> = {}): Html {
  const pairs = Object.entries(query).flatMap(([key, value]) =>
    value === null || value === '' ? [] : [`${key}=${encodeURIComponent(String(value).toWellFormed())}`],
  );
  return { html: escaped(pairs.length === 0 ? path : `${path}?${pairs.join('&')}`) };
}

export const NOTHING: Html = { html: '' };

/**
 * The files that the pages load: style, script, picture, and the library that draws charts. They are read once, from beside
 * this module (as source or as compiled) and from the library's package; a browser asks by their hash whether they changed.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Served } from '../core/ports.ts';
import { MARK } from './layout.ts';
import { STYLE } from './style.ts';

const CSS = 'text/css; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';

const packages = createRequire(import.meta.url);

const own = (file: string) => (): string =>
  readFileSync(fileURLToPath(new URL(`client/${file}`, import.meta.url)), 'utf8');
const ofUplot = (file: string) => (): string => readFileSync(packages.resolve(`uplot/dist/${file}`), 'utf8');

/** By their addresses. */
const SOURCES: ReadonlyMap<string, { readonly type: string; readonly read: () => string }> = new Map([
  ['/assets/page.css', { type: CSS, read: () => STYLE }],
  ['/assets/mark.svg', { type: 'image/svg+xml', read: () => MARK }],
  ['/assets/live.js', { type: SCRIPT, read: own('live.js') }],
  ['/assets/morph.js', { type: SCRIPT, read: own('morph.js') }],
  ['/assets/charts.js', { type: SCRIPT, read: own('charts.js') }],
  ['/assets/uplot.js', { type: SCRIPT, read: ofUplot('uPlot.iife.min.js') }],
  ['/assets/uplot.css', { type: CSS, read: ofUplot('uPlot.min.css') }],
]);

const read = new Map<string, Served>();

/** The file at an address; `null` where there is none. */
export function assetAt(path: string): Served | null {
  const known = read.get(path);
  if (known !== undefined) return known;
  const source = SOURCES.get(path);
  if (source === undefined) return null;
  // Where the compiler names a map that nobody serves, the browser's tools would ask for it.
  const body = source.read().replace(/^\/\/# sourceMappingURL=.*$/m, '');
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  const made: Served = { status: 200, type: source.type, body, etag };
  read.set(path, made);
  return made;
}

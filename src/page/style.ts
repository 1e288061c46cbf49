/**
 * How the pages look, in light and in dark. Nothing comes from outside, and no element carries a style of its own: the
 * pages' policy forbids it.
 */
import { PARTS_STYLE } from './style-parts.ts';

const BASE = `
:root { color-scheme: light dark; --bg: #f4f6f8; --panel: #fff; --ink: #15202b; --soft: #566472; --line: #dfe5ea; --hover: #f0f4f6;
  --accent: #14707d; --held: #2a8c9a; --empty: #8fc1c9; --hole: #c2410c; --void: #fbeee6; --own: #14707d; --others: #b98a2f; --rest: #e6ebef;
  --ok: #17764a; --busy: #14707d; --warn: #8a5a00; --bad: #b3261e; --warnbg: #fdf3dc; --badbg: #fdebe9; --focus: #0b5fcc; }
@media (prefers-color-scheme: dark) { :root { --bg: #0e141a; --panel: #161e26; --ink: #e4ebf1; --soft: #9aa9b7; --line: #27323d; --hover: #1c2630;
  --accent: #58bccb; --held: #3d9fae; --empty: #2f6771; --hole: #e08a4e; --void: #2e2018; --own: #3d9fae; --others: #d0a04a; --rest: #25303a;
  --ok: #4cc38a; --busy: #58bccb; --warn: #e3b341; --bad: #ff8a80; --warnbg: #2b2412; --badbg: #331b1a; --focus: #79b8ff; } }
*, *::before, *::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--bg); color: var(--ink); font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
h1, h2, h3, p, ul, ol, dl, dd, figure { margin: 0; padding: 0; }
ul, ol { list-style: none; }
h1 { font-size: 1.4rem; font-weight: 650; line-height: 1.25; overflow-wrap: anywhere; }
h2 { font-size: .95rem; font-weight: 650; margin-bottom: .6rem; }
h2 small { font-weight: 400; color: var(--soft); font-size: .85rem; margin-left: .4rem; }
h3 { font-size: .85rem; font-weight: 600; }
a { color: var(--accent); text-underline-offset: .15em; text-decoration-thickness: 1px; }
a:hover { text-decoration-thickness: 2px; }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; border-radius: 3px; }
main:focus { outline: none; }
code { font: .92em ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
b { font-weight: 600; }
.soft { color: var(--soft); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--panel); padding: .5rem 1rem; z-index: 2; }
.top, main, footer, #connection { max-width: 88rem; margin-inline: auto; padding-inline: 1.25rem; }
.top { display: flex; flex-wrap: wrap; align-items: center; gap: .4rem 1.25rem; padding-block: .8rem .6rem; }
.brand { display: flex; align-items: center; gap: .55rem; font-size: 1.1rem; font-weight: 700; color: var(--ink); text-decoration: none; letter-spacing: -.01em; }
.workspace { color: var(--soft); overflow-wrap: anywhere; }
.top nav { display: flex; gap: .2rem; }
.top nav a { padding: .25rem .6rem; border-radius: 6px; text-decoration: none; color: var(--ink); }
.top nav a:hover { background: var(--rest); }
.top nav a[aria-current] { background: var(--rest); font-weight: 600; }
.asof { margin-left: auto; color: var(--soft); font-variant-numeric: tabular-nums; }
button { font: inherit; color: var(--ink); background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .25rem .7rem; cursor: pointer; }
button:hover { background: var(--hover); }
button[aria-pressed="true"] { background: var(--rest); font-weight: 600; }
#connection { background: var(--badbg); color: var(--bad); border-radius: 8px; padding-block: .6rem; font-weight: 600; margin-bottom: .75rem; }
body.stale main { opacity: .72; }
main { display: grid; grid-template-columns: minmax(0, 1fr); gap: .9rem; padding-bottom: 1.5rem; }
footer { display: flex; flex-wrap: wrap; gap: .4rem 1.5rem; justify-content: space-between; color: var(--soft); padding-block: .9rem 2rem; border-top: 1px solid var(--line); font-size: .9rem; }
footer nav { display: flex; flex-wrap: wrap; gap: .2rem 1rem; }
.panel { background: var(--panel); border: 1px solid var(--line); border-radius: 10px; padding: .9rem 1.1rem 1rem; min-width: 0; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: .9rem; align-items: stretch; }
.wide { overflow-x: auto; margin-inline: -.35rem; padding-inline: .35rem; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; color: var(--soft); padding: .5rem 0 .1rem; font-size: .9rem; }
th, td { text-align: left; padding: .38rem .9rem .38rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tbody tr:last-child > * { border-bottom: 0; }
tbody th { font-weight: 500; }
thead th { font-size: .8rem; font-weight: 600; color: var(--soft); white-space: nowrap; vertical-align: bottom; }
thead th a { color: inherit; text-decoration: none; }
thead th a:hover { text-decoration: underline; }
thead th[aria-sort] { color: var(--ink); }
th.number { text-align: right; }
td:last-child, th:last-child { padding-right: 0; }
td, tbody th { overflow-wrap: anywhere; }
time { font-variant-numeric: tabular-nums; white-space: nowrap; }
`;

export const STYLE: string = BASE + PARTS_STYLE;

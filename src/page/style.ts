/**
 * The styles of the pages, in light and in dark. Nothing is loaded from outside, and no element has a style attribute:
 * the content security policy forbids it.
 */

/** Colours, texts, and the frame of the parts. */
const BASE = `
:root { color-scheme: light dark; --bg: #f4f6f8; --panel: #fff; --ink: #15202b; --soft: #566472; --line: #dfe5ea; --hover: #f0f4f6;
  --accent: #14707d; --covered: #2a8c9a; --empty: #8fc1c9; --gap: #c2410c; --void: #fbeee6; --own: #14707d; --others: #b98a2f; --rest: #e6ebef;
  --ok: #17764a; --busy: #14707d; --warn: #8a5a00; --bad: #b3261e; --warnbg: #fdf3dc; --badbg: #fdebe9; --focus: #0b5fcc; }
@media (prefers-color-scheme: dark) { :root { --bg: #0e141a; --panel: #161e26; --ink: #e4ebf1; --soft: #9aa9b7; --line: #27323d; --hover: #1c2630;
  --accent: #58bccb; --covered: #3d9fae; --empty: #2f6771; --gap: #e08a4e; --void: #2e2018; --own: #3d9fae; --others: #d0a04a; --rest: #25303a;
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
.legend + h3 { margin-top: .7rem; }
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

/** The styles of the single parts: state, gauges, bars, charts, events; and the changes for a narrow screen. */
const PARTS = `
.standing { overflow-wrap: anywhere; background: var(--panel); border: 1px solid var(--line); border-left: 5px solid var(--busy); border-radius: 10px; padding: .9rem 1.1rem; min-width: 0; }
.standing.ok { border-left-color: var(--ok); }
.standing.quiet { border-left-color: var(--soft); }
.standing.bad { border-left-color: var(--bad); background: var(--badbg); }
.tone { font-size: .8rem; font-weight: 700; letter-spacing: .04em; text-transform: uppercase; color: var(--busy); }
.ok > .tone { color: var(--ok); }
.bad > .tone { color: var(--bad); }
.summary { font-size: 1.2rem; line-height: 1.35; font-weight: 500; overflow-wrap: anywhere; text-wrap: pretty; }
.reasons { margin-top: .4rem; list-style: disc; padding-left: 1.2rem; overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 15rem), 1fr)); gap: .9rem; }
.tile { background: var(--panel); border: 1px solid var(--line); border-radius: 10px; padding: .75rem 1.1rem .8rem; }
.tile { min-width: 0; overflow-wrap: anywhere; }
.tile dt { color: var(--soft); font-size: .85rem; }
.tile dd b { display: block; font-size: 1.65rem; line-height: 1.25; font-weight: 650; font-variant-numeric: tabular-nums; letter-spacing: -.015em; }
.tile dd span { display: block; color: var(--soft); font-size: .88rem; }
.tile dd span + span { margin-top: .15rem; }
.tile.busy dd b { color: var(--warn); }
.state { white-space: nowrap; font-weight: 500; }
.state::before { content: "●"; display: inline-block; width: 1.25em; color: var(--ok); }
.s-catching-up::before { content: "◐"; color: var(--busy); }
.s-silent::before { content: "○"; color: var(--soft); }
.s-unreachable::before { content: "▲"; color: var(--bad); font-size: .85em; width: 1.47em; }
.s-never, .s-never::before { color: var(--warn); } .s-never::before { content: "◌"; }
.s-out-of-service::before { content: "◇"; color: var(--soft); }
.s-excluded::before { content: "–"; color: var(--soft); }
td .state + div { color: var(--soft); font-size: .92rem; }
.bad:not(section):not(.note):not(.tile) { color: var(--bad); font-weight: 600; }
.note { border-radius: 6px; padding: .45rem .7rem; margin-top: .6rem; background: var(--warnbg); overflow-wrap: anywhere; }
.note.bad { background: var(--badbg); color: var(--bad); }
.notes { margin-top: .6rem; overflow-wrap: anywhere; }
.notes li { padding: .15rem 0; }
.figures { margin-top: .35rem; font-variant-numeric: tabular-nums; }
.gauge { margin-bottom: .85rem; }
.gauge svg, .progress svg { display: block; width: 100%; height: .8rem; margin-top: .3rem; border-radius: 4px; }
.progress svg { height: .6rem; margin: 0 0 .6rem; }
rect.rest { fill: var(--rest); } rect.own { fill: var(--own); } rect.others { fill: var(--others); } rect.edge { fill: var(--ink); }
.inline { display: flex; flex-wrap: wrap; gap: .1rem 1rem; margin-top: .5rem; color: var(--soft); font-size: .9rem; }
.inline b { color: var(--ink); font-variant-numeric: tabular-nums; }
.legend { display: flex; flex-wrap: wrap; align-items: center; gap: .2rem 1.1rem; color: var(--soft); font-size: .85rem; }
.legend i { display: inline-block; width: .8rem; height: .65rem; border-radius: 2px; background: var(--own); vertical-align: -.05em; }
.legend i.others { background: var(--others); height: .4rem; vertical-align: .05em; }
.legend i.edge { background: var(--ink); width: 2px; border-radius: 0; }
svg.bar { display: inline-block; width: 10rem; min-width: 7rem; height: 1rem; vertical-align: -.15em; }
.legend svg.bar { width: .8rem; min-width: 0; height: .8rem; }
.long svg.bar { width: 100%; height: 1.6rem; margin-bottom: .5rem; }
rect.covered { fill: var(--covered); } rect.empty { fill: var(--empty); } rect.gap { fill: var(--gap); } rect.void { fill: var(--void); }
.bar rect { shape-rendering: crispEdges; }
.tools { display: flex; flex-wrap: wrap; align-items: center; gap: .6rem 1.25rem; margin-bottom: .6rem; }
.tools:last-child { margin: .7rem 0 0; justify-content: space-between; }
form { display: flex; align-items: center; gap: .5rem; min-width: 0; }
form label { font-size: .9rem; color: var(--soft); }
input[type="search"] { font: inherit; color: inherit; background: var(--bg); border: 1px solid color-mix(in srgb, var(--soft) 60%, var(--line)); border-radius: 6px; padding: .3rem .6rem; width: 17rem; min-width: 0; max-width: 100%; }
::placeholder { color: var(--soft); opacity: 1; }
.filters { display: flex; flex-wrap: wrap; gap: .3rem; }
.filters a { display: inline-block; padding: .2rem .65rem; border: 1px solid var(--line); border-radius: 99px; text-decoration: none; color: var(--ink); }
.filters a:hover { background: var(--hover); }
.filters a[aria-current] { border-color: var(--accent); box-shadow: inset 0 0 0 1px var(--accent); }
.filters b { font-variant-numeric: tabular-nums; }
.more { margin-top: .5rem; }
.pager { display: flex; flex-wrap: wrap; gap: .2rem .9rem; font-variant-numeric: tabular-nums; }
.devices tbody tr:hover { background: var(--hover); }
.devices tbody th { min-width: 11rem; max-width: 22rem; }
.devices tbody th a { font-weight: 600; text-decoration: none; } .devices tbody th a:hover { text-decoration: underline; }
.devices .soft { font-size: .85rem; font-weight: 400; }
.devices td { white-space: nowrap; }
.devices td.values { white-space: normal; min-width: 14rem; max-width: 30rem; }
.value { color: var(--soft); margin-right: .7rem; font-size: .92rem; }
.value b { color: var(--ink); font-variant-numeric: tabular-nums; }
.events { max-height: 24rem; overflow-y: auto; }
#events:only-child .events, main > #events .events { max-height: none; }
.events li { display: grid; grid-template-columns: 6.2rem 3.2rem minmax(0, 1fr); gap: .5rem; padding: .22rem 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
.events li:last-child { border: 0; }
.events time { color: var(--soft); }
.level { font-size: .8rem; font-weight: 500; color: var(--soft); padding-top: .1rem; }
.l-warn .level { color: var(--warn); font-weight: 700; } .l-error .level { color: var(--bad); font-weight: 700; }
.details { font-size: .88rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); gap: .5rem 1.5rem; margin-top: .8rem; }
.facts dt { color: var(--soft); font-size: .85rem; }
.facts dd { overflow-wrap: anywhere; }
.crumbs { margin-bottom: -.3rem; }
h1 small { font-size: .85rem; font-weight: 400; }
#facts .facts { margin-top: 0; } details { margin-top: .6rem; } summary { cursor: pointer; color: var(--accent); } details .facts { padding-top: .5rem; }
.tile.bad { border-color: var(--bad); } .tile.bad dd b { color: var(--bad); }
.progress { margin-top: .35rem; } .notes .progress svg { margin-bottom: 0; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); gap: .9rem 1.5rem; margin-bottom: .8rem; }
body:not(.drawn) .charts { display: none; }
.chart { min-width: 0; }
.chart figcaption { display: flex; flex-wrap: wrap; gap: 0 .6rem; align-items: baseline; overflow-wrap: anywhere; }
.chart figcaption > * { min-width: 0; overflow-wrap: anywhere; }
.chart figcaption b { font-variant-numeric: tabular-nums; }
.chart output { margin-left: auto; color: var(--soft); font-size: .85rem; font-variant-numeric: tabular-nums; }
.plot { height: 170px; }
.uplot { font-family: inherit; }
@media (max-width: 46rem) {
  .top, main, footer, #connection { padding-inline: .75rem; }
  .asof { margin-left: 0; }
  .panel, .standing { padding-inline: .8rem; }
  .tiles { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .6rem; }
  .tile { padding: .6rem .8rem; } .tile dd b { font-size: 1.3rem; }
  .events li { grid-template-columns: auto auto; } .events li > span { grid-column: 1 / -1; }
  .devices thead { display: none; }
  .devices, .devices tbody, .devices tr, .devices th, .devices td { display: block; }
  .devices tr { display: grid; grid-template-columns: minmax(0, 1fr) auto auto; gap: 0 .8rem; padding: .45rem 0; border-bottom: 1px solid var(--line); }
  .devices tbody th, .devices td { border: 0; padding: 0; max-width: none; min-width: 0; }
  .devices tbody th { grid-column: 1 / 3; display: flex; gap: 0 .5rem; overflow: hidden; white-space: nowrap; align-items: baseline; }
  .devices tbody th a { flex: none; max-width: 100%; overflow: hidden; text-overflow: ellipsis; } .devices tbody th .soft { flex: 0 9 auto; min-width: 0; overflow: hidden; text-overflow: ellipsis; }
  .devices tbody td:nth-of-type(1) { grid-column: 3; }
  .devices td.values, .devices td:nth-of-type(4) { grid-column: 1 / -1; min-width: 0; }
  .devices td.values { max-height: 1.5em; overflow: hidden; white-space: nowrap; text-overflow: ellipsis; font-size: .92rem; }
  .devices td .since { display: none; }
  .devices td:nth-of-type(4) { line-height: 1; padding: .15rem 0; }
  .devices tbody td.number { text-align: left; } .devices tbody td:nth-of-type(2)::before { content: "lag "; color: var(--soft); } .devices tbody td.silence:nth-of-type(2)::before { content: none; } .devices tbody td:nth-of-type(3)::before { content: "covered "; color: var(--soft); }
  .devices svg.bar { width: 100%; height: .7rem; }
  input[type="search"] { flex: 1 1 auto; width: 8rem; font-size: 16px; }
}
@media (prefers-reduced-motion: no-preference) { .gauge rect, .progress rect { transition: width .4s; } }
@media (forced-colors: active) { rect.covered, rect.own { fill: CanvasText; } rect.empty, rect.others { fill: GrayText; } rect.gap { fill: Highlight; } .bar, .gauge svg { forced-color-adjust: none; } }
`;

export const STYLE: string = BASE + PARTS;

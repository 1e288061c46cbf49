/**
 * Draws a dashboard in a browser with Grafana's own components (`@grafana/ui`). Bundled by `take.ts`; `window.draw` is
 * given the panels with the answers of their queries. Timelines, maps and lists of alerts are parts of Grafana's
 * program, which is no package: `take.ts` leaves them out.
 */
import * as grafana from '@grafana/data';
import { BarGauge, BigValue, GlobalStyles, PanelChrome, Table, ThemeContext, TimeSeries } from '@grafana/ui';
import { createElement as h } from 'react';
import { createRoot } from 'react-dom/client';
import { pipelineOf } from './support/pipeline.ts';

const { theme, prepare, values } = pipelineOf(grafana);
const GAP = 8;
const ROW = 30;
const TABLE_ROW = 36;
/** The line below a table. */
const NOTE = 16;

const box = (left, top, width, height, child) =>
  h('div', { key: `${left},${top}`, style: { position: 'absolute', left, top, width, height } }, child);

function stat(shown, width, height, { options }) {
  const each = width / shown.length;
  const isNamed = shown.length > 1 || options.textMode === 'value_and_name';
  return shown.map(({ display }, index) =>
    box(
      index * each,
      0,
      each,
      height,
      h(BigValue, {
        ...{ value: isNamed ? display : { ...display, title: '' }, width: each, height, theme },
        ...{ colorMode: 'value', graphMode: 'none', justifyMode: 'auto', disableWideLayout: true },
        textMode: isNamed ? 'value_and_name' : 'value',
      }),
    ),
  );
}

function bars(shown, width, height) {
  const each = Math.min(36, height / shown.length);
  // All bars begin where the longest name ends.
  const factors = grafana.getDisplayValueAlignmentFactors(shown);
  // Room for a name whose font is wider than the one that is measured.
  const alignmentFactors = { ...factors, title: `${factors.title}00` };
  return shown.map(({ display, field }, index) =>
    box(
      0,
      index * each,
      width,
      each,
      h(BarGauge, {
        ...{ value: display, field, width, height: each - 4, theme, alignmentFactors },
        ...{ orientation: 'horizontal', displayMode: 'basic', showUnfilled: true, valueDisplayMode: 'color' },
      }),
    ),
  );
}

function chart(panel, data, range) {
  // Grafana's panel does this with each frame before it hands them to the chart: steps without a value have none.
  const bounds = { refFieldPseudoMin: range.fromMs, refFieldPseudoMax: range.toMs };
  const frames = data.map((frame) => grafana.applyNullInsertThreshold({ frame, ...bounds }));
  const time = (ms) => grafana.dateTimeForTimeZone('utc', ms);
  const timeRange = { from: time(range.fromMs), to: time(range.toMs), raw: { from: 'now-24h', to: 'now' } };
  return (width, height) =>
    h(TimeSeries, { frames, width, height, timeRange, timeZone: 'utc', legend: panel.options.legend, options: {} });
}

/** A list as Markdown has it: links and bold words. */
function words(text) {
  const lines = text.split('\n').map((line) => /^- \*\*\[(.*?)\]\(.*?\)\*\*(.*)$/.exec(line) ?? ['', '', line]);
  const item = ([, name, rest], key) =>
    h('li', { key, style: { margin: '6px 0' } }, [
      h('b', { key, style: { color: theme.colors.text.link } }, name),
      rest,
    ]);
  return (width, height) => h('ul', { style: { width, height, margin: 0, paddingLeft: 20 } }, lines.map(item));
}

/** A table with whole rows, and how many there are where not all have room: in Grafana the others are scrolled to. */
function table(data) {
  const rowsIn = (height) => Math.floor(height / TABLE_ROW) - 1;
  return (width, height) => {
    const isWhole = data.length <= rowsIn(height);
    const rows = isWhole ? rowsIn(height) : rowsIn(height - NOTE);
    const shown = h(Table, { key: 'table', data, width, height: (rows + 1) * TABLE_ROW, columnMinWidth: 105 });
    const note = `${rows} of ${data.length} rows; scroll for the others`;
    const style = { position: 'absolute', right: 8, bottom: 0, fontSize: 12, opacity: 0.7 };
    return isWhole ? shown : [shown, h('div', { key: 'note', style }, note)];
  };
}

async function content(panel, frames, range) {
  const note = (text) => (width, height) =>
    h('div', { style: { width, height, display: 'grid', placeItems: 'center', opacity: 0.6 } }, text);
  if (panel.type === 'stat' || panel.type === 'bargauge') {
    const shown = await values(panel, frames);
    return (width, height) => (panel.type === 'stat' ? stat : bars)(shown, width, height, panel);
  }
  if (panel.type === 'text') return words(panel.options.content);
  const data = await prepare(panel, frames);
  if (data.length === 0) return note(panel.fieldConfig.defaults.noValue);
  if (panel.type === 'table') return table(data[0]);
  if (panel.type === 'timeseries') return chart(panel, data, range);
  throw new Error(`${panel.type} is a part of Grafana's program`);
}

/** @param panels each with its `place` in columns and rows, and its `frames`; headings have `title` alone. */
globalThis.draw = async ({ title, panels, range, width }) => {
  const column = (width - GAP) / 24;
  const children = [];
  for (const { panel, frames, place, name } of panels) {
    const [left, top] = [GAP + place.x * column, 52 + place.y * (ROW + GAP)];
    const [w, tall] = [place.w * column - GAP, place.h * (ROW + GAP) - GAP];
    if (panel.type === 'row') {
      children.push(box(left, top, w, tall, h('div', { style: { padding: '6px 4px', fontWeight: 500 } }, name)));
      continue;
    }
    const draw = await content(panel, frames, range);
    const chrome = h(PanelChrome, { title: name, width: w, height: tall }, (inner, high) =>
      h('div', { style: { position: 'relative', width: inner, height: high } }, draw(inner, high)),
    );
    children.push(box(left, top, w, tall, chrome));
  }
  const head = h('div', { key: 'head', style: { padding: '14px 12px', fontSize: 18, fontWeight: 500 } }, title);
  const page = { position: 'relative', width, minHeight: 2000, background: theme.colors.background.canvas };
  const body = h('div', { style: { ...page, color: theme.colors.text.primary } }, [head, ...children]);
  const root = document.getElementById('root');
  createRoot(root).render(
    h(ThemeContext.Provider, { value: theme }, [h(GlobalStyles, { key: 'styles' }), h('div', { key: 'body' }, body)]),
  );
};

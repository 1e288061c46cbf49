/**
 * The charts of a device's page: for each sensor the mean as a line in a band from the minimum to the maximum. A chart
 * is redrawn if the sensors, the width or the colours change; otherwise it only gets the newer values.
 */
import { isUtc, timeParts } from './zone.js';

const HEIGHT = 170;

/**
 * @typedef {{ sensor: string, times: number[], min: (number | null)[], mean: (number | null)[],
 *   max: (number | null)[] }} Series
 */

/** @type {Map<Element, { sensor: string, plot: any }>} */
const drawn = new Map();
/** @type {Series[]} */
let latest = [];
/** From and to, in epoch seconds. @type {[number, number]} */
let shownSpan = [0, 1];

/** @param {string} name */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** With fewer values than this, each value gets a dot. */
const FEW = 60;

/**
 * The cells to draw: those with values, and an empty one in each break that is much longer than the sensor's usual
 * interval. So a sensor with one value per hour gets a line too.
 *
 * @param {Series} series
 */
function dataOf({ times, mean, min, max }) {
  const filled = times.flatMap((at, index) => (mean[index] === null ? [] : [{ at, index }]));
  const steps = filled.slice(1).map(({ at }, place) => at - (filled[place]?.at ?? at));
  const usual = steps.toSorted((a, b) => a - b)[Math.floor(steps.length / 2)] ?? 0;
  /** @type {[number[], (number | null | undefined)[], (number | null | undefined)[], (number | null | undefined)[]]} */
  const data = [[], [], [], []];
  for (const [place, { at, index }] of filled.entries()) {
    if (place > 0 && (steps[place - 1] ?? 0) > LONG * usual) push(data, at - usual / 2, [null, null, null]);
    push(data, at, [mean[index], max[index], min[index]]);
  }
  return data;
}

/** A range without values that is this many times as long as usual is shown as a break. */
const LONG = 4;

/**
 * @param {[number[], ...(number | null | undefined)[][]]} data
 * @param {number} at
 * @param {(number | null | undefined)[]} values
 */
function push([times, ...columns], at, values) {
  times.push(at);
  for (const [place, column] of columns.entries()) column.push(values[place]);
}

/** @param {number | null | undefined} value */
function formatValue(value) {
  return value == null ? '–' : String(Number(value.toPrecision(5)));
}

/** @param {any} plot @param {Element | null} output @param {string} unit */
function showValues(plot, output, unit) {
  const index = plot.cursor.idx;
  if (output === null) return;
  const [times, mean, max, min] = plot.data;
  if (index == null || mean[index] == null) {
    output.textContent = '';
    return;
  }
  const { day, minutes } = timeParts(new Date(times[index] * 1000));
  output.textContent = `${day} ${minutes}: ${formatValue(mean[index])}${unit} (${formatValue(min[index])} to ${formatValue(max[index])})`;
}

/**
 * The texts of the time axis: the hour, or the day if one begins or cells are days.
 *
 * @param {any} _plot
 * @param {number[]} splits
 */
function timesShown(_plot, splits) {
  return splits.map((at) => {
    const { day, minutes } = timeParts(new Date(at * 1000));
    return minutes === '00:00' ? day : minutes;
  });
}

const LARGE = [
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
];

/**
 * The texts of the value axis with their unit, large values in thousands.
 *
 * @param {number[]} splits
 * @param {string} unit
 */
function valuesShown(splits, unit) {
  const most = Math.max(...splits.map(Math.abs));
  const [large, sign] = LARGE.find(([size]) => most >= 10 * Number(size)) ?? [1, ''];
  return splits.map((value) => `${Number((value / Number(large)).toPrecision(6))}${sign}${unit}`);
}

/**
 * The width of the value axis, which fits its longest text.
 *
 * @param {any} _plot
 * @param {string[] | null} values
 */
function widthOfValues(_plot, values) {
  return 14 + 7 * Math.max(3, ...(values ?? []).map(({ length }) => length));
}

/** @param {Element} figure @param {number} count how many values are drawn */
function chartOptions(figure, count) {
  const { uPlot } = /** @type {any} */ (globalThis);
  const axis = {
    stroke: colour('--soft'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui, sans-serif',
  };
  const line = colour('--covered');
  const output = figure.querySelector('output');
  const named = figure.getAttribute('data-unit') ?? '';
  const unit = named === '' ? '' : `\u00a0${named}`;
  const edge = { width: 0, points: { show: false } };
  return {
    width: widthOf(figure),
    height: HEIGHT,
    tzDate: (/** @type {number} */ at) =>
      isUtc() ? uPlot.tzDate(new Date(at * 1000), 'Etc/UTC') : new Date(at * 1000),
    legend: { show: false },
    cursor: { sync: { key: 'device' }, drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      x: { range: () => shownSpan },
      y: { range: { min: { pad: 0.12, soft: 0, mode: 0 }, max: { pad: 0.12, soft: 0, mode: 0 } } },
    },
    axes: [
      { ...axis, space: 70, size: 26, values: timesShown },
      {
        ...axis,
        size: widthOfValues,
        space: 32,
        values: (/** @type {any} */ _plot, /** @type {number[]} */ splits) => valuesShown(splits, unit),
      },
    ],
    series: [
      {},
      { stroke: line, width: 1.5, points: { show: count < FEW, size: 4, fill: line }, spanGaps: false },
      edge,
      edge,
    ],
    bands: [{ series: [2, 3], fill: `color-mix(in srgb, ${line} 26%, transparent)` }],
    hooks: { setCursor: [(/** @type {any} */ plot) => showValues(plot, output, unit)] },
  };
}

/** @param {Element} figure */
function widthOf(figure) {
  return Math.max(200, Math.floor(figure.getBoundingClientRect().width));
}

/** @param {Element} figure @param {Series} series */
function draw(figure, series) {
  const { uPlot } = /** @type {any} */ (globalThis);
  const place = figure.querySelector('.plot');
  const data = dataOf(series);
  const known = drawn.get(figure);
  if (known !== undefined && known.sensor === series.sensor) {
    known.plot.setData(data);
    return;
  }
  known?.plot.destroy();
  drawn.set(figure, { sensor: series.sensor, plot: new uPlot(chartOptions(figure, data[0].length), data, place) });
}

function drawAll() {
  const box = document.querySelector('.charts');
  if (box === null || typeof (/** @type {any} */ (globalThis).uPlot) !== 'function') return;
  document.body.classList.add('drawn');
  const figures = [...box.querySelectorAll('[data-chart]')];
  for (const [figure, { plot }] of drawn) {
    if (figures.includes(figure)) continue;
    plot.destroy();
    drawn.delete(figure);
  }
  for (const [index, figure] of figures.entries()) {
    const series = latest[index];
    if (series !== undefined) draw(figure, series);
  }
}

/** Redraws all charts, because the colours or the zone have changed. */
export function redrawCharts() {
  for (const { plot } of drawn.values()) plot.destroy();
  drawn.clear();
  drawAll();
}

/**
 * Fetches the readings that the page names and draws them; does nothing on a page without charts.
 *
 * @param {AbortSignal} signal
 */
export async function drawCharts(signal) {
  const address = document.querySelector('[data-series]')?.getAttribute('data-series');
  if (address == null) return;
  const answer = await fetch(address, { signal, cache: 'no-store' });
  if (!answer.ok) throw new Error(String(answer.status));
  const { from, to, sensors } = await answer.json();
  latest = sensors;
  shownSpan = [Date.parse(from) / 1000, Date.parse(to) / 1000];
  drawAll();
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redrawCharts);
addEventListener('resize', () => {
  for (const [figure, { plot }] of drawn) plot.setSize({ width: widthOf(figure), height: HEIGHT });
});

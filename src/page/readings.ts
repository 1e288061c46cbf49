/**
 * The sensors of a device over a span: as charts, which the script draws, and as a table, which needs none.
 */
import type { DevicePage, SensorSeries } from '../core/page-facts.ts';
import { counted, grouped } from '../core/text.ts';
import { type Html, html, name, target, text } from './html.ts';
import { SPANS, type SpanName, spanName } from './query.ts';
import { table } from './table.ts';
import { figure, moment } from './words.ts';

/** The least, the most and the mean of the cells. */
function extremes({ min, mean, max }: SensorSeries): readonly [number, number, number] | null {
  const numbers = (values: readonly (number | null)[]): number[] => values.filter((value) => value !== null);
  const means = numbers(mean);
  if (means.length === 0) return null;
  return [
    numbers(min).reduce((least, value) => Math.min(least, value), Infinity),
    means.reduce((all, value) => all + value, 0) / means.length,
    numbers(max).reduce((most, value) => Math.max(most, value), -Infinity),
  ];
}

const SENSOR_LENGTH = 60;
const VALUE_LENGTH = 40;

function row(series: SensorSeries, now: string): Html {
  const { sensor, values, last } = series;
  const cells = extremes(series)?.map(figure) ?? ['', '', ''];
  return html`<tr data-key="${sensor}"><th scope="row">${name(sensor, SENSOR_LENGTH)}</th><td class="number"><b>${text(last.value, VALUE_LENGTH)}</b></td><td>${moment(last.at, now)}</td>${cells.map((cell) => html`<td class="number">${cell}</td>`)}<td class="number">${grouped(values)}</td></tr>`;
}

/** A place for a chart. What the script puts into it is left alone when the page is renewed. */
function chart({ sensor, last }: SensorSeries, index: number): Html {
  return html`<figure class="chart" data-chart="${index}"><figcaption><span>${name(sensor, SENSOR_LENGTH)}</span> <b>${text(last.value, VALUE_LENGTH)}</b><output data-keep></output></figcaption><div class="plot" data-keep></div></figure>`;
}

function spanLinks(id: string, current: SpanName): Html {
  const links = (Object.keys(SPANS) as SpanName[]).map(
    (each) =>
      html`<li><a href="${target('/device', { id, span: each })}" data-nav data-key="span-${each}"${each === current && html` aria-current="true"`}>${spanName(each)}</a></li>`,
  );
  return html`<ul class="filters" aria-label="Span of the charts">${links}</ul>`;
}

function shown(sensors: readonly SensorSeries[], current: SpanName, now: string): Html {
  if (sensors.length === 0) return html`<p>No number was read in the last ${spanName(current)}.</p>`;
  const list = table({
    label: 'Table of sensors',
    caption: `Each sensor over the last ${spanName(current)}`,
    heads: ['Sensor', 'Last', 'At', 'Least', 'Mean', 'Most', 'Values'],
    numbers: ['Last', 'Least', 'Mean', 'Most', 'Values'],
    rows: sensors.map((series) => row(series, now)),
  });
  return html`<div class="charts" aria-hidden="true">${sensors.map(chart)}</div>${list}`;
}

/** @param now the page's time. */
export function readingsSection(page: DevicePage, current: SpanName, now: string): Html {
  const { device, sensors, sensors_left_out, archived_since } = page;
  const since =
    archived_since === null
      ? html`The archive keeps no reading of it.`
      : html`The archive keeps readings of it since ${moment(archived_since, now)}; what is older is in the databases alone.`;
  const left = sensors_left_out > 0 && html` ${counted(sensors_left_out, 'sensor')} more are left out here.`;
  const series = target('/device.json', { id: device.device_id, span: current });
  return html`<section id="sensors" class="panel" data-series="${series}"><h2>Readings <small>${counted(sensors.length, 'sensor')} with numbers</small></h2>
<div class="tools">${spanLinks(device.device_id, current)}</div>
${shown(sensors, current, now)}<p class="soft">${since}${left}</p></section>`;
}

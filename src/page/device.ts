/**
 * The page of one device: why it is as it is, what is held of it, its readings (as charts, which the script draws, and as a
 * table, which needs none), and how the API has answered.
 */

import type { DeviceAnswer, DevicePage, DeviceReport, SensorSeries } from '../core/page-facts.ts';
import { counted, duration, grouped, percent } from '../core/text.ts';
import { coverageBar, legend } from './coverage.ts';
import { ago, figure, type Html, html, moment, NOTHING, name, stateMark, table, target, text } from './html.ts';
import { SPANS, type SpanName, spanName } from './query.ts';

type Fact = readonly [title: string, value: Html | string | null];

function at(time: string | null, now: string): Html | null {
  return time === null ? null : html`${moment(time, now)} <span class="soft">${ago(time, now)}</span>`;
}

/** How it stands with its data. */
function dataFacts(device: DeviceReport, now: string): Fact[] {
  const { lag_seconds, covered_share, newest_reading_at, late, settle_seconds, names } = device;
  const by = late.readings === 0 ? '' : `, by up to ${duration(late.worst_seconds)}`;
  return [
    ['Lag', lag_seconds === null ? 'not known yet' : duration(lag_seconds)],
    ['Held of what is wanted', percent(covered_share)],
    ['Newest reading', at(newest_reading_at, now) ?? 'none yet'],
    ['Readings that came late', `${grouped(late.readings)}${by}`],
    ['A reading is awaited for', duration(settle_seconds)],
    ['Written under the name', name(names.at(-1)?.name ?? '')],
  ];
}

/** How it stands with asking for it. */
function askingFacts(device: DeviceReport, now: string): Fact[] {
  const { last_asked_at, next_due_at, next_as, listed, failed_requests } = device;
  const sweep = next_as === 'sweep' && html` <span class="soft">by the sweep</span>`;
  const next = at(next_due_at, now);
  const told = listed.online === null ? listed.presence : listed.online ? 'online' : 'offline';
  return [
    ['Asked last', at(last_asked_at, now) ?? 'not yet'],
    ['Asked next', next === null ? 'not, as things are' : html`${next}${sweep}`],
    ['Failed requests, 2 days', grouped(failed_requests)],
    ['The device list says', [told, listed.lifecycle_status].filter((each) => each !== null).join(', ')],
    ['Last seen', at(listed.last_seen_at, now)],
    ['Gone since', at(listed.gone_since, now)],
  ];
}

function factList(facts: readonly Fact[]): Html {
  const shown = facts.filter(([, value]) => value !== null && value !== '');
  return html`<dl class="facts">${shown.map(([title, value]) => html`<div><dt>${title}</dt><dd>${value}</dd></div>`)}</dl>`;
}

const MAX_GAPS = 20;

function gapTable({ gaps }: DeviceReport, now: string): Html {
  if (gaps.length === 0) return NOTHING;
  const more =
    gaps.length > MAX_GAPS && html`<p class="soft">and ${gaps.length - MAX_GAPS} older ones, in device.json</p>`;
  const shown = gaps.slice(-MAX_GAPS).toReversed();
  const list = table({
    label: 'Table of gaps',
    caption: 'Wanted and not held',
    heads: ['From', 'To', 'Reason'],
    rows: shown.map(
      ({ from, to, reason }) =>
        html`<tr><td>${moment(from, now)}</td><td>${moment(to, now)}</td><td>${text(reason, 200)}</td></tr>`,
    ),
  });
  return html`${list}${more}`;
}

function coverageSection(device: DeviceReport, now: string): Html {
  const { from, to, cells, cell_seconds } = device.bar;
  return html`<section id="coverage" class="panel"><h2>Coverage <small>what is held from ${moment(from, now)} to ${moment(to, now)}</small></h2>
<div class="long">${coverageBar({ cells, one: `stretch of ${duration(cell_seconds)}`, many: `stretches of ${duration(cell_seconds)}`, label: 'Coverage' })}</div>${legend()}${gapTable(device, now)}</section>`;
}

function answerRow({ at: time, lane, status, fault, new_readings }: DeviceAnswer, now: string): Html {
  return html`<tr><td>${moment(time, now)}</td><td>${lane}</td><td>${status === null ? 'no answer' : String(status)}</td><td>${fault ?? ''}</td><td class="number">${new_readings === null ? '' : grouped(new_readings)}</td></tr>`;
}

function answersSection({ last_answers }: DeviceReport, now: string): Html {
  if (last_answers.length === 0) return NOTHING;
  const list = table({
    label: 'Table of answers',
    heads: ['At', 'For', 'Status', 'Fault', 'New readings'],
    numbers: ['New readings'],
    rows: last_answers.map((each) => answerRow(each, now)),
  });
  return html`<section id="answers" class="panel"><h2>Last answers <small>of the API, the newest first</small></h2>
${list}</section>`;
}

function standing(device: DeviceReport, now: string): Html {
  const reasons = device.reasons.map((reason) => html`<li>${text(reason, 500)}</li>`);
  const tone = device.fresh || device.state === 'excluded' ? 'ok' : 'busy';
  const gaps = device.gaps.length === 0 ? '' : `, ${counted(device.gaps.length, 'gap')}`;
  return html`<section id="standing" class="standing ${tone}" aria-label="State"><h1>${name(device.device_name, 120)}</h1><p class="soft">${name(device.device_id, 256)}</p><p class="summary" role="status">${stateMark(device.state)}, ${device.fresh ? 'fresh' : 'not fresh'}${gaps}</p>
${reasons.length === 0 ? NOTHING : html`<ul class="reasons">${reasons}</ul>`}${factList([...dataFacts(device, now), ...askingFacts(device, now)])}</section>`;
}

/** The page's own part, below the head. */
export function deviceMain(page: DevicePage, current: SpanName): Html {
  const { device } = page;
  const now = device.generated_at;
  return html`<nav class="crumbs" aria-label="Where this is"><a href="/#devices">All devices</a></nav>
${standing(device, now)}
${readingsSection(page, current, now)}
${coverageSection(device, now)}
${answersSection(device, now)}`;
}

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

function sensorRow(series: SensorSeries, now: string): Html {
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

function sensorsShown(sensors: readonly SensorSeries[], current: SpanName, now: string): Html {
  if (sensors.length === 0) return html`<p>No number was read in the last ${spanName(current)}.</p>`;
  const list = table({
    label: 'Table of sensors',
    caption: `Each sensor over the last ${spanName(current)}`,
    heads: ['Sensor', 'Last', 'At', 'Least', 'Mean', 'Most', 'Values'],
    numbers: ['Last', 'Least', 'Mean', 'Most', 'Values'],
    rows: sensors.map((series) => sensorRow(series, now)),
  });
  return html`<div class="charts" aria-hidden="true">${sensors.map(chart)}</div>${list}`;
}

/** @param now the page's time. */
function readingsSection(page: DevicePage, current: SpanName, now: string): Html {
  const { device, sensors, sensors_left_out, archived_since } = page;
  const since =
    archived_since === null
      ? html`The archive keeps no reading of it.`
      : html`The archive keeps readings of it since ${moment(archived_since, now)}; what is older is in the databases alone.`;
  const left = sensors_left_out > 0 && html` ${counted(sensors_left_out, 'sensor')} more are left out here.`;
  const series = target('/device.json', { id: device.device_id, span: current });
  return html`<section id="sensors" class="panel" data-series="${series}"><h2>Readings <small>${counted(sensors.length, 'sensor')} with numbers</small></h2>
<div class="tools">${spanLinks(device.device_id, current)}</div>
${sensorsShown(sensors, current, now)}<p class="soft">${since}${left}</p></section>`;
}

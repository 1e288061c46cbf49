/**
 * The page of one device: its state, its readings (as charts, which the script draws, and as a table, which needs no
 * script), its alerts, its coverage with the reasons of its gaps, and the last answers of the API about it.
 */

import { gapText, syncStateText, unscheduledText } from '../core/device-coverage.ts';
import { faultText } from '../core/faults.ts';
import type { DeviceAnswer, DevicePageFacts, DeviceReport, SensorSeries } from '../core/page-facts.ts';
import { laneText } from '../core/quota.ts';
import { unitOf } from '../core/sensor-units.ts';
import { shownState } from '../core/status.ts';
import { counted, duration, grouped, percent } from '../core/text.ts';
import { DAY_SECONDS, HOUR_SECONDS } from '../core/time.ts';
import {
  ago,
  coverageBar,
  decimalsOf,
  type Html,
  html,
  legend,
  NOTHING,
  name,
  noReading,
  sensorValue,
  silenceText,
  silentSince,
  stateMark,
  table,
  target,
  text,
  timeElement,
  timeRange,
} from './html.ts';
import { deviceAlerts } from './panels.ts';

/** The ranges of a device's charts, in seconds, by their names in the address. */
export const PERIODS = {
  '6h': 6 * HOUR_SECONDS,
  '24h': DAY_SECONDS,
  '7d': 7 * DAY_SECONDS,
  '30d': 30 * DAY_SECONDS,
} as const;

/** The name of a time range in the address. */
type PeriodName = keyof typeof PERIODS;

const PERIOD_TEXTS: Readonly<Record<PeriodName, string>> = {
  '6h': '6 hours',
  '24h': '24 hours',
  '7d': '7 days',
  '30d': '30 days',
};

/** Returns the text of a range, such as `24 hours`. */
function periodName(name: PeriodName): string {
  return PERIOD_TEXTS[name];
}

/** The time range in an address; a day if the address has none. */
export function readPeriod(params: URLSearchParams): PeriodName {
  return (Object.keys(PERIODS) as PeriodName[]).find((each) => each === params.get('range')) ?? '24h';
}

type Fact = readonly [title: string, value: Html | string | null];

function timeWithAge(time: string | null, now: string): Html | null {
  return time === null ? null : html`${timeElement(time, now)} <span class="soft">${ago(time, now)}</span>`;
}

/** The most important facts about the device. */
function mainFacts(device: DeviceReport, now: string): Fact[] {
  const { state, lag_seconds, covered_share, newest_reading_at, last_polled_at } = device;
  const unknownLag = state === 'catching-up' ? 'initial sync' : null;
  const silent = silenceText(device, now);
  const silence = silent === null ? '' : ` (${silent}: there is nothing newer)`;
  return [
    ['Lag', lag_seconds === null ? unknownLag : `${duration(lag_seconds)}${silence}`],
    ['Sync range covered', percent(covered_share)],
    ['Newest reading', timeWithAge(newest_reading_at, now) ?? noReading(covered_share)],
    ['Last poll', timeWithAge(last_polled_at, now) ?? 'never'],
    ['Next poll', nextPoll(device, now)],
  ];
}

function nextPoll(device: DeviceReport, now: string): Html | string {
  const next = timeWithAge(device.next_due_at, now);
  if (next === null) return unscheduledText(device);
  return device.next_kind === 'idle_poll' ? html`when the device list reports new data; at the latest ${next}` : next;
}

/** The other facts about the device. */
function moreFacts(device: DeviceReport, now: string): Fact[] {
  const { late, grace_period_seconds, names, listed, failed_requests } = device;
  const by = late.readings === 0 ? '' : `, by up to ${duration(late.max_seconds)}`;
  const presence = listed.online === null ? listed.presence : listed.online ? 'online' : 'offline';
  return [
    ['In the device list', [presence, listed.lifecycle_status].filter((each) => each !== null).join(', ')],
    ['Last seen', timeWithAge(listed.last_seen_at, now)],
    ['Not in the workspace since', timeWithAge(listed.gone_since, now)],
    ['Failed requests, 2 days', grouped(failed_requests)],
    ['Late readings', `${grouped(late.readings)}${by}`],
    ['Grace period', duration(grace_period_seconds)],
    ['Name in the database', name(names.at(-1)?.name ?? '')],
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
    caption: 'Gaps',
    heads: ['Between', 'Reason'],
    rows: shown.map(
      ({ from, to, reason }) =>
        html`<tr><td>${timeRange(from, to, { now })}</td><td>${text(gapText(reason).why, 200)}</td></tr>`,
    ),
  });
  return html`${list}${more}`;
}

function coverageSection(device: DeviceReport, now: string): Html {
  const { from, to, cells, cell_seconds } = device.bar;
  return html`<section id="coverage" class="panel"><h2>Coverage <small>from ${timeRange(from, to, { now, between: ' to ' })}</small></h2>
<div class="long">${coverageBar({ cells, one: `range of ${duration(cell_seconds)}`, many: `ranges of ${duration(cell_seconds)}`, label: 'Coverage' })}</div>${legend()}${gapTable(device, now)}</section>`;
}

/** Before its outcome is stored, neither its status nor its fault is known. */
function statusText({ status, fault }: DeviceAnswer): string {
  if (status !== null) return String(status);
  return fault === null ? 'not recorded yet' : 'no response';
}

function answerRow(answer: DeviceAnswer, now: string): Html {
  const { at: time, lane, fault, new_readings } = answer;
  return html`<tr><td>${timeElement(time, now)}</td><td>${laneText(lane)}</td><td>${statusText(answer)}</td><td>${fault === null ? '' : faultText(fault)}</td><td class="number">${new_readings === null ? '' : grouped(new_readings)}</td></tr>`;
}

function answersSection({ last_answers }: DeviceReport, now: string): Html {
  if (last_answers.length === 0) return NOTHING;
  const list = table({
    label: 'Table of responses',
    heads: ['At', 'Purpose', 'Status', 'Failure', 'New readings'],
    numbers: ['New readings'],
    rows: last_answers.map((each) => answerRow(each, now)),
  });
  return html`<section id="answers" class="panel"><h2>Last responses <small>of the API, newest first</small></h2>
${list}</section>`;
}

function stateSection(device: DeviceReport, now: string): Html {
  const reasons = device.reasons.map((reason) => html`<li>${text(reason, 500)}</li>`);
  const { gaps, polled, fresh, listed } = device;
  const words = syncStateText(device);
  const since = silentSince(device, now);
  const resting = shownState(device) === 'out-of-service' ? listed.lifecycle_status : null;
  const isFine = words === null || (polled && fresh && gaps.length === 0);
  const tone = !isFine ? 'busy' : device.state === 'silent' ? 'quiet' : 'ok';
  return html`<section id="standing" class="standing ${tone}" aria-label="State"><h1>${name(device.device_name, 120)} <small class="soft">${name(device.device_id, 256)}</small></h1><p class="summary" role="status">${stateMark(device)}${since !== null && html` ${since}`}${resting !== null && html` (${text(resting, 30)})`}${words !== null && html`, ${words}`}</p>
${reasons.length === 0 ? NOTHING : html`<ul class="reasons">${reasons}</ul>`}</section>`;
}

function factsSection(device: DeviceReport, now: string): Html {
  return html`<section id="facts" class="panel"><h2>Sync</h2>${factList(mainFacts(device, now))}
<details><summary>More</summary>${factList(moreFacts(device, now))}</details></section>`;
}

/** The content of the page below its head: the charts first. */
export function deviceMain(page: DevicePageFacts, current: PeriodName): Html {
  const { device } = page;
  const now = device.generated_at;
  return html`<nav class="crumbs" aria-label="Where this is"><a href="/#devices">All devices</a></nav>
${stateSection(device, now)}
${readingsSection(page, current, now)}
${deviceAlerts(page.alerts, now)}
${factsSection(device, now)}
${coverageSection(device, now)}
${answersSection(device, now)}`;
}

/** The minimum, mean and maximum of all cells. The mean has as many decimals as the values. */
function extremes({ min, mean, max }: SensorSeries): readonly [number, number, number] | null {
  const numbers = (values: readonly (number | null)[]): number[] => values.filter((value) => value !== null);
  const means = numbers(mean);
  if (means.length === 0) return null;
  const [lows, highs] = [numbers(min), numbers(max)];
  const decimals = Math.max(0, ...[...lows, ...highs].map(decimalsOf));
  const whole = means.reduce((all, value) => all + value, 0) / means.length;
  return [
    lows.reduce((least, value) => Math.min(least, value), Infinity),
    Number(whole.toFixed(decimals)),
    highs.reduce((most, value) => Math.max(most, value), -Infinity),
  ];
}

const SENSOR_LENGTH = 60;
const VALUE_LENGTH = 40;

function sensorRow(series: SensorSeries, now: string): Html {
  const { sensor, values, last } = series;
  const cells = extremes(series)?.map((value) => sensorValue(sensor, value)) ?? ['', '', ''];
  return html`<tr data-key="${sensor}"><th scope="row">${name(sensor, SENSOR_LENGTH)}</th><td class="number"><b>${sensorValue(sensor, last.value, VALUE_LENGTH)}</b></td><td>${timeElement(last.at, now)}</td>${cells.map((cell) => html`<td class="number">${cell}</td>`)}<td class="number">${grouped(values)}</td></tr>`;
}

/** The container of a chart. The script's content stays when the page is refreshed. */
function chart({ sensor, last }: SensorSeries, index: number): Html {
  return html`<figure class="chart" data-chart="${index}" data-unit="${unitOf(sensor)}"><figcaption><span>${name(sensor, SENSOR_LENGTH)}</span> <b>${sensorValue(sensor, last.value, VALUE_LENGTH)}</b><output data-keep></output></figcaption><div class="plot" data-keep></div></figure>`;
}

function periodLinks(id: string, current: PeriodName): Html {
  const links = (Object.keys(PERIODS) as PeriodName[]).map(
    (each) =>
      html`<li><a href="${target('/device', { id, range: each })}" data-nav data-key="range-${each}"${each === current && html` aria-current="true"`}>${periodName(each)}</a></li>`,
  );
  return html`<ul class="filters" aria-label="Range of the charts">${links}</ul>`;
}

function sensorsShown(sensors: readonly SensorSeries[], current: PeriodName, now: string): Html {
  if (sensors.length === 0) return html`<p>No numeric values in the last ${periodName(current)}.</p>`;
  const list = table({
    label: 'Table of sensors',
    caption: `Each sensor over the last ${periodName(current)}`,
    heads: ['Sensor', 'Last', 'At', 'Min', 'Mean', 'Max', 'Values'],
    numbers: ['Last', 'Min', 'Mean', 'Max', 'Values'],
    rows: sensors.map((series) => sensorRow(series, now)),
  });
  return html`<div class="charts" aria-hidden="true">${sensors.map(chart)}</div>${list}`;
}

/**
 * The table of readings.
 *
 * @param now when the page was made; times of that day are shown without a date.
 */
function readingsSection(page: DevicePageFacts, current: PeriodName, now: string): Html {
  const { device, sensors, sensors_left_out } = page;
  const left = sensors_left_out > 0 && html` ${counted(sensors_left_out, 'sensor')} more are not shown.`;
  const series = target('/device.json', { id: device.device_id, range: current });
  return html`<section id="sensors" class="panel" data-series="${series}"><h2>Readings <small>${counted(sensors.length, 'sensor')} with numbers</small></h2>
<div class="tools">${periodLinks(device.device_id, current)}</div>
${sensorsShown(sensors, current, now)}<p class="soft">${archivedText(page, now)}${left}</p></section>`;
}

/** Since when the archive has readings, and how to get older ones. */
function archivedText({ archived_since, archive_cleared }: DevicePageFacts, now: string): Html {
  if (archived_since === null)
    return archive_cleared
      ? html`The archive has cleared the readings of this device: they are only in the databases.`
      : html`The archive has no reading of this device.`;
  return archive_cleared
    ? html`The archive has readings of this device since ${timeElement(archived_since, now)}; cleared ones are only in the databases.`
    : html`The oldest reading of this device in the archive is of ${timeElement(archived_since, now)}. <code>tidemark --backfill --from 90d</code> requests older ones.`;
}

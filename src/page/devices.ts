/**
 * The table of devices: searched, filtered, sorted and paged by plain links and one form, so that it needs no script.
 */

import {
  BAR_DAYS,
  DEVICE_SORTS,
  type DeviceRow,
  type DeviceSort,
  type DevicesPage,
  type DevicesQuery,
} from '../core/page-facts.ts';
import { deviceStateText } from '../core/status.ts';
import { duration, grouped, percent } from '../core/text.ts';
import {
  ago,
  coverageBar,
  type Html,
  html,
  legend,
  NOTHING,
  name,
  noReading,
  STATE_ORDER,
  scrollRegion,
  sensorValue,
  silenceText,
  silentSince,
  stateMark,
  target,
} from './html.ts';

const MAX_SEARCH = 200;
const MAX_PAGE = 1_000_000;

/** The part of the devices that an address selects. */
export function readDevicesQuery(params: URLSearchParams): DevicesQuery {
  const state = STATE_ORDER.find((each) => each === params.get('state')) ?? null;
  const sort = DEVICE_SORTS.find((each) => each === params.get('sort')) ?? 'state';
  const page = params.get('page') ?? '';
  return {
    search: [...(params.get('search') ?? '').trim()].slice(0, MAX_SEARCH).join(''),
    state,
    sort,
    reversed: params.get('reversed') === '1',
    page: /^[1-9]\d{0,6}$/.test(page) ? Math.min(Number(page), MAX_PAGE) : 1,
  };
}

/** The address of a part of the device list; default values are left out. */
export function devicesLink({ search, state, sort, reversed, page }: DevicesQuery, path = '/'): Html {
  const link = target(path, {
    search,
    state,
    sort: sort === 'state' ? null : sort,
    reversed: reversed ? 1 : null,
    page: page === 1 ? null : page,
  });
  return path === '/' ? { html: `${link.html}#devices` } : link;
}

interface Column {
  readonly head: string;
  readonly sort: DeviceSort | null;
  /** The sort direction unless reversed. */
  readonly order: 'ascending' | 'descending';
  readonly isNumber?: true;
}

/** Replaced by the number of days in the bars. */
const BAR = 'Last days';

const COLUMNS: readonly Column[] = [
  { head: 'Device', sort: 'name', order: 'ascending' },
  { head: 'State', sort: 'state', order: 'descending' },
  { head: 'Lag', sort: 'lag', order: 'descending', isNumber: true },
  { head: 'Covered', sort: 'covered', order: 'ascending', isNumber: true },
  { head: BAR, sort: null, order: 'ascending' },
  { head: 'Newest reading', sort: 'reading', order: 'ascending' },
  { head: 'Last values', sort: null, order: 'ascending' },
];

const OTHER_WAY = { ascending: 'descending', descending: 'ascending' } as const;

function barHead(days: number): string {
  return days === 1 ? 'Today' : `Last ${days} days`;
}

/**
 * A cell of the table head.
 *
 * @param barDays how many days the bars have.
 */
function headCell({ head, sort, order, isNumber }: Column, query: DevicesQuery, barDays: number): Html {
  const kind = isNumber === true ? html` class="number"` : NOTHING;
  if (sort === null) return html`<th scope="col"${kind}>${head === BAR ? barHead(barDays) : head}</th>`;
  const isSorted = query.sort === sort;
  const way = query.reversed ? OTHER_WAY[order] : order;
  const link = devicesLink({ ...query, sort, reversed: isSorted && !query.reversed, page: 1 });
  const sign = way === 'ascending' ? '▲' : '▼';
  const sortMark = isSorted ? html` aria-sort="${way}"` : NOTHING;
  return html`<th scope="col"${kind}${sortMark}><a href="${link}" data-nav data-key="sort-${sort}">${head}${isSorted && html` <span aria-hidden="true">${sign}</span>`}</a></th>`;
}

const NAME_LENGTH = 60;
const SENSOR_LENGTH = 40;
const VALUE_LENGTH = 24;

function row(device: DeviceRow, now: string): Html {
  const { device_id, device_name, model_id, hub_name, state, lag_seconds } = device;
  const { covered_share, newest_reading_at, bar, values } = device;
  const details = [
    ...(device_name === device_id ? [] : [name(device_id, NAME_LENGTH)]),
    ...(model_id === null ? [] : [name(model_id, SENSOR_LENGTH)]),
    ...(hub_name === null ? [] : [html`on ${name(hub_name, SENSOR_LENGTH)}`]),
  ].map((each, index) => (index === 0 ? each : html` · ${each}`));
  const shown = values.map(
    ({ sensor, value }) =>
      html`<span class="value">${name(sensor, SENSOR_LENGTH)} <b>${sensorValue(sensor, value, VALUE_LENGTH)}</b></span> `,
  );
  const silence = silenceText(device, now);
  const since = silentSince(device, now);
  const isInitial = lag_seconds === null && state === 'catching-up';
  const lag = isInitial ? 'initial sync' : lagText(lag_seconds, silence);
  const when =
    newest_reading_at === null
      ? noReading(covered_share)
      : html`<time datetime="${newest_reading_at}" title="${newest_reading_at}">${ago(newest_reading_at, now)}</time>`;
  return html`<tr data-key="${device_id}"><th scope="row"><a href="${target('/device', { id: device_id })}">${name(device_name, NAME_LENGTH)}</a><div class="soft">${details}</div></th><td>${stateMark(device)}${since !== null && html`<div class="since">${since}</div>`}</td><td class="number${silence !== null && lag_seconds === 0 && ' silence'}">${lag}</td><td class="number">${percent(covered_share)}</td><td>${coverageBar({ cells: bar, one: 'day', many: 'days', label: barHead(bar.length) })}</td><td>${when}</td><td class="values">${shown}</td></tr>
`;
}

/**
 * The lag. For a silent device it shows how long it has sent nothing, because a lag of 0 s would read as "just
 * reported".
 */
function lagText(seconds: number | null, silence: string | null): string {
  if (seconds === null) return '';
  if (silence === null) return duration(seconds);
  return seconds === 0 ? silence : `${duration(seconds)}, ${silence}`;
}

function stateLinks({ query, states }: DevicesPage): Html {
  const all = STATE_ORDER.reduce((sum, state) => sum + states[state], 0);
  const link = (state: DevicesQuery['state'], text: string, count: number): Html => {
    const current = query.state === state ? html` aria-current="true"` : NOTHING;
    const mark = state === null ? '' : `state s-${state}`;
    return html`<li><a href="${devicesLink({ ...query, state, page: 1 })}" data-nav data-key="state-${state ?? 'all'}"${current}><span class="${mark}">${text}</span> <b>${grouped(count)}</b></a></li>`;
  };
  const links = STATE_ORDER.filter((state) => states[state] > 0 || query.state === state).map((state) =>
    link(state, deviceStateText(state), states[state]),
  );
  return html`<ul class="filters" aria-label="Devices by state">${link(null, 'all', all)}${links}</ul>`;
}

function searchForm({ search, state, sort, reversed }: DevicesQuery): Html {
  const hidden = (key: string, value: string | null): Html =>
    value === null ? NOTHING : html`<input type="hidden" name="${key}" value="${value}">`;
  return html`<form action="/#devices" method="get" role="search"><label for="search">Search</label><input id="search" type="search" name="search" value="${search}" maxlength="200" placeholder="name, id, model or hub" autocomplete="off" spellcheck="false">${hidden('state', state)}${hidden('sort', sort === 'state' ? null : sort)}${hidden('reversed', reversed ? '1' : null)}<button type="submit">Search</button></form>`;
}

function pager({ query, page, pages }: DevicesPage): Html {
  if (pages <= 1) return NOTHING;
  const link = (to: number, text: string, key: string): Html =>
    to === page
      ? html`<span class="soft">${text}</span>`
      : html`<a href="${devicesLink({ ...query, page: to })}" data-nav data-key="page-${key}">${text}</a>`;
  return html`<nav class="pager" aria-label="Pages of devices">${link(1, 'First', 'first')}${link(Math.max(1, page - 1), 'Previous', 'previous')}<span>Page ${grouped(page)} of ${grouped(pages)}</span>${link(Math.min(pages, page + 1), 'Next', 'next')}${link(pages, 'Last', 'last')}</nav>`;
}

/** A scan that is older than this is shown with its age. A scan of very many devices takes a while. */
const SHOWN_AGE_SECONDS = 5;

interface View {
  /** When the page was made; times of that day are shown without a date. */
  readonly now: string;
  /** The age of the scan of the devices. */
  readonly ageSeconds: number;
}

/** The table of devices, with search, filters and pages. */
export function devicesSection(devices: DevicesPage, { now, ageSeconds }: View): Html {
  const { query, matching, rows } = devices;
  const heads = COLUMNS.map((column) => headCell(column, query, rows[0]?.bar.length ?? BAR_DAYS));
  const empty = html`<p>${devices.devices === 0 ? 'No devices are listed yet.' : 'No device matches.'}</p>`;
  const list = scrollRegion(
    'Table of devices',
    html`<table class="devices"><thead><tr>${heads}</tr></thead><tbody>
${rows.map((each) => row(each, now))}</tbody></table>`,
  );
  return html`<section id="devices" class="panel"><h2>Devices <small role="status">${grouped(matching)} of ${grouped(devices.devices)}${ageSeconds > SHOWN_AGE_SECONDS && `, updated ${duration(ageSeconds)} ago`}</small></h2>
<div class="tools">${searchForm(query)}${stateLinks(devices)}</div>
${rows.length === 0 ? empty : list}
<div class="tools">${legend()}${pager(devices)}</div></section>`;
}

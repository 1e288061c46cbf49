/**
 * The page of one device: why it is as it is, what is held of it, its readings, and how the API has answered.
 */
import type { DeviceAnswer, DeviceReport } from '../core/device-report.ts';
import type { DevicePage } from '../core/page-facts.ts';
import { counted, grouped } from '../core/text.ts';
import { coverageBar, legend } from './coverage.ts';
import { type Html, html, NOTHING, name, text } from './html.ts';
import type { SpanName } from './query.ts';
import { readingsSection } from './readings.ts';
import { table } from './table.ts';
import { ago, moment, percent, span, stateMark } from './words.ts';

type Fact = readonly [title: string, value: Html | string | null];

function at(time: string | null, now: string): Html | null {
  return time === null ? null : html`${moment(time, now)} <span class="soft">${ago(time, now)}</span>`;
}

/** How it stands with its data. */
function dataFacts(device: DeviceReport, now: string): Fact[] {
  const { lag_seconds, covered_share, newest_reading_at, late, settle_seconds, names } = device;
  const by = late.readings === 0 ? '' : `, by up to ${span(late.worst_seconds)}`;
  return [
    ['Lag', lag_seconds === null ? 'not known yet' : span(lag_seconds)],
    ['Held of what is wanted', percent(covered_share)],
    ['Newest reading', at(newest_reading_at, now) ?? 'none yet'],
    ['Readings that came late', `${grouped(late.readings)}${by}`],
    ['A reading is awaited for', span(settle_seconds)],
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
<div class="long">${coverageBar({ cells, one: `stretch of ${span(cell_seconds)}`, many: `stretches of ${span(cell_seconds)}`, label: 'Coverage' })}</div>${legend()}${gapTable(device, now)}</section>`;
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

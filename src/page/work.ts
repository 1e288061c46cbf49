/**
 * What is being done and what comes next: the streams, the backfill and other jobs, and what is wanted and not held.
 */
import type { GapSum, JobStatus, NextStatus, StatusReport, StreamStatus } from '../core/status.ts';
import { counted, grouped } from '../core/text.ts';
import { type Html, html, NOTHING, text } from './html.ts';
import { table } from './table.ts';
import { ago, moment, percent, span } from './words.ts';

const STREAM_MARKS: Readonly<Record<StreamStatus['state'], string>> = {
  on: 's-live',
  waiting: 's-catching-up',
  failing: 's-unreachable',
  off: 's-excluded',
};

function streamRow({ name, state, reason, last_read_at }: StreamStatus, next: NextStatus, now: string): Html {
  const due = next.streams.find((each) => each.name === name)?.due_at ?? null;
  return html`<tr><th scope="row">${name}</th><td><span class="state ${STREAM_MARKS[state]}">${state}</span>${reason === null ? NOTHING : html`<div>${text(reason, 400)}</div>`}</td><td>${last_read_at === null ? 'not yet' : moment(last_read_at, now)}</td><td>${moment(due, now)}</td></tr>`;
}

export function streamsSection({
  streams,
  next,
  generated_at,
}: Pick<StatusReport, 'streams' | 'next' | 'generated_at'>): Html {
  const list = table({
    label: 'Table of streams',
    heads: ['Stream', 'State', 'Last read', 'Next'],
    rows: streams.map((each) => streamRow(each, next, generated_at)),
  });
  return html`<section id="streams" class="panel"><h2>Streams <small>what is read from the API</small></h2>
${list}</section>`;
}

function jobLine({ id, kind, state, asked_by, asked_at, started_at }: JobStatus, now: string): Html {
  const since = started_at === null ? html`asked ${ago(asked_at, now)}` : html`started ${ago(started_at, now)}`;
  return html`<li><b>${kind}</b> <span class="soft">no. ${id}, asked by ${asked_by}</span>: ${state}, ${since}</li>`;
}

function gapRow({ reason, devices, seconds, from, to }: GapSum, now: string): Html {
  return html`<tr><th scope="row">${text(reason, 120)}</th><td class="number">${grouped(devices)}</td><td class="number">${span(seconds)}</td><td>${moment(from, now)} – ${moment(to, now)}</td></tr>`;
}

const MAX_GAPS = 8;

function gapTable(gaps: readonly GapSum[], now: string): Html {
  if (gaps.length === 0) return html`<p>Nothing that is wanted is missing.</p>`;
  const more = gaps.length > MAX_GAPS ? html`<p class="soft">and ${gaps.length - MAX_GAPS} more reasons</p>` : NOTHING;
  const list = table({
    label: 'Table of gaps',
    caption: 'Wanted and not held',
    heads: ['Reason', 'Devices', 'Together', 'Between'],
    numbers: ['Devices', 'Together'],
    rows: gaps.slice(0, MAX_GAPS).map((each) => gapRow(each, now)),
  });
  return html`${list}${more}`;
}

/** How far the history is filled, what was asked for beside it, and what is missing. */
export function workSection({
  totals,
  next,
  jobs,
  gaps,
  generated_at: now,
}: Pick<StatusReport, 'totals' | 'next' | 'jobs' | 'gaps' | 'generated_at'>): Html {
  const share = totals.covered_share;
  const held = share === null ? 'not known yet' : percent(share);
  const width = ((share ?? 0) * 100).toFixed(2);
  const open =
    next.devices_open === 0
      ? 'nothing is open'
      : `${span(next.open_seconds)} of readings open on ${counted(next.devices_open, 'device')}`;
  const bar = html`<div role="progressbar" class="progress" aria-label="Wanted history that is held" aria-valuemin="0" aria-valuemax="100" aria-valuenow="${Math.floor(Number(width))}" aria-valuetext="${held}"><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="rest" width="100" height="10"/><rect class="own" width="${width}" height="10"/></svg></div>`;
  const work =
    jobs.length === 0
      ? html`<p class="soft">No backfill and no other job is asked for.</p>`
      : html`<ul class="notes" aria-label="Jobs">${jobs.map((job) => jobLine(job, now))}</ul>`;
  return html`<section id="work" class="panel"><h2>History and jobs <small>${held} held, ${open}</small></h2>
${bar}${work}${gapTable(gaps, now)}</section>`;
}

/**
 * Alerts: the open ones first, then the newest.
 */
import type { AlertRow, AlertsView } from '../core/page-facts.ts';
import { grouped } from '../core/text.ts';
import { type Html, html, NOTHING, name, target } from './html.ts';
import { table } from './table.ts';
import { ago, moment } from './words.ts';

/** How many the overview shows. */
const FEW = 8;

function row(
  { alert_id, device_id, device_name, kind, sensor, opened_at, open, observed_at }: AlertRow,
  view: View,
): Html {
  const { now, isWhole } = view;
  const device =
    device_id === null
      ? html`<span class="soft">none</span>`
      : html`<a href="${target('/device', { id: device_id })}">${name(device_name ?? device_id, 60)}</a>`;
  const since = html`<time datetime="${opened_at}" title="${opened_at}">${ago(opened_at, now)}</time>`;
  const when = isWhole
    ? html`<td>${moment(opened_at, now)}</td><td>${since}</td><td>${moment(observed_at, now)}</td>`
    : html`<td>${since}</td>`;
  const what = html`${name(kind ?? 'alert', 40)}${sensor === null ? NOTHING : html` <span class="soft">${name(sensor, 40)}</span>`}`;
  return html`<tr data-key="alert-${alert_id}"><th scope="row"><span class="state ${open ? 's-unreachable' : 's-excluded'}">${open ? 'open' : 'closed'}</span></th><td>${what}</td><td>${device}</td>${when}</tr>`;
}

interface View {
  /** The page's time. */
  readonly now: string;
  /** All rows with all columns, rather than a few with a link to all. */
  readonly isWhole: boolean;
}

export function alertsSection({ alerts, open, rows }: AlertsView, view: View): Html {
  const { isWhole } = view;
  const shown = isWhole ? rows : rows.slice(0, FEW);
  const list = table({
    label: 'Table of alerts',
    heads: ['State', 'Alert', 'Device', 'Opened', ...(isWhole ? ['Ago', 'Last looked at'] : [])],
    rows: shown.map((each) => row(each, view)),
  });
  const rest = alerts - shown.length;
  const more = isWhole
    ? rest > 0 && html`<p class="soft">${grouped(rest)} more are in the database.</p>`
    : rest > 0 && html`<p class="more"><a href="/alerts">More alerts</a></p>`;
  return html`<section id="alerts" class="panel"><h2>Alerts <small>${grouped(open)} open of ${grouped(alerts)} seen</small></h2>
${rows.length === 0 ? html`<p>No alert was seen.</p>` : list}${more}</section>`;
}

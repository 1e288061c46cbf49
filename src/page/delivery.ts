/**
 * Delivery: each destination, what waits for it, what it refused and what it will never have; and the archive's room.
 */
import { lackWords } from '../core/lacks.ts';
import type { ArchiveStatus, DestinationReport } from '../core/status.ts';
import { grouped } from '../core/text.ts';
import { type Html, html, NOTHING, name, text } from './html.ts';
import { table } from './table.ts';
import { ago, bytes } from './words.ts';

function row(
  { name: title, held, delivered_points, pending_points, quarantined, oldest_pending_at }: DestinationReport,
  now: string,
): Html {
  const waits =
    oldest_pending_at === null ? NOTHING : html`<div class="soft">oldest ${ago(oldest_pending_at, now)}</div>`;
  const state =
    held === null
      ? html`<span class="state s-live">moving</span>`
      : html`<span class="state s-unreachable">held</span>`;
  return html`<tr><th scope="row">${name(title)}</th><td>${state}</td><td class="number">${delivered_points === null ? '' : grouped(delivered_points)}</td><td class="number">${grouped(pending_points)}${waits}</td><td class="number${quarantined > 0 ? ' bad' : ''}">${grouped(quarantined)}</td></tr>`;
}

function lacks(destinations: readonly DestinationReport[]): Html {
  const lines = destinations.flatMap(({ name: title, lacks: missing }) =>
    missing.map((lack) => html`<li>${text(`${lackWords(title, lack)}.`, 500)}</li>`),
  );
  return lines.length === 0 ? NOTHING : html`<ul class="notes">${lines}</ul>`;
}

function holds(destinations: readonly DestinationReport[]): Html {
  const lines = destinations.flatMap(({ name: title, held }) =>
    held === null ? [] : [html`<p class="note bad">${name(title)}: ${text(held, 400)}</p>`],
  );
  return html`${lines}`;
}

function quarantine(destinations: readonly DestinationReport[]): Html {
  const refused = destinations.reduce((sum, { quarantined }) => sum + quarantined, 0);
  if (refused === 0) return NOTHING;
  return html`<p class="note warn">${grouped(refused)} points were refused and are kept with the database’s words: <code>tidemark --quarantine</code> lists them.</p>`;
}

function room({ points, state_bytes, max_bytes, disk_free_bytes, full }: ArchiveStatus): Html {
  const limit = max_bytes === null ? '' : ` of ${bytes(max_bytes)}`;
  const free = disk_free_bytes === null ? '' : `, ${bytes(disk_free_bytes)} free on the disk`;
  return html`<p class="figures">Archive: ${grouped(points)} points in ${bytes(state_bytes)}${limit}${free}</p>${full === null ? NOTHING : html`<p class="note bad">${text(full, 400)}</p>`}`;
}

export interface DeliveryParts {
  readonly destinations: readonly DestinationReport[];
  readonly archive: ArchiveStatus;
  readonly now: string;
}

export function deliverySection({ destinations, archive, now }: DeliveryParts): Html {
  const list = table({
    label: 'Table of destinations',
    heads: ['Destination', 'State', 'Delivered', 'Waiting', 'Refused'],
    numbers: ['Delivered', 'Waiting', 'Refused'],
    rows: destinations.map((each) => row(each, now)),
  });
  return html`<section id="delivery" class="panel"><h2>Delivery <small>points since the start</small></h2>
${destinations.length === 0 ? html`<p>There is no destination: the archive alone is filled.</p>` : list}
${holds(destinations)}${quarantine(destinations)}${lacks(destinations)}${room(archive)}</section>`;
}

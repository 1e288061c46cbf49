/**
 * What happened last, as the log tells it.
 */
import type { RecentEvent } from '../core/page-facts.ts';
import { type Html, html, NOTHING, text } from './html.ts';
import { moment } from './words.ts';

/** How many the overview shows. */
const FEW = 12;

function line({ at, level, event, message, details }: RecentEvent, now: string): Html {
  const more = details === '' ? NOTHING : html` <span class="soft details">${text(details, 300)}</span>`;
  return html`<li class="l-${level}" title="${event}">${moment(at, now)} <b class="level">${level}</b> <span>${text(message, 400)}${more}</span></li>`;
}

/** @param isWhole all of them rather than a few with a link to all. */
export function eventsSection(events: readonly RecentEvent[], now: string, isWhole = false): Html {
  const shown = isWhole ? events : events.slice(0, FEW);
  const more = !isWhole && events.length > FEW && html`<p class="more"><a href="/events">More events</a></p>`;
  const list = html`<ol class="events" tabindex="0" role="list" aria-label="Events, the newest first">${shown.map((each) => line(each, now))}</ol>`;
  return html`<section id="events" class="panel"><h2>Events <small>the newest first, since the start</small></h2>
${events.length === 0 ? html`<p>Nothing worth a line yet.</p>` : list}${more}</section>`;
}

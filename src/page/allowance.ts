/**
 * The two windows of the allowance as gauges: what this program has used, what others have, what is left.
 */
import type { AllowanceStatus, AllowanceWindow } from '../core/status.ts';
import { counted, grouped } from '../core/text.ts';
import { type Html, html, NOTHING } from './html.ts';
import { moment } from './words.ts';

/** What may still be asked in a window, as far as that is known. */
export function leftOf({ limit, budget, spent, others }: AllowanceWindow): number | null {
  if (budget === null) return null;
  const ofPlan = limit === null ? Infinity : limit - spent - (others ?? 0);
  return Math.max(0, Math.min(budget - spent, ofPlan));
}

/** A window in words: `312 of 720 (plan 900, others about 40), 568 left`. */
export function windowWords(window: AllowanceWindow): string {
  const { limit, budget, spent, others } = window;
  const left = leftOf(window);
  if (budget === null || left === null) return `${counted(spent, 'request')}; the limit is not known yet`;
  const beside = [
    ...(limit === null ? [] : [`plan ${grouped(limit)}`]),
    ...(others == null || others === 0 ? [] : [`others about ${grouped(others)}`]),
  ];
  const aside = beside.length === 0 ? '' : ` (${beside.join(', ')})`;
  return `${grouped(spent)} of ${grouped(budget)}${aside}, ${grouped(left)} left`;
}

function gauge(label: string, window: AllowanceWindow, waiting: string | null): Html {
  const { limit, budget, spent, others } = window;
  const whole = Math.max(limit ?? budget ?? 0, 1);
  const width = (count: number): string => Math.min(100, (count / whole) * 100).toFixed(2);
  const ownWidth = Number(width(spent));
  const othersWidth = Math.min(100 - ownWidth, Number(width(others ?? 0)));
  const edge = budget === null ? NOTHING : html`<rect class="edge" x="${width(budget)}" width="0.6" height="10"/>`;
  const words = windowWords(window);
  const until = waiting === null ? '' : `, until ${waiting}`;
  return html`<div class="gauge"><h3>${label}</h3>
<div role="meter" aria-label="Requests used, ${label}" aria-valuemin="0" aria-valuemax="${budget ?? whole}" aria-valuenow="${Math.min(spent, budget ?? whole)}" aria-valuetext="${words}${until}">
<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="rest" width="100" height="10"/><rect class="own" width="${ownWidth}" height="10"/><rect class="others" x="${ownWidth}" y="2" width="${othersWidth.toFixed(2)}" height="6"/>${edge}</svg></div>
<p class="figures">${words}</p></div>`;
}

/** @param now the page's time. */
export function allowanceSection({ share, minute, day, lanes, waiting_until }: AllowanceStatus, now: string): Html {
  const waiting = waiting_until === null ? null : moment(waiting_until, now);
  const wait =
    waiting === null
      ? NOTHING
      : html`<p class="note warn">The allowance is used up for now: nothing is asked until ${waiting} UTC.</p>`;
  const spent = lanes
    .filter(({ day: ofDay }) => ofDay > 0)
    .map(({ lane, day: ofDay }) => html`<li>${lane} <b>${grouped(ofDay)}</b></li>`);
  return html`<section id="allowance" class="panel"><h2>Allowance <small>${Math.round(share * 100)} % of the plan is for Tidemark</small></h2>
${gauge('in the last minute', minute, waiting_until)}
${gauge('in the last 24 hours', day, waiting_until)}
<ul class="legend" aria-hidden="true"><li><i class="own"></i> Tidemark</li><li><i class="others"></i> others</li><li><i class="edge"></i> end of Tidemark’s share</li></ul>
${wait}${spent.length === 0 ? NOTHING : html`<ul class="inline" aria-label="Requests of the last 24 hours by what they were for">${spent}</ul>`}</section>`;
}

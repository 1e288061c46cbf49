/**
 * Times in the reader's zone, or in UTC if the reader has chosen that. The server sends UTC; the choice stays in this
 * browser.
 */
const KEY = 'tidemark-zone';
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** The choice if the browser stores nothing: it lasts as long as the page. */
let chosen = '';
try {
  chosen = localStorage.getItem(KEY) ?? '';
} catch {
  // Not allowed here.
}

export const isUtc = () => chosen === 'UTC';

/** The name of the zone that is shown. */
const zoneName = () => (isUtc() ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone || 'local time');

/**
 * The parts of a time in the zone that is shown.
 *
 * @param {Date} at
 */
export function timeParts(at) {
  const two = (/** @type {number} */ part) => String(part).padStart(2, '0');
  const [year, month, day, hour, minute, second] = isUtc()
    ? [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate(), at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()]
    : [at.getFullYear(), at.getMonth(), at.getDate(), at.getHours(), at.getMinutes(), at.getSeconds()];
  return { year, day: `${day} ${MONTHS[month]}`, minutes: `${two(hour)}:${two(minute)}`, seconds: two(second) };
}

/** The label of the zone next to a time: `UTC`, `CET`, `GMT+5:30`. @param {Date} at */
function zoneLabel(at) {
  if (isUtc()) return 'UTC';
  const parts = new Intl.DateTimeFormat('en-GB', { hour: 'numeric', timeZoneName: 'short' }).formatToParts(at);
  return parts.find(({ type }) => type === 'timeZoneName')?.value ?? 'local time';
}

/**
 * A time that is as short as possible relative to the page's time, in the form that the server uses.
 *
 * @param {Date} at
 * @param {Date} now
 * @param {Date} other the other end of its range
 */
function shortTime(at, now, other) {
  const [then, today, end] = [timeParts(at), timeParts(now), timeParts(other)];
  if (then.year !== today.year) return `${then.day} ${then.year}`;
  const isToday = then.day === today.day && end.day === today.day && end.year === today.year;
  return isToday ? `${then.minutes}:${then.seconds}` : `${then.day} ${then.minutes}`;
}

/** The other end of the range that a time belongs to; the time itself if there is no range. @param {Element} element */
function otherEnd(element) {
  const ends = [...(element.closest('[data-range]')?.querySelectorAll('time') ?? [])];
  return ends.find((end) => end !== element) ?? element;
}

/**
 * Writes the times of a page in the zone that is shown.
 *
 * @param {Document} page
 */
export function showTimes(page) {
  const now = new Date(page.querySelector('#asof time')?.getAttribute('datetime') ?? '');
  for (const element of page.querySelectorAll('time[data-moment]')) {
    const [at, other] = [element, otherEnd(element)].map((each) => new Date(each.getAttribute('datetime') ?? ''));
    if (at === undefined || other === undefined) continue;
    if (![at, other, now].some((time) => Number.isNaN(time.getTime()))) element.textContent = shortTime(at, now, other);
  }
}

function nameZone() {
  const button = document.querySelector('#zone');
  const note = document.querySelector('#zone-note');
  if (button !== null) button.textContent = isUtc() ? 'Show local time' : 'Show UTC';
  if (note !== null) note.textContent = `Times are ${zoneName()}.`;
  const label = document.querySelector('#zone-name');
  const at = new Date(document.querySelector('#asof time')?.getAttribute('datetime') ?? '');
  if (label !== null && !Number.isNaN(at.getTime())) label.textContent = zoneLabel(at);
}

/**
 * Shows the page's times, and lets the reader choose the zone.
 *
 * @param {() => void} onChange called when the zone changes
 */
export function beginZone(onChange) {
  showTimes(document);
  nameZone();
  const button = document.querySelector('#zone');
  // If the reader's zone is UTC, both choices show the same times.
  if (!/^(Etc\/)?UTC$/.test(Intl.DateTimeFormat().resolvedOptions().timeZone)) button?.removeAttribute('hidden');
  button?.addEventListener('click', () => {
    chosen = isUtc() ? 'local' : 'UTC';
    try {
      localStorage.setItem(KEY, chosen);
    } catch {
      // In that case the choice lasts until the page is loaded again.
    }
    showTimes(document);
    nameZone();
    onChange();
  });
}

/**
 * Times in the reader's zone, or in UTC where the reader has chosen that. The server sends UTC; the choice stays in
 * this browser.
 */
const KEY = 'tidemark-zone';
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Where the browser keeps nothing: for as long as the page stands. */
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
export function partsOf(at) {
  const two = (/** @type {number} */ part) => String(part).padStart(2, '0');
  const [year, month, day, hour, minute, second] = isUtc()
    ? [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate(), at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()]
    : [at.getFullYear(), at.getMonth(), at.getDate(), at.getHours(), at.getMinutes(), at.getSeconds()];
  return { year, day: `${day} ${MONTHS[month]}`, minutes: `${two(hour)}:${two(minute)}`, seconds: two(second) };
}

/**
 * As short as it can be understood beside the page's own time, like the server writes it.
 *
 * @param {Date} at @param {Date} now
 */
function shortTime(at, now) {
  const [then, today] = [partsOf(at), partsOf(now)];
  if (then.year !== today.year) return `${then.day} ${then.year}`;
  return then.day === today.day ? `${then.minutes}:${then.seconds}` : `${then.day} ${then.minutes}`;
}

/**
 * Writes the times of a page in the zone that is shown.
 *
 * @param {Document} page
 */
export function showTimes(page) {
  const now = new Date(page.querySelector('#asof time')?.getAttribute('datetime') ?? '');
  for (const element of page.querySelectorAll('time[data-moment]')) {
    const at = new Date(element.getAttribute('datetime') ?? '');
    if (!Number.isNaN(at.getTime()) && !Number.isNaN(now.getTime())) element.textContent = shortTime(at, now);
  }
}

function nameZone() {
  const button = document.querySelector('#zone');
  const note = document.querySelector('#zone-note');
  if (button !== null) button.textContent = isUtc() ? 'Show local time' : 'Show UTC';
  if (note !== null) note.textContent = `Times are ${zoneName()}.`;
}

/**
 * Shows the page's times, and lets the reader choose.
 *
 * @param {() => void} onChange what else depends on the zone
 */
export function beginZone(onChange) {
  showTimes(document);
  nameZone();
  const button = document.querySelector('#zone');
  button?.removeAttribute('hidden');
  button?.addEventListener('click', () => {
    chosen = isUtc() ? 'local' : 'UTC';
    try {
      localStorage.setItem(KEY, chosen);
    } catch {
      // Then it holds until the page is loaded again.
    }
    showTimes(document);
    nameZone();
    onChange();
  });
}

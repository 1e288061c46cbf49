/**
 * Keeps the page up to date: requests it again every few seconds and replaces the parts that have changed, in place.
 * Pauses while the page is hidden, shows when the program cannot be reached, and continues by itself when it can be
 * reached again.
 *
 * The page works without this script, which only saves reloading.
 */
import { drawCharts, redrawCharts } from './charts.js';
import { beginZone, showTimes, timeParts } from './zone.js';

const EVERY_MS = 5000;
const PATIENCE_MS = 10_000;
const TYPING_MS = 250;

const pause = document.querySelector('#pause');
const connection = document.querySelector('#connection');

/** @type {Date | null} */
let lostAt = null;
/** @type {AbortController | null} */
let pending = null;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

const isPaused = () => pause?.getAttribute('aria-pressed') === 'true';

/**
 * Replaces the parts that have changed.
 *
 * @param {Document} fresh
 */
function take(fresh) {
  const { version } = fresh.body.dataset;
  // Another version of the program may have another script and style.
  if (version !== undefined && version !== document.body.dataset.version) location.reload();
  document.title = fresh.title;
  showTimes(fresh);
  const focused = document.activeElement;
  const main = document.querySelector('main');
  const part = fresh.querySelector('main');
  if (main !== null && part !== null) morph(main, part);
  const asOf = document.querySelector('#asof');
  const newer = fresh.querySelector('#asof');
  if (asOf !== null && newer !== null) morph(asOf, newer);
  // An element that was moved has lost the focus.
  if (focused instanceof HTMLElement && focused.isConnected && focused !== document.activeElement)
    focused.focus({ preventScroll: true });
}

/**
 * Changes a part of the page to a newer one. Equal parts are not touched, so focus, scrolling, selections and typed
 * text stay. Elements with `data-key` are found again wherever they have moved; those with `data-keep` are left alone.
 *
 * @param {Node} old
 * @param {Node} fresh
 */
function morph(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    /** @type {ChildNode} */ (old).replaceWith(document.importNode(fresh, true));
    return;
  }
  if (!(old instanceof Element && fresh instanceof Element)) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  if (old.hasAttribute('data-keep')) return;
  morphAttributes(old, fresh);
  morphChildren(old, fresh);
}

/** @param {Element} old @param {Element} fresh */
function morphAttributes(old, fresh) {
  // The text that the reader has typed into a field stays.
  if (old instanceof HTMLInputElement && old.type === 'search') return;
  for (const { name } of [...old.attributes]) {
    // Sections that the reader has opened stay open.
    if (name === 'open' && old.nodeName === 'DETAILS') continue;
    if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

/** @param {Node} node */
const keyOf = (node) => (node instanceof Element ? node.getAttribute('data-key') : null);

/** @param {Element} old @param {Element} fresh */
function morphChildren(old, fresh) {
  const keyed = new Map([...old.childNodes].flatMap((node) => (keyOf(node) === null ? [] : [[keyOf(node), node]])));
  let at = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const found = takePartner(wanted, at, keyed);
    if (found === null) {
      old.insertBefore(document.importNode(wanted, true), at);
      continue;
    }
    if (found === at) at = at.nextSibling;
    else old.insertBefore(found, at);
    morph(found, wanted);
  }
  removeFrom(at);
}

/**
 * The node that will be changed to a newer one. For a node without a key this is the next one; a node with a key is
 * found by its key.
 *
 * @param {Node} wanted
 * @param {ChildNode | null} at
 * @param {Map<string | null, ChildNode>} keyed
 */
function takePartner(wanted, at, keyed) {
  const key = keyOf(wanted);
  if (key === null) return at !== null && keyOf(at) === null ? at : null;
  const found = keyed.get(key) ?? null;
  keyed.delete(key);
  return found;
}

/** @param {ChildNode | null} first */
function removeFrom(first) {
  let at = first;
  while (at !== null) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

/** @param {boolean} isLost */
function showConnection(isLost) {
  if (connection === null || isLost === (lostAt !== null)) return;
  lostAt = isLost ? new Date() : null;
  document.body.classList.toggle('stale', isLost);
  connection.toggleAttribute('hidden', !isLost);
  connection.textContent =
    lostAt === null
      ? ''
      : `Tidemark is not reachable since ${timeParts(lostAt).minutes}:${timeParts(lostAt).seconds}. The figures are older than that.`;
}

async function refresh() {
  pending?.abort();
  const mine = new AbortController();
  pending = mine;
  const signal = AbortSignal.any([mine.signal, AbortSignal.timeout(PATIENCE_MS)]);
  try {
    const answer = await fetch(location.pathname + location.search, { signal, cache: 'no-store' });
    const body = await answer.text();
    // A device that is no longer known has a page that says so. Any other response that is not a page does not count.
    if (!/^text\/html/.test(answer.headers.get('content-type') ?? '')) throw new Error(String(answer.status));
    if (mine !== pending) return;
    take(new DOMParser().parseFromString(body, 'text/html'));
    await drawCharts(signal);
    showConnection(false);
  } catch {
    // A newer request has replaced this one.
    if (mine === pending) showConnection(true);
  }
}

function schedule() {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    if (!document.hidden && !isPaused()) await refresh();
    schedule();
  }, EVERY_MS);
}

/**
 * Shows another address of the same page.
 *
 * @param {URL} address @param {boolean} isStep whether "back" leads back here
 */
async function navigate(address, isStep) {
  if (isStep) history.pushState(null, '', address);
  else history.replaceState(null, '', address);
  await refresh();
}

document.addEventListener('click', (event) => {
  const link = event.target instanceof Element ? event.target.closest('a[data-nav]') : null;
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  if (!(link instanceof HTMLAnchorElement) || !isPlain) return;
  event.preventDefault();
  void navigate(new URL(link.href), true);
});

/**
 * The address for the values of the form.
 *
 * @param {HTMLFormElement} form
 */
function addressOf(form) {
  const address = new URL('/', location.href);
  for (const [key, value] of new FormData(form)) {
    if (typeof value === 'string' && value !== '') address.searchParams.set(key, value);
  }
  return address;
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let typing;
document.addEventListener('input', ({ target }) => {
  if (!(target instanceof HTMLInputElement) || target.type !== 'search' || target.form === null) return;
  const { form } = target;
  clearTimeout(typing);
  typing = setTimeout(() => void navigate(addressOf(form), false), TYPING_MS);
});

document.addEventListener('submit', (event) => {
  if (!(event.target instanceof HTMLFormElement)) return;
  event.preventDefault();
  clearTimeout(typing);
  void navigate(addressOf(event.target), true);
});

addEventListener('popstate', () => {
  const field = document.querySelector('#search');
  if (field instanceof HTMLInputElement) field.value = new URL(location.href).searchParams.get('search') ?? '';
  void refresh();
});

document.addEventListener('visibilitychange', () => {
  if (!document.hidden && !isPaused()) void refresh();
});

pause?.removeAttribute('hidden');
pause?.addEventListener('click', () => {
  pause.setAttribute('aria-pressed', String(!isPaused()));
  if (!isPaused()) void refresh();
});

beginZone(redrawCharts);
// Charts depend on their width, so they are drawn once the page is laid out.
void drawCharts(AbortSignal.timeout(PATIENCE_MS)).catch(() => {});
schedule();

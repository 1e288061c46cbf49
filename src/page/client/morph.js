/**
 * Makes a part of the page like a newer one, changing nothing that is alike: focus, scrolling, selections and what
 * somebody types stay where they are.
 *
 * Elements with `data-key` are found again wherever they went; those with `data-keep` are left alone.
 */

/** @param {Node} old @param {Node} fresh */
export function morph(old, fresh) {
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
  // The reader's text in a field stays.
  if (old instanceof HTMLInputElement && old.type === 'search') return;
  for (const { name } of [...old.attributes]) {
    // So do the sections that the reader has opened.
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
    const found = partnerOf(wanted, at, keyed);
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
 * The node that is to become like a newer one. Of those without a key the next one serves; one with a key waits for its
 * own turn.
 *
 * @param {Node} wanted @param {ChildNode | null} at @param {Map<string | null, ChildNode>} keyed
 */
function partnerOf(wanted, at, keyed) {
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

/**
 * The last safeguard for secrets: searches all output for every secret, in each form that it may have in a text (as it
 * is, inside JSON, in a URL, in base64).
 */
import { Buffer } from 'node:buffer';
import { formsOfSecret, SECRET_MARK, type Secret } from '../core/secret.ts';

/** Gives a text back without secrets. */
export type Scrub = (text: string) => string;

/** Builds the search for all secrets; one that is added to the list later is searched for from then on. */
export function createScrub(secrets: readonly Secret[]): Scrub {
  let known = { secrets: 0, forms: [] as readonly string[] };
  return (text) => {
    if (known.secrets !== secrets.length) known = { secrets: secrets.length, forms: allForms(secrets) };
    return known.forms.reduce((clean, form) => clean.replaceAll(form, SECRET_MARK), text);
  };
}

/** A text whose URLs end before their query, and name no user: a server's words may quote what it was asked. */
export function withoutQueries(text: string): string {
  return text.replace(
    /(https?:\/\/)(?:[^\s/"'<>@]*@)?([^\s"'<>?#]*)([?#][^\s"'<>]*)?/gi,
    (_all, scheme, place, query) => (query === undefined ? `${scheme}${place}` : `${scheme}${place}…`),
  );
}

/** Longest first, so that no secret that begins like another leaves its rest behind. */
function allForms(secrets: readonly Secret[]): string[] {
  return [...new Set(secrets.flatMap((secret) => formsOf(secret.reveal())))].sort((a, b) => b.length - a.length);
}

function formsOf(secret: string): string[] {
  return formsOfSecret(secret).flatMap((part) => [
    part,
    JSON.stringify(part).slice(1, -1),
    encodeURIComponent(part),
    Buffer.from(part).toString('base64'),
  ]);
}

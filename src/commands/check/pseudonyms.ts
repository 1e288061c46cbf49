/**
 * Names for devices that tell nothing of them: d1, d2, … in the order of their ids, the same wherever they stand. For what
 * is shown to people who have no business to know how a customer calls things. Pure.
 */

export interface Pseudonyms {
  /** Of a device by its id; `d?` for one that is not known. */
  device(deviceId: string): string;
  /** A text for people without any id or name of a device or the workspace, addresses of people, or quoted values. */
  text(text: string): string;
}

export interface NamedThings {
  readonly devices: readonly { readonly id: string; readonly names: readonly string[] }[];
  /** The ids and names of the workspace. */
  readonly workspace: readonly string[];
}

/** Shorter names would be found in every second word. */
const SHORTEST = 3;

/** @param things everything that has a name of its own. */
export function createPseudonyms({ devices, workspace }: NamedThings): Pseudonyms {
  const ids = new Map(
    devices
      .map(({ id }) => id)
      .sort()
      .map((id, index) => [id, `d${index + 1}`]),
  );
  const names = [
    ...workspace.map((name) => [name, 'workspace'] as const),
    ...devices.flatMap(({ id, names: own }) => [id, ...own].map((name) => [name, ids.get(id) ?? 'd?'] as const)),
  ]
    .filter(([name]) => name.length >= SHORTEST)
    // Longest first, so that no name that begins like another leaves its rest behind.
    .sort(([a], [b]) => b.length - a.length);
  return {
    device: (deviceId) => ids.get(deviceId) ?? 'd?',
    text: (text) => {
      const folded = text.toLowerCase();
      const found = names.filter(([name]) => folded.includes(name.toLowerCase()));
      return found.reduce((clean, [name, shown]) => clean.replaceAll(anyCase(name), shown), text);
    },
  };
}

function anyCase(name: string): RegExp {
  return new RegExp(name.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&'), 'gi');
}

/** The words of a server without what it quotes: lines, tags and values that it was sent. */
export function withoutQuotes(words: string): string {
  return words
    .replace(/"(?:[^"\\]|\\.)*"?/g, '"…"')
    .replace(/'(?:[^'\\]|\\.)*'(?!\w)/g, "'…'")
    .replace(/=(?:\\.|[^\s,])+/g, '=…');
}

/** A text without what an answer (`HTTP 400: …`) that is told in it quotes: its lines name devices, in a spelling of their own. */
export function withoutQuotedAnswers(text: string): string {
  return text.replace(/\bHTTP \d{3}: [\s\S]*$/, withoutQuotes);
}

/** What looks like an address of a person, or a user and a password in a URL. */
export function withoutPeople(text: string): string {
  return text
    .replace(/\/\/[^\s/@"']+@/g, '//[user]@')
    .replace(/[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})*/g, '[e-mail]');
}

/**
 * Small facts of the state by their keys, and what is made of them: whose state it is, and the account as last read.
 */
import type Database from 'better-sqlite3';
import { UserError } from '../core/faults.ts';
import type { Account } from '../core/records.ts';

/** Facts: the workspace that the state belongs to, by its id in the API, and the tag of its points. */
export const API_WORKSPACE = 'workspace_id';
export const WORKSPACE_TAG = 'workspace_tag';
export const ACCOUNT = 'account';

/** Prepares the table of an open database. `write` is for the inside of a transaction. */
export function createFacts(db: Database.Database) {
  const read = db.prepare<[string], string>('SELECT value FROM fact WHERE key = ?').pluck();
  const write = db.prepare('INSERT OR REPLACE INTO fact (key, value) VALUES (?, ?)');
  // Asked for several times a request. What a transaction has written may be taken back: nothing is remembered inside.
  const known = new Map<string, string | null>();
  return {
    read: (key: string): string | null => {
      const remembered = known.get(key);
      if (remembered !== undefined) return remembered;
      const value = read.get(key) ?? null;
      if (!db.inTransaction) known.set(key, value);
      return value;
    },
    write: (key: string, value: string): void => {
      known.delete(key);
      write.run(key, value);
    },
  };
}

/** The account, asked several times a request: the text is parsed when it has changed. */
export function createAccountReader(read: () => string | null): () => Account | null {
  let last: { readonly text: string | null; readonly account: Account | null } = { text: null, account: null };
  return () => {
    const text = read();
    if (text !== last.text) last = { text, account: text === null ? null : JSON.parse(text) };
    return last.account;
  };
}

/** The key is of another workspace than the state. */
export function otherWorkspace(path: string, pinned: string, found: string): UserError {
  return new UserError(
    `${path}: this state belongs to the workspace ${JSON.stringify(pinned)}, but the key is of ${JSON.stringify(found)}. Use the right key, or give this workspace a data_dir of its own. Nothing was written.`,
    1,
  );
}

/** The configured tag is another one than that of the points. */
export function otherTag(path: string, pinned: string, found: string): UserError {
  return new UserError(
    `workspace.id: the points of this state carry ${JSON.stringify(pinned)}, not ${JSON.stringify(found)} (${path}). The tag is pinned for the life of a state: take workspace.id back, or give data_dir a new directory.`,
    78,
  );
}

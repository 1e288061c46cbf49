/**
 * Small facts of the state by their keys, the workspace that the state belongs to, and the account as it was last read.
 */
import type Database from 'better-sqlite3';
import { UserError } from '../core/faults.ts';
import type { Account } from '../core/records.ts';
import type { Store } from '../core/state/state.ts';
import type { Archive } from './archive/archive.ts';
import { createCache } from './transactions.ts';

/** Facts: the workspace that the state belongs to, by its id in the API, and the tag of its points. */
export const API_WORKSPACE = 'workspace_id';
export const WORKSPACE_TAG = 'workspace_tag';
export const ACCOUNT_FACT = 'account';

/** The table of facts. It caches the rows that it reads, so every change must go through it. */
export interface Facts {
  /** The value of a fact; `null` if there is none. */
  read(key: string): string | null;
  /** Stores or replaces a fact. Needs a transaction. */
  write(key: string, value: string): void;
}

/** Prepares to read a fact by its key. */
export function prepareFact(db: Database.Database): Database.Statement<[string], string> {
  return db.prepare<[string], string>('SELECT value FROM fact WHERE key = ?').pluck();
}

/** Prepares the table of an open database. */
export function createFacts(db: Database.Database): Facts {
  const read = prepareFact(db);
  const write = db.prepare('INSERT OR REPLACE INTO fact (key, value) VALUES (?, ?)');
  // Read several times per request.
  const known = createCache(db, (key) => read.get(key) ?? null);
  return {
    read: known.get,
    write: (key, value) => {
      known.drop(key);
      write.run(key, value);
    },
  };
}

/**
 * The facts that show which workspace a state belongs to. They are written only inside transactions.
 *
 * @param path the state file, for messages.
 */
export function createWorkspace(
  facts: Facts,
  { archive, path }: { readonly archive: Archive; readonly path: string },
): Pick<Store, 'workspaceTag' | 'pinWorkspace' | 'account' | 'saveAccount' | 'fact' | 'saveFact'> {
  return {
    workspaceTag: () => facts.read(WORKSPACE_TAG),
    pinWorkspace: ({ apiId, tag }) => {
      const pinned = facts.read(API_WORKSPACE);
      if (apiId !== null && pinned !== null && pinned !== apiId) throw otherWorkspace(path, pinned, apiId);
      const pinnedTag = facts.read(WORKSPACE_TAG);
      if (pinnedTag !== null && pinnedTag !== tag) throw otherTag(path, pinnedTag, tag);
      if (apiId !== null) facts.write(API_WORKSPACE, apiId);
      facts.write(WORKSPACE_TAG, tag);
    },
    account: createAccountReader(facts),
    saveAccount: (account, lines) => {
      facts.write(ACCOUNT_FACT, JSON.stringify(account));
      archive.appendFacts(lines);
    },
    fact: facts.read,
    saveFact: facts.write,
  };
}

/** Reads the account. It is read several times per request, so the text is parsed only when it has changed. */
function createAccountReader(facts: Facts): () => Account | null {
  let last: { readonly text: string | null; readonly account: Account | null } = { text: null, account: null };
  return () => {
    const text = facts.read(ACCOUNT_FACT);
    if (text !== last.text) last = { text, account: text === null ? null : JSON.parse(text) };
    return last.account;
  };
}

/** The error if the key belongs to another workspace than the state. */
function otherWorkspace(path: string, pinned: string, found: string): UserError {
  return new UserError(
    `${path}: this state belongs to workspace ${JSON.stringify(pinned)}, but the API key belongs to ${JSON.stringify(found)}`,
    'Use a key for that workspace, or set another data_dir for this one. Nothing was written.',
    1,
    { ends: 'process' },
  );
}

/** The remedy if workspace.id is not the tag of the state. */
export const TAG_REMEDY =
  'Set workspace.id back to the old value, or set data_dir to a new directory: the workspace_id tag of a state cannot change.';

/** The error if the configured tag differs from the tag of the points. */
function otherTag(path: string, pinned: string, found: string): UserError {
  return new UserError(
    `workspace.id: the points of this state have the workspace_id tag ${JSON.stringify(pinned)}, not ${JSON.stringify(found)} (${path})`,
    TAG_REMEDY,
    78,
    { ends: 'process' },
  );
}

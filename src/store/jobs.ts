/**
 * Stores jobs: the functions of the table for the daemon and for a command, each over its own connection, and opening
 * the state for a command.
 *
 * Every change is one statement that names the states it may change. So two processes that change one job at the same
 * moment never undo each other: a job that has ended stays ended.
 */

import { existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import { parseJson } from '../core/json.ts';
import {
  isJobOf,
  type Job,
  type JobBoard,
  type JobEnd,
  type JobQueue,
  type JobState,
  readEnd,
  ruleOf,
} from '../core/state/jobs.ts';
import type { EpochMs } from '../core/time.ts';
import { explained, explainedCalls } from './explain.ts';
import { lockPath, statePath } from './open/database.ts';
import { isLocked } from './open/lock.ts';
import { APPLICATION_ID, MIGRATIONS } from './open/migrations.ts';

interface JobRow {
  readonly id: bigint | number;
  readonly kind: string;
  readonly args: string;
  readonly requested_by: string;
  readonly state: JobState;
  readonly is_cancel_requested: bigint | number;
  readonly follower_beat: bigint | number;
  readonly worker_beat: bigint | number;
  readonly progress: string | null;
  readonly summary: string | null;
  readonly message: string | null;
  readonly exit_code: bigint | number | null;
}

/** The result of a job whose daemon has died. */
const DAEMON_GONE: JobEnd = {
  state: 'failed',
  exitCode: 3,
  summary: null,
  message: 'the daemon that ran this job has died; the progress is kept. Run the command again',
};

const OPEN_JOBS = 'SELECT * FROM job WHERE ended_ms IS NULL ORDER BY id';

/** The queue of the process that holds the lock. */
export interface OwnedJobQueue extends JobQueue {
  /** Jobs that the last holder of the lock has left running end, or wait again if their kind does. */
  recover(atMs: EpochMs): void;
}

/** The table for the process that holds the lock. */
export function createJobQueue(db: Database.Database): OwnedJobQueue {
  const open = db.prepare<[], JobRow>(OPEN_JOBS);
  const beat = db.prepare('UPDATE job SET worker_beat = worker_beat + 1 WHERE ended_ms IS NULL');
  const take = db.prepare("UPDATE job SET state = 'running', started_ms = ? WHERE id = ? AND state = 'waiting'");
  const release = db.prepare("UPDATE job SET state = 'waiting', started_ms = NULL WHERE id = ? AND state = 'running'");
  const saveArgs = db.prepare("UPDATE job SET args = ? WHERE id = ? AND state = 'running'");
  const progressed = db.prepare("UPDATE job SET progress = ? WHERE id = ? AND state = 'running'");
  const end = db.prepare(
    'UPDATE job SET state = ?, exit_code = ?, summary = ?, message = ?, ended_ms = ? WHERE id = ? AND ended_ms IS NULL',
  );
  const clear = db.prepare('DELETE FROM job WHERE ended_ms < ?');
  const submit = createSubmit(db);
  const endJob: JobQueue['end'] = (id, { state, exitCode, summary, message }, atMs) => {
    end.run(state, exitCode, summary === null ? null : JSON.stringify(summary), message, Math.floor(atMs), id);
  };
  return {
    submit,
    open: () => open.all().map(toJob),
    beat: () => void beat.run(),
    release: (id) => void release.run(id),
    take: (id, atMs) => take.run(Math.floor(atMs), id).changes > 0,
    saveArgs: (id, args) => void saveArgs.run(JSON.stringify(args), id),
    reportProgress: (id, progress) => void progressed.run(JSON.stringify(progress), id),
    end: endJob,
    clear: (beforeMs) => void clear.run(Math.floor(beforeMs)),
    recover: (atMs) => {
      for (const { id, kind, state } of open.all().map(toJob)) {
        if (state !== 'running') continue;
        if (ruleOf(kind)?.isResumed === true) release.run(id);
        else endJob(id, DAEMON_GONE, atMs);
      }
    },
  };
}

function createSubmit(db: Database.Database): JobQueue['submit'] {
  const insert = db.prepare('INSERT INTO job (kind, args, requested_by, requested_ms) VALUES (?, ?, ?, ?)');
  return ({ kind, args, requestedBy, requestedMs }) =>
    Number(insert.run(kind, JSON.stringify(args), requestedBy, Math.floor(requestedMs)).lastInsertRowid);
}

/** The table for any other process. */
function createJobBoard(db: Database.Database): JobBoard {
  const get = db.prepare<[number], JobRow>('SELECT * FROM job WHERE id = ?');
  const open = db.prepare<[], JobRow>(OPEN_JOBS);
  const insert = createSubmit(db);
  const submit = db.transaction<JobBoard['submit']>((request) => {
    const found = open
      .all()
      .map(toJob)
      .find((job) => isJobOf(job, request));
    return found === undefined ? { id: insert(request), isFound: false } : { id: found.id, isFound: true };
  });
  const beat = db.prepare('UPDATE job SET follower_beat = follower_beat + 1 WHERE id = ? AND ended_ms IS NULL');
  const withdraw = db.prepare("DELETE FROM job WHERE id = ? AND state = 'waiting'");
  const cancel = db.prepare('UPDATE job SET is_cancel_requested = 1 WHERE id = ? AND ended_ms IS NULL');
  return {
    // Two equal commands at the same moment submit one job.
    submit: (request) => submit.immediate(request),
    get: (id) => {
      const row = get.get(id);
      return row === undefined ? null : toJob(row);
    },
    beat: (id) => void beat.run(id),
    withdraw: (id) => withdraw.run(id).changes > 0,
    cancel: (id) => void cancel.run(id),
  };
}

function toJob(row: JobRow): Job {
  const { state } = row;
  const isOpen = state === 'waiting' || state === 'running';
  const { message } = row;
  return {
    id: Number(row.id),
    kind: row.kind,
    args: parseJson(row.args),
    requestedBy: row.requested_by,
    state,
    progress: parseJson(row.progress),
    isCancelRequested: Number(row.is_cancel_requested) !== 0,
    followerBeat: Number(row.follower_beat),
    workerBeat: Number(row.worker_beat),
    end: isOpen ? null : readEnd({ state, exitCode: Number(row.exit_code), summary: parseJson(row.summary), message }),
  };
}

interface OpenJobBoard {
  readonly board: JobBoard;
  /** Whether any process holds the lock. */
  isLocked(): boolean;
  close(): void;
}

/**
 * Opens the jobs of a state that another process holds, to leave a job there for it. It does not take the lock and does
 * not change the shape of the state. The holder waits a few milliseconds at most: every write is one small statement,
 * and the checkpoint of the write-ahead log is left to the holder.
 *
 * @returns `null` if there is no state, or one of another version.
 * @throws UserError (exit 1) if this user may not open it.
 */
export function openJobBoard(directory: string): OpenJobBoard | null {
  const path = statePath(directory);
  const lock = lockPath(directory);
  return explained(path, () => {
    if (!existsSync(path)) return null;
    const db = new Database(path, { fileMustExist: true });
    try {
      if (!hasJobs(db)) {
        db.close();
        return null;
      }
      // A power failure may lose a job's progress without harm, and the checkpoint is the holder's work.
      db.pragma('synchronous = NORMAL');
      db.pragma('wal_autocheckpoint = 0');
      const board = explainedCalls(path, createJobBoard(db));
      return { board, isLocked: () => explained(lock, () => isLocked(lock)), close: () => db.close() };
    } catch (error) {
      db.close();
      throw error;
    }
  });
}

/** Whether the state is of exactly this version. A state from a development version may have no table of jobs. */
function hasJobs(db: Database.Database): boolean {
  const id = db.pragma('application_id', { simple: true });
  const version = Number(db.pragma('user_version', { simple: true }));
  if (id !== APPLICATION_ID || version !== MIGRATIONS.length) return false;
  return db.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'job'").get() !== undefined;
}

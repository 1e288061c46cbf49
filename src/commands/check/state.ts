/**
 * The state checks of `--check`: its directory, permissions and disk, and its file. Each problem is reported with the
 * command that repairs it.
 */

import { configuredDatabases } from '../../app/settings.ts';
import type { StateConfig } from '../../config/config.ts';
import { clearingMarks, judgeSpace, MIN_FREE_BYTES } from '../../core/archive-room.ts';
import { UserError } from '../../core/faults.ts';
import type { StateSize } from '../../core/state/archive.ts';
import { byteSize, plainText, shellText } from '../../core/text.ts';
import {
  DAMAGE_REMEDY,
  DIRECTORY_REMEDY,
  hasOtherFiles,
  OWN_DIRECTORY_REMEDY,
  READ_ONLY_REMEDY,
} from '../../store/explain.ts';
import { TAG_REMEDY } from '../../store/facts.ts';
import { createDisk, type DataDirFacts, inspectDataDir, type OwnedPath } from '../../store/views/data-dir.ts';
import { inspectState, isStateLocked, type StateFindings } from '../../store/views/inspect.ts';
import { type CheckLine, type CheckNotes, createNotes, errorText } from './report.ts';

interface StateView {
  readonly place: DataDirFacts;
  /** The contents of the state file; `null` if there is none; an error if it cannot be used. */
  readonly found: StateFindings | { readonly problem: UserError } | null;
  /** Whether a process uses the state; an error if that is unknown. */
  readonly isLocked: boolean | { readonly problem: UserError };
  /** The disk space that this user may still use; `null` if unknown. */
  readonly diskFreeBytes: number | null;
}

/** Checks the data directory and the state file. */
export function inspectForCheck(dataDir: string): StateView {
  const place = inspectDataDir(dataDir);
  return {
    place,
    found: orProblem(() => inspectState(dataDir)),
    isLocked: orProblem(() => isStateLocked(dataDir)),
    diskFreeBytes: place.nearest === null ? null : createDisk(place.nearest.path).freeBytes(),
  };
}

function orProblem<T>(view: () => T): T | { readonly problem: UserError } {
  try {
    return view();
  } catch (error) {
    if (error instanceof UserError) return { problem: error };
    throw error;
  }
}

/** Judges the data directory, the state file, the free space and the lock. */
export function stateLines(view: StateView, config: StateConfig): CheckLine[] {
  const notes = createNotes('state');
  const { found } = view;
  if (view.place.kind === 'other') {
    noteNoDirectory(notes, view);
    return notes.lines;
  }
  noteDirectory(notes, view.place, view.isLocked);
  notePermissions(notes, view.place);
  if (found === null) noteNoFile(notes, view);
  else if ('problem' in found) notes.fail('file', errorText(found.problem));
  else {
    noteFile(notes, found);
    noteTag(notes, found, config.workspaceId);
  }
  const size = found === null || 'problem' in found ? null : found.size;
  noteRoom(notes, { view, size }, config);
  noteLock(notes, view.isLocked);
  return notes.lines;
}

/** Why no request can be booked in the state, so that none is sent; `null` if requests can be booked. */
export function bookingRefusal(view: StateView): string | null {
  if (!canBeWritten(view)) return 'the state cannot be used';
  const isOlder = view.found !== null && !('problem' in view.found) && view.found.version < view.found.newestVersion;
  // A check does not upgrade the state, so that the older version can still be used.
  return isOlder && view.isLocked === false ? 'a check does not upgrade a state of an older version' : null;
}

function canBeWritten({ place, found, isLocked }: StateView): boolean {
  if (typeof isLocked !== 'boolean' || place.kind === 'other' || place.nearest?.refusal !== null) return false;
  if (found !== null && ('problem' in found || found.broken.length > 0)) return false;
  return place.files.every(({ refusal }) => refusal === null);
}

function noteDirectory(notes: CheckNotes, place: DataDirFacts, isLocked: StateView['isLocked']): void {
  const { directory, kind, nearest, files, uid } = place;
  const facts = { path: directory };
  const refused = [nearest, ...files].find((each) => each !== null && each.refusal !== null) ?? null;
  if (nearest === null || refused !== null) noteRefusal(notes, { place, isLocked }, refused);
  else if (kind === 'missing') {
    notes.ok('directory', `${directory}: does not exist yet; it will be created in ${nearest.path}`, facts);
  } else {
    const owner = nearest.ownerUid === uid ? 'owned by this user' : `owned by user ${nearest.ownerUid}`;
    notes.ok('directory', `${directory}: ${owner}, writable`, facts);
  }
}

/** Reports that there can be no state here, so that nothing else about it is known. */
function noteNoDirectory(notes: CheckNotes, { place: { directory }, found }: StateView): void {
  const message = `${directory}: this path, or a part of it, is not a directory`;
  const facts = { path: directory };
  const known = found !== null && 'problem' in found ? errorText(found.problem) : { message, remedy: DIRECTORY_REMEDY };
  notes.fail('directory', { ...known, facts });
  for (const name of ['file', 'in use']) notes.skip(name, 'unknown, because there is no directory');
}

function noteRefusal(
  notes: CheckNotes,
  { place: { directory, kind, files, uid }, isLocked }: Pick<StateView, 'place' | 'isLocked'>,
  refused: OwnedPath | null,
): void {
  const path = refused?.path ?? directory;
  const facts = { path, owner_uid: refused?.ownerUid ?? null, uid };
  if (refused?.refusal === 'EROFS') {
    const message = `${path}: its file system is mounted read-only`;
    notes.fail('directory', { message, remedy: READ_ONLY_REMEDY, facts });
    return;
  }
  if (refused !== null && !['EACCES', 'EPERM'].includes(refused.refusal ?? '')) {
    const message = `${directory} cannot be created or written to (${refused.refusal})`;
    const remedy = refused.refusal === 'ENOSPC' ? 'Free space on that disk.' : DIRECTORY_REMEDY;
    notes.fail('directory', { message, remedy, facts });
    return;
  }
  const owner = refused === null ? '' : `, which belongs to user ${refused.ownerUid}`;
  const message = `this user (${uid}) may not write to ${path}${owner}`;
  // Another owner would take the state away from a process that uses it.
  if (isLocked !== false) {
    const user = refused === null ? 'its owner' : `user ${refused.ownerUid}`;
    notes.fail('directory', {
      message,
      remedy: `Run Tidemark as ${user}, or set data_dir to another directory.`,
      facts,
    });
    return;
  }
  const paths = [directory, ...files.map((file) => file.path)].map(shellText).join(' ');
  const made = kind === 'missing' ? `mkdir -p ${shellText(directory)} && ` : '';
  const remedy = hasOtherFiles(directory) ? OWN_DIRECTORY_REMEDY : `As root: ${made}chown ${uid} ${paths}`;
  notes.fail('directory', { message, remedy, facts });
}

/**
 * Whether other users may read a directory. A group without other members counts as the owner: root's group, as in the
 * container's volume, and the user's own group, as Kubernetes sets it (`fsGroup`).
 */
function isOpenToOthers({ mode, groupGid }: OwnedPath, uid: number): boolean {
  return (mode & (groupGid === 0 || groupGid === uid ? 0o007 : 0o077)) !== 0;
}

function notePermissions(notes: CheckNotes, { directory, kind, nearest, files, uid }: DataDirFacts): void {
  if (kind !== 'there' || nearest === null) return;
  const open = files.filter(({ mode }) => (mode & 0o077) !== 0);
  const isOpen = isOpenToOthers(nearest, uid);
  if (!isOpen && open.length === 0) {
    notes.ok('permissions', 'only this user can read it');
    return;
  }
  const named = [...(isOpen ? [nearest] : []), ...open].map(({ path, mode }) => `${path} (${octal(mode)})`);
  const commands = [
    ...(isOpen ? [`chmod 700 ${shellText(directory)}`] : []),
    ...(open.length > 0 ? [`chmod 600 ${open.map(({ path }) => shellText(path)).join(' ')}`] : []),
  ];
  notes.warn('permissions', {
    message: `other users can read the state: ${named.join(', ')}`,
    remedy: commands.join(' && '),
  });
}

function noteNoFile(notes: CheckNotes, { place }: StateView): void {
  if (place.nearest?.refusal === null) notes.ok('file', 'no state yet: the first request to the API creates it');
  else notes.skip('file', 'there is no state yet, and it cannot be created');
}

function noteFile(notes: CheckNotes, { version, newestVersion, size, broken }: StateFindings): void {
  const facts = { state_version: version, used_bytes: size.usedBytes };
  const older = version < newestVersion ? `; the next start of the daemon upgrades it to version ${newestVersion}` : '';
  notes.ok('file', `state version ${version}, ${byteSize(size.usedBytes)}${older}`, facts);
  if (broken.length === 0) {
    notes.ok('integrity', 'the file and its contents are consistent');
    return;
  }
  notes.fail('integrity', {
    message: `the state is damaged: ${broken.join('; ')}`,
    remedy: DAMAGE_REMEDY,
  });
}

function noteTag(notes: CheckNotes, { workspaceTag }: StateFindings, configured: string | null): void {
  if (workspaceTag === null || configured === null || workspaceTag === configured) return;
  notes.fail('workspace.id', {
    message: `the points of this state have the workspace_id tag ${plainText(JSON.stringify(workspaceTag), 80)}, but workspace.id has another value`,
    remedy: TAG_REMEDY,
    exitCode: 78,
  });
}

const EMPTY: StateSize = { usedBytes: 0, freeBytes: 0, walBytes: 0 };

function noteRoom(
  notes: CheckNotes,
  { view, size }: { readonly view: StateView; readonly size: StateSize | null },
  config: StateConfig,
): void {
  const { diskFreeBytes, place } = view;
  const { maxBytes } = config.archive;
  const hasDestinations = configuredDatabases(config).length > 0;
  const figures = { ...(size ?? EMPTY), directory: place.directory, diskFreeBytes, refusal: null };
  const judged = (limit: number | null) =>
    judgeSpace(null, figures, { maxBytes: limit, minFreeBytes: MIN_FREE_BYTES, hasDestinations });
  const bySize = judgeSpace(null, { ...figures, diskFreeBytes: null }, { maxBytes, minFreeBytes: 0, hasDestinations });
  if (size !== null) noteSize(notes, { usedBytes: size.usedBytes, maxBytes, reason: bySize?.reason ?? null });
  const byDisk = judged(null);
  if (byDisk !== null) {
    notes.fail('disk', { message: `${byDisk.what}: polling stops`, remedy: byDisk.remedy });
  } else noteDisk(notes, { diskFreeBytes, mayGrowBytes: maxBytes - figures.usedBytes - figures.freeBytes });
}

function noteSize(
  notes: CheckNotes,
  { usedBytes, maxBytes, reason }: { usedBytes: number; maxBytes: number; reason: string | null },
): void {
  const facts = { used_bytes: usedBytes, max_bytes: maxBytes };
  const message = `${byteSize(usedBytes)} of archive.max_size ${byteSize(maxBytes)}`;
  const remedy =
    'Raise archive.max_size, or fix the delivery to the database whose points are waiting (--status shows it).';
  if (reason !== null) notes.fail('size', { message: `the archive is full: ${message}`, remedy, facts });
  else if (usedBytes > clearingMarks(maxBytes).above) {
    notes.warn('size', {
      message: `${message}: delivered points are removed earlier than after archive.retention`,
      remedy,
      facts,
    });
  } else notes.ok('size', message, facts);
}

function noteDisk(
  notes: CheckNotes,
  { diskFreeBytes, mayGrowBytes }: { diskFreeBytes: number | null; mayGrowBytes: number },
): void {
  if (diskFreeBytes === null) {
    notes.skip('disk', 'this file system does not report its free space');
    return;
  }
  const facts = { free_bytes: diskFreeBytes };
  const message = `${byteSize(diskFreeBytes)} free`;
  if (diskFreeBytes - MIN_FREE_BYTES >= mayGrowBytes) notes.ok('disk', message, facts);
  else {
    notes.warn('disk', {
      message: `${message}, but the archive may grow by ${byteSize(mayGrowBytes)}: polling would stop at ${byteSize(MIN_FREE_BYTES)} free`,
      // Files that are copied while a process writes do not belong together.
      remedy: 'Lower archive.max_size, or stop Tidemark and move data_dir to a larger disk.',
      facts,
    });
  }
}

function noteLock(notes: CheckNotes, isLocked: StateView['isLocked']): void {
  if (typeof isLocked !== 'boolean') notes.fail('in use', errorText(isLocked.problem));
  else if (isLocked)
    notes.ok('in use', 'yes: a Tidemark process, normally the daemon, works with this state', { locked: isLocked });
  else notes.ok('in use', 'no: no Tidemark process works with this state', { locked: isLocked });
}

function octal(mode: number): string {
  return `0${mode.toString(8).padStart(3, '0')}`;
}

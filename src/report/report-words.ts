/**
 * How it stands, in one sentence: the first thing that the page and `--status` say.
 */
import type { ReportParts } from './report.ts';
import { wasListed } from './stream-status.ts';

/** How it stands, in a sentence: what is wrong first, as nothing else counts then. */
export function summarize(
  parts: ReportParts,
  { devices, complete, excluded }: { devices: number; complete: number; excluded: number },
): string {
  const wrong = wrongWords(parts);
  if (wrong !== null) return wrong;
  const isAtWork = parts.isRunning();
  if (devices === 0) return noDeviceWords(parts, { excluded, isAtWork });
  const leftOut = excluded === 0 ? '' : ` (${excluded} excluded)`;
  const { waiting_until } = parts.allowance();
  const waiting = waiting_until === null || !isAtWork ? '' : ` Waiting for allowance until ${waiting_until}.`;
  if (complete === devices) return `All ${devices} devices are held in full${leftOut}.${waiting}`;
  return `${isAtWork ? 'Filling: ' : ''}${complete} of ${devices} devices are held in full${leftOut}.${waiting}`;
}

function wrongWords({ deliverers, streams, room }: ReportParts): string | null {
  const trouble = streams.trouble();
  if (trouble !== null) return `The API is not read: ${trouble}`;
  const { full } = room.status();
  if (full !== null) return `Nothing new is read: ${full}`;
  const unread = unreadStream(streams);
  if (unread !== null) return `${unread.name} cannot be read: ${unread.reason}`;
  const held = deliverers.find((deliverer) => deliverer.held() !== null);
  return held === undefined ? null : `Delivery to ${held.name} is held: ${held.held() ?? ''}`;
}

function noDeviceWords({ streams }: ReportParts, seen: { excluded: number; isAtWork: boolean }): string {
  if (seen.excluded > 0) return `No device is synced: all ${seen.excluded} are excluded.`;
  if (wasListed(streams.list())) return 'The workspace has no devices.';
  return seen.isAtWork ? 'Starting: the devices are not listed yet.' : 'No devices are listed yet.';
}

/** A stream whose state is news. Others may be off on purpose; without telemetry nothing of what is wanted ever comes. */
function unreadStream({
  list,
  failingLong,
}: ReportParts['streams']): { readonly name: string; readonly reason: string } | null {
  const failing = failingLong()[0];
  if (failing !== undefined) return failing;
  const off = list().find(({ name, state }) => name === 'telemetry' && state === 'off');
  return off === undefined ? null : { name: off.name, reason: off.reason ?? 'its stream is off' };
}

/**
 * Whether the API takes the bounds of a window as part of it: tried on readings that lie on whole seconds, the only times
 * that can be asked for exactly.
 */
import type { CheckLine, CheckNotes } from '../../core/check.ts';
import type { TelemetryPage } from '../../core/records.ts';
import { type EpochNs, SECOND_NS } from '../../core/time.ts';

interface Bounds {
  readonly after: EpochNs;
  readonly before: EpochNs | null;
}

const NAME = 'bounds';

/** @param page readings of a device; `null` where none came. @param ask asks for a window of it; `null` where none came. */
export async function noteBounds(
  notes: CheckNotes,
  page: TelemetryPage | null,
  ask: ((bounds: Bounds) => Promise<TelemetryPage | null>) | null,
): Promise<CheckLine> {
  const whole = (page?.readings ?? []).flatMap(({ recordedAt: at }) => (at % SECOND_NS === 0n ? [at] : []));
  const [newest, next] = [...new Set(whole)];
  if (ask === null || newest === undefined) {
    return notes.ok(NAME, 'after and before: not seen yet (it takes readings on whole seconds)', UNSEEN);
  }
  const before = next === undefined ? null : newest;
  const after = next ?? newest;
  const answer = await ask({ after, before });
  if (answer === null) return notes.ok(NAME, 'after and before: not seen yet', UNSEEN);
  const has = (at: EpochNs): boolean => answer.readings.some(({ recordedAt }) => recordedAt === at);
  const facts = { after_inclusive: has(after), before_inclusive: before === null ? null : has(before) };
  const ofBefore = facts.before_inclusive === null ? 'before not seen yet' : words('before', facts.before_inclusive);
  return notes.ok(NAME, `${words('after', facts.after_inclusive)}, ${ofBefore}`, facts);
}

const UNSEEN = { after_inclusive: null, before_inclusive: null };

function words(bound: string, isInclusive: boolean): string {
  return `${bound} is ${isInclusive ? 'inclusive' : 'exclusive'}`;
}

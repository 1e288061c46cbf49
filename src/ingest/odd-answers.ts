/**
 * What to do about answers that prove nothing and about refusals, on the way through a hole.
 *
 * An answer that proves nothing is asked for again; three of them make a named gap, which is tried again later. Only
 * where an anchor was missing three times is it taken as gone: a restatement, told and gone on from. Where the answers
 * were empty altogether, that takes a day (`missed-anchors.ts`).
 */

import type { TelemetryPage } from '../core/records.ts';
import { type EpochNs, formatExact } from '../core/time.ts';
import type { Judgement } from './judge-page.ts';
import { isAwaited, isEmptyInDoubt, missAnchor, takeAsGone } from './missed-overlap.ts';
import type { PageAnswer } from './page.ts';
import type { Ask } from './page-request.ts';
import { askBelow, fromFirstPage, nameGap, type Walk } from './walking.ts';

/** How often an answer that proves nothing is asked for before the hole gets a name. */
export const TRIES = 3;

/** How long to wait before an odd answer is asked for again: a replica that lags behind gets time to catch up. */
const AGAIN_MS = 1000;

/** What to do about an answer that proved nothing: the same question, the walk from its start, or a name for the hole. */
export async function askAgain(
  walk: Walk,
  { ask, judged, page }: { ask: Ask; judged: Judgement; page: TelemetryPage },
  signal: AbortSignal,
): Promise<Ask | null> {
  const { context, task } = walk;
  const isEmpty = page.readings.length === 0 && (page.deviceId === null || page.deviceId === task.deviceId);
  // Where others were seen to lack what was held, asking again within seconds would tell no more.
  const isInDoubt = isEmpty && isEmptyInDoubt(context, task.deviceId);
  if (isEmpty) walk.empties += 1;
  if (isEmpty && !judged.anchorMissing && walk.empties === 1 && !isInDoubt) return ask;
  walk.odd += 1;
  const reason = judged.reason ?? '';
  context.observe({ type: 'page-distrusted', deviceId: task.deviceId, reason, attempt: walk.odd });
  if (judged.anchorMissing ? !mayGoOnWithout(walk, ask, isEmpty) : walk.odd >= TRIES || isInDoubt) {
    nameGap(walk, ask.hole, 'page not understood');
    return null;
  }
  await context.clock.sleep(AGAIN_MS, signal);
  return judged.anchorMissing ? fromFirstPage(ask) : ask;
}

/**
 * Takes in that an answer lacks its anchor.
 *
 * @returns whether to go on: to ask once more, or without the anchor where it is taken as gone.
 */
function mayGoOnWithout(walk: Walk, ask: Ask, isEmpty: boolean): boolean {
  const { context, task } = walk;
  const { deviceId } = task;
  const at = missingAt(ask);
  // Where that was seen before, asking again within seconds would tell no more.
  if (isEmpty && isAwaited(context, deviceId, at)) return false;
  walk.anchorMisses += 1;
  if (walk.anchorMisses < TRIES) return true;
  if (isEmpty && !missAnchor(context, deviceId, at)) return false;
  if (isEmpty) walk.emptyBelieved = true;
  else takeAsGone(context, deviceId, at);
  if (walk.anchorMisses === TRIES) context.observe({ type: 'restatement', deviceId, at: formatExact(at) });
  return true;
}

/** The time of the anchor that an answer lacks: the near one, unless an earlier page has shown that. */
function missingAt({ near, nearSeen, far, hole }: Ask): EpochNs {
  return ((nearSeen ? null : near) ?? far ?? near)?.at ?? hole.to;
}

/** What a refusal leaves to ask; `null` where the walk ends. */
export function takeRefusal(walk: Walk, ask: Ask, answer: Exclude<PageAnswer, { kind: 'page' }>): Ask | null {
  const { context, task } = walk;
  const { deviceId } = task;
  if (answer.kind === 'changed') return askBelow(walk, ask.hole.to, ask.near);
  // The walk ends; what is left of the hole is looked for anew, as far back as may be asked.
  if (answer.kind === 'too-old') return null;
  if (answer.kind === 'odd') {
    walk.odd += 1;
    context.observe({ type: 'page-distrusted', deviceId, reason: answer.reason, attempt: walk.odd });
    if (walk.odd < TRIES) return fromFirstPage(ask);
    nameGap(walk, ask.hole, 'page not understood');
  } else if (answer.kind === 'gone') {
    walk.gone = true;
    context.store.markGone(deviceId, context.serverClock.nowMs());
    context.observe({ type: 'device-gone', deviceId });
  } else {
    nameGap(walk, walk.hole, 'device unreachable');
  }
  return null;
}

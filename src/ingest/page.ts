/**
 * One telemetry request, and what its refusals mean for the device that it was about.
 *
 * Faults of the service as a whole are thrown on; those that say something of this question or this device come back
 * as answers.
 */
import { ApiFault } from '../core/faults.ts';
import type { Reply } from '../core/ports.ts';
import type { TelemetryPage } from '../core/records.ts';
import type { PullTask, SyncContext } from './context.ts';
import type { Ask } from './page-request.ts';
import type { RangeVerdict, WindowRules } from './window-limits.ts';

export type PageAnswer =
  | { readonly kind: 'page'; readonly reply: Reply<TelemetryPage> }
  /** The question has to be put differently: the window rules have changed. */
  | { readonly kind: 'changed' }
  /** The question reaches further back than the service lets anybody ask. */
  | { readonly kind: 'too-old' }
  /** The answer could not be understood, or the question was refused. */
  | { readonly kind: 'odd'; readonly reason: string }
  /** 404 again, while the service answers about other devices. */
  | { readonly kind: 'gone' }
  /** 404 for the first time, or nothing else has been answered since: it may be the service. */
  | { readonly kind: 'unreachable' };

/**
 * Asks for a page.
 *
 * @throws ApiFault where the fault is not about this question (unreachable, throttled, key, plan, scope, server fault).
 */
export async function askPage(
  { context, rules, task }: { context: SyncContext; rules: WindowRules; task: PullTask },
  ask: Ask,
  signal: AbortSignal,
): Promise<PageAnswer> {
  const { deviceId, after, before, cursor } = ask;
  const purpose = { lane: task.lane, stream: 'telemetry', deviceId } as const;
  try {
    const reply = await context.api.telemetry({ deviceId, after, before, cursor }, purpose, signal);
    rules.noteAnswered(deviceId);
    return { kind: 'page', reply };
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    return explainRefusal(error, ask, rules);
  }
}

const RANGE_ANSWERS: Readonly<Record<RangeVerdict, PageAnswer | null>> = {
  narrower: { kind: 'changed' },
  'too-old': { kind: 'too-old' },
  hopeless: null,
};

function explainRefusal(fault: ApiFault, ask: Ask, rules: WindowRules): PageAnswer {
  const odd: PageAnswer = { kind: 'odd', reason: fault.message };
  switch (fault.kind) {
    case 'range-too-large':
      return RANGE_ANSWERS[rules.narrow(ask, fault.facts.maxDays ?? null)] ?? odd;
    case 'invalid-request':
      if (ask.before !== null) return odd;
      rules.useBothBounds();
      return { kind: 'changed' };
    case 'bad-cursor':
    case 'malformed':
      return odd;
    case 'not-found':
      return { kind: rules.noteMissing(ask.deviceId) ? 'gone' : 'unreachable' };
    default:
      throw fault;
  }
}

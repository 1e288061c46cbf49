/**
 * Notes what answers show of what the document leaves open (`core/quota.ts`), on their way through. It changes nothing
 * of them, and keeps no more than names and numbers.
 */

import type { HttpAnswer, HttpRequest, Transport } from '../core/ports.ts';
import { type Learnt, type RareSights, readRareSights, withNames } from '../core/quota.ts';
import { readRateLimit } from './classify.ts';

interface Learning {
  readonly transport: Transport;
  learnt(): Learnt;
}

interface LearningOptions {
  readonly transport: Transport;
  /** What was kept; `null` for nothing. */
  readonly kept: string | null;
  /** Keeps what shows itself rarely; called when that has changed. What it throws is no reason to lose the answer. */
  readonly keep: (text: string) => void;
}

/** Wraps a transport. */
export function createLearning({ transport, kept, keep }: LearningOptions): Learning {
  let rare: RareSights = readRareSights(kept);
  let pages: Pick<Learnt, 'pageTaken' | 'pageRefused'> = { pageTaken: null, pageRefused: null };
  let rateLimit: Learnt['rateLimit'] = null;
  const noteRare = (next: RareSights): void => {
    if (JSON.stringify(next) === JSON.stringify(rare)) return;
    rare = next;
    try {
      keep(JSON.stringify(next));
    } catch {
      // A state without room, say: it is learnt again.
    }
  };
  return {
    transport: async (request, signal) => {
      const answer = await transport(request, signal);
      if (answer.status === 429 || answer.status === 401) noteRare(withRare(rare, answer));
      pages = withPage(pages, request, answer);
      if (answer.status === 200) rateLimit = withRateLimit(rateLimit, answer);
      return answer;
    },
    learnt: () => ({ ...rare, ...pages, rateLimit }),
  };
}

function withRare({ waitHeaders, challengeHeaders }: RareSights, { status, headers }: HttpAnswer): RareSights {
  const named = (pattern: RegExp): string[] => Object.keys(headers).filter((name) => pattern.test(name));
  return status === 429
    ? { waitHeaders: withNames(waitHeaders, named(/retry|reset/i)), challengeHeaders }
    : { waitHeaders, challengeHeaders: withNames(challengeHeaders, named(/authenticate|challenge/i)) };
}

type Pages = Pick<Learnt, 'pageTaken' | 'pageRefused'>;

/** Of first pages alone: what is wrong with a later one may be its cursor. */
function withPage(pages: Pages, { url }: HttpRequest, { status }: HttpAnswer): Pages {
  if (status !== 200 && status !== 400) return pages;
  const { searchParams: query } = new URL(url);
  const limit = Number(query.get('limit') ?? '');
  if (limit < 1 || query.has('cursor')) return pages;
  const { pageTaken, pageRefused } = pages;
  return status === 200
    ? { pageTaken: Math.max(limit, pageTaken ?? limit), pageRefused }
    : { pageTaken, pageRefused: Math.min(limit, pageRefused ?? limit) };
}

function withRateLimit(before: Learnt['rateLimit'], { headers }: HttpAnswer): Learnt['rateLimit'] {
  const { limit, remaining } = readRateLimit(headers);
  const now = limit !== null && remaining !== null ? 'all' : limit === null && remaining === null ? 'none' : 'some';
  return before === null || before === now ? now : 'some';
}

/**
 * Records what answers show about points that the API's document leaves open (`core/quota.ts`). It does not change the
 * answers, and keeps only names and numbers.
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
  /** The stored value; `null` for none. */
  readonly stored: string | null;
  /** Stores rare observations. It is called when they change; if it throws, the answer is kept anyway. */
  readonly save: (text: string) => void;
}

/** Wraps a transport: its answers pass unchanged, and `learnt` returns what they have shown. */
export function createLearning({ transport, stored, save }: LearningOptions): Learning {
  let rare: RareSights = readRareSights(stored);
  let pages: Pick<Learnt, 'pageTaken' | 'pageRefused'> = { pageTaken: null, pageRefused: null };
  let rateLimit: Learnt['rateLimit'] = null;
  const noteRare = (next: RareSights): void => {
    if (JSON.stringify(next) === JSON.stringify(rare)) return;
    rare = next;
    try {
      save(JSON.stringify(next));
    } catch {
      // For example, the state has no room: the observation will be made again.
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

/** Only first pages count: a later page may be refused because of its cursor. */
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

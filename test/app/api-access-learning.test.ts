/** The facts that passing answers add to the accounting. */
import { expect, test } from 'vitest';
import { createLearning } from '../../src/app/api-access.ts';
import type { HttpAnswer } from '../../src/core/ports.ts';

const SIGNAL = new AbortController().signal;
const LIMITS = { 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '59' };

/**
 * Sends requests that are answered so.
 *
 * @returns what was learnt, and what was kept.
 */
async function learn(
  answers: readonly (readonly [path: string, status: number, headers: HttpAnswer['headers']])[],
  stored: string | null = null,
  save?: () => never,
) {
  const queue = [...answers];
  const texts: string[] = [];
  const learning = createLearning({
    transport: () => {
      const [, status = 0, headers = {}] = queue.shift() ?? [];
      return Promise.resolve({ status, headers, body: new Uint8Array() });
    },
    stored,
    save: save ?? ((text) => void texts.push(text)),
  });
  for (const [path, status] of answers) {
    const answer = await learning.transport({ method: 'GET', url: `http://x${path}`, headers: {} }, SIGNAL);
    expect(answer.status, 'the answer goes through as it is').toBe(status);
  }
  return { learnt: learning.learnt(), texts };
}

test('nothing is learnt before the first answer', async () => {
  expect((await learn([])).learnt).toEqual({
    waitHeaders: [],
    challengeHeaders: [],
    rateLimit: null,
    pageTaken: null,
    pageRejected: null,
  });
});

test('names of headers are kept once, and known after a restart', async () => {
  const { learnt, texts } = await learn([
    ['/a', 429, { 'x-wait-reset': '5', date: 'now' }],
    ['/a', 429, { 'x-wait-reset': '7', 'retry-after': '3' }],
    ['/a', 429, { 'retry-after': '3' }],
    ['/a', 401, { 'www-authenticate': 'Bearer', 'retry-after': '1' }],
  ]);
  expect(learnt).toMatchObject({
    waitHeaders: ['x-wait-reset', 'retry-after'],
    challengeHeaders: ['www-authenticate'],
  });
  expect(texts).toHaveLength(3);
  expect(texts.join()).not.toMatch(/Bearer|now/);
  expect((await learn([], texts.at(-1))).learnt).toMatchObject({ waitHeaders: ['x-wait-reset', 'retry-after'] });
});

test.each(['{', '[]', 'null', '{"waitHeaders":[1,"a b","ok"]}'])(
  'kept findings without the expected form are ignored: %s',
  async (text) => {
    const { waitHeaders } = (await learn([], text)).learnt;
    expect(waitHeaders.filter((name) => name !== 'ok')).toEqual([]);
  },
);

test('page sizes are learnt from first pages alone', async () => {
  const { learnt } = await learn([
    ['/devices?limit=200', 400, {}],
    ['/devices?limit=50', 200, LIMITS],
    ['/devices?limit=20&cursor=x', 400, {}],
    ['/account', 200, LIMITS],
    ['/alerts?limit=100', 500, {}],
  ]);
  expect(learnt).toMatchObject({ pageTaken: 50, pageRejected: 200, rateLimit: 'all' });
});

test('learns whether all answers, some or none have the headers of the quota', async () => {
  const of = async (...headers: HttpAnswer['headers'][]) =>
    (await learn(headers.map((each) => ['/a', 200, each] as const))).learnt.rateLimit;
  expect(await of(LIMITS, LIMITS)).toBe('all');
  expect(await of({}, {})).toBe('none');
  expect(await of(LIMITS, {})).toBe('some');
  expect(await of({ 'x-ratelimit-limit': '5' })).toBe('some');
});

test('a state that cannot keep it costs no answer', async () => {
  const refuse = (): never => {
    throw new Error('full');
  };
  const { learnt } = await learn([['/a', 429, { 'retry-after': '3' }]], null, refuse);
  expect(learnt.waitHeaders).toEqual(['retry-after']);
});

/** The meaning of each answer to a write: for the lines of the request, and as the answer to a control line. */
import { describe, expect, test } from 'vitest';
import type { Sink, WriteAnswer } from '../../src/core/ports.ts';
import { judge, RETRY_HINT, type Verdict } from '../../src/delivery/destination.ts';
import { type Resolution, resolveBatch } from '../../src/delivery/resolve.ts';
import { headerTable } from '../support/header-table.ts';

const LINES = [1, 2, 3, 4].map((nth) => `telemetry,device_id=d value=${nth} ${nth}`);
const [LINE = ''] = LINES;
const REFUSED = { kind: 'rejected', message: 'HTTP 422: no', retention: false } as const;
const CONTROL = 'telemetry,device_id=d value=0 0';
const OTHER = 'alerts,device_id=d id="a" 0';

const REFUSAL = { message: 'HTTP 422: no', retention: false, dropped: null, conflict: false };
const LATER = { message: 'HTTP 503', hint: RETRY_HINT, isAnswer: true, needsPerson: false, waitMs: 7 };
const BLOCKED = { message: 'HTTP 401', hint: 'a new token', isAnswer: true, needsPerson: true, waitMs: null };

interface Row {
  readonly answer: WriteAnswer;
  readonly verdict: Verdict;
  /** How many requests follow on the answer to a batch of four lines, if the database accepts everything after it. */
  readonly requests: number;
  /** Whether this answer to a control line shows that a line that was refused alone is at fault. */
  readonly confirms: boolean;
}

const TABLE: { readonly [Kind in WriteAnswer['kind']]: Row } = {
  accepted: {
    answer: { kind: 'accepted' },
    verdict: { does: 'accept' },
    requests: 1,
    confirms: true,
  },
  rejected: {
    answer: REFUSED,
    verdict: { does: 'bisect', refusal: REFUSAL },
    // The left half; the right half must be at fault then, and is halved without being sent.
    requests: 4,
    confirms: false,
  },
  'too-large': {
    answer: { kind: 'too-large', message: 'HTTP 413' },
    verdict: { does: 'halve', refusal: { ...REFUSAL, message: 'HTTP 413' } },
    requests: 3,
    confirms: false,
  },
  later: {
    answer: { kind: 'later', message: LATER.message, waitMs: LATER.waitMs, status: 503 },
    verdict: { does: 'keep', blocked: LATER },
    requests: 1,
    confirms: false,
  },
  blocked: {
    answer: { kind: 'blocked', message: BLOCKED.message, hint: BLOCKED.hint },
    verdict: { does: 'keep', blocked: BLOCKED },
    requests: 1,
    confirms: false,
  },
};

test('the table in the header of the destination has each answer, with its meaning and as the answer to a control', () => {
  const [, ...rows] = headerTable('delivery/destination.ts', 'answer');
  const documented = rows.map(([answer, lines = '', control = '']) => [
    answer,
    { does: lines.slice(0, lines.indexOf(':')), confirms: control.includes('are at fault') },
  ]);
  const known = Object.entries(TABLE).map(([kind, { answer, confirms }]) => [
    kind,
    { does: judge(answer).does, confirms },
  ]);
  expect(Object.fromEntries(documented)).toEqual(Object.fromEntries(known));
});

/** Resolves lines at a database that answers with the given function. */
async function resolve(lines: readonly string[], write: (sent: readonly string[], nth: number) => WriteAnswer) {
  const sent: (readonly string[])[] = [];
  const sink: Sink = {
    name: 'influx',
    write: (part) => {
      sent.push(part);
      return Promise.resolve(write(part, sent.length));
    },
  };
  const options = { controlFor: () => CONTROL, otherControlFor: () => OTHER, maxRequests: 1000 };
  const resolution: Resolution = await resolveBatch(sink, lines, options, new AbortController().signal);
  return { resolution, sent };
}

describe.each(Object.entries(TABLE))('the answer "%s"', (_kind, { answer, verdict, requests, confirms }) => {
  test('has its verdict', () => {
    expect(judge(answer)).toEqual(verdict);
  });

  test('to a batch: the lines are accepted, searched or kept', async () => {
    const { resolution, sent } = await resolve(LINES, (_part, nth) => (nth === 1 ? answer : { kind: 'accepted' }));
    const isKept = verdict.does === 'keep';
    expect(resolution).toMatchObject({
      resolved: isKept ? 0 : 4,
      acceptedLines: isKept ? 0 : 4,
      rejected: [],
      blocked: isKept ? verdict.blocked : null,
      tooLarge: verdict.does === 'halve',
    });
    expect(sent).toHaveLength(requests);
  });

  test('to a control line of the same fields', async () => {
    const { resolution, sent } = await resolve([LINE], (part) => (part[0] === LINE ? REFUSED : answer));
    expect(sent).toEqual([[LINE], [CONTROL]]);
    expect(resolution.rejected).toHaveLength(confirms ? 1 : 0);
    expect(resolution.resolved).toBe(confirms ? 1 : 0);
    if (verdict.does === 'keep') expect(resolution.blocked).toEqual(verdict.blocked);
  });

  test('to a control line of other fields, after a conflict of types', async () => {
    const conflict: WriteAnswer = { ...REFUSED, conflict: true };
    const { resolution, sent } = await resolve([LINE], (part) => (part[0] === OTHER ? answer : conflict));
    expect(sent).toEqual([[LINE], [CONTROL], [OTHER]]);
    expect(resolution.rejected).toHaveLength(confirms ? 1 : 0);
    if (verdict.does === 'keep') expect(resolution.blocked).toEqual(verdict.blocked);
    else expect(resolution.blocked === null).toBe(confirms);
  });
});

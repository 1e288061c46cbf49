/**
 * The bisection of a refused batch: which lines are accepted, rejected or kept. The database is a model with rejected
 * lines.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { kindOf } from '../../src/core/lines/line-reader.ts';
import type { Sink, WriteAnswer } from '../../src/core/ports.ts';
import { type Resolution, type ResolveOptions, resolveBatch } from '../../src/delivery/resolve.ts';

const never = new AbortController().signal;
const noControl: ResolveOptions = { controlFor: () => null, maxRequests: 1000 };

const REFUSED: WriteAnswer = { kind: 'rejected', message: 'HTTP 422: field type conflict', retention: false };
const LATER: WriteAnswer = { kind: 'later', message: 'HTTP 503', waitMs: 7000 };
const BLOCKED: WriteAnswer = { kind: 'blocked', message: 'HTTP 401', hint: 'influx.token' };

function line(n: number, kind = 'telemetry value'): string {
  const [measurement = '', field = ''] = kind.split(' ');
  return `${measurement},device_id=d,sensor=s ${field}=1 ${n}`;
}

const linesOf = (count: number): string[] => Array.from({ length: count }, (_, n) => line(n));

/** A small model of a database: the lines that it accepts, and the request from which on it fails. */
interface Model {
  readonly isBad?: (line: string) => boolean;
  /** Overrides the answer to the nth request, from 0 on; `null` leaves it. */
  readonly problem?: (nth: number, lines: readonly string[]) => WriteAnswer | null;
  /** Whether the good lines of a refused request are still stored, as in InfluxDB 1 and 2. */
  readonly storesParts?: boolean;
  readonly maxLines?: number;
}

function modelSink(model: Model): Sink & { readonly stored: Set<string>; readonly requests: (readonly string[])[] } {
  const stored = new Set<string>();
  const requests: (readonly string[])[] = [];
  const answer = (lines: readonly string[]): WriteAnswer => {
    const problem = model.problem?.(requests.length - 1, lines) ?? null;
    if (problem !== null) return problem;
    if (lines.length > (model.maxLines ?? Number.POSITIVE_INFINITY)) return { kind: 'too-large', message: 'HTTP 413' };
    const good = lines.filter((text) => model.isBad?.(text) !== true);
    if (good.length === lines.length || model.storesParts === true) for (const text of good) stored.add(text);
    return good.length === lines.length ? { kind: 'accepted' } : REFUSED;
  };
  return {
    name: 'model',
    stored,
    requests,
    write: (lines, signal) => {
      signal.throwIfAborted();
      if (lines.length === 0) return Promise.reject(new Error('an empty request: InfluxDB 3 refuses it'));
      requests.push([...lines]);
      return Promise.resolve(answer(lines));
    },
  };
}

/** Invariants that always hold. */
function checkAlways(resolution: Resolution, lines: readonly string[], sink: ReturnType<typeof modelSink>): void {
  const { resolved, rejected, acceptedLines, requests } = resolution;
  expect(requests).toBe(sink.requests.length);
  expect(acceptedLines + rejected.length).toBe(resolved);
  expect(resolved).toBeLessThanOrEqual(lines.length);
  const indexes = rejected.map(({ index }) => index);
  expect(indexes).toEqual([...new Set(indexes)].sort((a, b) => a - b));
  for (const { index, line: text } of rejected) {
    expect(text).toBe(lines[index]);
    expect(index).toBeLessThan(resolved);
    expect(sink.requests.some((sent) => sent.length === 1 && sent[0] === text)).toBe(true);
  }
  const resolvedGood = lines.slice(0, resolved).filter((_, index) => !indexes.includes(index));
  expect(resolvedGood.filter((text) => !sink.stored.has(text))).toEqual([]);
}

describe('without a problem', () => {
  test('a batch is one request', async () => {
    for (const count of [1, 2, 5000]) {
      const lines = linesOf(count);
      const sink = modelSink({});
      const resolution = await resolveBatch(sink, lines, noControl, never);
      expect(resolution).toEqual({
        resolved: count,
        rejected: [],
        acceptedLines: count,
        blocked: null,
        requests: 1,
        tooLarge: false,
      });
      checkAlways(resolution, lines, sink);
    }
  });

  test('nothing to send is no request', async () => {
    const sink = modelSink({});
    expect(await resolveBatch(sink, [], noControl, never)).toMatchObject({ resolved: 0, blocked: null, requests: 0 });
    expect(sink.requests).toEqual([]);
  });
});

describe('a rejected line', () => {
  for (const count of [2, 3, 5000]) {
    for (const [position, at] of Object.entries({ first: 0, middle: count >> 1, last: count - 1 })) {
      for (const storesParts of [true, false]) {
        test(`the ${position} of ${count} is quarantined and all others arrive (parts stored: ${storesParts})`, async () => {
          const lines = linesOf(count);
          const sink = modelSink({ isBad: (text) => text === lines[at], storesParts });
          const resolution = await resolveBatch(sink, lines, noControl, never);
          expect(resolution).toMatchObject({ resolved: count, acceptedLines: count - 1, blocked: null });
          expect(resolution.rejected).toEqual([
            { index: at, line: lines[at], message: REFUSED.message, retention: false },
          ]);
          expect(resolution.requests).toBeLessThanOrEqual(2 * Math.ceil(Math.log2(count)) + 2);
          checkAlways(resolution, lines, sink);
        });
      }
    }
  }

  test('alone in its batch is rejected only after a control line was accepted once more', async () => {
    const bad = line(1);
    const control = line(0);
    const sink = modelSink({ isBad: (text) => text === bad });
    const resolution = await resolveBatch(sink, [bad], { ...noControl, controlFor: () => control }, never);
    expect(resolution).toMatchObject({ resolved: 1, acceptedLines: 0, blocked: null, requests: 2 });
    expect(resolution.rejected).toHaveLength(1);
    expect(sink.requests).toEqual([[bad], [control]]);
  });

  test('is kept if no control line is accepted', async () => {
    const lines = [line(0, 'telemetry flag'), line(1), line(2)];
    const isBad = (text: string): boolean => text === lines[0];
    for (const control of [null, line(9)]) {
      const sink = modelSink({ isBad });
      const resolution = await resolveBatch(sink, lines, { ...noControl, controlFor: () => control }, never);
      expect(resolution).toMatchObject({
        resolved: 0,
        rejected: [],
        blocked: { message: REFUSED.message, waitMs: null },
      });
      expect(resolution.blocked?.hint).toContain('telemetry flag');
      checkAlways(resolution, lines, sink);
    }
  });

  test('does not block accepted lines before it: they are resolved', async () => {
    const lines = [...linesOf(10), line(10, 'telemetry flag'), ...linesOf(20).slice(11)];
    const sink = modelSink({ isBad: (text) => kindOf(text) === 'telemetry flag' });
    expect(await resolveBatch(sink, lines, noControl, never)).toMatchObject({
      resolved: 10,
      acceptedLines: 10,
      rejected: [],
    });
  });

  test('is reported as refused for its age if it was', async () => {
    const sink = modelSink({
      problem: (_nth, sent) => (sent.includes(line(0)) ? { ...REFUSED, retention: true } : null),
    });
    expect((await resolveBatch(sink, linesOf(2), noControl, never)).rejected).toMatchObject([
      { index: 0, retention: true },
    ]);
  });

  test('among many costs about 2·log2(n) requests each', async () => {
    const lines = linesOf(5000);
    for (const step of [2, 7, 50, 1000]) {
      const sink = modelSink({ isBad: (text) => Number(text.split(' ').at(-1)) % step === 0 });
      const resolution = await resolveBatch(sink, lines, { ...noControl, maxRequests: 100_000 }, never);
      const bad = Math.ceil(5000 / step);
      expect(resolution.rejected).toHaveLength(bad);
      expect(resolution.requests).toBeLessThanOrEqual(bad * (2 * Math.ceil(Math.log2(5000 / bad)) + 3) + 20);
      checkAlways(resolution, lines, sink);
    }
  });

  test('a thousand of them in a row before the first good one are found, with no line known beforehand', async () => {
    const lines = linesOf(3000);
    const sink = modelSink({ isBad: (text) => Number(text.split(' ').at(-1)) < 1000 });
    const resolution = await resolveBatch(sink, lines, { ...noControl, maxRequests: 100_000 }, never);
    expect(resolution).toMatchObject({ resolved: 3000, acceptedLines: 2000, blocked: null });
    expect(resolution.requests).toBeLessThan(1000 * 3 + 50);
  });
});

describe('a conflict of types', () => {
  /** A database that counts what it drops, and has fields of another type in some places. */
  function typedSink(isBad: (text: string) => boolean) {
    return modelSink({
      storesParts: true,
      isBad,
      problem: (_nth, sent) => {
        const dropped = sent.filter(isBad).length;
        return dropped === 0 ? null : { ...REFUSED, dropped, conflict: true };
      },
    });
  }
  const ofKind = (kind: string) => (text: string) => kindOf(text) === kind;
  const withOther = { ...noControl, otherControlFor: () => line(-1) };

  test('of one measurement rejects only its lines: the readings pass', async () => {
    const lines = linesOf(2000).map((text, n) => (n % 100 === 7 ? line(n, 'alert threshold') : text));
    const sink = typedSink(ofKind('alert threshold'));
    const resolution = await resolveBatch(sink, lines, noControl, never);
    expect(resolution).toMatchObject({ resolved: 2000, acceptedLines: 1980, blocked: null });
    expect(resolution.rejected.map(({ line: text }) => text)).toEqual(lines.filter(ofKind('alert threshold')));
  });

  test('in a batch of nothing else rejects the lines after another line was accepted, and not before', async () => {
    const lines = Array.from({ length: 30 }, (_, n) => line(n, 'alert threshold'));
    const sink = typedSink(ofKind('alert threshold'));
    expect(await resolveBatch(sink, lines, withOther, never)).toMatchObject({ resolved: 30, acceptedLines: 0 });
    const kept = await resolveBatch(
      typedSink(() => true),
      lines,
      withOther,
      never,
    );
    expect(kept).toMatchObject({ resolved: 0, rejected: [], blocked: { message: REFUSED.message } });
    const alone = await resolveBatch(
      typedSink(() => true),
      lines,
      noControl,
      never,
    );
    expect(alone).toMatchObject({ resolved: 0, rejected: [], blocked: { message: REFUSED.message } });
  });

  test('of all readings rejects them after another line was accepted: the rest continues', async () => {
    const lines = linesOf(500).map((text, n) => (n % 100 === 7 ? line(n, 'device online') : text));
    for (const otherControlFor of [() => line(-1, 'device online'), () => null]) {
      const sink = typedSink(ofKind('telemetry value'));
      const resolution = await resolveBatch(sink, lines, { ...noControl, otherControlFor }, never);
      expect(resolution).toMatchObject({ resolved: 500, acceptedLines: 5, blocked: null });
      expect(resolution.rejected).toHaveLength(495);
    }
    const nothing = await resolveBatch(
      typedSink(() => true),
      lines,
      noControl,
      never,
    );
    expect(nothing).toMatchObject({ resolved: 0, rejected: [], blocked: { message: REFUSED.message } });
  });

  test('of a shard needs a few requests for each batch, by the number that the database reports as dropped', async () => {
    const control = { ...noControl, controlFor: () => line(-1) };
    const isBad = (text: string): boolean =>
      Number(text.split(' ').at(-1)) >= 1234 && Number(text.split(' ').at(-1)) < 91_234;
    let requests = 0;
    let rejected = 0;
    for (let from = 0; from < 100_000; from += 5000) {
      const sink = typedSink(isBad);
      const lines = Array.from({ length: 5000 }, (_, n) => line(from + n));
      const resolution = await resolveBatch(sink, lines, control, never);
      expect(resolution).toMatchObject({ resolved: 5000, blocked: null });
      requests += resolution.requests;
      rejected += resolution.rejected.length;
    }
    expect(rejected).toBe(90_000);
    // Two for a batch that is dropped completely, and a search at either end.
    expect(requests).toBeLessThan(20 * 2 + 2 * 40);
  });

  test('that the database counts wrongly is searched line by line', async () => {
    const lines = linesOf(64);
    const isBad = (text: string): boolean => text === lines[20] || text === lines[21];
    const sink = modelSink({
      isBad,
      problem: (_nth, sent) => (sent.some(isBad) ? { ...REFUSED, dropped: 7, conflict: true } : null),
    });
    const resolution = await resolveBatch(sink, lines, noControl, never);
    expect(resolution.rejected.map(({ index }) => index)).toEqual([20, 21]);
  });
});

describe('a destination at fault', () => {
  test('that refuses everything is blocked within a few requests, and no line is rejected', async () => {
    for (const count of [1, 2, 5000]) {
      for (const control of [null, line(-1)]) {
        const sink = modelSink({ isBad: () => true });
        const resolution = await resolveBatch(sink, linesOf(count), { ...noControl, controlFor: () => control }, never);
        expect(resolution).toMatchObject({ resolved: 0, acceptedLines: 0, rejected: [] });
        expect(resolution.blocked).toMatchObject({ message: REFUSED.message });
        expect(resolution.requests).toBeLessThan(40);
      }
    }
  });

  test('that begins to refuse everything during a bisection rejects no good line', async () => {
    const lines = linesOf(500);
    const isBad = (text: string): boolean => text === lines[200] || text === lines[201] || text === lines[400];
    for (let from = 0; from < 45; from += 1) {
      const sink = modelSink({ isBad, problem: (nth) => (nth >= from ? REFUSED : null) });
      const resolution = await resolveBatch(sink, lines, { ...noControl, controlFor: () => line(-1) }, never);
      expect(resolution.rejected.filter(({ line: text }) => !isBad(text))).toEqual([]);
      checkAlways(resolution, lines, sink);
    }
  });

  test('that refuses a line which it accepted a moment ago gets no other control line', async () => {
    const lines = linesOf(8);
    const sink = modelSink({ problem: (nth) => (nth === 1 ? null : REFUSED) });
    const resolution = await resolveBatch(sink, lines, { ...noControl, controlFor: () => line(9) }, never);
    expect(resolution).toMatchObject({
      resolved: 4,
      acceptedLines: 4,
      rejected: [],
      blocked: { message: REFUSED.message },
    });
    // The control is the last line that was accepted, then the search ends.
    expect(sink.requests.at(-1)).toEqual([lines[3]]);
    expect(sink.requests.flat()).not.toContain(line(9));
  });

  test.each([LATER, BLOCKED])('that is $kind at any request keeps the rest, in order', async (problem) => {
    const lines = linesOf(64);
    const isBad = (text: string): boolean => text === lines[5] || text === lines[40];
    for (let from = 0; from < 20; from += 1) {
      const sink = modelSink({ isBad, problem: (nth) => (nth >= from ? problem : null) });
      const resolution = await resolveBatch(sink, lines, noControl, never);
      if (resolution.blocked !== null)
        expect(resolution.blocked.message).toBe((problem as { message: string }).message);
      else expect(resolution.resolved).toBe(64);
      expect(resolution.requests).toBeLessThanOrEqual(from + 1);
      expect(resolution.rejected.filter(({ line: text }) => !isBad(text))).toEqual([]);
      checkAlways(resolution, lines, sink);
    }
  });

  test('passes on the wait that the server requested', async () => {
    const waiting = await resolveBatch(modelSink({ problem: () => LATER }), linesOf(3), noControl, never);
    expect(waiting.blocked).toMatchObject({ message: 'HTTP 503', needsPerson: false, waitMs: 7000 });
    expect(waiting.blocked?.hint).toContain('by itself');
    const held = await resolveBatch(modelSink({ problem: () => BLOCKED }), linesOf(3), noControl, never);
    const blocked = { message: 'HTTP 401', hint: 'influx.token', isAnswer: true, needsPerson: true, waitMs: null };
    expect(held.blocked).toEqual(blocked);
  });

  test('whose known line has grown too old for it is tried with others of the batch', async () => {
    const lines = linesOf(40);
    const old = line(-5);
    const sink = modelSink({ isBad: (text) => text === old || Number(text.split(' ').at(-1)) < 8 });
    const resolution = await resolveBatch(sink, lines, { ...noControl, controlFor: () => old }, never);
    expect(resolution).toMatchObject({ resolved: 40, acceptedLines: 32, blocked: null });
    expect(resolution.rejected.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });
});

describe('requests that are too large', () => {
  test('are halved until they pass, in order', async () => {
    const lines = linesOf(1000);
    const sink = modelSink({ maxLines: 300 });
    const resolution = await resolveBatch(sink, lines, noControl, never);
    expect(resolution).toMatchObject({
      resolved: 1000,
      acceptedLines: 1000,
      blocked: null,
      requests: 7,
      tooLarge: true,
    });
    expect(sink.requests.filter((sent) => sent.length <= 300).flat()).toEqual(lines);
  });

  test('a single line that is too large is rejected when any other passes', async () => {
    const lines = [line(0), line(1, 'telemetry text'), line(2)];
    const problem: Model['problem'] = (_nth, sent) =>
      sent.includes(line(1, 'telemetry text')) ? { kind: 'too-large', message: 'HTTP 413' } : null;
    const resolution = await resolveBatch(modelSink({ problem }), lines, noControl, never);
    expect(resolution).toMatchObject({
      resolved: 3,
      acceptedLines: 2,
      rejected: [{ index: 1, message: 'HTTP 413' }],
      blocked: null,
    });
  });

  test('a limit below every line blocks the destination', async () => {
    const sink = modelSink({ maxLines: 0 });
    const resolution = await resolveBatch(sink, linesOf(100), { ...noControl, controlFor: () => line(-1) }, never);
    expect(resolution).toMatchObject({ resolved: 0, rejected: [], blocked: { message: 'HTTP 413' } });
    expect(resolution.blocked?.hint).toContain('raise the request size limit');
    expect(resolution.requests).toBeLessThan(40);
  });
});

describe('long searches and aborts', () => {
  test('an interrupted search keeps its findings, and the next calls finish it', async () => {
    const lines = linesOf(400);
    const isBad = (text: string): boolean => Number(text.split(' ').at(-1)) % 3 === 0;
    let rest: readonly string[] = lines;
    const bad: string[] = [];
    for (let calls = 0; rest.length > 0; calls += 1) {
      expect(calls).toBeLessThan(400);
      const sink = modelSink({ isBad });
      const resolution = await resolveBatch(sink, rest, { ...noControl, maxRequests: 10 }, never);
      checkAlways(resolution, rest, sink);
      expect(resolution.blocked).toBeNull();
      expect(resolution.resolved).toBeGreaterThan(0);
      expect(resolution.requests).toBeLessThan(40);
      bad.push(...resolution.rejected.map(({ line: text }) => text));
      rest = rest.slice(resolution.resolved);
    }
    expect(bad).toEqual(lines.filter(isBad));
  });

  test('a call resolves one line at least, however few requests it is given', async () => {
    const lines = linesOf(100);
    const sink = modelSink({ isBad: (text) => text === lines[0] });
    const resolution = await resolveBatch(sink, lines, { ...noControl, maxRequests: 1 }, never);
    expect(resolution.resolved).toBeGreaterThan(0);
    expect(resolution.blocked).toBeNull();
  });

  test('an abort rejects with its reason, at whichever request', async () => {
    const lines = linesOf(64);
    for (let at = 0; at < 8; at += 1) {
      const controller = new AbortController();
      const problem = (nth: number): null => {
        if (nth === at) controller.abort(new Error('stopping'));
        return null;
      };
      const sink = modelSink({ isBad: (text) => text === lines[33] || text === lines[63], problem });
      await expect(resolveBatch(sink, lines, noControl, controller.signal)).rejects.toThrow('stopping');
      expect(sink.requests.length).toBe(at + 1);
    }
  });
});

describe('against a model', () => {
  const kinds = ['telemetry value', 'telemetry flag', 'device online'];
  const anyBatch = fc
    .array(fc.record({ kind: fc.constantFrom(...kinds), bad: fc.boolean() }), { minLength: 1, maxLength: 60 })
    .map((facts) => facts.map(({ kind, bad }, n) => ({ text: line(n, kind), bad })));

  test('exactly the bad lines are rejected if the destination works and control lines pass', async () => {
    await fc.assert(
      fc.asyncProperty(
        anyBatch,
        fc.boolean(),
        fc.integer({ min: 1, max: 80 }),
        async (batch, storesParts, maxLines) => {
          const lines = batch.map(({ text }) => text);
          const bad = new Set(batch.filter((fact) => fact.bad).map(({ text }) => text));
          const sink = modelSink({ isBad: (text) => bad.has(text), storesParts, maxLines });
          const controlFor = (text: string): string => line(99, kindOf(text));
          const resolution = await resolveBatch(sink, lines, { ...noControl, controlFor }, never);
          checkAlways(resolution, lines, sink);
          expect(resolution).toMatchObject({ resolved: lines.length, blocked: null });
          expect(resolution.rejected.map(({ line: text }) => text)).toEqual(lines.filter((text) => bad.has(text)));
        },
      ),
      { numRuns: 500 },
    );
  });

  test('no good line is ever rejected and none is lost, whatever fails from any request on', async () => {
    const problem = fc.constantFrom(LATER, BLOCKED, REFUSED, { kind: 'too-large', message: '413' } as const);
    await fc.assert(
      fc.asyncProperty(anyBatch, problem, fc.nat(60), async (batch, answer, from) => {
        const lines = batch.map(({ text }) => text);
        const bad = new Set(batch.filter((fact) => fact.bad).map(({ text }) => text));
        const sink = modelSink({ isBad: (text) => bad.has(text), problem: (nth) => (nth >= from ? answer : null) });
        const options = { ...noControl, controlFor: (text: string) => line(99, kindOf(text)) };
        const resolution = await resolveBatch(sink, lines, options, never);
        checkAlways(resolution, lines, sink);
        expect(resolution.rejected.filter(({ line: text }) => !bad.has(text))).toEqual([]);
        if (resolution.resolved < lines.length) expect(resolution.blocked).not.toBeNull();
      }),
      { numRuns: 1000 },
    );
  });
});

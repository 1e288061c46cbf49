/** Calls from one part of a sync to another that is created later. */
import { describe, expect, test } from 'vitest';
import { createHooks, type DeferredParts } from '../../src/app/hooks.ts';
import type { Planning } from '../../src/scheduler/planning.ts';

describe('calls to parts that are created later', () => {
  test('throw before those parts exist, and reach them afterwards', async () => {
    const later: DeferredParts = { planned: null, deliverers: [] };
    const hooks = createHooks(later);
    const { signal } = new AbortController();
    const early = 'a part of the sync was called before it was created';
    expect(() => hooks.noteLimitMismatch()).toThrow(early);
    expect(() => hooks.noteDone(null, { lane: 'live', stream: 'telemetry' })).toThrow(early);
    await expect(hooks.noteRejected(signal)).rejects.toThrow(early);
    const asked: AbortSignal[] = [];
    const checkPlan = (given: AbortSignal): Promise<void> => Promise.resolve(void asked.push(given));
    later.planned = { planning: {} as Planning, checkPlan, checkForFall: () => undefined };
    await hooks.noteRejected(signal);
    expect(asked).toEqual([signal]);
  });

  test('check the clock before an answer is planned with', () => {
    const fallen = new Error('the clock fell back');
    const checkForFall = (): void => {
      throw fallen;
    };
    const planned = { planning: {} as Planning, checkPlan: () => Promise.resolve(), checkForFall };
    const hooks = createHooks({ planned, deliverers: [] });
    expect(() => hooks.noteDone(null, { lane: 'live', stream: 'telemetry' })).toThrow(fallen);
  });

  test('wake every delivery, also one that was opened since', () => {
    const woken: string[] = [];
    const deliverers = [{ notify: () => void woken.push('one') }];
    const hooks = createHooks({ planned: null, deliverers });
    hooks.noteArchived();
    deliverers.push({ notify: () => void woken.push('two') });
    hooks.noteArchived();
    expect(woken).toEqual(['one', 'one', 'two']);
  });
});

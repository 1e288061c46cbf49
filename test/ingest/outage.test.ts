import { describe, expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { ApiFault, type ApiFaultKind } from '../../src/core/faults.ts';
import { createOutageWatch } from '../../src/ingest/outage.ts';

/** A service that was never answered, and what is told of it. */
function rig() {
  const told: string[] = [];
  const clock = { nowMs: () => 0, monoMs: () => 1_000_000, sleep: async () => {} };
  const observe = ({ type }: AppEvent): void => void told.push(type);
  const outage = createOutageWatch({ clock, random: () => 0.5, observe });
  const fails = (kind: ApiFaultKind): void => outage.note(new ApiFault(kind, 'it fails', { request: 'GET /devices' }));
  return { told, fails, answers: outage.answered };
}

describe('a service in trouble', () => {
  test('is told of, and when it is over', () => {
    const { told, fails, answers } = rig();
    fails('server-fault');
    answers('server-fault');
    expect(told).toEqual(['service-trouble']);
    answers(null);
    expect(told).toEqual(['service-trouble', 'service-back']);
    answers(null);
    expect(told).toHaveLength(2);
  });

  test('is not one that says that the allowance is spent, however often', () => {
    const { told, fails, answers } = rig();
    for (let time = 0; time < 5; time += 1) fails('throttled');
    answers(null);
    expect(told).toEqual([]);
  });

  test('that is down behind a 429 is told all the same', () => {
    const { told, fails, answers } = rig();
    fails('throttled');
    fails('unreachable');
    answers(null);
    expect(told).toEqual(['service-trouble', 'service-back']);
  });
});

/**
 * Work of a command with the deliveries and the maintenance beside it, in virtual time.
 */
import { expect, test } from 'vitest';
import type { MaintenanceParts } from '../../../src/archive/maintenance.ts';
import { createSpaceWatch } from '../../../src/archive/room.ts';
import {
  destinationStatuses,
  type Outcome,
  outcomeAfterDelivery,
  runBesideDeliveries,
} from '../../../src/commands/shared/alone.ts';
import { repeat } from '../../../src/core/async.ts';
import { MINUTE_MS, SECOND_MS } from '../../../src/core/time.ts';
import type { Deliverer } from '../../../src/delivery/deliver.ts';
import type { SyncContext } from '../../../src/ingest/context.ts';
import { scratchStore } from '../../store/support.ts';
import { createVirtualClock } from '../../support/virtual-clock.ts';

const STATE_FAILED = new Error('the state cannot be written');

interface Beside extends Disposable {
  readonly clock: ReturnType<typeof createVirtualClock>;
  readonly parts: { readonly deliverers: readonly Deliverer[]; readonly maintenance: MaintenanceParts };
  /** How many steps the delivery and the maintenance have taken. */
  readonly steps: { delivered: number; maintained: number };
}

/** @param failsAt the step at which the delivery fails. */
function openBeside(failsAt = Number.POSITIVE_INFINITY): Beside {
  const clock = createVirtualClock(Date.UTC(2026, 5, 1));
  const state = scratchStore({ nowMs: clock.nowMs });
  const steps = { delivered: 0, maintained: 0 };
  const limits = { maxBytes: null, minFreeBytes: 0 };
  const disk = { directory: '/data', freeBytes: () => null };
  const space = createSpaceWatch({ maintenance: state.maintenance, disk, clock, observe: () => {}, limits });
  const maintenance: MaintenanceParts = {
    store: state.store,
    maintenance: state.maintenance,
    space: {
      ...space,
      check: () => {
        steps.maintained += 1;
        return space.check();
      },
    },
    destinations: () => [],
    limits: { retentionMs: MINUTE_MS, maxBytes: null },
    clock,
    observe: () => {},
    mayBegin: async () => {},
  };
  const deliver = (): number => {
    steps.delivered += 1;
    if (steps.delivered >= failsAt) throw STATE_FAILED;
    return SECOND_MS;
  };
  const delivery = { run: async (signal: AbortSignal) => await repeat(clock, deliver, signal) };
  return {
    clock,
    parts: { deliverers: [delivery as Partial<Deliverer> as Deliverer], maintenance },
    steps,
    [Symbol.dispose]: () => state[Symbol.dispose](),
  };
}

test('has both beside it for as long as it takes', async () => {
  using beside = openBeside();
  const { clock, parts, steps } = beside;
  const work = async (stop: AbortSignal): Promise<string> => {
    await clock.sleep(MINUTE_MS, stop);
    return 'done';
  };
  const ended = runBesideDeliveries(parts, work, new AbortController().signal);
  expect(await ended).toBe('done');
  expect(steps.delivered).toBeGreaterThanOrEqual(60);
  expect(steps.delivered).toBeLessThan(70);
  expect(steps.maintained).toBeGreaterThanOrEqual(12);
});

test('answers an abort itself, however long that takes', async () => {
  using beside = openBeside();
  const { clock, parts } = beside;
  const stop = new AbortController();
  const work = async (signal: AbortSignal): Promise<string> => {
    await clock.sleep(MINUTE_MS, signal).catch(() => {});
    await clock.sleep(SECOND_MS);
    return 'stopped half-way';
  };
  const ended = runBesideDeliveries(parts, work, stop.signal);
  await clock.sleep(SECOND_MS);
  stop.abort(new Error('SIGTERM'));
  expect(await ended).toBe('stopped half-way');
});

test('ends with the error of the delivery, and is stopped', async () => {
  using beside = openBeside(5);
  const { clock, parts } = beside;
  let isStopped = false;
  const work = async (signal: AbortSignal): Promise<string> => {
    await clock.sleep(MINUTE_MS, signal).catch(() => {
      isStopped = true;
    });
    return 'stopped half-way';
  };
  const ended = runBesideDeliveries(parts, work, new AbortController().signal).catch((error: unknown) => error);
  expect(await ended).toBe(STATE_FAILED);
  expect(isStopped).toBe(true);
});

/** A destination for which points wait. */
const WAITING = {
  destinationId: 1,
  name: 'influx',
  pendingLines: () => 6,
  deliveredLines: () => 100,
  blockedReason: () => null,
  notify: () => {},
} as Partial<Deliverer> as Deliverer;

test('points that a daemon archives once the work is delivered are no part of the work', () => {
  const store = {
    backlog: () => ({ pendingLines: 6, quarantined: 0 }),
    missingSums: () => [],
  } as Partial<SyncContext['store']> as SyncContext['store'];
  const pendingAt = (outcome: Outcome) => destinationStatuses(store, [WAITING], [0], outcome)[0]?.pending_points;
  expect([pendingAt('complete'), pendingAt('gaps_remain')]).toEqual([0, 0]);
  expect([pendingAt('stalled'), pendingAt('interrupted')]).toEqual([6, 6]);
});

test.each(['complete', 'gaps_remain'] as const)('%s work that cannot be delivered has stalled', async (outcome) => {
  const clock = createVirtualClock(0);
  const endsAt = (block: number) => ({
    endOf: () => ({ block, line: 0 }),
    position: () => ({ block: 4, line: 0 }),
  });
  const ended = async (block: number) => {
    const context = { clock, store: endsAt(block) } as unknown as SyncContext;
    return await outcomeAfterDelivery({ context, deliverers: [WAITING] }, outcome, new AbortController().signal);
  };
  expect([await ended(4), await ended(5)]).toEqual([outcome, 'stalled']);
});

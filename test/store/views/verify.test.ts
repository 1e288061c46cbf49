/**
 * The state as `--verify` looks at it beside a daemon that delivers, compacts and clears meanwhile.
 */
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { DAY_MS } from '../../../src/core/time.ts';
import { openVerifyState } from '../../../src/store/views/verify.ts';
import { pageCommit, type ScratchStore, scratchStore } from '../support.ts';

const line = (n: number): string => `telemetry,device_id=d,sensor=s value=${n} ${n}`;

function commitPages({ store }: ScratchStore, n: number): void {
  const { revision } = store.telemetry('d');
  store.commitPage(pageCommit({ deviceId: 'd', revision, lines: [line(n)], firstNs: BigInt(n), lastNs: BigInt(n) }));
}

test('points delivered after the positions were read do not count as acknowledged', () => {
  const at = { ms: 1000 };
  using state = scratchStore({ nowMs: () => at.ms });
  const { id } = state.store.useDestination('influx', 'x');
  const deliver = (): void => {
    const from = state.store.position(id, 'live');
    const to = state.store.endOf('live');
    state.store.acknowledge({ destinationId: id, lane: 'live', from, to, rejected: [], missing: [], atMs: 1 });
  };
  const signature = (): void => {
    at.ms += DAY_MS;
    const claims = { configured: [id], active: [id] };
    for (const group of state.maintenance.compactionGroups(at.ms))
      while (state.maintenance.compact(group, claims, at.ms));
  };
  for (let n = 0; n < 10; n += 1, at.ms += 10) commitPages(state, n);
  deliver();
  const looked = openVerifyState(dirname(state.file));
  if (looked === null) throw new Error('no state');
  const acknowledged = (positions: ReturnType<typeof looked.positions>): string[] =>
    looked
      .range({ deviceId: 'd', destinationId: id, from: 0n, to: 100n }, positions)
      .lines.flatMap((each) => (each.isAcknowledged ? [each.line] : []));
  const before = looked.positions(id);
  const first = Array.from({ length: 10 }, (_, n) => line(n));
  for (let n = 10; n < 20; n += 1, at.ms += 10) commitPages(state, n);
  expect(acknowledged(before)).toEqual(first);
  deliver();
  signature();
  expect(state.rows('SELECT seq FROM block')).toHaveLength(1);
  for (const each of acknowledged(before)) expect(first).toContain(each);
  // Looked at anew all of it is.
  expect(acknowledged(looked.positions(id))).toHaveLength(20);
  looked.close();
});

/**
 * A program that dies during maintenance: the state is consistent, and the next process continues with it.
 */
import { afterEach, describe, expect, test } from 'vitest';
import { DAY_MS } from '../../../src/core/time.ts';
import { openStore } from '../../../src/store/store.ts';
import { countEffects, dieAtEffect, Killed, liveOn, mortalCommits } from '../../support/mortality.ts';
import { NO_LIMIT, pageCommit, type Scratch, scratch } from '../support.ts';

afterEach(() => {
  liveOn();
});

/** A state with two destinations: one that has everything, and one that stands in the middle. */
function filled(position: Scratch): { all: string[]; ids: readonly [number, number] } {
  const { store, close } = openStore(position.path, { nowMs: () => DAY_MS });
  const all: string[] = [];
  for (let n = 0n; n < 40n; n += 1n) {
    const [deviceId, lane] = [n % 2n === 0n ? 'a' : 'b', n % 3n === 0n ? 'history' : 'live'] as const;
    const lines = [`telemetry,device_id=${deviceId},sensor=s value=${n} ${n}`];
    const { revision } = store.telemetry(deviceId);
    store.commitPage(pageCommit({ deviceId, revision, lane, lines, firstNs: n, lastNs: n }));
    all.push(...lines);
  }
  const ids = [store.useDestination('whole', 'x').id, store.useDestination('half', 'x').id] as const;
  for (const [id, block] of [
    [ids[0], 41],
    [ids[1], 20],
  ] as const) {
    for (const lane of ['live', 'history'] as const) {
      const from = store.position(id, lane);
      store.acknowledge({ destinationId: id, lane, from, to: { block, line: 0 }, rejected: [], missing: [], atMs: 1 });
    }
  }
  close();
  return { all, ids };
}

/** One run of maintenance: compacts, skips the second destination, clears what is acknowledged then. */
function live(position: Scratch, [whole, half]: readonly [number, number]): void {
  const { maintenance, close } = openStore(position.path, { nowMs: () => DAY_MS });
  try {
    const configured = [whole, half];
    for (const group of maintenance.compactionGroups(3 * DAY_MS))
      while (maintenance.compact(group, { configured, active: configured }, 3 * DAY_MS));
    if (maintenance.stall(half)?.skippedTo == null) {
      maintenance.saveStall(half, {
        position: maintenance.positionText(half),
        stalledMs: 1,
        seenMs: 1,
        skippedTo: maintenance.endOfLog(),
      });
    }
    while (!maintenance.skipBacklog(half));
    maintenance.vacuum(8);
    while (maintenance.clear({ configured, active: [whole], beforeMs: 2 * DAY_MS }).blocks > 0);
  } finally {
    close();
  }
}

/**
 * Lines that the second destination neither gets nor has as missing points, and those that are still there for a new
 * one.
 */
function missing(position: Scratch, { all, ids }: ReturnType<typeof filled>): string[] {
  const { store, close } = openStore(position.path);
  const received = (['live', 'history'] as const).flatMap(
    (lane) => store.read(lane, store.position(ids[1], lane), NO_LIMIT).lines,
  );
  const first = all.slice(0, 19);
  const lacks = store.missing(ids[1]);
  const fresh = store.useDestination('fresh', 'x').id;
  const offered = (['live', 'history'] as const).flatMap(
    (lane) => store.read(lane, { block: 0, line: 0 }, NO_LIMIT).lines,
  );
  const gone = store.missing(fresh);
  close();
  const isIn = (spans: typeof lacks, line: string): boolean => {
    const at = BigInt(line.slice(line.lastIndexOf(' ') + 1));
    return spans.some((lack) => line.includes(`device_id=${lack.deviceId},`) && lack.fromNs <= at && at < lack.toNs);
  };
  const ofHalf = all.filter((line) => !first.includes(line) && !received.includes(line) && !isIn(lacks, line));
  const twice = offered.filter((line, index) => offered.indexOf(line) !== index);
  const both = offered.filter((line) => isIn(gone, line));
  // A line that is reported both as received and as missing is an error too.
  const reported = received.filter((line) => isIn(lacks, line));
  return [
    ...ofHalf,
    ...reported,
    ...twice,
    ...both,
    ...all.filter((line) => !offered.includes(line) && !isIn(gone, line)),
  ];
}

describe('a program that dies during maintenance', () => {
  test('leaves nothing half done, at whichever effect it dies, and the next one has the same result', () => {
    using _mortal = mortalCommits();
    using whole = scratch();
    const story = filled(whole);
    countEffects();
    live(whole, story.ids);
    const effects = liveOn();
    expect(effects).toBeGreaterThan(12);
    expect(missing(whole, story)).toEqual([]);
    for (let nth = 1; nth <= effects; nth += 1) {
      using position = scratch();
      const { all, ids } = filled(position);
      dieAtEffect(nth);
      expect(() => live(position, ids)).toThrow(Killed);
      liveOn();
      expect(missing(position, { all, ids }), `after effect ${nth}`).toEqual([]);
      live(position, ids);
      expect(missing(position, { all, ids }), `after effect ${nth}, and again`).toEqual([]);
    }
  });
});

/**
 * The removal of a device from the state: what goes, what stays of others, that none of its data can be committed any
 * more, and that it is completed after a kill at any moment.
 */
import { existsSync, readFileSync } from 'node:fs';
import { afterEach, describe, expect, test } from 'vitest';
import { ForgottenError, type PageCommit, StaleStateError } from '../../../src/core/state/telemetry.ts';
import { type OpenStore, openStore } from '../../../src/store/store.ts';
import { countEffects, dieAtEffect, Killed, liveOn, mortalCommits } from '../../support/mortality.ts';
import { device, pageCommit, readAll, type Scratch, scratch, scratchStore } from '../support.ts';

afterEach(() => {
  liveOn();
});

const DOOMED = 'hub CANARY-7f3a91';
const TAG = DOOMED.replace(' ', '\\ ');
const LANES = ['live', 'history'] as const;

/** A value that nothing else has, which zstd leaves as it is: there is nothing in it to compress. */
const noise = (n: number): string => {
  let x = (n + 1) * 2_654_435_761;
  return Array.from({ length: 12 }, () => {
    x = (Math.imul(x ^ (x >>> 15), 2_246_822_519) + n) >>> 0;
    return x.toString(36);
  }).join('');
};

const lineOf = (deviceId: string, n: number): string =>
  `telemetry,device_id=${deviceId.replace(' ', '\\ ')},sensor=s text="${noise(n)}" ${n}`;

/** The tag of a device in a line. */
const tagOf = (deviceId: string): string => `device_id=${deviceId.replace(' ', '\\ ')}`;

/** The nth page of a device, with everything that a commit can carry. */
function commitPage({ store }: Pick<OpenStore, 'store'>, deviceId: string, n: number): void {
  const at = BigInt(n);
  const changes: Partial<PageCommit> = {
    deviceId,
    revision: store.telemetry(deviceId).revision,
    lane: n % 3 === 0 ? 'history' : 'live',
    lines: [lineOf(deviceId, n)],
    firstNs: at,
    lastNs: at,
    newReadings: 1,
    sideLines: n % 5 === 0 ? [`coverage_hour,${tagOf(deviceId)} readings=1 ${n}`] : [],
    offsets: n === 3 ? [{ sensor: 's', recordedNs: 3n, field: 'value=1', writtenNs: 4n }] : [],
    daySums: [{ day: n % 3, readings: 1, points: 1, hashHigh: n, hashLow: n }],
    covered: [{ from: 0n, to: at + 1n, first: null, last: { at, digest: `digest ${deviceId}` } }],
    hourReadings: new Map([[n, 1]]),
    rejected: n === 4 ? [{ reason: 'odd', record: `{"odd":"${deviceId}"}` }] : [],
    ...(n === 6 ? { late: { count: 1, worstMs: 5, record: { readings: 1, worstMs: 5, gracePeriodMs: 9 } } } : {}),
  };
  store.commitPage(pageCommit(changes));
}

/** All kinds of data of two devices, one of which is to be removed. */
function fill({ store, ledger }: Pick<OpenStore, 'store' | 'ledger'>, blocks = 30): void {
  const atMs = 1_700_000_000_000;
  const both = [DOOMED, 'stays'];
  const listed = both.map((deviceId) => ({
    record: device(deviceId, { name: `name of ${deviceId}` }),
    name: `name of ${deviceId}`,
    line: `device,${tagOf(deviceId)} online=1 ${atMs}000000`,
    digest: 'x',
  }));
  store.saveInventory({ listed, missing: [], atMs });
  for (let n = 0; n < blocks; n += 1) {
    for (const deviceId of both) commitPage({ store }, deviceId, n);
    const lines = both.map((deviceId) => `coverage,${tagOf(deviceId)} gap=0 ${n}`);
    store.append(n % 2 === 0 ? lines : lines.toReversed(), 'live');
  }
  const alert = { deviceName: null, kind: 'k', sensor: 's', openedAt: 1n, stateDigest: 'd', stateNs: 1n, facts: null };
  store.alerts.keep(
    [
      { ...alert, alertId: 1, deviceId: DOOMED, deviceName: `name of ${DOOMED}`, isOpen: true, isListed: true },
      { ...alert, alertId: 2, deviceId: 'stays', isOpen: false, isListed: true },
    ],
    [`alert,alert_id=1,device_id=${TAG} threshold=1 1`, 'alert,alert_id=2,device_id=stays threshold=1 1'],
  );
  store.nameGap({ deviceId: DOOMED, fromNs: 1n, toNs: 2n, reason: 'beyond_plan', retryAtMs: 1 });
  store.saveMissedOverlap(DOOMED, { at: 1n, sinceMs: 1, isGone: false });
  store.saveReread(DOOMED, 5);
  store.quarantine.add('alerts', [{ reason: 'odd', record: `{"device_id":"${DOOMED}"}` }], 1);
  ledger.recordOutcome(ledger.book(1, { lane: 'live', stream: 'telemetry', deviceId: DOOMED }), {
    status: 200,
    fault: null,
  });
  store.saveFact('alerts_left_out', JSON.stringify(['another', DOOMED]));
}

/** A destination that has acknowledged all but some blocks, with lines of the device in its quarantine and its missing points. */
function deliver({ store }: Pick<OpenStore, 'store'>, name: string, except = 0): number {
  const { id } = store.useDestination(name, `identity of ${name}`);
  for (const lane of LANES) {
    const to = { block: Math.max(0, store.endOf(lane).block - except), line: 0 };
    const refused = [
      { line: lineOf(DOOMED, 1), message: `no: ${DOOMED}` },
      { line: lineOf('stays', 1), message: 'no' },
    ];
    const lack = { fromNs: 1n, toNs: 9n, reason: 'cleared', points: 3 } as const;
    const lacks = [
      { ...lack, deviceId: DOOMED },
      { ...lack, deviceId: 'stays' },
    ];
    store.acknowledge({
      destinationId: id,
      lane,
      from: store.position(id, lane),
      to,
      rejected: refused,
      missing: lacks,
      atMs: 1,
    });
  }
  return id;
}

/** All steps of it. */
function forget({ store }: Pick<OpenStore, 'store'>, configured: readonly number[], keepsAlerts = false): string {
  store.forgetting.begin(DOOMED, keepsAlerts);
  for (;;) {
    const { state } = store.forgetting.step(DOOMED, configured);
    if (state === 'going-on') continue;
    store.forgetting.emptyLog();
    return state;
  }
}

/** Tables that hold the device's id in plain text somewhere. */
function traces(open: { rows(sql: string): unknown[] }): string[] {
  const tables = open.rows("SELECT name FROM sqlite_master WHERE type = 'table'") as { name: string }[];
  return tables
    .map(({ name }) => name)
    .filter((name) => name !== 'block' && JSON.stringify(open.rows(`SELECT * FROM "${name}"`)).includes('CANARY'));
}

const linesOf = (open: Pick<OpenStore, 'store'>): string[] => LANES.flatMap((lane) => [...readAll(open, lane).lines]);

/** The lines that a destination would be sent next. */
function sentNext({ store }: Pick<OpenStore, 'store'>, id: number): string[] {
  const all = { lines: Number.MAX_SAFE_INTEGER, bytes: Number.MAX_SAFE_INTEGER };
  return LANES.flatMap((lane) => [...store.read(lane, store.position(id, lane), all).lines]);
}

describe('a removed device', () => {
  test('is removed from the caches beside the database too', () => {
    using state = scratchStore();
    fill(state);
    const apart = [
      { from: '1', to: '2', devices: [DOOMED, 'stays'] },
      { from: '1', to: '2', devices: null, except: ['stays', DOOMED] },
    ];
    state.store.saveFact('backfilled_apart', JSON.stringify(apart));
    const facts = ['alerts_left_out', 'backfilled_apart'];
    // The writing process has read them before.
    for (const key of facts) expect(state.store.fact(key)).toContain('CANARY');
    forget(state, [], true);
    expect(facts.map((key) => JSON.parse(state.store.fact(key) ?? ''))).toEqual([
      ['another'],
      [
        { from: '1', to: '2', devices: ['stays'] },
        { from: '1', to: '2', devices: null, except: ['stays'] },
      ],
    ]);
  });

  test('no data of the device is left, and no data of others is gone', () => {
    using state = scratchStore();
    fill(state);
    const id = deliver(state, 'influx');
    const others = linesOf(state).filter((line) => !line.includes('CANARY'));
    expect(traces(state).toSorted()).toEqual([
      ...['alert', 'coverage', 'day_sum', 'device', 'device_name', 'device_revision', 'fact', 'gap', 'hour_readings'],
      ...['lateness', 'missed_overlap', 'missing', 'quarantine', 'request', 'reread', 'time_offset'],
    ]);
    expect(state.store.forgetting.hasTraces(DOOMED)).toBe(true);
    expect(forget(state, [id])).toBe('done');
    expect(linesOf(state)).toEqual(others);
    expect(traces(state)).toEqual(['fact']);
    expect(state.store.fact('alerts_left_out'), 'an excluded one is to be read anew when it is not any more').toBe(
      JSON.stringify(['another', DOOMED]),
    );
    expect(state.store.forgetting.hasTraces(DOOMED)).toBe(false);
    expect(state.store.totals()).toMatchObject({ readings: 30, points: 30, lines: others.length });
    expect(state.store.missing(id)).toMatchObject([{ deviceId: 'stays' }]);
    expect(state.store.backlog(id)).toEqual({ pendingLines: 0, quarantined: 1 });
    expect(state.store.alerts.find(1)).toBeNull();
    expect(state.store.alerts.find(2)).not.toBeNull();
  });

  test('the file has none of its bytes any more, also not in earlier free pages', () => {
    using state = scratchStore();
    fill(state, 400);
    const id = deliver(state, 'influx');
    // Lines that were merged or replaced before leave copies in free pages.
    for (const group of state.maintenance.compactionGroups(10 * 86_400_000)) {
      while (state.maintenance.compact(group, { configured: [id], active: [id] }, 10 * 86_400_000));
    }
    const bytes = (): string =>
      ['', '-wal']
        .map((end) => (existsSync(state.file + end) ? readFileSync(state.file + end, 'latin1') : ''))
        .join('');
    const values = Array.from({ length: 400 }, (_, n) => noise(n).slice(0, 20));
    const blocks = state.rows(`SELECT data FROM block WHERE device_id = '${DOOMED}'`) as { data: Buffer }[];
    const pieces = blocks.map(({ data }) => data.subarray(Math.max(0, data.length - 40)).toString('latin1'));
    expect(pieces.length).toBeGreaterThan(1);
    const before = bytes();
    expect(pieces.filter((piece) => before.includes(piece))).toEqual(pieces);
    expect(before).toContain('CANARY');
    state.store.saveFact('alerts_left_out', '[]');
    expect(forget(state, [id])).toBe('done');
    state.store.saveFact('alerts_left_out', '[]');
    state.store.forgetting.emptyLog();
    const after = bytes();
    expect(pieces.filter((piece) => after.includes(piece))).toEqual([]);
    const kept = new Set(linesOf(state).map((line) => /text="([^"]{20})/.exec(line)?.[1]));
    expect(values.filter((value) => after.includes(value) && !kept.has(value))).toEqual([]);
    expect(after.split('CANARY').length - 1, 'but for the fact above').toBeLessThanOrEqual(1);
  });

  test('cleared ranges of the device are removed too', () => {
    using state = scratchStore();
    fill(state);
    const id = deliver(state, 'influx');
    state.maintenance.clear({ configured: [id], active: [id], beforeMs: null });
    expect(traces(state)).toContain('cleared');
    forget(state, [id]);
    expect(traces(state)).toEqual(['fact']);
  });

  test('work for this device alone is cancelled, and work for others stays as before', () => {
    using state = scratchStore();
    fill(state);
    const range = { from: '1', to: '2' };
    const apart = [[DOOMED], [DOOMED, 'stays'], ['stays'], null].map((devices) => ({ ...range, devices }));
    state.store.saveFact('backfilled_apart', JSON.stringify(apart));
    forget(state, [deliver(state, 'influx')]);
    expect(JSON.parse(state.store.fact('backfilled_apart') ?? '')).toEqual(
      [['stays'], ['stays'], null].map((devices) => ({ ...range, devices })),
    );
  });

  test('alerts of one that is not excluded stay known, without it', () => {
    using state = scratchStore();
    fill(state);
    forget(state, [deliver(state, 'influx')], true);
    expect(state.store.alerts.find(1)).toMatchObject({ deviceId: null, deviceName: null, stateDigest: 'd' });
    expect(traces(state)).toEqual([]);
  });

  test('an empty state, and a device that it does not know', () => {
    using state = scratchStore();
    expect(state.store.forgetting.hasTraces('x')).toBe(false);
    expect(state.store.forgetting.unfinished()).toEqual([]);
    expect(state.store.forgetting.step('x', []).state).toBe('done');
    expect(forget(state, [])).toBe('done');
  });
});

describe('a page that was under way', () => {
  test('is not committed, whatever it was computed from, until the device is listed anew', () => {
    using state = scratchStore();
    fill(state);
    const id = deliver(state, 'influx');
    const before = pageCommit({ deviceId: DOOMED, revision: state.store.telemetry(DOOMED).revision });
    state.store.forgetting.begin(DOOMED, false);
    const commitAt = (revision: number) => () =>
      state.store.commitPage({ ...before, revision, lines: [lineOf(DOOMED, 1)], firstNs: 1n, lastNs: 1n });
    expect(commitAt(before.revision)).toThrow(ForgottenError);
    expect(commitAt(state.store.telemetry(DOOMED).revision)).toThrow(ForgottenError);
    state.store.nameGap({ deviceId: DOOMED, fromNs: 1n, toNs: 2n, reason: 'beyond_plan', retryAtMs: 1 });
    state.store.saveReread(DOOMED, 5);
    forget(state, [id]);
    expect(commitAt(0)).toThrow(ForgottenError);
    expect(traces(state)).toEqual(['fact']);
    const listed = [{ record: device(DOOMED), name: 'again', line: null, digest: 'x' }];
    state.store.saveInventory({ listed, missing: [], atMs: 5 });
    const { revision, covered, names } = state.store.telemetry(DOOMED);
    expect([covered, names]).toEqual([[], [{ fromNs: 0n, name: 'again' }]]);
    expect(commitAt(before.revision)).toThrow(StaleStateError);
    commitAt(revision)();
    expect(linesOf(state).filter((line) => line.includes('CANARY'))).toHaveLength(1);
  });

  test('a listing of the device during its removal is committed only afterwards', () => {
    using state = scratchStore();
    fill(state);
    const id = deliver(state, 'influx');
    state.store.forgetting.begin(DOOMED, false);
    const listed = [{ record: device(DOOMED), name: 'again', line: null, digest: 'x' }];
    state.store.saveInventory({ listed, missing: [], atMs: 5 });
    const commitPage = () =>
      state.store.commitPage(pageCommit({ deviceId: DOOMED, revision: state.store.telemetry(DOOMED).revision }));
    expect(commitPage).toThrow(ForgottenError);
    while (state.store.forgetting.step(DOOMED, [id]).state === 'going-on');
    expect(commitPage).not.toThrow();
  });
});

describe('destinations', () => {
  test('unacknowledged lines of a device are counted, and stay until they are acknowledged', () => {
    using state = scratchStore();
    fill(state);
    const whole = deliver(state, 'whole');
    const behind = deliver(state, 'behind', 25);
    const pending = LANES.reduce(
      (sum, lane) => sum + state.store.forgetting.pending(DOOMED, { destinationId: behind, lane, from: 0 }).lines,
      0,
    );
    const waiting = sentNext(state, behind);
    expect(waiting.filter((line) => line.includes('CANARY'))).toHaveLength(pending);
    expect(pending).toBeGreaterThan(5);
    expect(forget(state, [whole, behind])).toBe('waiting');
    expect(sentNext(state, behind), 'the next points to send are unchanged').toEqual(waiting);
    for (const lane of LANES) {
      const to = state.store.endOf(lane);
      const from = state.store.position(behind, lane);
      state.store.acknowledge({ destinationId: behind, lane, from, to, rejected: [], missing: [], atMs: 1 });
    }
    expect(forget(state, [whole, behind])).toBe('done');
    expect(linesOf(state).filter((line) => line.includes('CANARY'))).toEqual([]);
  });

  test('a destination that is not configured any more does not count', () => {
    using state = scratchStore();
    fill(state);
    deliver(state, 'left', 25);
    expect(forget(state, [])).toBe('done');
    expect(linesOf(state).filter((line) => line.includes('CANARY'))).toEqual([]);
  });

  test('one that stands inside of a block stands behind the same line afterwards', () => {
    for (let line = 0; line <= 6; line += 1) {
      using state = scratchStore();
      const own = (n: number): string => `coverage,device_id=${TAG} gap=0 ${n}`;
      const other = (n: number): string => `coverage,device_id=stays gap=0 ${n}`;
      state.store.append([own(1), other(1), own(2), own(3), other(2), other(3)], 'live');
      state.store.append([own(4)], 'live');
      state.store.append([other(4)], 'live');
      const { id } = state.store.useDestination('inside', 'x');
      const to = line === 6 ? { block: 2, line: 0 } : { block: 1, line };
      const from = state.store.position(id, 'live');
      state.store.acknowledge({ destinationId: id, lane: 'live', from, to, rejected: [], missing: [], atMs: 1 });
      const waiting = sentNext(state, id).filter((each) => !each.includes('CANARY'));
      expect(forget(state, [])).toBe('done');
      expect(sentNext(state, id), `behind line ${line}`).toEqual(waiting);
      expect(state.store.backlog(id).pendingLines).toBe(waiting.length);
    }
  });
});

describe('a program that dies while it forgets', () => {
  const life = (place: Scratch): void => {
    const open = openStore(place.path);
    try {
      const ids = open.store.quarantine.destinations().map(({ id }) => id);
      if (open.store.forgetting.hasTraces(DOOMED)) forget(open, ids);
    } finally {
      open.close();
    }
  };
  const filled = (): Scratch => {
    const place = scratch();
    const open = openStore(place.path);
    fill(open, 8);
    deliver(open, 'influx');
    open.close();
    return place;
  };
  const left = (place: Scratch): number => {
    const open = openStore(place.path);
    try {
      expect(open.store.forgetting.unfinished(), 'whoever opens it finishes it').toEqual([]);
      return (
        linesOf(open).filter((line) => line.includes('CANARY')).length + Number(open.store.forgetting.hasTraces(DOOMED))
      );
    } finally {
      open.close();
    }
  };

  test('has forgotten nothing or all of it, as soon as the state is opened again', () => {
    using _mortal = mortalCommits();
    using whole = filled();
    countEffects();
    life(whole);
    const effects = liveOn();
    expect(effects).toBeGreaterThan(8);
    expect(left(whole)).toBe(0);
    const ends = new Set<string>();
    for (let nth = 1; nth <= effects; nth += 1) {
      using place = filled();
      dieAtEffect(nth);
      expect(() => life(place)).toThrow(Killed);
      liveOn();
      const rest = left(place);
      ends.add(rest === 0 ? 'all' : 'nothing');
      expect([0, left(filled())]).toContain(rest);
      life(place);
      expect(left(place), `after effect ${nth}, and again`).toBe(0);
    }
    expect([...ends].toSorted()).toEqual(['all', 'nothing']);
  });
});

/** When the coverage points of devices are written, with the tables of the state in a scratch file and virtual time. */
import { describe, expect, test } from 'vitest';
import { StateFullError } from '../../src/core/archive-room.ts';
import type { CoveredRange } from '../../src/core/coverage.ts';
import type { DeviceRecord } from '../../src/core/records.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, msToNs, nsToMs } from '../../src/core/time.ts';
import type { SyncSettings } from '../../src/ingest/context.ts';
import { wantedNow } from '../../src/ingest/wanted-range.ts';
import { noteCoverage, writeCoveragePoints } from '../../src/scheduler/coverage-points.ts';
import { device, pageCommit, readAll, type ScratchStore, scratchStore } from '../store/support.ts';
import { KEEP_ALL } from '../support/defaults.ts';
import { parseReferenceLine } from '../support/reference-parser.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

const START_MS = Date.UTC(2026, 5, 15, 12, 0, 0);
const SETTLE_MS = 2 * MINUTE_MS;
/** How far the coverage limit is behind the server's time. */
const BEHIND_MS = SETTLE_MS + 1000;

interface Reported {
  readonly minute: number;
  readonly state: unknown;
  /** How many minutes after the start, the grace period left aside. */
  readonly watermark: number | null;
}

/** A state with a clock, and what the loop of the daemon needs. */
function daemon(state: ScratchStore, { excluded = [] as readonly string[] } = {}) {
  const clock = createVirtualClock(START_MS);
  const filter = { ...KEEP_ALL, excludes: ({ deviceId }: DeviceRecord) => excluded.includes(deviceId) };
  const settings = {
    filter,
    gracePeriodMs: SETTLE_MS,
    history: { kind: 'age', ageMs: DAY_MS },
  } as unknown as SyncSettings;
  const time = { nowMs: clock.nowMs, highestPassedMs: clock.nowMs };
  const refused: StateFullError[] = [];
  const has = { room: true, time: true };
  const context = {
    store: state.store,
    clock,
    settings,
    serverClock: { ...time, passedMs: () => (has.time ? clock.nowMs() : null) },
    nextReadingMs: () => null,
    noteArchived: () => undefined,
    checkSpace: () => (has.room ? { ok: true } : { ok: false, reason: 'full' }),
    noteStateFull: (error: StateFullError) => void refused.push(error),
  } as unknown as Parameters<typeof noteCoverage>[0];
  state.store.pinWorkspace({ apiId: 'w', tag: 'w' });
  return { clock, context, refused, has };
}

type Daemon = ReturnType<typeof daemon>;

function list(state: ScratchStore, { clock }: Daemon, ...records: DeviceRecord[]): void {
  const listed = records.map((record) => ({ record, name: record.deviceId, line: null, digest: '' }));
  state.store.saveInventory({ listed, missing: [], atMs: clock.nowMs() });
}

/** A device without a last-seen time in the list: only its coverage counts. */
const mute = (deviceId: string): DeviceRecord => device(deviceId, { lastSeenAt: null });

/** Covers a device from a time to another, in ms since 1970. */
function cover(state: ScratchStore, deviceId: string, fromMs: number, toMs: number): void {
  const { revision } = state.store.telemetry(deviceId);
  const last = { at: msToNs(toMs) - 1n, digest: 'x' };
  const span: CoveredRange = { from: msToNs(fromMs), to: msToNs(toMs), first: null, last };
  state.store.commitPage(pageCommit({ deviceId, revision, covered: [span] }));
}

/** Runs the loop for so many minutes; `each` minute something happens before the look. */
async function run({ clock, context }: Daemon, minutes: number, each: (minute: number) => void): Promise<void> {
  const stop = new AbortController();
  const live = async (): Promise<void> => {
    try {
      for (let minute = 0; minute < minutes; minute += 1) {
        each(minute);
        await clock.sleep(MINUTE_MS);
      }
    } finally {
      stop.abort(new Error('over'));
    }
  };
  const lived = live();
  await expect(writeCoveragePoints(context, stop.signal)).rejects.toThrow('over');
  await lived;
}

/** The points that were written, by device. */
function pointsOf(state: ScratchStore): Map<string, Reported[]> {
  const points = new Map<string, Reported[]>();
  for (const line of readAll(state, 'live').lines) {
    const { measurement, tags, fields, at } = parseReferenceLine(line);
    if (measurement !== 'coverage') continue;
    const watermark = fields.get('watermark_ms');
    const of = points.get(String(tags.get('device_id'))) ?? [];
    of.push({
      minute: Math.round((nsToMs(at) - START_MS) / MINUTE_MS),
      state: fields.get('state'),
      watermark: watermark === undefined ? null : Math.round((Number(watermark) - START_MS + BEHIND_MS) / MINUTE_MS),
    });
    points.set(String(tags.get('device_id')), of);
  }
  return points;
}

const minutesOf = (points: readonly Reported[] = []): number[] => points.map(({ minute }) => minute);

describe('the coverage points', () => {
  test('are written whenever the watermark has moved five minutes', async () => {
    using state = scratchStore();
    const parts = daemon(state);
    list(state, parts, mute('a'));
    await run(parts, 31, () => cover(state, 'a', START_MS - DAY_MS, parts.clock.nowMs() - BEHIND_MS));
    const points = pointsOf(state).get('a') ?? [];
    expect(minutesOf(points)).toEqual([0, 5, 10, 15, 20, 25, 30]);
    expect(points.every(({ watermark, minute, state: reported }) => watermark === minute && reported === 'live')).toBe(
      true,
    );
  });

  test('are written within 15 minutes where nothing moves, with the watermark where it stands', async () => {
    using state = scratchStore();
    const parts = daemon(state);
    list(state, parts, mute('a'));
    await run(parts, 60, (minute) => {
      if (minute < 2) cover(state, 'a', START_MS - DAY_MS, parts.clock.nowMs() - BEHIND_MS);
    });
    const points = pointsOf(state).get('a') ?? [];
    const gaps = points.slice(1).map(({ minute }, index) => minute - (points[index]?.minute ?? 0));
    expect(Math.max(...gaps)).toBeLessThanOrEqual(15);
    expect(points.length).toBeLessThan(8);
    expect(points.at(-1)).toMatchObject({ state: 'catching-up', watermark: 1 });
  });

  test('are written again though the last one was made by a clock that was a year ahead', async () => {
    using state = scratchStore();
    const parts = daemon(state);
    list(state, parts, mute('a'));
    const atNs = msToNs(START_MS + 366 * DAY_MS);
    state.store.saveCoveragePoints([
      { deviceId: 'a', state: 'live', watermarkNs: null, atNs, line: 'coverage,n=1 v=1 1' },
    ]);
    await run(parts, 20, () => {});
    expect(minutesOf(pointsOf(state).get('a'))).toContain(0);
  });

  test('have no watermark until the device was covered up to the present, nor in its initial sync', async () => {
    using state = scratchStore();
    const parts = daemon(state);
    list(state, parts, mute('a'), mute('initial'), mute('filled'));
    await run(parts, 40, (minute) => {
      const toMs = parts.clock.nowMs() - BEHIND_MS;
      // A backfill of long ago is nothing about the present.
      if (minute === 2) cover(state, 'filled', START_MS - 9 * HOUR_MS, START_MS - HOUR_MS);
      if (minute === 20) cover(state, 'a', START_MS - DAY_MS - HOUR_MS, toMs);
      if (minute === 20) cover(state, 'initial', START_MS - HOUR_MS, toMs);
    });
    expect(pointsOf(state).get('a')?.slice(0, 3)).toEqual([
      { minute: 0, state: 'catching-up', watermark: null },
      { minute: 14, state: 'catching-up', watermark: null },
      // At once.
      { minute: 20, state: 'live', watermark: 20 },
    ]);
    expect(pointsOf(state).get('initial')).toEqual([
      { minute: 0, state: 'catching-up', watermark: null },
      { minute: 14, state: 'catching-up', watermark: null },
      // Its newest readings are late.
      { minute: 28, state: 'catching-up', watermark: 20 },
    ]);
    expect(
      pointsOf(state)
        .get('filled')
        ?.map(({ watermark }) => watermark),
    ).toEqual([null, null, null]);
  });

  test('follow a silent device by the list, and stand still where the list does', async () => {
    using state = scratchStore();
    const parts = daemon(state);
    const quiet = device('quiet', { online: false, lastSeenAt: msToNs(START_MS - 5 * HOUR_MS) });
    list(state, parts, quiet);
    cover(state, 'quiet', START_MS - DAY_MS, START_MS - HOUR_MS);
    await run(parts, 41, (minute) => {
      if (minute <= 20) list(state, parts, quiet);
    });
    const points = pointsOf(state).get('quiet') ?? [];
    expect(points.slice(0, 5).map(({ minute, watermark }) => [minute, watermark])).toEqual(
      [0, 5, 10, 15, 20].map((minute) => [minute, minute]),
    );
    expect(points.at(-1)?.watermark).toBe(22);
  });

  test('have no watermark of devices that are not read: excluded, gone', async () => {
    using state = scratchStore();
    const parts = daemon(state, { excluded: ['left-out'] });
    list(state, parts, mute('left-out'), mute('gone'));
    await run(parts, 16, (minute) => {
      for (const id of ['left-out', 'gone']) cover(state, id, START_MS - DAY_MS, parts.clock.nowMs() - BEHIND_MS);
      if (minute === 7) state.store.markGone('gone', parts.clock.nowMs());
    });
    const points = pointsOf(state);
    expect(points.get('left-out')?.map(({ state: reported, watermark }) => [reported, watermark])).toEqual([
      ['excluded', null],
      ['excluded', null],
    ]);
    expect(points.get('gone')?.map(({ minute, watermark }) => [minute, watermark])).toEqual([
      [0, 0],
      [5, 5],
      [7, null],
    ]);
  });

  test('are not repeated by a restart', async () => {
    using state = scratchStore();
    const before = daemon(state);
    list(state, before, mute('a'));
    await run(before, 3, () => cover(state, 'a', START_MS - DAY_MS, before.clock.nowMs() - BEHIND_MS));
    for (let restart = 0; restart < 3; restart += 1) {
      state.reopen();
      const { clock, context } = daemon(state);
      await clock.sleep(4 * MINUTE_MS);
      const wantedRange = wantedNow(context);
      if (wantedRange !== null) noteCoverage(context, wantedRange, 0);
    }
    expect(minutesOf(pointsOf(state).get('a'))).toEqual([0]);
  });

  test('of thousands of devices are spread over minutes, each at most 15 minutes after its last', async () => {
    using state = scratchStore();
    const parts = daemon(state);
    const ids = Array.from({ length: 1200 }, (_, index) => `d${index}`);
    list(state, parts, ...ids.map((id) => device(id, { lastSeenAt: msToNs(START_MS - HOUR_MS) })));
    for (const id of ids) cover(state, id, START_MS - DAY_MS, START_MS - BEHIND_MS);
    await run(parts, 33, () => {});
    const points = pointsOf(state);
    expect(points.size).toBe(ids.length);
    const perMinute = new Map<number, number>();
    for (const of of points.values()) {
      const minutes = minutesOf(of);
      for (const minute of minutes) perMinute.set(minute, (perMinute.get(minute) ?? 0) + 1);
      for (const [index, minute] of minutes.entries())
        expect(minute - (minutes[index - 1] ?? 0)).toBeLessThanOrEqual(15);
    }
    expect(Math.max(...perMinute.values())).toBeLessThan(400);
  });

  test("wait for the server's time and for room, and outlive a state that is full", async () => {
    using state = scratchStore();
    const parts = daemon(state);
    list(state, parts, mute('a'));
    parts.has.time = false;
    await run(parts, 3, () => {});
    parts.has.time = true;
    parts.has.room = false;
    await run(parts, 3, () => {});
    expect(pointsOf(state).size).toBe(0);
    parts.has.room = true;
    const full = {
      ...parts.context.store,
      saveCoveragePoints: () => {
        throw new StateFullError('no room', null, 1);
      },
    };
    await run({ ...parts, context: { ...parts.context, store: full } }, 2, () => {});
    expect(parts.refused).toHaveLength(2);
    await run(parts, 1, () => {});
    expect(minutesOf(pointsOf(state).get('a'))).toEqual([8]);
  });
});

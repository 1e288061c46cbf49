/** The text of `--status --device` for states that are made by hand: a device that is behind, waits or is renamed. */
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { statusText } from '../../../src/commands/status/text.ts';
import type { UserError } from '../../../src/core/faults.ts';
import { HOUR_MS, msToNs } from '../../../src/core/time.ts';
import { device, scratchStore } from '../../store/support.ts';
import { createVirtualClock } from '../../support/virtual-clock.ts';
import {
  configOfDirectory,
  deviceOf,
  hold,
  lookAt,
  NOW_MS,
  ON_TIME_MS,
  reportOf,
  textOf,
  unwrapped,
} from './support.ts';

describe('one device', () => {
  test('that is behind: never polled, due, quiet, failing', () => {
    using open = scratchStore();
    hold(open, ['due', 'quiet', 'unseen']);
    const seenMs = (id: string): number => (id === 'quiet' ? ON_TIME_MS - 1000 : NOW_MS + HOUR_MS);
    open.store.saveInventory({
      listed: ['due', 'new', 'quiet', 'unseen'].map((id) => ({
        // Seen a minute ago, but for the quiet one, and the one that was never seen.
        record: device(id, { lastSeenAt: id === 'unseen' ? null : msToNs(seenMs(id)) }),
        name: id,
        line: null,
        digest: 'x',
      })),
      missing: [],
      atMs: NOW_MS + HOUR_MS,
    });
    const clock = createVirtualClock(NOW_MS + 2 * HOUR_MS);
    const config = configOfDirectory(dirname(open.file));
    expect(deviceOf(config, clock, 'new').reasons).toEqual(['The device was never polled.']);
    expect(textOf(config, clock, 'new')).toMatch(/^Newest {6}no reading is stored$/m);
    const due = deviceOf(config, clock, 'due');
    expect(due).toMatchObject({ fresh: false, next_kind: 'newest_readings', last_polled_at: '2026-06-15T11:59:00Z' });
    expect(due.reasons.join(' ')).toMatch(
      /lag of the device is \d+ s, more than 420 s\. Its poll has been due since 2026-06-15T1[12]:/,
    );
    const quiet = deviceOf(config, clock, 'quiet');
    expect(quiet).toMatchObject({ next_kind: 'idle_poll', next_due_at: '2026-06-15T17:59:00Z' });
    expect(quiet.reasons.join(' ')).toContain('The device list reports nothing new since');
    const unseen = deviceOf(config, clock, 'unseen');
    expect(unseen).toMatchObject({ next_kind: 'idle_poll', next_due_at: '2026-06-15T17:59:00Z' });
    expect(unseen.reasons.join(' ')).toContain('The device list has no last-seen time for the device');
    const failed = open.ledger.book(NOW_MS + HOUR_MS, { lane: 'live', stream: 'telemetry', deviceId: 'due' });
    open.ledger.recordOutcome(failed, { status: null, fault: 'unreachable' });
    expect(deviceOf(config, clock, 'due')).toMatchObject({
      failed_requests: 1,
      last_answers: [
        { fault: 'unreachable', status: null },
        { fault: null, status: 200 },
      ],
    });
    expect(textOf(config, clock, 'due')).toContain(
      'The last request for the device failed: the API could not be reached.',
    );
    open.ledger.book(NOW_MS + HOUR_MS + 1000, { lane: 'live', stream: 'telemetry', deviceId: 'due' });
    expect(unwrapped(textOf(config, clock, 'due'))).toMatch(
      /Responses 2026-06-15 13:00:01 UTC \(newest readings\): response not recorded yet.* the API could not be reached/,
    );
  });

  test('promises no poll while the disk is full', () => {
    using open = scratchStore();
    hold(open, ['hub']);
    const { config, clock } = { ...lookAt(open), clock: createVirtualClock(NOW_MS + 2 * HOUR_MS) };
    const report = reportOf(config, clock);
    const full =
      '/data: only 0 bytes of its disk are free. Polling resumes when 320 MiB are free: delete or move other files there.';
    const text = unwrapped(statusText({ ...report, archive: { ...report.archive, full } }));
    expect(text).toMatch(/ Gaps not read yet: 1 device, .*; read when polling resumes /);
    expect(text).toMatch(/ Next nothing until polling resumes; 1 device with gaps to close /);
  });

  test('waits for the quota, a wait of the server, or a stopped daemon', () => {
    using open = scratchStore();
    hold(open, ['hub']);
    const config = configOfDirectory(dirname(open.file));
    const clock = createVirtualClock(NOW_MS + 2 * HOUR_MS);
    open.ledger.block(NOW_MS, 3 * HOUR_MS);
    expect(deviceOf(config, clock, 'hub').reasons.join(' ')).toContain('requests resume at 2026-06-15T15:00:00Z');
    expect(reportOf(config, clock).allowance.waiting_until).toBe('2026-06-15T15:00:00Z');
    expect(unwrapped(textOf(config, clock))).toContain('requests resume at 2026-06-15 15:00:00 UTC');
    expect(unwrapped(textOf(config, clock))).toMatch(/ Gaps not read yet: 1 device, .*; the daemon reads them now /);
    open.close();
    expect(unwrapped(textOf(config, clock))).toMatch(
      / Gaps not read yet: 1 device, .*; start the daemon or run --once /,
    );
    expect(deviceOf(config, clock, 'hub').reasons[0]).toContain('No daemon is running');
  });

  test('has had names, and readings that came late', () => {
    using open = scratchStore();
    hold(open, ['hub']);
    for (const [name, atMs] of [
      ['Kitchen', 0],
      ['Cellar\u202e', HOUR_MS],
    ] as const) {
      open.store.saveInventory({
        listed: [{ record: device('hub'), name, line: null, digest: name }],
        missing: [],
        atMs: NOW_MS + atMs,
      });
    }
    const db = new Database(open.file);
    db.exec("INSERT INTO lateness VALUES ('hub', 7, 900000, 900000)");
    db.close();
    const { of, text } = lookAt(open);
    expect(of('hub').names.map(({ name }) => name)).toEqual(['hub', 'Kitchen', 'Cellar\u202e']);
    expect(of('hub')).toMatchObject({ grace_period_seconds: 900, late: { readings: 7, max_seconds: 900 } });
    const words = unwrapped(text('hub'));
    expect(words).toContain('grace period 15 min; 7 readings late, by up to 15 min');
    expect(words).toMatch(/Names Cellar since .* Kitchen since .* hub from the beginning/);
  });

  test('is found by its id or its name; otherwise the nearest names are shown', () => {
    using open = scratchStore();
    hold(open, ['hub-1', 'hub-2', 'other']);
    open.store.saveInventory({
      listed: [
        { record: device('hub-1'), name: 'Kitchen', line: null, digest: 'x' },
        { record: device('hub-2'), name: 'Twin', line: null, digest: 'x' },
        { record: device('other'), name: 'Twin', line: null, digest: 'x' },
      ],
      missing: [],
      atMs: NOW_MS,
    });
    const { of, config, clock } = lookAt(open);
    expect(of('hub-1').device_id).toBe('hub-1');
    expect(of('kitchen ').device_id).toBe('hub-1');
    const refused = (text: string): string => {
      try {
        textOf(config, clock, text);
      } catch (error) {
        expect((error as UserError).exitCode).toBe(2);
        return (error as UserError).message;
      }
      throw new Error('found');
    };
    expect(refused('twin')).toBe('--device: 2 devices have that name: hub-2 (Twin), other (Twin). Give the id of one.');
    expect(refused('hbu-1')).toMatch(/no device with that id or name\. Similar: hub-/);
    expect(refused('hub')).toMatch(/Similar: hub-1 \(Kitchen\), hub-2 \(Twin\)\.$/);
    expect(refused('sk_live_4242')).toMatch(/^--device: the state has no device with that id or name\. Known: hub-1/);
  });
});

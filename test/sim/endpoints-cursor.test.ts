/** Cursors: opaque, signed, and good for one request only. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createManualClock, onBothWays, smallSimulator, smallWorld } from './support.ts';

const cursorOf = (text: string): string => `cursor=${encodeURIComponent(text)}`;

test('Pagination: an altered or invented cursor is invalid_request, with a message about the cursor', async () => {
  const simulator = () => smallSimulator({ settings: { plan: { requestsPerMinute: 1_000_000 } } });
  await onBothWays(simulator, async (ask) => {
    const { next_cursor: cursor } = (await ask('/devices/a1/telemetry?limit=5')).json;
    expect((await ask(`/devices/a1/telemetry?limit=5&${cursorOf(cursor)}`)).status).toBe(200);
    const altered = [...cursor].map(
      (char: string, at: number) => cursor.slice(0, at) + (char === 'A' ? 'B' : 'A') + cursor.slice(at + 1),
    );
    const invented = [
      '',
      'x',
      '2',
      'null',
      cursor.slice(1),
      `${cursor}A`,
      `${cursor}=`,
      cursor.toLowerCase(),
      Buffer.from('[1]').toString('base64'),
    ];
    for (const text of [...altered, ...invented]) {
      const { status, json } = await ask(`/devices/a1/telemetry?limit=5&${cursorOf(text)}`);
      expect([text, status, json.error.code, json.error.message.startsWith('cursor')]).toEqual([
        text,
        400,
        'invalid_request',
        true,
      ]);
    }
  });
});

test('Pagination: no text that is made up opens as a cursor', async () => {
  const simulator = smallSimulator();
  const { openCursor } = await import('../../src/sim/endpoints.ts');
  const { cursorSecret: secret, cursorAlphabet: alphabet } = simulator.settings.paging;
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.base64String()), (text) => openCursor(text, { secret, alphabet }) === null),
  );
});

test('Pagination, cursor: one of another endpoint, another device or another workspace is refused', async () => {
  await onBothWays(smallSimulator, async (ask, simulator) => {
    const telemetry = (await ask('/devices/a1/telemetry?limit=1')).json.next_cursor;
    const devices = (await ask('/devices?limit=1')).json.next_cursor;
    const alerts = (await ask('/alerts?limit=1')).json.next_cursor;
    const wrong: [string, string][] = [
      ['/devices/a2/telemetry', telemetry],
      ['/devices', telemetry],
      ['/alerts', telemetry],
      ['/devices/a1/telemetry', devices],
      ['/alerts', devices],
      ['/devices', alerts],
    ];
    for (const [path, cursor] of wrong) {
      expect((await ask(`${path}?limit=1&${cursorOf(cursor)}`)).json.error.code).toBe('invalid_request');
    }
    expect((await ask(`/alerts?limit=1&${cursorOf(alerts)}`)).status).toBe(200);
    simulator.world = smallWorld({ workspaceId: 'ws-other' });
    expect((await ask(`/alerts?limit=1&${cursorOf(alerts)}`)).status).toBe(400);
  });
});

test('Pagination: the settings refuse a cursor with other parameters, or its window wins', async () => {
  await onBothWays(smallSimulator, async (ask, { settings }) => {
    const bounds = 'after=2026-01-14T00:00:00Z&before=2026-01-15T00:00:00Z';
    const { next_cursor } = (await ask(`/devices/a1/telemetry?limit=5&${bounds}`)).json;
    const go = (query: string) => ask(`/devices/a1/telemetry?${query}&${cursorOf(next_cursor)}`);
    const right = await go(`limit=5&${bounds}`);
    expect(right.json.data).toHaveLength(5);
    for (const query of ['limit=5', `limit=6&${bounds}`, `limit=5&${bounds.replace('14T', '13T')}`]) {
      expect((await go(query)).json.error.message).toMatch(/^cursor/);
    }
    settings.paging.cursorParameters = 'ignored';
    expect((await go('limit=5&after=2020-01-01T00:00:00Z')).json.data).toEqual(right.json.data);
  });
});

test('A cursor has characters that must be encoded, unless configured otherwise', async () => {
  const simulator = smallSimulator({ settings: { plan: { requestsPerMinute: 1_000_000 } } });
  await onBothWays(
    () => simulator,
    async (ask, { settings }) => {
      const seen = async (): Promise<string> => {
        const cursors = [];
        for (let limit = 1; limit <= 40; limit += 1)
          cursors.push((await ask(`/devices/a1/telemetry?limit=${limit}`)).json.next_cursor);
        return cursors.join('');
      };
      settings.paging.cursorAlphabet = 'base64';
      expect(await seen()).toMatch(/\+.*\/|\/.*\+/);
      settings.paging.cursorAlphabet = 'base64url';
      expect(await seen()).toMatch(/^[\w-]+$/);
    },
  );
});

test('A cursor expires at the configured time', async () => {
  const clock = createManualClock();
  await onBothWays(
    () => smallSimulator({ clock, settings: { paging: { cursorLifeMs: 60_000 } } }),
    async (ask) => {
      const { next_cursor } = (await ask('/devices?limit=1')).json;
      clock.advance(60_000);
      expect((await ask(`/devices?limit=1&${cursorOf(next_cursor)}`)).status).toBe(200);
      clock.advance(1);
      expect((await ask(`/devices?limit=1&${cursorOf(next_cursor)}`)).json.error.message).toBe('cursor has expired.');
    },
  );
});

test('Lists continue behind the last record, whatever comes and goes between two pages', async () => {
  const clock = createManualClock();
  const now = clock.nowMs();
  const world = smallWorld({
    devices: [
      { deviceId: 'a', appearsAtMs: now + 1000 },
      { deviceId: 'b', vanishesAtMs: now + 1000 },
      { deviceId: 'c' },
      { deviceId: 'd', appearsAtMs: now + 1000 },
      { deviceId: 'e' },
    ],
    alerts: [1, 2, 3]
      .map((alertId) => ({ alertId, deviceId: 'c', openedAtMs: now }))
      .concat({ alertId: 9, deviceId: 'c', openedAtMs: now + 500 }),
  });
  await onBothWays(
    () => smallSimulator({ world, clock }),
    async (ask) => {
      clock.advance(now - clock.nowMs());
      const devices = (await ask('/devices?limit=2')).json;
      const alerts = (await ask('/alerts?limit=2')).json;
      clock.advance(1000);
      const ids = (list: { data: { device_id: string }[] }) => list.data.map((device) => device.device_id);
      expect(ids(devices)).toEqual(['b', 'c']);
      expect(ids((await ask(`/devices?limit=2&${cursorOf(devices.next_cursor)}`)).json)).toEqual(['d', 'e']);
      const numbers = (list: { data: { alert_id: number }[] }) => list.data.map((alert) => alert.alert_id);
      expect(numbers(alerts)).toEqual([3, 2]);
      expect(numbers((await ask(`/alerts?limit=2&${cursorOf(alerts.next_cursor)}`)).json)).toEqual([1]);
    },
  );
});

/** The requests of the client: method, address, parameters and key. The transport is a script, in virtual time. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { UserError } from '../../src/core/faults.ts';
import type { TelemetryQuery } from '../../src/core/ports.ts';
import type { Cursor } from '../../src/core/records.ts';
import { parseTimestamp } from '../../src/core/time.ts';
import { createClientWorld, faultOf, KEY, PURPOSE, SIGNAL } from './support/client-world.ts';

const QUERY: TelemetryQuery = { deviceId: 'd', after: null, before: null, cursor: null };
const telemetry = (world: ReturnType<typeof createClientWorld>, query: Partial<TelemetryQuery> = {}) =>
  world.api.telemetry({ ...QUERY, ...query }, PURPOSE, SIGNAL);

describe('a request', () => {
  test('is a GET with the key, below the base, with the given parameters', async () => {
    const world = createClientWorld([{ body: { data: [] } }], { pageSize: () => 120 });
    const after = parseTimestamp('2026-11-21T10:00:00Z');
    const before = parseTimestamp('2026-11-21T11:00:00Z');
    await telemetry(world, { deviceId: 'a/b?c#d e', after, before, cursor: 'x+/=&y' as Cursor });
    const [request] = world.requests;
    expect(request?.method).toBe('GET');
    expect(request?.headers).toEqual({
      authorization: `Bearer ${KEY}`,
      accept: 'application/json',
      'user-agent': 'tidemark/1.2.3',
    });
    const url = new URL(request?.url ?? '');
    expect(url.href).toMatch(/^https:\/\/api\.example\/external\/v1\/devices\/a%2Fb%3Fc%23d%20e\/telemetry\?/);
    expect(Object.fromEntries(url.searchParams)).toEqual({
      limit: '120',
      after: '2026-11-21T10:00:00Z',
      before: '2026-11-21T11:00:00Z',
      cursor: 'x+/=&y',
    });
  });

  test('leaves out bounds and cursors that are not there', async () => {
    const world = createClientWorld([{ body: { data: [] } }]);
    await telemetry(world);
    await world.api.devices(null, PURPOSE, SIGNAL);
    expect(world.requests.map(({ url }) => url)).toEqual([
      'https://api.example/external/v1/devices/d/telemetry?limit=200',
      'https://api.example/external/v1/devices?limit=200',
    ]);
  });

  test('never requests fewer or more records than the document allows in a page', async () => {
    for (const [size, limit] of [
      [0, 1],
      [-3, 1],
      [1.9, 1],
      [201, 200],
      [1e9, 200],
      [Number.NaN, 1],
    ] as const) {
      const world = createClientWorld([{}], { pageSize: () => size });
      await world.api.devices(null, PURPOSE, SIGNAL);
      expect(world.requests[0]?.url).toContain(`limit=${limit}`);
    }
  });

  test('reads the key anew each time', async () => {
    const keys = ['one', 'two'];
    const world = createClientWorld([{}], { key: () => keys.shift() ?? 'none' });
    await telemetry(world);
    await telemetry(world);
    expect(world.requests.map(({ headers }) => headers['authorization'])).toEqual(['Bearer one', 'Bearer two']);
  });

  test.each(['', '.', '..', '\ud800', 'a\nb', 'a\u0000', 'x'.repeat(257)])(
    'for a device called %j is not sent',
    async (deviceId) => {
      const world = createClientWorld([{}]);
      expect((await faultOf(telemetry(world, { deviceId }))).kind).toBe('invalid-request');
      expect([world.requests.length, world.ledger.bookings.length]).toEqual([0, 0]);
    },
  );

  test('never leaves the API, whatever a device is called', async () => {
    const ids = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('../account', '..%2f', '%2e%2e', '\\..\\', '//evil', '?', '#'),
    );
    await fc.assert(
      fc.asyncProperty(ids, async (deviceId) => {
        const world = createClientWorld([{}]);
        await telemetry(world, { deviceId }).catch(() => {});
        for (const { url } of world.requests) {
          const { origin, pathname } = new URL(url);
          const [base, id, end] = [pathname.slice(0, 21), pathname.slice(21, -10), pathname.slice(-10)];
          expect([origin, base, end]).toEqual(['https://api.example', '/external/v1/devices/', '/telemetry']);
          expect(decodeURIComponent(id)).toBe(deviceId);
        }
      }),
    );
  });

  test.each(['', 'a b', 'a\r\nx-evil: 1', 'kéy', 'a\u0000'])('is not sent with a key like %j', async (key) => {
    const world = createClientWorld([{}], { key: () => key });
    const fault = await faultOf(telemetry(world));
    expect(fault.kind).toBe('unauthorized');
    if (key !== '') expect(fault.message).not.toContain(key);
    expect([world.requests.length, world.ledger.bookings.length]).toEqual([0, 0]);
  });

  test.each([
    'no url',
    'ftp://api.example/external/v1',
    'https://api.example',
    'https://api.example/external/v2',
    'https://user:s3cret@api.example/external/v1',
    'https://api.example/external/v1?key=s3cret',
  ])('requires a base as in the document, not %s', (baseUrl) => {
    const create = () => createClientWorld([], { baseUrl });
    expect(create).toThrow(UserError);
    expect(create).not.toThrow(/s3cret/);
  });

  test.each(['https://api.example/external/v1/', 'http://10.0.0.1:8080/some/prefix/external/v1'])(
    'goes below %s',
    async (baseUrl) => {
      const world = createClientWorld([{ body: { workspace_id: 'w' } }], { baseUrl });
      await world.api.account(PURPOSE, SIGNAL);
      expect(world.requests[0]?.url).toBe(`${baseUrl.replace(/\/$/, '')}/account`);
    },
  );
});

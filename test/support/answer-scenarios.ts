/**
 * Scenarios of what the API serves, and of what is handed on to a database: answers that are too large, lists without
 * an end, times that cannot be. Answers come from a server on loopback; turns, values and records are counted.
 */
import { gzipSync } from 'node:zlib';
import type { DeviceRecord } from '../../src/core/records.ts';
import type { SyncContext } from '../../src/ingest/context.ts';
import { createClientWorld, PURPOSE, SIGNAL } from '../api/support/client-world.ts';
import { answer, head, type Script, startOddServer } from '../api/support/odd-server.ts';
import { START_MS } from '../api/support/paced-world.ts';
import { scratchStore } from '../store/support.ts';
import { type BorderScenario, type Borders, unless } from './borders.ts';

const QUERY = { deviceId: 'd', after: null, before: null, cursor: null };
const MIB = 1024 * 1024;

/** A client of a server with that script, and how often it gave others a turn. */
async function connected({ createApiClient, createHttpTransport }: Borders, script: Script) {
  const server = await startOddServer(script);
  const { transport, close } = createHttpTransport({ timeoutMs: 10_000, direct: true });
  const turns = { count: 0 };
  const world = createClientWorld([], { baseUrl: `${server.url}/external/v1`, retries: 0 }, (options) =>
    createApiClient({
      ...options,
      transport: (request, signal) => world.clock.busy(transport(request, signal)),
      clock: {
        ...options.clock,
        sleep: async (ms, signal) => {
          if (ms === 0) turns.count += 1;
          await options.clock.sleep(ms, signal);
        },
      },
    }),
  );
  return {
    ...world,
    turns,
    [Symbol.asyncDispose]: async () => {
      await close();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** A complete answer of now. */
function served(body: unknown, dateMs = START_MS): Script {
  return answer(JSON.stringify(body), { headers: { date: new Date(dateMs).toUTCString() } });
}

/** The result of a call: its value, or the kind of its error. */
async function endOf(call: Promise<unknown>): Promise<{ readonly failure?: unknown; readonly facts?: object }> {
  return await call.then(
    () => ({}),
    (error: { failure?: unknown; facts?: object }) => error,
  );
}

/** Pages as every service has them. */
export const ordinaryAnswers: BorderScenario = async (borders) => {
  const body = { data: [{ recorded_at: '2026-11-21T11:59:00Z', values: { t: 1 } }] };
  await using telemetry = await connected(borders, served(body));
  const { value, answeredAtMs } = await telemetry.api.telemetry(QUERY, PURPOSE, SIGNAL);
  await using inventory = await connected(borders, served({ data: [{ device_id: 'a' }, { device_id: 'b' }] }));
  const { value: listed } = await inventory.api.devices(null, PURPOSE, SIGNAL);
  return [
    ...unless('values', value.readings[0]?.values, [['t', 1]]),
    ...unless('seconds from now', Math.round((answeredAtMs - START_MS) / 2000), 0),
    ...unless('devices', listed.devices.length, 2),
    ...unless('turns', [telemetry.turns.count, inventory.turns.count], [0, 0]),
  ];
};

/** An answer that goes on for 24 MiB, without a length, and a packed one of a few kilobytes that would unpack to as much. */
export const endlessAnswer: BorderScenario = async ({ createHttpTransport }) => {
  const flood: Script = (socket) => {
    let left = 24 * MIB;
    socket.write(head(200, { 'content-type': 'application/json', connection: 'close' }));
    const more = (): void => {
      let goesOn = true;
      for (; goesOn && left > 0 && !socket.destroyed; left -= 65_536) goesOn = socket.write(Buffer.alloc(65_536, 32));
      if (left <= 0) socket.end();
    };
    socket.on('drain', more);
    more();
  };
  const bomb = answer(gzipSync(Buffer.alloc(24 * MIB, 32)), { headers: { 'content-encoding': 'gzip' } });
  const ends: unknown[] = [];
  for (const script of [flood, bomb]) {
    await using server = await startOddServer(script);
    const { transport, close } = createHttpTransport({ timeoutMs: 10_000, direct: true });
    ends.push((await endOf(transport({ method: 'GET', url: server.url, headers: {} }, SIGNAL))).failure);
    await close();
  }
  return unless('what they end with', ends, ['too-large', 'too-large']);
};

/** A refusal of a database in a few kilobytes that would unpack to 24 MiB. */
export const packedRefusal: BorderScenario = async ({ createInfluxSink }) => {
  const error = `partial write: unable to parse '${' '.repeat(24 * MIB)}'`;
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
  await using server = await startOddServer(answer(gzipSync(JSON.stringify({ error })), { status: 400, headers }));
  const at = { name: 'influx', url: server.url, token: null, org: 'o', bucket: 'b', timeoutMs: 10_000 };
  const said = await createInfluxSink(at).write(['m v=1 1'], SIGNAL);
  return unless('the answer', 'message' in said ? [said.kind, said.message] : said, ['later', 'HTTP 400']);
};

/** An answer of 480 kB with 120,000 empty lists in it. */
export const countlessValues: BorderScenario = async (borders) => {
  await using world = await connected(borders, served({ data: Array.from({ length: 120_000 }, () => []) }));
  const { facts = {} } = await endOf(world.api.account(PURPOSE, SIGNAL));
  const error = { code: 'unread', message: 'm', more: Array.from({ length: 120_000 }, () => []) };
  await using failing = await connected(borders, answer(JSON.stringify({ error }), { status: 500 }));
  const { facts: ofError = {} } = await endOf(failing.api.account(PURPOSE, SIGNAL));
  return [
    ...unless('refused before it is parsed', 'isTooLarge' in facts, true),
    ...unless('the code of an error object that is not parsed', 'code' in ofError && ofError.code !== null, false),
  ];
};

/** A page of 200 readings of 145 sensors: just as many values as an answer may have. */
export const fullPage: BorderScenario = async (borders) => {
  const values = Object.fromEntries(Array.from({ length: 145 }, (_, sensor) => [`s${sensor}`, sensor]));
  const data = Array.from({ length: 200 }, (_, minute) => ({
    recorded_at: new Date(START_MS - minute * 60_000).toISOString(),
    values,
  }));
  await using world = await connected(borders, served({ data }));
  const { value } = await world.api.telemetry(QUERY, PURPOSE, SIGNAL);
  return [...unless('readings', value.readings.length, 200), ...unless('turns', world.turns.count, 5)];
};

/** The most pages that a scenario serves of a list without an end. */
const ENOUGH_PAGES = 3000;
/** The same of alerts, of which a page is large: half as many again as end the list. */
const ENOUGH_ALERT_PAGES = 300;

/** Lists devices from pages without an end, where the account counts so many. */
async function listFrom(
  { listDevices }: Borders,
  counted: number | null,
  page: (nth: number) => readonly Partial<DeviceRecord>[],
): Promise<readonly [requests: number, end: string]> {
  let requests = 0;
  const context = {
    api: {
      devices: async () => {
        requests += 1;
        if (requests > ENOUGH_PAGES) throw new Error('it goes on and on');
        const devices = page(requests).map((record) => ({ tags: [], ...record }));
        return await Promise.resolve({ value: { devices, rejected: [], nextCursor: `page-${requests}` } });
      },
    },
    store: { account: () => ({ devices: counted }), devices: () => [] },
    settings: { filter: { includesLocation: true } },
    observe: () => undefined,
  } as unknown as SyncContext;
  const end = await listDevices(context, SIGNAL).then(
    ({ records }) => `${records.size} devices`,
    (error: Error) => error.message,
  );
  return [requests, end];
}

/** A list that goes on with new devices, with the same ones, with none, and with names of megabytes. */
export const endlessDeviceList: BorderScenario = async (borders) => {
  const ids = (nth: number): Partial<DeviceRecord>[] =>
    Array.from({ length: 100 }, (_, index) => ({ deviceId: `d-${nth}-${index}` }));
  const tooLong = (listed: number, counted: number): string =>
    `GET /devices: the list is too long: ${listed} records, where the account counts ${counted}`;
  const long = { deviceId: 'd', name: 'x'.repeat(3_000_000) };
  return [
    ...unless('new devices', await listFrom(borders, 50, ids), [16, tooLong(1600, 50)]),
    ...unless('the same', await listFrom(borders, 50, () => ids(0)), [16, tooLong(1600, 50)]),
    ...unless('empty pages', await listFrom(borders, 3, () => []), [1031, tooLong(1031, 3)]),
  ].concat(
    unless('long names', await listFrom(borders, 5000, () => [long]), [11, 'GET /devices: the records are too large']),
  );
};

/** A list of alerts that goes on with a thousand new ones a page, and devices that are left out with names of megabytes. */
export const endlessAlertList: BorderScenario = async ({ syncAlerts }) => {
  let requests = 0;
  const facts = new Map<string, string>();
  const page = (nth: number) =>
    Array.from({ length: 1000 }, (_, index) => ({
      ...{ ruleName: null, kind: null, sensor: null, condition: null, status: 'open' },
      ...{ threshold: null, value: null, fireCount: null, openedAt: 1n },
      alertId: nth * 1000 + index,
      deviceId: nth > 5 ? null : `${nth}-${index}`.padEnd(2000, 'x'),
    }));
  const context = {
    noteArchived: () => undefined,
    takeTurn: async <T>(_: string, work: () => Promise<T>) => await work(),
    api: {
      alerts: async () => {
        requests += 1;
        if (requests > ENOUGH_ALERT_PAGES) throw new Error('it goes on and on');
        const value = { alerts: page(requests), rejected: [], nextCursor: `page-${requests}` };
        return await Promise.resolve({ value, answeredAtMs: START_MS });
      },
    },
    store: {
      account: () => null,
      workspaceTag: () => 'w',
      devices: () => [],
      fact: (key: string) => facts.get(key) ?? null,
      saveFact: (key: string, value: string) => void facts.set(key, value),
      telemetry: () => ({ names: [] }),
      alerts: { open: () => [], oldestOpen: () => null, find: () => null, keep: () => undefined },
    },
    settings: { filter: { spec: { include: ['none'], exclude: [] }, excludes: () => true } },
    observe: () => undefined,
  } as unknown as SyncContext;
  const end = await syncAlerts(context, SIGNAL).catch((error: Error) => error.message);
  const kept = Math.max(...[...facts.values()].map(({ length }) => length));
  return [
    ...unless('end', [requests, end], [201, 'GET /alerts: the list is too long: 201000 alerts']),
    ...unless('characters of devices that are kept', kept <= 4 * MIB, true),
  ];
};

/** An answer of the year 9999. */
export const dateOfYear9999: BorderScenario = async (borders) => {
  await using world = await connected(borders, served({ data: [] }, Date.UTC(9999, 11, 31)));
  const { answeredAtMs } = await world.api.telemetry(QUERY, PURPOSE, SIGNAL);
  return unless('its year', new Date(answeredAtMs).getUTCFullYear(), 2026);
};

/** Devices, alerts and readings of the year 2100, and of one that no database can store. */
export const timesToCome: BorderScenario = async (borders) => {
  const [future, beyond] = ['2100-01-01T00:00:00Z', '9999-01-01T00:00:00Z'];
  await using devices = await connected(
    borders,
    served({ data: [{ device_id: 'd', last_seen_at: future, location_updated_at: beyond }] }),
  );
  const [device] = (await devices.api.devices(null, PURPOSE, SIGNAL)).value.devices;
  await using alerts = await connected(borders, served({ data: [{ alert_id: 1, opened_at: future }] }));
  const opened = (await alerts.api.alerts(null, PURPOSE, SIGNAL)).value;
  await using telemetry = await connected(
    borders,
    served({ data: [future, beyond].map((at) => ({ recorded_at: at, values: { t: 1 } })) }),
  );
  const { readings, rejected } = (await telemetry.api.telemetry(QUERY, PURPOSE, SIGNAL)).value;
  return [
    ...unless('last_seen_at', device?.lastSeenAt === null, true),
    ...unless('location_updated_at', device?.locationUpdatedAt === null, true),
    ...unless('alerts and set aside', [opened.alerts.length, opened.rejected.length], [0, 1]),
    ...unless('readings', readings.length, 0),
    ...unless(
      'why they are set aside',
      rejected.map(({ reason }) => reason),
      ['recorded_at is more than a day in the future', 'recorded_at is not a time'],
    ),
  ];
};

/** The account, read while the `Date` of the API agrees with no other clock, and once it does. */
export const factsOfAnUnconfirmedDate: BorderScenario = async ({ syncAccount }) => {
  const made: number[] = [];
  for (const unconfirmed of [{ dateMs: 0, confirmedInMs: 0 }, null]) {
    const lines: string[] = [];
    const account = { workspaceId: 'w', name: null, plan: {}, devices: 1, openAlerts: 0 };
    const nothing = (): undefined => undefined;
    const context = {
      api: { account: async () => await Promise.resolve({ value: account, answeredAtMs: START_MS, requestId: 1 }) },
      store: {
        workspaceTag: () => 'w',
        pinWorkspace: nothing,
        account: () => null,
        saveAccount: nothing,
        fact: () => null,
        saveFact: nothing,
        append: (points: readonly string[]) => lines.push(...points),
      },
      settings: { workspaceTag: null },
      serverClock: { unconfirmed: () => unconfirmed },
      quota: () => ({ minute: {}, day: {} }),
      noteWorkspaceKnown: nothing,
      notePlanChanged: nothing,
      noteArchived: nothing,
      observe: nothing,
    } as unknown as SyncContext;
    await syncAccount(context, SIGNAL);
    made.push(lines.length);
  }
  return unless('points of the workspace', made, [0, 1]);
};

const AT_NS = 1_700_000_000_000_000_000n;

/** Points of a time that no clock has reached, and of one that no database can store, as an older version kept them. */
export const pointsOfOtherTimes: BorderScenario = async ({ sendKept, createControlLines }) => {
  const found: string[] = [];
  for (const at of [AT_NS + 172_800_000_000_000n, 253_402_300_799_000_000_000n]) {
    using state = scratchStore();
    const lines = [AT_NS, at, AT_NS + 1n].map((time) => `workspace,workspace_id=w devices=1 ${time}`);
    const sent: string[] = [];
    const take = async (part: readonly string[]) => {
      sent.push(...part);
      return await Promise.resolve({ kind: 'accepted' } as const);
    };
    const writeText = async (text: Uint8Array) => await take(Buffer.from(text).toString().split('\n').slice(0, -1));
    const served = { kind: 'influxdb', sink: { name: 'influx', write: take, writeText } } as const;
    const latestNs = (): bigint => AT_NS + 86_400_000_000_000n;
    const parts = { store: state.store, clock: { nowMs: () => START_MS }, controls: createControlLines(), latestNs };
    const text = Buffer.from(lines.map((line) => `${line}\n`).join(''));
    const extent = { first: AT_NS, last: at };
    const batch = { text, count: 3, extent, lines };
    const { resolution, rejected } = await sendKept(parts, served, { batch }, SIGNAL);
    found.push(...unless('sent', sent, [lines[0], lines[2]]));
    found.push(
      ...unless('resolved and set aside', [resolution.resolved, rejected.map(({ line }) => line)], [3, [lines[1]]]),
    );
  }
  return found;
};

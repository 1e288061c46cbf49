/**
 * A session without an API: a real state, a scripted API that answers or fails, and a virtual clock that the server
 * shares.
 */
import { createTurns } from '../../src/core/async.ts';
import type { AppEvent } from '../../src/core/events.ts';
import type { Api } from '../../src/core/ports.ts';
import type { Account, DeviceRecord } from '../../src/core/records.ts';
import { createServerClock } from '../../src/core/server-clock.ts';
import { DAY_MS, HOUR_MS } from '../../src/core/time.ts';
import type { SyncContext } from '../../src/ingest/context.ts';
import { createOutageWatch } from '../../src/ingest/outage.ts';
import { createApiState } from '../../src/scheduler/api-state.ts';
import { createPlanning } from '../../src/scheduler/planning.ts';
import type { SessionParts } from '../../src/scheduler/session.ts';
import { device, type ScratchStore } from '../store/support.ts';
import { syncSettings } from '../support/defaults.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

export const START_MS = Date.UTC(2026, 5, 15, 12, 1);

export const ACCOUNT: Account = {
  workspaceId: 'ws',
  name: null,
  plan: {
    requestsPerMinute: null,
    requestsPerDay: null,
    historyMaxDays: null,
    maxDevicesPerPage: 200,
  } as Account['plan'],
  devices: null,
  openAlerts: null,
};

/** The next action of the API: it is called with the stream, and may throw. */
export interface Script {
  /** The errors of the next requests of a stream, first the first; then it is answered. */
  readonly fails?: Partial<Record<'account' | 'devices' | 'alerts', readonly Error[]>>;
  readonly devices?: readonly DeviceRecord[];
  readonly account?: Account;
  /** From when there is room in the archive, in ms after the start. */
  readonly roomFromMs?: number;
}

/** A device without a last-seen time in the list. */
export const mute = (deviceId: string): DeviceRecord => device(deviceId, { lastSeenAt: null });

/** The parts of a session over a state. `log` has the requests, each with its second, and a shortage of the quota. */
export function createSessionWorld({ store }: ScratchStore, script: Script = {}) {
  const clock = createVirtualClock(START_MS);
  const log: string[] = [];
  const { fails = {}, devices = [mute('a'), mute('b')], account = ACCOUNT, roomFromMs = 0 } = script;
  const failures = new Map(Object.entries(fails).map(([stream, errors]) => [stream, [...errors]]));
  const serverClock = createServerClock(clock);
  const hear = (): void => {
    const monoMs = clock.monoMs();
    serverClock.noteDate({ dateMs: clock.nowMs(), sentMonoMs: monoMs, receivedMonoMs: monoMs });
  };
  const reply = async <T>(stream: string, value: T, signal: AbortSignal) => {
    log.push(`${stream} ${Math.floor(clock.monoMs() / 1000)}`);
    await clock.sleep(1, signal);
    const error = failures.get(stream)?.shift();
    if (error !== undefined) throw error;
    hear();
    return { value, answeredAtMs: clock.nowMs(), requestId: 1 };
  };
  const page = { rejected: [], nextCursor: null };
  const api = {
    account: async (_purpose, signal) => await reply('account', account, signal),
    devices: async (_cursor, _purpose, signal) => await reply('devices', { devices, ...page }, signal),
    alerts: async (_cursor, _purpose, signal) => await reply('alerts', { alerts: [], ...page }, signal),
  } satisfies Partial<Api>;
  const outage = createOutageWatch({ clock, random: () => 0.5, observe: () => {} });
  const nothing = (): void => {};
  const context = {
    api,
    store,
    clock,
    serverClock,
    random: () => 0.5,
    observe: (event: AppEvent) => {
      if (event.type === 'quota-short') log.push(`${event.message.split(', but ')[0]}`);
    },
    answeredAtMs: outage.answeredAtMs,
    quota: () => ({ minute: {}, day: {} }),
    settings: syncSettings({ history: { kind: 'age', ageMs: 8 * DAY_MS } }),
    checkSpace: () => (clock.monoMs() >= roomFromMs ? { ok: true } : { ok: false, reason: 'full' }),
    noteStateFull: nothing,
    noteArchived: nothing,
    noteWorkspaceKnown: () => void log.push('workspace known'),
    noteWorkspaceUnknown: nothing,
    noteStreamOff: nothing,
    noteDeviceLeft: nothing,
    notePlanChanged: nothing,
    nextReadingMs: () => null,
    takeTurn: createTurns(),
    filterNotes: {
      touchesSensors: false,
      noteDevicesListed: nothing,
      noteSensorsRead: nothing,
      noteTelemetryRead: nothing,
    },
  } as unknown as SyncContext;
  const day = { limit: null, budget: null, spent: 0, others: null } as unknown as ReturnType<
    Parameters<typeof createPlanning>[0]['day']
  >;
  const planning = createPlanning({ context, share: 0.8, day: () => day });
  const parts = {
    context,
    planning,
    apiState: createApiState({ observe: nothing, serverNowMs: serverClock.nowMs, monoMs: clock.monoMs }),
    scanner: {
      peek: async () => await Promise.resolve(false),
      scan: async (task: { deviceId: string }, signal: AbortSignal) => {
        log.push(`scan ${task.deviceId} ${Math.floor(clock.monoMs() / 1000)}`);
        await clock.sleep(DAY_MS, signal);
      },
    },
    outage,
    waitUntilTurn: async () => await Promise.resolve(),
    onRest: nothing,
    pulse: { beat: nothing, rest: nothing },
  } as unknown as SessionParts;
  return { clock, log, context, planning, parts, hear };
}

/** Lists devices as in an earlier run of the program. */
export function listBefore({ store }: ScratchStore, records: readonly DeviceRecord[]): void {
  store.pinWorkspace({ apiId: 'ws', tag: 'ws' });
  const listed = records.map((record) => ({ record, name: record.deviceId, line: null, digest: '' }));
  store.saveInventory({ listed, missing: [], atMs: START_MS - HOUR_MS });
}

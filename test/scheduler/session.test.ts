/**
 * How a session begins and ends: what is read first, what is tried again, and what a person has to act on. From session
 * to session: what the daemon does after a rejected key, and how another key ends the wait.
 */
import { describe, expect, test } from 'vitest';
import { ApiFault, type ApiFaultKind, UserError } from '../../src/core/faults.ts';
import { MINUTE_MS } from '../../src/core/time.ts';
import type { OneOff } from '../../src/scheduler/planning.ts';
import { runDaemon, runOneOff, runSession } from '../../src/scheduler/session.ts';
import { scratchStore } from '../store/support.ts';
import { ACCOUNT, createSessionWorld, listBefore, mute, type Script } from './session-world.ts';

const fault = (kind: ApiFaultKind): ApiFault => new ApiFault(kind, kind, { request: 'GET /x' });
const DOWN = fault('server-fault');

/** A session of so long, over a state in which devices may be known from before. */
async function live(script: Script, { knows = [] as readonly string[], forMs = MINUTE_MS } = {}) {
  using state = scratchStore();
  if (knows.length > 0) listBefore(state, knows.map(mute));
  const { clock, log, parts } = createSessionWorld(state, script);
  const stop = new AbortController();
  void clock.sleep(forMs).then(() => stop.abort(new Error('over')));
  const onStarted = (): void => void log.push(`started ${Math.floor(clock.monoMs() / 1000)}`);
  const error: unknown = await runSession(parts, onStarted, stop.signal).catch((reason: unknown) => reason);
  return { error, log, endedMs: clock.monoMs(), devices: state.store.devices().length };
}

describe('the session of the daemon', () => {
  test('reads the account first, then the devices, then the tasks of the planner', async () => {
    const { error, log, devices } = await live({});
    expect(log.slice(0, 4)).toEqual(['account 0', 'workspace known', 'devices 0', 'started 0']);
    expect(log.slice(4).toSorted()).toEqual(['alerts 0', 'scan a 0', 'scan b 0']);
    expect([error, devices]).toEqual([new Error('over'), 2]);
  });

  test('reports at its start that the quota is too small for the devices', async () => {
    const account = { ...ACCOUNT, plan: { ...ACCOUNT.plan, requestsPerDay: 1000 } };
    for (const knows of [[], ['a', 'b']]) {
      const { log } = await live({ account }, { knows });
      expect(log.slice(0, 5)).toEqual([
        'account 0',
        'workspace known',
        'devices 0',
        expect.stringMatching(/^the schedules need [\d,]+ requests a day if 2 devices have a reading every 60 s$/),
        'started 0',
      ]);
    }
  });

  test.each<[ApiFaultKind, 'account' | 'devices']>([
    ['unauthorized', 'account'],
    ['no-api-access', 'account'],
    ['unauthorized', 'devices'],
    ['scope-missing', 'devices'],
  ])('ends at once with %s of the %s, and was never started', async (kind, stream) => {
    const { error, log, endedMs } = await live({ fails: { [stream]: [fault(kind)] } }, { knows: ['a'] });
    expect(error).toMatchObject({ kind });
    expect(endedMs).toBeLessThan(1000);
    expect(log.filter((line) => /started|scan/.test(line))).toEqual([]);
  });

  test('ends with a message if the key belongs to another workspace, before a device is written', async () => {
    const other = { workspaceId: 'other', plan: {} } as unknown as NonNullable<Script['account']>;
    const { error, log } = await live({ account: other }, { knows: ['a'] });
    expect(error).toBeInstanceOf(UserError);
    expect(log).toEqual(['account 0']);
  });

  test('continues with the known devices if they cannot be listed', async () => {
    const { log } = await live({ fails: { devices: [DOWN] } }, { knows: ['a'] });
    const startedAt = log.findIndex((line) => line.startsWith('started'));
    expect(log.slice(0, startedAt)).toEqual(['account 0', 'workspace known', 'devices 0']);
    expect(log.slice(startedAt).some((line) => line.startsWith('scan a'))).toBe(true);
  });

  test('lists the devices again and again where none is known', async () => {
    const { log } = await live({ fails: { devices: [DOWN, DOWN] } }, { forMs: 10 * MINUTE_MS });
    const listings = log.filter((line) => line.startsWith('devices'));
    expect(listings.slice(0, 3)).toHaveLength(3);
    expect(log.indexOf(listings[2] ?? '')).toBeLessThan(log.findIndex((line) => line.startsWith('started')));
  });

  test('reads the account while the state is full, and nothing else until there is room', async () => {
    const { log } = await live({ roomFromMs: 20_000 });
    expect(log.slice(0, 3)).toEqual(['account 0', 'workspace known', 'devices 20']);
  });
});

describe('the session of a one-off', () => {
  /** A one-off that reads streams once and no telemetry. */
  async function once(script: Script, { mayGoUnlisted = true, streams = ['alerts'] as OneOff['streams'] } = {}) {
    using state = scratchStore();
    listBefore(state, [mute('a')]);
    const { clock, log, parts, planning } = createSessionWorld(state, script);
    const stop = new AbortController();
    void clock.sleep(MINUTE_MS).then(() => stop.abort(new Error('over')));
    const begin = (areListed: boolean): OneOff => {
      log.push(`begins, listed: ${areListed}`);
      return { lane: 'first-history', goal: null, streams };
    };
    const end = await runOneOff(parts, { begin, mayGoUnlisted }, stop.signal).catch((error: Error) => error.message);
    return { end, log, left: planning.oneOff?.streams };
  }

  test('reads each of its streams once, and then rests', async () => {
    const { end, log, left } = await once({});
    expect(log).toEqual(['account 0', 'workspace known', 'devices 0', 'begins, listed: true', 'alerts 0']);
    expect([end, left]).toEqual(['over', []]);
  });

  test.each([
    [true, 'begins, listed: false'],
    [false, 'begins, listed: true'],
  ])('may go without a list: %s', async (mayGoUnlisted, begins) => {
    const { log } = await once({ fails: { devices: [DOWN] } }, { mayGoUnlisted });
    expect(log.find((line) => line.startsWith('begins'))).toBe(begins);
  });

  test('ends with the error of its first requests', async () => {
    using state = scratchStore();
    const { parts } = createSessionWorld(state);
    const begin = (): never => {
      throw new UserError('nothing to do', null, 2);
    };
    const running = runOneOff(parts, { begin, mayGoUnlisted: false }, new AbortController().signal);
    await expect(running).rejects.toThrow('nothing to do');
  });
});

const REJECTED = new ApiFault('unauthorized', 'rejected', { request: 'GET /account' });

/** A daemon that runs so long. `keyFromMs`: when there is another key. */
async function runSessions(
  script: Script,
  { keyFromMs = Number.POSITIVE_INFINITY, forMs = 2 * MINUTE_MS, isFixed = false } = {},
) {
  using state = scratchStore();
  const { clock, log, parts } = createSessionWorld(state, script);
  let isAdopted = false;
  let looks = 0;
  const checkedMs: number[] = [];
  const key = {
    isFixed,
    checkFile: () => void checkedMs.push(clock.monoMs()),
    hasChanged: () => {
      looks += 1;
      return !isAdopted && clock.monoMs() >= keyFromMs;
    },
    adopt: () => {
      isAdopted = true;
      log.push(`another key ${Math.floor(clock.monoMs() / 1000)}`);
    },
  };
  const stop = new AbortController();
  void clock.sleep(forMs).then(() => stop.abort(new Error('over')));
  const beside = [async (signal: AbortSignal) => await clock.sleep(forMs * 2, signal)];
  const error: unknown = await runDaemon({ ...parts, key, beside }, stop.signal).then(
    () => null,
    (reason: unknown) => reason,
  );
  const accounts = log.filter((line) => line.startsWith('account'));
  return { error, log, accounts, looks, checkedMs, endedMs: clock.monoMs(), rejection: parts.apiState.rejection };
}

describe('from session to session', () => {
  test('a rejected key is tried again after a wait, and another key at once when it is noticed', async () => {
    const waited = await runSessions({ fails: { account: [REJECTED] } }, { forMs: 5 * MINUTE_MS });
    expect(waited.accounts.length).toBeGreaterThan(1);
    expect(Number(waited.accounts[1]?.split(' ')[1])).toBeGreaterThanOrEqual(30);
    const exchanged = await runSessions({ fails: { account: [REJECTED] } }, { keyFromMs: 3000 });
    expect(exchanged.log.slice(0, 3)).toEqual(['account 0', 'another key 10', 'account 10']);
  });

  test('the rejection is kept while it lasts, and gone once a session has started', async () => {
    const rejected = await runSessions({ fails: { account: Array.from({ length: 50 }, () => REJECTED) } });
    expect([rejected.error, rejected.rejection]).toEqual([null, REJECTED]);
    const accepted = await runSessions({ fails: { account: [REJECTED] } }, { keyFromMs: 3000 });
    expect([accepted.error, accepted.rejection]).toEqual([null, null]);
  });

  test('another key ends a session that works: the next one begins with the account', async () => {
    const { log } = await runSessions({}, { keyFromMs: 25_000 });
    const at = log.indexOf('another key 30');
    expect(log.slice(at + 1, at + 2)).toEqual(['account 30']);
  });

  test('the key file is not polled where there can be no other key', async () => {
    const [fixed, inFile] = [await runSessions({}, { isFixed: true }), await runSessions({})];
    expect(fixed.looks).toBeLessThan(3);
    expect(inFile.looks).toBeGreaterThan(10);
  });

  test('the key file is checked at most every ten seconds, however many sessions end', async () => {
    const fails = { account: Array.from({ length: 50 }, () => REJECTED) };
    const { accounts, checkedMs } = await runSessions({ fails }, { forMs: 10 * MINUTE_MS });
    expect(accounts.length).toBeGreaterThan(3);
    const pauses = checkedMs.slice(1).map((atMs, index) => atMs - (checkedMs[index] ?? 0));
    expect(pauses.length).toBeGreaterThan(40);
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(10_000);
  });

  test('an error that a restart would not fix ends the daemon', async () => {
    const { error, endedMs } = await runSessions({ fails: { devices: [new UserError('another workspace', null, 1)] } });
    expect(error).toEqual(new UserError('another workspace', null, 1));
    expect(endedMs).toBeLessThan(1000);
  });
});

/**
 * From session to session: what the daemon does after a refused key, and how another key ends the wait.
 */
import { expect, test } from 'vitest';
import { ApiFault, UserError } from '../../src/core/faults.ts';
import { MINUTE_MS } from '../../src/core/time.ts';
import { runDaemon } from '../../src/scheduler/sessions.ts';
import { scratchStore } from '../store/support.ts';
import { createSessionWorld, type Script } from './session-world.ts';

const REFUSED = new ApiFault('unauthorized', 'refused', { request: 'GET /account' });

/** A daemon that lives so long. `keyFromMs`: when there is another key. */
async function live(
  script: Script,
  { keyFromMs = Number.POSITIVE_INFINITY, forMs = 2 * MINUTE_MS, isFixed = false } = {},
) {
  using state = scratchStore();
  const { clock, log, parts } = createSessionWorld(state, script);
  let isAdopted = false;
  let looks = 0;
  const key = {
    isFixed,
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
  return { error, log, accounts, looks, endedMs: clock.monoMs(), refusal: parts.apiState.refusal };
}

test('a refused key is tried again after a wait, and another key at once when it is noticed', async () => {
  const waited = await live({ fails: { account: [REFUSED] } }, { forMs: 5 * MINUTE_MS });
  expect(waited.accounts.length).toBeGreaterThan(1);
  expect(Number(waited.accounts[1]?.split(' ')[1])).toBeGreaterThanOrEqual(30);
  const exchanged = await live({ fails: { account: [REFUSED] } }, { keyFromMs: 3000 });
  expect(exchanged.log.slice(0, 3)).toEqual(['account 0', 'another key 10', 'account 10']);
});

test('the refusal is kept while it lasts, and gone once a session has started', async () => {
  const refused = await live({ fails: { account: Array.from({ length: 50 }, () => REFUSED) } });
  expect([refused.error, refused.refusal]).toEqual([null, REFUSED]);
  const accepted = await live({ fails: { account: [REFUSED] } }, { keyFromMs: 3000 });
  expect([accepted.error, accepted.refusal]).toEqual([null, null]);
});

test('another key ends a session that works: the next one begins with the account', async () => {
  const { log } = await live({}, { keyFromMs: 25_000 });
  const at = log.indexOf('another key 30');
  expect(log.slice(at + 1, at + 2)).toEqual(['account 30']);
});

test('nobody looks again and again for another key where there can be none', async () => {
  const [fixed, inFile] = [await live({}, { isFixed: true }), await live({})];
  expect(fixed.looks).toBeLessThan(3);
  expect(inFile.looks).toBeGreaterThan(10);
});

test('an error that a restart would not fix ends the daemon', async () => {
  const { error, endedMs } = await live({ fails: { devices: [new UserError('another workspace', 1)] } });
  expect(error).toEqual(new UserError('another workspace', 1));
  expect(endedMs).toBeLessThan(1000);
});

/** The state of one workspace: its tag, the account, and small facts, over a restart. */
import { describe, expect, test } from 'vitest';
import { UserError } from '../../src/core/faults.ts';
import type { Account } from '../../src/core/records.ts';
import { readAll, type ScratchStore, scratchStore } from './support.ts';

const ACCOUNT: Account = {
  workspaceId: 'ws',
  name: 'Workspace',
  plan: {
    planId: 'p',
    name: null,
    maxApiKeys: 5,
    requestsPerMinute: 60,
    requestsPerDay: null,
    historyMaxDays: 31,
    maxDevicesPerPage: 200,
  },
  devices: 3,
  openAlerts: null,
};

function refusal(work: () => void): UserError {
  try {
    work();
  } catch (error) {
    if (error instanceof UserError) return error;
    throw error;
  }
  throw new Error('it was accepted');
}

const facts = (state: ScratchStore): unknown => state.rows('SELECT * FROM fact ORDER BY key');

describe('a state and its workspace', () => {
  test('the tag and the state belong together from the first pin on', () => {
    using state = scratchStore();
    expect(state.store.workspaceTag()).toBeNull();
    state.store.pinWorkspace({ apiId: 'ws', tag: 'mine' });
    state.reopen();
    expect(state.store.workspaceTag()).toBe('mine');
    expect(() => state.store.pinWorkspace({ apiId: 'ws', tag: 'mine' })).not.toThrow();
  });

  test('another workspace behind the key is rejected with exit 1, and nothing is written', () => {
    using state = scratchStore();
    state.store.pinWorkspace({ apiId: 'ws', tag: 'ws' });
    const before = facts(state);
    const error = refusal(() => state.store.pinWorkspace({ apiId: 'other', tag: 'other' }));
    expect(error.exitCode).toBe(1);
    expect(error.message).toContain('this state belongs to workspace "ws", but the API key belongs to "other"');
    expect(error.message).toContain('Use a key for that workspace, or set another data_dir for this one');
    expect(facts(state)).toEqual(before);
  });

  test('another workspace under the same tag is refused too', () => {
    using state = scratchStore();
    state.store.pinWorkspace({ apiId: 'ws', tag: 'mine' });
    expect(refusal(() => state.store.pinWorkspace({ apiId: 'other', tag: 'mine' })).exitCode).toBe(1);
  });

  test('another tag is refused with exit 78, and nothing is written', () => {
    using state = scratchStore();
    state.store.pinWorkspace({ apiId: null, tag: 'first' });
    const before = facts(state);
    const error = refusal(() => state.store.pinWorkspace({ apiId: 'ws', tag: 'second' }));
    expect(error.exitCode).toBe(78);
    expect(error.message).toContain(
      'workspace.id: the points of this state have the workspace_id tag "first", not "second"',
    );
    expect(facts(state)).toEqual(before);
  });

  test('a key that may not read the account is accepted, before and after one that may', () => {
    using state = scratchStore();
    state.store.pinWorkspace({ apiId: null, tag: 'mine' });
    state.store.pinWorkspace({ apiId: 'ws', tag: 'mine' });
    state.store.pinWorkspace({ apiId: null, tag: 'mine' });
    expect(refusal(() => state.store.pinWorkspace({ apiId: 'other', tag: 'mine' })).exitCode).toBe(1);
  });
});

describe('the account', () => {
  test('comes back as it was read, with the line archived beside it', () => {
    using state = scratchStore();
    expect(state.store.account()).toBeNull();
    state.store.saveAccount(ACCOUNT, ['workspace a=1 1']);
    state.reopen();
    expect(state.store.account()).toEqual(ACCOUNT);
    expect(readAll(state, 'live').lines).toEqual(['workspace a=1 1']);
  });

  test('is not kept where its line cannot be', () => {
    using state = scratchStore();
    expect(() => state.store.saveAccount(ACCOUNT, null as unknown as string[])).toThrow(TypeError);
    expect(state.store.account()).toBeNull();
  });
});

describe('small facts', () => {
  test('single facts survive a restart', () => {
    using state = scratchStore();
    expect(state.store.fact('x')).toBeNull();
    state.store.saveFact('x', 'one');
    state.store.saveFact('x', 'two');
    state.reopen();
    expect(state.store.fact('x')).toBe('two');
  });
});

/**
 * The ports of the store, each by itself: what is one transaction, and what is not written about a removed device.
 */
import { describe, expect, test } from 'vitest';
import type { InventoryStore } from '../../src/core/state/inventory.ts';
import type { ArchiveTotals } from '../../src/core/state/log.ts';
import { type PageCommit, StaleStateError } from '../../src/core/state/telemetry.ts';
import type { Forgetting } from '../../src/store/device/forget.ts';
import { openDatabase } from '../../src/store/open/database.ts';
import {
  finishForgetting,
  forgettingPort,
  inventoryPort,
  type Parts,
  prepareParts,
  sentTotals,
  telemetryPort,
} from '../../src/store/store.ts';
import { createWriter, type Writer } from '../../src/store/transactions.ts';
import { device, pageCommit, scratch } from './support.ts';

/** Calls that are written down, and a writer that writes down where a transaction begins and ends. */
function recorder() {
  const log: string[] = [];
  const call = (name: string) => (): void => void log.push(name);
  const write: Writer =
    (work) =>
    (...args) => {
      log.push('begin');
      const result = work(...args);
      log.push('end');
      return result;
    };
  return { log, call, write };
}

/** The telemetry over a database of its own, with the parts that it is made of. */
function openTelemetry() {
  const place = scratch();
  const { db, path, close } = openDatabase(place.path, null);
  const parts: Parts = prepareParts(db, path, () => 7);
  return {
    parts,
    port: telemetryPort(parts, createWriter(db)),
    [Symbol.dispose]: () => {
      close();
      place[Symbol.dispose]();
    },
  };
}

test('requests that are booked in advance and not sent yet are in no sum', () => {
  const totals = { requests: 10, points: 5 } as ArchiveTotals;
  const unwritten = { ids: [8, 9, 10], bookings: [{}] } as unknown as Parameters<typeof sentTotals>[1];
  expect(sentTotals(totals, unwritten)).toEqual({ requests: 8, points: 5 });
});

describe('the inventory', () => {
  test('records each listed device as one that is not removed, in the transaction of the listing', () => {
    const { log, call, write } = recorder();
    const inventory = { saveInventory: call('saved') } as unknown as InventoryStore;
    const forgetting = { noteListed: (deviceId: string) => log.push(deviceId) } as unknown as Forgetting;
    const listed = ['a', 'b'].map((id) => ({ record: device(id), name: id, line: null, digest: '' }));
    inventoryPort({ inventory, forgetting }, write).saveInventory({ listed, missing: ['c'], atMs: 1 });
    expect(log).toEqual(['begin', 'saved', 'a', 'b', 'end']);
  });

  test.each(['markGone', 'markBack', 'saveCoveragePoints'] as const)('makes %s one transaction', (name) => {
    const { log, call, write } = recorder();
    const inventory = { [name]: call(name) } as unknown as InventoryStore;
    const port = inventoryPort({ inventory, forgetting: {} as Forgetting }, write);
    (port[name] as () => void)();
    expect(log).toEqual(['begin', name, 'end']);
  });
});

describe('the telemetry', () => {
  const window = { from: 1n, to: 9n, sinceMs: 1, dueMs: 2 };
  const range = { from: 1n, to: 9n, sinceMs: 1, answers: 1, dueMs: 2, confirmed: 1 };

  /** Everything that is written about a device and read back, by the call that writes it. */
  const WRITES: readonly [string, (of: ReturnType<typeof openTelemetry>['port']) => unknown][] = [
    [
      'a named gap',
      (port) => {
        port.nameGap({ deviceId: 'd', fromNs: 1n, toNs: 9n, reason: 'unreachable', retryAtMs: 5 });
        return port.gaps('d').length > 0;
      },
    ],
    [
      'a missed overlap reading',
      (port) => {
        port.saveMissedOverlap('d', { at: 5n, sinceMs: 1, isGone: false });
        return port.missedOverlaps('d').length > 0;
      },
    ],
    [
      'an empty range',
      (port) => {
        port.saveEmptyRange('d', range);
        return port.emptyRange('d') !== null;
      },
    ],
    [
      'an empty window',
      (port) => {
        port.saveEmptyWindow('d', window);
        return port.emptyWindows('d').length > 0;
      },
    ],
    [
      'a day that was read again',
      (port) => {
        port.saveReread('d', 5);
        return port.rereadDays().size > 0;
      },
    ],
    [
      'the progress of a recheck',
      (port) => {
        const asked = { from: 1n, to: 9n };
        port.saveRecheck('d', { requested: asked, unread: [asked], atMs: 1 });
        return port.recheck('d') !== null;
      },
    ],
  ];

  test.each(WRITES)('keeps %s, and not of a removed device', (_what, written) => {
    using kept = openTelemetry();
    expect(written(kept.port)).toBe(true);
    using removed = openTelemetry();
    removed.parts.forgetting.begin('d', false);
    expect(written(removed.port)).toBe(false);
  });

  test('commits a page with its rejected records, and caches the result', () => {
    using open = openTelemetry();
    const { parts, port } = open;
    const page = pageCommit({ rejected: [{ reason: 'odd', record: '{}' }] });
    port.telemetry('d');
    expect(port.commitPage(page)).toEqual(page.rejected);
    expect(parts.telemetry.states.get('d')?.revision).toBe(1);
    expect(port.telemetry('d').revision).toBe(1);
  });

  test('stores nothing of a stale page, or of a removed device', () => {
    using open = openTelemetry();
    const { parts, port } = open;
    const odd: Partial<PageCommit> = { rejected: [{ reason: 'odd', record: '{}' }] };
    expect(() => port.commitPage(pageCommit({ ...odd, revision: 5 }))).toThrow(StaleStateError);
    expect(parts.quarantine.page(0)).toEqual([]);
    parts.forgetting.begin('d', false);
    expect(() => port.commitPage(pageCommit(odd))).toThrow('d');
    expect([parts.quarantine.page(0), port.telemetry('d').revision]).toEqual([[], 0]);
  });
});

describe('the removal of a device', () => {
  test('begins when all bookings are written, as they name devices too', () => {
    const { log, call, write } = recorder();
    const forgetting = { begin: call('begin removal'), step: call('step'), startOver: call('over') };
    const port = forgettingPort({ forgetting: forgetting as unknown as Forgetting }, write, { flush: call('flush') });
    port.begin('d', false);
    port.step('d', []);
    port.startOver();
    expect(log).toEqual(['flush', 'begin', 'begin removal', 'end', 'begin', 'step', 'end', 'begin', 'over', 'end']);
  });

  test('that a process has left is completed, for the destinations of the configuration', () => {
    const { log, call } = recorder();
    const steps = ['going-on', 'waiting', 'done'];
    const forgetting = {
      unfinished: () => ['a', 'b'],
      startOver: call('over'),
      step: (deviceId: string, destinations: readonly number[]) => {
        const state = steps.shift();
        log.push(`${deviceId} ${destinations.join(' ')} ${state}`);
        return { state };
      },
      emptyLog: call('empty log'),
    } as unknown as Forgetting;
    const quarantine = {
      destinations: () => [
        { id: 1, isCurrent: true },
        { id: 2, isCurrent: false },
      ],
    } as never;
    finishForgetting({ store: { quarantine }, forgetting });
    expect(log).toEqual(['over', 'a 1 going-on', 'a 1 waiting', 'b 1 done', 'empty log']);
  });

  test('is not looked for where none was left', () => {
    const { log, call } = recorder();
    const forgetting = { unfinished: () => [], startOver: call('over'), emptyLog: call('empty log') };
    finishForgetting({ store: { quarantine: {} as never }, forgetting: forgetting as unknown as Forgetting });
    expect(log).toEqual([]);
  });
});

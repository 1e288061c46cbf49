/**
 * `--status` over the state of a rig or of a directory, and what holds of everything that it shows.
 */
import { dirname } from 'node:path';
import { expect } from 'vitest';
import type { CommandAnswer } from '../../../src/commands/shared/command.ts';
import { columnsOf } from '../../../src/commands/shared/layout.ts';
import type { StatusConfig } from '../../../src/commands/shared/state-report.ts';
import { readStatus } from '../../../src/commands/status/command.ts';
import type { DeviceReport } from '../../../src/core/page-facts.ts';
import type { Clock } from '../../../src/core/ports.ts';
import type { StatusReport } from '../../../src/core/status.ts';
import { DAY_MS, MINUTE_MS, msToNs } from '../../../src/core/time.ts';
import { device, pageCommit, type ScratchStore } from '../../store/support.ts';
import { KEEP_ALL, POLLS, SCHEDULES } from '../../support/defaults.ts';
import type { Rig } from '../../support/rig.ts';
import { createVirtualClock } from '../../support/virtual-clock.ts';

/** The settings of a rig as a configuration; without a database, the destinations come from the state. */
export function configOf({ dataDir, settings }: Pick<Rig, 'dataDir' | 'settings'>, share = 0.8): StatusConfig {
  return { ...EMPTY_CONFIG, dataDir, api: { share }, sync: { ...settings, leftOut: settings.filter.spec } };
}

/** A configuration with only the path of the state. */
export function configOfDirectory(dataDir: string): StatusConfig {
  return { ...EMPTY_CONFIG, dataDir };
}

const EMPTY_CONFIG: StatusConfig = {
  dataDir: '',
  influx: null,
  destinations: [],
  archive: { retentionMs: 30 * 86_400_000, maxBytes: 2 ** 31 },
  api: { share: 0.8 },
  sync: {
    history: { kind: 'age', ageMs: 30 * 86_400_000 },
    gracePeriodMs: 120_000,
    polls: POLLS,
    schedules: SCHEDULES,
    leftOut: KEEP_ALL.spec,
  },
};

/** The text, which has to fit the terminal and contain no control sequence. */
export function textOf(config: StatusConfig, clock: Clock, device: string | null = null): string {
  const text = readStatus({ device }, config, clock).text();
  expectPlain(text);
  // As on terminals: only the rows of devices, which are cut, and the bar of coverage differ.
  for (const width of [60, 120, 200]) expectPlain(readStatus({ device }, config, clock, width).text(), width);
  return text;
}

export function expectPlain(text: string, width = 80): void {
  expect(text.endsWith('\n') && !text.endsWith('\n\n')).toBe(true);
  for (const line of text.trimEnd().split('\n')) {
    expect(columnsOf(line), line).toBeLessThanOrEqual(width);
    expect(line).not.toMatch(/[\p{Cc}\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/u);
  }
}

export function reportOf(config: StatusConfig, clock: Clock): StatusReport {
  return objectOf(readStatus({ device: null }, config, clock));
}

export function deviceOf(config: StatusConfig, clock: Clock, device: string): DeviceReport {
  return objectOf(readStatus({ device }, config, clock));
}

/** The object of an answer as a program reads it. */
function objectOf<T>({ object }: CommandAnswer): T {
  return JSON.parse(JSON.stringify(object));
}

/** A text in one line, for what may be cut anywhere. */
export function unwrapped(text: string): string {
  return text.replace(/\s+/g, ' ');
}

export const NOW_MS = Date.UTC(2026, 5, 15, 12, 0);
export const ON_TIME_MS = NOW_MS - 3 * MINUTE_MS;

/** Lists devices, and holds all of each for thirty days up to three minutes ago, but for `gap`. */
export function hold(open: ScratchStore, ids: readonly string[], gap?: { fromMs: number; toMs: number }): void {
  const { store, ledger } = open;
  const lastSeenAt = msToNs(ON_TIME_MS);
  store.saveInventory({
    listed: ids.map((id) => ({ record: device(id, { lastSeenAt }), name: id, line: null, digest: 'x' })),
    missing: [],
    atMs: NOW_MS - MINUTE_MS,
  });
  for (const deviceId of ids) {
    const requestId = ledger.book(NOW_MS - MINUTE_MS, { lane: 'live', stream: 'telemetry', deviceId });
    ledger.recordOutcome(requestId, { status: 200, fault: null });
    const { revision } = store.telemetry(deviceId);
    const edge = { at: msToNs(ON_TIME_MS - 1000), digest: 'x' };
    const span = (fromMs: number, toMs: number) => ({
      from: msToNs(fromMs),
      to: msToNs(toMs),
      first: edge,
      last: edge,
    });
    const covered =
      gap === undefined
        ? [span(NOW_MS - 31 * DAY_MS, ON_TIME_MS)]
        : [span(NOW_MS - 31 * DAY_MS, gap.fromMs), span(gap.toMs, ON_TIME_MS)];
    store.commitPage(pageCommit({ deviceId, revision, requestId, covered, atMs: NOW_MS - MINUTE_MS }));
  }
}

/** The report and the texts of a state, at `NOW_MS`. */
export function lookAt(open: ScratchStore) {
  const clock = createVirtualClock(NOW_MS);
  const config = configOfDirectory(dirname(open.file));
  return {
    clock,
    config,
    text: (id: string | null = null) => textOf(config, clock, id),
    report: () => reportOf(config, clock),
    of: (id: string) => deviceOf(config, clock, id),
  };
}

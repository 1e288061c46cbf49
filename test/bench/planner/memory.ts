/**
 * How much memory the planner keeps for a fleet.
 */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { DAY_MS } from '../../../src/core/time.ts';
import { createPlannerState } from '../../../src/scheduler/decide.ts';
import { setOpenHistory } from '../../../src/scheduler/history-queue.ts';
import { figuresOf, noteBegan, noteDevicesListed, takeDecision } from '../../../src/scheduler/planner.ts';
import { SETTINGS, tellHeld } from './clients.ts';
import { createFleet, MIXED } from './fleet.ts';

/** Bytes, after it has received all devices, their history and a listing, and has begun to work. */
export function plannerBytes(devices: number, seed: number): number {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const fleet = createFleet({ ...MIXED, seed, devices });
  const bytes = (): number => {
    // Once more for what only the first time has shown to be garbage.
    for (let time = 0; time < 3; time += 1) collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const before = bytes();
  const planner = createPlannerState(SETTINGS);
  for (const device of fleet) {
    tellHeld(planner, device);
    setOpenHistory(planner.histories['first-history'], device.deviceId, {
      day: DAY_MS,
      week: 6 * DAY_MS,
      rest: 23 * DAY_MS,
    });
  }
  const listed = fleet.map(({ deviceId, seenAt }) => ({ deviceId, seenMs: seenAt(DAY_MS), isActive: true }));
  noteDevicesListed(planner, listed, DAY_MS);
  for (let atMs = DAY_MS; atMs < DAY_MS + 10_000; atMs += 1) {
    const decision = takeDecision(planner, atMs);
    if (decision.kind !== 'rest') noteBegan(planner, decision, atMs);
  }
  const used = bytes() - before;
  // Both still in use, so that neither was collected.
  if (figuresOf(planner).devices !== fleet.length) throw new Error('the planner has lost devices');
  return used;
}

/**
 * The `coverage` points: what is held of each device, when its state changes and hourly (design 1.4), so that a
 * dashboard can tell a silent device from one that is not synced.
 */
import { coverageLine } from '../core/fact-lines.ts';
import { holdingsOf } from '../core/holdings.ts';
import type { NewCoveragePoint } from '../core/state.ts';
import { HOUR_NS, msToNs } from '../core/time.ts';
import type { Horizon, SyncContext } from './context.ts';

/** Archives the `coverage` points that are due, and forgets named gaps that are closed. */
export function noteCoverage({ store, serverClock }: SyncContext, horizon: Horizon): void {
  const tag = store.workspaceTag();
  if (tag === null) return;
  const last = store.coveragePoints();
  const atNs = msToNs(serverClock.nowMs());
  const wanted = { from: horizon.wantedFrom, to: horizon.limit };
  const points: NewCoveragePoint[] = [];
  for (const device of store.devices()) {
    const { deviceId } = device.record;
    const gaps = store.gaps(deviceId);
    const holdings = holdingsOf(device, { spans: store.telemetry(deviceId).spans, gaps }, wanted);
    if (holdings.holes.length === 0 && gaps.length > 0) store.clearGaps(deviceId);
    const before = last.get(deviceId);
    const due = before === undefined || before.state !== holdings.state || atNs - before.atNs >= HOUR_NS;
    if (!due || (before !== undefined && atNs <= before.atNs)) continue;
    const { state } = holdings;
    const line = coverageLine({ deviceId, deviceName: device.name, ...holdings, atNs }, tag);
    points.push({ deviceId, state, atNs, line });
  }
  store.keepCoveragePoints(points);
}

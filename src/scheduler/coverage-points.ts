/**
 * The `coverage` points: what is held of each device, when its state changes and hourly, so that a
 * dashboard can tell a silent device from one that is not synced.
 */
import { holesIn } from '../core/coverage.ts';
import { holdingsOf, toldEmpty } from '../core/holdings.ts';
import { coverageLine } from '../core/lines/fact-lines.ts';
import type { NewCoveragePoint } from '../core/state/inventory.ts';
import { HOUR_NS, maxNs, msToNs } from '../core/time.ts';
import type { Horizon, SyncContext } from '../ingest/context.ts';
import { limitFor, openSeconds, stillWantedFrom } from '../ingest/horizon.ts';
import { staleMsOf } from './demand-watch.ts';

/** Archives the `coverage` points that are due, and forgets named gaps that are closed. */
export function noteCoverage(context: SyncContext, horizon: Horizon): void {
  const { store, serverClock, settings } = context;
  const tag = store.workspaceTag();
  if (tag === null) return;
  const last = store.coveragePoints();
  const atNs = msToNs(serverClock.nowMs());
  // What has left the wanted span since the pass began is no hole any more.
  const wantedFrom = maxNs(horizon.wantedFrom, stillWantedFrom(context));
  const mostOpen = openSeconds({ context, staleMs: () => staleMsOf(store) });
  const points: NewCoveragePoint[] = [];
  for (const device of store.devices()) {
    const { deviceId } = device.record;
    const gaps = store.gaps(deviceId);
    const telemetry = store.telemetry(deviceId);
    const { spans } = telemetry;
    const to = limitFor(horizon, telemetry);
    const isExcluded = settings.filter.excludes(device.record);
    const told = toldEmpty(device, { spans, newestNs: store.newestNs(deviceId) });
    const holdings = holdingsOf(
      { ...device, isExcluded },
      { spans, gaps, told, openSeconds: mostOpen },
      { from: wantedFrom, to },
    );
    if (gaps.length > 0 && holesIn({ from: horizon.wantedFrom, to }, spans).length === 0) {
      store.clearGaps(deviceId);
    }
    const before = last.get(deviceId);
    const due = before === undefined || before.state !== holdings.state || atNs - before.atNs >= HOUR_NS;
    if (!due || (before !== undefined && atNs <= before.atNs)) continue;
    const { state } = holdings;
    const line = coverageLine({ deviceId, deviceName: device.name, ...holdings, atNs }, tag);
    points.push({ deviceId, state, atNs, line });
  }
  store.keepCoveragePoints(points);
}

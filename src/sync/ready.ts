/**
 * Whether what is held can be relied on (`/readyz`, design 1.5).
 */
import { holesIn } from '../core/coverage.ts';
import { toldEmpty } from '../core/holdings.ts';
import { lengthNs, subtract } from '../core/intervals.ts';
import type { ReadyReport } from '../core/status.ts';
import { DAY_NS, maxNs, SECOND_NS } from '../core/time.ts';
import { keptDevices } from './exclusion.ts';
import { horizonNow, limitFor } from './horizon.ts';
import { openSeconds, type ReportParts } from './report.ts';

/** Whether what is held can be relied on: every device's last day is there, and nothing that is needed is wrong. */
export function readyNow(parts: ReportParts): ReadyReport {
  const { context, deliverers, streams, room } = parts;
  const { store } = context;
  const reasons: string[] = [];
  const trouble = streams.trouble();
  if (trouble !== null) reasons.push(`api: ${trouble}`);
  else for (const { name, reason } of streams.failingLong()) reasons.push(`stream ${name}: ${reason}`);
  const { full } = room.status();
  if (full !== null) reasons.push(`state: ${full}`);
  for (const { name, held } of deliverers.map((deliverer) => ({ name: deliverer.name, held: deliverer.held() }))) {
    if (held !== null) reasons.push(`destination ${name}: ${held}`);
  }
  const horizon = horizonNow(context);
  const devices = keptDevices(context).filter(({ goneSinceMs }) => goneSinceMs === null);
  if (horizon === null || store.devices().every(({ goneSinceMs }) => goneSinceMs !== null))
    reasons.push('the devices are not listed yet');
  else {
    const from = maxNs(horizon.limit - DAY_NS, horizon.wantedFrom);
    const mostNs = BigInt(Math.ceil(openSeconds(parts))) * SECOND_NS;
    const missing = devices.filter((device) => {
      const { deviceId } = device.record;
      const telemetry = store.telemetry(deviceId);
      const told = toldEmpty(device, { spans: telemetry.spans, newestNs: store.newestNs(deviceId) });
      const open = subtract(holesIn({ from, to: limitFor(horizon, telemetry) }, telemetry.spans), told);
      return lengthNs(open) > mostNs;
    }).length;
    if (missing > 0) reasons.push(`the last day of ${missing} of ${devices.length} devices is not synced yet`);
  }
  return { ready: reasons.length === 0, reasons };
}

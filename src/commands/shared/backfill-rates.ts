/**
 * How often the devices report, from a look at the state beside whoever works with it: for estimates alone.
 */

import type { DeviceFilter } from '../../core/filter.ts';
import { deviceFacts, type FleetRates, fleetRates, MEASURED_DAYS } from '../../core/fleet.ts';
import { DAY_MS, type EpochMs } from '../../core/time.ts';
import { lookAtState } from '../../store/look/read-state.ts';

/** A look at all devices each time. */
export function ratesOfState(dataDir: string, filter: DeviceFilter): (nowMs: EpochMs) => FleetRates {
  return (nowMs) => {
    const state = lookAtState(dataDir, { day: Math.floor(nowMs / DAY_MS) - MEASURED_DAYS, requestsMs: nowMs });
    const records = (state?.devices ?? []).map(({ record }) => record);
    return fleetRates(deviceFacts(records, state?.telemetry ?? new Map(), filter), nowMs);
  };
}

/**
 * What is noted of the filter: which sensors were ever left out, and which of its patterns match nothing. These are
 * probably typing errors, so each is told once in the life of the program.
 *
 * Devices are known in full after a listing. Sensors are known only as they come: what is told of them is told after the
 * first telemetry that was read, and says "so far".
 */

import type { Observe } from '../core/events.ts';
import { type DeviceFilter, matchAny, matchesDevice, remembering } from '../core/filter.ts';
import type { DeviceRecord } from '../core/records.ts';
import type { Store } from '../core/state/state.ts';

export interface FilterNotes {
  /** Whether any sensor is left out, or was. */
  readonly touchesSensors: boolean;
  /** The filter, watched: the sync asks this one. */
  readonly filter: DeviceFilter;
  /** All devices of the workspace were listed. */
  devicesListed(records: readonly DeviceRecord[]): void;
  /** The telemetry of a pass was read. */
  telemetryRead(): void;
}

/** The fact that holds every pattern of `sync.exclude_sensors` that was ever in force, as a JSON list. */
const LEFT_OUT = 'sensors_left_out';

/**
 * The patterns that were in force up to now. A value of a sensor that was left out and is written again is no sign of a
 * new or a late reading.
 */
function patternsEver(store: Pick<Store, 'fact' | 'keepFact'>, current: readonly string[]): readonly string[] {
  const before: readonly string[] = JSON.parse(store.fact(LEFT_OUT) ?? '[]');
  const ever = [...new Set([...before, ...current])];
  if (ever.length > before.length) store.keepFact(LEFT_OUT, JSON.stringify(ever));
  return ever;
}

/** Watches what a filter matches. */
export function createFilterNotes(
  filter: DeviceFilter,
  { store, observe }: { store: Pick<Store, 'fact' | 'keepFact'>; observe: Observe },
): FilterNotes {
  const { include, exclude, excludeSensors } = filter.spec;
  const unmatched = new Map(excludeSensors.map((pattern) => [pattern, matchAny([pattern])]));
  let [devicesTold, sensorsTold, sensorsSeen] = [false, false, false];
  const tellDevices = (key: 'sync.include' | 'sync.exclude', records: readonly DeviceRecord[]): void => {
    for (const pattern of key === 'sync.include' ? include : exclude) {
      const match = matchAny([pattern]);
      if (records.some((record) => matchesDevice(match, record))) continue;
      observe({ type: 'filter-matches-nothing', key, pattern });
    }
  };
  const ever = patternsEver(store, excludeSensors);
  return {
    filter: {
      ...filter,
      wasLeftOut: remembering(matchAny(ever)),
      keepsSensor: (name) => {
        sensorsSeen = true;
        const kept = filter.keepsSensor(name);
        if (kept || unmatched.size === 0) return kept;
        for (const [pattern, match] of unmatched) if (match(name)) unmatched.delete(pattern);
        return kept;
      },
    },
    touchesSensors: ever.length > 0,
    devicesListed: (records) => {
      if (devicesTold) return;
      devicesTold = true;
      tellDevices('sync.include', records);
      tellDevices('sync.exclude', records);
    },
    telemetryRead: () => {
      if (sensorsTold || !sensorsSeen) return;
      sensorsTold = true;
      for (const pattern of unmatched.keys()) {
        observe({ type: 'filter-matches-nothing', key: 'sync.exclude_sensors', pattern });
      }
    },
  };
}

/**
 * The devices of the status page, a page at a time (`DevicesPage`).
 *
 * All of them are looked at by whoever looks at the fleet anyway (`fleet-look.ts`): states, lags and shares are as old as
 * its last look, a few seconds at ten thousand devices. Their order by name is made once for each look. What is dear (the
 * bar, the values) is looked up for the rows of the page alone.
 */
import { coveredIntervals } from '../core/coverage.ts';
import { toldEmpty, wantedOf } from '../core/holdings.ts';
import { union } from '../core/intervals.ts';
import {
  BAR_DAYS,
  type DeviceRow,
  type DevicesPage,
  type DevicesQuery,
  MAX_SHOWN_LENGTH,
  VALUES_A_ROW,
} from '../core/page-facts.ts';
import { shortened } from '../core/text.ts';
import { DAY_NS, formatExact, maxNs, minNs, SECOND_MS } from '../core/time.ts';
import type { Horizon } from '../ingest/context.ts';
import { limitFor, openSeconds } from '../ingest/horizon.ts';
import { dayBar } from './day-bar.ts';
import { type ListedDevice, type ListedLook, listByName, pickDevices } from './device-list.ts';
import { listAtOnce } from './device-look.ts';
import { lastValues } from './line-values.ts';
import type { TimedParts } from './page-facts.ts';

/** Where nobody has looked yet (the API has not answered since the start) a look is made here, and kept for so long. */
const OWN_LOOK_MS = 15 * SECOND_MS;

/** Prepares the list. */
export function createPageDevices(parts: TimedParts): (query: DevicesQuery) => DevicesPage {
  const looks = createLooks(parts);
  let listed: { readonly looks: readonly ListedLook[]; readonly byName: readonly ListedDevice[] } | null = null;
  return (query) => {
    const latest = looks();
    if (listed?.looks !== latest) listed = { looks: latest, byName: listByName(latest) };
    const { rows, matching, states, page, pages } = pickDevices(listed.byName, query);
    const horizon = parts.horizon();
    // The last day is the one that is claimed last: just after midnight nothing of the new one is wanted yet.
    const fromDay = Number(maxNs(horizon.limit - 1n, 0n) / DAY_NS) - BAR_DAYS + 1;
    return {
      query: { ...query, search: shortened(query.search, MAX_SHOWN_LENGTH) },
      devices: latest.length,
      matching,
      states,
      page,
      pages,
      bar_from: formatExact(BigInt(Math.max(0, fromDay)) * DAY_NS),
      rows: rows.map((device) => rowOf(parts, { device, horizon, fromDay })),
    };
  };
}

function createLooks(parts: TimedParts): () => readonly ListedLook[] {
  const { context, fleet, clock, horizon } = parts;
  let own: { readonly looks: readonly ListedLook[]; readonly atMs: number } | null = null;
  return () => {
    const latest = fleet.listing();
    if (latest !== null) {
      own = null;
      return latest;
    }
    const nowMs = clock.monoMs();
    if (own === null || nowMs - own.atMs >= OWN_LOOK_MS) {
      const view = { filter: context.settings.filter, horizon: horizon(), openSeconds: openSeconds(parts) };
      own = { looks: listAtOnce(view, context.store), atMs: nowMs };
    }
    return own.looks;
  };
}

interface RowFacts {
  readonly device: ListedDevice;
  readonly horizon: Horizon;
  readonly fromDay: number;
}

function rowOf(parts: TimedParts, row: RowFacts): DeviceRow {
  const { deviceId, name, modelId, hubName, state, lagSeconds, share, newestNs } = row.device;
  return {
    device_id: deviceId,
    device_name: name,
    model_id: modelId,
    hub_name: hubName,
    state,
    lag_seconds: lagSeconds,
    covered_share: share,
    newest_reading_at: newestNs === null ? null : formatExact(newestNs),
    bar: barOf(parts, row),
    values: lastValues(parts.facts.newestLines(deviceId), VALUES_A_ROW),
  };
}

/** What the list of devices says to be empty counts as held, as in the state of the device. */
function barOf(parts: TimedParts, { device: { deviceId, state, lagSeconds, newestNs }, horizon, fromDay }: RowFacts) {
  const { store } = parts.context;
  const known = store.device(deviceId);
  // Forgotten since the look.
  if (known === null) return ' '.repeat(BAR_DAYS);
  const { spans, late } = store.telemetry(deviceId);
  const held = union(coveredIntervals(spans), toldEmpty(known, { spans, newestNs }));
  const whole = wantedOf(known, { from: horizon.wantedFrom, to: limitFor(horizon, { late }) });
  // The newest end is open all the time: of a device that is not behind it is no hole.
  const isFresh = lagSeconds !== null && lagSeconds <= openSeconds(parts);
  const wanted = isFresh ? { ...whole, to: minNs(whole.to, held.at(-1)?.to ?? whole.to) } : whole;
  const days = parts.facts.daysOf(deviceId, fromDay);
  const withReadings = new Set(days.map(({ day }) => day));
  return dayBar({ fromDay, days: BAR_DAYS, wanted, held, withReadings, isLeftOut: state === 'excluded' });
}

/**
 * Whether what is held can be relied on (design 1.5, `/readyz`): every device's last day is there, and nothing that is
 * needed is wrong. Waiting for allowance is neither.
 */

import type { Room } from '../archive/room.ts';
import type { FleetFigures } from '../core/figures.ts';
import type { Store } from '../core/state/state.ts';
import type { ReadyCode, ReadyReport } from '../core/status.ts';
import type { Deliverer } from '../delivery/deliver.ts';
import { type StreamNotes, wasListed } from './stream-status.ts';

export interface ReadyParts {
  readonly deliverers: readonly Pick<Deliverer, 'name' | 'held'>[];
  readonly streams: Pick<StreamNotes, 'trouble' | 'isRefused' | 'failingLong' | 'list'>;
  readonly room: Pick<Room, 'status'>;
  readonly store: Pick<Store, 'devices'>;
  /** What a look at every device has found; `null` before the first one. */
  readonly fleet: () => FleetFigures | null;
}

type Reason = readonly [code: ReadyCode, words: string];

/** The answer, with a code for each reason. Cheap: devices are looked at elsewhere. */
export function readyNow(parts: ReadyParts): ReadyReport {
  const { deliverers, room } = parts;
  const { full } = room.status();
  const held = deliverers.flatMap(({ name, held }): Reason[] => {
    const why = held();
    return why === null ? [] : [['destination_held', `destination ${name}: ${why}`]];
  });
  const found: Reason[] = [
    ...apiReasons(parts),
    ...(full === null ? [] : [['state_full', `state: ${full}`] as const]),
    ...held,
    ...deviceReasons(parts),
  ];
  return { ready: found.length === 0, reasons: found.map(([, words]) => words), codes: found.map(([code]) => code) };
}

function apiReasons({ streams }: ReadyParts): Reason[] {
  const trouble = streams.trouble();
  if (trouble !== null) return [[streams.isRefused() ? 'key_refused' : 'api_unreachable', `api: ${trouble}`]];
  return streams.failingLong().map(({ name, reason }) => ['stream_failing', `stream ${name}: ${reason}`]);
}

function deviceReasons({ fleet, streams, store }: ReadyParts): Reason[] {
  const seen = fleet();
  // A list that was read and is empty is an answer: there is nothing to wait for. One that was just read was not looked at.
  if (seen === null || (seen.listed === 0 && (hasAny(store) || !wasListed(streams.list())))) {
    return [['devices_not_listed', 'the devices are not listed yet']];
  }
  const { lastDayMissing, present } = seen;
  if (lastDayMissing === 0) return [];
  return [['last_day_missing', `the last day of ${lastDayMissing} of ${present} devices is not synced yet`]];
}

function hasAny({ devices }: ReadyParts['store']): boolean {
  return devices().some(({ goneSinceMs }) => goneSinceMs === null);
}

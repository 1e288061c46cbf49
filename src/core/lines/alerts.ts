/**
 * Alerts as points: the facts of an alert once, and every state of it that was observed (design 1.4).
 *
 * Alerts change, and a point must not: so a state is a point of its own, at the time at which it was observed, and what
 * the lines carry of the alert (device name, kind, sensor) is kept as it was first seen. Pure.
 */
import { hashHex } from '../hash.ts';
import type { AlertRecord } from '../records.ts';
import { DAY_NS, type EpochNs } from '../time.ts';
import type { FieldKey } from './line-names.ts';
import { encodeLine, type Field, type FieldValue, type Tag } from './line-protocol.ts';
import { descriptiveTag, identityTag } from './line-text.ts';

/** What the lines of an alert carry for ever: as first seen. */
export interface AlertIdentity {
  readonly alertId: number;
  readonly deviceId: string | null;
  /** The name that the device had when the alert was opened. */
  readonly deviceName: string | null;
  readonly kind: string | null;
  readonly sensor: string | null;
}

/** What is kept of an alert between two looks at it. */
export interface KnownAlert extends AlertIdentity {
  readonly openedAt: EpochNs;
  /** Of the last state that became a point. */
  readonly stateDigest: string;
  readonly stateNs: EpochNs;
  readonly isOpen: boolean;
  /** Whether a listing that came to its end has had it: only there may a later one stop. */
  readonly isListed: boolean;
}

/** How often the state of an open alert is written though nothing changed. */
const REPEAT_NS = DAY_NS;

/** Whether an alert is not resolved yet; words that no document names count as open, so that it is followed. */
export function isOpen({ status }: Pick<AlertRecord, 'status'>): boolean {
  return status !== 'resolved';
}

/** The state of an alert as a short text: another one means that something changed. */
export function stateDigest(alert: AlertRecord): string {
  return hashHex(JSON.stringify([alert.status, alert.fireCount, alert.value]));
}

/** What observing an alert adds. */
export interface Observed {
  readonly known: KnownAlert;
  /** Whether what is kept of it has to be written. */
  readonly changed: boolean;
  readonly lines: readonly string[];
}

/**
 * Takes in an alert as it was just told.
 *
 * @param seen `known`: what is kept of it, `null` at first sight; `deviceName`: the name its device had at `openedAt`;
 * `atNs`: the server's time of the answer.
 */
export function observeAlert(
  alert: AlertRecord,
  seen: { known: KnownAlert | null; deviceName: string | null; atNs: EpochNs; workspaceTag: string },
): Observed {
  const { known, atNs, workspaceTag } = seen;
  const digest = stateDigest(alert);
  const open = isOpen(alert);
  if (known !== null && known.stateDigest === digest && !(open && atNs - known.stateNs >= REPEAT_NS)) {
    return { known, changed: false, lines: [] };
  }
  const identity = known ?? identityOf(alert, seen.deviceName);
  // Two states at one instant would be one point.
  const stateNs = known !== null && atNs <= known.stateNs ? known.stateNs + 1n : atNs;
  const tags = tagsOf(identity, workspaceTag);
  const facts = known === null ? factLine(alert, tags) : null;
  const state = encodeLine({ measurement: 'alert_state', tags, fields: stateFields(alert, open), at: stateNs });
  const lines = [facts, state].filter((line) => line !== null);
  const isListed = known?.isListed ?? false;
  return {
    known: { ...identity, openedAt: alert.openedAt, stateDigest: digest, stateNs, isOpen: open, isListed },
    changed: true,
    lines,
  };
}

function identityOf({ alertId, deviceId, kind, sensor }: AlertRecord, deviceName: string | null): AlertIdentity {
  return { alertId, deviceId, deviceName: deviceName ?? deviceId, kind, sensor };
}

function tagsOf({ alertId, deviceId, deviceName, kind, sensor }: AlertIdentity, workspaceTag: string): Tag[] {
  const identifying = (value: string | null): Tag[1] =>
    value === null || value === '' ? descriptiveTag('') : identityTag(value);
  return [
    ['alert_id', identityTag(String(alertId))],
    ['device_id', identifying(deviceId)],
    ['device_name', descriptiveTag(deviceName ?? '')],
    ['kind', descriptiveTag(kind ?? '')],
    ['sensor', identifying(sensor)],
    ['workspace_id', identityTag(workspaceTag)],
  ];
}

/** The facts as first seen, at the time at which it was opened; `null` where there is none to write. */
function factLine(alert: AlertRecord, tags: readonly Tag[]): string | null {
  const fields = [
    ...present('rule_name', alert.ruleName),
    ...present('condition', alert.condition),
    ...present('threshold', alert.threshold),
  ];
  return encodeLine({ measurement: 'alert', tags, fields, at: alert.openedAt });
}

function stateFields(alert: AlertRecord, open: boolean): Field[] {
  return [
    ...present('status', alert.status),
    ['open', Number(open)],
    ...present('fire_count', alert.fireCount),
    ...present('value', alert.value),
  ];
}

function present(key: FieldKey, value: FieldValue | null): Field[] {
  return value === null ? [] : [[key, value]];
}

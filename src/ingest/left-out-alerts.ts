/**
 * Alerts of excluded devices: they make no points, and are followed all the same.
 *
 * They have to be known, because the account counts all open alerts and listings stop at known ones. What was left out
 * of an alert is told by its state digest: it stays that of the last state that became a point, and is empty where none
 * did. So when its device is included again, the next look at it writes exactly what is lacking. Pure.
 */
import { isOpen, type KnownAlert, type Observed, observeAlert } from '../core/lines/alerts.ts';
import type { AlertRecord } from '../core/records.ts';

/** The state digest of an alert of which no point was made. */
const NO_POINT = '';

type Seen = Parameters<typeof observeAlert>[1];

/** Takes in an alert of an excluded device: known, without points. */
export function observeLeftOut(alert: AlertRecord, seen: Seen): Observed {
  const { known } = seen;
  const open = isOpen(alert);
  if (known !== null) return { known: { ...known, isOpen: open }, changed: known.isOpen !== open, lines: [] };
  const first = observeAlert(alert, seen);
  return { known: { ...first.known, stateDigest: NO_POINT }, changed: true, lines: [] };
}

/** Takes in an alert of a device that is synced; one that was left out so far becomes points as at first sight. */
export function observeKept(alert: AlertRecord, seen: Seen): Observed {
  const { known } = seen;
  if (known === null || known.stateDigest !== NO_POINT) return observeAlert(alert, seen);
  const { deviceId, deviceName, kind, sensor } = known;
  const first = observeAlert({ ...alert, deviceId, kind, sensor }, { ...seen, known: null, deviceName });
  const kept: KnownAlert = { ...first.known, isListed: known.isListed };
  return { ...first, known: kept };
}

/**
 * Alerts as the API tells them (API document, "Alert"): strict about the id and the time, tolerant of all else.
 */
import type { AlertPage, AlertRecord, RejectedRecord } from '../core/records.ts';
import { isObject, malformed, openEnvelope, rejectRecord } from './envelope.ts';
import { numberIn, textIn, timeIn, wholeIn } from './members.ts';

/** @returns `null` where it lacks what identifies an alert. */
function readAlert(item: unknown): AlertRecord | null {
  if (!isObject(item)) return null;
  const alertId = wholeIn(item, 'alert_id');
  const openedAt = timeIn(item, 'opened_at');
  if (alertId === null || openedAt === null) return null;
  return {
    alertId,
    deviceId: textIn(item, 'device_id'),
    ruleName: textIn(item, 'rule_name'),
    kind: textIn(item, 'kind'),
    sensor: textIn(item, 'sensor'),
    condition: textIn(item, 'condition'),
    threshold: numberIn(item, 'threshold'),
    value: numberIn(item, 'value'),
    fireCount: numberIn(item, 'fire_count'),
    status: textIn(item, 'status'),
    openedAt,
  };
}

/** A page of `GET /alerts`. @throws ApiFault `malformed` where it is no page. */
export function parseAlertPage(body: unknown, request: string): AlertPage {
  const { data, nextCursor } = openEnvelope(body, request);
  const alerts: AlertRecord[] = [];
  const rejected: RejectedRecord[] = [];
  for (const item of data) {
    const alert = readAlert(item);
    if (alert !== null) alerts.push(alert);
    else
      rejected.push(
        rejectRecord(isObject(item) ? 'the alert has no usable id or time' : 'the alert is no object', item),
      );
  }
  return { alerts, rejected, nextCursor };
}

/** The body of `GET /alerts/{alert_id}`. @throws ApiFault `malformed` where it is no alert. */
export function parseAlert(body: unknown, request: string): AlertRecord {
  const alert = readAlert(body);
  if (alert === null) throw malformed(request, 'the alert has no usable id or time');
  return alert;
}

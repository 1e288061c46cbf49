/**
 * Alerts as the API tells them (API document, "Alert"): strict about the id and the time, tolerant of all else.
 */
import { z } from 'zod';
import type { AlertPage, AlertRecord, RejectedRecord } from '../core/records.ts';
import { parseTimestamp } from '../core/time.ts';
import { isObject, malformed, openEnvelope, rejectRecord } from './envelope.ts';

const text = z.string().nullable().catch(null);
const number = z.number().nullable().catch(null);

const alertSchema = z
  .object({
    alert_id: z.int(),
    device_id: text,
    rule_name: text,
    kind: text,
    sensor: text,
    condition: text,
    threshold: number,
    value: number,
    fire_count: number,
    status: text,
    opened_at: z.string(),
  })
  .transform((alert, context): AlertRecord => {
    const openedAt = parseTimestamp(alert.opened_at);
    if (openedAt === null) {
      context.addIssue({ code: 'custom', message: 'opened_at is no time' });
      return z.NEVER;
    }
    return {
      alertId: alert.alert_id,
      deviceId: alert.device_id,
      ruleName: alert.rule_name,
      kind: alert.kind,
      sensor: alert.sensor,
      condition: alert.condition,
      threshold: alert.threshold,
      value: alert.value,
      fireCount: alert.fire_count,
      status: alert.status,
      openedAt,
    };
  });

/** A page of `GET /alerts`. @throws ApiFault `malformed` where it is no page. */
export function parseAlertPage(body: unknown, request: string): AlertPage {
  const { data, nextCursor } = openEnvelope(body, request);
  const alerts: AlertRecord[] = [];
  const rejected: RejectedRecord[] = [];
  for (const item of data) {
    const parsed = alertSchema.safeParse(item);
    if (parsed.success) alerts.push(parsed.data);
    else
      rejected.push(
        rejectRecord(isObject(item) ? 'the alert has no usable id or time' : 'the alert is no object', item),
      );
  }
  return { alerts, rejected, nextCursor };
}

/** The body of `GET /alerts/{alert_id}`. @throws ApiFault `malformed` where it is no alert. */
export function parseAlert(body: unknown, request: string): AlertRecord {
  const parsed = alertSchema.safeParse(body);
  if (!parsed.success) throw malformed(request, 'the alert has no usable id or time');
  return parsed.data;
}

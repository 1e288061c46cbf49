/**
 * What `--forget` tells people: what was removed, and what it did not touch.
 */
import { identityTag } from '../../core/lines/line-text.ts';
import { counted, grouped, plainText } from '../../core/text.ts';
import { wrapped } from '../shared/upkeep-text.ts';
import type { ForgetSummary } from './forget.ts';

/** At most 80 columns wide, but for statements to be copied. */
export function forgetText(deviceId: string, summary: ForgetSummary): string {
  const { outcome, points, quarantined, alerts, is_listed, is_log_empty } = summary;
  const name = plainText(deviceId, 60);
  if (outcome === 'interrupted') {
    return wrapped(
      `Stopped before all of ${name} was removed. The next start finishes it, and so does running this again.`,
    );
  }
  const lines = [
    `Removed of ${name}: ${counted(points, 'point')} of the archive, ${grouped(quarantined)} in quarantine, ${counted(alerts, 'alert')}, and all that was known of it.`,
  ];
  if (outcome === 'waiting') {
    lines.push(
      'Some points came in meanwhile that are not delivered yet: they stay until then. Run it again for them.',
    );
  }
  if (is_listed) {
    lines.push(
      'The API lists it still: its entry (name, model, tags) comes back with the next listing, its readings do not, as long as it is excluded.',
    );
  }
  if (!is_log_empty) {
    lines.push(
      'Another process was reading the state: its log (tidemark.db-wal) holds what was removed until it is written next.',
    );
  }
  lines.push('Your databases were not touched, and copies of the state that were made before hold it still.');
  return `${lines.map((line) => wrapped(line)).join('')}\n${statements(deviceId)}`;
}

/** How to remove it there. */
function statements(deviceId: string): string {
  const tag = identityTag(deviceId);
  if (plainText(tag, 2000) !== tag) {
    return wrapped(
      'The id holds characters that cannot be shown: look its series up in the database to remove them there.',
    );
  }
  const influxql = tag.replace(/'/g, "\\'");
  return [
    'In InfluxDB it is removed by (InfluxQL, in the database of the bucket):\n',
    `  DELETE WHERE "device_id" = '${influxql}'\n`,
    'In VictoriaMetrics by its /api/v1/admin/tsdb/delete_series with\n',
    `  match[]={device_id=${JSON.stringify(tag)}}\n`,
  ].join('');
}

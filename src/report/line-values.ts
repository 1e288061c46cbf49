/**
 * The last values of a device out of its telemetry lines (`LastValue`). Pure.
 */
import { readFieldValue, readLine } from '../core/lines/line-reader.ts';
import { type LastValue, MAX_SHOWN_LENGTH, MAX_VALUE_LENGTH } from '../core/page-facts.ts';
import { shortened } from '../core/text.ts';
import { type EpochNs, formatExact } from '../core/time.ts';
import { compareText, orderKey } from './name-order.ts';

/**
 * The newest value of each sensor in some lines, in the order of the sensors' names. Of two at one instant (they are of
 * two types) the one whose field comes last.
 *
 * @param most how many sensors at most.
 */
export function lastValues(lines: readonly string[], most: number): readonly LastValue[] {
  const newest = new Map<string, { readonly field: string; readonly raw: string; readonly at: EpochNs }>();
  for (const line of lines) {
    const { tags, fields, at } = readLine(line);
    const sensor = tags.find(([key]) => key === 'sensor')?.[1];
    const [field, raw] = fields[0] ?? [];
    if (sensor === undefined || field === undefined || raw === undefined) continue;
    const known = newest.get(sensor);
    if (known === undefined || at > known.at || (at === known.at && field > known.field)) {
      newest.set(sensor, { field, raw, at });
    }
  }
  return [...newest]
    .map(([sensor, value]) => ({ key: orderKey(sensor), sensor, value }))
    .sort((a, b) => compareText(a.key, b.key) || compareText(a.sensor, b.sensor))
    .slice(0, most)
    .map(({ sensor, value: { raw, at } }) => lastValue(sensor, raw, at));
}

/** A value as it is shown. @param raw as it stands in a line: `21.5`, `true`, `"text"`. */
export function lastValue(sensor: string, raw: string, at: EpochNs): LastValue {
  const text = raw.startsWith('"') ? String(readFieldValue(raw)) : raw;
  return {
    sensor: shortened(sensor, MAX_SHOWN_LENGTH),
    value: shortened(text, MAX_VALUE_LENGTH),
    at: formatExact(at),
  };
}

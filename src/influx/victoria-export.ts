/**
 * Telemetry read back from a VictoriaMetrics by its export: numbers, whole milliseconds, a series in pieces of some
 * thousand samples, each a line.
 */

import type { PointSource, ReadTrouble } from '../core/state/verify.ts';
import type { EpochNs } from '../core/time.ts';
import type { ReadLines } from './reading.ts';
import { inSectionOf } from './trouble.ts';

/** Samples in a line of an answer. */
const LINE_SAMPLES = 5000;

/** The metrics of telemetry, by the field that each is made of. */
const FIELD_OF: Readonly<Record<string, string>> = { telemetry_value: 'value', telemetry_flag: 'flag' };

/** @param workspace the tag value. */
export interface VictoriaPlace {
  readonly name: string;
  readonly workspace: string;
}

interface Exported {
  readonly metric: Readonly<Record<string, string>>;
  readonly values: readonly (number | null)[];
  readonly timestamps: readonly number[];
}

/** A source over a database's export. */
export function createVictoriaSource({ name, workspace }: VictoriaPlace, read: ReadLines): PointSource {
  const own = `__name__=~"telemetry_(value|flag)",workspace_id=${JSON.stringify(workspace)}`;
  return {
    name,
    kind: 'victoriametrics',
    points: async ({ device, from, to }, take, signal) => {
      const query = new URLSearchParams({
        'match[]': `{${own},device_id=${JSON.stringify(device)}}`,
        start: seconds(from),
        // Its ends are both part of what it gives.
        end: seconds(to - 1n),
        max_rows_per_line: `${LINE_SAMPLES}`,
      });
      return await read(
        `/api/v1/export?${query}`,
        (line) => {
          const series = parsed(line) as Partial<Exported> | null;
          if (!isSeries(series)) return notUnderstood(name);
          const field = FIELD_OF[series.metric['__name__'] ?? ''] ?? 'value';
          const sensor = series.metric['sensor'] ?? '';
          series.timestamps.forEach((ms, index) => {
            take(`${ms}000000`, sensor, `${field}=${series.values[index]}`);
          });
          return null;
        },
        signal,
      );
    },
    devices: async (signal) => {
      const found: string[] = [];
      const query = new URLSearchParams({ 'match[]': `{${own}}`, start: '0' });
      const trouble = await read(
        `/api/v1/label/device_id/values?${query}`,
        (line) => {
          const data = parsed(line)?.['data'];
          if (!Array.isArray(data)) return notUnderstood(name);
          found.push(...data.map(String));
          return null;
        },
        signal,
      );
      return trouble ?? found;
    },
    hasAny: async (signal) => {
      let isFound = false;
      const query = new URLSearchParams({ 'match[]': `{${own}}`, start: '0' });
      const trouble = await read(
        `/api/v1/label/workspace_id/values?${query}`,
        (line) => {
          const data = parsed(line)?.['data'];
          if (!Array.isArray(data)) return notUnderstood(name);
          isFound ||= data.length > 0;
          return null;
        },
        signal,
      );
      return trouble ?? isFound;
    },
  };
}

/** Unix time in seconds, to the millisecond. */
function seconds(at: EpochNs): string {
  const ms = `${at / 1_000_000n}`.padStart(4, '0');
  return `${ms.slice(0, -3)}.${ms.slice(-3)}`;
}

function parsed(line: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? { ...value } : null;
  } catch {
    return null;
  }
}

function isSeries(series: Partial<Exported> | null): series is Exported {
  return series?.metric !== undefined && Array.isArray(series.values) && Array.isArray(series.timestamps);
}

function notUnderstood(name: string): ReadTrouble {
  const hint = inSectionOf(name, 'influx.url: what answers there is no VictoriaMetrics, or one whose export is shut');
  return { kind: 'refused', words: 'the answer to an export is not understood', hint };
}

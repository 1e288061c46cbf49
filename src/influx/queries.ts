/**
 * The query side: telemetry of one workspace, read back from a destination of either kind.
 */
import type { DestinationKind } from '../core/lines/dialect.ts';
import type { PointSource } from '../core/state/verify.ts';
import { createInfluxSource } from './influxql.ts';
import { createReader } from './reading.ts';
import type { InfluxSinkOptions } from './sink.ts';
import { createVictoriaSource } from './victoria-export.ts';

/**
 * Opens a destination for reading, by the same way as it is written to. Asks nothing yet.
 *
 * @param workspace the tag value. @throws UserError (exit 78) where a proxy is named that is none.
 */
export function createPointSource(options: InfluxSinkOptions, kind: DestinationKind, workspace: string): PointSource {
  const { name, bucket } = options;
  const read = createReader({ ...options, basic: kind === 'victoriametrics' });
  return kind === 'victoriametrics'
    ? createVictoriaSource({ name, workspace }, read)
    : createInfluxSource({ name, bucket, workspace }, read);
}

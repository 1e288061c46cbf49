/**
 * The libraries that the built program loads from `node_modules`; all others are in it.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * SQLite is native, uPlot is served to browsers as a file, and two are loaded only when they are needed. The client of
 * InfluxDB uses deprecated functions of Node, and Node does not warn about those below `node_modules`.
 */
export const OUTSIDE = ['@influxdata/influxdb-client', 'better-sqlite3', 'uplot', 'yaml'];

/** Their names and those of all that they need, as they lie in a `node_modules`. */
export function outsideLibraries(folder) {
  const names = new Set(OUTSIDE);
  // A set goes on to what is added while it is gone through.
  for (const name of names) {
    const { dependencies = {} } = JSON.parse(readFileSync(join(folder, name, 'package.json'), 'utf8'));
    for (const needed of Object.keys(dependencies)) names.add(needed);
  }
  return [...names].sort();
}

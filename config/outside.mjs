/**
 * The libraries that the built program loads from `node_modules`; all others are in it.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * SQLite is native, what browsers load is read as a file, and two are loaded where somebody asks for them. The client
 * of InfluxDB calls what Node warns of, and Node warns of nothing below `node_modules`.
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

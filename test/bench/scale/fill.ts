/**
 * Fills a state with any number of devices and archived readings, without an API, to measure `--status`, `--export`,
 * `--replay` and `--verify`.
 *
 *   node test/bench/scale/fill.ts DIR [--devices 10000] [--readings 100000000] [--days 30] [--sensors 1]
 *                                     [--influx URL] [--seed 1] [--newest-ms MS]
 *
 * DIR becomes a `data_dir` (it must not contain a state yet). With the defaults 10,000 devices of 100 million readings
 * of one value over 30 days, a block and a day sum for each device and day: two minutes, 670 MB of disk and of memory.
 * 1,000,000 readings of 200 devices take two seconds and 11 MB.
 *
 * The rows have the shapes of the program's tables (made by the program's own migrations), the blocks are packed by the
 * program's own `pack`, lines, digests and day sums are made by its own rules: `--verify` finds the same sums in the
 * lines. Of every hundred devices some are odd (`oddities` in `devices.ts`). A destination `influx` (kind influxdb, org
 * `bench`, bucket `bench`) has acknowledged all but the last day.
 */
import { parseArgs } from 'node:util';
import { fillState } from './state.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    devices: { type: 'string', default: '10000' },
    readings: { type: 'string', default: '100000000' },
    days: { type: 'string', default: '30' },
    sensors: { type: 'string', default: '1' },
    influx: { type: 'string', default: 'http://127.0.0.1:8086' },
    seed: { type: 'string', default: '1' },
    'newest-ms': { type: 'string' },
  },
});
const [directory] = positionals;
if (directory === undefined) throw new Error('usage: node test/bench/scale/fill.ts DIR [--devices N] [--readings N]');

const startedMs = performance.now();
const filled = fillState(directory, {
  devices: count(values.devices),
  readings: count(values.readings),
  days: count(values.days),
  sensors: count(values.sensors),
  seed: count(values.seed),
  influx: values.influx,
  newestMs: values['newest-ms'] === undefined ? Date.now() - 5 * 60_000 : count(values['newest-ms']),
  onDay: (day, of) => process.stderr.write(`day ${day} of ${of}, ${seconds()} s\n`),
});
process.stdout.write(`${JSON.stringify({ ...filled, seconds: seconds() })}\n`);

function count(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new Error(`${text}: expected a whole number above 0`);
  return Number(text);
}

function seconds(): number {
  return Math.round((performance.now() - startedMs) / 100) / 10;
}

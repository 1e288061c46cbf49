/**
 * The resources of the container with 2,000 devices: a simulated workspace that is filled and then kept up with, in
 * real time, and a database that keeps nothing, outside of it.
 */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StatusReport } from '../../src/core/status.ts';
import type { FleetPlan } from '../bench/fleet/run.ts';
import { startNullInflux } from '../bench/parts.ts';
import { TOKEN } from '../process/support.ts';
import type { Engine } from './engine.ts';
import { detached, directory } from './life.ts';

const FLEET: FleetPlan = { devices: 2000, reportMinutes: 15, requestsPerMinute: 1200 };
const MINUTES = Number(process.env['TIDEMARK_IMAGE_MINUTES'] ?? 4);
const MOST_BYTES = 180_000_000;
const PORT = 19_466;

/** @throws where it holds more than 180 MB at any time, or has not filled what there is. */
export async function fleet(engine: Engine): Promise<void> {
  using volume = directory();
  using secret = directory();
  chownSync(volume.path, 1000, 1000);
  const origin = fork(join(import.meta.dirname, '..', 'bench', 'fleet', 'origin.ts'), [JSON.stringify(FLEET)]);
  try {
    const [{ url, key }] = await once(origin, 'message');
    using sink = await startNullInflux();
    writeFileSync(join(secret.path, 'tidemark_api_key'), key);
    writeFileSync(join(secret.path, 'tidemark_influx_token'), TOKEN);
    chmodSync(secret.path, 0o755);
    const env = {
      TIDEMARK_API_URL: url,
      TIDEMARK_API_KEY_FILE: '/run/secrets/tidemark_api_key',
      TIDEMARK_INFLUX_URL: sink.url,
      TIDEMARK_INFLUX_ORG: 'fleet',
      TIDEMARK_INFLUX_BUCKET: 'fleet',
      TIDEMARK_INFLUX_TOKEN_FILE: '/run/secrets/tidemark_influx_token',
      TIDEMARK_LISTEN: `127.0.0.1:${PORT}`,
      TIDEMARK_SYNC_HISTORY: '1d',
    };
    const flags = [
      ...Object.entries(env).map(([name, value]) => `--env=${name}=${value}`),
      `--volume=${secret.path}:/run/secrets:ro`,
      `--volume=${volume.path}:/data`,
    ];
    await using daemon = await detached(engine, { flags, args: [] });
    await daemon.until(/Tidemark started/);
    await sleep(MINUTES * 60_000);
    const { totals } = (await (await fetch(`http://127.0.0.1:${PORT}/status.json`)).json()) as StatusReport;
    const { stdout } = await daemon.exec(['cat', '/proc/1/status']);
    const peakBytes = Number(/^VmHWM:\s*(\d+) kB$/m.exec(stdout)?.[1]) * 1024;
    const reported = `${totals.devices_complete} of ${totals.devices} devices, ${totals.archived_readings} readings`;
    process.stdout.write(`   at most ${Math.round(peakBytes / 1e6)} MB in ${MINUTES} minutes: ${reported}\n`);
    assert.equal(totals.devices, FLEET.devices);
    assert.ok(totals.archived_readings > 10_000, reported);
    assert.ok(peakBytes < MOST_BYTES, `${peakBytes} bytes`);
    assert.equal(await daemon.stop(), 0);
  } finally {
    origin.kill();
  }
}

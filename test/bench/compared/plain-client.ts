/**
 * A backfill as a competent user would write it in an afternoon with the same libraries: the devices four at a time,
 * each page by its cursor, points by the database's own client, and a file that remembers how far each device has come.
 *
 * It loses readings where it is killed or the database refuses a batch: the client acknowledges before the database has
 * answered. That is what it is compared for: the price of not losing any.
 *
 *   node plain-client.ts API_URL INFLUX_URL AFTER CHECKPOINT_FILE
 */
import { writeFileSync } from 'node:fs';
import { InfluxDB, Point } from '@influxdata/influxdb-client';
import { request } from 'undici';

interface Page<T> {
  readonly data: readonly T[];
  readonly next_cursor?: string;
}

interface Device {
  readonly device_id: string;
  readonly name: string;
}

interface Reading {
  readonly recorded_at: string;
  readonly values: Readonly<Record<string, number>>;
}

const [, , api = '', influx = '', after = '', checkpointFile = ''] = process.argv;
const CONCURRENCY = 4;
const WORKSPACE = 'bench';

const writeApi = new InfluxDB({ url: influx, token: 'bench_token' }).getWriteApi('bench', 'bench', 'ns', {
  batchSize: 5000,
  gzipThreshold: 1000,
});

async function get<T>(path: string, query: Readonly<Record<string, string>>): Promise<T> {
  for (;;) {
    const { statusCode, headers, body } = await request(`${api}${path}?${new URLSearchParams(query)}`, {
      headers: { authorization: 'Bearer bench_key' },
    });
    const text = await body.text();
    if (statusCode === 200) return JSON.parse(text) as T;
    if (statusCode !== 429) throw new Error(`${path}: ${statusCode}`);
    await new Promise((resolve) => setTimeout(resolve, Number(headers['retry-after'] ?? 60) * 1000));
  }
}

/** All pages of a list. */
async function* pagesOf<T>(path: string, query: Readonly<Record<string, string>>): AsyncGenerator<readonly T[]> {
  let cursor: string | undefined;
  do {
    const page: Page<T> = await get(path, { ...query, limit: '200', ...(cursor === undefined ? {} : { cursor }) });
    yield page.data;
    cursor = page.next_cursor;
  } while (cursor !== undefined);
}

const checkpoint: Record<string, string> = {};

async function sync({ device_id, name }: Device): Promise<void> {
  const path = `/devices/${encodeURIComponent(device_id)}/telemetry`;
  let newest = after;
  for await (const readings of pagesOf<Reading>(path, { after })) {
    for (const { recorded_at, values } of readings) {
      if (recorded_at > newest) newest = recorded_at;
      const at = `${Date.parse(recorded_at)}000000`;
      for (const [sensor, value] of Object.entries(values)) {
        const point = new Point('telemetry').tag('device_id', device_id).tag('device_name', name);
        writeApi.writePoint(
          point.tag('sensor', sensor).tag('workspace_id', WORKSPACE).floatField('value', value).timestamp(at),
        );
      }
    }
  }
  checkpoint[device_id] = newest;
  writeFileSync(checkpointFile, JSON.stringify(checkpoint));
}

const devices: Device[] = [];
for await (const page of pagesOf<Device>('/devices', {})) devices.push(...page);
const waiting = devices.values();
await Promise.all(
  Array.from({ length: CONCURRENCY }, async () => {
    for (const device of waiting) await sync(device);
  }),
);
await writeApi.close();

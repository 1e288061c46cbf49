/**
 * The minimum work for a live fleet: poll each device once a minute, spread over the minute, for readings since ten
 * minutes before its newest reading; parse the page, make its new lines, keep them in SQLite with how far they reach
 * (durable, a commit a poll), pack them at level 1 and send them. Nothing is checked, planned, counted, repeated or
 * reported.
 *
 *   node idle-floor.ts API_URL FILE INFLUX_URL
 */
import { promisify } from 'node:util';
import { gzip, zstdCompressSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { request } from 'undici';

interface Reading {
  readonly recorded_at: string;
  readonly values: Readonly<Record<string, number>>;
}

interface Page<Each> {
  readonly data: readonly Each[];
  readonly next_cursor?: string | null;
}

const [, , api = '', file = '', influx = ''] = process.argv;
const MINUTE_MS = 60_000;
const OVERLAP_MS = 10 * MINUTE_MS;
const pack = promisify<string, { level: number }, Buffer>(gzip);

const db = new Database(file);
db.pragma('journal_mode = WAL');
db.pragma('synchronous = FULL');
db.exec('CREATE TABLE block (data BLOB); CREATE TABLE checkpoint (device_id TEXT PRIMARY KEY, newest TEXT)');
const insert = db.prepare('INSERT INTO block VALUES (?)');
const keep = db.prepare('INSERT OR REPLACE INTO checkpoint VALUES (?, ?)');
const commit = db.transaction((data: Buffer, deviceId: string, newest: string) => {
  insert.run(data);
  keep.run(deviceId, newest);
});

async function get<Each>(path: string): Promise<Page<Each>> {
  const headers = { authorization: 'Bearer bench_key' };
  const { body } = await request(`${api}${path}`, { headers });
  return JSON.parse(await body.text()) as Page<Each>;
}

/** Polls a device. @returns the time of its newest reading */
async function poll(deviceId: string, name: string, newest: string): Promise<string> {
  const after = encodeURIComponent(new Date(Date.parse(newest) - OVERLAP_MS).toISOString());
  const page = await get<Reading>(`/devices/${deviceId}/telemetry?limit=200&after=${after}`);
  const fresh = page.data.filter(({ recorded_at }) => recorded_at > newest);
  const [first] = fresh;
  if (first === undefined) return newest;
  let text = '';
  for (const { recorded_at, values } of fresh) {
    const stamp = `${Date.parse(recorded_at)}000000`;
    for (const sensor in values) {
      text += `telemetry,device_id=${deviceId},sensor=${sensor},device_name=${name},workspace_id=bench value=${values[sensor]} ${stamp}\n`;
    }
  }
  commit(zstdCompressSync(text), deviceId, first.recorded_at);
  const headers = { 'content-encoding': 'gzip', 'content-type': 'text/plain' };
  const url = `${influx}/api/v2/write?org=bench&bucket=bench&precision=ns`;
  const answer = await request(url, { method: 'POST', headers, body: await pack(text, { level: 1 }) });
  await answer.body.dump();
  return first.recorded_at;
}

const devices: [string, string][] = [];
for (let cursor: string | null | undefined = ''; cursor !== null && cursor !== undefined; ) {
  const page: Page<{ device_id: string; name: string }> = await get(
    `/devices?limit=200${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
  );
  for (const { device_id, name } of page.data) devices.push([device_id, name.replaceAll(' ', '\\ ')]);
  cursor = page.next_cursor;
}
for (const [index, [deviceId, name]] of devices.entries()) {
  let newest = new Date(Date.now() - MINUTE_MS).toISOString();
  const again = (): void => {
    setTimeout(again, MINUTE_MS);
    void poll(deviceId, name, newest).then((reached) => {
      newest = reached;
    });
  };
  setTimeout(again, (index * MINUTE_MS) / devices.length);
}

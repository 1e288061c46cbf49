/**
 * The minimum work of a backfill, in one cold process: receive a page, parse it, make its lines, keep it in SQLite
 * with how far it reaches (durable, a commit for so many pages), and where a database is given, pack eight pages at
 * level 1 and send them. Nothing is checked, planned, counted or repeated.
 *
 *   node floor.ts API_URL AFTER FILE PAGES_A_COMMIT [INFLUX_URL]
 */
import { promisify } from 'node:util';
import { gzip, zstdCompressSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { request } from 'undici';

interface Page {
  readonly data: readonly {
    readonly recorded_at: string;
    readonly values: Readonly<Record<string, number>>;
    readonly device_id: string;
    readonly name: string;
  }[];
  readonly next_cursor?: string;
}

const [, , api = '', after = '', file = '', pagesACommit = '1', influx] = process.argv;
const CONCURRENCY = 4;
const PAGES_A_BATCH = 8;
const pack = promisify<string, { level: number }, Buffer>(gzip);

const db = new Database(file);
db.pragma('journal_mode = WAL');
db.pragma('synchronous = FULL');
db.exec('CREATE TABLE block (data BLOB); CREATE TABLE checkpoint (device_id TEXT PRIMARY KEY, oldest TEXT)');
const insert = db.prepare('INSERT INTO block VALUES (?)');
const keep = db.prepare('INSERT OR REPLACE INTO checkpoint VALUES (?, ?)');
db.pragma('synchronous = FULL');
const waiting: (readonly [data: Buffer, deviceId: string, oldest: string])[] = [];
const commit = db.transaction(() => {
  for (const [data, deviceId, oldest] of waiting.splice(0)) {
    insert.run(data);
    keep.run(deviceId, oldest);
  }
});

async function get(path: string, query: string): Promise<Page> {
  const { body } = await request(`${api}${path}?limit=200${query}`, { headers: { authorization: 'Bearer bench_key' } });
  return JSON.parse(await body.text()) as Page;
}

const batch: string[] = [];

async function send(): Promise<void> {
  const body = await pack(batch.splice(0).join('\n'), { level: 1 });
  const headers = { 'content-encoding': 'gzip', 'content-type': 'text/plain' };
  const path = '/api/v2/write?org=bench&bucket=bench&precision=ns';
  const answer = await request(`${influx}${path}`, { method: 'POST', headers, body });
  await answer.body.dump();
}

async function sync(deviceId: string, name: string): Promise<void> {
  let cursor: string | undefined;
  do {
    const page = await get(
      `/devices/${deviceId}/telemetry`,
      cursor === undefined ? `&after=${after}` : `&cursor=${cursor}`,
    );
    let text = '';
    for (const { recorded_at, values } of page.data) {
      const stamp = `${Date.parse(recorded_at)}000000`;
      for (const sensor in values) {
        text += `telemetry,device_id=${deviceId},sensor=${sensor},device_name=${name},workspace_id=bench value=${values[sensor]} ${stamp}\n`;
      }
    }
    waiting.push([zstdCompressSync(text), deviceId, page.data.at(-1)?.recorded_at ?? '']);
    if (waiting.length >= Number(pagesACommit)) commit();
    if (influx !== undefined && batch.push(text.slice(0, -1)) >= PAGES_A_BATCH) await send();
    cursor = page.next_cursor;
  } while (cursor !== undefined);
}

const devices: [string, string][] = [];
for (let cursor: string | undefined = ''; cursor !== undefined; ) {
  const page: Page = await get('/devices', cursor === '' ? '' : `&cursor=${cursor}`);
  for (const { device_id, name } of page.data) devices.push([device_id, name]);
  cursor = page.next_cursor;
}
const left = devices.values();
await Promise.all(
  Array.from({ length: CONCURRENCY }, async () => {
    for (const [deviceId, name] of left) await sync(deviceId, name);
  }),
);
commit();
if (batch.length > 0) await send();
db.close();

/**
 * The minimum work of a delivery, in one cold process: read the blocks of an archive from SQLite, unpack them, join
 * them to batches of at most 512 KB, pack the next batch at level 1 while others are under way, send it, and record the position
 * durably after each answer. No line is looked at, refused or counted, and no API is asked.
 *
 *   node delivery-floor.ts STATE WRITE_URL CONNECTIONS
 */
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import Database from 'better-sqlite3';
import { Pool } from 'undici';
import { type PackedBlock, unpackText } from '../../../src/store/archive/block-codec.ts';

const BATCH_BYTES = 512 * 1024;
const NEWLINE = Buffer.from('\n');

interface Batch {
  readonly lane: string;
  readonly seq: bigint;
  readonly body: Promise<Buffer>;
}

const [, , file = '', write = '', connections = '1'] = process.argv;
const pack = promisify<Buffer, { level: number }, Buffer>(gzip);
const db = new Database(file);
db.defaultSafeIntegers();
db.pragma('journal_mode = WAL');
db.pragma('synchronous = FULL');
db.exec('CREATE TABLE floor_position (lane TEXT PRIMARY KEY, seq INTEGER NOT NULL)');
const record = db.prepare('INSERT OR REPLACE INTO floor_position VALUES (?, ?)');
const select = db.prepare<[string, bigint], PackedBlock & { readonly seq: bigint }>(
  'SELECT seq, bytes, data FROM block WHERE lane = ? AND seq > ? ORDER BY seq LIMIT 1',
);
const { origin, pathname, search } = new URL(write);
const pool = new Pool(origin, { connections: Number(connections) });

async function send(packed: Promise<Buffer>): Promise<void> {
  const headers = { 'content-encoding': 'gzip', 'content-type': 'text/plain; charset=utf-8' };
  const { statusCode, body: answer } = await pool.request({
    method: 'POST',
    path: pathname + search,
    headers,
    body: await packed,
  });
  await answer.dump();
  if (statusCode !== 204) throw new Error(`the database answered ${statusCode}`);
}

/** All batches, in the order in which they are sent. */
function* batches(): Generator<Batch> {
  for (const lane of ['live', 'history']) {
    let seq = 0n;
    let rest: Buffer = Buffer.alloc(0);
    for (;;) {
      const read = readBlocks(lane, seq, rest);
      const { text } = read;
      if (text.length === 0) break;
      const end = text.length <= BATCH_BYTES ? text.length : text.lastIndexOf(NEWLINE, BATCH_BYTES - 1) + 1;
      rest = text.subarray(end);
      seq = read.seq;
      yield { lane, seq, body: pack(text.subarray(0, end), { level: 1 }) };
    }
  }
}

/** Joins what is left of the blocks before to those after it, up to the bytes of a batch or more. */
function readBlocks(lane: string, after: bigint, rest: Buffer): { readonly text: Buffer; readonly seq: bigint } {
  const parts: Buffer[] = [rest];
  let [bytes, seq] = [rest.length, after];
  while (bytes < BATCH_BYTES) {
    const block = select.get(lane, seq);
    if (block === undefined) break;
    parts.push(unpackText(block), NEWLINE);
    bytes += Number(block.bytes) + 1;
    seq = block.seq;
  }
  return { text: Buffer.concat(parts, bytes), seq };
}

const left = batches();
const underWay: (Batch & { readonly sent: Promise<void> })[] = [];
let prepared = left.next().value;

function sendPrepared(): void {
  if (prepared === undefined) return;
  underWay.push({ ...prepared, sent: send(prepared.body) });
  prepared = undefined;
}

/** Lets the request be written first. undici uses a connection again one turn of the event loop after an answer. */
async function written(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

for (;;) {
  while (prepared !== undefined && underWay.length < Number(connections)) {
    sendPrepared();
    await written();
    prepared = left.next().value;
  }
  const first = underWay.shift();
  if (first === undefined) break;
  await first.sent;
  // The database is not kept waiting for the position to be recorded.
  sendPrepared();
  await written();
  record.run(first.lane, first.seq);
  prepared ??= left.next().value;
}
await pool.close();
db.close();

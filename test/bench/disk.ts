/**
 * The size of the archive on disk once it is compacted, against zstd at level 3 of the same lines in one piece: after a
 * backfill, and after days of live polls.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { constants, createZstdCompress } from 'node:zlib';
import { DAY_MS, MINUTE_MS } from '../../src/core/time.ts';
import { unpackText } from '../../src/store/archive/block-codec.ts';
import { openStore } from '../../src/store/store.ts';
import { runProgram, sourceEnv, startOrigin, wholeHistory } from './parts.ts';
import { readState } from './read-state.ts';
import type { Measured } from './table.ts';
import { withVirtualDaemon } from './virtual-daemon.ts';
import type { WorkspaceSize } from './workspace.ts';

export interface DiskPlan {
  readonly program: string;
  readonly size: WorkspaceSize;
  /** How many virtual days of live polls, of how many devices. */
  readonly live: { readonly devices: number; readonly days: number };
  readonly say: (text: string) => void;
}

const WANTED = 1.1;
const LEVEL = 3;
const NEWLINE = Buffer.from('\n');

/** @throws Error if the state is not complete */
export async function measureDisk(plan: DiskPlan): Promise<Measured[]> {
  const figure = { unit: 'times', wanted: WANTED, better: 'less' } as const;
  return [
    { ...figure, figure: 'state to zstd 3 of its lines, after a backfill', values: [await backfilled(plan)] },
    { ...figure, figure: 'state to zstd 3 of its lines, after live polls', values: [await polled(plan)] },
  ];
}

async function backfilled({ program, size, say }: DiskPlan): Promise<number> {
  const dataDir = mkdtempSync(join(tmpdir(), 'tidemark-bench-'));
  using origin = await startOrigin(size);
  const env = { ...sourceEnv(origin.url, dataDir), ...wholeHistory(size) };
  try {
    const { code, stderr } = await runProgram(['--once'], { program, env });
    if (code !== 0) throw new Error(stderr.slice(-2000));
    return await ratioOf(dataDir, 'after a backfill', say);
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function polled({ live, say }: DiskPlan): Promise<number> {
  const devices = Array.from({ length: live.devices }, (_, index) => ({
    deviceId: `sensor-${index}`,
    intervalMs: MINUTE_MS,
    jitter: 0.2,
  }));
  const plan = { requestsPerMinute: 600, requestsPerDay: 500_000 };
  return await withVirtualDaemon({ devices, plan }, async ({ clock, dataDir, end }) => {
    await clock.sleep(live.days * DAY_MS);
    await end();
    return await ratioOf(dataDir, 'after live polls', say);
  });
}

/** Compacts all that can be, and compares. */
async function ratioOf(dataDir: string, what: string, say: (text: string) => void): Promise<number> {
  compactAll(dataDir);
  const [now, empty] = [bytesOf(dataDir), bytesOfNew()];
  const { values, packed, best } = await packWhole(dataDir);
  // The ledger keeps two days of requests, however long the archive is, and every state has its tables.
  const bytes = now.block + now.others - empty.block - empty.others;
  const perValue = (all: number): string => (all / values).toFixed(2);
  say(
    `disk, ${what}: ${values} values, of which each takes ${perValue(bytes)} bytes (packed lines ${perValue(packed)}, blocks ${perValue(now.block)}) and ${perValue(best)} by zstd ${LEVEL}; not counted: the ledger, ${now.request} bytes, and an empty state, ${empty.block + empty.others}`,
  );
  return bytes / best;
}

type Bytes = Readonly<Record<'block' | 'request' | 'others', number>>;

/** The size of the blocks, the ledger and all other tables, with their indexes. */
function bytesOf(dataDir: string): Bytes {
  const rows = readState(
    dataDir,
    `SELECT CASE WHEN tbl_name IN ('block', 'request') THEN tbl_name ELSE 'others' END AS kind, sum(pgsize) AS bytes
     FROM dbstat JOIN sqlite_schema USING (name) GROUP BY 1`,
  );
  const of = (kind: keyof Bytes): number => Number(rows.find((row) => row['kind'] === kind)?.['bytes'] ?? 0);
  return { block: of('block'), request: of('request'), others: of('others') };
}

function bytesOfNew(): Bytes {
  const dataDir = mkdtempSync(join(tmpdir(), 'tidemark-bench-'));
  try {
    openStore(dataDir).close();
    return bytesOf(dataDir);
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** As if the day of the last page was over. */
function compactAll(dataDir: string): void {
  const nowMs = Date.now() + 400 * DAY_MS;
  const { maintenance, close } = openStore(dataDir, { nowMs: () => nowMs });
  try {
    const readers = { configured: [], active: [] };
    for (const group of maintenance.compactionGroups(nowMs)) while (maintenance.compact(group, readers, nowMs));
  } finally {
    close();
  }
}

/** Packs all lines in the order of the log. */
async function packWhole(dataDir: string): Promise<{ values: number; packed: number; best: number }> {
  const compress = createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: LEVEL } });
  const ended = once(compress, 'end');
  let best = 0;
  compress.on('data', (chunk: Buffer) => {
    best += chunk.length;
  });
  let [values, packed] = [0, 0];
  for (const { lines, bytes, data } of readState(dataDir, 'SELECT lines, bytes, data FROM block ORDER BY seq')) {
    if (!Buffer.isBuffer(data)) throw new Error('a block without data');
    values += Number(lines);
    packed += data.length;
    const text = unpackText({ data, bytes: BigInt(Number(bytes)) });
    if (!compress.write(Buffer.concat([text, NEWLINE]))) await once(compress, 'drain');
  }
  compress.end();
  await ended;
  return { values, packed, best };
}

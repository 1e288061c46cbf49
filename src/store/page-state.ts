/**
 * What the status page reads of the state (`core/state/facts.ts`), over any connection to it.
 */
import type Database from 'better-sqlite3';
import { TIE_REACH_NS } from '../core/lines/offsets.ts';
import type { PageState } from '../core/state/facts.ts';
import type { EpochNs } from '../core/time.ts';
import { type AlertRow, toKnownAlert } from './alerts.ts';
import { type PackedBlock, release, unpack } from './archive/block-codec.ts';

/** Prepares it for an open database. */
export function createPageState(db: Database.Database): PageState {
  const oldest = db
    .prepare<[string], EpochNs | null>('SELECT min(first_ns) FROM block WHERE device_id = ? AND first_ns IS NOT NULL')
    .pluck();
  const counts = db.prepare<[], { alerts: bigint; open: bigint }>(
    'SELECT count(*) AS alerts, ifnull(sum(is_open), 0) AS open FROM alert',
  );
  const first = db.prepare<[number], AlertRow>(
    'SELECT * FROM alert ORDER BY is_open DESC, opened_ns DESC, alert_id DESC LIMIT ?',
  );
  return {
    newestLines: createNewestLines(db),
    archivedSince: (deviceId) => oldest.get(deviceId) ?? null,
    alertsSeen: (count) => {
      const { alerts, open } = counts.get() ?? { alerts: 0n, open: 0n };
      return { alerts: Number(alerts), open: Number(open), first: first.all(count).map(toKnownAlert) };
    },
  };
}

/** Of so many devices the lines are remembered: a page that shows itself anew asks for the same ones again. */
const REMEMBERED = 200;

/** A device with more lines in its newest instant than that is looked at each time. */
const MOST_LINES = 100;

function createNewestLines(db: Database.Database): PageState['newestLines'] {
  const newest = db
    .prepare<[string], EpochNs | null>('SELECT max(last_ns) FROM block WHERE device_id = ? AND first_ns IS NOT NULL')
    .pluck();
  const around = db
    .prepare<[string, EpochNs], bigint>(
      'SELECT seq FROM block WHERE device_id = ? AND last_ns >= ? AND first_ns IS NOT NULL ORDER BY seq',
    )
    .pluck();
  const data = db.prepare<[bigint], PackedBlock>('SELECT data, bytes FROM block WHERE seq = ?');
  const read = (seq: bigint, from: EpochNs): readonly string[] => {
    const block = data.get(seq);
    if (block === undefined) return [];
    const lines = unpack(block.data, Number(block.bytes));
    release(block.data);
    return lines.filter((line) => line.startsWith('telemetry,') && isSince(line, from));
  };
  const known = new Map<string, { readonly place: string; readonly lines: readonly string[] }>();
  const look = (deviceId: string): readonly string[] => {
    const at = newest.get(deviceId) ?? null;
    if (at === null) return [];
    const from = at - TIE_REACH_NS;
    const blocks = around.all(deviceId, from);
    // Whatever is added to the instant comes in a block of its own, and no number is given twice.
    const place = `${at} ${blocks.join(' ')}`;
    const last = known.get(deviceId);
    known.delete(deviceId);
    const lines = last?.place === place ? last.lines : blocks.flatMap((seq) => read(seq, from));
    if (lines.length <= MOST_LINES) known.set(deviceId, { place, lines });
    for (const [longest] of known) {
      if (known.size <= REMEMBERED) break;
      known.delete(longest);
    }
    return lines;
  };
  return db.transaction(look);
}

/** A double tells most times apart; only what is near is looked at exactly. */
function isSince(line: string, from: EpochNs): boolean {
  const digits = line.slice(line.lastIndexOf(' ') + 1);
  return Number(digits) >= Number(from) && BigInt(digits) >= from;
}

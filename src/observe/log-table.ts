/**
 * Every line that the log may have, by its event: how loud it is, what it says and which fields it has. For readers: the
 * reference page (`docs/logs.md`) is made from it, and tests hold every line against it. `…` stands for what differs.
 */
import type { AppEvent } from '../core/events.ts';
import type { LineLevel } from './event-lines.ts';
import type { FieldName } from './log-fields.ts';

/** A kind of line. */
export interface LineRow {
  /** The first is the usual one; `when` tells of the others. */
  readonly levels: readonly [LineLevel, ...LineLevel[]];
  readonly message: string;
  readonly fields: readonly FieldName[];
  /** When it has which level, or more about it. */
  readonly note?: string;
}

function row(levels: string, message: string, fields = '', note?: string): LineRow {
  // The texts are those of this table, which a test reads.
  const names = (text: string): string[] => text.split(' ').filter((name) => name !== '');
  const line = { levels: names(levels) as [LineLevel, ...LineLevel[]], message, fields: names(fields) as FieldName[] };
  return note === undefined ? line : { ...line, note };
}

/** Lines of the sync. */
// biome-ignore format: a table, a row a line
export const EVENT_ROWS: { readonly [T in AppEvent['type']]: LineRow } = {
  'request-done': row('debug', 'request done', 'request lane status fault duration_ms'),
  'request-retried': row('debug info warn', 'a request will be tried again: …', 'request fault attempt wait_seconds',
    'by its wait: info from 5 seconds on and for lack of allowance, warn from 20 seconds on'),
  'allowance-wait': row('info', 'waiting: …', 'until'),
  'allowance-short': row('warn', 'the allowance is short: …', 'of'),
  'allowance-enough': row('info', 'the allowance carries the schedules again'),
  'plan-doubted': row('info', 'the API speaks of a limit that the plan does not have', 'limit'),
  'plan-changed': row('warn', 'the plan of the workspace has changed', 'before after'),
  'records-rejected': row('warn', 'records were set aside: …', 'stream count'),
  'values-dropped': row('warn', 'values were set aside, the others of their readings are written: …', 'device_id count'),
  'page-landed': row('debug', 'a page landed', 'device_id lane new_readings new_points'),
  'page-distrusted': row('info warn', 'a page proves nothing: …', 'device_id attempt', 'warn from the second try on'),
  restatement: row('warn', 'the API no longer shows a reading that it showed before', 'device_id at'),
  'readings-late': row('info', 'readings came after their time counted as complete: they are delivered all the same',
    'device_id count late_seconds settle_seconds'),
  'claims-withdrawn': row('warn', "the server's clock has fallen back: what lies beyond its present is read again", 'device_id from to'),
  'gap-named': row('warn debug', 'a gap is left: …', 'device_id from to',
    'debug where pages are what is short: `allowance-short` tells of all of them'),
  'stream-off': row('warn error', 'the key lacks the scope …: this stream is off, the others run. …', 'stream scope',
    'error for devices and telemetry: nothing is synced without them'),
  'stream-on': row('info', 'the key has the scope of this stream now: it is on again', 'stream'),
  'stream-failed': row('warn', '… could not be read: …', 'stream'),
  'stream-read': row('debug', 'a stream was read', 'stream'),
  'stream-back': row('info', '… can be read again', 'stream'),
  'listing-landed': row('debug', 'a page of a listing was taken in', 'stream records new_points'),
  'round-done': row('info', '…', 'stream runs requests failed_requests devices new_readings records new_points duration_ms',
    'a round of a stream: `telemetry: 3 new readings of 2 devices, 12 new points`, `devices: 31 listed, 0 new points`, `alerts: …`, `the account was read`; one a minute at most for each stream, telemetry by the minute'),
  'device-appeared': row('info', 'a new device', 'device_id device_name'),
  'device-renamed': row('info', 'a device was renamed', 'device_id before after'),
  'device-gone': row('info', 'a device is gone', 'device_id'),
  'device-returned': row('info', 'a device is back', 'device_id'),
  'filter-matches-nothing': row('warn', '…: … matches this pattern; is it a typing error?', 'pattern'),
  'destination-new': row('info warn', '… destination…: …', 'destination points before', 'warn where another had the name before'),
  'destination-older': row('warn', 'the state is empty, but the database has telemetry of this workspace already: …', 'destination'),
  'destination-kind': row('info', 'the database says that it is …', 'destination kind'),
  'lines-delivered': row('debug', 'lines delivered', 'destination lines duration_ms'),
  'lines-quarantined': row('warn', 'points were refused and are kept in quarantine: …', 'destination lines'),
  'lines-beyond-retention': row('info', 'points are older than the database keeps: they are not there', 'destination lines'),
  'destination-held': row('warn error', 'delivery is held: …', 'destination lines wait_seconds',
    'error where only a person can mend it (token, bucket, address), warn where the database is down or busy'),
  'destination-moving': row('info', 'delivery moves again', 'destination'),
  'replay-begun': row('info', '…archived points…again', 'destination from to after_lines'),
  'replay-ended': row('info warn', 'sending archived points again: …', 'destination lines', 'warn unless it is complete'),
  'device-forgotten': row('info', 'what was held of a device is removed, as was asked for', 'device_id points'),
  'archive-only': row('info', 'no database is configured: the archive alone is filled, and pulling stops at archive.max_size', 'max_bytes'),
  'archive-cleared': row('debug', 'delivered points were cleared from the archive, by their …', 'blocks lines'),
  'pulling-stopped': row('error', 'pulling has stopped: …'),
  'pulling-resumed': row('info', 'there is room again: pulling goes on'),
  'destination-set-aside': row('error', 'a destination blocks for too long while others move: it is set aside, and lacks what waited for it', 'destination lines'),
  'job-started': row('info', 'a command asked for work, which is begun: …', 'job kind asked_by'),
  'job-ended': row('info warn', 'the work that a command asked for …', 'job kind state exit_code duration_ms', 'warn where it failed'),
  'workspace-known': row('debug', 'the workspace is known'),
  'service-trouble': row('warn', 'the API does not answer: …', 'wait_seconds'),
  'service-back': row('info', 'the API answers again'),
  'key-refused': row('error', '…', 'wait_seconds', '`the API refuses the key: …`, `the plan of this workspace has no access to the API. …`, `the key lacks the scope …`'),
  'key-accepted': row('info', 'the API takes the key again: the sync goes on', '', 'after `key-exchanged` on debug only'),
  'key-exchanged': row('info', 'the key was exchanged: going on with the new one'),
  'pass-started': row('debug', 'a pass begins', 'devices'),
  'pass-failed': row('warn', 'a pass failed: …', 'wait_seconds'),
  'pass-back': row('info', 'a pass went through again'),
  'first-fill-done': row('info', 'all …', 'points points_to_deliver status_page',
    '`all 31 devices are held in full`, or how many have gaps; once after each start'),
  stopping: row('info', '…: what is under way is brought to an end'),
};

/** Lines of the program around it. */
// biome-ignore format: a table, a row a line
export const SAID_ROWS = {
  started: row('info', 'tidemark runs', 'status_page'),
  stopped: row('info', 'stopped'),
  'status-page-failed': row('error', 'status page: …'),
  progress: row('info', '…', '', 'how far long work is, once a minute'),
  'configuration-invalid': row('error', 'The configuration is not usable: …', 'mistakes exit_code',
    'where `log.format: json` can be read, or is in the environment; elsewhere it is told as text'),
  failed: row('error', '…', 'exit_code', 'the last line of a program that ends because of an error, with `log.format: json`; elsewhere it is told as text'),
  'run-ended': row('info warn', '…', 'devices points gaps exit_code outcome', '`--once`, `--backfill`: all is in place, or why not (warn)'),
  'run-lacks': row('warn info', '…', '', '`--once`, `--backfill`: something that is not in place, a line each; info for what was left out on purpose'),
  'replay-told': row('info warn', '…', '', '`--replay`: what has become of the points'),
  'export-told': row('info warn', '…', '', '`--export`: what was written, and what the archive has no longer'),
  'repair-told': row('info warn', '…', 'destination points readings requests', '`--verify --repair`: what is fetched again, and what could not be'),
  'job-followed': row('info', 'a daemon works with this state: it does the work, with its own configuration', 'data_dir'),
  'job-queued': row('info', 'the daemon is at other work of this kind, which a command asked for before: this one waits (--status tells of both)'),
  'bundle-written': row('info', 'a support bundle was written: look through it before you send it', 'file'),
} as const satisfies Readonly<Record<string, LineRow>>;

/** The names of lines that no event of the sync stands behind. */
export type SaidName = keyof typeof SAID_ROWS;

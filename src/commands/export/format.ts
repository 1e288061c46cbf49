/**
 * The formats of `--export`: a table (csv), one object per line (ndjson), or the archived lines (lp). Pure. The columns
 * and members are documented in docs/export.md.
 *
 * Promises: times and numbers keep the digits of the archive. The csv follows RFC 4180, and no spreadsheet interprets a
 * cell as a formula, whatever the name of a device.
 */
import type { ExportFormat } from '../../cli/command.ts';
import { readFieldValue, readSeries, seriesOf } from '../../core/lines/line-reader.ts';
import { dayStart, formatExact } from '../../core/time.ts';

/** Converts lines of the archive to the text of an export. */
export interface ExportFormatter {
  /** The text before everything else, which may be empty. */
  readonly header: string;
  /** Formats lines, each with its line end. */
  text(lines: readonly string[]): string;
}

/** Creates a formatter for telemetry lines (csv, ndjson) or any lines (lp). */
export function createFormatter(format: ExportFormat): ExportFormatter {
  if (format === 'lp') return { header: '', text: (lines) => (lines.length === 0 ? '' : `${lines.join('\n')}\n`) };
  const isCsv = format === 'csv';
  const seriesAt = createSeriesMemory(isCsv ? csvSeries : jsonSeries);
  const time = createTimes();
  const row = (line: string): string => {
    const { length, columns } = seriesAt(line);
    const end = line.lastIndexOf(' ');
    const equals = line.indexOf('=', length);
    const raw = line.slice(equals + 1, end);
    const at = time(line, end + 1);
    return isCsv
      ? `${at},${columns},${csvValue(raw)},${TYPES[line.slice(length + 1, equals)] ?? 'text'}\r\n`
      : `{"time":"${at}",${columns},"value":${jsonValue(raw)}}\n`;
  };
  return {
    header: isCsv ? 'time,device_id,device_name,sensor,value,type\r\n' : '',
    text: (lines) => {
      let text = '';
      for (const line of lines) text += row(line);
      return text;
    },
  };
}

/** The values of the column `type`, by field. */
const TYPES: Readonly<Record<string, string>> = { value: 'number', flag: 'boolean', text: 'text' };

const CSV_TAGS = ['device_id', 'device_name', 'sensor'] as const;
const JSON_TAGS = [...CSV_TAGS, 'workspace_id'] as const;

function csvSeries(series: string): string {
  const tags = new Map(readSeries(series));
  return CSV_TAGS.map((key) => csvText(tags.get(key) ?? '')).join(',');
}

function jsonSeries(series: string): string {
  const tags = new Map(readSeries(series));
  return JSON_TAGS.map((key) => `"${key}":${JSON.stringify(tags.get(key) ?? '')}`).join(',');
}

/** Matches texts that a spreadsheet may take for a formula, including after spaces and in full width. */
const FORMULA = /^\s*[=+\-@\uff0b\uff0d\uff1d\uff20]/u;

/** A text as a cell: harmless, and quoted if needed. */
function csvText(text: string): string {
  const harmless = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]|^\s|\s$/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

/** Numbers and booleans stay unchanged: `-1.5` is a number and no formula. */
function csvValue(raw: string): string {
  return raw.startsWith('"') ? csvText(String(readFieldValue(raw))) : raw;
}

/** The digits of a number in a line are valid JSON. */
function jsonValue(raw: string): string {
  return raw.startsWith('"') ? JSON.stringify(readFieldValue(raw)) : raw;
}

interface KnownSeries {
  /** The beginning of its lines, up to the space before the field. */
  readonly prefix: string;
  readonly length: number;
  readonly columns: string;
  /** The series that followed it last, because the sensors of a device come in turns. */
  next: KnownSeries | null;
}

/** How many series are cached. */
const REMEMBERED = 4096;

/** Caches the columns of each series, which are computed once for many lines. */
function createSeriesMemory(columnsOf: (series: string) => string): (line: string) => KnownSeries {
  const known = new Map<string, KnownSeries>();
  let last: KnownSeries | null = null;
  return (line) => {
    const guess: KnownSeries | null = last?.next ?? null;
    if (guess !== null && line.startsWith(guess.prefix)) {
      last = guess;
      return guess;
    }
    const series = seriesOf(line);
    let found = known.get(series);
    if (found === undefined) {
      if (known.size >= REMEMBERED) known.clear();
      // Copies, because a slice of a text keeps the whole text in memory.
      const copy = structuredClone(series);
      found = { prefix: `${copy} `, length: copy.length, columns: columnsOf(copy), next: null };
      known.set(copy, found);
    }
    if (last !== null) last.next = found;
    last = found;
    return found;
  };
}

/** Converts the nanoseconds at the end of a line to RFC 3339 with as many digits as the time needs. */
function createTimes(): (line: string, from: number) => string {
  let lastDay = Number.NaN;
  let date = '';
  const two = Array.from({ length: 60 }, (_, value) => String(value).padStart(2, '0'));
  return (line, from) => {
    const second = line.length - 9;
    if (second <= from || line[from] === '-') return formatExact(BigInt(line.slice(from)));
    const seconds = Number(line.slice(from, second));
    const day = Math.floor(seconds / 86_400);
    if (day !== lastDay) {
      lastDay = day;
      date = formatExact(dayStart(day)).slice(0, 11);
    }
    const rest = seconds - day * 86_400;
    const minute = Math.floor(rest / 60);
    const clock = `${two[Math.floor(minute / 60)]}:${two[minute % 60]}:${two[rest % 60]}`;
    let end = line.length;
    while (end > second && line[end - 1] === '0') end -= 1;
    return end === second ? `${date}${clock}Z` : `${date}${clock}.${line.slice(second, end)}Z`;
  };
}

/**
 * Somebody who reads a dashboard: what stands in its panels, as Grafana's library shows it at a moment.
 */
import { vi } from 'vitest';
import { DAY_MS } from '../../../src/core/time.ts';
import { board, panelOf } from './asked.ts';
import { drawnOf, type Picture, pictureOf, type Shown, valuesOf } from './grafana.ts';
import { type Choose, openBoard, type Place } from './viewer.ts';

export interface Reading {
  readonly place: Place;
  /** The end of the range, and the reader's clock unless the range ends in the past. */
  readonly toMs: number;
  readonly rangeMs?: number;
  readonly endsNow?: boolean;
  readonly choose?: Choose;
}

/** A reader of a dashboard, by the last word of its uid. */
export function reader(reading: Reading) {
  const { place, toMs, rangeMs = DAY_MS, endsNow = true, choose } = reading;
  const range = { fromMs: toMs - rangeMs, toMs, endsNow };
  const frames = async (uid: string, title: string, scoped?: string) => {
    const viewer = await openBoard(board(uid), { place, range, ...(choose === undefined ? {} : { choose }) });
    return await viewer.look(panelOf(uid, title), scoped);
  };
  return {
    /** Name, words and colour of each number: `median: 6 mins, green`. */
    async numbers(uid: string, title: string): Promise<string[]> {
      const values = await valuesOf(panelOf(uid, title), await frames(uid, title));
      return values.map((value) => `${value.title}: ${inColor(value)}`);
    },
    /** A table by its rows, each by the titles of its columns. */
    async table(uid: string, title: string): Promise<Record<string, string>[]> {
      const asked = await frames(uid, title);
      return rowsOf(await atNow(toMs, () => pictureOf(panelOf(uid, title), asked)));
    },
    /** A chart or a timeline, as it is drawn. */
    async drawn(uid: string, title: string, scoped?: string): Promise<Picture> {
      return await drawnOf(panelOf(uid, title), await frames(uid, title, scoped), toMs);
    },
  };
}

/** The text "3 minutes ago" for an instant: the library reads the clock of the browser. */
async function atNow<T>(nowMs: number, look: () => Promise<T>): Promise<T> {
  vi.useFakeTimers({ toFake: ['Date'], now: nowMs });
  try {
    return await look();
  } finally {
    vi.useRealTimers();
  }
}

export function inColor({ text, color }: Shown): string {
  return `${text}, ${color}`;
}

/** Cells with their colours, where a column is coloured. */
function rowsOf({ fields, rows }: Picture): Record<string, string>[] {
  return Array.from({ length: rows }, (_, row) =>
    Object.fromEntries(
      fields.map(({ title, cells, config }) => {
        const cell = cells[row] ?? { text: '', color: null, value: null };
        return [title, config.custom?.cellOptions === undefined ? cell.text : inColor(cell)];
      }),
    ),
  );
}

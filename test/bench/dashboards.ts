/**
 * How quickly an InfluxDB answers what the dashboards ask: a large fleet with some days of readings, and all queries of
 * each panel, one after the other, several times over the range that a dashboard opens with.
 */

import { DAY_MS } from '../../src/core/time.ts';
import { asksInflux, readBoards, shownPanels } from '../grafana/support/boards.ts';
import { writeFleet } from '../grafana/support/fleet-lines.ts';
import { openBoard } from '../grafana/support/viewer.ts';
import { startInfluxd } from '../support/influxd.ts';
import type { Measured } from './table.ts';

const INTERVAL_MS = 300_000;
/** The newest of the readings; any round time does. */
const NOW_MS = Date.UTC(2026, 5, 15, 12);
const LOOKS = 10;
const WANTED_MS = 2000;
const SLOWEST = 5;

interface Timed {
  readonly name: string;
  readonly p95Ms: number;
}

export interface DashboardBench {
  readonly devices: number;
  readonly days: number;
  readonly looks: number;
}

export function dashboardBench(isQuick: boolean): DashboardBench {
  return isQuick ? { devices: 2000, days: 1.125, looks: 3 } : { devices: 2000, days: 8, looks: LOOKS };
}

/**
 * Fills a database and asks it.
 *
 * @returns the slowest panel, by its 95th percentile.
 */
export async function measureDashboards(
  { devices, days, looks }: DashboardBench,
  say: (text: string) => void,
): Promise<Measured[]> {
  await using influxd = await startInfluxd({ databases: ['fleet'] });
  const points = await writeFleet(influxd, 'fleet', { devices, days, intervalMs: INTERVAL_MS, nowMs: NOW_MS });
  say(`dashboards: ${points} points of ${devices} devices over ${days} days`);
  const timed: Timed[] = [];
  for (const [name, texts] of await panelsOf(influxd.url)) {
    const look = async (): Promise<void> => {
      for (const text of texts) await answered(influxd.url, text);
    };
    timed.push({ name, p95Ms: await percentile(looks, look) });
  }
  const slowest = timed.toSorted((a, b) => b.p95Ms - a.p95Ms);
  for (const { name, p95Ms } of slowest.slice(0, SLOWEST)) say(`dashboards: ${p95Ms.toFixed(0)} ms ${name}`);
  const values = [slowest[0]?.p95Ms ?? Infinity];
  return [{ figure: 'slowest panel, 95 %', unit: 'ms', wanted: WANTED_MS, better: 'less', values }];
}

/** The queries of every panel, as Grafana would send them; of a repeated panel the first. */
async function panelsOf(url: string): Promise<(readonly [name: string, texts: readonly string[]])[]> {
  const range = { fromMs: NOW_MS - DAY_MS, toMs: NOW_MS };
  const panels: (readonly [name: string, texts: readonly string[]])[] = [];
  for (const board of readBoards().filter(asksInflux)) {
    const viewer = await openBoard(board, { place: { url, database: 'fleet' }, range });
    for (const panel of shownPanels(board)) {
      const { repeat, targets = [] } = panel;
      const first = repeat === undefined ? undefined : viewer.lists.get(repeat)?.[0]?.value;
      const scoped = new Map(repeat === undefined || first === undefined ? [] : [[repeat, first]]);
      const texts = targets.map(({ query = '' }) => viewer.text(query, panel, scoped));
      panels.push([`${board.uid}: ${panel.title}`, texts]);
    }
  }
  return panels;
}

/** The database's own time and that of its answer's way; not what a browser makes of it. */
async function answered(url: string, query: string): Promise<void> {
  const body = new URLSearchParams({ db: 'fleet', q: query, epoch: 'ms' });
  const answer = await fetch(`${url}/query`, { method: 'POST', body });
  const bytes = await answer.arrayBuffer();
  if (answer.status !== 200) throw new Error(`${new TextDecoder().decode(bytes).slice(0, 300)}: ${query}`);
}

async function percentile(times: number, run: () => Promise<void>): Promise<number> {
  const tookMs: number[] = [];
  for (let time = 0; time < times; time += 1) {
    const began = performance.now();
    await run();
    tookMs.push(performance.now() - began);
  }
  return tookMs.toSorted((a, b) => a - b)[Math.ceil(times * 0.95) - 1] ?? Infinity;
}

/**
 * How quickly an InfluxDB answers the queries of the dashboards: a large fleet with some days of readings, and all
 * queries of each panel, one after the other, several times over the range that a dashboard opens with.
 */

import { readFileSync } from 'node:fs';
import { DAY_MS, MINUTE_MS } from '../../src/core/time.ts';
import { asksInflux, readBoards, shownPanels } from '../grafana/support/boards.ts';
import { writeFleet } from '../grafana/support/fleet-lines.ts';
import { openBoard } from '../grafana/support/viewer.ts';
import { startInfluxd } from '../support/influxd.ts';
import type { Measured } from './table.ts';

const INTERVAL_MS = 5 * MINUTE_MS;
/** The newest of the readings; any round time does. */
const NOW_MS = Date.UTC(2026, 5, 15, 12);
const LOOKS = 10;
const WANTED_MS = 2000;
const SLOWEST = 5;

interface Timed {
  readonly name: string;
  readonly p95Ms: number;
  /** The processor time of the database for one look, which a busy machine does not lengthen. */
  readonly cpuMs: number;
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
 * Fills a database and queries it.
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
  const pid = databaseOf(process.pid);
  const timed: Timed[] = [];
  for (const [name, texts] of await panelsOf(influxd.url)) {
    const look = async (): Promise<void> => {
      for (const text of texts) await answered(influxd.url, text);
    };
    const before = processorMs(pid);
    const p95Ms = await percentile(looks, look);
    timed.push({ name, p95Ms, cpuMs: (processorMs(pid) - before) / looks });
  }
  const slowest = timed.toSorted((a, b) => b.cpuMs - a.cpuMs);
  for (const { name, p95Ms, cpuMs } of slowest.slice(0, SLOWEST))
    say(`dashboards: ${cpuMs.toFixed(0)} ms of the processor, ${p95Ms.toFixed(0)} ms at most in 95 %: ${name}`);
  const figure = { unit: 'ms', wanted: WANTED_MS, better: 'less' } as const;
  return [
    { ...figure, figure: 'slowest panel, 95 %', values: [Math.max(...timed.map(({ p95Ms }) => p95Ms))] },
    { ...figure, figure: 'dearest panel, processor time', values: [slowest[0]?.cpuMs ?? Infinity] },
  ];
}

/** `/proc/PID/stat` from the state of the process on: its parent is field 1, its processor time fields 11 and 12. */
function statOf(pid: number | string): readonly string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/** In steps of 10 ms, as the kernel counts it. */
function processorMs(pid: number): number {
  const stat = statOf(pid);
  return (Number(stat[11]) + Number(stat[12])) * 10;
}

/** The process of the database: a child of the shell that this process runs it in. */
function databaseOf(parent: number): number {
  const childrenOf = (of: number): number[] =>
    readFileSync(`/proc/${of}/task/${of}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  const [found] = childrenOf(parent).flatMap(childrenOf);
  if (found === undefined) throw new Error('the database runs in no process of its own');
  return found;
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

/**
 * One device of the status page (`DevicePage`): its report, and what its sensors told over a span.
 *
 * Goes through the archive in its order, each block once, and gives others their turn in between: a span may hold a
 * million lines.
 */

import type { DeviceReport } from '../core/device-report.ts';
import { type DevicePage, LEAST_SPAN_SECONDS, MAX_SHOWN_LENGTH, MOST_SPAN_SECONDS } from '../core/page-facts.ts';
import type { Clock } from '../core/ports.ts';
import type { ArchiveWalker, WalkSpan } from '../core/state/archive.ts';
import type { KnownDevice } from '../core/state/inventory.ts';
import { shortened } from '../core/text.ts';
import { DAY_MS, formatExact, msToNs, SECOND_MS } from '../core/time.ts';
import { deviceReport } from './device-report.ts';
import type { PageParts } from './page-facts.ts';
import type { Step } from './page-turns.ts';
import { createSeriesCells, gridOf, type SeriesCells } from './series.ts';

/** About how much is read in one step, in characters, and how long it goes on without giving others their turn. */
const STEP_BYTES = 256 * 1024;
const TURN_MS = 12;

/** Puts it together. @returns `null` where nothing can be told of it. */
export async function devicePage(
  parts: PageParts & { readonly step: Step },
  device: KnownDevice,
  spanSeconds: number,
): Promise<DevicePage | null> {
  const report = deviceReport(parts, device);
  if (report === null) return null;
  const { deviceId } = device.record;
  const toMs = Math.floor(parts.context.serverClock.nowMs());
  const spanMs = drawnIn(spanSeconds) * SECOND_MS;
  const fromMs = Math.max(0, toMs - spanMs);
  const span: WalkSpan = { from: msToNs(fromMs), to: msToNs(toMs), devices: [deviceId], kinds: 'telemetry' };
  const cells = createSeriesCells(gridOf(fromMs, toMs));
  await fill(cells, { walker: parts.context.store.replays.walker, span, clock: parts.clock, step: parts.step });
  const { sensors, leftOut } = cells.result();
  const since = parts.facts.archivedSince(deviceId);
  return {
    device: withShortNames(report),
    span_seconds: spanMs / SECOND_MS,
    from: formatExact(span.from),
    to: formatExact(span.to),
    sensors,
    sensors_left_out: leftOut,
    archived_since: since === null ? null : formatExact(since),
  };
}

function drawnIn(seconds: number): number {
  const asked = Number.isNaN(seconds) ? DAY_MS / SECOND_MS : seconds;
  return Math.floor(Math.min(MOST_SPAN_SECONDS, Math.max(LEAST_SPAN_SECONDS, asked)));
}

interface Reading {
  readonly walker: ArchiveWalker;
  readonly span: WalkSpan;
  readonly clock: Pick<Clock, 'monoMs'>;
  readonly step: Step;
}

async function fill(cells: SeriesCells, { walker, span, clock, step }: Reading): Promise<void> {
  let place = walker.begin(span);
  const readOn = (): void => {
    const turnMs = clock.monoMs();
    while (place !== null) {
      const { lines, next } = walker.read(span, place, STEP_BYTES);
      cells.add(lines);
      place = next;
      if (clock.monoMs() - turnMs >= TURN_MS) return;
    }
  };
  while (place !== null) await step(readOn);
}

function withShortNames(report: DeviceReport): DeviceReport {
  return {
    ...report,
    device_name: shortened(report.device_name, MAX_SHOWN_LENGTH),
    names: report.names.map(({ from, name }) => ({ from, name: shortened(name, MAX_SHOWN_LENGTH) })),
  };
}

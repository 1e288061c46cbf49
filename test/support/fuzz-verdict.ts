/**
 * The judge's verdict over a fuzz case, held against what the program says of itself: its coverage and its named gaps.
 */
import type { OnceSummary } from '../../src/commands/once/result.ts';
import { parseTimestamp } from '../../src/core/time.ts';
import type { Verdict } from './judge.ts';
import type { Rig } from './rig.ts';

export interface Judged {
  readonly summary: OnceSummary;
  /** When the devices were listed, by the server's clock: what came later is not known. */
  readonly listedAtMs: number;
  /** Of all readings that there ever were. */
  readonly verdict: Verdict;
  readonly span: { readonly fromNs: bigint; readonly toNs: bigint };
}

/** @returns readings that are missing although they are claimed or though no gap names them, and invented points. */
export function examineVerdict(rig: Rig, { summary, listedAtMs, verdict, span }: Judged): string[] {
  const held = heldSpans(rig);
  const gaps = summary.gaps.map(({ device_id, from, to }) => ({
    deviceId: device_id,
    from: parseTimestamp(from) ?? 0n,
    to: parseTimestamp(to) ?? 0n,
  }));
  const isIn = ({ from, to }: { from: bigint; to: bigint }, at: bigint): boolean => from <= at && at < to;
  const missing = verdict.missingAt.map((place, index) => ({ ...place, text: verdict.missing[index] ?? '' }));
  const claimed = missing.filter(
    ({ deviceId, at }) => held.get(deviceId)?.some((stretch) => isIn(stretch, at)) ?? false,
  );
  const unnamed = missing.filter(({ deviceId, at }) => {
    if (!isIn({ from: span.fromNs, to: span.toNs }, at)) return false;
    // What was never listed cannot be known, let alone be named.
    if (!held.has(deviceId) && !rig.simulator.world.has(deviceId, listedAtMs)) return false;
    return !gaps.some((gap) => gap.deviceId === deviceId && isIn(gap, at));
  });
  const some = (label: string, list: readonly string[]): string[] => {
    const few = list.slice(0, 3).join(' | ').slice(0, 300);
    return list.length === 0 ? [] : [`${list.length} ${label} (exit ${summary.exit_code}), such as ${few}`];
  };
  const textOf = ({ text }: { text: string }): string => text;
  return [
    ...some('missing and claimed', claimed.map(textOf)),
    ...some('missing and not named', unnamed.map(textOf)),
    ...some('invented', verdict.invented),
  ];
}

/** What the program says that it holds, of every device that it knows. */
function heldSpans(rig: Rig): Map<string, readonly { from: bigint; to: bigint }[]> {
  const sync = rig.open();
  try {
    const { store } = sync.context;
    return new Map(store.devices().map(({ record }) => [record.deviceId, store.telemetry(record.deviceId).covered]));
  } finally {
    sync.close();
  }
}

/** The result of `--verify` for people: one screen with the worst findings first, each with its remedy. */

import { DESTINATION_NAMES } from '../../core/lines/dialect.ts';
import { compare, counted, grouped, plainText, sentence } from '../../core/text.ts';
import { wrap } from '../shared/layout.ts';
import { DIFFERENCES } from './examine.ts';
import type { DayDifference, DestinationVerdict, SampleVerdict } from './result.ts';
import { adviceOnHidden } from './retention.ts';

const DAYS_SHOWN = 20;
const DEVICES_SHOWN = 5;
const OTHERS =
  'Only telemetry was compared. tidemark --replay also sends the archived device, alert, workspace and coverage points again.';

interface VerifyReport {
  readonly from: string | null;
  readonly to: string | null;
  readonly repair: boolean;
  readonly destinations: readonly DestinationVerdict[];
  readonly sample: SampleVerdict | null;
}

/** The answer as a text of several lines, at most 80 columns wide. */
export function verifyText({ from, to, repair, destinations, sample }: VerifyReport): string {
  const parts = [
    [`Telemetry: ${daysText(from, to)}`],
    ...destinations.map((verdict) => destinationLines(verdict, repair)),
    ...(sample === null ? [] : [sampleLines(sample, repair)]),
    ...(destinations.some(({ days_compared: days }) => days > 0) ? [[OTHERS]] : []),
  ];
  return parts.map((lines) => lines.map((line) => wrap(line)).join('')).join('\n');
}

/** The compared days, including the last one; `to` is the beginning of the day after it. */
function daysText(from: string | null, to: string | null): string {
  if (from === null || to === null) return 'nothing is stored yet';
  const [first, last] = [from, new Date(Date.parse(to) - 1).toISOString()].map((time) => time.slice(0, 10));
  return first === last ? `${first} (whole day, UTC)` : `${first} to ${last} (whole days, UTC)`;
}

function destinationLines(verdict: DestinationVerdict, repair: boolean): string[] {
  const { name, kind, days_compared: days, devices_compared: devices } = verdict;
  const head = `${name}${kind === null ? '' : ` (${DESTINATION_NAMES[kind]})`}`;
  if (verdict.outcome === 'unreadable' || (verdict.outcome === 'unfinished' && days === 0)) {
    return [`${head}: could not be compared: ${verdict.reason ?? ''}`];
  }
  return [
    `${head}: ${resultText(verdict)}`,
    `  compared: ${counted(verdict.points_compared, 'point')} of ${counted(devices, 'device')} on ${counted(days, 'device day')}${kind === 'victoriametrics' ? ' (numbers, at millisecond precision)' : ''}`,
    ...repairedLines(verdict, repair),
    ...table(verdict.differences, verdict.differences_left_out),
    ...noDifferences(verdict),
    ...advice(verdict, repair),
  ];
}

function resultText({ outcome, reason, ...found }: DestinationVerdict): string {
  const counts = DIFFERENCES.filter((each) => found[each] > 0).map((each) => `${grouped(found[each])} ${each}`);
  const message = counts.length === 0 ? 'no differences' : counts.join(', ');
  return outcome === 'unfinished' ? `not finished: ${sentence(reason ?? '')} Result so far: ${message}` : message;
}

function repairedLines(verdict: DestinationVerdict, repair: boolean): string[] {
  const { repaired, fetched, rejected_again: rejected, refusal, missing, to_fetch: fetch } = verdict;
  const left = repair ? Math.max(0, missing - (fetch?.points ?? 0) - rejected) : 0;
  return [
    ...(repaired === 0 ? [] : [`  repaired: ${counted(repaired, 'point')} sent again from the archive`]),
    ...(fetched === 0 ? [] : [`  repaired: ${counted(fetched, 'point')} requested again from the API`]),
    ...(left === 0
      ? []
      : [`  still missing: ${counted(left, 'point')} sent again, which the database accepted and does not return`]),
    ...(rejected === 0 ? [] : [`  rejected again: ${counted(rejected, 'point')}: ${plainText(refusal ?? '', 200)}`]),
  ];
}

function table(differences: readonly DayDifference[], leftOut: number): string[] {
  if (differences.length === 0) return [];
  const row = (cells: readonly string[], device: string): string =>
    `  ${(cells[0] ?? '').padEnd(10)}${cells
      .slice(1)
      .map((cell) => cell.padStart(11))
      .join('')}  ${device}`;
  const rows = worstFirst(differences)
    .slice(0, DAYS_SHOWN)
    .map(({ day, missing, different, extra, unverifiable, device_id }) =>
      row([day, grouped(missing), grouped(different), grouped(extra + unverifiable)], plainText(device_id, 32)),
    );
  const more = differences.length + leftOut - rows.length;
  const whole = leftOut === 0 ? '--json lists them all' : `--json lists ${grouped(differences.length)} of them`;
  const rest = more <= 0 ? [] : [`  and ${counted(more, 'more device day')}; ${whole}`];
  return [row(['day', 'missing', 'different', 'extra'], 'device'), ...rows, ...rest];
}

function worstFirst(differences: readonly DayDifference[]): DayDifference[] {
  const weight = (day: DayDifference): number => DIFFERENCES.reduce((sum, each) => sum + day[each], 0);
  return differences.toSorted(
    (a, b) => weight(b) - weight(a) || compare(a.device_id, b.device_id) || compare(a.day, b.day),
  );
}

function noDifferences({
  pending,
  quarantined,
  known_missing: knownMissing,
  days_partly_covered: partly,
  unknown_devices: unknown,
}: DestinationVerdict): string[] {
  const others = unknown.slice(0, DEVICES_SHOWN).map((tag) => plainText(tag, 40));
  return [
    ...(pending === 0 ? [] : [`  ${counted(pending, 'point')} not delivered yet (not counted as a difference)`]),
    ...(quarantined === 0
      ? []
      : [`  ${counted(quarantined, 'point')} in quarantine: rejected by this database (--quarantine)`]),
    ...(knownMissing === 0
      ? []
      : [`  ${counted(knownMissing, 'point')} already recorded as missing there (reasons: --status)`]),
    ...(partly === 0
      ? []
      : [
          `  ${counted(partly, 'device day')} ${partly === 1 ? 'is' : 'are'} covered in part (first day, today, or with gaps): what is stored of ${partly === 1 ? 'it' : 'them'} was compared`,
        ]),
    ...(unknown.length === 0
      ? []
      : [
          `  the database also has ${counted(unknown.length, 'device')} that this state does not contain (${others.join(', ')}${unknown.length > others.length ? ', …' : ''}): from an older state, or removed with --forget. They are not changed`,
        ]),
  ];
}

function advice(verdict: DestinationVerdict, repair: boolean): string[] {
  const { missing, different, to_fetch: fetch, kind, outcome } = verdict;
  const lines = [...adviceOnHidden(verdict, repair)];
  if (outcome === 'unfinished') lines.push('Run --verify again; it starts from the beginning.');
  if (!repair && missing + different > (fetch?.points ?? 0)) {
    lines.push(
      '--verify --repair sends the missing and different points again from the archive, without requests to the API.',
    );
  }
  if (fetch !== null) {
    const what = `${counted(fetch.points, 'point')} of ${counted(fetch.devices, 'device')} ${fetch.points === 1 ? 'is' : 'are'} no longer in the archive`;
    lines.push(
      `${what}: requesting them again takes about ${counted(fetch.requests, 'request')} (${counted(fetch.readings, 'reading')}). ${repair ? 'Set api.url and api.key and run --verify --repair again.' : '--verify --repair does it if api.url and api.key are set.'}`,
    );
  }
  if (repair && kind === 'victoriametrics' && different > 0) {
    lines.push(
      'VictoriaMetrics may have kept the old values of the points listed as different. If the next --verify still lists them, delete the series of these devices there (VictoriaMetrics deletes only whole series) and run --verify --repair again. That restores only what the archive or the API still has.',
    );
  }
  return [...lines, ...adviceOnExtra(verdict)];
}

function adviceOnExtra(verdict: DestinationVerdict): string[] {
  const { extra, extra_in_gaps: uncovered, extra_before_history: older, unverifiable } = verdict;
  const lines: string[] = [];
  const add = (count: number, text: string): void => {
    if (count > 0) lines.push(text);
  };
  const lie = (count: number): string => `${grouped(count)} of them ${count === 1 ? 'lies' : 'lie'}`;
  add(extra, 'Extra points are in the database but not in this state: they are reported, never deleted.');
  const inGaps = uncovered - older;
  const again = 'and may be correct. Run --verify again when the gaps are closed (--status).';
  add(inGaps, `${lie(inGaps)} in ranges that are not covered yet ${again}`);
  const earlier =
    'such as those of an earlier state, or of a backfill that this state does not have. To compare them, run --backfill --from with the first day of the table';
  add(older, `${lie(older)} before sync.history in ranges that are not covered, ${earlier}, then --verify.`);
  const days = 'Some days have more points in the database than the archive has counted:';
  add(unverifiable, `${days} extra points, or readings that arrived after the archive had removed that day.`);
  return lines;
}

function sampleLines(sample: SampleVerdict, repair: boolean): string[] {
  const { windows, readings, requests, missing, gone: notServed, reason } = sample;
  const head = `Sample: ${counted(windows, 'range')} read again from the API (${counted(readings, 'reading')}, ${counted(requests, 'request')})`;
  const verdict =
    missing + notServed === 0
      ? 'the same as archived'
      : `${counted(missing, 'point')} served but not archived, ${counted(notServed, 'point')} archived but no longer served`;
  return [
    `${head}: ${reason === null ? verdict : `not finished: ${sentence(reason)} Result so far: ${verdict}`}`,
    ...sample.differences.slice(0, DAYS_SHOWN).map(({ device_id, from, to, missing: more, gone: less }) => {
      const range = `${from.slice(0, 16)}Z to ${to.slice(0, 16)}Z`;
      return `  ${range}  ${grouped(more)} new, ${grouped(less)} no longer served  ${plainText(device_id, 28)}`;
    }),
    ...(missing > 0 && !repair ? ['--verify --sample N --repair adds the new points to the archive.'] : []),
    ...(missing > 0 && repair
      ? ['The new points are in the archive now and are delivered like any late reading.']
      : []),
    ...(notServed > 0
      ? ['The vendor has removed or changed the points that are no longer served; the archive keeps them.']
      : []),
  ];
}

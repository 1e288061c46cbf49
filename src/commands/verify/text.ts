/**
 * The answer of `--verify` for people: one screen, worst first, every bad thing with what to do.
 */
import { counted, grouped, plainText } from '../../core/text.ts';
import { wrap } from '../shared/layout.ts';
import { type DayDifference, type DestinationVerdict, worstFirst } from './report.ts';
import type { SampleVerdict } from './sample-report.ts';

/** How many days are told one by one. */
const DAYS_TOLD = 20;
const DEVICES_TOLD = 5;

export interface VerifyTold {
  readonly from: string | null;
  readonly to: string | null;
  readonly repair: boolean;
  readonly destinations: readonly DestinationVerdict[];
  readonly sample: SampleVerdict | null;
}

/** The answer as a text of several lines, at most 80 columns wide. */
export function verifyText({ from, to, repair, destinations, sample }: VerifyTold): string {
  const span = from === null || to === null ? 'nothing is kept yet' : `${from.slice(0, 16)}Z to ${to.slice(0, 16)}Z`;
  const parts = [
    [`Telemetry, whole days (UTC): ${span}`],
    ...destinations.map((verdict) => destinationLines(verdict, repair)),
    ...(sample === null ? [] : [sampleLines(sample, repair)]),
  ];
  return parts.map((lines) => lines.map((line) => wrap(line)).join('')).join('\n');
}

const KINDS = { influxdb: 'InfluxDB', victoriametrics: 'VictoriaMetrics' } as const;

function destinationLines(verdict: DestinationVerdict, repair: boolean): string[] {
  const { name, kind, days_compared: days, devices_compared: devices } = verdict;
  const head = `${name}${kind === null ? '' : ` (${KINDS[kind]})`}`;
  if (verdict.outcome === 'unreadable' || (verdict.outcome === 'unfinished' && days === 0)) {
    return [`${head}: could not be compared. ${verdict.reason ?? ''}`];
  }
  return [
    `${head}: ${sentence(verdict)}`,
    `  compared: ${counted(verdict.points_kept, 'point')} of ${counted(devices, 'device')} on ${counted(days, 'device day')}${kind === 'victoriametrics' ? ' (numbers to the millisecond)' : ''}`,
    ...mendedLines(verdict),
    ...table(verdict.differences, verdict.differences_left_out),
    ...excuses(verdict),
    ...advice(verdict, repair),
  ];
}

function sentence({ outcome, reason, missing, different, extra, untold }: DestinationVerdict): string {
  const parts = [
    [missing, 'missing'],
    [different, 'different'],
    [extra, 'extra'],
    [untold, 'not to be told'],
  ] as const;
  const told = parts.filter(([points]) => points > 0).map(([points, word]) => `${grouped(points)} ${word}`);
  const found = told.length === 0 ? 'all that was compared is equal' : told.join(', ');
  return outcome === 'unfinished' ? `not finished: ${reason}. So far ${found}` : found;
}

function mendedLines({ mended, fetched, refused_again: refused, refusal }: DestinationVerdict): string[] {
  return [
    ...(mended === 0 ? [] : [`  mended: ${counted(mended, 'point')} sent again from the archive, and there now`]),
    ...(fetched === 0 ? [] : [`  mended: ${counted(fetched, 'point')} fetched again from the API, and there now`]),
    ...(refused === 0 ? [] : [`  refused again: ${counted(refused, 'point')}: ${plainText(refusal ?? '', 200)}`]),
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
    .slice(0, DAYS_TOLD)
    .map(({ day, missing, different, extra, untold, device_id }) =>
      row([day, grouped(missing), grouped(different), grouped(extra + untold)], plainText(device_id, 32)),
    );
  const more = differences.length + leftOut - rows.length;
  const whole = leftOut === 0 ? '--json lists them all' : `--json lists ${grouped(differences.length)} of them`;
  const rest = more <= 0 ? [] : [`  and ${counted(more, 'more day')}; ${whole}`];
  return [row(['day', 'missing', 'different', 'extra'], 'device'), ...rows, ...rest];
}

function excuses({
  pending,
  quarantined,
  lacking,
  days_partly_covered: partly,
  unknown_devices: unknown,
}: DestinationVerdict): string[] {
  const others = unknown.slice(0, DEVICES_TOLD).map((tag) => plainText(tag, 40));
  return [
    ...(pending === 0
      ? []
      : [`  ${counted(pending, 'point')} not delivered yet: no difference; they wait in the archive`]),
    ...(quarantined === 0 ? [] : [`  ${counted(quarantined, 'point')} in quarantine: refused by it (--quarantine)`]),
    ...(lacking === 0 ? [] : [`  ${counted(lacking, 'point')} in its lack-set: known not to be there (--status)`]),
    ...(partly === 0 ? [] : [`  ${counted(partly, 'device day')} not held in full: what is kept of them is compared`]),
    ...(unknown.length === 0
      ? []
      : [
          `  it has ${counted(unknown.length, 'more device')} that this state knows nothing of (${others.join(', ')}${unknown.length > others.length ? ', …' : ''}): of an older state, or forgotten; nothing is done about them`,
        ]),
  ];
}

function advice(verdict: DestinationVerdict, repair: boolean): string[] {
  const { missing, different, extra, untold, to_fetch: fetch, kind, outcome } = verdict;
  const lines: string[] = [];
  if (outcome === 'unfinished') lines.push('Run it again: it begins anew, and nothing was left half done.');
  if (!repair && missing + different > (fetch?.points ?? 0)) {
    lines.push('--verify --repair sends again from the archive what is missing or different, without asking the API.');
  }
  if (fetch !== null) {
    const what = `${counted(fetch.points, 'point')} of ${counted(fetch.devices, 'device')} ${fetch.points === 1 ? 'is' : 'are'} not in the archive any more`;
    lines.push(
      `${what}: fetching them again takes about ${counted(fetch.requests, 'request')} (${counted(fetch.readings, 'reading')}). ${repair ? 'It takes api.url and api.key; run --verify --repair where they are set.' : '--verify --repair does that where api.key is set.'}`,
    );
  }
  if (repair && kind === 'victoriametrics' && different > 0) {
    lines.push('VictoriaMetrics keeps one of two values of one time: delete that series there, then repair again.');
  }
  if (extra > 0) lines.push('Extra points are in the database and not of this state: they are told, never deleted.');
  if (untold > 0) {
    lines.push('Some days hold more than was counted: extra, or readings that came after the archive had let go.');
  }
  return lines;
}

function sampleLines(sample: SampleVerdict, repair: boolean): string[] {
  const { windows, readings, requests, missing, gone, reason } = sample;
  const head = `Sample: ${counted(windows, 'window')} read again from the API (${counted(readings, 'reading')}, ${counted(requests, 'request')})`;
  const verdict =
    missing + gone === 0
      ? 'the same as archived'
      : `${grouped(missing)} points served that are not archived, ${grouped(gone)} archived that are not served any more`;
  return [
    `${head}: ${reason === null ? verdict : `not finished: ${reason}. So far ${verdict}`}`,
    ...sample.differences.slice(0, DAYS_TOLD).map(({ device_id, from, to, missing: more, gone: less }) => {
      const stretch = `${from.slice(0, 16)}Z to ${to.slice(0, 16)}Z`;
      return `  ${stretch}  ${grouped(more)} new, ${grouped(less)} gone  ${plainText(device_id, 28)}`;
    }),
    ...(missing > 0 && !repair ? ['--verify --sample N --repair takes in what is new.'] : []),
    ...(missing > 0 && repair ? ['What is new was taken in, and is delivered like any other late reading.'] : []),
    ...(gone > 0 ? ['What is not served any more was restated by the vendor: it stays archived as it was.'] : []),
  ];
}

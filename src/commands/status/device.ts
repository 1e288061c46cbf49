/**
 * `--status --device`: the status of one device as text: first why it lags, then its coverage and its last requests.
 */

import { gapText, syncStateText, unscheduledText } from '../../core/device-coverage.ts';
import { faultText } from '../../core/faults.ts';
import type { DeviceAnswer, DeviceReport } from '../../core/page-facts.ts';
import { laneText } from '../../core/quota.ts';
import { deviceStateText, type StatusGap, shownState } from '../../core/status.ts';
import { capitalized, duration, percent, plainText } from '../../core/text.ts';
import { count, formatTime, LABEL, type Layout, layoutOf, minute, nameText, plural, WIDTH } from '../shared/layout.ts';

const GAPS_SHOWN = 5;
const NAMES_SHOWN = 4;
const ANSWERS_SHOWN = 3;

/** The answer as a text of several lines, none wider than `width`. */
export function deviceText(report: DeviceReport, width = WIDTH): string {
  const layout = layoutOf(width);
  return [
    head(report, layout),
    pollLine(report, layout),
    answers(report, layout),
    coverage(report, layout),
    gaps(report, layout),
    gracePeriod(report, layout),
    names(report, layout),
  ].join('');
}

function head(report: DeviceReport, { row, wrap }: Layout): string {
  const { device_id, device_name, generated_at, reasons, lag_seconds, covered, listed } = report;
  const name = device_name === device_id ? '' : ` (${nameText(device_name, 34)})`;
  const standing = syncStateText(report);
  const lag = lag_seconds === null || lag_seconds === 0 ? '' : `lag ${duration(lag_seconds)}`;
  const behind = covered.length === 0 ? 'nothing is stored yet' : lag;
  // A device that is not polled is not "live", whatever it was at its last poll.
  const state = !report.polled && report.state === 'live' ? '' : deviceStateText(shownState(report));
  const details = [state, behind].filter((text) => text !== '').join(', ');
  const life = [
    listed.online === null ? null : listed.online ? 'online' : 'offline',
    listed.presence,
    listed.lifecycle_status,
  ]
    .flatMap((text) => (text === null ? [] : [plainText(text, 30)]))
    .filter((text, index, all) => all.indexOf(text) === index)
    .join(', ');
  return [
    wrap(`${nameText(device_id, 40)}${name}, as of ${formatTime(generated_at)}`, 0),
    wrap(`${capitalized([standing, details].filter((text) => text !== null && text !== '').join(': '))}.`, 0),
    ...reasons.map((reason) => wrap(`  ${plainText(reason, 500)}`, 2)),
    '\n',
    row(
      'In the API',
      `${life === '' ? 'no status' : life}; last seen ${timeWithAge(report, listed.last_seen_at)}; last listed ${timeWithAge(report, listed.last_listed_at)}`,
    ),
    row(
      'Newest',
      report.newest_reading_at === null
        ? 'no reading is stored'
        : `reading of ${timeWithAge(report, report.newest_reading_at)}`,
    ),
  ].join('');
}

function pollLine(report: DeviceReport, { row }: Layout): string {
  const { last_polled_at, next_due_at, next_kind, running } = report;
  const once = running ? '' : ', once the daemon is running';
  const due =
    next_due_at === null
      ? unscheduledText(report)
      : next_kind === 'idle_poll'
        ? `when the device list reports new data${once}; at the latest ${formatTime(next_due_at)} (idle poll)`
        : `${formatTime(next_due_at)}${once}`;
  return [row('Last poll', timeWithAge(report, last_polled_at)), row('Next poll', due)].join('');
}

function answers({ last_answers, failed_requests }: DeviceReport, { row }: Layout): string {
  const failed = failed_requests === 0 ? '' : `; ${plural(failed_requests, 'request')} failed in the last two days`;
  if (last_answers.length === 0) return row('Responses', `none in the last two days${failed}`);
  return last_answers
    .slice(0, ANSWERS_SHOWN)
    .map((answer, index) => row(index === 0 ? 'Responses' : '', `${answerText(answer)}${index === 0 ? failed : ''}`))
    .join('');
}

function answerText({ at, lane, status, fault, new_readings }: DeviceAnswer): string {
  const yieldText =
    fault !== null
      ? faultText(fault)
      : status === null
        ? 'response not recorded yet'
        : `HTTP ${status}, ${plural(new_readings ?? 0, 'new reading')}`;
  return `${formatTime(at)} (${laneText(lane)}): ${yieldText}`;
}

function coverage({ bar, wanted: [from], covered_share }: DeviceReport, { row, width }: Layout): string {
  // One character shows as many cells as the width of the line requires; the brackets take two columns.
  const merged = Math.max(1, Math.ceil(bar.cells.length / (width - LABEL - 2)));
  // Both ranges end where the bar ends: the newest minutes of a device without lag do not count.
  return [
    row('Coverage', `${percent(covered_share)} of ${minute(from)} to ${minute(bar.to)} covered`),
    row('', `[${mergedCells(bar.cells, merged)}]`),
    row('', `${minute(bar.from)} to ${minute(bar.to)}, ${duration(bar.cell_seconds * merged)} per character`),
    row('', '# covered   - covered, day without readings   . not fully covered'),
  ].join('');
}

/** Each character shows the worst of its cells: a gap, then a day without readings. */
function mergedCells(cells: string, count: number): string {
  return cells.replace(new RegExp(`.{1,${count}}`, 'g'), (few) =>
    few.includes('.') ? '.' : few.includes('-') ? '-' : '#',
  );
}

function gaps({ gaps: all, named_gaps }: DeviceReport, { row }: Layout): string {
  if (all.length === 0) return row('Gaps', 'none');
  // The newest gaps determine the lag.
  const shown = all.slice(-GAPS_SHOWN).reverse();
  const left = all.length - shown.length;
  const retry = ({ from, to }: StatusGap): string => {
    const gap = named_gaps.find(
      (each) => Date.parse(each.from) < Date.parse(to) && Date.parse(each.to) > Date.parse(from),
    );
    return gap === undefined ? '' : `; next attempt at ${formatTime(gap.retry_at)}`;
  };
  const lines = shown.map((gap, index) => {
    const seconds = (Date.parse(gap.to) - Date.parse(gap.from)) / 1000;
    return row(
      index === 0 ? 'Gaps' : '',
      `${minute(gap.from)} to ${minute(gap.to)}, ${duration(seconds)}: ${gapText(gap.reason).why}${retry(gap)}`,
    );
  });
  return [...lines, ...(left > 0 ? [row('', `and ${count(left)} older ones (--json)`)] : [])].join('');
}

function gracePeriod({ grace_period_seconds, late }: DeviceReport, { row }: Layout): string {
  const grown =
    late.readings === 0
      ? 'no late readings'
      : `${plural(late.readings, 'reading')} late, by up to ${duration(late.max_seconds)}`;
  return row('Grace', `grace period ${duration(grace_period_seconds)}; ${grown}`);
}

function names({ names: all }: DeviceReport, { row }: Layout): string {
  const shown = all.slice(-NAMES_SHOWN).reverse();
  const left = all.length - shown.length;
  const lines = shown.map(({ from, name }, index) =>
    row(
      index === 0 ? 'Names' : '',
      `${nameText(name, 40)} ${from === null ? 'from the beginning' : `since ${formatTime(from)}`}`,
    ),
  );
  return [...lines, ...(left > 0 ? [row('', `and ${count(left)} older ones (--json)`)] : [])].join('');
}

function timeWithAge({ generated_at }: DeviceReport, at: string | null): string {
  if (at === null) return 'never';
  const seconds = (Date.parse(generated_at) - Date.parse(at)) / 1000;
  return `${formatTime(at)} (${seconds < 0 ? 'in the future' : `${duration(seconds)} ago`})`;
}

/**
 * What the upkeep commands tell people: at most 80 columns wide, plain words, nothing shown but through `plainText`.
 */
import { counted, grouped, plainText } from '../../core/text.ts';
import type { ListedGroup, QuarantineList } from '../quarantine/list.ts';
import type { DestinationOutcome, QuarantineSummary } from '../quarantine/quarantine.ts';

const WIDTH = 80;

/** The list of the quarantine. */
export function quarantineListText({ groups, points, records, dropped }: QuarantineList): string {
  const head =
    groups.length === 0
      ? 'Nothing is in quarantine.\n'
      : wrapped(
          `In quarantine: ${counted(points, 'point')} that a database refused, ${counted(records, 'record')} of the API that could not be understood.`,
        );
  const given = dropped.map(
    ({ source, reason, count: records }) =>
      `${wrapped(`Given up before: ${counted(records, 'record')} (${plainText(source, 40)}): ${plainText(reason, 120)}`)}`,
  );
  return [head, ...groups.map(groupText), ...(given.length === 0 ? [] : [given.join('')])].join('\n');
}

function groupText(group: ListedGroup): string {
  const { destination, is_configured, count, reason, first, last, samples, retry, drop } = group;
  const what = destination === null ? 'Records of the API' : `Points that ${destination} refused`;
  const former = is_configured || destination === null ? '' : ' (not in the configuration any more)';
  const when = destination === null ? 'set aside' : 'of';
  return [
    wrapped(`${what}${former}: ${grouped(count)}`),
    wrapped(plainText(reason, 300), '  '),
    wrapped(`${when} ${first} to ${last}`, '  '),
    ...samples.map((sample) => `    ${cut(plainText(sample), WIDTH - 4)}\n`),
    ...(retry === null ? [] : [command('again', retry)]),
    ...(drop === null ? [] : [command('give up', drop)]),
  ].join('');
}

/** A command of which the last flag goes onto a line of its own where it is long. */
function command(label: string, text: string): string {
  const line = `  ${`${label}:`.padEnd(9)}${text}`;
  if (line.length <= WIDTH) return `${line}\n`;
  const at = text.lastIndexOf(' --');
  return `  ${`${label}:`.padEnd(9)}${text.slice(0, at)} \\\n${' '.repeat(15)}${text.slice(at + 1)}\n`;
}

/** What came of a retry or a drop. */
export function quarantineSummaryText(summary: QuarantineSummary): string {
  const { action, outcome, destinations, records } = summary;
  const lines = [...destinations.flatMap((each) => destinationLines(action, each)), ...recordLines(action, records)];
  if (lines.length === 0) lines.push('Nothing in quarantine fits that.');
  if (outcome === 'interrupted') lines.push('Stopped before the end. Run it again for the rest.');
  return lines.map((line) => wrapped(line)).join('');
}

function destinationLines(
  action: QuarantineSummary['action'],
  { name, accepted, refused, beyond_retention, dropped, held }: DestinationOutcome,
): string[] {
  if (action === 'drop')
    return [`${name}: ${counted(dropped, 'point')} given up; it lacks them for ever, which is shown`];
  const counts = [
    [accepted, 'accepted'],
    [refused, 'refused again, kept with the new words'],
    [beyond_retention, 'older than it keeps'],
  ] as const;
  return [
    ...counts.filter(([count]) => count > 0).map(([count, words]) => `${name}: ${counted(count, 'point')} ${words}`),
    ...(held === null ? [] : [`${name}: not sent, kept as it is: ${plainText(held, 400)}`]),
  ];
}

function recordLines(
  action: QuarantineSummary['action'],
  { done, left, reasons }: QuarantineSummary['records'],
): string[] {
  const why = reasons.map((reason) => plainText(reason, 100)).join('; ');
  return [
    ...(done === 0 ? [] : [`${counted(done, 'record')} of the API ${action === 'drop' ? 'given up' : 'in place now'}`]),
    ...(left === 0 ? [] : [`${counted(left, 'record')} of the API kept: ${why}`]),
  ];
}

/** A text in lines of at most 80 columns; what has no space in it is cut hard. */
export function wrapped(text: string, indent = ''): string {
  const room = WIDTH - indent.length;
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ').flatMap((each) => pieces(each, room))) {
    if (line !== '' && line.length + 1 + word.length > room) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].map((each) => `${indent}${each}\n`).join('');
}

function pieces(word: string, room: number): string[] {
  const parts: string[] = [];
  for (let from = 0; from < word.length; from += room) parts.push(word.slice(from, from + room));
  return parts;
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}

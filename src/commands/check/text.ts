/**
 * The answer of `--check` for people: a line for each thing, at most 80 columns wide.
 */
import type { CheckLine, CheckReport, CheckStatus } from '../../core/check.ts';
import { counted, grouped, plainText } from '../../core/text.ts';

const WIDTH = 80;

const MARKS: Readonly<Record<CheckStatus, string>> = { ok: 'ok', skip: '-', warn: 'warn', fail: 'FAIL' };

/** Where the words begin: behind the mark and the name. */
const MARK_WIDTH = 8;
const NAME_WIDTH = 20;

/** The answer as a text of several lines. */
export function checkText(report: CheckReport): string {
  let heading = '';
  const lines: string[] = [];
  for (const check of report.checks) {
    const own = headingOf(check);
    if (own !== heading) lines.push(...(heading === '' ? [] : ['']), own);
    heading = own;
    lines.push(...checkLines(check));
  }
  return `${[...lines, '', ...wrapped(verdictOf(report), '')].join('\n')}\n`;
}

const HEADINGS: Readonly<Record<CheckLine['area'], string>> = {
  configuration: 'Configuration',
  state: 'State',
  api: 'API',
  destination: 'Destination',
};

function headingOf({ area, destination }: CheckLine): string {
  return destination === null ? HEADINGS[area] : `${HEADINGS[area]} ${plainText(destination, 40)}`;
}

function checkLines({ status, name, message, remedy }: CheckLine): string[] {
  const head = `  ${MARKS[status].padEnd(MARK_WIDTH - 2)}${plainText(name, 60)}`;
  const room = MARK_WIDTH + NAME_WIDTH;
  const words = wrapped(plainText(message, MOST), ' '.repeat(room));
  const isLong = head.length >= room;
  const first = isLong ? [head, ...words] : [head.padEnd(room) + (words[0] ?? '').trimStart(), ...words.slice(1)];
  if (remedy === null) return first;
  const arrow = `${' '.repeat(MARK_WIDTH)}-> `;
  return [...first, ...wrapped(plainText(remedy, MOST), ' '.repeat(arrow.length), arrow)];
}

/** More is nothing that anybody reads. */
const MOST = 1200;

function verdictOf({ checks, requests, exit_code }: CheckReport): string {
  const count = (status: CheckStatus): number => checks.filter((check) => check.status === status).length;
  const [failed, warned, skipped] = [count('fail'), count('warn'), count('skip')];
  const parts = [
    failed === 0 ? 'All that is needed works' : `${counted(failed, 'thing')} not in order`,
    ...(warned === 0 ? [] : [`${counted(warned, 'warning')}`]),
    ...(skipped === 0 ? [] : [`${grouped(skipped)} not looked at`]),
  ];
  const end = exit_code === 0 ? '' : ` Exit code ${exit_code}.`;
  return `${parts.join(', ')}. ${requests === 0 ? 'The API was asked for nothing' : `${counted(requests, 'request')} of the allowance`}.${end}`;
}

/** Lines of at most 80 columns, each set in; a word that is longer than a line is cut. */
function wrapped(text: string, indent: string, first: string = indent): string[] {
  const lines: string[] = [];
  let line = first;
  let isEmpty = true;
  for (const word of text.split(' ').flatMap((each) => pieces(each, WIDTH - indent.length))) {
    if (!isEmpty && line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = indent;
      isEmpty = true;
    }
    line += isEmpty ? word : ` ${word}`;
    isEmpty = false;
  }
  return [...lines, line];
}

function pieces(word: string, length: number): string[] {
  return word.length <= length ? [word] : [word.slice(0, length), ...pieces(word.slice(length), length)];
}

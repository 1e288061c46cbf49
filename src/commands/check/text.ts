/**
 * The answer of `--check` for people: a line for each thing, at most 80 columns wide.
 */
import type { CheckLine, CheckReport, CheckStatus } from '../../core/check.ts';
import { counted, grouped, plainText } from '../../core/text.ts';
import { wrap } from '../shared/layout.ts';

const MARKS: Readonly<Record<CheckStatus, string>> = { ok: 'ok', skip: '-', warn: 'warn', fail: 'FAIL' };

/** Where the words begin: behind the mark and the name. */
const MARK_WIDTH = 8;
const NAME_WIDTH = 20;

/** The answer as a text of several lines. */
export function checkText(report: CheckReport): string {
  let heading = '';
  let text = '';
  for (const check of report.checks) {
    const own = headingOf(check);
    if (own !== heading) text += `${heading === '' ? '' : '\n'}${own}\n`;
    heading = own;
    text += checkLines(check);
  }
  return `${text}\n${wrap(verdictOf(report), 0)}`;
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

function checkLines({ status, name, message, remedy }: CheckLine): string {
  const head = `  ${MARKS[status].padEnd(MARK_WIDTH - 2)}${plainText(name, 60)}`;
  const room = MARK_WIDTH + NAME_WIDTH;
  const words = plainText(message, MOST);
  const first =
    head.length >= room ? `${head}\n${wrap(' '.repeat(room) + words, room)}` : wrap(head.padEnd(room) + words, room);
  const arrow = `${' '.repeat(MARK_WIDTH)}-> `;
  return remedy === null ? first : first + wrap(arrow + plainText(remedy, MOST), arrow.length);
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

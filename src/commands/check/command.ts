/**
 * `--check`: checks the configuration, the state, the API and the destinations in this order, each as far as the
 * earlier ones allow it, and prints one line per finding.
 *
 * Every request to the API is booked in the state first, so it counts in every later run. Without a state, `--check`
 * creates one for that, and it stays. If a daemon is running, the daemon sends the requests (`commands/check/job.ts`).
 */

import type { ProcessPorts } from '../../app/terminal.ts';
import { UserError } from '../../core/faults.ts';
import { VERSION } from '../../core/status.ts';
import { byteSize, counted, grouped, plainText } from '../../core/text.ts';
import { requireNewFile } from '../../store/open/new-file.ts';
import { stateBytes } from '../../store/views/inspect.ts';
import { printAnswer } from '../shared/command.ts';
import { widthOf, wrap } from '../shared/layout.ts';
import { checkWholeApi } from './api.ts';
import type { BundleParts } from './bundle.ts';
import { type CheckParts, configLines } from './config.ts';
import { checkDestinations } from './destination.ts';
import { checkPage } from './page.ts';
import {
  type ApiFindings,
  type CheckLine,
  type CheckReport,
  type CheckStatus,
  checkReport,
  shownLines,
} from './report.ts';
import { bookingRefusal, inspectForCheck, stateLines } from './state.ts';

/**
 * Runs all checks, prints the result and returns the exit code.
 *
 * @throws UserError (exit 3) if it is interrupted.
 */
export async function runCheckCommand(parts: CheckParts, ports: ProcessPorts): Promise<number> {
  const { command, terminal } = parts;
  if (command.bundle !== null) requireNewFile('--bundle', command.bundle);
  try {
    const { requests, checks } = await bundledWhereItFails(parts, ports);
    const report = checkReport(VERSION, requests, checks, command.startup);
    // Before the report: on a terminal its first line would otherwise follow the hint.
    terminal.endProgress();
    printAnswer(parts, ports, { object: report, text: () => checkText(report, command.verbose, ports.stdout) });
    await bundled(parts, report, ports);
    return report.exit_code;
  } catch (error) {
    if (ports.signal.aborted) throw new UserError('Stopped before every check was done', 'Run --check again.', 3);
    throw error;
  } finally {
    terminal.endProgress();
  }
}

/**
 * Writes the bundle even if the check itself fails, because a bundle is needed most then. The report names the failure.
 */
async function bundledWhereItFails(parts: CheckParts, ports: ProcessPorts): Promise<ApiFindings> {
  try {
    return await checkAll(parts, ports);
  } catch (error) {
    if (!ports.signal.aborted && !(error instanceof UserError)) {
      await bundled(parts, { unavailable: error instanceof Error ? error.message : 'unknown' }, ports);
    }
    throw error;
  }
}

async function bundled(parts: CheckParts, check: BundleParts['check'], ports: ProcessPorts): Promise<void> {
  const { bundle } = parts.command;
  if (bundle === null) return;
  const { writeSupportBundle } = await import('./bundle.ts');
  await writeSupportBundle(bundle, { ...parts, check }, ports);
}

async function checkAll(parts: CheckParts, { environment, signal }: ProcessPorts): Promise<ApiFindings> {
  const { command, read, terminal } = parts;
  const { config, state } = read;
  const checks: CheckLine[] = configLines(parts, environment);
  if (state === null) return { requests: 0, checks };
  terminal.hint(`checking the state (${byteSize(stateBytes(state.dataDir))}) …`);
  const view = inspectForCheck(state.dataDir);
  checks.push(...stateLines(view, state));
  let requests = 0;
  if (config !== null) {
    const found = await checkWholeApi({ config, terminal, bookingRefusal: bookingRefusal(view) }, signal);
    requests = found.requests;
    checks.push(...found.checks);
  }
  checks.push(...(await checkDestinations({ writeProbe: command.writeProbe, terminal }, state, signal)));
  checks.push(...(await checkPage(state, typeof view.isLocked === 'boolean' ? view.isLocked : null)));
  return { requests, checks };
}

const MARKS: Readonly<Record<CheckStatus, string>> = { ok: 'ok', skip: '-', warn: 'warn', fail: 'FAIL' };

/** The column at which the message begins, after the mark and the name. */
const MARK_WIDTH = 8;
const NAME_WIDTH = 20;

/** The answer as a text of several lines. */
function checkText(report: CheckReport, isVerbose: boolean, stdout: ProcessPorts['stdout']): string {
  const width = widthOf(stdout);
  const { isTTY } = stdout;
  let heading = '';
  let text = '';
  for (const check of isVerbose ? report.checks : shownLines(report.checks)) {
    const own = headingOf(check);
    if (own !== heading) text += `${heading === '' ? '' : '\n'}${own}\n`;
    heading = own;
    text += checkLines(check, { isTTY, isVerbose, width });
  }
  return `${text}\n${wrap(verdictText(report, isVerbose), 0, width)}`;
}

const HEADINGS: Readonly<Record<CheckLine['area'], string>> = {
  configuration: 'Configuration',
  state: 'State',
  api: 'API',
  destination: 'Destination',
  page: 'Status page',
  dashboards: 'Dashboards on',
};

function headingOf({ area, destination }: CheckLine): string {
  return destination === null ? HEADINGS[area] : `${HEADINGS[area]} ${plainText(destination, 40)}`;
}

interface Form {
  readonly isTTY: boolean;
  readonly isVerbose: boolean;
  readonly width: number;
}

function checkLines({ status, name, message, remedy }: CheckLine, { isTTY, isVerbose, width }: Form): string {
  const head = `  ${MARKS[status].padEnd(MARK_WIDTH - 2)}${plainText(name, 60)}`;
  const room = MARK_WIDTH + NAME_WIDTH;
  // A check that succeeded takes one row: shortened to the width of a terminal, complete in a file or a pipe.
  if (status === 'ok' && !isTTY) return `${`${head} `.padEnd(room)}${plainText(message, MOST)}\n`;
  const text = plainText(message, status === 'ok' && !isVerbose ? width - room : MOST);
  const first =
    head.length >= room
      ? `${head}\n${wrap(' '.repeat(room) + text, room, width)}`
      : wrap(head.padEnd(room) + text, room, width);
  const arrow = `${' '.repeat(MARK_WIDTH)}-> `;
  return remedy === null ? first : first + wrap(arrow + plainText(remedy, MOST), arrow.length, width);
}

/** The longest message that is shown. */
const MOST = 1200;

function verdictText({ checks, requests, exit_code }: CheckReport, isVerbose: boolean): string {
  const shown = isVerbose ? checks : shownLines(checks);
  const count = (status: CheckStatus): number => shown.filter((check) => check.status === status).length;
  const [failed, warned, skipped] = [count('fail'), count('warn'), count('skip')];
  const parts = [
    failed === 0 ? 'All required checks passed' : `${counted(failed, 'check')} failed`,
    ...(warned === 0 ? [] : [`${counted(warned, 'warning')}`]),
    ...(skipped === 0 ? [] : [`${grouped(skipped)} not checked (marked -)`]),
  ];
  const end = exit_code === 0 ? '' : ` Exit code ${exit_code}.`;
  return `${parts.join(', ')}. ${requests === 0 ? 'No request was sent to the API' : `${counted(requests, 'request')} sent to the API`}.${end}`;
}

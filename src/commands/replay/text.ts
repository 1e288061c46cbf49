/**
 * What `--replay` says: how far it is, and at its end what has become of the points, what is wrong first.
 */
import type { ReplayReport, ReplaySummary } from '../../core/state/replay.ts';
import { grouped, plainText } from '../../core/text.ts';
import type { Logger } from '../../observe/log.ts';

/** How far it is, 0 to 1: by devices, of all destinations. */
export function replayShare(reports: readonly ReplayReport[]): number | null {
  const sum = (of: (report: ReplayReport) => number): number => reports.reduce((total, each) => total + of(each), 0);
  const devices = sum((report) => report.devices);
  return devices === 0 ? null : Math.min(1, sum((report) => report.devices_done) / devices);
}

/** How far it is, in one line; the most telling first, as a narrow terminal cuts the end. */
export function replayWords(reports: readonly ReplayReport[], linesPerS: number): string {
  const words = reports.map(({ name, lines, devices_done, devices, held }) => {
    const where = reports.length > 1 ? `${name}: ` : '';
    const why = held === null ? '' : `, held: ${plainText(held, 40)}`;
    return `${where}${grouped(lines)} points sent, ${grouped(devices_done)}/${grouped(devices)} devices${why}`;
  });
  return `${words.join('; ')}, ${grouped(Math.round(linesPerS))}/s`;
}

/** Says how it ended. */
export function tellReplayEnd({ destinations }: ReplaySummary, logger: Pick<Logger, 'info' | 'warn'>): void {
  for (const report of destinations) {
    tellOutcome(report, logger);
    tellCounts(report, logger);
  }
}

const TOLD = { event: 'replay-told' } as const;

const AGAIN = 'run it again with the same words: it goes on from there';

function tellOutcome(
  { name, outcome, lines, accepted, held }: ReplayReport,
  logger: Pick<Logger, 'info' | 'warn'>,
): void {
  const sums = `${grouped(lines)} points sent to ${name}: ${grouped(accepted)} accepted`;
  if (outcome === 'interrupted') logger.warn(`stopped before the end: ${sums}; ${AGAIN}`, TOLD);
  else if (outcome === 'stalled') {
    logger.warn(
      `ended after ten minutes without progress: ${sums}. ${plainText(held ?? '')}. Mend that and ${AGAIN}`,
      TOLD,
    );
  } else if (lines > 0) logger.info(sums, TOLD);
  else logger.warn(`nothing was sent to ${name}: the archive holds nothing of what was asked for`, TOLD);
}

function tellCounts(
  { name, refused, known, beyond, released }: ReplayReport,
  logger: Pick<Logger, 'info' | 'warn'>,
): void {
  if (refused > 0) logger.warn(`${grouped(refused)} points were refused by ${name} and are in quarantine now`, TOLD);
  if (known > 0)
    logger.warn(`${grouped(known)} points were refused again by ${name}: they were in quarantine before`, TOLD);
  if (beyond > 0) logger.warn(`${grouped(beyond)} points are older than ${name} keeps: they are not there`, TOLD);
  if (released > 0) logger.info(`${grouped(released)} points of the quarantine were accepted and have left it`, TOLD);
}

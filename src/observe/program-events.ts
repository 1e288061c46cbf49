/**
 * The events of the program around the sync and of its commands: their part of the table of events.
 */
import type { ProgramEvent } from '../core/events.ts';
import { internalErrorText } from '../core/faults.ts';
import { counted } from '../core/text.ts';
import { type EventRow, error, info, type Rows, warn } from './event-row.ts';

/** Events of the program around the sync and of its commands. */
export const PROGRAM_EVENTS: Rows<ProgramEvent> = {
  started: info('Tidemark started', { fields: ({ version, statusPage }) => ({ version, status_page: statusPage }) }),
  stopped: info('Tidemark stopped'),
  'status-page-failed': error(({ message }) => `Status page failed: ${message}`),
  progress: info(({ message }) => message, {
    note: '`progress: …` or `backfill: …`, once a minute while the sync or the delivery is incomplete; while telemetry is not polled, the reason is in place of the ETA and the rate; delivered and waiting points are summed over the databases',
  }),
  'configuration-odd': warn(({ message }) => message, { note: 'the message names the key' }),
  'configuration-invalid': error(({ message }) => `The configuration is invalid: ${message}`, {
    fields: ({ mistakes, exitCode }) => ({ mistakes, exit_code: exitCode }),
    note: 'logged by a daemon without a terminal (unless `log.format` is `pretty`) and by any command with `log.format: json`; otherwise printed as text',
  }),
  failed: error(({ message, isKnown }) => (isKnown ? message : internalErrorText(message)), {
    fields: ({ exitCode }) => ({ exit_code: exitCode }),
    note: 'the last line after an error, logged by a daemon without a terminal (unless `log.format` is `pretty`) and by any command with `log.format: json`; otherwise printed as text',
  }),
  'run-ended': {
    level: { any: ['info', 'warn'], choose: ({ exitCode }) => (exitCode === 0 ? 'info' : 'warn') },
    message: ({ exitCode, isAllRead, outcome, devices, points, gaps }) => {
      // A sync that ended early may have found no gap because it did not come to look.
      const none = exitCode === 0 ? 'no gaps, ' : '';
      const left = gaps === 0 ? none : `${counted(gaps, 'gap')}, `;
      const sums =
        devices === 0
          ? 'no device is known'
          : `${counted(devices, 'device')}, ${left}${counted(points, 'telemetry point')} in the archive`;
      const reason = outcome === 'gaps_remain' ? 'gaps remain that cannot be closed' : outcome;
      if (exitCode !== 0) return `Sync incomplete: ${reason} (${sums})`;
      return `Sync complete${isAllRead ? '' : ' for the streams that the key may read'}: ${sums}`;
    },
    isWhole: true,
    fields: ({ devices, points, gaps, exitCode, outcome }) => {
      return { devices, points, gaps, exit_code: exitCode, outcome };
    },
    pattern: '…',
    note: 'the end of `--once`; warn if it is incomplete',
  },
  'run-incomplete': {
    level: { any: ['warn', 'info'], choose: ({ isWanted }) => (isWanted ? 'info' : 'warn') },
    message: ({ message }) => message,
    note: '`--once`, `--backfill`: one line for each part that is incomplete; info if the configuration excludes it',
  },
  'replay-report': reportRow('`--replay`: the result'),
  'export-report': reportRow('`--export`: what was written, and what the archive no longer has'),
  'repair-report': {
    ...reportRow('`--verify --repair`: what is requested again, and what cannot be'),
    fields: ({ cost }) => {
      if (cost === null) return {};
      const { destination, points, readings, requests } = cost;
      return { destination, points, readings, requests };
    },
  },
  'job-followed': info(
    ({ isFound, isCheck }) => {
      if (isCheck === true)
        return 'A daemon uses this state; it sends the requests to the API with its own address and key. This command checks everything else with the configuration given here';
      return isFound === true
        ? 'The daemon has this job already; this command follows it. Ctrl-C cancels the job'
        : 'A daemon uses this state; it runs the job with its own configuration. Ctrl-C cancels the job';
    },
    {
      fields: ({ dataDir }) => ({ data_dir: dataDir }),
      pattern: '…',
      note: 'the first for a new job, the second if an equal command has requested it before, the third for `--check`',
    },
  ),
  'job-queued': info(
    'The daemon runs another job of this kind; this job waits (--status shows both). Ctrl-C cancels this job',
  ),
  'bundle-written': info('Support bundle written; check it for private data before you send it', {
    fields: ({ file }) => ({ file }),
  }),
};

/** The row of a line whose message comes from the command. */
function reportRow<E extends { readonly message: string; readonly isWell: boolean }>(note: string): EventRow<E> {
  return {
    level: { any: ['info', 'warn'], choose: ({ isWell }) => (isWell ? 'info' : 'warn') },
    message: ({ message }) => message,
    note,
  };
}

/**
 * The command `--forget --device ID`: removes a device alone under the lock, or through the daemon that holds it, and
 * prints what was removed and what was kept.
 */

import { createSyncOptions } from '../../app/settings.ts';
import { type ProcessPorts, repeatWhile, SHOW_EVERY_MS } from '../../app/terminal.ts';
import { withState } from '../../app/with-sync.ts';
import type { ForgetCommand } from '../../cli/command.ts';
import { UserError } from '../../core/faults.ts';
import { isRecord } from '../../core/json.ts';
import { identityTag } from '../../core/lines/line-protocol.ts';
import { OTHER_VERSION_REMEDY } from '../../core/state/job-args.ts';
import { counted, grouped, plainText, rateText } from '../../core/text.ts';
import { requireState } from '../../store/open/read-only.ts';
import { type CommandRun, chosenDevices, printAnswer } from '../shared/command.ts';
import { doOrFollow } from '../shared/do-or-follow.ts';
import { wrap } from '../shared/layout.ts';
import { type ForgetSummary, forgetDevice, forgetParts } from './job.ts';

const NOT_SHOWN = 'The daemon runs another version of Tidemark, so its result cannot be shown';

/**
 * Runs the command and prints the result.
 *
 * @returns the exit code.
 * @throws UserError with the exit code and the remedy.
 */
export async function runForgetCommand(run: CommandRun<ForgetCommand>, ports: ProcessPorts): Promise<number> {
  const { command, config, terminal } = run;
  requireState(config.dataDir);
  const device = chosenDevices(config.dataDir, [command.device], false)[0] ?? command.device;
  const { destinations } = createSyncOptions(config);
  const show = (progress: unknown): void => {
    const { share, points } = isRecord(progress) ? progress : {};
    if (typeof share !== 'number') return;
    const done = typeof points === 'number' ? points : 0;
    const rate = { done, text: (perSecond: number) => `${rateText(perSecond)} points/s` };
    terminal.showWork(() => ({ share: Math.min(share, 0.99), text: `${counted(done, 'point')} removed`, rate }));
  };
  const summary = await doOrFollow(
    {
      kind: 'forget',
      args: { device },
      requestedBy: '--forget',
      alone: () =>
        withState(run, ({ context }) => {
          const progress = { share: 0, points: 0 };
          const work = forgetDevice(
            forgetParts({ context, destinations, forgotten: () => {} }),
            { deviceId: device, progress },
            ports.signal,
          );
          return repeatWhile(work, () => show(progress), SHOW_EVERY_MS.work).finally(terminal.endProgress);
        }),
      read: (found) => (isSummary(found) ? found : null),
      failed: ({ exitCode, message }) =>
        message === null
          ? new UserError(NOT_SHOWN, OTHER_VERSION_REMEDY, exitCode || 1)
          : new UserError(message, null, exitCode || 1),
      show,
    },
    { dataDir: config.dataDir, terminal },
    ports,
  );
  const object = { device_id: device, ...summary };
  printAnswer(run, ports, { object, text: () => forgetText(device, summary) });
  return summary.exit_code;
}

function isSummary(value: unknown): value is ForgetSummary {
  if (!isRecord(value)) return false;
  const { outcome, points, exit_code } = value;
  return typeof outcome === 'string' && typeof points === 'number' && typeof exit_code === 'number';
}

/** The summary as text, at most 80 columns wide except for statements to copy. */
function forgetText(deviceId: string, summary: ForgetSummary): string {
  const { outcome, points, quarantined, alerts, is_listed, is_log_empty } = summary;
  const name = plainText(deviceId, 60);
  if (outcome === 'interrupted') {
    return wrap(
      `Stopped before all data of ${name} was removed. The next start finishes it, or run the command again.`,
      0,
    );
  }
  const lines = [
    `Removed ${name}: ${counted(points, 'point')} from the archive, ${grouped(quarantined)} from quarantine, ${counted(alerts, 'alert')}, and its entry in the state.`,
  ];
  if (outcome === 'waiting') {
    lines.push('Some points arrived meanwhile and are not delivered yet. Run the command again when they are.');
  }
  if (is_listed) {
    lines.push(
      'The API still lists the device: its entry (name, model, tags) returns with the next device list; its readings do not return while it is excluded.',
    );
  }
  if (!is_log_empty) {
    lines.push(
      "Another process was reading the state: the removed data remains in SQLite's log (tidemark.db-wal) until the next write.",
    );
  }
  lines.push('Your databases were not changed, and earlier backups of the state still contain the device.');
  return `${lines.map((line) => wrap(line, 0)).join('')}\n${statements(deviceId)}`;
}

/** The statements that remove the device from the databases, which Tidemark leaves to a person. */
function statements(deviceId: string): string {
  const tag = identityTag(deviceId);
  if (plainText(tag, 2000) !== tag) {
    return wrap(
      'The id has characters that cannot be printed: find the series of the device in the database and remove them there.',
      0,
    );
  }
  const influxql = tag.replace(/'/g, "\\'");
  return [
    'To remove the device from InfluxDB (InfluxQL, in the database of the bucket):\n',
    `  DELETE WHERE "device_id" = '${influxql}'\n`,
    'To remove it from VictoriaMetrics, request /api/v1/admin/tsdb/delete_series with\n',
    `  match[]={device_id=${JSON.stringify(tag)}}\n`,
  ].join('');
}

/**
 * A state of some size, and the program's commands on it in this process: with a terminal or without one.
 */
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { ProcessPorts } from '../../src/app/terminal.ts';
import { parseArguments } from '../../src/cli/argv.ts';
import { runCommand } from '../../src/commands/run.ts';
import { UserError } from '../../src/core/faults.ts';
import { fillState } from '../bench/scale/state.ts';

export interface RunOptions {
  /** Whether standard error, standard output is a terminal. */
  readonly isTTY?: boolean;
  readonly isStdoutTTY?: boolean;
  /** After so many pieces it is stopped, or the reader closes. */
  readonly stopAfter?: number;
  readonly closeAfter?: number;
  /** After so long a timer stops it, if it lets timers run. */
  readonly stopAfterMs?: number;
}

export interface Reported {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Both, as a terminal that both go to is written to. */
  readonly screen: string;
}

/** A state that was filled. */
export interface Filled {
  readonly directory: string;
  /**
   * Puts points into the quarantine.
   *
   * @returns how many.
   */
  refuse(points: number): number;
  /** Makes a device leave the workspace, with all of its points delivered. */
  leave(deviceId: string): void;
  run(args: readonly string[], options?: RunOptions): Promise<Reported>;
}

/** Fills `state` in a directory: five devices, two sensors, three days. */
export function runCommandFilled(directory: string): Filled {
  const dataDir = join(directory, 'state');
  const newestMs = Date.now() - 5 * 60_000;
  const size = { devices: 5, readings: 5 * 3 * 1440, days: 3, sensors: 2, seed: 3 };
  fillState(dataDir, { ...size, influx: 'http://127.0.0.1:1', newestMs });
  const change = (work: (db: Database.Database) => void): void => {
    const db = new Database(join(dataDir, 'tidemark.db'));
    try {
      db.transaction(() => work(db))();
    } finally {
      db.close();
    }
  };
  return {
    directory,
    refuse: (points) => {
      change((db) => {
        const insert = db.prepare(
          "INSERT INTO quarantine (destination_id, source, content, reason, at_ms) VALUES (1, 'destination', ?, 'of the test', 1)",
        );
        const series = 'telemetry,device_id=dev_000002,sensor=s9,device_name=x,workspace_id=bench';
        for (let at = 1; at <= points; at += 1) insert.run(`${series} value=1 ${newestMs - at}000000`);
      });
      return points;
    },
    leave: (deviceId) =>
      change((db) => {
        db.prepare('UPDATE device SET gone_since_ms = ? WHERE device_id = ?').run(newestMs, deviceId);
        db.exec("UPDATE position SET block = (SELECT max(seq) + 1 FROM block) WHERE lane = 'live'");
      }),
    run: (args, options = {}) => run(args, dataDir, options),
  };
}

async function run(args: readonly string[], dataDir: string, options: RunOptions): Promise<Reported> {
  const reported = { stdout: '', stderr: '', screen: '' };
  const stop = new AbortController();
  let pieces = 0;
  const ports: ProcessPorts = {
    environment: { TIDEMARK_DATA_DIR: dataDir },
    forget: () => {},
    readFile: () => {
      throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
    },
    print: (text) => {
      reported.screen += text;
      reported.stdout += text;
    },
    stdout: {
      isTTY: options.isStdoutTTY === true,
      write: (text) => {
        pieces += 1;
        if (pieces === options.closeAfter) return Promise.resolve(false);
        reported.stdout += text;
        if (pieces === options.stopAfter) stop.abort(new Error('stopped by SIGINT'));
        return Promise.resolve(true);
      },
    },
    stderr: {
      isTTY: options.isTTY === true,
      columns: 80,
      write: (text) => {
        reported.screen += text;
        reported.stderr += text;
      },
    },
    signal: stop.signal,
  };
  const command = parseArguments(args);
  if (command.mode === 'help' || command.mode === 'version' || command.mode === 'health')
    throw new Error('no such mode');
  const { stopAfterMs } = options;
  const timer =
    stopAfterMs === undefined ? null : setTimeout(() => stop.abort(new Error('stopped by SIGINT')), stopAfterMs);
  try {
    return { code: await runCommand(command, ports), ...reported };
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return { ...reported, code: error.exitCode, stderr: `${reported.stderr}tidemark: ${error.message}\n` };
  } finally {
    clearTimeout(timer ?? undefined);
  }
}

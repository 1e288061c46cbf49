/**
 * `--status` as a real process over a large state, filled for it: its time and memory; the output is checked before the
 * time counts.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StatusReport } from '../../../src/core/status.ts';
import { MINUTE_MS } from '../../../src/core/time.ts';
import { runProgram } from '../parts.ts';
import { type Filled, fillState } from './state.ts';

export interface StatusLook {
  readonly name: string;
  readonly wallMs: readonly number[];
  readonly peakBytes: readonly number[];
}

export interface LookOptions {
  readonly program: string;
  readonly runs: number;
  /** Of 10,000 devices with 100 million readings. */
  readonly part: number;
  readonly say: (text: string) => void;
}

const DEVICES = 10_000;
const READINGS = 100_000_000;

/**
 * Fills a state and looks at it.
 *
 * @throws Error where an answer is not right.
 */
export async function statusLooks({ program, runs, part, say }: LookOptions): Promise<readonly StatusLook[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'tidemark-bench-'));
  try {
    const startedMs = performance.now();
    const size = { devices: DEVICES * part, readings: READINGS * part, days: 30, sensors: 1, seed: 1 };
    const newestMs = Date.now() - 5 * MINUTE_MS;
    const filled = fillState(dataDir, { ...size, influx: 'http://127.0.0.1:8086', newestMs });
    const seconds = Math.round((performance.now() - startedMs) / 1000);
    say(
      `status: ${filled.readings} readings in ${filled.blocks} blocks, ${filled.bytes} bytes, filled in ${seconds} s`,
    );
    const looks: StatusLook[] = [];
    for (const args of [['--status'], ['--status', '--json'], ['--status', '--device', 'dev_000042']]) {
      const ended = [];
      for (let run = 0; run < runs; run += 1) {
        const each = await runProgram(args, { program, env: { TIDEMARK_DATA_DIR: dataDir } });
        if (each.code !== 0) throw new Error(`${args.join(' ')} ended with ${each.code}: ${each.stderr}`);
        if (args.includes('--json')) check(JSON.parse(each.stdout), filled);
        ended.push(each);
      }
      looks.push({
        name: args.slice(0, 2).join(' '),
        wallMs: ended.map(({ wallMs }) => wallMs),
        peakBytes: ended.map(({ peakBytes }) => peakBytes),
      });
    }
    return looks;
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

function check({ devices, totals, destinations }: StatusReport, { devices: many, readings }: Filled): void {
  const pending = destinations[0]?.pending_points ?? 0;
  if (devices.length === many && totals.archived_readings === readings && pending > 0 && pending < readings) return;
  throw new Error(`${devices.length} devices, ${totals.archived_readings} readings, ${pending} waiting`);
}

/**
 * `--once` put together: alone it does the work itself; where a daemon holds the state, that does it and this follows.
 */
import { createHttpTransport } from '../api/transport.ts';
import { openSync, type Sync } from '../app.ts';
import { settingsOf } from '../app-settings.ts';
import { type OnceSummary, runOnce } from '../commands/once.ts';
import { readOnceSummary } from '../commands/once-summary.ts';
import type { Config } from '../config.ts';
import { UserError } from '../core/faults.ts';
import type { JobEnd } from '../core/jobs.ts';
import type { Secret } from '../core/secret.ts';
import { realClock, realRandom } from '../real-clock.ts';
import { type ProcessPorts, repeatWhile, type Voice } from '../voice.ts';
import { doOrFollow, showProgress } from './do-or-follow.ts';
import { tellEnd } from './end.ts';
import { createSecretReader } from './secrets.ts';

/** How often the progress is looked at. */
const LOOK_EVERY_MS = 1000;

/** How it speaks, and what must not be shown; a secret that is exchanged is added. */
interface Speech {
  readonly voice: Voice;
  readonly secrets: Secret[];
}

/** Runs it. @returns the summary, whoever did the work. @throws UserError with the exit code and what to do. */
export async function runOnceCommand(config: Config, speech: Speech, ports: ProcessPorts): Promise<OnceSummary> {
  const request = { kind: 'once', args: {}, askedBy: '--once', askedMs: realClock.nowMs() } as const;
  const work = { request, alone: () => once(config, speech, ports), summaryOf, show: showProgress(speech.voice) };
  const summary = await doOrFollow(work, { dataDir: config.dataDir, voice: speech.voice }, ports);
  tellEnd(summary, speech.voice.logger);
  return summary;
}

async function once(config: Config, { voice, secrets }: Speech, ports: ProcessPorts): Promise<OnceSummary> {
  const { url, key, ca, timeoutMs, concurrency } = config.api;
  const http = createHttpTransport({ timeoutMs, connections: concurrency, ...(ca === null ? {} : { ca }) });
  let sync: Sync | null = null;
  try {
    sync = openSync({
      ...settingsOf(config, createSecretReader({ readFile: ports.readFile, secrets })),
      observe: voice.observe,
      clock: realClock,
      random: realRandom,
      transport: http.transport,
      api: { ...config.api, url, key: () => key.reveal() },
      dataDir: config.dataDir,
    });
    const { report } = sync;
    const look = (): void => voice.show(report);
    return await repeatWhile(runOnce(sync, ports.signal), look, LOOK_EVERY_MS).finally(voice.endProgress);
  } finally {
    sync?.close();
    await http.close();
  }
}

function summaryOf({ exitCode, summary, message }: JobEnd): OnceSummary {
  const read = readOnceSummary(summary);
  if (read !== null) return read;
  const words = message ?? 'it has left no summary that this version understands';
  throw new UserError(`The daemon did not do it: ${words}`, exitCode === 0 ? 1 : exitCode);
}

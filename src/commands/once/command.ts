/**
 * `--once` put together: alone it does the work itself; where a daemon holds the state, that does it and this follows.
 */

import { realClock } from '../../app/real-clock.ts';
import { type ProcessPorts, repeatWhile, type Voice } from '../../app/terminal.ts';
import { withSync } from '../../app/with-sync.ts';
import type { Config } from '../../config/config.ts';
import type { Secret } from '../../core/secret.ts';
import { doOrFollow, showProgress, summaryBy } from '../shared/do-or-follow.ts';
import { tellEnd } from './end.ts';
import { type OnceSummary, runOnce } from './once.ts';
import { readOnceSummary } from './summary.ts';

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
  const work = {
    request,
    alone: () => once(config, speech, ports),
    summaryOf: summaryBy(readOnceSummary),
    show: showProgress(speech.voice),
  };
  const summary = await doOrFollow(work, { dataDir: config.dataDir, voice: speech.voice }, ports);
  tellEnd(summary, speech.voice.logger);
  return summary;
}

async function once(config: Config, speech: Speech, ports: ProcessPorts): Promise<OnceSummary> {
  const { voice } = speech;
  return await withSync({ config, ...speech }, ports, async (sync) => {
    const { report } = sync;
    const look = (): void => voice.show(report);
    return await repeatWhile(runOnce(sync, ports.signal), look, LOOK_EVERY_MS).finally(voice.endProgress);
  });
}

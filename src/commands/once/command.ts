/**
 * `--once` put together: alone it does the work itself; where a daemon holds the state, that does it and this follows.
 */

import { type ProcessPorts, repeatWhile, type Voice } from '../../app/terminal.ts';
import { withSync } from '../../app/with-sync.ts';
import type { Config } from '../../config/config.ts';
import type { Secret } from '../../core/secret.ts';
import { doOrFollow, showProgress } from '../shared/do-or-follow.ts';
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
  const { voice } = speech;
  const summary = await doOrFollow(
    {
      kind: 'once',
      args: {},
      askedBy: '--once',
      alone: () => once(config, speech, ports),
      read: readOnceSummary,
      show: showProgress(voice),
    },
    { dataDir: config.dataDir, voice },
    ports,
  );
  tellEnd(summary, voice.logger);
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

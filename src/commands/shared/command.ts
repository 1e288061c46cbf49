/**
 * What every command receives, and what several commands do alike: print a result, refuse a missing state or an
 * unknown device.
 */
import type { ProcessPorts, TerminalOutput } from '../../app/terminal.ts';
import type { StateConfig } from '../../config/config.ts';
import { UserError } from '../../core/faults.ts';
import type { Secret } from '../../core/secret.ts';
import { nearest, plainText } from '../../core/text.ts';

/** One run of a command: what the command line says, the configuration, and how it speaks. */
export interface CommandRun<Command, Config = StateConfig> {
  readonly command: Command;
  readonly config: Config;
  readonly terminal: TerminalOutput;
  /** What must not be shown; a secret that is exchanged is added. */
  readonly secrets: Secret[];
}

/** Prints an answer: as an object in one line with `--json`, as text without. */
export function printAnswer(
  {
    command: { json },
    terminal,
  }: { readonly command: { readonly json: boolean }; readonly terminal: Pick<TerminalOutput, 'scrub'> },
  { print }: Pick<ProcessPorts, 'print'>,
  { object, text }: { readonly object: unknown; readonly text: () => string },
): void {
  print(terminal.scrub(json ? `${JSON.stringify(object)}\n` : text()));
}

/** What a command on the archive says where there is none. */
export function noState(dataDir: string): UserError {
  return new UserError(
    `${dataDir}: there is no state here yet. Run the daemon or --once first, or set data_dir to where they keep theirs.`,
    1,
  );
}

/** @throws UserError (exit 2) where a device was asked for of which nothing is known. */
export function requireKnown(
  state: { strangers(deviceIds: readonly string[]): readonly string[]; deviceIds(): readonly string[] },
  deviceIds: readonly string[],
): void {
  const [stranger] = state.strangers(deviceIds);
  if (stranger === undefined) return;
  const meant = nearest(stranger, state.deviceIds());
  const advice =
    meant === null ? 'It takes the id of a device as the API lists it.' : `Did you mean ${plainText(meant, 60)}?`;
  throw new UserError(`--device: nothing is held of a device with that id. ${advice}`, 2);
}

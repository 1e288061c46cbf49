/**
 * The input of every command, and the steps that several commands share: print a result, reject a missing state or key,
 * find the devices that the command line names, request the account.
 */
import type { ProcessPorts, TerminalOutput } from '../../app/terminal.ts';
import type { StateConfig } from '../../config/config.ts';
import type { History } from '../../config/values.ts';
import { findDeviceIds, type NamedDevice } from '../../core/device-names.ts';
import {
  type Advice,
  type ApiFault,
  endsSession,
  findMissingScope,
  rejectionAdvice,
  UserError,
} from '../../core/faults.ts';
import type { Account } from '../../core/records.ts';
import { type Secret, scrubbedJson } from '../../core/secret.ts';
import { capitalized, counted, duration } from '../../core/text.ts';
import { DAY_MS, type EpochMs, nsToMs } from '../../core/time.ts';
import type { SyncContext } from '../../ingest/context.ts';
import { wantedFrom } from '../../ingest/wanted-range.ts';
import { readDeviceNames } from '../../store/views/read-state.ts';

/** One run of a command: the command line, the configuration, and the output. */
export interface CommandRun<Command, Config = StateConfig> {
  readonly command: Command;
  readonly config: Config;
  readonly terminal: TerminalOutput;
  /** Texts that must not be shown. If a secret is exchanged, the new one is added. */
  readonly secrets: Secret[];
}

/** An answer of a command: for programs and for people. */
export interface CommandAnswer {
  readonly object: unknown;
  readonly text: () => string;
}

/** Prints an answer: as an object in one line with `--json`, as text without. */
export function printAnswer(
  {
    command: { json },
    terminal,
  }: { readonly command: { readonly json: boolean }; readonly terminal: Pick<TerminalOutput, 'scrub'> },
  { print }: Pick<ProcessPorts, 'print'>,
  { object, text }: CommandAnswer,
): void {
  print(json ? `${scrubbedJson(object, terminal.scrub)}\n` : terminal.scrub(text()));
}

/**
 * Finds the devices of the command line by id or name.
 *
 * @param wanted the values of `--device`
 * @param isFinal whether the state has every possible device. If not, a text that matches none is passed on unchanged,
 * and the command decides with a newer list of devices.
 * @returns their ids
 * @throws UserError (exit 2) if a text matches no device, or several; (exit 1) if the state cannot be read
 */
export function chosenDevices(dataDir: string, wanted: readonly string[], isFinal: boolean): readonly string[] {
  if (wanted.length === 0) return wanted;
  const known = readDeviceNames(dataDir, wanted);
  if (known === null) return wanted;
  if (isFinal) return findDeviceIds(known, wanted);
  return [...new Set(wanted.flatMap((text) => idsByName(known, text)))];
}

/** The ids of the devices with a name. A text that matches no device is returned unchanged. */
function idsByName(known: readonly NamedDevice[], text: string): readonly string[] {
  const isName = known.some(({ name }) => name.trim().toLowerCase() === text.trim().toLowerCase());
  return isName ? findDeviceIds(known, [text]) : [text];
}

/** Converts a fault that ends a session to the error of a one-off command (exit 77). */
export function rejectionOf(fault: ApiFault): UserError {
  const { what, remedy } = rejectionAdvice(fault, 'write it into the file of api.key_file (or set api.key)');
  return new UserError(fault.kind === 'no-api-access' ? capitalized(what) : `api.key: ${what}`, `${remedy}.`, 77);
}

/** The error of a command whose request failed: a rejection of the key, or exit 3 with `again` as the last step. */
export function failureOf(fault: ApiFault, problem: string, again: string): UserError {
  if (endsSession(fault)) return rejectionOf(fault);
  const remedy = fault.remedyText();
  return new UserError(`${problem}: ${fault.what}`, remedy === null ? again : `${remedy}. ${again}`, 3);
}

/**
 * Requests the account, for the plan's figures and to check that the key belongs to the same workspace.
 *
 * @throws ApiFault UserError
 */
export async function fetchAccount(
  { api, store, noteStreamOff }: SyncContext,
  signal: AbortSignal,
): Promise<Account | null> {
  try {
    const { value: account } = await api.account({ lane: 'inventory', stream: 'account' }, signal);
    const tag = store.workspaceTag();
    // A pinned state rejects another workspace. This request alone does not pin a new state.
    if (tag !== null) store.pinWorkspace({ apiId: account.workspaceId, tag });
    store.saveAccount(account, []);
    return account;
  } catch (error) {
    const scope = findMissingScope(error, 'account');
    if (scope === null) throw error;
    noteStreamOff('account', scope);
    // The stored account, which the rate limiter uses as well.
    return store.account();
  }
}

/** Describes `sync.history`, as the beginning of a sentence. */
export function historyText(history: History, nowMs: EpochMs): string {
  if (history.kind === 'age' && history.isAll === true) return 'sync.history is all';
  return `sync.history goes back ${duration((nowMs - nsToMs(wantedFrom({ history }, nowMs))) / 1000)}`;
}

/** The warning about a history that is longer than `history_max_days` of the plan; `null` if it is not. */
export function planHistoryAdvice(
  history: History,
  { maxDays, nowMs }: { readonly maxDays: number | null; readonly nowMs: EpochMs },
): Advice | null {
  const isAll = history.kind === 'age' && history.isAll === true;
  const wantedMs = nowMs - nsToMs(wantedFrom({ history }, nowMs));
  if (maxDays === null || !(isAll || wantedMs > maxDays * DAY_MS)) return null;
  return {
    what: `${historyText(history, nowMs)}, but history_max_days of the plan is ${counted(maxDays, 'day')}: older readings are synced only if the API serves them`,
    remedy: 'Nothing to do, or take a larger plan. Gaps that remain have the reason beyond_plan.',
  };
}

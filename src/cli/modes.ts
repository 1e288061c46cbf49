/**
 * What each mode reads from what was given: flags in, the command out.
 */
import { readWhatIf, type WhatIfText } from '../core/what-if.ts';
import { type Command, EXPORT_FORMATS, QUARANTINE_ACTIONS } from './command.ts';
import type { Mode } from './flags.ts';
import { dashed, type Given, logLevel, mistake, oneOf, single } from './given.ts';

type Readable = Exclude<Mode, 'help' | 'version'>;

/** How each mode reads. They throw a mistake (exit 2) for the first thing that it cannot do without, or cannot read. */
export const READERS: { readonly [M in Readable]: (given: Given) => Command } = {
  once: (given) => ({ mode: 'once', ...common(given) }),
  demo: (given) => ({ mode: 'demo', logLevel: logLevel(given) }),
  health: (given) => ({ mode: 'health', configFile: single(given, 'config'), json: given.has('json') }),
  plan: (given) => ({
    mode: 'plan',
    ...common(given),
    ...span(given),
    ...devices(given),
    ...pace(given),
    whatIf: (given.get('what-if') ?? []).map(supposition),
  }),
  backfill: (given) => ({
    mode: 'backfill',
    ...common(given),
    ...span(given),
    ...devices(given),
    ...pace(given),
    dryRun: given.has('dry-run'),
  }),
  status: (given) => ({ mode: 'status', ...common(given), device: onlyDevice(given, 'status') }),
  check: (given) => ({
    mode: 'check',
    ...common(given),
    writeProbe: given.has('write-probe'),
    bundle: single(given, 'bundle'),
  }),
  verify: (given) => ({
    mode: 'verify',
    ...common(given),
    ...span(given),
    ...devices(given),
    destination: single(given, 'destination'),
    repair: given.has('repair'),
    sample: single(given, 'sample'),
  }),
  export: (given) => ({
    mode: 'export',
    ...common(given),
    ...span(given),
    ...devices(given),
    format: oneOf('export', single(given, 'export') ?? '', EXPORT_FORMATS),
  }),
  replay: (given) => ({
    mode: 'replay',
    ...common(given),
    ...span(given),
    ...devices(given),
    destination: single(given, 'destination'),
    maxRate: single(given, 'max-rate'),
  }),
  quarantine: (given) => ({
    mode: 'quarantine',
    ...common(given),
    ...span(given),
    ...devices(given),
    action: oneOf('quarantine', single(given, 'quarantine') || 'list', QUARANTINE_ACTIONS),
    destination: single(given, 'destination'),
    reason: single(given, 'reason'),
  }),
  backup: (given) => ({ mode: 'backup', ...common(given), file: single(given, 'backup') ?? '' }),
  forget: (given) => {
    const device = onlyDevice(given, 'forget');
    if (device === null) throw mistake('--forget needs the device to forget: --forget --device ID.');
    return { mode: 'forget', ...common(given), device };
  },
};

/** What every mode that reads a configuration takes. */
function common(given: Given) {
  return { configFile: single(given, 'config'), logLevel: logLevel(given), json: given.has('json') };
}

function span(given: Given) {
  return { from: single(given, 'from'), to: single(given, 'to') };
}

function devices(given: Given) {
  return { devices: given.get('device') ?? [] };
}

function pace(given: Given) {
  return { finishBy: single(given, 'finish-by'), maxShare: single(given, 'max-share') };
}

/** Of a mode that is about one device. */
function onlyDevice(given: Given, mode: Mode): string | null {
  const [device, ...others] = given.get('device') ?? [];
  if (others.length > 0) throw mistake(`${dashed(mode)} takes one device at a time. Give --device once.`);
  return device ?? null;
}

function supposition(text: string): WhatIfText {
  const read = readWhatIf(text);
  if ('mistake' in read) throw mistake(`--what-if ${read.mistake}.`);
  return read;
}

/**
 * The program with lines of its source exchanged, loaded beside the real one: a hook of the module loader hands out the
 * changed text of the files that are edited, and to all that import them instances of their own. What no edit can reach
 * is loaded once for all variants.
 */
import { readFileSync } from 'node:fs';
import { type ResolveFnOutput, registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Borders } from '../support/borders.ts';
import type { Program } from '../support/rig.ts';
import { editedTexts, type Mutant } from './mutants.ts';

const SRC = pathToFileURL(`${join(import.meta.dirname, '..', '..', 'src')}/`).href;
/** The program under test: all of it, and its parts that the network reaches. */
const PROGRAM = [
  'app/open-sync.ts',
  'commands/once/run.ts',
  'commands/backfill/run.ts',
  'commands/backfill/job.ts',
  'scheduler/session.ts',
];
const BORDERS = [
  'api/client.ts',
  'api/transport.ts',
  'delivery/send-batch.ts',
  'influx/sink.ts',
  'ingest/account.ts',
  'ingest/alerts.ts',
  'ingest/devices.ts',
  'observe/server.ts',
  'store/store.ts',
  'store/views/backup.ts',
];
/** The query parameter of a module's URL with the variant that it belongs to. */
const MARK = 'variant';

/** The import of Node itself: what is written as one here would be the test runner's. */
const NATIVE: string = 'data:text/javascript,export const native = (url) => import(url);';
const { native } = await import(/* @vite-ignore */ NATIVE);

/** The texts of the edited files of each variant, by their addresses without the mark. */
const texts = new Map<string, ReadonlyMap<string, string>>();
/** Who imports a module of the source, as seen while the unchanged program was loaded. */
const importers = new Map<string, Set<string>>();
/** The modules of each variant that are its own: edited, or importing such a one. */
const own = new Map<string, ReadonlySet<string>>();

/** The results of the loader for the imports of the source: the same for all variants. */
const found = new Map<string, ResolveFnOutput>();

registerHooks({
  resolve(specifier, context, next) {
    const { parentURL } = context;
    const variant = parentURL === undefined ? null : variantOf(parentURL);
    if (parentURL === undefined || variant === null) return next(specifier, context);
    const parent = bare(parentURL);
    const target = found.get(`${parent} ${specifier}`) ?? next(specifier, context);
    found.set(`${parent} ${specifier}`, target);
    if (!target.url.startsWith(SRC)) return { ...target, shortCircuit: true };
    const url = bare(target.url);
    importers.set(url, (importers.get(url) ?? new Set()).add(parent));
    const mark = own.get(variant)?.has(url) === true ? variant : '0';
    return { ...target, url: `${url}?${MARK}=${mark}`, shortCircuit: true };
  },
  load(url, context, next) {
    const variant = variantOf(url);
    const source = variant === null ? undefined : texts.get(variant)?.get(bare(url));
    return source === undefined ? next(url, context) : { format: 'module-typescript', source, shortCircuit: true };
  },
});

/** The variant that a module of the source belongs to; `null` for any other module. */
function variantOf(url: string): string | null {
  return url.startsWith(SRC) ? new URL(url).searchParams.get(MARK) : null;
}

/**
 * Loads the program with a variant's lines exchanged.
 *
 * @throws Error where the source has changed and the mutant with it must.
 */
export async function breed(mutant: Edited): Promise<Program> {
  const { openSync, runOnce, runBackfill, createAllHistory, runDaemon } = await load(PROGRAM, mutant);
  return { openSync, runOnce, runBackfill, createAllHistory, runDaemon };
}

/**
 * Loads the parts that strangers reach, with a variant's lines exchanged.
 *
 * @throws Error where the source has changed and the mutant with it must.
 */
export async function breedBorders(mutant: Edited): Promise<Borders> {
  return await load(BORDERS, mutant);
}

type Edited = Pick<Mutant, 'name' | 'edits'>;

/**
 * Loads modules of a variant: all that they export, by name. The unchanged ones come first: their imports show which
 * modules an edit affects.
 */
async function load(entries: readonly string[], mutant: Edited) {
  await openVariant(entries, '0');
  const variant = String(texts.size + 1);
  const byFile = editedTexts(mutant, (file) => readFileSync(new URL(`${SRC}${file}`), 'utf8'));
  const edited = new Map([...byFile].map(([file, text]) => [`${SRC}${file}`, text]));
  texts.set(variant, edited);
  own.set(variant, reachedBy(edited.keys()));
  return await openVariant(entries, variant);
}

async function openVariant(entries: readonly string[], variant: string) {
  return Object.assign({}, ...(await Promise.all(entries.map((entry) => native(`${SRC}${entry}?${MARK}=${variant}`)))));
}

/** Modules, and all that import them over any number of steps. */
function reachedBy(urls: Iterable<string>): ReadonlySet<string> {
  const reached = new Set(urls);
  // A set goes on to what is added while it is gone through.
  for (const url of reached) for (const importer of importers.get(url) ?? []) reached.add(importer);
  return reached;
}

function bare(url: string): string {
  return url.replace(/\?.*$/, '');
}

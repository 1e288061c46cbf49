/**
 * Writes the files of `tidemark init`: the configuration and the secrets, which only their owner can read (0600, in a
 * directory with 0700). No file is replaced unless that was confirmed.
 */
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf, UserError } from '../../core/faults.ts';

/** A file to write. */
export interface NewFile {
  readonly path: string;
  readonly text: string;
}

/** What the configuration file contains. A secret is in a file of its own. */
export interface InitConfig {
  readonly apiUrl: string;
  readonly keyFile: string;
  readonly database: InitDatabase | null;
  readonly history: string;
  /** `null` for the default. */
  readonly dataDir: string | null;
}

export interface InitDatabase {
  readonly url: string;
  readonly tokenFile: string | null;
  readonly org: string;
  /** Empty for VictoriaMetrics. */
  readonly bucket: string;
}

/** The text of the configuration file, as YAML. */
export function configText({ apiUrl, keyFile, database, history, dataDir }: InitConfig): string {
  const line = (key: string, value: string | null): string =>
    value === null || value === '' ? '' : `  ${key}: ${JSON.stringify(value)}\n`;
  const api = `api:\n${line('url', apiUrl)}${line('key_file', keyFile)}`;
  const influx =
    database === null
      ? ''
      : [
          'influx:\n',
          line('url', database.url),
          line('token_file', database.tokenFile),
          line('org', database.org),
          line('bucket', database.bucket),
          line('kind', database.bucket === '' ? 'victoriametrics' : null),
        ].join('');
  const place = dataDir === null ? '' : `data_dir: ${JSON.stringify(dataDir)}\n`;
  return `# Written by tidemark init. docs/configuration.md describes every key.\n${api}${influx}sync:\n${line('history', history)}${place}`;
}

/** The files that are there already. */
export function existingFiles(paths: readonly string[]): string[] {
  return paths.filter((path) => existsSync(path));
}

/**
 * Writes all files.
 *
 * @throws UserError (exit 1) if one cannot be written; it names the file
 */
export function writeFiles(files: readonly NewFile[]): void {
  for (const { path, text } of files) {
    const part = `${path}.part`;
    try {
      makeParents(dirname(path));
      rmSync(part, { force: true });
      writeFileSync(part, text, { mode: 0o600, flag: 'wx' });
      renameSync(part, path);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error)) throw error;
      throw new UserError(`${path}: this file cannot be written (${codeOf(error)}). Name another one by --config.`, 1);
    }
  }
}

function makeParents(directory: string): void {
  if (existsSync(directory)) return;
  makeParents(dirname(directory));
  mkdirSync(directory, { mode: 0o700 });
}

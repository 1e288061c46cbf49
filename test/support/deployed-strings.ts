/**
 * The texts of the files around the program that people may see: dashboards, alert rules, the scripts and units of
 * systemd, the notes and values of the chart, and the comments of all files that an operator edits. Queries and names
 * for programs are left out.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { PublicString } from './public-strings.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** Members whose values are for programs. */
const FOR_PROGRAMS =
  /^(?:query|rawSql|expr|expression|definition|field|targetField|regex|(?:runbook_)?url|uid|for|format|pattern)$/;

/** A capital or a space: a name for programs has neither. */
const READS_LIKE_WORDS = /\p{L}{2}[^\n]*\s+\S*\p{L}|^\p{Lu}\p{Ll}{2,}/u;

/** Columns that a query or a join has named. */
const NAME_OF_COLUMN = /^(?:Time|Value) (?:\d|#\w|[a-z_]+$)|^\w+ \(\w+\)$/;

/** Each kind of file, and how its texts are found. */
const FILES: readonly (readonly [pattern: string, textsOf: (content: string) => Iterable<string>])[] = [
  ['Dockerfile', commentsOf],
  ['compose*.yaml', textsOfCompose],
  ['config/compose/*.yaml', textsOfCompose],
  ['config/helm/tidemark/Chart.yaml', textsOfYaml],
  ['config/helm/tidemark/templates/NOTES.txt', textsOfNotes],
  ['config/helm/tidemark/values.yaml', commentsOf],
  ['config/kubernetes/**/*.yaml', commentsOf],
  ['config/prometheus/{alertmanager,prometheus}.yml', commentsOf],
  ['config/prometheus/tidemark-*.yml', (content) => [...commentsOf(content), ...textsOfYaml(content)]],
  ['config/prometheus/workspaces/*.yaml', commentsOf],
  ['config/systemd/{install.sh,tidemark-workspace}', textsOfScript],
  ['config/systemd/*.{service,timer}', textsOfUnit],
  ['config/tidemark.e*', commentsOf],
  ['grafana/dashboards*/*.json', textsOfJson],
  ['grafana/provisioning*/*/*.yaml', textsOfYaml],
];

/** Every text of these files, in the order of files and lines, each once per file. */
export function deployedStrings(): readonly PublicString[] {
  return FILES.flatMap(([pattern, textsOf]) =>
    globSync(pattern, { cwd: ROOT })
      .sort()
      .flatMap((file) => [...new Set(textsOf(readFileSync(join(ROOT, file), 'utf8')))].map((text) => ({ file, text }))),
  );
}

export function textsOfJson(content: string): readonly string[] {
  return textsOfValue(JSON.parse(content));
}

export function textsOfYaml(content: string): readonly string[] {
  return textsOfValue(parse(content));
}

function textsOfValue(value: unknown): readonly string[] {
  if (typeof value === 'string') {
    return value
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => READS_LIKE_WORDS.test(line) && !NAME_OF_COLUMN.test(line) && !line.startsWith('/^'));
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) =>
    FOR_PROGRAMS.test(key) || key === member ? [] : textsOfValue(member),
  );
}

/** A setting that is commented out. */
const SETTING = /^(?:- )?[a-z_]+:(?: |$)|^[A-Z_]+=/;

/** The comments of a file, each paragraph as one text; indented examples and settings are left out. */
export function commentsOf(content: string): readonly string[] {
  const paragraphs = [''];
  for (const line of content.split('\n')) {
    const words = /^ *# ?(?! )(.+)/.exec(line)?.[1];
    if (words === undefined || SETTING.test(words)) paragraphs.push('');
    else paragraphs.push(`${paragraphs.pop()} ${words}`.trim());
  }
  return paragraphs.filter((text) => READS_LIKE_WORDS.test(text));
}

/** The comments of a compose file, and the messages for variables that are not set. */
export function textsOfCompose(content: string): readonly string[] {
  return [...commentsOf(content), ...[...content.matchAll(/\$\{\w+:\?([^}]+)\}/g)].map(([, message = '']) => message)];
}

/** The comments and the description of a systemd unit. */
export function textsOfUnit(content: string): readonly string[] {
  return [...commentsOf(content), ...[...content.matchAll(/^Description=(.+)/gm)].map(([, text = '']) => text)];
}

function textsOfNotes(content: string): readonly string[] {
  return content.split('\n').filter((line) => !line.startsWith('{{-') && READS_LIKE_WORDS.test(line));
}

/** The texts that a shell script prints: after `echo`, `printf` and `fail`, and in `problem=`. */
export function textsOfScript(content: string): readonly string[] {
  return content
    .split(/\n| ;; | \|\| |; \}/)
    .map((command) => /\b(?:echo |printf |fail |problem=)(["'])(.*)\1/.exec(command)?.[2] ?? '')
    .map((text) => text.replaceAll('\\"', '"').replaceAll('\\n', ' ').trim())
    .filter((text) => READS_LIKE_WORDS.test(text));
}

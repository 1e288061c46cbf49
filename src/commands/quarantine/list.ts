/**
 * `--quarantine list`: shows the quarantined items by destination and reason, each group with the command that handles
 * it.
 *
 * Memory is constant: the items are read once, in pages, and only groups with a few samples are kept. The commands are
 * meant to be pasted into a shell, so they contain no character with a meaning there.
 */
import { UserError } from '../../core/faults.ts';
import { createGroups, createMatcher, type QuarantineFilter, type QuarantineGroup } from '../../core/quarantine.ts';
import type { KnownDestination, QuarantineStore } from '../../core/state/quarantine.ts';
import { counted, grouped, plainText } from '../../core/text.ts';
import { formatExact } from '../../core/time.ts';
import { WIDTH, wrap } from '../shared/layout.ts';

/** The object that `--quarantine list --json` prints. */
interface QuarantineList {
  readonly points: number;
  readonly records: number;
  /** The groups with the most items first. */
  readonly groups: readonly ListedGroup[];
  /** Dropped records of the API; dropped points are among the missing points of each destination. */
  readonly dropped: readonly { readonly source: string; readonly reason: string; readonly count: number }[];
}

interface ListedGroup {
  /** The name of the destination; `null` for records of the API. */
  readonly destination: string | null;
  /** Whether its database is in the configuration. */
  readonly is_configured: boolean;
  readonly reason: string;
  readonly count: number;
  /** Times of the points; for records, the times at which they were rejected. */
  readonly first: string;
  readonly last: string;
  /** Lines, or records as JSON, shortened. */
  readonly samples: readonly string[];
  /** The commands; `null` if no text would match only this group. */
  readonly retry: string | null;
  readonly drop: string | null;
}

type Reader = Pick<QuarantineStore, 'page' | 'destinations' | 'dropped'>;

/**
 * Lists the quarantine.
 *
 * @param configured the numbers of the destinations whose databases are in the configuration.
 */
export function listQuarantine(
  quarantine: Reader,
  filter: QuarantineFilter,
  configured: (known: readonly KnownDestination[]) => ReadonlySet<number>,
): QuarantineList {
  const known = quarantine.destinations();
  const named = new Set(known.filter(({ name }) => name === filter.destination).map(({ id }) => id));
  const matches = createMatcher(filter, named);
  const groups = createGroups();
  let after = 0;
  for (;;) {
    const page = quarantine.page(after);
    const last = page.at(-1);
    if (last === undefined) break;
    after = last.id;
    for (const item of page) if (matches(item)) groups.add(item);
  }
  const all = groups.all();
  const isConfigured = configured(known);
  const sum = (isRecord: boolean): number =>
    all.reduce((total, { destinationId, count }) => total + ((destinationId === null) === isRecord ? count : 0), 0);
  return {
    points: sum(false),
    records: sum(true),
    groups: all.map((group) => listed(group, { known, isConfigured, all })),
    dropped: quarantine.dropped().map(({ source, reason, records }) => ({
      source: plainText(source),
      reason: plainText(reason),
      count: records,
    })),
  };
}

interface Among {
  readonly known: readonly KnownDestination[];
  readonly isConfigured: ReadonlySet<number>;
  readonly all: readonly QuarantineGroup[];
}

function listed(group: QuarantineGroup, { known, isConfigured, all }: Among): ListedGroup {
  const { destinationId, reason, count, from, to, samples } = group;
  const destination = known.find(({ id }) => id === destinationId)?.name ?? null;
  const flags = flagsFor(group, { destination, all });
  const command = (action: string): string | null =>
    flags === null ? null : `tidemark --quarantine ${action}${flags}`;
  const isThere = destinationId === null || isConfigured.has(destinationId);
  return {
    destination,
    is_configured: isThere,
    reason: plainText(reason, 300),
    count,
    first: formatExact(from),
    last: formatExact(to),
    samples: samples.map((sample) => plainText(sample)),
    retry: isThere ? command('retry') : null,
    drop: command('drop'),
  };
}

/** The flags that select a group; `null` if they would select others as well. */
function flagsFor(
  { destinationId, parts }: QuarantineGroup,
  { destination, all }: { destination: string | null; all: readonly QuarantineGroup[] },
): string | null {
  const others = all.filter((other) => destinationId === null || other.destinationId === destinationId);
  const isOnly = (part: string): boolean =>
    others.filter(({ reason }) => reason.toLowerCase().includes(part.toLowerCase())).length === 1;
  const part = parts.find(isOnly);
  const ofDestination = destination === null ? '' : ` --destination ${destination}`;
  if (part !== undefined) return `${ofDestination} --reason "${part}"`;
  return destination !== null && others.length === 1 ? ofDestination : null;
}

/** The error (exit 2) of a drop without any filter: its effect, and how to select items. */
export function dropsAll({ groups, points, records }: QuarantineList): UserError {
  const counts = `${counted(points, 'point')} and ${counted(records, 'record')}`;
  const example = groups.find(({ drop }) => drop !== null)?.drop ?? 'tidemark --quarantine drop --destination influx';
  return new UserError(
    `--quarantine drop removes entries permanently, so it needs a filter: --destination, --reason, --device, --from or --to. Without one it would drop ${counts}; --quarantine list shows them`,
    `For example: ${example}`,
    2,
  );
}

/** The list for people, at most 80 columns wide. Every text passes through `plainText`. */
export function quarantineListText({ groups, points, records, dropped }: QuarantineList): string {
  const head =
    groups.length === 0
      ? 'The quarantine is empty.\n'
      : wrap(
          `In quarantine: ${counted(points, 'point')} rejected by a database, ${counted(records, 'record')} from the API that could not be parsed.`,
          0,
        );
  const given = dropped.map(({ source, reason, count: records }) =>
    wrap(`Dropped earlier: ${counted(records, 'record')} (${plainText(source, 40)}): ${plainText(reason, 120)}`, 0),
  );
  return [head, ...groups.map(groupText), ...(given.length === 0 ? [] : [given.join('')])].join('\n');
}

function groupText(group: ListedGroup): string {
  const { destination, is_configured, count, reason, first, last, samples, retry, drop } = group;
  const what = destination === null ? 'Records from the API' : `Points rejected by ${destination}`;
  const former = is_configured || destination === null ? '' : ' (no longer in the configuration)';
  const when = destination === null ? 'rejected' : 'from';
  return [
    wrap(`${what}${former}: ${grouped(count)}`, 0),
    wrap(`  ${plainText(reason, 300)}`, 2),
    wrap(`  ${when} ${first} to ${last}`, 2),
    ...samples.map((sample) => `    ${cut(plainText(sample), WIDTH - 4)}\n`),
    ...(retry === null ? [] : [command('retry', retry)]),
    ...(drop === null ? [] : [command('drop', drop)]),
  ].join('');
}

/** A command. If it is long, its last flag moves to its own line. */
function command(label: string, text: string): string {
  const line = `  ${`${label}:`.padEnd(9)}${text}`;
  if (line.length <= WIDTH) return `${line}\n`;
  const at = text.lastIndexOf(' --');
  return `  ${`${label}:`.padEnd(9)}${text.slice(0, at)} \\\n${' '.repeat(15)}${text.slice(at + 1)}\n`;
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}

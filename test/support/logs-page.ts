/**
 * `docs/logs.md`, made from the table of the log: what is written there cannot differ from what is logged. The lines that
 * it shows are made by the log itself.
 */
import type { AppEvent } from '../../src/core/events.ts';
import { FIELDS } from '../../src/observe/event-row.ts';
import { createLogger, logEvents } from '../../src/observe/log.ts';
import { type LineRow, PROGRAM_ROWS, SYNC_ROWS } from './log-lines.ts';

const SHOWN: AppEvent = {
  type: 'poll-summary',
  stream: 'telemetry',
  runs: 31,
  requests: 31,
  failed: 0,
  devices: 31,
  records: 62,
  newPoints: 248,
  durationMs: 60_012,
};

function shown(format: 'json' | 'pretty'): string {
  const written: string[] = [];
  const stream = { write: (text: string) => written.push(text) };
  const clock = { nowMs: () => Date.UTC(2026, 10, 21, 9, 30), monoMs: () => 0 };
  logEvents(createLogger({ level: 'info', format, secrets: [], clock, stream }), clock)(SHOWN);
  return written.join('').trim();
}

function head(): string {
  return `# The log

Tidemark logs to standard error, one line for each event. As JSON, where nobody looks on or \`log.format\` is \`json\`:

\`\`\`json
${shown('json')}
\`\`\`

and for people, on a terminal or where \`log.format\` is \`pretty\`: time, level, a sentence, and the fields that the sentence does not
contain. Only a terminal gets colours, and none if \`NO_COLOR\` is set.

\`\`\`
${shown('pretty')}
\`\`\`

Every line of JSON has \`time\` (RFC 3339, UTC), \`level\`, \`event\` (the same in every version) and \`msg\` (for people: it may
change). This page is made from the program's own tables.

## Levels

| level | means |
| --- | --- |
| \`error\` | a person has to act: it does not heal by itself |
| \`warn\` | it heals by itself, or somebody should know of it |
| \`info\` | a round of the sync, a change of state: a few thousand lines a day |
| \`debug\` | a line for each request, page and write, and everything that was held back |

\`log.level\` (\`TIDEMARK_LOG_LEVEL\`) sets the least that is written, \`--log-level debug\` for one run.

- **What repeats itself is not repeated.** A trouble is told at once, then once an hour with \`suppressed\`, the number of lines
  that were not written since, and when it is over. Begun anew, it is told at once. What comes and goes is told both ways
  twice in ten minutes, and else neither way. Of any other line at most ten of an event and level are written a minute.
- **Nothing secret is in it**: no key, no token, no password, no query of a URL, no body of an answer (of a
  refusal the words, shortened). Names of devices are.
- What to do about a line stands in [When something is wrong](troubleshooting.md), by its event.

## Search it

\`\`\`sh
journalctl -u tidemark -o cat | jq -c 'select(.level == "error" or .level == "warn")'
docker logs tidemark 2>&1 | jq -r 'select(.event == "delivery-blocked") | [.time, .destination, .msg] | @tsv'
jq -s 'map(select(.event == "poll-summary" and .stream == "telemetry").new_points) | add' tidemark.log
jq -s 'group_by(.event) | map({event: .[0].event, lines: length})' tidemark.log
\`\`\`

Where something else writes into the same stream, \`jq -R 'fromjson?'\` leaves out what is no JSON.

`;
}

/** The page as it has to stand in `docs`. */
export function logsPage(): string {
  const columns = '| event | level | message | fields |\n| --- | --- | --- | --- |\n';
  const fields = Object.entries(FIELDS).map(([name, { unit, meaning }]) => `| \`${name}\` | ${unit} | ${meaning} |`);
  return [
    head(),
    `## The sync\n\n\`…\` stands for what differs.\n\n${columns}${rows(SYNC_ROWS)}\n\n`,
    `## The program and its commands\n\n${columns}${rows(PROGRAM_ROWS)}\n\n`,
    `## Fields\n\n| field | unit | what it is |\n| --- | --- | --- |\n${fields.join('\n')}\n`,
  ].join('');
}

function rows(table: Readonly<Record<string, LineRow>>): string {
  return Object.entries(table)
    .map(([event, { levels, message, fields, note }]) => {
      const said = message === '…' && note !== null ? note : `\`${message}\`${note === null ? '' : `; ${note}`}`;
      return `| \`${event}\` | ${levels.join(', ')} | ${said} | ${fields.map((name) => `\`${name}\``).join(', ')} |`;
    })
    .join('\n');
}

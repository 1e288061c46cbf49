/**
 * `docs/logs.md`, made from the table of the log: what is written there cannot differ from what is logged. The lines
 * that it shows are made by the log itself.
 */
import type { AppEvent } from '../../src/core/events.ts';
import { FIELDS } from '../../src/observe/event-row.ts';
import { eventLine } from '../../src/observe/event-table.ts';
import { createLogger, logEvents } from '../../src/observe/log.ts';
import { type LineRow, PROGRAM_ROWS, SYNC_ROWS, samplesOf } from './log-lines.ts';

const SHOWN: AppEvent = {
  type: 'poll-summary',
  stream: 'telemetry',
  runs: 31,
  requests: 31,
  failed: 0,
  devices: 31,
  records: 62,
  newPoints: 248,
  periodMs: 60_012,
};

function shown(format: 'json' | 'pretty'): string {
  const written: string[] = [];
  const stream = { write: (text: string) => written.push(text) };
  const clock = { nowMs: () => Date.UTC(2026, 10, 21, 9, 30), monoMs: () => 0 };
  logEvents(createLogger({ level: 'info', format, secrets: [], clock, stream }), clock)(SHOWN);
  return written.join('').trim();
}

function head(): string {
  return `# Log of Tidemark: format, levels and every event

Tidemark logs to standard error, one line per event. The lines are JSON if standard error is not a terminal, or if
\`log.format\` is \`json\`:

\`\`\`json
${shown('json')}
\`\`\`

On a terminal, or if \`log.format\` is \`pretty\`, a line has the time, the level, a sentence, and the fields that the sentence does
not contain. Colours are used only on a terminal, and never if \`NO_COLOR\` is set.

\`\`\`text
${shown('pretty')}
\`\`\`

Every JSON line has \`time\` (RFC 3339, UTC), \`level\`, \`event\` (stable across versions) and \`msg\` (for people; it may change).
This page is generated from the program's tables. Set \`log.format: json\` if another program reads the log. If a start fails,
the last line has the reason. It is JSON with \`log.format: json\`, or if \`log.format\` is \`auto\` and the daemon has no terminal; otherwise it
is text. After a wrong command line it is always text.

## Levels

| level | meaning |
| --- | --- |
| \`error\` | you must act: the problem does not go away by itself |
| \`warn\` | a problem that Tidemark retries by itself, or something that you should know |
| \`info\` | summaries of the polls and changes of state: 2 to 4 lines a minute |
| \`debug\` | a line for each request, page and write, and the repeated lines that other levels suppress |

\`log.level\` (\`TIDEMARK_LOG_LEVEL\`) sets the lowest level that is logged; \`--log-level debug\` sets it for one run.

- **Repeated problems**: a problem is logged when it starts, then once an hour with \`suppressed\` (the number of lines that were
  left out since the last one), and when it ends, with \`problem_lines_suppressed\`. If it starts and ends often, at most two starts and two ends are logged in ten
  minutes. Of each event that is not a problem, at most ten lines a minute are logged per level.
- **No secrets**: the log contains no key, token, password, URL query or response body. If the API or a database rejects
  something, its message is logged, shortened. Device names are logged.
- **What to do about a line**: search its event in [Troubleshooting](troubleshooting.md).

## Search it

\`\`\`sh
journalctl -u tidemark@home -o cat | jq -cR 'fromjson? | select(.level == "error" or .level == "warn")'
docker logs tidemark-home 2>&1 | jq -r 'select(.event == "delivery-blocked") | [.time, .destination, .msg] | @tsv'
jq -s 'map(select(.event == "poll-summary" and .stream == "telemetry").new_points) | add' tidemark.log
jq -s 'group_by(.event) | map({event: .[0].event, lines: length})' tidemark.log
\`\`\`

The last two read a file with the lines: \`docker logs tidemark-home 2> tidemark.log\`, or in a checkout \`npm start 2> tidemark.log\` (not
\`2>&1\`: npm prints lines of its own to standard output). \`jq -R 'fromjson?'\` skips the lines that are not JSON, such as those of systemd.

`;
}

/** The page as it has to stand in `docs`. */
export function logsPage(): string {
  const columns = '| event | level | message | fields |\n| --- | --- | --- | --- |\n';
  const fields = Object.entries(FIELDS).map(([name, { unit, meaning }]) => `| \`${name}\` | ${unit} | ${meaning} |`);
  return [
    head(),
    `## The sync\n\n\`…\` stands for text that varies.\n\n${columns}${rows(SYNC_ROWS)}\n\n`,
    `## The program and its commands\n\n${columns}${rows(PROGRAM_ROWS)}\n\n`,
    `## Fields\n\n| field | unit | what it is |\n| --- | --- | --- |\n${fields.join('\n')}\n`,
  ].join('');
}

function rows(table: Readonly<Record<string, LineRow>>): string {
  return Object.entries(table)
    .map(([event, { levels, message, fields, note }]) => {
      const messages = message === '…' ? examplesOf(event) : [message];
      const parts = [messages.map((text) => `\`${text}\``).join(', '), note ?? ''];
      const said = parts.filter((part) => part !== '').join('; ');
      return `| \`${event}\` | ${levels.join(', ')} | ${said} | ${fields.map((name) => `\`${name}\``).join(', ')} |`;
    })
    .join('\n');
}

/** The different messages of the samples of an event; none where the message is given to it. */
function examplesOf(event: string): readonly string[] {
  const messages = samplesOf(event).map((sample) => ('message' in sample ? '…' : eventLine(sample).message));
  return [...new Set(messages)].filter((message) => message !== '…');
}

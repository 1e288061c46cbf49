/**
 * `docs/configuration.md`, made from the schema: what is written there cannot differ from what the program does.
 */
import { fileForm, type Key, keyEntries, variableOf } from '../../src/config/schema.ts';
import { InvalidText } from '../../src/config/values.ts';

const HEAD = `# Configuration of Tidemark: YAML keys, environment variables, secrets

Tidemark reads a YAML file: \`config/tidemark.yaml\`, or the file that \`--config FILE\` names. Copy
\`config/tidemark.example.yaml\`, or let \`init\` write the file. Every setting except \`destinations\` also has an environment variable, which
overrides the file. This page is generated from the program's table of settings.

- **Secrets** (\`api.key\`, \`influx.token\`, \`listen_password\`) can be read from a file: add \`_file\` to the name, as in
  \`api.key_file\` or \`TIDEMARK_API_KEY_FILE\`. Use one form, not both. A line break at the end of the file is ignored.
- **Mistakes**: Tidemark reports all mistakes at once, each with its path and the expected value, and does not start (exit
  code 78). The JSON log has them in one line: as many as fit, and the number of the others; \`--check\` lists all. An unknown
  setting or \`TIDEMARK_*\` variable is a mistake; if a similar one exists, the message names it.
  (\`TIDEMARK_SERVICE_*\` and \`TIDEMARK_PORT*\` are ignored, because Kubernetes sets them.)
- **Units**: \`s m h d w\`. A date without a time is 00:00 UTC. An empty variable counts as not set. Relative paths start at
  the working directory.
- **Proxies**: \`HTTPS_PROXY\`, \`HTTP_PROXY\` and \`NO_PROXY\` apply to the API and the databases.
- **\`--demo\`** reads no file. It uses the environment variables, except the address, the key and the certificates of the API.

| key | variable | default | meaning |
| --- | --- | --- | --- |
`;

const FILTERS = `
## Exclude devices, sensors and locations

\`\`\`yaml
sync:
  include: [greenhouse-*, Cold store]   # sync only these devices
  exclude: [test]                       # but not these: exclude wins
  exclude_sensors: [rssi, debug.*]
  location: false
\`\`\`

- **Patterns**: \`*\` matches any text, \`?\` one character. Upper and lower case differ. In the file, write a YAML list, or
  one text with commas; in an environment variable, one text with commas (for a name with a comma write \`?\` in its place).
- **Devices** match by id, name, model or tag, as currently listed: a device that is renamed or gets other tags can start or
  stop to match. An excluded device stays in the list of devices. Tidemark does not poll it and writes no \`device\`,
  \`alert\` or \`telemetry\` points of it. Its \`coverage\` points have the state \`excluded\`, and its gaps have the reason
  \`excluded\`. \`--once\` and \`/readyz\` do not wait for it.
- **Sensors** match by the name that the device reports. A nested value matches by its full dotted name: \`env\` does not
  match \`env.temperature\`, \`env.*\` does. Values of excluded sensors are not written. The range still counts as
  covered; only the hourly count of readings (\`coverage_hour\`) leaves out a reading without any written value. Alerts about an excluded sensor are written.
- **\`location: false\`**: latitude, longitude and the time of the location are neither written nor stored in the state.
- **When a change takes effect**: at the next start. Points that are already archived or written stay. A device that you
  include again is read as far back as \`sync.history\`, with its alerts. A sensor that you include again is written from
  then on; its earlier values are not requested again.
- **A pattern that matches nothing** is logged after the start, because it is probably a typo.
`;

/** The page as it has to stand in \`docs\`. */
export function configurationPage(): string {
  const rows = keyEntries().flatMap(([path, key]) => {
    const fallback = key.default === null ? '' : `\`${key.default}\``;
    const variable = key.kind === 'sections' ? '' : `\`${variableOf(path)}\``;
    const row = `| \`${path}\` | ${variable} | ${fallback} | ${key.description}${boundsOf(key)} |`;
    if (key.kind !== 'secret') return [row];
    const file = fileForm(path);
    return [row, `| \`${file}\` | \`${variableOf(file)}\` | | A file that holds it. |`];
  });
  return `${HEAD}${rows.join('\n')}\n${FILTERS}`;
}

/** The bounds of a duration, a size or a count, from the message about a value that is none. */
function boundsOf(key: Key): string {
  const refused = key.kind === 'value' ? key.parse('none', 0) : null;
  const [bounds] = (refused instanceof InvalidText && /(?<=number |\), )from \w+ to \w+$/.exec(refused.reason)) || [];
  return bounds === undefined ? '' : ` Allowed: ${bounds}.`;
}

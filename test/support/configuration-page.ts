/**
 * `docs/configuration.md`, made from the schema: what is written there cannot differ from what the program does.
 */
import { fileForm, keyEntries, variableOf } from '../../src/config/schema.ts';

const HEAD = `# Configuration

A YAML file, \`config/tidemark.yaml\` or what \`--config FILE\` names, and for every key an environment variable, which
wins. \`config/tidemark.example.yaml\` is the file to copy. This page is made from the program's own table of keys.

- **Secrets** (\`api.key\`, \`influx.token\`, \`listen_password\`) can come from a file, by the key with \`_file\`: \`api.key_file\`,
  \`TIDEMARK_API_KEY_FILE\`. Give one form, not both. One line end at the end of the file is dropped.
- **Every mistake is told at once**, by its path, with what was expected; nothing starts then (exit 78). Unknown keys and
  unknown \`TIDEMARK_*\` variables are mistakes, and the nearest known one is named. (\`TIDEMARK_SERVICE_*\` and
  \`TIDEMARK_PORT*\` are let pass: Kubernetes puts them there.) A key that does not act in this version is refused.
- **Units**: \`s m h d w\`. A date without a time is 00:00 UTC. An empty variable counts as unset. Paths are relative to
  the working directory.
- **Proxies**: \`HTTPS_PROXY\`, \`HTTP_PROXY\` and \`NO_PROXY\` are honoured for the API and the databases.
- **\`--demo\`** reads no file; the variables act as usual, but for those of the API's address, key and certificates.

| key | variable | default | meaning |
| --- | --- | --- | --- |
`;

const FILTERS = `
## Leave things out

\`\`\`yaml
sync:
  include: [greenhouse-*, Cold store]   # only these devices
  exclude: [test]                       # but not those: exclude wins
  exclude_sensors: [rssi, debug.*]
  location: false
\`\`\`

- **Patterns**: \`*\` stands for any text, \`?\` for one character, all else for itself; upper and lower case differ. A
  list in the file; in an environment variable, or as one text in the file, commas separate the patterns (for a name with
  a comma write a list, or \`?\` in its place).
- **A device** matches by its id, its name, its model or one of its tags, as it is listed now: one that is renamed or
  tagged anew can begin or stop to match. An excluded device stays in the list of devices, is not asked for telemetry,
  and gets no \`device\`, \`alert\` or \`telemetry\` points. Its \`coverage\` points have the state \`excluded\`, and status and
  \`--json\` name what is not held of it with that reason. Neither \`--once\` nor \`/readyz\` waits for it.
- **A sensor** matches by its name as the device reports it, a nested value by all names with dots between them: \`env\`
  does not match \`env.temperature\`, \`env.*\` does. Its values are not written. What counts as held is not touched by that;
  a reading of which nothing is written does not count in \`coverage_hour\`. Alerts about such a sensor are written.
- **\`location: false\`** keeps latitude, longitude and the time of the location out of the points and out of the state.
- **From then on**: a change acts from the next start. What is archived or in the database stays, also the position in
  the record of a device that is not listed any more. A device that is included again is filled like any other, as far
  back as \`sync.history\` reaches, its alerts too. A sensor that is written again is written from then on: values that
  were left out are not fetched for their own sake, though some may come along with others.
- **A pattern that matches nothing** is told in the log after the start: it is probably a typing error.
`;

/** Where there is a key that does not act. */
/** The page as it has to stand in \`docs\`. */
export function configurationPage(): string {
  const rows = keyEntries().flatMap(([path, key]) => {
    const fallback = key.default === null ? '' : `\`${key.default}\``;
    const variable = key.kind === 'sections' ? '' : `\`${variableOf(path)}\``;
    const row = `| \`${path}\` | ${variable} | ${fallback} | ${key.description} |`;
    if (key.kind !== 'secret') return [row];
    const file = fileForm(path);
    return [row, `| \`${file}\` | \`${variableOf(file)}\` | | A file that holds it. |`];
  });
  return `${HEAD}${rows.join('\n')}\n${FILTERS}`;
}

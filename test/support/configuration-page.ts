/**
 * `docs/configuration.md`, made from the schema: what is written there cannot differ from what the program does.
 */
import { configKeys, fileForm, variableOf } from '../../src/config-schema.ts';

const HEAD = `# Configuration

A YAML file, \`config/tidemark.yaml\` or what \`--config FILE\` names, and for every key an environment variable, which
wins. \`config/tidemark.example.yaml\` is the file to copy. This page is made from the program's own table of keys.

- **Secrets** (\`api.key\`, \`influx.token\`) can come from a file, by the key with \`_file\`: \`api.key_file\`,
  \`TIDEMARK_API_KEY_FILE\`. Give one form, not both. One line end at the end of the file is dropped.
- **Every mistake is told at once**, by its path, with what was expected; nothing starts then (exit 78). Unknown keys and
  unknown \`TIDEMARK_*\` variables are mistakes, and the nearest known one is named. (\`TIDEMARK_SERVICE_*\` and
  \`TIDEMARK_PORT*\` are let pass: Kubernetes puts them there.) A key that does not act in this version is refused.
- **Units**: \`s m h d w\`. A date without a time is 00:00 UTC. An empty variable counts as unset. Paths are relative to
  the working directory.
- **Proxies**: \`HTTPS_PROXY\`, \`HTTP_PROXY\` and \`NO_PROXY\` are honoured for the API.
- **\`--demo\`** reads no file; the variables act as usual, but for those of the API's address, key and certificates.

| key | variable | default | meaning |
| --- | --- | --- | --- |
`;

const MIDDLE = `
## Not in this version yet

These keys of the design are known and refused until they act:

`;

/** The page as it has to stand in \`docs\`. */
export function configurationPage(): string {
  const keys = Object.entries(configKeys(0));
  const acting = keys.flatMap(([path, key]) => {
    if (!key.acts) return [];
    const fallback = key.secret || key.default === null ? '' : `\`${key.default}\``;
    const rows = [`| \`${path}\` | \`${variableOf(path)}\` | ${fallback} | ${key.description} |`];
    if (key.secret) {
      const file = fileForm(path);
      rows.push(`| \`${file}\` | \`${variableOf(file)}\` | | A file that holds it. |`);
    }
    return rows;
  });
  const later = keys.flatMap(([path, key]) => (key.acts ? [] : [`- \`${path}\`: ${key.description}`]));
  return `${HEAD}${acting.join('\n')}\n${MIDDLE}${later.join('\n')}\n`;
}

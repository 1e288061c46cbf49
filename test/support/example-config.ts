/**
 * `config/tidemark.example.yaml`, made from the schema: every key that acts, with its meaning and its default.
 */
import { configKeys, fileForm, type Key } from '../../src/config/schema.ts';

const HEAD = `# Tidemark's configuration: copy this to config/tidemark.yaml and fill it in.
#
# Every key can be given as an environment variable too, which wins: api.url is TIDEMARK_API_URL, and so on.
# Times take a unit (s, m, h, d, w). What is commented out shows a default, or an example where it says so.
`;

/** Keys that nobody can leave out. */
const REQUIRED = ['api.url', 'api.key'];

/** The whole file. */
export function exampleConfig(): string {
  const entries = Object.entries(configKeys(Date.UTC(2026, 0, 1))).flatMap(([path, key]) =>
    key.acts ? [{ path, key, section: path.includes('.') ? path.replace(/\..*/, '') : '' }] : [],
  );
  const blocks = entries.map(({ path, key, section }, index) => {
    const begins = section === '' || section !== entries[index - 1]?.section;
    const head = section === '' ? '\n' : `\n${section}:\n`;
    return (begins ? head : '') + entryText(path, key);
  });
  return HEAD + blocks.join('');
}

function entryText(path: string, key: Extract<Key, { acts: true }>): string {
  const required = REQUIRED.includes(path);
  const fallback = key.secret ? null : key.default;
  const name = (key.secret ? fileForm(path) : path).replace(/^.*\./, '');
  const indent = path.includes('.') ? '  ' : '';
  const about = `${key.description}${required || fallback !== null ? '' : ' Example:'}`;
  return `${indent}# ${about}\n${indent}${required ? '' : '# '}${name}: ${'fileOnly' in key ? key.example : quoted(fallback ?? key.example ?? '')}\n`;
}

/** In quotes where YAML would read the plain text otherwise. */
function quoted(value: string): string {
  return /^[[{@`!&*%]|: |#/.test(value) ? JSON.stringify(value) : value;
}

/**
 * `config/tidemark.example.yaml`, made from the schema: every key that acts, with its meaning and its default.
 */
import { fileForm, type Key, keyEntries } from '../../src/config/schema.ts';

const HEAD = `# Tidemark's configuration: copy this to config/tidemark.yaml and fill it in.
#
# Every key except destinations also has an environment variable, which overrides it: TIDEMARK_API_URL for api.url.
# Times take a unit (s, m, h, d, w). A commented-out line shows a default, or an example where it is marked as one.
`;

/** Keys that nobody can leave out. */
const REQUIRED = ['api.url', 'api.key'];

/** The complete file. */
export function exampleConfig(): string {
  const sectionOf = (path = ''): string => (path.includes('.') ? path.replace(/\..*/, '') : '');
  const blocks = keyEntries().map(([path, key], index, entries) => {
    const section = sectionOf(path);
    const begins = section === '' || section !== sectionOf(entries[index - 1]?.[0]);
    const head = section === '' ? '\n' : `\n${section}:\n`;
    return (begins ? head : '') + entryText(path, key);
  });
  return HEAD + blocks.join('');
}

function entryText(path: string, key: Key): string {
  const required = REQUIRED.includes(path);
  const fallback = key.default;
  const name = (key.kind === 'secret' ? fileForm(path) : path).replace(/^.*\./, '');
  const indent = path.includes('.') ? '  ' : '';
  const about = `${key.description}${required || fallback !== null ? '' : ' Example:'}`;
  return `${indent}# ${about}\n${indent}${required ? '' : '# '}${name}: ${key.kind === 'sections' ? key.example : quoted(fallback ?? key.example ?? '')}\n`;
}

/** In quotes where YAML would read the plain text otherwise. */
function quoted(value: string): string {
  return /^[[{@`!&*%]|: |#/.test(value) ? JSON.stringify(value) : value;
}

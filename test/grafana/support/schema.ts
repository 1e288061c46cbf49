/**
 * Grafana's JSON schemas (draft 7), and the little of JSON Schema that they use. A word of the language that they do not
 * use is an error, so that nothing is quietly left unchecked.
 */
import { existsSync, readFileSync } from 'node:fs';

/** Beside the checkout, with whatever else several repositories share. */
const FOLDER = '../shared/grafana-schemas';

type Schema = Readonly<Record<string, unknown>>;

/** Whether the schemas are there. Where they are missing: an error in CI, elsewhere `false`, with a word. */
export function schemasAvailable(): boolean {
  if (existsSync(FOLDER)) return true;
  const advice = `${FOLDER} is missing: dashboards are checked against the JSON schemas in it`;
  const { CI } = process.env;
  if (CI !== undefined && CI !== '') throw new Error(advice);
  process.stderr.write(`${advice}; these checks are left out\n`);
  return false;
}

export function readSchema(name: string): Schema {
  return JSON.parse(readFileSync(`${FOLDER}/${name}.jsonschema.json`, 'utf8')) as Schema;
}

/** Every unit that Grafana knows. */
export function knownUnits(): ReadonlySet<string> {
  const { definitions } = readSchema('units') as { definitions: Record<string, { const: string }> };
  return new Set(Object.values(definitions).map((unit) => unit.const));
}

/** What of a value breaks a definition of a schema: where, and what was expected. */
export function violations(root: Schema, definition: string, value: unknown): string[] {
  const definitions = root['definitions'] as Readonly<Record<string, Schema>>;
  const checked = definitions[definition];
  return checked === undefined ? [`no definition ${definition}`] : check(checked, value, { at: '', definitions });
}

interface Spot {
  readonly at: string;
  readonly definitions: Readonly<Record<string, Schema>>;
}

const SILENT = new Set(['description', 'default', 'deprecated', '$schema', 'format', 'x-deprecation-message']);

function check(schema: Schema, value: unknown, spot: Spot): string[] {
  // What the schemas' generator makes of "anything".
  if (isAnything(schema)) return [];
  return Object.entries(schema).flatMap(([word, operand]) => {
    if (SILENT.has(word)) return [];
    const rule = RULES[word];
    if (rule === undefined) throw new Error(`${spot.at}: the schema says ${word}, which this checker does not know`);
    return rule(operand, value, { schema, ...spot });
  });
}

function isAnything({ type, additionalProperties, properties }: Schema): boolean {
  const rest = additionalProperties;
  return (
    type === 'object' &&
    properties === undefined &&
    typeof rest === 'object' &&
    rest !== null &&
    Object.keys(rest).length === 0
  );
}

type Rule = (operand: unknown, value: unknown, spot: Spot & { readonly schema: Schema }) => string[];

const RULES: Readonly<Record<string, Rule>> = {
  $ref: (operand, value, { at, definitions }) => {
    const target = definitions[String(operand).replace('#/definitions/', '')];
    return target === undefined ? [`${at}: ${operand} leads nowhere`] : check(target, value, { at, definitions });
  },
  type: (operand, value, { at }) => (typesOf(value).includes(String(operand)) ? [] : [`${at}: expected ${operand}`]),
  enum: (operand, value, { at }) => ((operand as unknown[]).includes(value) ? [] : [`${at}: none of ${operand}`]),
  const: (operand, value, { at }) => (operand === value ? [] : [`${at}: expected ${operand}`]),
  required: (operand, value, { at }) =>
    isObject(value)
      ? (operand as string[]).filter((key) => !(key in value)).map((key) => `${at}/${key}: is missing`)
      : [],
  properties: (operand, value, { at, definitions }) =>
    isObject(value)
      ? Object.entries(operand as Record<string, Schema>).flatMap(([key, inner]) =>
          key in value ? check(inner, value[key], { at: `${at}/${key}`, definitions }) : [],
        )
      : [],
  additionalProperties: (operand, value, { at, definitions, schema }) =>
    isObject(value)
      ? Object.entries(value)
          .filter(([key]) => !(key in ((schema['properties'] ?? {}) as object)))
          .flatMap(([key, inner]) =>
            operand === false
              ? [`${at}/${key}: is not known`]
              : check(operand as Schema, inner, { at: `${at}/${key}`, definitions }),
          )
      : [],
  items: (operand, value, { at, definitions }) =>
    Array.isArray(value)
      ? value.flatMap((item, index) => check(operand as Schema, item, { at: `${at}/${index}`, definitions }))
      : [],
  allOf: (operand, value, spot) => (operand as Schema[]).flatMap((schema) => check(schema, value, spot)),
  anyOf: (operand, value, spot) => oneFits(operand as Schema[], value, spot),
  // Which of several fits is told apart by constants; that just one does would be no more.
  oneOf: (operand, value, spot) => oneFits(operand as Schema[], value, spot),
  minimum: (operand, value, { at }) => bound(at, Number(value) >= Number(operand), `at least ${operand}`),
  maximum: (operand, value, { at }) => bound(at, Number(value) <= Number(operand), `at most ${operand}`),
  exclusiveMinimum: (operand, value, { at }) => bound(at, Number(value) > Number(operand), `above ${operand}`),
  exclusiveMaximum: (operand, value, { at }) => bound(at, Number(value) < Number(operand), `below ${operand}`),
  minLength: (operand, value, { at }) => bound(at, String(value).length >= Number(operand), 'longer'),
  maxLength: (operand, value, { at }) => bound(at, String(value).length <= Number(operand), 'shorter'),
};

function oneFits(schemas: readonly Schema[], value: unknown, spot: Spot): string[] {
  const found = schemas.map((schema) => check(schema, value, spot));
  return found.some((errors) => errors.length === 0) ? [] : (found.at(-1) ?? []);
}

function bound(at: string, fits: boolean, expected: string): string[] {
  return fits ? [] : [`${at}: expected ${expected}`];
}

function typesOf(value: unknown): string[] {
  if (value === null) return ['null'];
  if (Array.isArray(value)) return ['array'];
  if (typeof value === 'number') return Number.isInteger(value) ? ['number', 'integer'] : ['number'];
  return [typeof value];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

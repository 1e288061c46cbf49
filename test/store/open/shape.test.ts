/**
 * The statements that create a new state: the shape to which the steps lead, written down so that it is made at once.
 * `vitest run test/store/open/shape.test.ts -u` writes it anew after a new step.
 */
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { MIGRATIONS } from '../../../src/store/open/migrations.ts';
import { SHAPE } from '../../../src/store/open/shape.ts';

const HEADER = `/**
 * The newest shape of the state file, for a state that is new: the steps of \`migrations.ts\` lead to the same in ten
 * times as long. \`test/store/open/shape.test.ts\` writes this file.
 */
export const SHAPE = \``;

interface Made {
  /** The statement of each table, index and trigger, in their order. */
  readonly sql: readonly string[];
  /** By table; those without a row are left out. */
  readonly rows: Readonly<Record<string, readonly unknown[]>>;
}

/** The schema of a database after some SQL. */
function madeBy(steps: readonly string[]): Made {
  const db = new Database(':memory:');
  for (const step of steps) db.exec(step);
  const things = db
    .prepare("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY rowid")
    .all() as { readonly type: string; readonly name: string; readonly sql: string }[];
  const tables = things.filter(({ type }) => type === 'table').map(({ name }) => name);
  const rows = tables.map((table) => [table, db.prepare(`SELECT * FROM "${table}"`).raw().all()] as const);
  db.close();
  return {
    sql: things.map(({ sql }) => sql),
    rows: Object.fromEntries(rows.filter(([, found]) => found.length > 0)),
  };
}

const literal = (value: unknown): string =>
  typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : `${value}`;

/** The file that makes the same at once. */
function fileOf({ sql, rows }: Made): string {
  const inserts = Object.entries(rows).flatMap(([table, found]) =>
    found.map((row) => `INSERT INTO ${table} VALUES (${(row as unknown[]).map(literal).join(', ')})`),
  );
  return `${HEADER}\n${[...sql, ...inserts].map((text) => `  ${text};\n`).join('')}\`;\n`;
}

test('it equals the result of all steps, with the rows that they insert', async () => {
  const migrated = madeBy(MIGRATIONS);
  await expect(fileOf(migrated)).toMatchFileSnapshot('../../../src/store/open/shape.ts');
  expect(madeBy([SHAPE])).toEqual(migrated);
  expect(migrated.rows).toEqual({ day_total: [[1, 0, 0]] });
});

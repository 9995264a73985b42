// The functions of the database: each stands in one file of functions/, begins with its version, and is made anew when
// that is higher than the one the database has. So a change to one copies none, and a process of an earlier release that
// starts again leaves what a later one made.
//
// Both releases run beside each other while one follows the other: a function whose arguments or result change gets a
// new name, and the old file stays for one release. What a release no longer defines is left for the one before it.
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Knex } from 'knex';

const FOLDER = join(import.meta.dirname, 'functions');
const FILE = /^[a-z0-9-]+\.sql$/;
const VERSION = /^-- version ([1-9][0-9]*)\n/;

/** A function as its file defines it. */
export interface FunctionFile {
  file: string;
  /** The file's name without `.sql`, with `_` for `-`: the function's own. */
  name: string;
  version: number;
  sql: string;
}

interface Known {
  name: string;
  version: number;
  sha256: string;
}

/** The functions of a folder, by name. Throws for a file that does not begin with its version. */
export async function readFunctions(folder: string = FOLDER): Promise<FunctionFile[]> {
  const files = (await readdir(folder)).filter((name) => FILE.test(name)).sort();
  return Promise.all(
    files.map(async (file) => {
      const sql = await readFile(join(folder, file), 'utf8');
      const version = VERSION.exec(sql)?.[1];
      if (version === undefined) throw new Error(`functions/${file} does not begin with "-- version N"`);
      return {
        file: `functions/${file}`,
        name: file.slice(0, -'.sql'.length).replaceAll('-', '_'),
        version: Number(version),
        sql,
      };
    }),
  );
}

/**
 * Makes the functions that the database lacks or has in an earlier version, all or none; answers their names. One caller
 * at a time. Throws, naming the file, for one that differs without a higher version, that defines another function than
 * its name says, or that would stand beside another of its name.
 */
export async function applyFunctions(knex: Knex, functions: readonly FunctionFile[]): Promise<string[]> {
  await knex.raw(
    'create table if not exists function_version (name text primary key, version integer not null, sha256 text not null)',
  );
  const known = new Map((await knex<Known>('function_version').select()).map((row) => [row.name, row]));
  const due = functions.filter((definition) => isDue(definition, known.get(definition.name)));
  if (due.length === 0) return [];
  return knex.transaction(async (trx) => {
    // A body may name a function that comes after it.
    await trx.raw('set local check_function_bodies = off');
    for (const definition of due) await make(trx, definition);
    return due.map(({ name }) => name);
  });
}

function isDue(definition: FunctionFile, known: Known | undefined): boolean {
  const { file, version } = definition;
  if (known?.version === version && known.sha256 !== hashOf(definition)) {
    throw new Error(`${file} differs from version ${version} in the database: raise its version`);
  }
  return known === undefined || known.version < version;
}

async function make(trx: Knex.Transaction, definition: FunctionFile): Promise<void> {
  const { file, name, version, sql } = definition;
  // A question mark of the text is no parameter.
  await trx.raw(sql.replaceAll('?', '\\?')).catch((error: Error) => {
    throw new Error(`${file}: ${error.message}`, { cause: error });
  });
  const { rows } = await trx.raw<{ rows: { count: number }[] }>(
    'select count(*)::int as count from pg_proc where proname = ? and pronamespace = current_schema()::regnamespace',
    [name],
  );
  const { count } = rows[0]!;
  if (count === 0) throw new Error(`${file} does not define ${name}`);
  if (count > 1) throw new Error(`${file}: ${name} is there with other arguments: this one needs a name of its own`);
  const row: Known = { name, version, sha256: hashOf(definition) };
  await trx<Known>('function_version').insert(row).onConflict('name').merge();
}

function hashOf({ sql }: FunctionFile): string {
  return createHash('sha256').update(sql).digest('hex');
}

// The functions of the database: each stands in one file of functions/, begins with its version, and is made anew when
// that is higher than the one the database has. So a change to one copies none, and a process of an earlier release that
// starts again leaves what a later one made.
//
// Both releases run beside each other while one follows the other: a function whose arguments or result change gets a
// new name, and the old file stays for one release.
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Knex } from 'knex';

const FOLDER = join(import.meta.dirname, 'functions');
const FILE = /^[a-z0-9-]+\.sql$/;
const VERSION = /^-- version ([1-9][0-9]*)\n/;

/** A function as its file defines it. */
export interface FunctionFile {
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
      return { name: file.slice(0, -'.sql'.length).replaceAll('-', '_'), version: Number(version), sql };
    }),
  );
}

/**
 * Makes the functions that the database lacks or has in an earlier version, all or none; answers their names.
 * Throws for one that differs without a higher version, or that would stand beside another of its name.
 */
export async function applyFunctions(knex: Knex, functions: readonly FunctionFile[]): Promise<string[]> {
  await knex.raw(
    'create table if not exists function_version (name text primary key, version integer not null, sha256 text not null)',
  );
  const known = new Map((await knex<Known>('function_version').select()).map((row) => [row.name, row]));
  const due = functions.filter((file) => isDue(file, known.get(file.name)));
  if (due.length === 0) return [];
  return knex.transaction(async (trx) => {
    // A body may name a function that comes after it.
    await trx.raw('set local check_function_bodies = off');
    for (const file of due) await make(trx, file);
    return due.map(({ name }) => name);
  });
}

function isDue(file: FunctionFile, known: Known | undefined): boolean {
  if (known?.version === file.version && known.sha256 !== hashOf(file)) {
    throw new Error(
      `the function ${file.name} differs from version ${file.version} in the database: raise its version`,
    );
  }
  return known === undefined || known.version < file.version;
}

async function make(trx: Knex.Transaction, file: FunctionFile): Promise<void> {
  // As the driver's own query: knex would take a question mark for a parameter.
  await trx.raw(file.sql.replaceAll('?', '\\?'));
  const { rows } = await trx.raw<{ rows: { count: number }[] }>(
    'select count(*)::int as count from pg_proc where proname = ? and pronamespace = current_schema()::regnamespace',
    [file.name],
  );
  if (rows[0]!.count !== 1) {
    throw new Error(
      `there are ${rows[0]!.count} functions ${file.name}: one with other arguments needs a name of its own`,
    );
  }
  const row = { name: file.name, version: file.version, sha256: hashOf(file) };
  await trx<Known>('function_version').insert(row).onConflict('name').merge();
}

function hashOf({ sql }: FunctionFile): string {
  return createHash('sha256').update(sql).digest('hex');
}

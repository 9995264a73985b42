// Runs the migrations once, whatever number of processes start together: a session lock on a connection of its own,
// then each migration in a transaction that also records it, then the functions. A process killed half-way leaves
// nothing behind.
import { readdir } from 'node:fs/promises';
import knexFactory, { type Knex } from 'knex';
import pg from 'pg';
import { applyFunctions, readFunctions } from './functions.ts';

const MIGRATION_LOCK = 0x5356434d; // "SVCM"
const FILE = /^[0-9]{4}-[a-z0-9-]+\.ts$/;

export interface MigrationProgress {
  name: string;
  index: number;
  total: number;
}

/** Applies what is missing, in order, and then functions; answers the names. Throws on a database newer than this code. */
export async function migrate(
  databaseUrl: string,
  onProgress: (progress: MigrationProgress) => void = () => undefined,
): Promise<string[]> {
  const lock = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 10_000 });
  await lock.connect();
  const knex = knexFactory({ client: 'pg', connection: databaseUrl, pool: { min: 0, max: 1 } });
  try {
    await lock.query('select pg_advisory_lock($1)', [MIGRATION_LOCK]);
    const applied = await applyMissing(knex, onProgress);
    return [...applied, ...(await applyFunctions(knex, await readFunctions()))];
  } finally {
    await knex.destroy();
    await lock.end();
  }
}

async function applyMissing(knex: Knex, onProgress: (progress: MigrationProgress) => void): Promise<string[]> {
  await knex.raw(
    'create table if not exists migration (name text primary key, applied_at timestamptz not null default now())',
  );
  const files = (await readdir(import.meta.dirname)).filter((name) => FILE.test(name)).sort();
  const known = new Set(files.map(migrationName));
  const applied = new Set((await knex('migration').select('name')).map((row: { name: string }) => row.name));
  const unknown = [...applied].filter((name) => !known.has(name));
  if (unknown.length > 0) {
    throw new Error(`the database was migrated by a newer version (${unknown.join(', ')}); start that version`);
  }
  const missing = files.filter((file) => !applied.has(migrationName(file)));
  for (const [index, file] of missing.entries()) {
    const name = migrationName(file);
    onProgress({ name, index: index + 1, total: missing.length });
    const { up } = (await import(`./${file}`)) as { up: (trx: Knex.Transaction) => Promise<void> };
    await knex.transaction(async (trx) => {
      await trx('migration').insert({ name });
      await up(trx);
    });
  }
  return missing.map(migrationName);
}

function migrationName(file: string): string {
  return file.slice(0, -'.ts'.length);
}

// Runs the migrations once, whatever number of processes start together: a session lock on a connection of its own,
// then each migration in a transaction that also records it, then the functions. A process killed half-way leaves
// nothing behind.
import { readdir } from 'node:fs/promises';
import knexFactory, { type Knex } from 'knex';
import pg from 'pg';
import { applyFunctions, readFunctions } from './functions.ts';

/** Of a session: one migrates at a time. */
export const MIGRATION_LOCK = 0x5356434d; // "SVCM"
const FILE = /^[0-9]{4}-[a-z0-9-]+\.ts$/;

export interface MigrationProgress {
  name: string;
  index: number;
  total: number;
}

/** Of a restore, which alone may migrate a database that it has not finished. */
export interface RestoreStep {
  /** Applies these migrations alone, and no functions: the tables are those of the backup. */
  only?: ReadonlySet<string>;
}

/**
 * Applies what is missing, in order, and then functions; answers the names. Throws on a database newer than this code, and
 * on an unfinished restore.
 */
export async function migrate(
  databaseUrl: string,
  onProgress: (progress: MigrationProgress) => void = () => undefined,
  restore?: RestoreStep,
): Promise<string[]> {
  const lock = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 10_000 });
  await lock.connect();
  const knex = knexFactory({ client: 'pg', connection: databaseUrl, pool: { min: 0, max: 1 } });
  try {
    await lock.query('select pg_advisory_lock($1)', [MIGRATION_LOCK]);
    if (!restore) await refuseUnfinished(knex);
    const applied = await applyMissing(knex, onProgress, restore?.only);
    if (restore?.only) return applied;
    return [...applied, ...(await applyFunctions(knex, await readFunctions()))];
  } finally {
    await knex.destroy();
    await lock.end();
  }
}

/** Names of the migrations of this release, in order. */
export async function migrationNames(): Promise<string[]> {
  return (await migrationFiles()).map(migrationName);
}

async function migrationFiles(): Promise<string[]> {
  return (await readdir(import.meta.dirname)).filter((name) => FILE.test(name)).sort();
}

async function refuseUnfinished(knex: Knex): Promise<void> {
  const { rows } = await knex.raw<{ rows: { unfinished: boolean }[] }>(
    `select to_regclass('restore_unfinished') is not null as unfinished`,
  );
  if (rows[0]!.unfinished) {
    throw new Error(
      'the database is an unfinished restore: run "npm run restore" again, it starts over; nothing was changed',
    );
  }
}

async function applyMissing(
  knex: Knex,
  onProgress: (progress: MigrationProgress) => void,
  only?: ReadonlySet<string>,
): Promise<string[]> {
  await knex.raw(
    'create table if not exists migration (name text primary key, applied_at timestamptz not null default now())',
  );
  const files = await migrationFiles();
  const known = new Set(files.map(migrationName));
  const applied = new Set((await knex('migration').select('name')).map((row: { name: string }) => row.name));
  const unknown = [...applied].filter((name) => !known.has(name));
  if (unknown.length > 0) {
    throw new Error(`the database was migrated by a newer version (${unknown.join(', ')}); start that version`);
  }
  const missing = files.filter((file) => !applied.has(migrationName(file)) && (only?.has(migrationName(file)) ?? true));
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

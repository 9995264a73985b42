// Only an empty database is restored into, or what an earlier restore has left unfinished there.
import type { Client } from 'pg';
import { MIGRATION_LOCK } from '../../../migrations/run.ts';
import { BackupError } from '../../../runtime/backup/backup-error.ts';
import { quoted } from '../../../runtime/backup/catalog.ts';

/** While this table is there the database is no console's: consoles and migrations refuse to start on it. */
const MARKER = 'restore_unfinished';
const RESTORE_LOCK = 0x53564352; // "SVCR"

/**
 * Takes the database for this restore and marks it as unfinished. Throws BackupError when it is not empty, or another restore
 * runs in it. What an unfinished restore has left is dropped.
 */
export async function claimDatabase(client: Client, backupId: string): Promise<void> {
  await lockDatabase(client);
  const { rows } = await client.query<{ tables: number; unfinished: boolean }>(
    `select count(*)::int as tables, coalesce(bool_or(relname = $1), false) as unfinished from pg_class c
      where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p', 'v', 'm', 'S', 'f')
        and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')`,
    [MARKER],
  );
  const { tables, unfinished } = rows[0]!;
  if (tables > 0 && !unfinished) {
    throw new BackupError(
      'not_empty',
      'The database is not empty. Create a new one, for example with "createdb", and restore into that.',
    );
  }
  await client.query('begin');
  await client.query(
    `create table if not exists ${MARKER} (backup_id text not null, started_at timestamptz not null default now())`,
  );
  await client.query(`truncate ${MARKER}`);
  await client.query(`insert into ${MARKER} (backup_id) values ($1)`, [backupId]);
  if (unfinished) await dropAll(client);
  await client.query('commit');
  await client.query('select pg_advisory_unlock($1)', [MIGRATION_LOCK]);
}

/**
 * Until the end of the session, and no migration runs meanwhile. The server may still be ending what a process that was killed had
 * begun, which is waited for.
 */
async function lockDatabase(client: Client): Promise<void> {
  try {
    await client.query('select pg_advisory_lock($1)', [RESTORE_LOCK]);
    await client.query('select pg_advisory_lock($1)', [MIGRATION_LOCK]);
  } catch (error) {
    if ((error as { code?: string }).code !== '55P03') throw error;
    throw new BackupError('busy', 'Another restore or a migration runs in this database.', { cause: error });
  }
}

/** SQL that ends the restore, in the transaction of its last step. */
export const FINISH = `drop table ${MARKER}`;

async function dropAll(client: Client): Promise<void> {
  const { rows: relations } = await client.query<{ kind: string; name: string }>(
    `select case relkind when 'v' then 'view' when 'S' then 'sequence' else 'table' end as kind, relname as name
       from pg_class c where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p', 'v', 'S')
        and not relispartition and relname <> $1
        and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
      order by relkind not in ('r', 'p')`,
    [MARKER],
  );
  for (const { kind, name } of relations) await client.query(`drop ${kind} if exists ${quoted([name])} cascade`);
  const { rows: functions } = await client.query<{ name: string }>(
    `select p.oid::regprocedure::text as name from pg_proc p where pronamespace = current_schema()::regnamespace
      and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')`,
  );
  for (const { name } of functions) await client.query(`drop routine if exists ${name} cascade`);
}

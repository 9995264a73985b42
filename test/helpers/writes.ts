// Rows that a console writes while a test looks.
import type { Knex } from 'knex';
import { eventually } from './eventually.ts';

/**
 * Notes every row written from now on in any table of the database; the answered function tells in which tables, one
 * name a row. What was written before is passed on first: rows of the outbox are deleted some time after their change.
 */
export async function noteWrites(sql: Knex): Promise<() => Promise<string[]>> {
  await eventually(async () => (await sql('outbox').first('id')) === undefined, { what: 'an empty outbox' });
  await sql.raw(`
    create table test_write (id bigint generated always as identity, table_name text);
    create function note_write() returns trigger language plpgsql as
      $$ begin insert into test_write (table_name) values (tg_table_name); return null; end $$;
    do $$ declare found text; begin
      -- A partition has the trigger of its table.
      for found in select relname from pg_class where relnamespace = 'public'::regnamespace
          and relkind in ('r', 'p') and not relispartition and relname <> 'test_write' loop
        execute format('create trigger note_write after insert or update or delete on %I
          for each row execute function note_write()', found);
      end loop;
    end $$`);
  return async () => (await sql('test_write').orderBy('id')).map(({ table_name }) => table_name);
}

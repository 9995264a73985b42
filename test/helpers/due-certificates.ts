// Certificates that an authority is to be asked for, any number of them.
import type { Knex } from 'knex';

interface Due {
  name: string;
  count: number;
  /** Whether there is one already, to be renewed. */
  issued: boolean;
}

/** Inserts certificates that are due, one a second longer than the other; what they are made of is none. */
export async function insertDue(sql: Knex, due: Due): Promise<void> {
  await sql.raw(
    `insert into certificate (name, names, requested_names, source, status, renew_at, request, fingerprint, chain,
       private_key, issuer, key_type, not_before, not_after)
     select :name, '{due.example}'::text[], '{due.example}'::text[], 'acme',
         case when :issued then 'ready' else 'pending' end, now() - make_interval(secs => i), '{}'::jsonb,
         case when :issued then sha256(i::text::bytea) end, case when :issued then '{}'::bytea[] end,
         m.text, m.text, m.text, m.at, m.at
       from generate_series(1, :count::int) as i,
         lateral (select case when :issued then 'none' end as text, case when :issued then now() end as at) as m`,
    { ...due },
  );
}

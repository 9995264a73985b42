// DNS of clusters: how names follow nodes, what was decided, and which names at which provider the console writes.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- A cluster without a row is unmanaged. revision: the newest number; target: the one that names follow; blocked: a newer
    -- one that would remove too much. fence: raised by each engine that begins to work on the cluster.
    create table dns_binding (
      cluster_id text primary key references cluster on delete cascade,
      mode text not null check (mode in ('off', 'manual', 'auto')),
      credential_id text references dns_credential,
      domain text not null,
      ttl integer not null,
      lines jsonb not null,
      line_aliases boolean not null,
      all_label text not null,
      revision bigint not null default 0,
      target bigint,
      applied bigint,
      blocked bigint,
      problem jsonb,
      conflicts text[] not null default '{}',
      fence bigint not null default 0,
      -- When the zone was last read and was as it should be, and when the engine looks at it again.
      checked_at timestamptz,
      due_at timestamptz not null default now(),
      -- Runs that were asked for, and how many of them are done.
      asked bigint not null default 0,
      done bigint not null default 0,
      failing_since timestamptz,
      updated_at timestamptz not null,
      check (mode <> 'auto' or credential_id is not null)
    ) with (fillfactor = 50);
    create index dns_binding_credential on dns_binding (credential_id) where credential_id is not null;

    -- sets: the addresses by name, type and line; names of sites follow the sites. difference: to the target before it.
    create table dns_revision (
      cluster_id text not null references cluster on delete cascade,
      number bigint not null,
      status text not null check (status in ('pending', 'applied', 'failed', 'superseded', 'blocked')),
      reason text not null check (reason in ('manual', 'health', 'rollback', 'force', 'scheduling')),
      reason_params jsonb not null default '{}',
      actor jsonb not null,
      binding jsonb not null,
      sets jsonb not null,
      difference jsonb not null,
      removed integer not null default 0,
      previous integer not null default 0,
      problem jsonb,
      created_at timestamptz not null default now(),
      applied_at timestamptz,
      primary key (cluster_id, number)
    );

    -- Names that the console may write, registered before they are. data: every value that was written, or may have been,
    -- since the zone was last read back. written: whether a reading has shown it.
    create table dns_name (
      credential_id text not null references dns_credential,
      name text not null,
      cluster_id text not null references cluster,
      data text[] not null,
      written boolean not null default false,
      primary key (credential_id, name)
    );
    create index dns_name_cluster on dns_name (cluster_id, credential_id);

    -- Clusters whose sites got or lost a name; read and emptied by the engine.
    create table dns_site_change (
      id bigint generated always as identity primary key,
      cluster_id text not null
    );

    create function dns_site_changed() returns trigger language plpgsql as $$
    begin
      insert into dns_site_change (cluster_id)
      select c from unnest(case tg_op when 'DELETE' then array[old.cluster_id] when 'INSERT' then array[new.cluster_id]
                           else array[old.cluster_id, new.cluster_id] end) as c
       where exists (select from dns_binding b where b.cluster_id = c and b.mode <> 'off');
      return null;
    end $$;
    create trigger dns_site_changed after insert or delete or update of cluster_id on site
      for each row execute function dns_site_changed();

    -- Configured addresses: 0 is used first, 1 and 2 when none of a lower level can be reached.
    alter table node_address add column level smallint not null default 0 check (level between 0 and 2);
  `);
}

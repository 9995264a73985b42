// Creating manual bans in groups: what several requests ask for at the same time is checked in one round trip and
// written in another, because the feed lets one transaction after the other through.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- Bans of an address are looked up by the address, whatever the statistics say: while those are of an empty or much
    -- smaller table, the planner takes the partial indexes of unlifted bans for nearly empty, and each create reads all
    -- of them (8 ms with 4,000). The comparison with infinity, which proves none of their conditions, keeps it from that.
    -- Otherwise the two functions are as they were.
    create or replace function ban_check(p_site text, p_cidr cidr, p_now timestamptz) returns jsonb
    language plpgsql
    set enable_seqscan = off
    as $$
    declare
      found_site jsonb;
      found_ban jsonb;
    begin
      perform 1 from ban_guard for share;
      -- Two creates of one address are a create and a renewal.
      perform pg_advisory_xact_lock(hashtextextended(coalesce(p_site, '') || ' ' || p_cidr, 1398162181));
      select jsonb_build_object('name', name, 'clusterId', cluster_id) into found_site
        from site where id = p_site for key share;
      select jsonb_build_object('id', id, 'active', expires_at > p_now, 'createdAt', created_at, 'createdBy', created_by,
          'unappliedNodes', (
            select count(*) from ban_unapplied u join node_state n on n.node_id = u.node_id
             where u.ban_id = b.id and n.last_seen_at > now() - interval '45 seconds'))
        into found_ban from ban b
       where source = 'manual' and coalesce(site_id, '') = coalesce(p_site, '') and cidr = p_cidr
         and coalesce(lifted_at, 'infinity') = 'infinity'
         for update;
      return jsonb_build_object(
        'newId', uuidv7(),
        'site', found_site,
        'before', found_ban,
        'settings', (select value from setting where key = 'bans'),
        'protected', ban_protected(p_cidr, found_site->>'clusterId'),
        -- Never below the number of active manual bans, but for creates under way; null: ask by counting.
        'most', (select case when s.last_value >= c.at_seq then c.counted + s.last_value - c.at_seq end
                   from ban_count c, ban_seq s));
    end $$;

    create or replace function ban_insert(
      p_id text, p_site text, p_cluster text, p_cidr cidr, p_reason text, p_created_by jsonb,
      p_now timestamptz, p_expires timestamptz, out epoch bigint, out seq bigint)
    language plpgsql
    set enable_seqscan = off
    as $$
    declare
      taken record;
    begin
      select n.epoch, n.seq into epoch, seq from ban_next() n;
      update ban set lifted_at = expires_at
       where source = 'manual' and coalesce(site_id, '') = coalesce(p_site, '') and cidr = p_cidr
         and coalesce(lifted_at, 'infinity') = 'infinity';
      if p_site is null then
        update ban b set lifted_at = p_now, seq = ban_insert.seq
         where source = 'auto' and scope = 'platform' and cidr = p_cidr
         and coalesce(lifted_at, 'infinity') = 'infinity'
         returning b.id, b.expires_at into taken;
        if found then
          perform ban_record(array[seq], array[taken.id], array[''], array[taken.expires_at + interval '1 hour']);
          seq := nextval('ban_seq');
        end if;
      end if;
      insert into ban (id, scope, site_id, cluster_id, cidr, reason, source, created_by, created_at, expires_at, seq)
      values (p_id, case when p_site is null then 'platform' else 'site' end, p_site, p_cluster, p_cidr, p_reason,
        'manual', p_created_by, p_now, p_expires, seq);
      perform ban_record(array[seq], array[p_id], array[coalesce(p_cluster, '')], array[p_expires + interval '1 hour']);
    end $$;

    -- ban_check for each of several addresses, in the order given, which is the same everywhere. Only one group of the
    -- console is under way at a time, which bounds how many creates are. Without patience the group gives up soon when
    -- one of its addresses has to wait, because all of its members would.
    create function ban_check_all(p_sites text[], p_cidrs cidr[], p_now timestamptz, p_patient boolean)
    returns setof jsonb
    language plpgsql as $$
    begin
      if cardinality(p_cidrs) > 1 then
        perform pg_advisory_xact_lock(1398162181, 3);
      end if;
      if not p_patient then
        perform set_config('lock_timeout', '100ms', true);
      end if;
      for i in 1 .. cardinality(p_cidrs) loop
        return next ban_check(p_sites[i], p_cidrs[i], p_now);
      end loop;
      perform set_config('lock_timeout', '2s', true);
    end $$;

    -- Writes checked bans in the order given and answers the number of each. renews: the ban of that id is active and
    -- gets another reason and end.
    create function ban_write_all(p_bans jsonb, p_now timestamptz) returns table (epoch bigint, seq bigint)
    language plpgsql as $$
    declare
      ban record;
    begin
      for ban in
        select * from jsonb_to_recordset(p_bans) as b(id text, renews boolean, site text, cluster text, cidr cidr,
          reason text, created_by jsonb, expires_at timestamptz)
      loop
        if ban.renews then
          return query select w.epoch, w.seq from ban_renew(ban.id, ban.reason, ban.expires_at) w;
        else
          return query select w.epoch, w.seq from ban_insert(ban.id, ban.site, ban.cluster, ban.cidr, ban.reason,
            ban.created_by, p_now, ban.expires_at) w;
        end if;
      end loop;
    end $$;
  `);
}

// Creating a manual ban in two round trips: what is checked, and what is written under the feed's lock, which every
// other ban of the console waits for.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    create index ban_automatic_active on ban (cluster_id, expires_at) where source = 'auto' and lifted_at is null;

    -- Takes the locks of a creator of a manual ban (the guard with all other creators, the address alone, the site
    -- against deletion) and then reads what has to be judged: each statement here sees what committed before the locks
    -- were had. An unlifted ban of the address is locked, too.
    create function ban_check(p_site text, p_cidr cidr, p_now timestamptz) returns jsonb
    language plpgsql as $$
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
       where source = 'manual' and coalesce(site_id, '') = coalesce(p_site, '') and cidr = p_cidr and lifted_at is null
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

    -- A node address the range covers (of one cluster, or of any with null), else an allow-list entry it overlaps.
    create function ban_protected(p_cidr cidr, p_cluster text) returns text
    language sql stable as $$
      (select host(address) from node_address
        where address <<= p_cidr and (p_cluster is null or cluster_id = p_cluster) order by 1 limit 1)
      union all
      (select e.cidr::text from ip_list_entry e join ip_list l on l.id = e.ip_list_id
        where e.cidr && p_cidr and l.kind = 'allow' order by 1 limit 1)
      limit 1
    $$;

    -- Gives an active manual ban another reason and end.
    create function ban_renew(p_id text, p_reason text, p_expires timestamptz, out epoch bigint, out seq bigint)
    language plpgsql as $$
    declare
      cluster text;
      keep timestamptz;
    begin
      select n.epoch, n.seq into epoch, seq from ban_next() n;
      -- A node may still hold the earlier copy when it ends later.
      select greatest(b.expires_at, p_expires) + interval '1 hour' into keep from ban b where b.id = p_id;
      update ban b set reason = p_reason, expires_at = p_expires, seq = ban_renew.seq
       where b.id = p_id returning coalesce(b.cluster_id, '') into cluster;
      perform ban_record(array[seq], array[p_id], array[cluster], array[keep]);
    end $$;

    -- Inserts a manual ban. An expired one of the address makes way; an automatic platform ban of the same addresses,
    -- shared or not, is taken over: it is lifted in the feed's order before the new one is made.
    create function ban_insert(
      p_id text, p_site text, p_cluster text, p_cidr cidr, p_reason text, p_created_by jsonb,
      p_now timestamptz, p_expires timestamptz, out epoch bigint, out seq bigint)
    language plpgsql as $$
    declare
      taken record;
    begin
      select n.epoch, n.seq into epoch, seq from ban_next() n;
      update ban set lifted_at = expires_at
       where source = 'manual' and coalesce(site_id, '') = coalesce(p_site, '') and cidr = p_cidr and lifted_at is null;
      if p_site is null then
        update ban b set lifted_at = p_now, seq = ban_insert.seq
         where source = 'auto' and scope = 'platform' and cidr = p_cidr and lifted_at is null
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

    -- Lifts one active ban.
    create function ban_lift(p_id text, p_now timestamptz, out epoch bigint, out seq bigint)
    language plpgsql as $$
    declare
      lifted record;
    begin
      select n.epoch, n.seq into epoch, seq from ban_next() n;
      update ban b set lifted_at = p_now, seq = ban_lift.seq where b.id = p_id
        returning coalesce(b.cluster_id, '') as cluster, b.expires_at into lifted;
      perform ban_record(array[seq], array[p_id], array[lifted.cluster], array[lifted.expires_at + interval '1 hour']);
    end $$;
  `);
}

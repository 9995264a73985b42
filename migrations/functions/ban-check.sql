-- version 2
-- Takes the locks of a creator of a manual ban (the guard with all other creators, the address alone, the site
-- against deletion) and then reads what has to be judged: each statement here sees what committed before the locks
-- were had. An unlifted ban of the address is locked, too, and the automatic one that a platform ban would take over:
-- rows come before the feed.
-- Bans of an address are looked up by the address, whatever the statistics say: while those are of an empty or much
-- smaller table, the planner takes the partial indexes of unlifted bans for nearly empty, and each create reads all
-- of them (8 ms with 4,000). The comparison with infinity, which proves none of their conditions, keeps it from that.
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
  if p_site is null then
    perform 1 from ban where source = 'auto' and scope = 'platform' and cidr = p_cidr
      and coalesce(lifted_at, 'infinity') = 'infinity'
      for update;
  end if;
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

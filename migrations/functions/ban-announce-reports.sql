-- version 1
-- ban_announce for bans that a node reported. Whoever made a manual platform ban of an address since the report looked
-- has not seen the report's: that one is lifted here, as a manual ban lifts those that it sees.
-- Looks bans up as ban_check does, and for its reason.
create or replace function ban_announce_reports(p_ids text[], p_now timestamptz, out epoch bigint, out seq bigint)
language plpgsql
set enable_seqscan = off
as $$
begin
  perform pg_advisory_xact_lock(1398162179, 1);
  update ban a set lifted_at = p_now
   where a.id = any(p_ids) and a.scope = 'platform' and a.lifted_at is null and exists (
     select from ban m where m.source = 'manual' and coalesce(m.site_id, '') = '' and m.cidr = a.cidr
       and coalesce(m.lifted_at, 'infinity') = 'infinity' and m.expires_at > p_now);
  select n.epoch, n.seq into epoch, seq from ban_announce(p_ids) n;
end $$;

-- version 1
-- ban_announce for bans that a node's report has written, with those it has met and left as they were. Whoever made a
-- manual platform ban of an address since the report looked has not seen the report's, or has passed over a locked one:
-- that one is lifted here, as a manual ban lifts those that it sees.
-- Looks bans up as ban_check does, and for its reason.
create or replace function ban_announce_merged(
  p_written text[], p_met text[], p_now timestamptz, out epoch bigint, out seq bigint)
language plpgsql
set enable_seqscan = off
as $$
declare
  taken text[];
begin
  perform pg_advisory_xact_lock(1398162179, 1);
  with lifted as (
    update ban a set lifted_at = p_now
     where a.id = any(p_written || p_met) and a.scope = 'platform' and a.lifted_at is null and exists (
       select from ban m where m.source = 'manual' and coalesce(m.site_id, '') = '' and m.cidr = a.cidr
         and coalesce(m.lifted_at, 'infinity') = 'infinity' and m.expires_at > p_now)
    returning a.id
  )
  select coalesce(array_agg(l.id), '{}') into taken from lifted l;
  select n.epoch, n.seq into epoch, seq from ban_announce(array(select unnest(p_written) union select unnest(taken))) n;
end $$;

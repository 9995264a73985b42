-- version 1
-- Lifts one active ban.
create or replace function ban_lift(p_id text, p_now timestamptz, out epoch bigint, out seq bigint)
language plpgsql as $$
declare
  lifted record;
begin
  select n.epoch, n.seq into epoch, seq from ban_next() n;
  update ban b set lifted_at = p_now, seq = ban_lift.seq where b.id = p_id
    returning coalesce(b.cluster_id, '') as cluster, b.expires_at into lifted;
  perform ban_record(array[seq], array[p_id], array[lifted.cluster], array[lifted.expires_at + interval '1 hour']);
end $$;
